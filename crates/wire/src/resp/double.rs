//! Doubles as Redis 7.2 and later write them: the shortest digits that read back the same. Knows no framing.

use std::fmt::{self, Write};

/// Longest text of a double, in bytes: sign, 17 digits, point or leading zeros, exponent.
pub const DOUBLE_LEN_MAX: usize = 32;

/// Integers of up to 2^62 are written with all of their digits (`double2ll` in Redis' `util.c`, whose bound is that of half an
/// `i64` as a double).
const PLAIN_INTEGER_MAX: f64 = (1u64 << 62) as f64;

/// The text of a double, which needs no allocation.
#[derive(Clone, Copy, Debug)]
pub struct DoubleText {
    bytes: [u8; DOUBLE_LEN_MAX],
    len: usize,
}

impl DoubleText {
    const EMPTY: DoubleText = DoubleText { bytes: [0; DOUBLE_LEN_MAX], len: 0 };

    /// `value` as Redis' `d2string` writes it: `inf`, `-inf`, `nan`, `-0`, `3.1`, `1e+21`.
    ///
    /// Redis 7.0 writes 17 digits (`%.17g`); later ones write the fewest that read back the same (`fpconv_dtoa`).
    #[inline]
    pub fn of(value: f64) -> DoubleText {
        let mut text = DoubleText::EMPTY;
        if value.is_nan() {
            text.extend(b"nan");
        } else if value.is_infinite() {
            text.extend(if value > 0.0 { b"inf" } else { b"-inf" });
        } else if value == 0.0 {
            text.extend(if value.is_sign_negative() { b"-0" } else { b"0" });
        } else if value.abs() <= PLAIN_INTEGER_MAX && value.trunc() == value {
            text.extend(itoa::Buffer::new().format(value as i64).as_bytes());
        } else {
            text.extend_shortest(value);
        }
        text
    }

    /// The text.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    #[inline]
    fn extend(&mut self, more: &[u8]) {
        self.bytes[self.len..self.len + more.len()].copy_from_slice(more);
        self.len += more.len();
    }

    fn extend_zeros(&mut self, count: usize) {
        self.bytes[self.len..self.len + count].fill(b'0');
        self.len += count;
    }

    /// The layout rules of `emit_digits` in Redis' `fpconv_dtoa.c`.
    fn extend_shortest(&mut self, value: f64) {
        let mut scientific = DoubleText::EMPTY;
        write!(scientific, "{:e}", value.abs()).expect("the shortest form of a double has room");
        let scientific = scientific.as_bytes();
        let e = scientific.iter().position(|byte| *byte == b'e').expect("scientific notation has an exponent");
        let exponent = crate::resp::number::parse_i64(&scientific[e + 1..]).expect("the exponent is an integer");
        let mut all_digits = DoubleText::EMPTY;
        scientific[..e].split(|byte| *byte == b'.').for_each(|digits| all_digits.extend(digits));
        let digits = all_digits.as_bytes();
        let digits_len = digits.len() as i64;
        // The value is the digits, read as an integer, times ten to this power.
        let power = exponent - (digits_len - 1);
        if value < 0.0 {
            self.extend(b"-");
        }
        if power >= 0 && exponent.abs() < digits_len + 7 {
            self.extend(digits);
            self.extend_zeros(power as usize);
        } else if power < 0 && (power > -7 || exponent.abs() < 4) {
            let point = digits_len + power;
            if point <= 0 {
                self.extend(b"0.");
                self.extend_zeros(-point as usize);
                self.extend(digits);
            } else {
                let (whole, fraction) = digits.split_at(point as usize);
                self.extend(whole);
                self.extend(b".");
                self.extend(fraction);
            }
        } else {
            self.extend(&digits[..1]);
            if digits_len > 1 {
                self.extend(b".");
                self.extend(&digits[1..]);
            }
            self.extend(if exponent < 0 { b"e-" } else { b"e+" });
            self.extend(itoa::Buffer::new().format(exponent.abs()).as_bytes());
        }
    }
}

impl Write for DoubleText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.len() > DOUBLE_LEN_MAX - self.len {
            return Err(fmt::Error);
        }
        self.extend(text.as_bytes());
        Ok(())
    }
}

/// Appends the text of a double.
pub fn write_double(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(DoubleText::of(value).as_bytes());
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
            (1e17, "100000000000000000"),
            (-103761967581248048.0, "-103761967581248048"),
            (4611686018427387904.0, "4611686018427387904"),
            (9223372036854775808.0, "9223372036854776000"),
            (1e19, "1e+19"),
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
