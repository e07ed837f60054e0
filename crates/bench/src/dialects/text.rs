//! memcached's classic text protocol. Knows no workload.

use super::lines::{digits, either, exactly, line, line_that_begins, push_number, refused};
use super::{Dialect, Each, Read};
use crate::key::Key;

/// memcached's classic text.
#[derive(Clone, Copy, Debug)]
pub struct Text;

const END: &[u8] = b"END\r\n";

/// `VALUE <key> <flags> <bytes>\r\n<data>\r\n`; `None` inside for `END`, which has no length of its own here.
#[inline]
fn read_item(input: &[u8]) -> Read<Option<(&[u8], &[u8])>> {
    let Some((text, head)) = line(input)? else { return Ok(None) };
    if text == b"END" {
        return Ok(Some((None, head)));
    }
    let Some(words) = text.strip_prefix(b"VALUE ") else { return Err(refused(input)) };
    let mut words = words.split(|byte| *byte == b' ');
    let (key, _flags, len) = (words.next(), words.next(), words.next().and_then(digits));
    let (Some(key), Some(len)) = (key, len) else { return Err(refused(input)) };
    let end = head + len;
    if input.len() < end + 2 {
        return Ok(None);
    }
    Ok(Some((Some((key, &input[head..end])), end + 2)))
}

impl Dialect for Text {
    #[inline]
    fn write_get(self, key: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"get ");
        out.extend_from_slice(key);
        out.extend_from_slice(b"\r\n");
    }

    fn write_get_many(self, keys: &[Key], out: &mut Vec<u8>) {
        out.extend_from_slice(b"get");
        for key in keys {
            out.push(b' ');
            out.extend_from_slice(key);
        }
        out.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn write_set(self, key: &[u8], value: &[u8], expire_s: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(b"set ");
        out.extend_from_slice(key);
        out.extend_from_slice(b" 0 ");
        push_number(expire_s as usize, out);
        out.push(b' ');
        push_number(value.len(), out);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn write_delete(self, key: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"delete ");
        out.extend_from_slice(key);
        out.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn read_get<'a>(self, input: &'a [u8], key: &[u8]) -> Read<Option<&'a [u8]>> {
        match read_item(input)? {
            None => Ok(None),
            Some((None, len)) => Ok(Some((None, len))),
            Some((Some((found, value)), len)) if found == key => {
                Ok(exactly(&input[len..], END)?.map(|((), end)| (Some(value), len + end)))
            }
            Some(_) => Err(refused(input)),
        }
    }

    fn read_get_many(self, input: &[u8], keys: &[Key], each: Each<'_>) -> Read<()> {
        let (mut at, mut index) = (0, 0);
        loop {
            let Some((item, len)) = read_item(&input[at..])? else { return Ok(None) };
            let found = match item {
                None => keys.len(),
                Some((key, _)) => {
                    let behind = keys[index..].iter().position(|wanted| **wanted == *key);
                    index + behind.ok_or_else(|| refused(&input[at..]))?
                }
            };
            // Values come in the order of the keys; those between two of them are misses.
            (index..found).try_for_each(|missed| each(missed, None))?;
            at += len;
            match item {
                None => return Ok(Some(((), at))),
                Some((_, value)) => each(found, Some(value))?,
            }
            index = found + 1;
        }
    }

    #[inline]
    fn read_set(self, input: &[u8]) -> Read<()> {
        exactly(input, b"STORED\r\n")
    }

    #[inline]
    fn out_of_memory(self, input: &[u8]) -> Option<usize> {
        line_that_begins(input, b"SERVER_ERROR out of memory")
    }

    #[inline]
    fn read_delete(self, input: &[u8]) -> Read<bool> {
        either(input, b"DELETED\r\n", b"NOT_FOUND\r\n")
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::tests::{Replies, check};
    use super::*;

    #[test]
    fn replies_are_read() {
        check(
            Text,
            &Replies {
                hit: b"VALUE k1 0 5\r\nvalue\r\nEND\r\n",
                miss: b"END\r\n",
                many: b"VALUE k1 0 5\r\nvalue\r\nVALUE k3 7 5\r\nvalue\r\nEND\r\n",
                stored: b"STORED\r\n",
                deleted: b"DELETED\r\n",
                absent: b"NOT_FOUND\r\n",
                out_of_memory: b"SERVER_ERROR out of memory storing object\r\n",
                errors: &[
                    b"ERROR\r\n",
                    b"SERVER_ERROR object too large for cache\r\n",
                    b"VALUE k9 0 1\r\nx\r\nEND\r\n",
                ],
            },
        );
        assert!(Text.read_set(b"NOT_STORED\r\n").is_err());
    }

    #[test]
    fn requests_are_written() {
        let mut out = Vec::new();
        Text.write_get(b"k", &mut out);
        Text.write_get_many(&[Key::of(b"a"), Key::of(b"b")], &mut out);
        Text.write_set(b"k", b"value", 60, &mut out);
        Text.write_delete(b"k", &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "get k\r\nget a b\r\nset k 0 60 5\r\nvalue\r\ndelete k\r\n");
    }
}
