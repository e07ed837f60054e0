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

/// A short count and where its line ends: `(count, position after CR LF)`, or nothing when the line at `at` is not
/// one to seven plain digits and a line end that is wholly there; the caller then looks closely.
///
/// Like Redis it takes any byte behind the CR for the LF.
#[inline(always)]
pub(super) fn short_count(input: &[u8], at: usize) -> Option<(usize, usize)> {
    let line = input.get(at..)?;
    // One digit and CR LF is what most lines are.
    if let [digit @ b'0'..=b'9', b'\r', _, ..] = *line {
        return Some((usize::from(digit - b'0'), at + 3));
    }
    let mut count = 0;
    for (i, &byte) in line.iter().take(8).enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            let plain = byte == b'\r' && i > 1 && line[0] != b'0' && i + 1 < line.len();
            return plain.then_some((count, at + i + 2));
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
    fn short_counts_agree_with_the_close_look() {
        for text in ["0", "7", "42", "1234567", "12345678", "", "-1", "01", "4x", "999999999999"] {
            for end in ["\r\n", "\r", "", "\n"] {
                let line = format!("${text}{end}");
                let got = short_count(line.as_bytes(), 1);
                if let Some((count, next)) = got {
                    assert_eq!(Some(count as i64), parse_i64(text.as_bytes()), "{line:?}");
                    assert_eq!((end, next), ("\r\n", line.len()));
                } else {
                    let plain =
                        !text.is_empty() && text.len() < 8 && text.parse::<u32>().is_ok_and(|n| n.to_string() == text);
                    assert!(!(plain && end == "\r\n"), "{line:?} should be taken");
                }
            }
        }
        assert_eq!(short_count(b"", 5), None);
    }
}
