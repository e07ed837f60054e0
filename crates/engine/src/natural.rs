//! Natural numbers of any size, as far as reading and printing extended-precision numbers needs them.

/// A natural number: 64-bit digits, the lowest first, the highest not zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Natural(Vec<u64>);

/// The largest power of ten in 64 bits, and its exponent.
const TENS: (u64, usize) = (10u64.pow(19), 19);

impl From<u64> for Natural {
    fn from(number: u64) -> Natural {
        let mut natural = Natural(vec![number]);
        natural.trim();
        natural
    }
}

impl Natural {
    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    /// `self * factor + addend`, in place.
    fn multiply_add(&mut self, factor: u64, addend: u64) {
        let mut carry = addend;
        for digit in &mut self.0 {
            let product = u128::from(*digit) * u128::from(factor) + u128::from(carry);
            *digit = product as u64;
            carry = (product >> 64) as u64;
        }
        if carry != 0 {
            self.0.push(carry);
        }
    }

    /// The number with these decimal digits.
    pub fn from_decimal(digits: &[u8]) -> Natural {
        let mut number = Natural(Vec::with_capacity(digits.len() / TENS.1 + 1));
        for chunk in digits.chunks(TENS.1) {
            let value = chunk.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
            number.multiply_add(10u64.pow(chunk.len() as u32), value);
        }
        number.trim();
        number
    }

    /// The decimal digits.
    pub fn to_decimal(&self) -> String {
        let mut chunks = Vec::new();
        let mut rest = self.clone();
        while !rest.0.is_empty() {
            let mut remainder = 0u64;
            for digit in rest.0.iter_mut().rev() {
                let dividend = u128::from(remainder) << 64 | u128::from(*digit);
                *digit = (dividend / u128::from(TENS.0)) as u64;
                remainder = (dividend % u128::from(TENS.0)) as u64;
            }
            rest.trim();
            chunks.push(remainder);
        }
        let mut text = chunks.pop().unwrap_or(0).to_string();
        chunks.iter().rev().for_each(|chunk| text.push_str(&format!("{chunk:019}")));
        text
    }

    /// `self * 10^exponent`.
    pub fn times_power_of_ten(mut self, exponent: usize) -> Natural {
        for _ in 0..exponent / TENS.1 {
            self.multiply_add(TENS.0, 0);
        }
        self.multiply_add(10u64.pow((exponent % TENS.1) as u32), 0);
        self
    }

    fn bit_len(&self) -> usize {
        self.0.last().map_or(0, |top| self.0.len() * 64 - top.leading_zeros() as usize)
    }

    /// `self * 2^bits`.
    pub fn shifted_left(&self, bits: usize) -> Natural {
        let mut digits = vec![0; bits / 64];
        let within = bits % 64;
        let mut carry = 0;
        for &digit in &self.0 {
            digits.push(digit << within | carry);
            carry = if within == 0 { 0 } else { digit >> (64 - within) };
        }
        digits.push(carry);
        let mut shifted = Natural(digits);
        shifted.trim();
        shifted
    }

    fn halve(&mut self) {
        let mut carry = 0;
        for digit in self.0.iter_mut().rev() {
            let low = *digit & 1;
            *digit = *digit >> 1 | carry << 63;
            carry = low;
        }
        self.trim();
    }

    fn is_at_least(&self, other: &Natural) -> bool {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.iter().rev().cmp(other.0.iter().rev())).is_ge()
    }

    fn subtract(&mut self, other: &Natural) {
        let mut borrow = false;
        for (index, digit) in self.0.iter_mut().enumerate() {
            let (less, first) = digit.overflowing_sub(other.0.get(index).copied().unwrap_or(0));
            let (less, second) = less.overflowing_sub(u64::from(borrow));
            *digit = less;
            borrow = first || second;
        }
        debug_assert!(!borrow, "the difference is a natural number");
        self.trim();
    }

    /// The highest bits, whether lower ones are not zero, and the power of two that the bits are multiples of.
    pub fn top_bits(&self) -> (u128, bool, i32) {
        let high = self.0.len().saturating_sub(2);
        let bits = self.0[high..].iter().rev().fold(0, |bits: u128, &digit| bits << 64 | u128::from(digit));
        (bits, self.0[..high].iter().any(|&digit| digit != 0), high as i32 * 64)
    }

    /// At least the 67 highest bits of the quotient, whether there is a remainder, and the power of two that the bits
    /// are multiples of. Neither number is zero.
    pub fn divided_by(&self, divisor: &Natural) -> (u128, bool, i32) {
        const QUOTIENT_BITS: usize = 68;
        // Shifted so that the quotient has that many bits, or one less.
        let shift = (divisor.bit_len() + QUOTIENT_BITS) as i32 - self.bit_len() as i32 - 1;
        let mut rest = self.shifted_left(shift.max(0) as usize);
        let mut part = divisor.shifted_left((-shift).max(0) as usize + QUOTIENT_BITS);
        let mut quotient = 0u128;
        for _ in 0..=QUOTIENT_BITS {
            quotient <<= 1;
            if rest.is_at_least(&part) {
                rest.subtract(&part);
                quotient |= 1;
            }
            part.halve();
        }
        (quotient, !rest.0.is_empty(), -shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_wide_integers() {
        let mut random = 99u64;
        let mut next = || {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            random >> (random >> 59)
        };
        for _ in 0..500 {
            let number = u128::from(next()) * u128::from(next());
            let natural = Natural::from_decimal(number.to_string().trim_start_matches('0').as_bytes());
            assert_eq!(natural.to_decimal(), number.to_string());
            assert_eq!(natural.bit_len() as u32, 128 - number.leading_zeros());
            let tens = (next() % 60) as usize;
            let expected = if number == 0 { "0".to_owned() } else { format!("{number}{}", "0".repeat(tens)) };
            assert_eq!(natural.clone().times_power_of_ten(tens).to_decimal(), expected);
            let divisor = u128::from(next()) + 1;
            if number > 0 {
                let (quotient, lost, exponent) =
                    natural.divided_by(&Natural::from_decimal(divisor.to_string().as_bytes()));
                assert!((67..=68).contains(&(128 - quotient.leading_zeros())), "{quotient:b}");
                // The quotient without its bits behind the point is that of the integers.
                let whole = if exponent <= 0 { quotient.checked_shr(-exponent as u32).unwrap_or(0) } else { 0 };
                if exponent <= 0 {
                    assert_eq!(whole, number / divisor);
                }
                let behind = quotient != whole.checked_shl(exponent.unsigned_abs()).unwrap_or(0);
                assert_eq!(lost || behind, number % divisor != 0 || exponent > 0);
            }
        }
    }
}
