//! Numbers to text and back as C does it: `%.Ng` and `strtod`. Knows no Lua.

use tenon_wire::resp::number::Hexadecimal;

/// Appends what `printf("%.<precision>g")` writes.
pub fn write_g(out: &mut Vec<u8>, value: f64, precision: usize) {
    let precision = precision.max(1);
    if value.is_nan() {
        return out.extend_from_slice(if value.is_sign_negative() { b"-nan" } else { b"nan" });
    }
    if value.is_infinite() {
        return out.extend_from_slice(if value < 0.0 { b"-inf" } else { b"inf" });
    }
    // Most numbers of scripts are small integers.
    if value.abs() < 1e9 && value.trunc() == value && precision >= 10 && (value != 0.0 || value.is_sign_positive()) {
        return out.extend_from_slice(itoa::Buffer::new().format(value as i64).as_bytes());
    }
    let scientific = format!("{:.*e}", precision - 1, value);
    let (mantissa, exponent) = scientific.split_once('e').expect("scientific notation has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is an integer");
    if (-4..precision as i32).contains(&exponent) {
        let decimals = (precision as i32 - 1 - exponent) as usize;
        let plain = format!("{value:.decimals$}");
        out.extend_from_slice(without_trailing_zeros(&plain).as_bytes());
    } else {
        out.extend_from_slice(without_trailing_zeros(mantissa).as_bytes());
        let sign = if exponent < 0 { '-' } else { '+' };
        out.extend_from_slice(format!("e{sign}{:02}", exponent.abs()).as_bytes());
    }
}

fn without_trailing_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

/// The number that `text` starts with, and how many bytes it takes, as `strtod` reads it; white space is not skipped.
pub fn read_double(text: &[u8]) -> Option<(f64, usize)> {
    let sign_len = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let sign = if text.first() == Some(&b'-') { -1.0 } else { 1.0 };
    let body = &text[sign_len..];
    let starts = |word: &str| body.get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word.as_bytes()));
    if starts("infinity") {
        return Some((sign * f64::INFINITY, sign_len + 8));
    }
    if starts("inf") {
        return Some((sign * f64::INFINITY, sign_len + 3));
    }
    if starts("nan") {
        return Some((f64::NAN.copysign(sign), sign_len + 3 + nan_payload(&body[3..])));
    }
    if starts("0x")
        && let Some((value, len)) = read_hex(&body[2..])
    {
        return Some((sign * value, sign_len + 2 + len));
    }
    let digits = |from: usize| body[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(0);
    let mut len = whole;
    let mut fraction = 0;
    if body.get(len) == Some(&b'.') {
        fraction = digits(len + 1);
        if whole + fraction > 0 {
            len += 1 + fraction;
        }
    }
    if whole + fraction == 0 {
        return None;
    }
    if matches!(body.get(len), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(body.get(len + 1), Some(b'+' | b'-')));
        let power = digits((len + 1 + sign).min(body.len()));
        if power > 0 {
            len += 1 + sign + power;
        }
    }
    let text = std::str::from_utf8(&body[..len]).expect("digits are ASCII");
    let value: f64 = text.parse().expect("it has the form of a number");
    Some((sign * value, sign_len + len))
}

/// The length of `(letters)` behind `nan`.
fn nan_payload(text: &[u8]) -> usize {
    let Some((b'(', rest)) = text.split_first() else { return 0 };
    let letters = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    if rest.get(letters) == Some(&b')') { letters + 2 } else { 0 }
}

/// The digits behind `0x`, with point and exponent of two.
fn read_hex(text: &[u8]) -> Option<(f64, usize)> {
    let (mut number, mut len, mut power, mut digits) = (Hexadecimal::default(), 0, 0_i64, 0);
    let mut behind_point = false;
    while let Some(&byte) = text.get(len) {
        match (byte as char).to_digit(16) {
            Some(digit) => {
                digits += 1;
                number.push(digit, behind_point);
            }
            None if byte == b'.' && !behind_point => behind_point = true,
            None => break,
        }
        len += 1;
    }
    if digits == 0 {
        return None;
    }
    if matches!(text.get(len), Some(b'p' | b'P')) {
        let sign_len = usize::from(matches!(text.get(len + 1), Some(b'+' | b'-')));
        let from = (len + 1 + sign_len).min(text.len());
        let count = text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count > 0 {
            let said = text[from..from + count]
                .iter()
                .fold(0_i64, |sum, digit| sum.saturating_mul(10).saturating_add(i64::from(digit - b'0')));
            power = if text.get(len + 1) == Some(&b'-') { -said } else { said };
            len = from + count;
        }
    }
    Some((number.times_power_of_two(power), len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn g(value: f64, precision: usize) -> String {
        let mut out = Vec::new();
        write_g(&mut out, value, precision);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn writes_as_printf_does() {
        let cases = [
            (0.0, 17, "0"),
            (-0.0, 14, "-0"),
            (0.1, 17, "0.10000000000000001"),
            (0.1, 14, "0.1"),
            (std::f64::consts::PI, 14, "3.1415926535898"),
            (1e15, 14, "1e+15"),
            (1e14, 14, "1e+14"),
            (123456789012345.0, 14, "1.2345678901234e+14"),
            (1e100, 17, "1e+100"),
            (1.5e-5, 14, "1.5e-05"),
            (0.0001, 14, "0.0001"),
            (-12.0, 3, "-12"),
            (1234.5, 3, "1.23e+03"),
            (9007199254740993.0, 17, "9007199254740992"),
            (f64::INFINITY, 14, "inf"),
        ];
        for (value, precision, expected) in cases {
            assert_eq!(g(value, precision), expected);
        }
    }

    #[test]
    fn reads_as_strtod_does() {
        let cases: [(&str, Option<(f64, usize)>); 20] = [
            ("12x", Some((12.0, 2))),
            ("-1.5e3,", Some((-1500.0, 6))),
            ("1e", Some((1.0, 1))),
            ("1e+", Some((1.0, 1))),
            (".5", Some((0.5, 2))),
            ("5.", Some((5.0, 2))),
            (".", None),
            ("-", None),
            ("abc", None),
            ("0x1F", Some((31.0, 4))),
            ("0x", Some((0.0, 1))),
            ("0x1.8p1]", Some((3.0, 7))),
            // Rounded once, however many digits there are: as glibc does it.
            ("0x8000000000000401", Some((9_223_372_036_854_777_856.0, 18))),
            ("0x10000000000000800001", Some((75_557_863_725_914_340_524_032.0, 22))),
            ("0xb36d670b2a7974e", Some((808_068_962_681_591_680.0, 17))),
            ("0x1p-1074", Some((5e-324, 9))),
            ("0x3p-1070", Some((2.371_515_100_038e-322, 9))),
            ("0x1p99999999999999999999", Some((f64::INFINITY, 24))),
            ("Infinityx", Some((f64::INFINITY, 8))),
            ("1e999", Some((f64::INFINITY, 5))),
        ];
        for (text, expected) in cases {
            assert_eq!(read_double(text.as_bytes()), expected, "{text}");
        }
        assert!(matches!(read_double(b"nan(1)2"), Some((value, 6)) if value.is_nan()));
    }
}
