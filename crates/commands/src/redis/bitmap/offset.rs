//! The offset of a bit as a client gives it, and its limit. Knows no command.

use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::rdb::STRING_LEN_MAX;
use tenon_engine::wire::resp::number::parse_i64;

const OUT_OF_RANGE: CmdError = CmdError::text("ERR bit offset is not an integer or out of range");

/// The offset of a bit.
///
/// # Errors
/// When it is no integer, negative, or its byte lies beyond `proto-max-bulk-len`.
pub fn parse_offset(cx: &KeyCx<'_>, text: &[u8]) -> Result<u64, CmdError> {
    check(cx, parse_i64(text), 1)
}

/// The offset of an integer of this many bits; behind a `#` stands how many such integers lie before it.
///
/// # Errors
/// As [`parse_offset`].
pub fn parse_field_offset(cx: &KeyCx<'_>, text: &[u8], bits: u32) -> Result<u64, CmdError> {
    check(
        cx,
        match text.strip_prefix(b"#") {
            Some(index) => parse_i64(index).and_then(|index| index.checked_mul(i64::from(bits))),
            None => parse_i64(text),
        },
        bits,
    )
}

fn check(cx: &KeyCx<'_>, offset: Option<i64>, bits: u32) -> Result<u64, CmdError> {
    let offset = offset.and_then(|offset| u64::try_from(offset).ok());
    let last = |offset: u64| offset.saturating_add(u64::from(bits) - 1);
    // As in Redis the limit is of the first byte; no file has longer strings.
    let is_in = |offset: &u64| offset / 8 < cx.string_len_max() && last(*offset) / 8 < STRING_LEN_MAX;
    offset.filter(is_in).ok_or(OUT_OF_RANGE)
}
