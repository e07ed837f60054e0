//! memcached's binary protocol. Knows no workload.
//!
//! ```text
//! bytes  0      1       2..4     4       5     6..8             8..12    12..16  16..24
//!        magic  opcode  key len  extras  0     status (replies) body len opaque  cas      extras, key, value
//! ```

use super::{Dialect, Each, Read};
use crate::key::Key;
use anyhow::anyhow;

/// memcached's binary protocol.
#[derive(Clone, Copy, Debug)]
pub struct Binary;

const HEAD_LEN: usize = 24;
const REQUEST: u8 = 0x80;
const REPLY: u8 = 0x81;
const GET: u8 = 0x00;
const SET: u8 = 0x01;
const DELETE: u8 = 0x04;
const STATUS_OK: u16 = 0;
const STATUS_NO_KEY: u16 = 1;

#[inline]
fn write(opcode: u8, extras: &[u8], key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let mut head = [0; HEAD_LEN];
    (head[0], head[1], head[4]) = (REQUEST, opcode, extras.len() as u8);
    head[2..4].copy_from_slice(&(key.len() as u16).to_be_bytes());
    head[8..12].copy_from_slice(&((extras.len() + key.len() + value.len()) as u32).to_be_bytes());
    for part in [&head, extras, key, value] {
        out.extend_from_slice(part);
    }
}

/// The value in a reply, `None` where the key is missing.
#[inline]
fn read(input: &[u8], opcode: u8) -> Read<Option<&[u8]>> {
    // What is no reply at all is found out by its first byte, not waited for.
    if input.first().is_some_and(|magic| *magic != REPLY) {
        return Err(super::refused(input));
    }
    let Some(head) = input.get(..HEAD_LEN) else { return Ok(None) };
    let number = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let body = u32::from_be_bytes([head[8], head[9], head[10], head[11]]) as usize;
    let skipped = usize::from(head[4]) + usize::from(number(2));
    if head[1] != opcode || skipped > body {
        return Err(anyhow!("the server answered opcode {:#04x} to {opcode:#04x}", head[1]));
    }
    let end = HEAD_LEN + body;
    if input.len() < end {
        return Ok(None);
    }
    match number(6) {
        STATUS_OK => Ok(Some((Some(&input[HEAD_LEN + skipped..end]), end))),
        STATUS_NO_KEY => Ok(Some((None, end))),
        status => {
            let text = input[HEAD_LEN + skipped..end].escape_ascii();
            Err(anyhow!("the server answered status {status:#06x} '{text}'"))
        }
    }
}

impl Dialect for Binary {
    #[inline]
    fn write_get(self, key: &[u8], out: &mut Vec<u8>) {
        write(GET, b"", key, b"", out);
    }

    fn write_get_many(self, keys: &[Key], out: &mut Vec<u8>) {
        keys.iter().for_each(|key| self.write_get(key, out));
    }

    #[inline]
    fn write_set(self, key: &[u8], value: &[u8], expire_s: u32, out: &mut Vec<u8>) {
        let mut extras = [0; 8];
        extras[4..].copy_from_slice(&expire_s.to_be_bytes());
        write(SET, &extras, key, value, out);
    }

    #[inline]
    fn write_delete(self, key: &[u8], out: &mut Vec<u8>) {
        write(DELETE, b"", key, b"", out);
    }

    #[inline]
    fn read_get<'a>(self, input: &'a [u8], _key: &[u8]) -> Read<Option<&'a [u8]>> {
        read(input, GET)
    }

    fn read_get_many(self, input: &[u8], keys: &[Key], each: Each<'_>) -> Read<()> {
        let mut at = 0;
        for index in 0..keys.len() {
            let Some((value, len)) = read(&input[at..], GET)? else { return Ok(None) };
            each(index, value)?;
            at += len;
        }
        Ok(Some(((), at)))
    }

    #[inline]
    fn read_set(self, input: &[u8]) -> Read<()> {
        match read(input, SET)? {
            None => Ok(None),
            Some((Some(_), len)) => Ok(Some(((), len))),
            Some((None, _)) => Err(anyhow!("the server answered that it did not store")),
        }
    }

    #[inline]
    fn read_delete(self, input: &[u8]) -> Read<bool> {
        Ok(read(input, DELETE)?.map(|(found, len)| (found.is_some(), len)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::tests::{Replies, check};
    use super::*;

    const HIT: &[u8] = b"\x81\0\0\0\x04\0\0\0\0\0\0\x09\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0value";
    const MISS: &[u8] = b"\x81\0\0\0\0\0\0\x01\0\0\0\x09\0\0\0\0\0\0\0\0\0\0\0\0Not found";

    #[test]
    fn replies_are_read() {
        check(
            Binary,
            &Replies {
                hit: HIT,
                miss: MISS,
                many: [HIT, MISS, HIT].concat().leak(),
                stored: b"\x81\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01",
                deleted: b"\x81\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
                absent: b"\x81\x04\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
                errors: &[b"ERROR\r\n", b"\x81\x05\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"],
            },
        );
        let out_of_memory = b"\x81\x01\0\0\0\0\0\x82\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\0OOM";
        assert!(Binary.read_set(out_of_memory).unwrap_err().to_string().contains("0x0082 'OOM'"));
    }

    #[test]
    fn requests_are_written() {
        let mut out = Vec::new();
        Binary.write_set(b"k", b"value", 60, &mut out);
        let head = b"\x80\x01\0\x01\x08\0\0\0\0\0\0\x0e\0\0\0\0\0\0\0\0\0\0\0\0";
        assert_eq!(out, [&head[..], b"\0\0\0\0\0\0\0\x3ckvalue"].concat());
        out.clear();
        Binary.write_delete(b"k", &mut out);
        assert_eq!(out, b"\x80\x04\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0k");
    }
}
