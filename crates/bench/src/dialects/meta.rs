//! memcached's meta commands. Knows no workload.

use super::lines::{digits, either, exactly, line, line_that_begins, push_number, refused};
use super::{Dialect, Each, Read};
use crate::key::Key;

/// memcached's meta commands.
#[derive(Clone, Copy, Debug)]
pub struct Meta;

impl Dialect for Meta {
    #[inline]
    fn write_get(self, key: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"mg ");
        out.extend_from_slice(key);
        out.extend_from_slice(b" v\r\n");
    }

    fn write_get_many(self, keys: &[Key], out: &mut Vec<u8>) {
        keys.iter().for_each(|key| self.write_get(key, out));
    }

    #[inline]
    fn write_set(self, key: &[u8], value: &[u8], expire_s: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(b"ms ");
        out.extend_from_slice(key);
        out.push(b' ');
        push_number(value.len(), out);
        if expire_s > 0 {
            out.extend_from_slice(b" T");
            push_number(expire_s as usize, out);
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn write_delete(self, key: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"md ");
        out.extend_from_slice(key);
        out.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn read_get<'a>(self, input: &'a [u8], _key: &[u8]) -> Read<Option<&'a [u8]>> {
        let Some((text, head)) = line(input)? else { return Ok(None) };
        if text == b"EN" {
            return Ok(Some((None, head)));
        }
        let len = text.strip_prefix(b"VA ").and_then(|rest| digits(rest.split(|byte| *byte == b' ').next()?));
        let Some(len) = len else { return Err(refused(input)) };
        let end = head + len;
        if input.len() < end + 2 {
            return Ok(None);
        }
        Ok(Some((Some(&input[head..end]), end + 2)))
    }

    fn read_get_many(self, input: &[u8], keys: &[Key], each: Each<'_>) -> Read<()> {
        let mut at = 0;
        for (index, key) in keys.iter().enumerate() {
            let Some((value, len)) = self.read_get(&input[at..], key)? else { return Ok(None) };
            each(index, value)?;
            at += len;
        }
        Ok(Some(((), at)))
    }

    #[inline]
    fn read_set(self, input: &[u8]) -> Read<()> {
        exactly(input, b"HD\r\n")
    }

    #[inline]
    fn out_of_memory(self, input: &[u8]) -> Option<usize> {
        line_that_begins(input, b"SERVER_ERROR out of memory")
    }

    #[inline]
    fn read_delete(self, input: &[u8]) -> Read<bool> {
        either(input, b"HD\r\n", b"NF\r\n")
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::tests::{Replies, check};
    use super::*;

    #[test]
    fn replies_are_read() {
        check(
            Meta,
            &Replies {
                hit: b"VA 5\r\nvalue\r\n",
                miss: b"EN\r\n",
                many: b"VA 5\r\nvalue\r\nEN\r\nVA 5\r\nvalue\r\n",
                stored: b"HD\r\n",
                deleted: b"HD\r\n",
                absent: b"NF\r\n",
                out_of_memory: b"SERVER_ERROR out of memory storing object\r\n",
                errors: &[b"ERROR\r\n", b"SERVER_ERROR x\r\n", b"VA x\r\n"],
            },
        );
        assert!(Meta.read_set(b"NS\r\n").is_err());
    }

    #[test]
    fn requests_are_written() {
        let mut out = Vec::new();
        Meta.write_get_many(&[Key::of(b"a"), Key::of(b"b")], &mut out);
        Meta.write_set(b"k", b"value", 60, &mut out);
        Meta.write_set(b"k", b"value", 0, &mut out);
        Meta.write_delete(b"k", &mut out);
        let expected = "mg a v\r\nmg b v\r\nms k 5 T60\r\nvalue\r\nms k 5\r\nvalue\r\nmd k\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
