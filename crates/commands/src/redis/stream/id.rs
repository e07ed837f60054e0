//! The ids of entries as clients write them. Knows no command.

use std::ops::{Range, RangeInclusive};
use tenon_engine::args::Args;
use tenon_engine::ds::progress;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::stream::StreamId;

const INVALID: CmdError = CmdError::text("ERR Invalid stream ID specified as stream command argument");
const INVALID_START: CmdError = CmdError::text("ERR invalid start ID for the interval");
const INVALID_END: CmdError = CmdError::text("ERR invalid end ID for the interval");

/// The longest text that Redis takes for an id.
const LEN_MAX: usize = 127;

/// The id that an entry is to be added with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewId {
    /// `*`: the time, or what follows the last.
    Next,
    /// `5-*`: the first number that is free in this millisecond.
    NextIn(u64),
    /// This one.
    Exactly(StreamId),
}

/// A part of an id, as C's `strtoull` reads it. Redis lets it make large numbers of negative ones; here they are none.
fn parse_part(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii_start();
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, &digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// The time of an id, and what stands behind the `-`, if there is one.
fn split(text: &[u8]) -> Option<(u64, Option<&[u8]>)> {
    if text.len() > LEN_MAX {
        return None;
    }
    let (ms, seq) = match text.iter().position(|&byte| byte == b'-') {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    Some((parse_part(ms)?, seq))
}

/// An id; where it says the time only, the number is `seq`.
///
/// # Errors
/// When it is none.
pub(super) fn parse_id(text: &[u8], seq: u64) -> Result<StreamId, CmdError> {
    let parsed = split(text).and_then(|(ms, text)| Some(StreamId::new(ms, text.map_or(Some(seq), parse_part)?)));
    parsed.ok_or(INVALID)
}

/// The ids that these arguments are.
///
/// # Errors
/// When one of them is none.
pub(super) fn parse_ids(args: &Args<'_>, indexes: Range<usize>) -> Result<Vec<StreamId>, CmdError> {
    indexes.inspect(|_| progress::count(1)).map(|index| parse_id(args.get(index), 0)).collect()
}

/// The id of a new entry.
///
/// # Errors
/// When it is none.
pub(super) fn parse_new_id(text: &[u8]) -> Result<NewId, CmdError> {
    match (text, split(text)) {
        (b"*", _) => Ok(NewId::Next),
        (_, Some((ms, Some(b"*")))) => Ok(NewId::NextIn(ms)),
        _ => parse_id(text, 0).map(NewId::Exactly),
    }
}

/// An id, or `-` for the lowest and `+` for the highest; where it says the time only, the number is `seq`.
///
/// # Errors
/// When it is none.
pub(super) fn parse_bound(text: &[u8], seq: u64) -> Result<StreamId, CmdError> {
    match text {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        _ => parse_id(text, seq),
    }
}

/// The lowest id of a range; `(5` is what is behind 5.
///
/// # Errors
/// When it is none.
pub(super) fn parse_start(text: &[u8]) -> Result<StreamId, CmdError> {
    match text {
        [b'(', rest @ ..] if !rest.is_empty() => parse_id(rest, 0)?.next().ok_or(INVALID_START),
        _ => parse_bound(text, 0),
    }
}

/// The highest id of a range; `(5` is what is before 5.
///
/// # Errors
/// When it is none.
fn parse_end(text: &[u8]) -> Result<StreamId, CmdError> {
    match text {
        [b'(', rest @ ..] if !rest.is_empty() => parse_id(rest, u64::MAX)?.previous().ok_or(INVALID_END),
        _ => parse_bound(text, u64::MAX),
    }
}

/// A range of ids, which may be empty.
///
/// # Errors
/// When one of the two is none.
pub(super) fn parse_range(start: &[u8], end: &[u8]) -> Result<RangeInclusive<StreamId>, CmdError> {
    Ok(parse_start(start)?..=parse_end(end)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_redis_reads_them() {
        let id = StreamId::new;
        for (text, expected) in [
            ("5", Some(id(5, 9))),
            ("5-0", Some(id(5, 0))),
            ("0-0", Some(id(0, 0))),
            ("005-007", Some(id(5, 7))),
            (" 5-+7", Some(id(5, 7))),
            ("18446744073709551615-18446744073709551615", Some(StreamId::MAX)),
            ("18446744073709551616", None),
            ("", None),
            ("-", None),
            ("+", None),
            ("*", None),
            ("5-", None),
            ("-5", None),
            ("5--5", None),
            ("5-*", None),
            ("5-6-7", None),
            ("5 ", None),
            ("a", None),
        ] {
            assert_eq!(parse_id(text.as_bytes(), 9).ok(), expected, "{text}");
        }
        assert_eq!(parse_id(&[b'0'; LEN_MAX + 1], 0), Err(INVALID));
        assert_eq!(parse_new_id(b"*"), Ok(NewId::Next));
        assert_eq!(parse_new_id(b"5-*"), Ok(NewId::NextIn(5)));
        assert_eq!(parse_new_id(b"5"), Ok(NewId::Exactly(id(5, 0))));
        assert_eq!(parse_new_id(b"+"), Err(INVALID));
        assert_eq!(parse_range(b"-", b"+"), Ok(StreamId::MIN..=StreamId::MAX));
        assert_eq!(parse_range(b"5", b"6"), Ok(id(5, 0)..=id(6, u64::MAX)));
        assert_eq!(parse_range(b"(5", b"(6"), Ok(id(5, 1)..=id(6, u64::MAX - 1)));
        assert_eq!(parse_range(b"(18446744073709551615-18446744073709551615", b"+"), Err(INVALID_START));
        assert_eq!(parse_range(b"-", b"(0-0"), Err(INVALID_END));
        assert_eq!(parse_range(b"(-", b"+"), Err(INVALID));
        assert_eq!(parse_range(b"(", b"+"), Err(INVALID));
    }
}
