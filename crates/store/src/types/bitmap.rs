//! Strings as rows of bits: counting them, finding one, combining several rows. Works on slices, one after another, and
//! knows neither keys nor how a string is stored.
//!
//! Bit 0 is the most significant bit of byte 0.

pub use tenon_ds::bits::count_ones;
use tenon_ds::bits::first_unlike;

/// One bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bit {
    /// 0.
    Clear,
    /// 1.
    Set,
}

impl Bit {
    /// Bit `index & 7` of a byte.
    pub fn of(byte: u8, index: u64) -> Bit {
        if byte & mask(index) != 0 { Bit::Set } else { Bit::Clear }
    }

    /// The byte with its bit `index & 7` made this.
    pub fn put(self, byte: u8, index: u64) -> u8 {
        match self {
            Bit::Clear => byte & !mask(index),
            Bit::Set => byte | mask(index),
        }
    }
}

fn mask(index: u64) -> u8 {
    0x80 >> (index & 7)
}

/// Where the first bit of this kind is in the slices, which follow one another, from bit `from` of the first slice's
/// first byte on.
pub fn position_of<'a>(slices: impl IntoIterator<Item = &'a [u8]>, bit: Bit, from: u32) -> Option<u64> {
    let mut passed = 0;
    let mut ignored = !(0xff_u8 >> from);
    for slice in slices {
        if let Some(position) = position_in(slice, bit, ignored) {
            return Some(passed + position);
        }
        passed += slice.len() as u64 * 8;
        if !slice.is_empty() {
            ignored = 0;
        }
    }
    None
}

/// Where the first bit of this kind is in a slice of whose first byte the bits in `ignored` do not count.
fn position_in(slice: &[u8], bit: Bit, ignored: u8) -> Option<u64> {
    // What is looked for is a 1 after this, which makes a byte of nothing but others zero.
    let flip = if bit == Bit::Set { 0 } else { u8::MAX };
    let first = (slice.first()? ^ flip) & !ignored;
    if first != 0 {
        return Some(u64::from(first.leading_zeros()));
    }
    let index = 1 + first_unlike(&slice[1..], flip)?;
    Some(index as u64 * 8 + u64::from((slice[index] ^ flip).leading_zeros()))
}

/// How several rows of bits become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// Set in all.
    And,
    /// Set in any.
    Or,
    /// Set in an odd number of them.
    Xor,
    /// Not set in the only one.
    Not,
    /// Set in the first and in none of the others.
    Diff,
    /// Set in any of the others and not in the first.
    Diff1,
    /// Set in the first and in any of the others.
    AndOr,
    /// Set in exactly one.
    One,
}

impl Combine {
    /// Whether there must be a second row to write to.
    pub fn uses_scratch(self) -> bool {
        matches!(self, Combine::Diff | Combine::One)
    }

    /// Combines the parts of the rows that lie where `result` is to lie; a part that is shorter goes on with zeros.
    /// `result` holds zeros before; `scratch` is of the same length where the operation [uses it](Combine::uses_scratch), and
    /// what is in it does not matter. Goes over all of it several times: short parts stay in the cache meanwhile.
    ///
    /// # Panics
    /// When there is no row, or a part is longer than the result.
    pub fn run(self, rows: &[&[u8]], result: &mut [u8], scratch: &mut [u8]) {
        let (first, others) = rows.split_first().expect("there is a row");
        match self {
            Combine::And => {
                // Behind the shortest part there are only zeros.
                let len = rows.iter().map(|row| row.len()).min().unwrap_or(0);
                result[..len].copy_from_slice(&first[..len]);
                others.iter().for_each(|row| each(&mut result[..len], &row[..len], |a, b| a & b));
            }
            Combine::Or => any_of(rows, result),
            Combine::Xor => {
                result[..first.len()].copy_from_slice(first);
                others.iter().for_each(|row| each(result, row, |a, b| a ^ b));
            }
            Combine::Not => {
                result[..first.len()].copy_from_slice(first);
                result.iter_mut().for_each(|byte| *byte = !*byte);
            }
            Combine::Diff => {
                scratch.fill(0);
                any_of(others, scratch);
                result[..first.len()].copy_from_slice(first);
                each(result, scratch, |a, b| a & !b);
            }
            Combine::Diff1 => {
                any_of(others, result);
                each(result, first, |a, b| a & !b);
            }
            Combine::AndOr => {
                any_of(others, result);
                result[first.len()..].fill(0);
                each(result, first, |a, b| a & b);
            }
            Combine::One => {
                // What more than one row has gathers in the scratch.
                scratch.fill(0);
                for row in rows {
                    for ((once, more), byte) in result.iter_mut().zip(scratch.iter_mut()).zip(*row) {
                        *more |= *once & byte;
                        *once |= byte;
                    }
                }
                each(result, scratch, |a, b| a & !b);
            }
        }
    }
}

/// What is set in any of the rows; `result` holds zeros before.
fn any_of(rows: &[&[u8]], result: &mut [u8]) {
    let Some((first, others)) = rows.split_first() else { return };
    result[..first.len()].copy_from_slice(first);
    others.iter().for_each(|row| each(result, row, |a, b| a | b));
}

/// Changes each byte of `result` that has a counterpart.
fn each(result: &mut [u8], row: &[u8], change: impl Fn(u8, u8) -> u8) {
    assert!(row.len() <= result.len(), "no row is longer than the result");
    result.iter_mut().zip(row).for_each(|(byte, other)| *byte = change(*byte, *other));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Whether a bit is set in the result: by the first row's, in how many rows it is set, and how many rows there are.
    type Rule = fn(bool, usize, usize) -> bool;

    fn bits(bytes: &[u8]) -> Vec<bool> {
        (0..bytes.len() as u64 * 8).map(|index| Bit::of(bytes[index as usize / 8], index) == Bit::Set).collect()
    }

    /// Bytes of which many are all zeros or all ones, so that searches go far.
    fn rows_of_bits() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop_oneof![4 => Just(0), 4 => Just(0xff), 1 => any::<u8>()], 0..70)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

        #[test]
        fn counts_and_finds_what_a_row_of_booleans_has(
            bytes in rows_of_bits(),
            cuts in prop::collection::vec(0..70usize, 0..3),
            from in 0..8u32,
        ) {
            let model = bits(&bytes);
            prop_assert_eq!(count_ones(&bytes), model.iter().filter(|&&bit| bit).count() as u64);
            let mut slices = Vec::new();
            let mut rest = &bytes[..];
            for cut in cuts {
                let (now, later) = rest.split_at(cut.min(rest.len()));
                slices.push(now);
                rest = later;
            }
            slices.push(rest);
            for (bit, wanted) in [(Bit::Clear, false), (Bit::Set, true)] {
                let expected = (from as usize..model.len()).find(|&index| model[index] == wanted);
                let found = position_of(slices.iter().copied(), bit, from);
                prop_assert_eq!(found, expected.map(|index| index as u64));
            }
        }

        #[test]
        fn one_bit_changes_alone(byte: u8, index: u64) {
            for bit in [Bit::Clear, Bit::Set] {
                let after = bit.put(byte, index);
                prop_assert_eq!(Bit::of(after, index), bit);
                prop_assert!((after ^ byte) & !mask(index) == 0);
            }
        }

        #[test]
        fn rows_combine_bit_by_bit(rows in prop::collection::vec(rows_of_bits(), 1..5)) {
            let len = rows.iter().map(Vec::len).max().unwrap_or(0);
            let padded: Vec<Vec<bool>> = rows
                .iter()
                .map(|row| {
                    let mut row = row.clone();
                    row.resize(len, 0);
                    bits(&row)
                })
                .collect();
            let rules: [(Combine, Rule); 8] = [
                (Combine::And, |_, set, of| set == of),
                (Combine::Or, |_, set, _| set > 0),
                (Combine::Xor, |_, set, _| set % 2 == 1),
                (Combine::Not, |first, _, _| !first),
                (Combine::Diff, |first, set, _| first && set == 1),
                (Combine::Diff1, |first, set, _| !first && set > 0),
                (Combine::AndOr, |first, set, _| first && set > 1),
                (Combine::One, |_, set, _| set == 1),
            ];
            let slices: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
            for (combine, rule) in rules {
                let mut result = vec![0; len];
                combine.run(&slices, &mut result, &mut vec![0xa5; len]);
                let expected: Vec<bool> = (0..len * 8)
                    .map(|at| rule(padded[0][at], padded.iter().filter(|row| row[at]).count(), rows.len()))
                    .collect();
                prop_assert_eq!(bits(&result), expected, "{:?}", combine);
            }
        }
    }
}
