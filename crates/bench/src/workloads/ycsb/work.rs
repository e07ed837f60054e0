//! What all threads of all processes of a client do together, and each one's part in it. Knows no socket.

use super::core::Spec;
use super::layout::Layout;
use super::memcache::{Memcache, Updates};
use super::mix::Mix;
use super::places::{Places, by_name, in_index};
use super::postgres::Postgres;
use super::resp::Resp;
use crate::dialects::{Binary, Meta, Text};
use crate::generators::{Inserted, KeyChooser};
use crate::load::{Crew, Workload};
use crate::target::Protocol;
use anyhow::Result;
use std::sync::Arc;

/// The longest scan.
const SCAN_MAX: u64 = 100;

/// What all do together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// Insert so many records.
    Load {
        /// Records.
        records: u64,
    },
    /// Run a workload on records that are there.
    Run {
        /// The operations.
        mix: &'static Mix,
        /// Records that are there.
        records: u64,
        /// The number of the first record to insert: none from here on is there, or an insertion is an overwrite.
        first_new: u64,
        /// How many insertions are expected, as YCSB expects them: twice their share of the operations.
        expected_new: u64,
        /// Other seeds draw other records.
        seed: u64,
    },
}

/// One of the client's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its number, from 0.
    pub process: u64,
    /// How many there are.
    pub processes: u64,
}

impl Part {
    /// All of it.
    pub const WHOLE: Part = Part { process: 0, processes: 1 };
}

/// How a process numbers the records that it knows of: those below `shared` are everybody's; the later ones, which it inserts
/// itself, lie between those of the other processes.
///
/// ```text
/// index    0 ... shared-1   shared ...
/// number   0 ... shared-1   first_new + process, first_new + process + processes, ...
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The process.
    pub part: Part,
    /// How many records all processes know of.
    pub shared: u64,
    /// From where on nobody has inserted any.
    pub first_new: u64,
}

impl Numbers {
    /// The number of the `index`th record.
    #[inline]
    pub(super) fn number(self, index: u64) -> u64 {
        let Numbers { part, shared, first_new } = self;
        if index < shared { index } else { first_new + (index - shared) * part.processes + part.process }
    }

    /// What [`Numbers::number`] was made of.
    #[inline]
    pub(super) fn index(self, number: u64) -> u64 {
        let Numbers { part, shared, first_new } = self;
        if number < shared { number } else { shared + (number - first_new) / part.processes }
    }
}

/// Who is given the workloads, which are of another type in each protocol.
pub trait Driver {
    /// What comes of it.
    type Out;

    /// Drives them.
    ///
    /// # Errors
    /// As [`crate::load::run`].
    fn drive<W: Workload>(self, workloads: Vec<W>) -> Result<Self::Out>;
}

impl Work {
    /// What sets it apart from others of its kind.
    pub fn seed(self) -> u64 {
        match self {
            Work::Load { .. } => 0,
            Work::Run { seed, .. } => seed,
        }
    }

    /// Each thread's share of a part.
    fn specs(self, part: Part, crew: &Crew, place: fn(u64) -> u64) -> Vec<Spec> {
        match self {
            Work::Load { records } => {
                (0..crew.threads).map(|thread| Spec::Load(crew.share_of(records, thread))).collect()
            }
            Work::Run { mix, records, first_new, expected_new, seed } => {
                let inserted = Arc::new(Inserted::new(records));
                let expected = crew.share(expected_new);
                // Records that come and go again are not read.
                let known = if mix.delete > 0.0 { Arc::new(Inserted::new(records)) } else { Arc::clone(&inserted) };
                let keys = KeyChooser::new(mix.distribution, &known, expected.end - expected.start);
                let places = (mix.scan > 0.0).then(|| Places::of(records, place));
                let of_thread = |thread: usize| Spec::Run {
                    mix,
                    keys: keys.clone(),
                    inserted: Arc::clone(&inserted),
                    numbers: Numbers { part, shared: records, first_new },
                    scan_max: SCAN_MAX,
                    places: places.clone(),
                    seed: seed << 32 | part.process << 16 | thread as u64,
                };
                (0..crew.threads).map(of_thread).collect()
            }
        }
    }

    /// Has a part of it driven in a protocol's language.
    ///
    /// # Errors
    /// The driver's.
    pub fn drive<D: Driver>(
        self,
        (part, crew): (Part, &Crew),
        protocol: Protocol,
        layout: &Layout,
        updates: Updates,
        driver: D,
    ) -> Result<D::Out> {
        // memcached's languages have no scans, and so no order.
        let place = if protocol == Protocol::Postgres { by_name } else { in_index };
        let specs = self.specs(part, crew, place).into_iter();
        let layout = || layout.clone();
        match protocol {
            Protocol::Resp | Protocol::RespTls => driver.drive(specs.map(|spec| Resp::new(layout(), spec)).collect()),
            Protocol::Text => driver.drive(specs.map(|spec| Memcache::new(Text, layout(), spec, updates)).collect()),
            Protocol::Meta => driver.drive(specs.map(|spec| Memcache::new(Meta, layout(), spec, updates)).collect()),
            Protocol::Binary => {
                driver.drive(specs.map(|spec| Memcache::new(Binary, layout(), spec, updates)).collect())
            }
            Protocol::Postgres => driver.drive(specs.map(|spec| Postgres::new(layout(), spec)).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_insert_each_record_once() {
        for (processes, threads, records) in [(1, 1, 10), (3, 2, 1_000), (4, 3, 7)] {
            let mut numbers = Vec::new();
            for process in 0..processes {
                let crew = Crew::of_process((7, threads), processes as usize, process as usize);
                for spec in (Work::Load { records }).specs(Part { process, processes }, &crew, by_name) {
                    let Spec::Load(range) = spec else { panic!("a load was asked for") };
                    numbers.extend(range);
                }
            }
            assert_eq!(numbers, (0..records).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_processes_insert_later_is_told_apart() {
        let mut numbers = Vec::new();
        for process in 0..3 {
            let names = Numbers { part: Part { process, processes: 3 }, shared: 100, first_new: 500 };
            for index in 0..120 {
                let number = names.number(index);
                assert_eq!(names.index(number), index);
                numbers.push(number);
            }
        }
        numbers.sort_unstable();
        let shared = (0..100).flat_map(|number| [number; 3]);
        assert_eq!(numbers, shared.chain(500..560).collect::<Vec<_>>());
    }
}
