//! Integers of any width at any bit of a string, and what becomes of sums that do not fit them. Works on the few bytes
//! around one integer, and knows neither keys nor how a string is stored.

/// Bytes that hold any integer at any bit: 64 bits that begin with the last bit of a byte.
pub const WINDOW_LEN: usize = 9;

/// The bytes around an integer, from the one in which it begins on.
pub type Window = [u8; WINDOW_LEN];

/// An integer's sign and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// Two's complement, of so many bits: 1 to 64.
    Signed(u32),
    /// Of so many bits: 1 to 63, as a reply is a signed integer of 64.
    Unsigned(u32),
}

/// What becomes of a number that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// Its low bits stay.
    Wrap,
    /// The nearest number that fits is taken.
    Saturate,
    /// Nothing is written.
    Fail,
}

impl FieldType {
    /// The width in bits.
    pub fn bits(self) -> u32 {
        match self {
            FieldType::Signed(bits) | FieldType::Unsigned(bits) => bits,
        }
    }

    /// The smallest and the largest number that fits.
    fn limits(self) -> (i128, i128) {
        match self {
            FieldType::Signed(bits) => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            FieldType::Unsigned(bits) => (0, (1 << bits) - 1),
        }
    }

    /// The number that the low bits of `number` are.
    fn wrapped(self, number: i128) -> i64 {
        let unused = 128 - self.bits();
        match self {
            FieldType::Signed(_) => (number << unused >> unused) as i64,
            FieldType::Unsigned(_) => (((number as u128) << unused) >> unused) as i64,
        }
    }

    /// The number that is stored for `number`; `None` when it does not fit and that is a failure.
    fn fitted(self, number: i128, overflow: Overflow) -> Option<i64> {
        let (least, most) = self.limits();
        if (least..=most).contains(&number) {
            return Some(number as i64);
        }
        match overflow {
            Overflow::Wrap => Some(self.wrapped(number)),
            Overflow::Saturate => Some(number.clamp(least, most) as i64),
            Overflow::Fail => None,
        }
    }

    /// What is stored when `number` is to be. For an unsigned integer a negative number means the one with the same 64
    /// bits.
    pub fn of(self, number: i64, overflow: Overflow) -> Option<i64> {
        let number = match self {
            FieldType::Signed(_) => i128::from(number),
            FieldType::Unsigned(_) => i128::from(number as u64),
        };
        self.fitted(number, overflow)
    }

    /// What is stored for the sum of a stored number and an increment.
    pub fn sum(self, stored: i64, increment: i64, overflow: Overflow) -> Option<i64> {
        self.fitted(i128::from(stored) + i128::from(increment), overflow)
    }

    /// Bytes from the one in which the integer at bit `offset` begins to the one in which it ends.
    pub fn span(self, offset: u64) -> usize {
        ((offset % 8) as usize + self.bits() as usize).div_ceil(8)
    }

    /// The integer at bit `offset`, of which the window holds the bytes.
    pub fn read(self, window: &Window, offset: u64) -> i64 {
        let below = 128 - (offset % 8) as u32 - self.bits();
        self.wrapped((widened(window) >> below) as i128)
    }

    /// Puts the integer at bit `offset`; it fits.
    pub fn write(self, window: &mut Window, offset: u64, number: i64) {
        let below = 128 - (offset % 8) as u32 - self.bits();
        let mask = (u128::MAX >> (128 - self.bits())) << below;
        let changed = (widened(window) & !mask) | ((number as u128) << below & mask);
        window.copy_from_slice(&changed.to_be_bytes()[..WINDOW_LEN]);
    }
}

/// The window's bytes at the top of a word.
fn widened(window: &Window) -> u128 {
    let mut bytes = [0; 16];
    bytes[..WINDOW_LEN].copy_from_slice(window);
    u128::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn field_types() -> impl Strategy<Value = FieldType> {
        prop_oneof![(1..=64u32).prop_map(FieldType::Signed), (1..=63u32).prop_map(FieldType::Unsigned)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 512 }))]

        #[test]
        fn what_is_written_is_read_and_nothing_else_changes(
            before: Window,
            field in field_types(),
            offset in 0..8u64,
            number: i64,
        ) {
            let number = field.of(number, Overflow::Wrap).expect("it wraps");
            let mut window = before;
            field.write(&mut window, offset, number);
            prop_assert_eq!(field.read(&window, offset), number);
            let bit = |window: &Window, index: usize| window[index / 8] >> (7 - index % 8) & 1;
            let inside = offset as usize..offset as usize + field.bits() as usize;
            for index in (0..WINDOW_LEN * 8).filter(|index| !inside.contains(index)) {
                prop_assert_eq!(bit(&window, index), bit(&before, index));
            }
            // The integer's own bits, most significant first.
            for (nth, index) in inside.clone().enumerate() {
                prop_assert_eq!(i64::from(bit(&window, index)), number >> (field.bits() as usize - 1 - nth) & 1);
            }
            prop_assert_eq!(field.span(offset), (inside.end - 1) / 8 + 1);
        }

        #[test]
        fn sums_wrap_saturate_or_fail(field in field_types(), stored: i64, increment: i64) {
            let stored = field.of(stored, Overflow::Wrap).expect("it wraps");
            let (least, most) = field.limits();
            let exact = i128::from(stored) + i128::from(increment);
            let fits = (least..=most).contains(&exact);
            prop_assert_eq!(field.sum(stored, increment, Overflow::Fail), fits.then_some(exact as i64));
            prop_assert_eq!(field.sum(stored, increment, Overflow::Saturate), Some(exact.clamp(least, most) as i64));
            let wrapped = field.sum(stored, increment, Overflow::Wrap).expect("it wraps");
            prop_assert!((least..=most).contains(&i128::from(wrapped)));
            prop_assert_eq!((i128::from(wrapped) - exact).rem_euclid(1 << field.bits()), 0);
        }
    }

    #[test]
    fn a_negative_number_is_a_large_unsigned_one() {
        let byte = FieldType::Unsigned(8);
        assert_eq!(byte.of(-1, Overflow::Wrap), Some(255));
        assert_eq!(byte.of(-2, Overflow::Wrap), Some(254));
        assert_eq!(byte.of(-2, Overflow::Saturate), Some(255));
        assert_eq!(byte.of(-2, Overflow::Fail), None);
        assert_eq!(FieldType::Signed(8).of(-200, Overflow::Saturate), Some(-128));
        assert_eq!(FieldType::Signed(64).of(i64::MIN, Overflow::Fail), Some(i64::MIN));
        assert_eq!(FieldType::Unsigned(63).of(i64::MAX, Overflow::Fail), Some(i64::MAX));
    }
}
