//! `tenon check aof`: its command line. What it says and does is that of `persist::aof::check`.

use std::ffi::OsString;
use std::io::{self, BufRead, Read, Write};
use std::path::Path;
use tenon_engine::persist::aof::check::{Check, Mode};
use tenon_engine::persist::journal::files::Disk;

/// Does what the words behind `aof` say, and tells whether the files are well; nothing when the words mean nothing.
pub(super) fn check(args: &[OsString], input: &mut dyn BufRead, out: &mut dyn Write) -> io::Result<Option<bool>> {
    let words: Vec<&str> = args.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    let mode = match words[..] {
        [file] if !file.starts_with("--") => Mode::Look,
        ["--fix", _] | [_, "--fix"] => Mode::Fix,
        ["--truncate-to-timestamp", time, _] | [_, "--truncate-to-timestamp", time] => match time.parse() {
            Ok(time) => Mode::TruncateTo(time),
            Err(_) => {
                writeln!(out, "Invalid timestamp, aborting...")?;
                return Ok(Some(false));
            }
        },
        _ => return Ok(None),
    };
    // Redis has options first; people put them last.
    let file = if words[0].starts_with("--") { &args[args.len() - 1] } else { &args[0] };
    let mut may_cut = || {
        let mut answer = String::new();
        input.read_line(&mut answer).is_ok() && answer.starts_with(['y', 'Y'])
    };
    let mut check = Check { files: &Disk, mode, out, may_cut: &mut may_cut, check_rdb: &mut check_rdb };
    check.run(Path::new(file)).map(Some)
}

/// Snapshots are looked through by `tenon check rdb`.
fn check_rdb(_source: &mut dyn Read, out: &mut dyn Write) -> io::Result<Option<u64>> {
    writeln!(out, "This build does not look through snapshots")?;
    Ok(None)
}
