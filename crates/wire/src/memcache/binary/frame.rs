//! A request's header and extras: what is asked for, by its opcode.

use super::{BinaryCommand, BinaryHead, BinaryStore, HEADER, Status};
use crate::memcache::request::ArithmeticVerb;
use crate::span::Span;

/// The expiry of a counter that is not to be made.
const NOT_TO_BE_MADE: u32 = u32::MAX;

/// A request's header, taken apart.
pub(super) struct Frame {
    pub(super) head: BinaryHead,
    pub(super) key_len: usize,
    pub(super) extras_len: usize,
    pub(super) body_len: usize,
}

/// Number `index` of some bytes that are big-endian numbers of four bytes.
fn word(bytes: &[u8], index: usize) -> u32 {
    let (words, _) = bytes.as_chunks::<4>();
    u32::from_be_bytes(words[index])
}

/// The same of two such numbers, which are one.
fn double_word(bytes: &[u8], index: usize) -> u64 {
    u64::from(word(bytes, index)) << 32 | u64::from(word(bytes, index + 1))
}

impl Frame {
    pub(super) fn of(header: &[u8; HEADER]) -> Frame {
        Frame {
            head: BinaryHead { opcode: header[1], quiet: false, opaque: word(header, 3), cas: double_word(header, 4) },
            key_len: usize::from(u16::from_be_bytes([header[2], header[3]])),
            extras_len: usize::from(header[4]),
            body_len: word(header, 2) as usize,
        }
    }

    /// What the request asks for, whether it is a quiet one, and its data left out. Without `sasl` nobody is asked who
    /// it is.
    pub(super) fn command(
        &self,
        extras: &[u8],
        key: Span,
        data_len: usize,
        sasl: bool,
    ) -> Result<(BinaryHead, BinaryCommand), Status> {
        let opcode = self.head.opcode;
        let has = |extras_len, has_key| {
            let fits = self.extras_len == extras_len && (self.key_len > 0) == has_key;
            if fits { Ok(()) } else { Err(Status::Invalid) }
        };
        let mut has_data = false;
        let exptime_only = || has(4, true).map(|()| word(extras, 0));
        let (quiet, command) = match opcode {
            0x00 | 0x09 | 0x0c | 0x0d => {
                has(0, true)?;
                let with_key = matches!(opcode, 0x0c | 0x0d);
                (matches!(opcode, 0x09 | 0x0d), BinaryCommand::Get { key, with_key, exptime: None })
            }
            0x1d | 0x1e | 0x23 | 0x24 => {
                let exptime = Some(exptime_only()?);
                let with_key = matches!(opcode, 0x23 | 0x24);
                (matches!(opcode, 0x1e | 0x24), BinaryCommand::Get { key, with_key, exptime })
            }
            0x1c => (false, BinaryCommand::Touch { key, exptime: exptime_only()? }),
            0x01..=0x03 | 0x11..=0x13 => {
                has(8, true)?;
                has_data = true;
                let verb = match opcode & 0x0f {
                    1 => BinaryStore::Set,
                    2 => BinaryStore::Add,
                    _ => BinaryStore::Replace,
                };
                let (flags, exptime) = (word(extras, 0), word(extras, 1));
                (opcode > 0x10, BinaryCommand::Store { verb, key, flags, exptime, data: Span::bytes(0, 0) })
            }
            0x0e | 0x0f | 0x19 | 0x1a => {
                has(0, true)?;
                has_data = true;
                let verb = if matches!(opcode, 0x0e | 0x19) { BinaryStore::Append } else { BinaryStore::Prepend };
                (opcode > 0x10, BinaryCommand::Store { verb, key, flags: 0, exptime: 0, data: Span::bytes(0, 0) })
            }
            0x05 | 0x06 | 0x15 | 0x16 => {
                has(20, true)?;
                let verb = if opcode & 0x0f == 5 { ArithmeticVerb::Incr } else { ArithmeticVerb::Decr };
                let exptime = word(extras, 4);
                let initial = (exptime != NOT_TO_BE_MADE).then(|| (double_word(extras, 2), exptime));
                (opcode > 0x10, BinaryCommand::Arithmetic { verb, key, delta: double_word(extras, 0), initial })
            }
            0x04 | 0x14 => {
                has(0, true)?;
                (opcode == 0x14, BinaryCommand::Delete { key })
            }
            0x08 | 0x18 => {
                let exptime = if self.extras_len == 0 { None } else { Some(()) };
                has(if exptime.is_some() { 4 } else { 0 }, false)?;
                (opcode == 0x18, BinaryCommand::Flush { exptime: exptime.map(|()| word(extras, 0)) })
            }
            0x07 | 0x0a | 0x0b | 0x17 => {
                has(0, false)?;
                let command = match opcode {
                    0x0a => BinaryCommand::Noop,
                    0x0b => BinaryCommand::Version,
                    _ => BinaryCommand::Quit,
                };
                (opcode == 0x17, command)
            }
            0x10 => {
                has(0, self.key_len > 0)?;
                (false, BinaryCommand::Stat { group: key })
            }
            0x20 => {
                has(0, false)?;
                if !sasl && data_len == 0 {
                    return Err(Status::Unknown);
                }
                (false, BinaryCommand::SaslMechanisms)
            }
            0x21 | 0x22 => {
                has(0, true)?;
                if !sasl {
                    return Err(Status::Unknown);
                }
                has_data = true;
                let data = Span::bytes(0, 0);
                (false, BinaryCommand::Sasl { is_step: opcode == 0x22, mechanism: key, data })
            }
            _ => return Err(Status::Unknown),
        };
        if data_len > 0 && !has_data {
            return Err(Status::Invalid);
        }
        Ok((BinaryHead { quiet, ..self.head }, command))
    }
}
