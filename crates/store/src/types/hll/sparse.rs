//! The sparse encoding: runs of registers with the same value. Knows no header.
//!
//! ```text
//! 00llllll           l + 1 registers (1 to 64) are zero
//! 01llllll llllllll  l + 1 registers (1 to 16,384) are zero
//! 1vvvvvll           l + 1 registers (1 to 4) are v + 1 (1 to 32)
//! ```

use super::estimate::Histogram;
use super::registers::REGISTERS;
use super::{Corrupt, Position, Registers};

/// The largest value that a run can have.
pub(super) const VALUE_MAX: u8 = 32;
/// The most registers of a run with a value.
const VALUES_MAX: usize = 4;
/// The most registers of a run of zeros that takes one byte.
const SHORT_ZEROS_MAX: usize = 64;
/// Runs at which a change may have made two mergeable, counted from the one before the changed one.
const MERGED_RUNS: usize = 5;
/// No valid row of runs is longer: each register a run of zeros of its own, in two bytes.
const LEN_MAX: usize = REGISTERS * 2;

/// Registers in a row that have the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// So many are zero, in a run that takes one byte.
    Zeros(usize),
    /// So many are zero, in a run that takes two bytes.
    ManyZeros(usize),
    /// So many have a value.
    Values {
        /// What they are.
        value: u8,
        /// How many there are.
        len: usize,
    },
}

impl Run {
    /// The run for so many zeros, at least one.
    fn zeros(len: usize) -> Run {
        if len > SHORT_ZEROS_MAX { Run::ManyZeros(len) } else { Run::Zeros(len) }
    }

    /// The run that the bytes begin with; `None` when there is none, or its second byte is missing.
    fn first_of(bytes: &[u8]) -> Option<Run> {
        let first = *bytes.first()?;
        let low = usize::from(first & 0x3f);
        Some(match first >> 6 {
            0 => Run::Zeros(low + 1),
            1 => Run::ManyZeros((low << 8 | usize::from(*bytes.get(1)?)) + 1),
            _ => Run::Values { value: (first >> 2 & 0x1f) + 1, len: usize::from(first & 3) + 1 },
        })
    }

    /// How many registers it is.
    pub fn registers(self) -> usize {
        match self {
            Run::Zeros(len) | Run::ManyZeros(len) | Run::Values { len, .. } => len,
        }
    }

    /// What they are.
    pub fn value(self) -> u8 {
        match self {
            Run::Zeros(_) | Run::ManyZeros(_) => 0,
            Run::Values { value, .. } => value,
        }
    }

    /// Bytes that it takes.
    fn size(self) -> usize {
        if matches!(self, Run::ManyZeros(_)) { 2 } else { 1 }
    }

    /// Writes it behind what is there.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        match self {
            Run::Zeros(len) => out.push((len - 1) as u8),
            Run::ManyZeros(len) => out.extend_from_slice(&[0x40 | ((len - 1) >> 8) as u8, (len - 1) as u8]),
            Run::Values { value, len } => out.push(0x80 | (value - 1) << 2 | (len - 1) as u8),
        }
    }
}

/// The runs that the bytes are, up to the first that is cut short.
pub(super) fn runs(bytes: &[u8]) -> impl Iterator<Item = Run> + Clone + '_ {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let run = Run::first_of(rest)?;
        rest = &rest[run.size()..];
        Some(run)
    })
}

/// Checks that the bytes are runs of exactly as many registers as there are.
pub(super) fn check(bytes: &[u8]) -> Result<(), Corrupt> {
    check_from(bytes, Place::default())
}

/// Likewise, where those before this place were gone through to find it.
pub(super) fn check_from(bytes: &[u8], place: Place) -> Result<(), Corrupt> {
    if bytes.len() > LEN_MAX {
        return Err(Corrupt);
    }
    let Place { mut at, first: mut registers, .. } = place;
    // No sum overflows: the length is limited.
    while let Some((len, size)) = extent(bytes, at) {
        registers += len;
        at += size;
    }
    if registers == REGISTERS && at == bytes.len() { Ok(()) } else { Err(Corrupt) }
}

/// How many registers the run at `at` has, and how many bytes it takes; `None` when there is none. Whether a short run is of
/// zeros cannot be foretold, so no branch depends on it; where the next one begins mostly can. By [`Run::first_of`] a PFADD to
/// some hundred runs takes a sixth more.
#[inline(always)]
fn extent(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let first = *bytes.get(at)?;
    if first >> 6 == 1 {
        return Some(((usize::from(first & 0x3f) << 8 | usize::from(*bytes.get(at + 1)?)) + 1, 2));
    }
    Some((usize::from(SHORT_LENS[usize::from(first)]), 1))
}

/// How many registers a run of one byte has.
static SHORT_LENS: [u8; 256] = {
    let mut lens = [0; 256];
    let mut first = 0;
    while first < 256 {
        lens[first] = if first >= 0x80 { first as u8 & 3 } else { first as u8 & 0x3f } + 1;
        first += 1;
    }
    lens
};

/// Where a run is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// Where it begins.
    at: usize,
    /// Where the one before does.
    previous: usize,
    /// Its first register.
    first: usize,
}

/// Where the run is in which a register is.
fn find(bytes: &[u8], register: usize) -> Option<Place> {
    let Place { mut at, mut previous, mut first } = Place::default();
    loop {
        let (len, size) = extent(bytes, at)?;
        if register < first + len {
            return Some(Place { at, previous, first });
        }
        previous = at;
        at += size;
        first += len;
    }
}

/// One register, and where its run is.
pub(super) fn get(bytes: &[u8], register: usize) -> Result<(u8, Place), Corrupt> {
    let place = find(bytes, register).ok_or(Corrupt)?;
    let run = Run::first_of(&bytes[place.at..]).ok_or(Corrupt)?;
    Ok((run.value(), place))
}

/// How many registers have each value, of bytes that were checked.
pub(super) fn histogram(bytes: &[u8]) -> Histogram {
    let mut histogram = Histogram::default();
    runs(bytes).for_each(|run| histogram.add(run.value(), run.registers()));
    histogram
}

/// Calls `visit` with the registers that are not zero, in order; the bytes were checked.
pub(super) fn for_each_raised(bytes: &[u8], mut visit: impl FnMut(Position)) {
    let mut first = 0;
    for run in runs(bytes) {
        if let Run::Values { value, len } = run {
            (first..first + len).for_each(|register| visit(Position { register, count: value }));
        }
        first += run.registers();
    }
}

/// Makes the registers at least these; the bytes were checked.
pub(super) fn merge_into(bytes: &[u8], registers: &mut Registers) {
    for_each_raised(bytes, |position| registers.raise(position));
}

/// What came of raising a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Raised {
    /// It was as high already.
    Not,
    /// It is as high now.
    Done,
    /// The runs would become longer than they may, or the count is too high for one: the encoding must change.
    NeedsDense,
}

/// Raises a register in the runs that begin at byte `from` of `bytes`, which may grow to `len_max` bytes. The runs were
/// checked.
///
/// As Redis does it, to the byte: the run is split into up to three, and equal neighbours are merged nearby.
pub(super) fn raise(bytes: &mut Vec<u8>, from: usize, position: Position, len_max: usize) -> Raised {
    if position.count > VALUE_MAX {
        return Raised::NeedsDense;
    }
    let place = find(&bytes[from..], position.register).expect("the runs cover every register");
    raise_at(bytes, from, place, position, len_max)
}

/// Likewise, where it is known in which run the register is.
pub(super) fn raise_at(bytes: &mut Vec<u8>, from: usize, place: Place, position: Position, len_max: usize) -> Raised {
    let Position { register, count } = position;
    if count > VALUE_MAX {
        return Raised::NeedsDense;
    }
    let Place { at, previous, first } = place;
    let (at, previous) = (from + at, from + previous);
    let run = Run::first_of(&bytes[at..]).expect("the runs cover every register");
    if run.value() >= count {
        return Raised::Not;
    }
    let (before, behind) = (register - first, first + run.registers() - 1 - register);
    let rest = |len: usize| match run {
        Run::Values { value, .. } => Run::Values { value, len },
        Run::Zeros(_) | Run::ManyZeros(_) => Run::zeros(len),
    };
    let mut split = Vec::with_capacity(5);
    if before > 0 {
        rest(before).write(&mut split);
    }
    Run::Values { value: count, len: 1 }.write(&mut split);
    if behind > 0 {
        rest(behind).write(&mut split);
    }
    if split.len() > run.size() && bytes.len() + split.len() - run.size() > len_max {
        return Raised::NeedsDense;
    }
    bytes.splice(at..at + run.size(), split);
    merge_nearby(bytes, previous);
    Raised::Done
}

/// Merges runs of the same value, as far as a run reaches, among the few from byte `at` on.
fn merge_nearby(bytes: &mut Vec<u8>, mut at: usize) {
    for _ in 0..MERGED_RUNS {
        let Some(run) = Run::first_of(&bytes[at..]) else { return };
        let next = Run::first_of(&bytes[at + run.size()..]);
        if let (Run::Values { value, len }, Some(Run::Values { value: next_value, len: next_len })) = (run, next)
            && value == next_value
            && len + next_len <= VALUES_MAX
        {
            let mut merged = Vec::with_capacity(1);
            Run::Values { value, len: len + next_len }.write(&mut merged);
            bytes.splice(at..at + 2, merged);
        } else {
            at += run.size();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts(bytes: &[u8]) -> Vec<u8> {
        runs(bytes).flat_map(|run| std::iter::repeat_n(run.value(), run.registers())).collect()
    }

    fn empty() -> Vec<u8> {
        let mut bytes = Vec::new();
        Run::ManyZeros(REGISTERS).write(&mut bytes);
        bytes
    }

    #[test]
    fn runs_are_written_as_drawn() {
        let written = |run: Run| {
            let mut bytes = Vec::new();
            run.write(&mut bytes);
            assert_eq!((Run::first_of(&bytes), bytes.len()), (Some(run), run.size()));
            bytes
        };
        assert_eq!(written(Run::Zeros(1)), [0b0000_0000]);
        assert_eq!(written(Run::Zeros(64)), [0b0011_1111]);
        assert_eq!(written(Run::ManyZeros(65)), [0b0100_0000, 64]);
        assert_eq!(written(Run::ManyZeros(16_384)), [0b0111_1111, 0xff]);
        assert_eq!(written(Run::Values { value: 1, len: 1 }), [0b1000_0000]);
        assert_eq!(written(Run::Values { value: 32, len: 4 }), [0b1111_1111]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

        #[test]
        fn raising_is_what_it_is_on_plain_registers(
            // Close to one another, so that runs of values meet.
            raised in prop::collection::vec((prop_oneof![0..40usize, 0..REGISTERS], 1..=34u8), 1..200),
            len_max in 10..400usize,
        ) {
            let mut bytes = empty();
            let mut model = vec![0; REGISTERS];
            for (register, count) in raised {
                let before = bytes.clone();
                match raise(&mut bytes, 0, Position { register, count }, len_max) {
                    Raised::Not => {
                        prop_assert!(model[register] >= count);
                        prop_assert_eq!(&bytes, &before);
                    }
                    Raised::Done => {
                        prop_assert!(model[register] < count && bytes.len() <= len_max);
                        model[register] = count;
                    }
                    Raised::NeedsDense => {
                        prop_assert!(count > VALUE_MAX || bytes.len() + 3 > len_max);
                        prop_assert_eq!(&bytes, &before);
                    }
                }
                prop_assert_eq!(check(&bytes), Ok(()));
                prop_assert_eq!(&counts(&bytes), &model);
            }
        }

        #[test]
        fn forged_runs_are_refused_or_cover_every_register(
            mut bytes in prop::collection::vec(any::<u8>(), 0..300),
            rest: bool,
        ) {
            if rest {
                // Bytes that come close to being right are more than any at all.
                let covered: usize = runs(&bytes).map(Run::registers).sum();
                if let Some(missing @ 1..) = REGISTERS.checked_sub(covered) {
                    Run::zeros(missing).write(&mut bytes);
                }
            }
            let covered: usize = runs(&bytes).map(Run::registers).sum();
            let whole: usize = runs(&bytes).map(Run::size).sum();
            prop_assert_eq!(check(&bytes).is_ok(), covered == REGISTERS && whole == bytes.len());
            if check(&bytes).is_ok() {
                let mut registers = Registers::default();
                merge_into(&bytes, &mut registers);
                prop_assert_eq!(registers.counts(), counts(&bytes));
            }
        }
    }

    #[test]
    fn runs_that_are_too_many_are_refused_before_they_are_added_up() {
        // CVE-2025-32023: runs whose sum overflows.
        assert_eq!(check(&[0x7f, 0xff].repeat(1 << 16)), Err(Corrupt));
        assert_eq!(check(&[0x7f, 0xff].repeat(2)), Err(Corrupt));
        assert_eq!(check(&[0x7f]), Err(Corrupt));
        assert_eq!(check(&[]), Err(Corrupt));
    }
}
