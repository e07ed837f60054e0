//! Which operation comes next on which record, as YCSB's `CoreWorkload` decides it. Knows no protocol.

use super::layout::Layout;
use super::mix::Mix;
use super::places::Places;
use super::work::Numbers;
use crate::generators::{Choice, Inserted, KeyChooser, Random};
use anyhow::{Result, bail};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// The kinds of operations, by the index of each in results.
pub const KINDS: &[&str] = &["read", "update", "insert", "scan", "read_modify_write", "delete"];
pub(super) const READ: usize = 0;
pub(super) const UPDATE: usize = 1;
pub(super) const INSERT: usize = 2;
pub(super) const SCAN: usize = 3;
pub(super) const READ_MODIFY_WRITE: usize = 4;
pub(super) const DELETE: usize = 5;

/// What one thread does.
#[derive(Clone, Debug)]
pub enum Spec {
    /// Inserts records of these numbers.
    Load(Range<u64>),
    /// Runs a workload.
    Run {
        /// The operations.
        mix: &'static Mix,
        /// The records.
        keys: KeyChooser,
        /// Which records exist that this process knows of.
        inserted: Arc<Inserted>,
        /// What they are called.
        numbers: Numbers,
        /// The longest scan; lengths are even from 1.
        scan_max: u64,
        /// Where the first records lie, if there are scans.
        places: Option<Places>,
        /// Other seeds draw other records.
        seed: u64,
    },
}

/// An operation on a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Read(u64),
    Update(u64, usize),
    Insert(u64),
    Scan(u64, u64),
    ReadModifyWrite(u64, usize),
    Delete(u64),
}

/// Makes another seed of a seed.
const CHOOSING: u64 = 0x9E37_79B9_7F4A_7C15;

/// Draws operations.
#[derive(Debug)]
pub(super) struct Core {
    pub layout: Layout,
    spec: Spec,
    choice: Choice<usize>,
    /// Draws kinds of operations and nothing else. How often a record is drawn again depends on which are there by then: with
    /// one for both, a server that answers in another order would be given other operations.
    choosing: Random,
    random: Random,
    /// Records that this thread has inserted and is to delete, the oldest first.
    to_delete: VecDeque<u64>,
}

impl Core {
    pub fn new(layout: Layout, spec: Spec) -> Core {
        let (weights, seed) = match &spec {
            Spec::Load(_) => ([0.0, 0.0, 1.0, 0.0, 0.0, 0.0], 0),
            Spec::Run { mix, seed, .. } => {
                ([mix.read, mix.update, mix.insert, mix.scan, mix.read_modify_write, mix.delete], *seed)
            }
        };
        let choice = Choice::new(weights.into_iter().zip(0..));
        let (choosing, random) = (Random::new(seed ^ CHOOSING), Random::new(seed));
        Core { layout, spec, choice, choosing, random, to_delete: VecDeque::new() }
    }

    #[inline]
    pub fn next(&mut self) -> Option<Operation> {
        let (random, fields) = (&mut self.random, self.layout.fields as u64);
        match &mut self.spec {
            Spec::Load(numbers) => numbers.next().map(Operation::Insert),
            Spec::Run { keys, inserted, numbers, scan_max, .. } => {
                let mut known = |random: &mut Random| numbers.number(keys.next(random));
                Some(match self.choice.next(&mut self.choosing) {
                    READ => Operation::Read(known(random)),
                    UPDATE => Operation::Update(known(random), random.below(fields) as usize),
                    INSERT => Operation::Insert(numbers.number(inserted.begin())),
                    SCAN => Operation::Scan(known(random), 1 + random.below(*scan_max)),
                    // As long as there is none, one more is inserted.
                    DELETE => match self.to_delete.pop_front() {
                        Some(number) => Operation::Delete(number),
                        None => Operation::Insert(numbers.number(inserted.begin())),
                    },
                    _ => Operation::ReadModifyWrite(known(random), random.below(fields) as usize),
                })
            }
        }
    }

    /// Checks how many records a scan of `len` has found that began at one of this place.
    ///
    /// # Errors
    /// When records are missing, or more came than were asked for.
    pub fn check_scan(&self, place: u64, len: u64, found: u64) -> Result<()> {
        let least = match &self.spec {
            Spec::Run { places: Some(places), .. } => places.least(place, len),
            Spec::Run { places: None, .. } | Spec::Load(_) => 1,
        };
        if found < least || found > len {
            bail!("a scan of {len} records found {found}, where {least} are there");
        }
        Ok(())
    }

    /// The record of this number is stored.
    pub fn inserted(&mut self, number: u64) {
        if let Spec::Run { mix, inserted, numbers, .. } = &self.spec {
            inserted.finish(numbers.index(number));
            if mix.delete > 0.0 {
                self.to_delete.push_back(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::work::Part;
    use super::*;
    use crate::generators::Distribution;

    #[test]
    fn the_mix_is_kept_and_new_records_are_read() {
        let inserted = Arc::new(Inserted::new(100));
        let mix = Mix::of("D").unwrap();
        let keys = KeyChooser::new(mix.distribution, &inserted, 1_000);
        let numbers = Numbers { part: Part::WHOLE, shared: 100, first_new: 100 };
        let spec =
            Spec::Run { mix, keys, inserted: Arc::clone(&inserted), numbers, scan_max: 100, places: None, seed: 1 };
        let mut core = Core::new(Layout::new(10, 100), spec);
        let (mut inserts, mut new) = (0u64, 0u64);
        for _ in 0..20_000 {
            match core.next() {
                Some(Operation::Insert(number)) => {
                    assert_eq!(number, 100 + inserts);
                    inserts += 1;
                    core.inserted(number);
                }
                Some(Operation::Read(number)) => {
                    assert!(number < inserted.present());
                    new += u64::from(number >= 100);
                }
                other => panic!("{other:?} is not in the mix"),
            }
        }
        // Ten standard deviations.
        assert!((690..1_310).contains(&inserts), "{inserts}");
        assert!(new > 15_000, "{new}");
    }

    #[test]
    fn the_kinds_of_operations_do_not_depend_on_when_insertions_are_answered() {
        let kinds = |answered_after: usize| {
            let mix = Mix::of("WF").unwrap();
            let inserted = Arc::new(Inserted::new(100));
            let keys = KeyChooser::new(mix.distribution, &inserted, 1_000);
            let numbers = Numbers { part: Part::WHOLE, shared: 100, first_new: 100 };
            let spec = Spec::Run { mix, keys, inserted, numbers, scan_max: 100, places: None, seed: 1 };
            let mut core = Core::new(Layout::new(1, 1), spec);
            let (mut kinds, mut waiting) = (Vec::new(), VecDeque::new());
            for _ in 0..1_000 {
                let operation = core.next().expect("it never ends");
                kinds.push(std::mem::discriminant(&operation));
                if let Operation::Insert(number) = operation {
                    waiting.push_back(number);
                }
                if waiting.len() > answered_after {
                    core.inserted(waiting.pop_front().expect("some wait"));
                }
            }
            kinds
        };
        assert!(kinds(0) == kinds(40));
    }

    #[test]
    fn loading_inserts_each_record_once() {
        let mut core = Core::new(Layout::new(1, 1), Spec::Load(3..5));
        let all: Vec<_> = std::iter::from_fn(|| core.next()).collect();
        assert_eq!(all, [Operation::Insert(3), Operation::Insert(4)]);
    }

    #[test]
    fn what_was_inserted_is_deleted_once_and_nothing_else() {
        let mix = Mix::of("WG").unwrap();
        let inserted = Arc::new(Inserted::new(100));
        let keys = KeyChooser::new(mix.distribution, &Arc::new(Inserted::new(100)), 0);
        let numbers = Numbers { part: Part { process: 1, processes: 2 }, shared: 100, first_new: 100 };
        let mut core = Core::new(
            Layout::new(10, 100),
            Spec::Run { mix, keys, inserted, numbers, scan_max: 100, places: None, seed: 1 },
        );
        let (mut there, mut deleted) = (std::collections::BTreeSet::new(), 0);
        for _ in 0..20_000 {
            match core.next().expect("it never ends") {
                Operation::Read(number) => assert!(number < 100, "what may go is not read"),
                Operation::Insert(number) => {
                    assert!(number >= 100 && there.insert(number));
                    core.inserted(number);
                }
                Operation::Delete(number) => {
                    assert!(there.remove(&number), "{number} is not there");
                    deleted += 1;
                }
                other => panic!("{other:?} is not in the mix"),
            }
        }
        // Ten standard deviations.
        assert!((4_380..5_620).contains(&deleted), "{deleted}");
    }

    #[test]
    fn every_other_mix_names_only_records_that_exist() {
        for name in ["A", "B", "C", "E", "F", "WC"] {
            let inserted = Arc::new(Inserted::new(100));
            let mix = Mix::of(name).unwrap();
            let keys = KeyChooser::new(mix.distribution, &inserted, 1_000);
            let numbers = Numbers { part: Part { process: 1, processes: 3 }, shared: 100, first_new: 100 };
            let spec = Spec::Run { mix, keys, inserted, numbers, scan_max: 100, places: None, seed: 1 };
            let mut core = Core::new(Layout::new(10, 100), spec);
            for _ in 0..1_000 {
                match core.next().expect("it never ends") {
                    Operation::Read(number) => assert!(number < 100),
                    Operation::Update(number, field) | Operation::ReadModifyWrite(number, field) => {
                        assert!(number < 100 && field < 10);
                    }
                    Operation::Scan(number, len) => assert!(number < 100 && (1..=100).contains(&len)),
                    Operation::Insert(number) => assert!(number >= 100 && number % 3 == 101 % 3),
                    Operation::Delete(_) => panic!("none of these mixes deletes"),
                }
            }
        }
        assert_eq!(Distribution::Latest, Mix::of("D").unwrap().distribution);
    }
}
