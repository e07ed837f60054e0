//! What `tenon check` is asked for. Knows no file's form.

use super::{aof, rdb};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// The first word of the command line.
pub(crate) const WORD: &str = "check";
const USAGE: &str = "Usage: tenon check aof [--fix | --truncate-to-timestamp SECONDS] FILE|MANIFEST\n       \
                     tenon check rdb FILE";

/// Does what the words behind the first say; the exit code is 0 when nothing is wrong with the file.
pub(crate) fn run(args: &[OsString]) -> ExitCode {
    let words: Vec<&str> = args.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    let done = match words[..] {
        ["--help" | "-h"] | ["aof" | "rdb", "--help" | "-h"] => {
            // Whoever asked has gone away when this fails.
            let _ = writeln!(io::stdout(), "{USAGE}");
            return ExitCode::SUCCESS;
        }
        ["aof", ..] => aof::check(&args[1..], &mut io::stdin().lock(), &mut io::stdout().lock()),
        ["rdb", _] => rdb::check(Path::new(&args[1]), &mut io::stdout().lock()).map(Some),
        _ => Ok(None),
    };
    match done {
        Ok(Some(true)) => ExitCode::SUCCESS,
        Ok(Some(false)) => ExitCode::FAILURE,
        Ok(None) => {
            // Nobody is left to tell when this fails.
            let _ = writeln!(io::stderr(), "{USAGE}");
            ExitCode::FAILURE
        }
        Err(error) => {
            let _ = writeln!(io::stderr(), "tenon check: {error}");
            ExitCode::FAILURE
        }
    }
}
