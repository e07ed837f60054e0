//! RESP2: arrays of bulk strings out, replies in. Knows no workload.

use super::lines::{digits, either, exactly, line, line_that_begins, push_number, refused};
use super::{Dialect, Each, Read};
use crate::key::Key;

/// RESP2.
#[derive(Clone, Copy, Debug)]
pub struct Resp;

/// Appends the head of a command of so many words.
#[inline]
pub fn write_head(words: usize, out: &mut Vec<u8>) {
    out.push(b'*');
    push_number(words, out);
    out.extend_from_slice(b"\r\n");
}

/// Appends a word.
#[inline]
pub fn write_bulk(word: &[u8], out: &mut Vec<u8>) {
    out.push(b'$');
    push_number(word.len(), out);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

/// The number in a line that begins with `kind`, `None` for -1, and the line's length.
#[inline]
pub fn read_length(input: &[u8], kind: u8) -> Read<Option<usize>> {
    let Some((text, len)) = line(input)? else { return Ok(None) };
    match text.split_first() {
        Some((first, b"-1")) if *first == kind => Ok(Some((None, len))),
        Some((first, rest)) if *first == kind => {
            digits(rest).map(|number| Some((Some(number), len))).ok_or_else(|| refused(input))
        }
        _ => Err(refused(input)),
    }
}

/// A bulk string, `None` for the null one.
#[inline]
fn read_bulk(input: &[u8]) -> Read<Option<&[u8]>> {
    let Some((len, head)) = read_length(input, b'$')? else { return Ok(None) };
    let Some(len) = len else { return Ok(Some((None, head))) };
    let end = head + len;
    if input.len() < end + 2 {
        return Ok(None);
    }
    Ok(Some((Some(&input[head..end]), end + 2)))
}

impl Dialect for Resp {
    #[inline]
    fn write_get(self, key: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n");
        write_bulk(key, out);
    }

    fn write_get_many(self, keys: &[Key], out: &mut Vec<u8>) {
        write_head(keys.len() + 1, out);
        out.extend_from_slice(b"$4\r\nMGET\r\n");
        keys.iter().for_each(|key| write_bulk(key, out));
    }

    #[inline]
    fn write_set(self, key: &[u8], value: &[u8], expire_s: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(if expire_s == 0 { b"*3\r\n$3\r\nSET\r\n" } else { b"*5\r\n$3\r\nSET\r\n" });
        write_bulk(key, out);
        write_bulk(value, out);
        if expire_s > 0 {
            out.extend_from_slice(b"$2\r\nEX\r\n");
            let mut digits = Vec::with_capacity(10);
            push_number(expire_s as usize, &mut digits);
            write_bulk(&digits, out);
        }
    }

    #[inline]
    fn write_delete(self, key: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"*2\r\n$3\r\nDEL\r\n");
        write_bulk(key, out);
    }

    #[inline]
    fn read_get<'a>(self, input: &'a [u8], _key: &[u8]) -> Read<Option<&'a [u8]>> {
        read_bulk(input)
    }

    fn read_get_many(self, input: &[u8], keys: &[Key], each: Each<'_>) -> Read<()> {
        let Some((count, mut at)) = read_length(input, b'*')? else { return Ok(None) };
        if count != Some(keys.len()) {
            return Err(refused(input));
        }
        for index in 0..keys.len() {
            let Some((value, len)) = read_bulk(&input[at..])? else { return Ok(None) };
            each(index, value)?;
            at += len;
        }
        Ok(Some(((), at)))
    }

    #[inline]
    fn read_set(self, input: &[u8]) -> Read<()> {
        exactly(input, b"+OK\r\n")
    }

    #[inline]
    fn out_of_memory(self, input: &[u8]) -> Option<usize> {
        line_that_begins(input, b"-OOM ")
    }

    #[inline]
    fn read_delete(self, input: &[u8]) -> Read<bool> {
        either(input, b":1\r\n", b":0\r\n")
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::tests::{Replies, check};
    use super::*;

    #[test]
    fn replies_are_read() {
        check(
            Resp,
            &Replies {
                hit: b"$5\r\nvalue\r\n",
                miss: b"$-1\r\n",
                many: b"*3\r\n$5\r\nvalue\r\n$-1\r\n$5\r\nvalue\r\n",
                stored: b"+OK\r\n",
                deleted: b":1\r\n",
                absent: b":0\r\n",
                out_of_memory: b"-OOM command not allowed\r\n",
                errors: &[b"-ERR no\r\n", b"$x\r\n", b"hello\n"],
            },
        );
    }

    #[test]
    fn requests_are_written() {
        let mut out = Vec::new();
        Resp.write_get(b"k", &mut out);
        Resp.write_set(b"k", b"v", 0, &mut out);
        Resp.write_set(b"k", b"v", 60, &mut out);
        Resp.write_delete(b"k", &mut out);
        Resp.write_get_many(&[Key::of(b"a"), Key::of(b"b")], &mut out);
        let expected = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n\
                        *5\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n$2\r\nEX\r\n$2\r\n60\r\n*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n\
                        *3\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
