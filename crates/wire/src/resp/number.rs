//! Decimal integers as RESP writes them: no sign but `-`, no leading zero, no blank; and what hexadecimal numbers of others
//! amount to. Knows no framing.

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

/// The most that [`short_count`] and [`announcement`] read.
pub(super) const SHORT_COUNT_MAX: usize = 999_999;

/// How many arguments there are, and how long the first one, the name, is, by the first two lines of a command, eight bytes.
/// Nothing when either number has not exactly one digit; [`short_count`] and [`announcement`] read such lines.
#[inline(always)]
pub(super) fn short_head(input: &[u8]) -> Option<(usize, usize)> {
    let digits = u64::from_le_bytes(*input.first_chunk()?) ^ u64::from_le_bytes(*b"*0\r\n$0\r\n");
    if digits & !u64::from_le_bytes([0, 0xf, 0, 0, 0, 0xf, 0, 0]) != 0 {
        return None;
    }
    let (count, len) = (digits as usize >> 8 & 0xf, digits as usize >> 40);
    // Six more than nine leave the low half of a byte.
    ((digits + 0x0600_0000_0600) & 0xf000_0000_f000 == 0).then_some((count, len))
}

/// The length that is announced behind the line end before it, and how many bytes both lines' ends and the announcement are:
/// CR LF, `$`, one to six plain digits, CR LF. Nothing when that is not what is there, to the byte: the caller then
/// looks closely. Nor does it see what less than two bytes follow, an argument's own CR LF.
#[inline(always)]
pub(super) fn announcement(input: &[u8]) -> Option<(usize, usize)> {
    let word = u64::from_le_bytes(*input.first_chunk()?);
    // Two digits and one are what nearly all lines have.
    let two = word ^ u64::from_le_bytes(*b"\r\n$00\r\n\0");
    if two & u64::from_le_bytes([0xff, 0xff, 0xff, 0xf0, 0xf0, 0xff, 0xff, 0]) == 0 {
        let digits = two as usize >> 24 & 0x0f0f;
        // Ten times the first digit, which is the lower byte, and the second.
        let len = (digits * 0xa01) >> 8 & 0xff;
        let both_are_digits = (digits + 0x0606) & 0xf0f0 == 0;
        return (both_are_digits && len >= 10).then_some((len, 7));
    }
    let one = word ^ u64::from_le_bytes(*b"\r\n$0\r\n\0\0");
    if one & u64::from_le_bytes([0xff, 0xff, 0xff, 0xf0, 0xff, 0xff, 0, 0]) == 0 {
        let digit = one as usize >> 24 & 0xf;
        return (digit <= 9).then_some((digit, 6));
    }
    longer_announcement(input)
}

/// What [`announcement`] gives, for up to six digits.
#[inline(never)]
fn longer_announcement(input: &[u8]) -> Option<(usize, usize)> {
    let (len, head_len) = short_count(input.strip_prefix(b"\r\n")?, b'$')?;
    let head_len = 2 + head_len + 2;
    (input.len() >= head_len + 2).then_some((len, head_len))
}

/// The count behind the sigil of a line, and how many bytes it ends at, which are the line's CR LF. Nothing when the line is
/// not the sigil, one to six plain digits and CR LF.
#[inline(never)]
pub(super) fn short_count(input: &[u8], sigil: u8) -> Option<(usize, usize)> {
    let digits = input.strip_prefix(&[sigil])?;
    let len = digits.iter().take(7).take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, line_end) = digits.split_at(len);
    let plain = matches!(digits, [b'0'] | [b'1'..=b'9', ..]) && len <= 6 && line_end.starts_with(b"\r\n");
    plain.then(|| (digits.iter().fold(0, |count, digit| count * 10 + usize::from(digit - b'0')), 1 + len))
}

/// A hexadecimal number, digit by digit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hexadecimal {
    mantissa: u64,
    exponent: i64,
}

impl Hexadecimal {
    /// Takes the next digit, before or behind the point.
    pub fn push(&mut self, digit: u32, behind_point: bool) {
        let has_room = self.mantissa >> 60 == 0;
        self.exponent += match (has_room, behind_point) {
            (true, true) => -4,
            (false, false) => 4,
            (true, false) | (false, true) => 0,
        };
        // Whether anything is lost is all that rounding has to know.
        self.mantissa =
            if has_room { self.mantissa << 4 | u64::from(digit) } else { self.mantissa | u64::from(digit != 0) };
    }

    /// Whether all digits were zeros.
    pub fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    /// The nearest double to it times 2^`power`.
    pub fn times_power_of_two(self, power: i64) -> f64 {
        nearest_double(self.mantissa, self.exponent.saturating_add(power))
    }
}

/// The double nearest to `mantissa * 2^exponent`, ties to even; infinity where that is beyond all. Of a longer mantissa the
/// lowest bit may stand for all that was left out.
fn nearest_double(mantissa: u64, exponent: i64) -> f64 {
    const LOWEST: i64 = -1074;
    if mantissa == 0 {
        return 0.0;
    }
    let bits = 64 - i64::from(mantissa.leading_zeros());
    let top = exponent.saturating_add(bits - 1);
    if top > 1023 {
        return f64::INFINITY;
    }
    // The lowest bit that the double has.
    let lowest = top.saturating_sub(52).max(LOWEST);
    let drop = lowest.saturating_sub(exponent);
    let kept = match drop {
        ..=0 => u128::from(mantissa) << -drop,
        1..=64 => {
            let whole = u128::from(mantissa) >> drop;
            let rest = u128::from(mantissa) - (whole << drop);
            let half = 1u128 << (drop - 1);
            whole + u128::from(rest > half || rest == half && whole & 1 == 1)
        }
        _ => 0,
    };
    // Both steps are exact: the first has at most 53 bits and a middling exponent, the second ends at the lowest bit.
    let first = lowest / 2;
    kept as f64 * power_of_two(first) * power_of_two(lowest - first)
}

/// For exponents of normal doubles.
fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
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
    fn the_nearest_double_is_rounded_once() {
        for (mantissa, exponent, double) in [
            (1, 0, 1.0),
            (0, i64::MAX, 0.0),
            (0x8000_0000_0000_0401, 0, 9_223_372_036_854_777_856.0),
            ((1 << 53) + 1, 0, 9_007_199_254_740_992.0),
            ((1 << 53) + 3, 0, 9_007_199_254_740_996.0),
            (1, -1074, 5e-324),
            (1, -1075, 0.0),
            (3, -1076, 5e-324),
            (3, -1070, 2.371_515_100_038e-322),
            (u64::MAX, 960, f64::INFINITY),
            (1, 1023, 8.988_465_674_311_58e307),
            (1, i64::MAX, f64::INFINITY),
            (1, i64::MIN, 0.0),
        ] {
            assert_eq!(nearest_double(mantissa, exponent), double, "{mantissa:x} {exponent}");
        }
    }

    #[test]
    fn short_heads_are_read_to_the_byte() {
        for count in ["0", "1", "9", "10", "-1", "x", ""] {
            for len in ["0", "3", "9", "12", ":", ""] {
                let input = format!("*{count}\r\n${len}\r\nname\r\n");
                let digit = |text: &str| text.parse().ok().filter(|number| (0..=9).contains(number));
                let expected = digit(count).zip(digit(len));
                assert_eq!(short_head(input.as_bytes()), expected, "{input:?}");
            }
        }
        for input in ["*1\r\n$1\r", "+1\r\n$1\r\n", "*1\r\n:1\r\n", "*1\n\n$1\r\n", "*1\r\r$1\r\n", "*1\r\n$1\r\r"] {
            assert_eq!(short_head(input.as_bytes()), None, "{input:?}");
        }
    }

    #[test]
    fn short_counts_agree_with_the_close_look() {
        for text in ["0", "7", "42", "123", "123456", "999999", "1000000", "", "-1", "01", "00", "4x", "x4", "99999999"]
        {
            let plain = parse_i64(text.as_bytes()).filter(|count| (0..=999_999).contains(count));
            let plain = plain.map(|count| count as usize);
            for end in ["\r\n\r\n", "\r\n", "\r", "", "\n", "\n\n\n\n", "\r\r\r\n"] {
                let line = format!("${text}{end}");
                let got = short_count(line.as_bytes(), b'$');
                let expected = plain.filter(|_| end.starts_with("\r\n"));
                assert_eq!(got, expected.map(|count| (count, 1 + text.len())), "{line:?}");
                assert_eq!(short_count(line.as_bytes(), b'*'), None);
                for before in ["\r\n", "\r", "\n", "xx", ""] {
                    let line = format!("{before}{line}xx");
                    let expected = expected.filter(|_| before == "\r\n");
                    let expected = expected.map(|count| (count, 5 + text.len()));
                    assert_eq!(announcement(line.as_bytes()), expected, "{line:?}");
                }
            }
        }
    }
}
