//! What is said of what a killed server had confirmed and not written. Knows no file.

use std::io;
use tenon_journal::log::{Left, NotBrought};

/// What was put into which files.
pub(super) fn words_of_brought(left: &Left) -> Vec<String> {
    let words = |(path, bytes): &(std::path::PathBuf, u64)| {
        format!("A killed server had confirmed {bytes} bytes and not written them: now they are in {}", path.display())
    };
    left.brought.iter().map(words).collect()
}

/// What is lost, or may be.
pub(super) fn words_of_given_up(left: &Left) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(why) = &left.not_looked {
        all.push(format!("Can't look whether a killed server had confirmed something and not written it: {why}"));
    }
    if let Some(path) = &left.changed {
        all.push(format!(
            "What a killed server had confirmed and not written is given up: {} is not as it had left it",
            path.display()
        ));
    }
    if left.given_up > 0 {
        all.push(format!(
            "{} bytes that a killed server had perhaps confirmed and not written are given up: what is whole of them is not \
             known, or their file is gone",
            left.given_up
        ));
    }
    all
}

/// What was tried, and what may be done.
pub(super) fn words_of_not_brought(not: &NotBrought) -> String {
    match not {
        NotBrought::NotLooked(_) => {
            "Can't look whether a killed server had confirmed something and not written it".to_owned()
        }
        NotBrought::NotListed { left_in } => format!(
            "A killed server had confirmed something and not written it, for a file that is not on this list (it lies in {}; \
             to go on without it remove that)",
            left_in.display()
        ),
        NotBrought::NotWritten { path, left_in, .. } => format!(
            "Can't write what a killed server had confirmed behind {} (it lies in {}; to start without it remove that)",
            path.display(),
            left_in.display()
        ),
    }
}

/// What the system says.
pub(super) fn error_of(not: NotBrought) -> io::Error {
    match not {
        NotBrought::NotLooked(error) | NotBrought::NotWritten { error, .. } => error,
        NotBrought::NotListed { .. } => io::ErrorKind::NotFound.into(),
    }
}
