//! memcached's binary protocol. Knows no workload.
//!
//! ```text
//! bytes  0      1       2..4     4       5     6..8             8..12    12..16  16..24
//!        magic  opcode  key len  extras  0     status (replies) body len opaque  cas      extras, key, value
//! ```

use super::{Dialect, Each, Read};
use crate::key::Key;
use anyhow::{Result, anyhow};

/// memcached's binary protocol.
#[derive(Clone, Copy, Debug)]
pub struct Binary;

const HEAD_LEN: usize = 24;
const REQUEST: u8 = 0x80;
const REPLY: u8 = 0x81;
const GET: u8 = 0x00;
const SET: u8 = 0x01;
const DELETE: u8 = 0x04;
const NOOP: u8 = 0x0A;
/// A get that is answered with its key, and not at all where there is none.
const GETKQ: u8 = 0x0D;
const SASL_AUTH: u8 = 0x21;
const STATUS_OK: u16 = 0;
const STATUS_NO_KEY: u16 = 1;
const STATUS_OUT_OF_MEMORY: u16 = 0x82;

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

/// Appends a login by SASL's PLAIN.
pub fn write_login(user: &str, password: &str, out: &mut Vec<u8>) {
    write(SASL_AUTH, b"", b"PLAIN", format!("\0{user}\0{password}").as_bytes(), out);
}

/// The reply to a login; that it was not accepted is an error.
pub fn read_login(input: &[u8]) -> Read<()> {
    Ok(read(input, SASL_AUTH)?.map(|(_, len)| ((), len)))
}

/// A whole reply.
struct Reply<'a> {
    opcode: u8,
    status: u16,
    key: &'a [u8],
    value: &'a [u8],
}

#[inline]
fn read_reply(input: &[u8]) -> Read<Reply<'_>> {
    // What is no reply at all is found out by its first byte, not waited for.
    if input.first().is_some_and(|magic| *magic != REPLY) {
        return Err(super::refused(input));
    }
    let Some(head) = input.get(..HEAD_LEN) else { return Ok(None) };
    let number = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let body = u32::from_be_bytes([head[8], head[9], head[10], head[11]]) as usize;
    let (extras, key) = (usize::from(head[4]), usize::from(number(2)));
    if extras + key > body {
        return Err(anyhow!("the server answered extras and a key of {} bytes in a body of {body}", extras + key));
    }
    let end = HEAD_LEN + body;
    if input.len() < end {
        return Ok(None);
    }
    let (key_at, value_at) = (HEAD_LEN + extras, HEAD_LEN + extras + key);
    let (key, value) = (&input[key_at..value_at], &input[value_at..end]);
    Ok(Some((Reply { opcode: head[1], status: number(6), key, value }, end)))
}

impl<'a> Reply<'a> {
    /// The value, `None` where the key is missing.
    fn found(&self) -> Result<Option<&'a [u8]>> {
        match self.status {
            STATUS_OK => Ok(Some(self.value)),
            STATUS_NO_KEY => Ok(None),
            status => Err(anyhow!("the server answered status {status:#06x} '{}'", self.value.escape_ascii())),
        }
    }
}

/// The value in a reply, `None` where the key is missing.
#[inline]
fn read(input: &[u8], opcode: u8) -> Read<Option<&[u8]>> {
    // Another opcode is found out by the head, not waited for.
    if let Some(other) = input.get(..HEAD_LEN).map(|head| head[1]).filter(|other| *other != opcode) {
        return Err(anyhow!("the server answered opcode {other:#04x} to {opcode:#04x}"));
    }
    let Some((reply, end)) = read_reply(input)? else { return Ok(None) };
    Ok(Some((reply.found()?, end)))
}

impl Dialect for Binary {
    #[inline]
    fn write_get(self, key: &[u8], out: &mut Vec<u8>) {
        write(GET, b"", key, b"", out);
    }

    fn write_get_many(self, keys: &[Key], out: &mut Vec<u8>) {
        // As clients do: what comes before the answer to the last one is all that there is.
        keys.iter().for_each(|key| write(GETKQ, b"", key, b"", out));
        write(NOOP, b"", b"", b"", out);
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
        let (mut at, mut index) = (0, 0);
        loop {
            let Some((reply, len)) = read_reply(&input[at..])? else { return Ok(None) };
            at += len;
            // Values come in the order of the keys; those between two of them are misses.
            let found = match reply.opcode {
                NOOP => keys.len(),
                GETKQ => {
                    reply.found()?;
                    let behind = keys[index..].iter().position(|wanted| **wanted == *reply.key);
                    index + behind.ok_or_else(|| anyhow!("'{}' was not asked for", reply.key.escape_ascii()))?
                }
                other => return Err(anyhow!("the server answered opcode {other:#04x} to {GETKQ:#04x}")),
            };
            (index..found).try_for_each(|missed| each(missed, None))?;
            if reply.opcode == NOOP {
                return Ok(Some(((), at)));
            }
            each(found, Some(reply.value))?;
            index = found + 1;
        }
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
    fn out_of_memory(self, input: &[u8]) -> Option<usize> {
        let (reply, len) = read_reply(input).ok()??;
        (reply.opcode == SET && reply.status == STATUS_OUT_OF_MEMORY).then_some(len)
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
    const FOUND_K1: &[u8] = b"\x81\x0d\0\x02\x04\0\0\0\0\0\0\x0b\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0k1value";
    const FOUND_K3: &[u8] = b"\x81\x0d\0\x02\x04\0\0\0\0\0\0\x0b\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0k3value";
    const DONE: &[u8] = b"\x81\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    const OUT_OF_MEMORY: &[u8] = b"\x81\x01\0\0\0\0\0\x82\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\0OOM";
    const MISS: &[u8] = b"\x81\0\0\0\0\0\0\x01\0\0\0\x09\0\0\0\0\0\0\0\0\0\0\0\0Not found";

    #[test]
    fn replies_are_read() {
        check(
            Binary,
            &Replies {
                hit: HIT,
                miss: MISS,
                many: [FOUND_K1, FOUND_K3, DONE].concat().leak(),
                stored: b"\x81\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01",
                deleted: b"\x81\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
                absent: b"\x81\x04\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
                out_of_memory: OUT_OF_MEMORY,
                errors: &[b"ERROR\r\n", b"\x81\x05\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"],
            },
        );
        assert!(Binary.read_set(OUT_OF_MEMORY).unwrap_err().to_string().contains("0x0082 'OOM'"));
    }

    #[test]
    fn several_keys_are_asked_for_at_once() {
        let mut out = Vec::new();
        Binary.write_get_many(&[Key::of(b"k1"), Key::of(b"k2")], &mut out);
        let (get, done) = (
            b"\x80\x0d\0\x02\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0",
            b"\x80\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        );
        assert_eq!(out, [&get[..], b"k1", get, b"k2", done].concat());
        let keys = [Key::of(b"k1"), Key::of(b"k2"), Key::of(b"k1")];
        let read = |input: &[u8]| {
            let mut seen = Vec::new();
            let read = Binary.read_get_many(input, &keys, &mut |index, value| {
                seen.push((index, value.is_some()));
                Ok(())
            });
            read.map(|_| seen)
        };
        // A key that is asked for twice is answered twice.
        let twice = [FOUND_K1, FOUND_K1, DONE].concat();
        assert_eq!(read(&twice).expect("it is right"), [(0, true), (1, false), (2, true)]);
        assert_eq!(read(DONE).expect("it is right"), [(0, false), (1, false), (2, false)]);
        assert!(read(FOUND_K3).is_err(), "nobody asked for it");
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
