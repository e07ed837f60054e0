//! What `tenon check` is asked for. Knows no file's form.

use super::rdb;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// The first word of the command line.
pub(crate) const WORD: &str = "check";
const USAGE: &str = "Usage: tenon check rdb FILE";

/// Does what the words behind the first say; the exit code is 0 when nothing is wrong with the file.
pub(crate) fn run(args: &[OsString]) -> ExitCode {
    let words: Vec<&str> = args.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    let done = match words[..] {
        ["rdb", _] => rdb::check(Path::new(&args[1]), &mut io::stdout().lock()),
        _ => {
            let _ = writeln!(io::stderr(), "{USAGE}");
            return ExitCode::FAILURE;
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(io::stderr(), "tenon check: {}: {error}", args[1].display());
            ExitCode::FAILURE
        }
    }
}
