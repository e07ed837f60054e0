//! Sums of decimal texts as Redis computes them: in x87 extended precision, shown with 17 digits after the point.
//! Knows no value and no command.
//!
//! Redis's INCRBYFLOAT and HINCRBYFLOAT use C's `long double` (`string2ld`, `ld2string` in its `util.c`), which on
//! x86-64 has 64 bits of mantissa. Its results are the reference on every machine, so the arithmetic is done here in
//! integers: read to the nearest, add and round once, and print exactly.

use crate::natural::Natural;
use std::cmp::Ordering;
use std::ops::Neg;

/// A number with 64 bits of mantissa: `mantissa * 2^exponent`, the mantissa's top bit set unless the number is zero.
#[derive(Clone, Copy, Debug)]
pub struct LongDouble {
    negative: bool,
    mantissa: u64,
    exponent: i32,
}

/// Longest text that is read, in bytes: one less than Redis's buffer (`MAX_LONG_DOUBLE_CHARS`).
const TEXT_LEN_MAX: usize = 5 * 1024 - 1;
/// Digits behind the point, at most.
const FRACTION_DIGITS: usize = 17;
const FRACTION_SCALE: u128 = 10u128.pow(FRACTION_DIGITS as u32);
/// Numbers from 2 to the power of this on are infinite.
const INFINITE_FROM: i32 = 16384;
/// Half of the smallest number there is, as a power of two; it and what is below reads as zero.
const ZERO_UP_TO: i32 = -16446;
/// The exponent that marks infinity.
const INFINITE: i32 = i32::MAX;

impl LongDouble {
    /// Zero.
    pub const ZERO: LongDouble = LongDouble { negative: false, mantissa: 0, exponent: 0 };

    /// The largest number that is not infinite.
    pub const MAX: LongDouble = LongDouble { negative: false, mantissa: u64::MAX, exponent: INFINITE_FROM - 64 };
    /// The smallest number that is not infinite.
    pub const MIN: LongDouble = LongDouble { negative: true, ..LongDouble::MAX };

    /// The number that the text is, all of it, as C's `strtold` reads it: decimal, hexadecimal (`0x1.8p3`) or infinite.
    ///
    /// `None` for other texts, for blanks around the number, and for numbers too large or too small.
    pub fn parse(text: &[u8]) -> Option<LongDouble> {
        if text.len() > TEXT_LEN_MAX {
            return None;
        }
        let (negative, digits) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let number = if digits.eq_ignore_ascii_case(b"inf") || digits.eq_ignore_ascii_case(b"infinity") {
            LongDouble { negative, mantissa: 0, exponent: INFINITE }
        } else if let [b'0', b'x' | b'X', hex @ ..] = digits {
            parse_hex(hex)?
        } else {
            parse_decimal(digits)?
        };
        Some(LongDouble { negative, ..number })
    }

    /// Whether the number is not infinite.
    pub fn is_finite(self) -> bool {
        self.exponent != INFINITE
    }

    /// Whether the number is below zero.
    pub fn is_negative(self) -> bool {
        self.negative && (self.mantissa != 0 || !self.is_finite())
    }

    /// A thousand times the number, rounded to the nearest; `None` when that is infinite.
    pub fn thousandfold(self) -> Option<LongDouble> {
        if self.mantissa == 0 {
            return self.is_finite().then_some(self);
        }
        let product = round(u128::from(self.mantissa) * 1_000, false, self.exponent)?;
        Some(LongDouble { negative: self.negative, ..product })
    }

    /// The least integer that is not below the number, if it is an i64.
    pub fn ceil(self) -> Option<i64> {
        if self.mantissa == 0 {
            return self.is_finite().then_some(0);
        }
        let magnitude = if self.exponent >= 0 {
            // The mantissa's top bit is set: with a larger exponent it is too much.
            Some(self.mantissa).filter(|_| self.exponent == 0)?
        } else {
            let shift = self.exponent.unsigned_abs();
            let whole = self.mantissa.checked_shr(shift).unwrap_or(0);
            let has_rest = whole.checked_shl(shift).unwrap_or(0) != self.mantissa;
            whole + u64::from(has_rest && !self.negative)
        };
        if self.negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
    }

    /// The sum, rounded to the nearest; `None` when it is infinite or no number.
    pub fn checked_add(self, other: LongDouble) -> Option<LongDouble> {
        /// Bits below the mantissa in which the smaller number is kept before the sum is rounded.
        const EXTRA: u32 = 62;
        if !self.is_finite() || !other.is_finite() {
            return None;
        }
        if self.mantissa == 0 {
            return Some(other);
        }
        if other.mantissa == 0 {
            return Some(self);
        }
        let self_first = (self.exponent, self.mantissa) >= (other.exponent, other.mantissa);
        let (large, small) = if self_first { (self, other) } else { (other, self) };
        let left = u128::from(large.mantissa) << EXTRA;
        let right = u128::from(small.mantissa) << EXTRA;
        let distance = (large.exponent - small.exponent) as u32;
        let shifted = right.checked_shr(distance).unwrap_or(0);
        let lost = shifted.checked_shl(distance).unwrap_or(0) != right;
        let sum = if large.negative == small.negative {
            left + shifted
        } else {
            // What was lost makes the true difference a little smaller: between this and the next lower integer.
            left - shifted - u128::from(lost)
        };
        if sum == 0 {
            return Some(LongDouble::ZERO);
        }
        let rounded = round(sum, lost, large.exponent - EXTRA as i32)?;
        Some(LongDouble { negative: large.negative, ..rounded })
    }

    /// The text: no exponent, as many digits behind the point as are not zero, 17 at most.
    ///
    /// # Panics
    /// When the number is infinite.
    pub fn to_text(self) -> String {
        assert!(self.is_finite(), "only a finite number has digits");
        if self.exponent >= 0 {
            let digits = Natural::from(self.mantissa).shifted_left(self.exponent as usize).to_decimal();
            return if self.negative && self.mantissa != 0 { format!("-{digits}") } else { digits };
        }
        let shift = self.exponent.unsigned_abs();
        let mut whole = self.mantissa.checked_shr(shift).unwrap_or(0);
        let fraction = self.mantissa - whole.checked_shl(shift).unwrap_or(0);
        let mut digits = 0;
        // The product is below 2^121: from there on it is less than half of the last digit.
        if shift <= 121 {
            let product = u128::from(fraction) * FRACTION_SCALE;
            digits = product >> shift;
            let rest = product - (digits << shift);
            let half = 1 << (shift - 1);
            if rest > half || (rest == half && digits & 1 == 1) {
                digits += 1;
            }
            if digits == FRACTION_SCALE {
                digits = 0;
                whole += 1;
            }
        }
        let sign = if self.negative && (whole, digits) != (0, 0) { "-" } else { "" };
        if digits == 0 {
            return format!("{sign}{whole}");
        }
        let text = format!("{sign}{whole}.{digits:017}");
        text.trim_end_matches('0').to_owned()
    }
}

impl Neg for LongDouble {
    type Output = LongDouble;

    fn neg(self) -> LongDouble {
        LongDouble { negative: !self.negative, ..self }
    }
}

impl Ord for LongDouble {
    /// By size; the two zeros are equal.
    fn cmp(&self, other: &LongDouble) -> Ordering {
        // Infinity has the highest exponent, zero comes before every other magnitude.
        let magnitude = |number: &LongDouble| match number.mantissa {
            0 if number.is_finite() => (i32::MIN, 0),
            mantissa => (number.exponent, mantissa),
        };
        let is_zero = |number: &LongDouble| number.mantissa == 0 && number.is_finite();
        match (self.negative && !is_zero(self), other.negative && !is_zero(other)) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => magnitude(self).cmp(&magnitude(other)),
            (true, true) => magnitude(other).cmp(&magnitude(self)),
        }
    }
}

impl PartialEq for LongDouble {
    fn eq(&self, other: &LongDouble) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for LongDouble {}

impl PartialOrd for LongDouble {
    fn partial_cmp(&self, other: &LongDouble) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<i64> for LongDouble {
    fn from(int: i64) -> LongDouble {
        match int.unsigned_abs() {
            0 => LongDouble::ZERO,
            magnitude => {
                let zeros = magnitude.leading_zeros();
                LongDouble { negative: int < 0, mantissa: magnitude << zeros, exponent: -(zeros as i32) }
            }
        }
    }
}

/// `bits * 2^exponent` to the nearest, ties to even; `lost` says that the true value is a little above. `None` when
/// that is out of range.
///
/// `bits` is not zero and, when something was lost, has more than 65 bits.
fn round(bits: u128, lost: bool, exponent: i32) -> Option<LongDouble> {
    let excess = 64 - bits.leading_zeros() as i32;
    let (mut mantissa, mut exponent) = if excess <= 0 {
        ((bits << -excess) as u64, exponent + excess)
    } else {
        ((bits >> excess) as u64, exponent + excess)
    };
    if excess > 0 {
        let rest = bits & ((1 << excess) - 1);
        let half = 1 << (excess - 1);
        if rest > half || (rest == half && (lost || mantissa & 1 == 1)) {
            mantissa = mantissa.checked_add(1).unwrap_or_else(|| {
                exponent += 1;
                1 << 63
            });
        }
    }
    let top = exponent + 63;
    let too_small = top < ZERO_UP_TO || (top == ZERO_UP_TO && mantissa == 1 << 63);
    (top < INFINITE_FROM && !too_small).then_some(LongDouble { negative: false, mantissa, exponent })
}

/// The digits before and behind a point, and the exponent behind the letter; nothing else may follow.
fn split(text: &[u8], is_digit: fn(&u8) -> bool, letter: u8) -> Option<(&[u8], &[u8], i64)> {
    let whole_len = text.iter().take_while(|byte| is_digit(byte)).count();
    let (whole, mut rest) = text.split_at(whole_len);
    let mut fraction: &[u8] = &[];
    if let [b'.', behind @ ..] = rest {
        (fraction, rest) = behind.split_at(behind.iter().take_while(|byte| is_digit(byte)).count());
    }
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let exponent = match rest {
        [] => 0,
        [first, rest @ ..] if first.eq_ignore_ascii_case(&letter) => {
            let (negative, digits) = match rest {
                [b'-', digits @ ..] => (true, digits),
                [b'+', digits @ ..] => (false, digits),
                digits => (false, digits),
            };
            if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
                return None;
            }
            let magnitude = digits.iter().fold(0i64, |sum, digit| {
                // Far beyond every limit it does not matter by how much.
                (sum * 10 + i64::from(digit - b'0')).min(1 << 40)
            });
            if negative { -magnitude } else { magnitude }
        }
        _ => return None,
    };
    Some((whole, fraction, exponent))
}

fn parse_decimal(text: &[u8]) -> Option<LongDouble> {
    /// Powers of ten beyond which every number is infinite or zero.
    const TENS_MAX: i64 = 4_970;
    let (whole, fraction, exponent) = split(text, u8::is_ascii_digit, b'e')?;
    let digits: Vec<u8> = whole.iter().chain(fraction).skip_while(|&&digit| digit == b'0').copied().collect();
    if digits.is_empty() {
        return Some(LongDouble::ZERO);
    }
    let tens = exponent - fraction.len() as i64;
    let leading = tens + digits.len() as i64;
    if !(-TENS_MAX..=TENS_MAX).contains(&leading) {
        return None;
    }
    let number = Natural::from_decimal(&digits);
    if tens >= 0 {
        let (bits, lost, exponent) = number.times_power_of_ten(tens as usize).top_bits();
        return round(bits, lost, exponent);
    }
    let divisor = Natural::from(1).times_power_of_ten(-tens as usize);
    let (quotient, lost, exponent) = number.divided_by(&divisor);
    round(quotient, lost, exponent)
}

fn parse_hex(text: &[u8]) -> Option<LongDouble> {
    let (whole, fraction, exponent) = split(text, u8::is_ascii_hexdigit, b'p')?;
    let mut bits = 0u128;
    let mut lost = false;
    let mut exponent = exponent - 4 * fraction.len() as i64;
    for &digit in whole.iter().chain(fraction) {
        let digit = char::from(digit).to_digit(16).expect("a hexadecimal digit");
        if bits >> 120 == 0 {
            bits = bits << 4 | u128::from(digit);
        } else {
            lost |= digit != 0;
            exponent += 4;
        }
    }
    if bits == 0 {
        return Some(LongDouble::ZERO);
    }
    round(bits, lost, i32::try_from(exponent.clamp(-(1 << 20), 1 << 20)).expect("it is clamped"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(a: &str, b: &str, sum: &str) {
        let [a, b] = [a, b].map(|text| LongDouble::parse(text.as_bytes()).expect("a number"));
        assert_eq!(a.checked_add(b).map(LongDouble::to_text).as_deref(), Some(sum));
        assert_eq!(b.checked_add(a).map(LongDouble::to_text).as_deref(), Some(sum));
    }

    #[test]
    fn sums_look_as_in_redis() {
        // What redis-server 7.0.15 answers on x86-64.
        check("10.50", "0.1", "10.6");
        check("5.0e3", "2.0e2", "5200");
        check("0.1", "0.2", "0.3");
        check("3", "1.1", "4.1");
        check("0", "3.0e3", "3000");
        check("0", "1e-5", "0.00001");
        check("1", "1e-10", "1.0000000001");
        check("0", "1e-20", "0");
        check("0", "-1e-30", "0");
        check("-0", "-0", "0");
        check("1", "-1", "0");
        check("0", "3.14159265358979323846", "3.14159265358979324");
        check("12345678901234567", "1e17", "112345678901234567");
        check("0x10", "1e3", "1016");
        check("0x1.8p3", "-.5", "11.5");
        check("0x.0000000000000000000000000000000000000001p160", "0", "1");
        check("9223372036854775807", "0.5", "9223372036854775807.5");
        check("18446744073709551615", "0.25", "18446744073709551615");
        check("1e25", "0", "10000000000000000000000000");
        check("1e30", "0", "1000000000000000000024696061952");
        check("1e30", "-1e30", "0");
    }

    #[test]
    fn reads_as_strtold() {
        for text in
            ["5.", ".5", "+5", "-5", "0e99999999999999999999", "1E5", "1e+5", "0x.8", "0X1P-2", "1e4932", "1e-4950"]
        {
            assert!(LongDouble::parse(text.as_bytes()).is_some_and(LongDouble::is_finite), "{text}");
        }
        for text in ["inf", "-inf", "+INFINITY"] {
            assert!(!LongDouble::parse(text.as_bytes()).unwrap().is_finite(), "{text}");
        }
        let long = "1".repeat(TEXT_LEN_MAX + 1);
        for text in [
            "",
            "-",
            "+",
            ".",
            "e5",
            "1e",
            "1e+",
            "1e-",
            " 1",
            "1 ",
            "1\0",
            "1,5",
            "1x",
            "--1",
            "0x",
            "0xg",
            "0x1p",
            "nan",
            "nan(1)",
            "infi",
            "1e4933",
            "1e-5000",
            "1e99999999999999999999",
            "0x1p16384",
            "0x1p-16446",
            &long,
        ] {
            assert_eq!(LongDouble::parse(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn no_sum_is_infinite() {
        let [most, inf, minus_inf] = ["1.1e4932", "inf", "-inf"].map(|t| LongDouble::parse(t.as_bytes()).unwrap());
        assert_eq!(most.checked_add(most), None);
        assert_eq!(inf.checked_add(minus_inf), None);
        assert_eq!(LongDouble::ZERO.checked_add(inf), None);
        assert_eq!(most.to_text().len(), 4933);
    }

    #[test]
    fn integers_are_exact() {
        for int in [0, 1, -1, 10, i64::MAX, i64::MIN] {
            assert_eq!(LongDouble::from(int).to_text(), int.to_string());
            assert_eq!(LongDouble::parse(int.to_string().as_bytes()).map(LongDouble::to_text), Some(int.to_string()));
        }
    }

    #[test]
    fn doubles_are_read_like_the_standard_library_does() {
        // A double is the decimal's nearest, so reading its exact digits must give it back.
        let mut bits = 0x1234_5678_9abc_def0u64;
        for _ in 0..2_000 {
            bits = bits.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let value = f64::from_bits(bits);
            if !value.is_normal() {
                continue;
            }
            let read = LongDouble::parse(format!("{value:e}").as_bytes()).unwrap();
            let exact = LongDouble::parse(format!("{value:.1100}").as_bytes()).unwrap();
            assert_eq!(exact.mantissa & 0x7ff, 0, "{value:e} has 53 bits");
            assert!(read.mantissa.abs_diff(exact.mantissa) <= 1 << 10, "{value:e}");
            assert_eq!(f64::from_bits((exact.mantissa << 1 >> 12) | (bits & 0xfff0_0000_0000_0000)), value);
        }
    }

    #[test]
    fn numbers_are_in_order() {
        let texts = [
            "-inf", "-1e4932", "-1e300", "-2", "-1.5", "-1", "-0.25", "-1e-4000", "0", "1e-4000", "0.25", "1", "1.5",
            "2", "3", "1e300", "1e4932", "inf",
        ];
        let numbers: Vec<LongDouble> = texts.iter().map(|text| LongDouble::parse(text.as_bytes()).unwrap()).collect();
        for (left, right) in numbers.iter().zip(&numbers[1..]) {
            assert!(left < right && -*left > -*right, "{left:?} {right:?}");
        }
        assert_eq!(LongDouble::parse(b"-0"), Some(LongDouble::ZERO));
        // One more in the last place is infinite.
        let last_place = LongDouble { mantissa: 1 << 63, exponent: LongDouble::MAX.exponent - 63, ..LongDouble::MAX };
        assert_eq!(LongDouble::MAX.checked_add(last_place), None);
        assert!(LongDouble::MAX.to_text().starts_with("118973149535723176502126385303097"));
    }
}
