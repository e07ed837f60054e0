//! Data files, packed or not. Knows not what they hold.

use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::{Command, Stdio};

/// What unpacks files with these endings.
static PROGRAMS: [(&str, &str); 3] = [(".zst", "zstd"), (".xz", "xz"), (".gz", "gzip")];

/// A file's name without the ending that says how it is packed, and its contents.
///
/// # Errors
/// When it cannot be read, or the program that unpacks it is missing or fails.
pub fn contents(path: &Path) -> Result<(String, Vec<u8>)> {
    let shown = || path.display().to_string();
    let name = path.file_name().and_then(|name| name.to_str()).with_context(shown)?;
    let packed = PROGRAMS.iter().find_map(|(ending, program)| Some((name.strip_suffix(ending)?, program)));
    let Some((name, program)) = packed else {
        return Ok((name.to_owned(), std::fs::read(path).with_context(shown)?));
    };
    let mut command = Command::new(program);
    command.arg("-dc").arg(path).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().with_context(|| format!("{program}, which unpacks {}", path.display()))?;
    if !output.status.success() {
        bail!("{program} cannot unpack {}", path.display());
    }
    Ok((name.to_owned(), output.stdout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_and_packed_files_are_read() {
        let directory = std::env::temp_dir().join(format!("tenon-bench-packed-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let plain = directory.join("a.csv");
        std::fs::write(&plain, "text").expect("it is written");
        assert_eq!(contents(&plain).expect("it is there"), ("a.csv".to_owned(), b"text".to_vec()));
        // Every system has gzip.
        assert!(Command::new("gzip").arg(&plain).status().expect("gzip").success());
        assert_eq!(contents(&directory.join("a.csv.gz")).expect("it is there").1, b"text");
        std::fs::write(directory.join("b.csv.gz"), "no gzip").expect("it is written");
        assert!(contents(&directory.join("b.csv.gz")).is_err() && contents(&directory.join("none")).is_err());
        std::fs::remove_dir_all(&directory).expect("it can go");
    }
}
