//! Decimal numbers as memcached's `safe_strto*` take them. Knows no framing.

/// What C's `isspace` takes.
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// A few plain digits, which nearly all numbers are.
#[inline]
fn parse_plain(token: &[u8]) -> Option<u32> {
    if token.is_empty() || token.len() > 9 {
        return None;
    }
    let mut number = 0;
    for &digit in token {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + u32::from(digit);
    }
    Some(number)
}

/// A number may have blanks around it, a sign and leading zeros: what `strtoull` takes.
///
/// Stricter than memcached, which ignores whatever follows a blank: nothing but blanks may.
#[cold]
fn parse(token: &[u8]) -> Option<(bool, u64)> {
    let token = &token[token.iter().take_while(|&&byte| is_space(byte)).count()..];
    let blanks = token.iter().rev().take_while(|&&byte| is_space(byte)).count();
    let (negative, digits) = match &token[..token.len() - blanks] {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let mut magnitude = 0u64;
    for &digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        magnitude = magnitude.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some((negative, magnitude))
}

/// A number of 0 and more; `-0` is one.
#[inline]
pub(super) fn parse_u64(token: &[u8]) -> Option<u64> {
    if let Some(number) = parse_plain(token) {
        return Some(number.into());
    }
    match parse(token)? {
        (true, 1..) => None,
        (_, magnitude) => Some(magnitude),
    }
}

/// Client flags. Memcached 1.6.18 cuts off bits over 32, newer ones do so in `set` and its kin and refuse them in `ms`: here
/// they are refused everywhere.
pub fn parse_u32(token: &[u8]) -> Option<u32> {
    parse_u64(token)?.try_into().ok()
}

/// A number with a sign.
#[inline]
pub(super) fn parse_i64(token: &[u8]) -> Option<i64> {
    if let Some(number) = parse_plain(token) {
        return Some(number.into());
    }
    let (negative, magnitude) = parse(token)?;
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { magnitude.try_into().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_memcached_takes() {
        for (text, value) in [("0", 0), ("007", 7), ("+5", 5), ("\t5", 5), ("5\t", 5), ("5\r", 5), ("-0", 0)] {
            assert_eq!(parse_u64(text.as_bytes()), Some(value), "{text:?}");
            assert_eq!(parse_i64(text.as_bytes()), Some(value as i64), "{text:?}");
        }
        assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_i64(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse_u32(b"4294967295"), Some(u32::MAX));
    }

    #[test]
    fn refuses_the_rest() {
        for text in ["", "-", "+", "\t", "x", "0x1", "1a", "1e3", "--1", "1\t2", "1\0", "99999999999999999999999"] {
            assert_eq!(parse_u64(text.as_bytes()), None, "{text:?}");
            assert_eq!(parse_i64(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(parse_u64(b"-1"), None);
        assert_eq!(parse_u64(b"18446744073709551616"), None);
        assert_eq!(parse_i64(b"9223372036854775808"), None);
        assert_eq!(parse_i64(b"-9223372036854775809"), None);
        assert_eq!(parse_u32(b"4294967296"), None);
    }
}
