//! Doubles as Redis 7.2 and later write them: the shortest digits that read back the same. Knows no framing.

/// Longest text of a double, in bytes: sign, 17 digits, point or leading zeros, exponent.
pub const DOUBLE_LEN_MAX: usize = 32;

/// Integers of less than 2^52 are written as such (`double2ll` in Redis' `util.c`).
const PLAIN_INTEGER_MAX: f64 = ((1u64 << 52) - 1) as f64;

/// Appends `value` as Redis' `d2string` does: `inf`, `-inf`, `nan`, `-0`, `3.1`, `1e+21`.
///
/// Redis 7.0 writes 17 digits (`%.17g`); later ones write the fewest that read back the same (`fpconv_dtoa`).
pub fn write_double(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        out.extend_from_slice(b"nan");
    } else if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"inf" } else { b"-inf" });
    } else if value == 0.0 {
        out.extend_from_slice(if value.is_sign_negative() { b"-0" } else { b"0" });
    } else if value.abs() < PLAIN_INTEGER_MAX && value.trunc() == value {
        out.extend_from_slice(itoa::Buffer::new().format(value as i64).as_bytes());
    } else {
        write_shortest(out, value);
    }
}

/// The layout rules of `emit_digits` in Redis' `fpconv_dtoa.c`.
fn write_shortest(out: &mut Vec<u8>, value: f64) {
    let scientific = format!("{:e}", value.abs());
    let (mantissa, exponent) = scientific.split_once('e').expect("scientific notation has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is an integer");
    let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    let digits_len = digits.len() as i32;
    // The value is the digits, read as an integer, times ten to this power.
    let power = exponent - (digits_len - 1);
    if value < 0.0 {
        out.push(b'-');
    }
    if power >= 0 && exponent.abs() < digits_len + 7 {
        out.extend_from_slice(&digits);
        out.extend(std::iter::repeat_n(b'0', power as usize));
    } else if power < 0 && (power > -7 || exponent.abs() < 4) {
        let point = digits_len + power;
        if point <= 0 {
            out.extend_from_slice(b"0.");
            out.extend(std::iter::repeat_n(b'0', -point as usize));
            out.extend_from_slice(&digits);
        } else {
            let (whole, fraction) = digits.split_at(point as usize);
            out.extend_from_slice(whole);
            out.push(b'.');
            out.extend_from_slice(fraction);
        }
    } else {
        out.push(digits[0]);
        if digits_len > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        out.extend_from_slice(itoa::Buffer::new().format(exponent.abs()).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(value: f64) -> String {
        let mut out = Vec::new();
        write_double(&mut out, value);
        assert!(out.len() <= DOUBLE_LEN_MAX);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn looks_as_in_redis() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (3.0, "3"),
            (-17.0, "-17"),
            (3.1, "3.1"),
            (0.1, "0.1"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e10, "10000000000"),
            (4503599627370496.0, "4503599627370496"),
            (9007199254740993.0, "9007199254740992"),
            (1e17, "1e+17"),
            (123456789e15, "1.23456789e+23"),
            (0.001, "0.001"),
            (0.00001, "0.00001"),
            (1e-7, "1e-7"),
            (1.5e-7, "1.5e-7"),
            (-2.5e-300, "-2.5e-300"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
            (5e-324, "5e-324"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ];
        for (value, expected) in cases {
            assert_eq!(text(value), expected);
        }
    }

    proptest! {
        #[test]
        fn reads_back_the_same(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(!value.is_nan());
            prop_assert_eq!(text(value).parse::<f64>().unwrap().to_bits(), bits);
        }
    }
}
