//! Numbers of clients as C's `strtod` reads them, in the three ways in which Redis asks it. Knows no command.

use tenon_wire::resp::number::Hexadecimal;

/// A number as `strtod` gives it: too large ones are infinite, too small ones zero.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Parsed {
    number: f64,
    fits: Fits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fits {
    Yes,
    /// It is infinite or zero because it is too large or too small, for which C has `ERANGE`.
    No,
}

/// The number that the text is, all of it: decimal, hexadecimal (`0x1.8p3`) or infinite, but no NaN and nothing that is
/// too large or too small (Redis's `getDoubleFromObject`).
pub fn parse_double(text: &[u8]) -> Option<f64> {
    if let Some(number) = parse_few_digits(text) {
        return Some(number);
    }
    parse(text).filter(|parsed| parsed.fits == Fits::Yes).map(|parsed| parsed.number)
}

/// The number that the text is where Redis calls `strtod` on it and looks only for what follows: blanks may come before
/// it, nothing at all is zero, a NUL ends it, and what is too large is infinite. No NaN.
pub fn parse_double_leniently(text: &[u8]) -> Option<f64> {
    parse_leniently(text).map(|parsed| parsed.number)
}

/// As [`parse_double_leniently`], but nothing that is too large or too small (SORT).
pub fn parse_double_in_range(text: &[u8]) -> Option<f64> {
    parse_leniently(text).filter(|parsed| parsed.fits == Fits::Yes).map(|parsed| parsed.number)
}

fn parse_leniently(text: &[u8]) -> Option<Parsed> {
    let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Some(Parsed { number: 0.0, fits: Fits::Yes });
    }
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = text.iter().position(|byte| !is_blank(byte))?;
    parse(&text[start..])
}

fn parse(text: &[u8]) -> Option<Parsed> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    let Parsed { number, fits } = match digits {
        [b'0', b'x' | b'X', hex @ ..] => parse_hex(hex)?,
        digits => parse_decimal(digits)?,
    };
    Some(Parsed { number: if negative { -number } else { number }, fits })
}

/// What nearly all scores are: a few digits and nothing else, which are a double of their own.
#[inline]
fn parse_few_digits(text: &[u8]) -> Option<f64> {
    const EXACT_MAX: usize = 15;
    if text.is_empty() || text.len() > EXACT_MAX {
        return None;
    }
    let mut number = 0u64;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + u64::from(digit);
    }
    Some(number as f64)
}

fn parse_decimal(digits: &[u8]) -> Option<Parsed> {
    // A second sign would be taken.
    if matches!(digits, [b'-' | b'+', ..]) {
        return None;
    }
    let number: f64 = std::str::from_utf8(digits).ok()?.parse().ok().filter(|number: &f64| !number.is_nan())?;
    let is_word = digits.first().is_some_and(u8::is_ascii_alphabetic);
    let mantissa = digits.split(|byte| matches!(byte, b'e' | b'E')).next().unwrap_or_default();
    let is_zero = mantissa.iter().all(|digit| matches!(digit, b'0' | b'.'));
    let fits = number.is_infinite() == is_word && (number == 0.0) == is_zero;
    Some(Parsed { number, fits: if fits { Fits::Yes } else { Fits::No } })
}

/// What follows `0x`, rounded to the nearest, ties to even.
fn parse_hex(text: &[u8]) -> Option<Parsed> {
    let (digits, power) = match text.iter().position(|byte| matches!(byte, b'p' | b'P')) {
        Some(at) => (&text[..at], parse_power(&text[at + 1..])?),
        None => (text, 0),
    };
    let mut number = Hexadecimal::default();
    let (mut seen, mut behind_point) = (false, false);
    for &byte in digits {
        if byte == b'.' && !behind_point {
            behind_point = true;
            continue;
        }
        let digit = char::from(byte).to_digit(16)?;
        seen = true;
        number.push(digit, behind_point);
    }
    seen.then(|| {
        let is_zero = number.is_zero();
        let number = number.times_power_of_two(power);
        let fits = is_zero || number != 0.0 && number.is_finite();
        Parsed { number, fits: if fits { Fits::Yes } else { Fits::No } }
    })
}

/// The exponent of a hexadecimal number; far beyond every limit it does not matter by how much.
fn parse_power(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let power = digits.iter().fold(0i64, |sum, digit| (sum * 10 + i64::from(digit - b'0')).min(1 << 40));
    Some(if negative { -power } else { power })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strictly_the_whole_text_is_a_number() {
        let good = [
            ("1", 1.0),
            ("000000000123", 123.0),
            ("999999999999999", 999_999_999_999_999.0),
            ("9007199254740993", 9_007_199_254_740_992.0),
            ("12345678901234567890", 12_345_678_901_234_567_168.0),
            ("-0", -0.0),
            ("+5", 5.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("1e3", 1000.0),
            ("inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("0x10", 16.0),
            ("0X.8p1", 1.0),
            ("-0x1.8p-1", -0.75),
            ("0x1.fffffffffffff8p0", 2.0),
            ("0x1.fffffffffffff7p0", 1.999_999_999_999_999_8),
            ("0x10000000000000800000", 75_557_863_725_914_323_419_136.0),
            ("0x1p-1074", 5e-324),
            ("0x1.8p-1074", 1e-323),
            ("0x1p1023", 8.98846567431158e307),
            ("0e999", 0.0),
            ("5e-324", 5e-324),
        ];
        for (text, number) in good {
            assert_eq!(parse_double(text.as_bytes()).map(f64::to_bits), Some(f64::to_bits(number)), "{text}");
        }
        let bad = ["", " 1", "1 ", "nan", "-nan", "x", "1e", "--1", "+-1", "1e400", "-1e400", "1e-400", "0x", "0xp1"];
        for text in bad.into_iter().chain(["0x1p", "0x1p1024", "0x1p-1076", "1\0", "0x1.1.1", "infinit", "1_0", "."]) {
            assert_eq!(parse_double(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn leniently_a_number_is_where_c_sees_one() {
        let good = [("", 0.0), ("\0x", 0.0), (" \t\n5", 5.0), ("5\0x", 5.0), ("1e400", f64::INFINITY), ("1e-400", 0.0)];
        for (text, number) in good {
            assert_eq!(parse_double_leniently(text.as_bytes()), Some(number), "{text:?}");
        }
        for text in [" ", "5 ", "x", "nan", "- 5"] {
            assert_eq!(parse_double_leniently(text.as_bytes()), None, "{text:?}");
        }
    }
}
