//! Traces in the forms in which they are published. Knows no server.

use super::trace::{Builder, Trace};
use crate::packed::contents;
use anyhow::{Context, Result, bail};
use std::io::BufRead;
use std::path::Path;

/// Bytes of an object where the trace tells none: a disk's block.
const BLOCK_LEN: u32 = 512;

/// The endings of the forms.
pub const FORMS: [&str; 3] = [".csv", ".lis", ".trace"];

/// Reads a trace by its name's ending: `.csv` (`time, object, size, ...`), `.lis` (`start count ...`, the ARC paper's) or
/// `.trace` (big-endian 32-bit keys, cache2k's); behind it there may be `.zst`, `.xz` or
/// `.gz`.
///
/// # Errors
/// When the file cannot be read, unpacked or understood.
pub fn read(path: &Path) -> Result<Trace> {
    let (name, bytes) = contents(path)?;
    parse(&name, &bytes).with_context(|| path.display().to_string())
}

fn parse(name: &str, bytes: &[u8]) -> Result<Trace> {
    let mut builder = Builder::default();
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("csv") => lines(bytes, |line| {
            let mut fields = line.split(',').map(str::trim);
            let (_time, object, size) = (fields.next()?, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
            builder.request(object, size);
            Some(())
        })?,
        Some("lis") => lines(bytes, |line| {
            let mut fields = line.split_whitespace();
            let (start, count): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
            (start..start.checked_add(count)?).for_each(|block| builder.request(block, BLOCK_LEN));
            Some(())
        })?,
        Some("trace") => {
            if !bytes.len().is_multiple_of(4) {
                bail!("its length is no multiple of four bytes");
            }
            for key in bytes.chunks_exact(4) {
                let key = u32::from_be_bytes([key[0], key[1], key[2], key[3]]);
                builder.request(u64::from(key), BLOCK_LEN);
            }
        }
        _ => bail!("its name tells no form: .csv, .lis or .trace"),
    }
    let trace = builder.finish();
    if trace.requests.is_empty() {
        bail!("it holds no request");
    }
    Ok(trace)
}

fn lines(input: &[u8], mut line: impl FnMut(&str) -> Option<()>) -> Result<()> {
    for (index, text) in input.lines().enumerate() {
        let text = text?;
        // Heads of tables are comments.
        if text.starts_with('#') || text.trim().is_empty() {
            continue;
        }
        line(&text).with_context(|| format!("line {} is no request: '{text}'", index + 1))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let csv = "# time, object, size, next_access_vtime\n0, 13053225291711363978, 737, 13\n1, 5, 20, -1\n2, 13053225291711363978, 9, 0\n";
        let trace = parse("a.csv", csv.as_bytes()).unwrap();
        assert_eq!((trace.requests, trace.sizes), (vec![0, 1, 0], vec![737, 20]));
        let trace = parse("a.lis", "10 3 0 0\n11 1 0 1\n".as_bytes()).unwrap();
        assert_eq!((trace.requests, trace.sizes), (vec![0, 1, 2, 1], vec![512; 3]));
        let trace = parse("a.trace", &b"\0\0\0\x01\0\0\0\x02\0\0\0\x01"[..]).unwrap();
        assert_eq!(trace.requests, [0, 1, 0]);
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        for (name, text) in
            [("a.csv", "1, x, 2\n"), ("a.lis", "1\n"), ("a.trace", "abc"), ("a.txt", "1"), ("a.lis", "")]
        {
            assert!(parse(name, text.as_bytes()).is_err(), "{name} {text}");
        }
        assert!(read(Path::new("/nowhere/a.csv")).is_err());
    }
}
