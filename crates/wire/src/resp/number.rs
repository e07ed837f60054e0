//! Decimal integers as RESP writes them: no sign but `-`, no leading zero, no blank. Knows no framing.

/// The integer that `digits` is, when it is written in the one way Redis's `string2ll` takes.
pub fn parse_i64(digits: &[u8]) -> Option<i64> {
    let (negative, digits) = match digits {
        [b'0'] => return Some(0),
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    // 19 digits are the most an i64 has, and as many never overflow a u64.
    if digits.len() > 19 || !matches!(digits.first(), Some(b'1'..=b'9')) {
        return None;
    }
    let mut magnitude = 0u64;
    for &digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        magnitude = magnitude * 10 + u64::from(digit);
    }
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// The most that [`short_count`] reads.
pub(super) const SHORT_COUNT_MAX: usize = 999_999;

/// The count behind the sigil of a line, and what follows the line's CR LF; or nothing when the line is not the sigil,
/// one to six plain digits and a line end: the caller then looks closely. Nor does it see a line at the very end of
/// the input, behind which not even an argument's own CR LF follows.
///
/// Like Redis it takes any byte behind the CR for the LF.
#[inline(always)]
pub(super) fn short_count(input: &[u8], sigil: u8) -> Option<(usize, &[u8])> {
    if input.len() < 6 {
        return None;
    }
    let word = u32::from_le_bytes(*input.first_chunk()?);
    // Two digits and one are what nearly all lines have.
    let two = word ^ u32::from_le_bytes([sigil, b'0', b'0', b'\r']);
    if two & u32::from_le_bytes([0xff, 0xf0, 0xf0, 0xff]) == 0 {
        let (tens, ones) = (two as usize >> 8 & 0xf, two as usize >> 16 & 0xf);
        return (matches!(tens, 1..=9) && ones <= 9).then(|| (tens * 10 + ones, &input[5..]));
    }
    let one = word ^ u32::from_le_bytes([sigil, b'0', b'\r', 0]);
    if one & u32::from_le_bytes([0xff, 0xf0, 0xff, 0]) == 0 {
        let digit = one as usize >> 8 & 0xf;
        return (digit <= 9).then(|| (digit, &input[4..]));
    }
    if word as u8 == sigil { longer_count(input) } else { None }
}

/// The first two lines of a command and what follows them: how many arguments there are, and how long the first one,
/// the name, is. Nothing when either number has not exactly one digit; [`short_count`] reads such lines.
#[inline(always)]
pub(super) fn short_head(input: &[u8]) -> Option<(usize, usize, &[u8])> {
    let (word, rest) = input.split_first_chunk()?;
    let digits = u64::from_le_bytes(*word) ^ u64::from_le_bytes(*b"*0\r\0$0\r\0");
    if digits & u64::from_le_bytes([0xff, 0xf0, 0xff, 0, 0xff, 0xf0, 0xff, 0]) != 0 {
        return None;
    }
    let (count, len) = (digits as usize >> 8 & 0xf, digits as usize >> 40 & 0xf);
    (count <= 9 && len <= 9).then_some((count, len, rest))
}

/// What [`short_count`] gives, for up to six digits.
#[inline(never)]
fn longer_count(input: &[u8]) -> Option<(usize, &[u8])> {
    let mut count = 0;
    for (i, &byte) in input.iter().enumerate().skip(1).take(7) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            let plain = byte == b'\r' && i > 2 && input[1] != b'0';
            return if plain { Some((count, input.get(i + 2..)?)) } else { None };
        }
        count = count * 10 + usize::from(digit);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_only_the_one_spelling() {
        let good = ["0", "1", "-1", "10", "9223372036854775807", "-9223372036854775808"];
        for text in good {
            assert_eq!(parse_i64(text.as_bytes()), Some(text.parse().unwrap()), "{text}");
        }
        let bad = [
            "",
            "-",
            "+5",
            "-0",
            "00",
            "05",
            "-05",
            " 5",
            "5 ",
            "0x5",
            "1e3",
            "1\0",
            "9223372036854775808",
            "-9223372036854775809",
            "18446744073709551617",
            "99999999999999999999",
        ];
        for text in bad {
            assert_eq!(parse_i64(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn short_heads_are_two_short_counts() {
        for count in ["0", "1", "9", "10", "-1", "x", ""] {
            for len in ["0", "3", "9", "12", ":", ""] {
                let input = format!("*{count}\r\n${len}\r\nname\r\n");
                let digit = |text: &str| text.parse().ok().filter(|number| (0..=9).contains(number));
                let expected = digit(count).zip(digit(len)).map(|(count, len)| (count, len, &b"name\r\n"[..]));
                assert_eq!(short_head(input.as_bytes()), expected, "{input:?}");
            }
        }
        for input in ["*1\r\n$1\r", "+1\r\n$1\r\n", "*1\r\n:1\r\n", "*1\n\n$1\r\n", "*1\r\n$1\n\n"] {
            assert_eq!(short_head(input.as_bytes()), None, "{input:?}");
        }
    }

    #[test]
    fn short_counts_agree_with_the_close_look() {
        for text in ["0", "7", "42", "123", "123456", "999999", "1000000", "", "-1", "01", "00", "4x", "x4", "99999999"]
        {
            for end in ["\r\n\r\n", "\r", "", "\n", "\n\n\n\n"] {
                let line = format!("${text}{end}");
                let got = short_count(line.as_bytes(), b'$');
                let plain = parse_i64(text.as_bytes()).is_some_and(|count| (0..=999_999).contains(&count));
                if plain && end == "\r\n\r\n" {
                    assert_eq!(got, Some((text.parse().unwrap(), &b"\r\n"[..])), "{line:?}");
                } else {
                    assert_eq!(got, None, "{line:?}");
                }
                assert_eq!(short_count(line.as_bytes(), b'*'), None);
            }
        }
    }
}
