//! BITCOUNT and BITPOS: how many bits of a part of a string are set, and where the first one is. A string in chunks is
//! read chunk by chunk.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::store::entry::ValueRef;
use tenon_engine::store::types::bitmap::{Bit, count_ones, position_of};
use tenon_engine::string;
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// What a range counts.
#[derive(Clone, Copy)]
enum Unit {
    Byte,
    Bit,
}

impl Unit {
    fn named(word: &[u8]) -> Result<Unit, CmdError> {
        match word {
            _ if word.eq_ignore_ascii_case(b"BYTE") => Ok(Unit::Byte),
            _ if word.eq_ignore_ascii_case(b"BIT") => Ok(Unit::Bit),
            _ => Err(CmdError::Syntax),
        }
    }

    fn bits(self) -> i64 {
        match self {
            Unit::Byte => 8,
            Unit::Bit => 1,
        }
    }
}

/// A part of a string as a client gives it: both ends included, negative ones counted from the end.
struct Part {
    start: i64,
    end: i64,
    unit: Unit,
}

impl Part {
    /// The first and the last bit of the part of a string of so many bytes; `None` when it is empty.
    fn bits(&self, len: usize) -> Option<(u64, u64)> {
        let len = len as i64 * 8 / self.unit.bits();
        let from_front = |index: i64| if index < 0 { index.saturating_add(len).max(0) } else { index };
        let (start, end) = (from_front(self.start), from_front(self.end).min(len - 1));
        (start <= end).then(|| {
            let bits = self.unit.bits();
            ((start * bits) as u64, (end * bits + bits - 1) as u64)
        })
    }
}

fn integer(text: &[u8]) -> Result<i64, CmdError> {
    parse_i64(text).ok_or(CmdError::NotInteger)
}

/// Counts bits.
pub static BITCOUNT: Command = Command {
    name: "BITCOUNT",
    group: Group::Bitmap,
    syntax: "key [start [end [BYTE | BIT]]]",
    summary: "Counts the number of set bits (population counting) in a string.",
    complexity: "O(N)",
    since: "2.6.0",
    arity: Arity::AtLeast(2),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(bitcount),
};

fn bitcount(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let part = match args.len() {
        2 => Part { start: 0, end: -1, unit: Unit::Byte },
        // To the end: of Valkey.
        3 => Part { start: integer(args.get(2))?, end: -1, unit: Unit::Byte },
        4 | 5 => Part {
            start: integer(args.get(2))?,
            end: integer(args.get(3))?,
            unit: args.try_get(4).map_or(Ok(Unit::Byte), Unit::named)?,
        },
        _ => return Err(CmdError::Syntax),
    };
    // Both before the first byte would be that byte; the wrong way round they are nothing.
    let is_reversed = part.start < 0 && part.end < 0 && part.start > part.end;
    let value = cx.read_string()?.filter(|_| !is_reversed);
    let count = match value.and_then(|value| Some((value, part.bits(string::len(value))?))) {
        Some((value, (first, last))) => count_between(value, first, last),
        None => 0,
    };
    reply.int(count as i64);
    Ok(Effect::Unchanged)
}

/// How many bits from `first` to `last` are set.
fn count_between(value: ValueRef<'_>, first: u64, last: u64) -> u64 {
    let (from, to) = ((first / 8) as usize, (last / 8) as usize);
    let whole: u64 = string::slices_in(value, from..to + 1, &mut itoa::Buffer::new()).map(count_ones).sum();
    let byte = |index| string::byte_at(value, index).unwrap_or(0);
    let before = u64::from((byte(from) & !(0xff >> (first % 8))).count_ones());
    let behind = u64::from((byte(to) & (0x7f >> (last % 8))).count_ones());
    whole - before - behind
}

/// Finds a bit.
pub static BITPOS: Command = Command {
    name: "BITPOS",
    group: Group::Bitmap,
    syntax: "key bit [start [end [BYTE | BIT]]]",
    summary: "Finds the first set (1) or clear (0) bit in a string.",
    complexity: "O(N)",
    since: "2.8.7",
    arity: Arity::AtLeast(3),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(bitpos),
};

fn bitpos(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let bit = match integer(args.get(2))? {
        0 => Bit::Clear,
        1 => Bit::Set,
        _ => return Err(CmdError::text("ERR The bit argument must be 1 or 0.")),
    };
    if args.len() > 6 {
        return Err(CmdError::Syntax);
    }
    let start = args.try_get(3).map_or(Ok(0), integer)?;
    let unit = args.try_get(5).map_or(Ok(Unit::Byte), Unit::named)?;
    let end = args.try_get(4).map(integer).transpose()?;
    let part = Part { start, end: end.unwrap_or(-1), unit };
    let position = match cx.read_string()? {
        None => (bit == Bit::Clear).then_some(0),
        Some(value) => {
            let len = string::len(value);
            part.bits(len).and_then(|(first, last)| {
                // Without an end the string goes on with zeros behind its last byte.
                let beyond = (bit == Bit::Clear && end.is_none()).then_some(len as u64 * 8);
                position_between(value, bit, first, last).or(beyond)
            })
        }
    };
    reply.int(position.map_or(-1, |position| position as i64));
    Ok(Effect::Unchanged)
}

/// Where the first such bit from `first` to `last` is.
fn position_between(value: ValueRef<'_>, bit: Bit, first: u64, last: u64) -> Option<u64> {
    let (from, to) = ((first / 8) as usize, (last / 8) as usize);
    let mut digits = itoa::Buffer::new();
    let slices = string::slices_in(value, from..to + 1, &mut digits);
    let position = from as u64 * 8 + position_of(slices, bit, (first % 8) as u32)?;
    (position <= last).then_some(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_inside_the_string() {
        const ENDS: [i64; 13] = [i64::MIN, -41, -40, -6, -5, -1, 0, 1, 4, 5, 39, 40, i64::MAX];
        for len in [0, 1, 5] {
            for (start, end) in ENDS.iter().flat_map(|&start| ENDS.map(|end| (start, end))) {
                for unit in [Unit::Byte, Unit::Bit] {
                    if let Some((first, last)) = (Part { start, end, unit }).bits(len) {
                        assert!(first <= last && last < len as u64 * 8, "{len} {start} {end}");
                    }
                }
            }
        }
        let bits = |start, end, unit| Part { start, end, unit }.bits(5);
        assert_eq!(bits(0, -1, Unit::Byte), Some((0, 39)));
        assert_eq!(bits(1, 1, Unit::Byte), Some((8, 15)));
        assert_eq!(bits(-3, -2, Unit::Bit), Some((37, 38)));
        assert_eq!(bits(5, 9, Unit::Byte), None);
        assert_eq!(bits(3, 2, Unit::Bit), None);
    }
}
