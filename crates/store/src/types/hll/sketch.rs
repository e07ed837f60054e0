//! A HyperLogLog with its header, as Redis stores it in a string. Knows neither keys nor commands.

use super::estimate::estimate;
use super::registers::REGISTERS;
use super::sparse::{Raised, Run};
use super::{Position, Registers, dense, sparse};
use tenon_ds::progress;

/// What going through all registers counts for.
const STEPS: usize = REGISTERS / 128;

const MAGIC: &[u8; 4] = b"HYLL";
const HEADER_LEN: usize = 16;
/// Bytes of a dense sketch.
pub const DENSE_LEN: usize = HEADER_LEN + dense::LEN;
/// Where the estimate lies.
const ESTIMATE: std::ops::Range<usize> = 8..HEADER_LEN;
/// The bit that says that the estimate is of registers which have changed since.
const OUTDATED: u8 = 0x80;

/// How the registers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Encoding {
    /// Packed.
    Dense = 0,
    /// As runs.
    Sparse = 1,
}

/// The bytes are no HyperLogLog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSketch;

/// The bytes begin like a HyperLogLog, but are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

/// A stored HyperLogLog. Its header is right; that its runs are is checked by each function that reads them.
#[derive(Clone, Copy, Debug)]
pub struct SketchRef<'a> {
    bytes: &'a [u8],
    encoding: Encoding,
}

impl<'a> SketchRef<'a> {
    /// The sketch that the bytes are.
    ///
    /// # Errors
    /// When they do not begin with its header, or their length is not that of a dense one that they say they are.
    pub fn parse(bytes: &'a [u8]) -> Result<SketchRef<'a>, NoSketch> {
        let header = bytes.first_chunk::<HEADER_LEN>().ok_or(NoSketch)?;
        if header[..MAGIC.len()] != *MAGIC {
            return Err(NoSketch);
        }
        match header[MAGIC.len()] {
            0 if bytes.len() == DENSE_LEN => Ok(SketchRef { bytes, encoding: Encoding::Dense }),
            1 => Ok(SketchRef { bytes, encoding: Encoding::Sparse }),
            _ => Err(NoSketch),
        }
    }

    /// How the registers are written.
    pub fn encoding(self) -> Encoding {
        self.encoding
    }

    fn registers(self) -> &'a [u8] {
        &self.bytes[HEADER_LEN..]
    }

    fn check(self) -> Result<(), Corrupt> {
        match self.encoding {
            Encoding::Dense => Ok(()),
            Encoding::Sparse => sparse::check(self.registers()),
        }
    }

    /// The estimate that was made after the registers last changed, if one was.
    pub fn last_estimate(self) -> Option<u64> {
        let bytes: [u8; 8] = self.bytes[ESTIMATE].try_into().expect("the header is there");
        (bytes[7] & OUTDATED == 0).then(|| u64::from_le_bytes(bytes))
    }

    /// About how many different elements were added, from the registers.
    ///
    /// # Errors
    /// When the runs are not of as many registers as there are.
    pub fn estimate(self) -> Result<u64, Corrupt> {
        progress::count(STEPS);
        self.check()?;
        Ok(estimate(&match self.encoding {
            Encoding::Dense => dense::histogram(self.registers()),
            Encoding::Sparse => sparse::histogram(self.registers()),
        }))
    }

    /// Makes the registers at least this sketch's.
    ///
    /// # Errors
    /// When the runs are not of as many registers as there are.
    pub fn merge_into(self, registers: &mut Registers) -> Result<(), Corrupt> {
        progress::count(STEPS);
        self.check()?;
        match self.encoding {
            Encoding::Dense => dense::merge_into(self.registers(), registers),
            Encoding::Sparse => sparse::merge_into(self.registers(), registers),
        }
        Ok(())
    }

    /// The runs of a sparse sketch.
    ///
    /// # Errors
    /// When they are not of as many registers as there are.
    pub fn runs(self) -> Result<impl Iterator<Item = Run> + Clone + 'a, Corrupt> {
        self.check()?;
        Ok(sparse::runs(self.registers()))
    }

    /// The register, if it is lower.
    ///
    /// # Errors
    /// When the runs end before it.
    pub fn find_below(self, position: Position) -> Result<Option<Below>, Corrupt> {
        let (count, place) = match self.encoding {
            Encoding::Dense => (dense::get(self.registers(), position.register), None),
            Encoding::Sparse => {
                let (count, place) = sparse::get(self.registers(), position.register)?;
                (count, Some(place))
            }
        };
        Ok((count < position.count).then_some(Below { position, place }))
    }

    /// A copy that can be changed.
    ///
    /// # Errors
    /// When the runs are not of as many registers as there are.
    pub fn to_sketch(self) -> Result<Sketch, Corrupt> {
        self.check()?;
        Ok(Sketch { bytes: self.bytes.to_vec(), encoding: self.encoding })
    }

    /// A copy with this register, which was found in it, raised as [`Sketch::raise`] does. The runs are gone through no more
    /// than once for both, as they are most of the work.
    ///
    /// # Errors
    /// When the runs are not of as many registers as there are.
    pub fn to_raised(self, below: Below, sparse_len_max: usize) -> Result<Sketch, Corrupt> {
        let Below { position, place } = below;
        if let Some(place) = place {
            sparse::check_from(self.registers(), place)?;
        }
        let mut sketch = Sketch { bytes: self.bytes.to_vec(), encoding: self.encoding };
        match place {
            Some(place) => {
                let raised = sparse::raise_at(&mut sketch.bytes, HEADER_LEN, place, position, sparse_len_max);
                sketch.finish(raised, position);
            }
            None => _ = raise_dense(&mut sketch.bytes, position),
        }
        Ok(sketch)
    }
}

/// A register of a stored sketch that is lower than one that is to be added.
#[derive(Clone, Copy, Debug)]
pub struct Below {
    position: Position,
    /// The run that it is in, of a sparse sketch.
    place: Option<sparse::Place>,
}

/// A HyperLogLog with bytes of its own, which are right.
#[derive(Clone, Debug)]
pub struct Sketch {
    bytes: Vec<u8>,
    encoding: Encoding,
}

impl Default for Sketch {
    /// The sketch of no element, sparse.
    fn default() -> Sketch {
        let mut bytes = Vec::with_capacity(HEADER_LEN + 2);
        bytes.extend_from_slice(MAGIC);
        bytes.push(Encoding::Sparse as u8);
        bytes.resize(HEADER_LEN, 0);
        Run::ManyZeros(REGISTERS).write(&mut bytes);
        Sketch { bytes, encoding: Encoding::Sparse }
    }
}

impl Sketch {
    /// The bytes, as they are stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The sketch, to be read.
    pub fn view(&self) -> SketchRef<'_> {
        SketchRef { bytes: &self.bytes, encoding: self.encoding }
    }

    /// Makes a register at least this; tells whether it was lower. A sparse sketch that would get longer than
    /// `sparse_len_max` bytes becomes dense.
    pub fn raise(&mut self, position: Position, sparse_len_max: usize) -> bool {
        match self.encoding {
            Encoding::Sparse => {
                let raised = sparse::raise(&mut self.bytes, HEADER_LEN, position, sparse_len_max);
                self.finish(raised, position)
            }
            Encoding::Dense => raise_dense(&mut self.bytes, position),
        }
    }

    /// Does what is left to do where a register of runs was to be raised; tells whether it was lower.
    fn finish(&mut self, raised: Raised, position: Position) -> bool {
        match raised {
            Raised::Not => false,
            Raised::Done => {
                self.outdate();
                true
            }
            Raised::NeedsDense => {
                self.make_dense();
                raise_dense(&mut self.bytes, position)
            }
        }
    }

    /// Makes the registers these, in a dense sketch.
    pub fn take_dense(&mut self, registers: &Registers) {
        self.pack(registers);
        self.outdate();
    }

    fn pack(&mut self, registers: &Registers) {
        self.bytes.resize(DENSE_LEN, 0);
        self.bytes[MAGIC.len()] = Encoding::Dense as u8;
        self.encoding = Encoding::Dense;
        dense::pack(registers, &mut self.bytes[HEADER_LEN..]);
    }

    /// Makes the sketch dense if it is not.
    pub fn make_dense(&mut self) {
        if self.encoding == Encoding::Dense {
            return;
        }
        let mut registers = Registers::default();
        sparse::merge_into(&self.bytes[HEADER_LEN..], &mut registers);
        self.pack(&registers);
    }

    /// Notes that the estimate no longer holds.
    pub fn outdate(&mut self) {
        self.bytes[ESTIMATE.end - 1] |= OUTDATED;
    }
}

/// Makes a register of a dense sketch at least this, where the sketch is; tells whether it was lower.
pub fn raise_dense(sketch: &mut [u8], position: Position) -> bool {
    assert!(sketch.len() == DENSE_LEN, "a dense sketch has this length");
    let registers = &mut sketch[HEADER_LEN..];
    let is_below = dense::get(registers, position.register) < position.count;
    if is_below {
        dense::set(registers, position.register, position.count);
        sketch[ESTIMATE.end - 1] |= OUTDATED;
    }
    is_below
}

/// Where a sketch keeps its last estimate, and the bytes that are this one.
pub fn estimate_field(estimate: u64) -> (usize, [u8; 8]) {
    (ESTIMATE.start, estimate.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SPARSE_LEN_MAX: usize = 3_000;

    fn added(elements: std::ops::Range<u32>, sparse_len_max: usize) -> Sketch {
        let mut sketch = Sketch::default();
        elements.for_each(|element| {
            sketch.raise(Position::of(&element.to_le_bytes()), sparse_len_max);
        });
        sketch
    }

    fn counts(sketch: &Sketch) -> Vec<u8> {
        let mut registers = Registers::default();
        sketch.view().merge_into(&mut registers).expect("the sketch is right");
        registers.counts().to_vec()
    }

    #[test]
    #[cfg_attr(miri, ignore = "a million steps of safe code")]
    fn estimates_are_close_and_the_same_in_both_encodings() {
        for count in [0, 1, 2, 10, 100, 500, 1_000, 5_000, 50_000, 200_000] {
            let mut sparse = added(0..count, SPARSE_LEN_MAX);
            let dense = added(0..count, 0);
            assert_eq!(sparse.view().encoding() == Encoding::Sparse, count <= 1_000, "{count}");
            assert_eq!(counts(&sparse), counts(&dense), "{count}");
            let estimate = sparse.view().estimate().expect("the sketch is right");
            assert_eq!(dense.view().estimate(), Ok(estimate), "{count}");
            // Six times the standard error.
            let error_max = (f64::from(count) * 6.0 * 1.04 / 128.0).ceil();
            assert!((estimate as f64 - f64::from(count)).abs() <= error_max, "{estimate} for {count}");
            sparse.make_dense();
            assert_eq!(sparse.view().estimate(), Ok(estimate));
            assert_eq!(counts(&sparse), counts(&dense));
        }
    }

    #[test]
    fn adding_again_changes_nothing() {
        for sparse_len_max in [SPARSE_LEN_MAX, 0] {
            let mut sketch = added(0..50, sparse_len_max);
            let before = sketch.as_bytes().to_vec();
            for element in 0..50u32 {
                assert!(!sketch.raise(Position::of(&element.to_le_bytes()), sparse_len_max));
            }
            assert_eq!(sketch.as_bytes(), before);
        }
    }

    #[test]
    fn an_estimate_holds_until_a_register_changes() {
        for sparse_len_max in [SPARSE_LEN_MAX, 0] {
            let mut sketch = added(0..10, sparse_len_max);
            assert_eq!(sketch.view().last_estimate(), None);
            let (at, bytes) = estimate_field(10);
            sketch.bytes[at..at + bytes.len()].copy_from_slice(&bytes);
            assert_eq!(sketch.view().last_estimate(), Some(10));
            assert!(!sketch.raise(Position::of(&3u32.to_le_bytes()), sparse_len_max));
            assert_eq!(sketch.view().last_estimate(), Some(10));
            assert!((10..20u32).any(|element| sketch.raise(Position::of(&element.to_le_bytes()), sparse_len_max)));
            assert_eq!(sketch.view().last_estimate(), None);
        }
        assert_eq!(Sketch::default().view().last_estimate(), Some(0));
    }

    #[test]
    fn headers_are_looked_at() {
        let right = added(0..5, SPARSE_LEN_MAX).as_bytes().to_vec();
        assert!(SketchRef::parse(&right).is_ok());
        for (at, byte) in [(0, b'h'), (3, b'l'), (4, 2), (4, 255), (4, 0)] {
            let mut wrong = right.clone();
            wrong[at] = byte;
            assert_eq!(SketchRef::parse(&wrong).err(), Some(NoSketch), "byte {at} is {byte}");
        }
        for len in 0..HEADER_LEN {
            assert_eq!(SketchRef::parse(&right[..len]).err(), Some(NoSketch), "{len} bytes");
        }
        let mut dense = added(0..5, 0).as_bytes().to_vec();
        assert!(SketchRef::parse(&dense).is_ok());
        dense.push(0);
        assert_eq!(SketchRef::parse(&dense).err(), Some(NoSketch));
        assert_eq!(SketchRef::parse(&dense[..DENSE_LEN - 1]).err(), Some(NoSketch));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 128 }))]

        #[test]
        fn forged_bytes_never_panic(
            len in 0..40u32,
            is_dense: bool,
            forged in prop::collection::vec((any::<usize>(), any::<u8>()), 0..6),
            cut in prop_oneof![Just(None), any::<usize>().prop_map(Some)],
            tail in prop::collection::vec(any::<u8>(), 0..4),
        ) {
            let mut bytes = added(0..len, if is_dense { 0 } else { SPARSE_LEN_MAX }).as_bytes().to_vec();
            // A sketch of no element is sparse.
            for (at, byte) in forged {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
            if let Some(cut) = cut {
                bytes.truncate(cut % (bytes.len() + 1));
            }
            bytes.extend_from_slice(&tail);
            let Ok(sketch) = SketchRef::parse(&bytes) else { return Ok(()) };
            let mut registers = Registers::default();
            let merged = sketch.merge_into(&mut registers);
            prop_assert_eq!(sketch.estimate(), merged.map(|()| registers.estimate()));
            prop_assert_eq!(sketch.to_sketch().err(), merged.err());
            if let Ok(Some(below)) = sketch.find_below(Position { register: 5_000, count: 60 }) {
                prop_assert_eq!(sketch.to_raised(below, SPARSE_LEN_MAX).err(), merged.err());
            }
            if let Ok(mut own) = sketch.to_sketch() {
                let position = Position { register: 7_777, count: 40 };
                for count in [1, 3, 40] {
                    let position = Position { count, ..position };
                    let below = sketch.find_below(position).expect("the sketch is right");
                    let raised = below.map(|below| sketch.to_raised(below, SPARSE_LEN_MAX).expect("it is right"));
                    let mut other = sketch.to_sketch().expect("it is right");
                    let is_raised = other.raise(position, SPARSE_LEN_MAX);
                    prop_assert_eq!(raised.map(|raised| raised.bytes), is_raised.then_some(other.bytes));
                }
                own.raise(position, SPARSE_LEN_MAX);
                prop_assert!(!own.raise(position, SPARSE_LEN_MAX));
                own.make_dense();
                registers.raise(position);
                prop_assert_eq!(counts(&own), registers.counts());
            }
        }
    }
}
