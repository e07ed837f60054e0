//! What a stream remembers of entries that came with ids of their producers, so that an entry which comes once more is not
//! added again (XADD with IDMP and IDMPAUTO). Knows no command, and no clock: the time is passed in.
//!
//! ```text
//!   by_name:   name -> number of its producer
//!   all:       number -> name, ids in the order in which they came, the same in the order of their texts
//!   by_first:  (milliseconds of a producer's first id, or earlier; number), the earliest first
//! ```
//!
//! An id goes when its entry's id is older than the duration, or when its producer has more than it may. As in Redis it is
//! the first of a producer's ids that is looked at: behind one that stays all stay.

use super::id::StreamId;
use crate::types::MEMBER_DEADLINE_MAX_MS;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;
use tenon_ds::looks::Looks;

/// How much a stream remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerLimits {
    /// For how many seconds.
    pub duration_s: u32,
    /// How many ids of one producer.
    pub ids_max: u32,
}

impl ProducerLimits {
    /// Those of a stream that was told no others.
    pub const INITIAL: ProducerLimits = ProducerLimits { duration_s: 100, ids_max: 100 };
    /// The durations that there are.
    pub const DURATIONS_S: RangeInclusive<u32> = 1..=86_400;
    /// The numbers of ids that there are.
    pub const IDS_MAX: RangeInclusive<u32> = 1..=10_000;

    /// The limits of these numbers, if they are such.
    pub fn new(duration_s: u64, ids_max: u64) -> Option<ProducerLimits> {
        let within = |number: u64, range: RangeInclusive<u32>| {
            u32::try_from(number).ok().filter(|number| range.contains(number))
        };
        let duration_s = within(duration_s, ProducerLimits::DURATIONS_S)?;
        Some(ProducerLimits { duration_s, ids_max: within(ids_max, ProducerLimits::IDS_MAX)? })
    }
}

/// What has happened in a stream's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProducerCounts {
    /// How many ids were remembered.
    pub added: u64,
    /// How many entries came again.
    pub duplicates: u64,
}

/// An id of a producer's, and the entry that it came with.
#[derive(Clone, Debug)]
struct Known {
    id: Box<[u8]>,
    entry: StreamId,
}

#[derive(Clone, Debug)]
struct Producer {
    name: Arc<[u8]>,
    /// In the order in which they came.
    ids: VecDeque<Known>,
    /// The numbers of ids in the order of their texts.
    sorted: Vec<u32>,
    /// The number of the first id; those of others follow, and begin anew behind the highest.
    front: u32,
    /// What `by_first` says of it.
    noted_ms: u64,
}

impl Producer {
    fn place(&self, number: u32) -> usize {
        number.wrapping_sub(self.front) as usize
    }

    /// Where in `sorted` an id is, or would be.
    fn search(&self, id: &[u8]) -> Result<usize, usize> {
        self.sorted.binary_search_by(|&number| (*self.ids[self.place(number)].id).cmp(id))
    }

    fn entry_of(&self, id: &[u8]) -> Option<StreamId> {
        self.search(id).ok().map(|at| self.ids[self.place(self.sorted[at])].entry)
    }

    fn first_ms(&self) -> Option<u64> {
        self.ids.front().map(|known| known.entry.ms)
    }

    /// Adds an id that is not there.
    fn push(&mut self, id: &[u8], entry: StreamId) {
        let at = self.search(id).expect_err("it was not there");
        self.sorted.insert(at, self.front.wrapping_add(self.ids.len() as u32));
        self.ids.push_back(Known { id: id.into(), entry });
    }

    /// Takes the first id out; gives how many bytes it has.
    fn pop(&mut self) -> usize {
        let known = self.ids.front().expect("there is one");
        let at = self.search(&known.id).expect("it is sorted, too");
        self.sorted.remove(at);
        self.front = self.front.wrapping_add(1);
        self.ids.pop_front().map_or(0, |known| known.id.len())
    }

    /// Takes out the id at a place of `sorted`: those that came later move up.
    fn remove(&mut self, at: usize) -> usize {
        let number = self.sorted.remove(at);
        let (front, place) = (self.front, self.place(number));
        for other in &mut self.sorted {
            if other.wrapping_sub(front) as usize > place {
                *other = other.wrapping_sub(1);
            }
        }
        self.ids.remove(place).map_or(0, |known| known.id.len())
    }

    /// Gives memory back of which most is not used any more.
    fn shrink(&mut self) {
        let len = self.ids.len();
        if len < self.ids.capacity() / 4 {
            self.ids.shrink_to(2 * len);
            self.sorted.shrink_to(2 * len);
        }
    }

    fn memory(&self) -> usize {
        self.ids.capacity() * size_of::<Known>() + self.sorted.capacity() * size_of::<u32>()
    }
}

/// The producers of a stream.
#[derive(Clone, Debug)]
pub struct Producers {
    limits: ProducerLimits,
    pub(super) counts: ProducerCounts,
    #[expect(clippy::vec_box, reason = "there may be a million, and whoever adds one waits while the others move")]
    all: Vec<Box<Producer>>,
    by_name: BTreeMap<Arc<[u8]>, u32>,
    by_first: BTreeSet<(u64, u32)>,
    /// How many ids there are.
    ids: usize,
    /// Bytes of names and ids.
    text_bytes: usize,
}

impl Producers {
    pub(super) fn new(limits: ProducerLimits) -> Producers {
        Producers {
            limits,
            counts: ProducerCounts::default(),
            all: Vec::new(),
            by_name: BTreeMap::new(),
            by_first: BTreeSet::new(),
            ids: 0,
            text_bytes: 0,
        }
    }

    /// How much is remembered.
    pub fn limits(&self) -> ProducerLimits {
        self.limits
    }

    /// What has happened so far.
    pub fn counts(&self) -> ProducerCounts {
        self.counts
    }

    /// How many producers there are.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// How many ids there are.
    pub fn ids(&self) -> usize {
        self.ids
    }

    /// The producers from this one on with their ids, in the order in which those came.
    pub fn starting_at(
        &self,
        nth: usize,
    ) -> impl Iterator<Item = (&[u8], impl ExactSizeIterator<Item = (&[u8], StreamId)>)> {
        self.all[nth.min(self.all.len())..]
            .iter()
            .map(|producer| (&*producer.name, producer.ids.iter().map(|known| (&*known.id, known.entry))))
    }

    /// Forgets all ids, and has other limits; gives what was known, for whoever would rather free it elsewhere.
    pub(super) fn set_limits(&mut self, limits: ProducerLimits) -> Producers {
        let others = Producers { counts: self.counts, ..Producers::new(limits) };
        std::mem::replace(self, others)
    }

    /// The entry that came with a producer's id, unless that is past.
    pub(super) fn entry_of(&self, name: &[u8], id: &[u8], now_ms: u64) -> Option<StreamId> {
        let number = *self.by_name.get(name)?;
        let entry = self.all[number as usize].entry_of(id)?;
        (!self.is_past(entry.ms, now_ms)).then_some(entry)
    }

    /// Remembers a producer's id, in the place of an equal one that is past.
    pub(super) fn remember(&mut self, name: &[u8], id: &[u8], entry: StreamId) {
        let number = match self.by_name.get(name) {
            Some(&number) => number,
            None => self.add_producer(name, entry.ms),
        };
        let producer = &mut self.all[number as usize];
        if let Ok(at) = producer.search(id) {
            self.text_bytes -= producer.remove(at);
            self.ids -= 1;
        }
        producer.push(id, entry);
        self.text_bytes += id.len();
        self.ids += 1;
        if producer.ids.len() > self.limits.ids_max as usize {
            self.text_bytes -= producer.pop();
            self.ids -= 1;
        }
        // What is noted may be too early: it is looked at when that time has come. Once a stream's ids go back it must not
        // be too late.
        if producer.first_ms().is_some_and(|first_ms| first_ms < producer.noted_ms) {
            self.note_first(number);
        }
    }

    fn add_producer(&mut self, name: &[u8], first_ms: u64) -> u32 {
        let number = u32::try_from(self.all.len()).expect("memory ends before");
        let name: Arc<[u8]> = name.into();
        self.text_bytes += name.len();
        self.by_name.insert(Arc::clone(&name), number);
        self.by_first.insert((first_ms, number));
        // Most that come once come never again.
        let (ids, sorted) = (VecDeque::with_capacity(1), Vec::with_capacity(1));
        self.all.push(Box::new(Producer { name, ids, sorted, front: 0, noted_ms: first_ms }));
        number
    }

    /// Notes when the first id of a producer came; one that has none goes.
    fn note_first(&mut self, number: u32) {
        let producer = &mut self.all[number as usize];
        self.by_first.remove(&(producer.noted_ms, number));
        if let Some(first_ms) = producer.first_ms() {
            producer.noted_ms = first_ms;
            self.by_first.insert((first_ms, number));
            return;
        }
        let gone = self.all.swap_remove(number as usize);
        self.by_name.remove(&gone.name);
        self.text_bytes -= gone.name.len();
        if let Some(moved) = self.all.get(number as usize) {
            let before = self.all.len() as u32;
            self.by_first.remove(&(moved.noted_ms, before));
            self.by_first.insert((moved.noted_ms, number));
            *self.by_name.get_mut(&moved.name).expect("each has a name") = number;
        }
    }

    /// When an id is past that came at this time: the last millisecond before; `None` for never.
    fn due_ms_of(&self, entry_ms: u64) -> Option<u64> {
        let due_ms = entry_ms.checked_add(u64::from(self.limits.duration_s) * 1_000 - 1)?;
        (due_ms <= MEMBER_DEADLINE_MAX_MS).then_some(due_ms)
    }

    fn is_past(&self, entry_ms: u64, now_ms: u64) -> bool {
        self.due_ms_of(entry_ms).is_some_and(|due_ms| now_ms > due_ms)
    }

    /// When the first id is past, or a time before; `None` where none ever is.
    pub(super) fn due_ms(&self) -> Option<u64> {
        self.by_first.first().and_then(|&(first_ms, _)| self.due_ms_of(first_ms))
    }

    /// Forgets ids that are past, at most so many; tells how many. A producer that was looked at for nothing counts as one: there
    /// may be many.
    pub(super) fn expire(&mut self, now_ms: u64, at_most: usize) -> usize {
        let mut done = 0;
        while let Some(&(first_ms, number)) = self.by_first.first()
            && self.is_past(first_ms, now_ms)
            && done < at_most
        {
            let mut taken = 0;
            while self.all[number as usize].first_ms().is_some_and(|ms| self.is_past(ms, now_ms))
                && done + taken < at_most
            {
                self.text_bytes -= self.all[number as usize].pop();
                self.ids -= 1;
                taken += 1;
            }
            done += taken.max(1);
            self.all[number as usize].shrink();
            self.note_first(number);
        }
        if self.all.len() < self.all.capacity() / 4 {
            self.all.shrink_to(2 * self.all.len());
        }
        done
    }

    /// How many allocations there are to free, about.
    pub fn allocations(&self) -> usize {
        self.ids + 4 * self.all.len() + 1
    }

    /// Bytes of memory, about.
    pub(super) fn memory(&self, looks: Looks) -> usize {
        /// Two counts before the text of a shared name.
        const NAME_HEAD: usize = 2 * size_of::<usize>();
        let each = size_of::<Producer>() + size_of::<(Arc<[u8]>, u32)>() + size_of::<(u64, u32)>() + NAME_HEAD;
        let ids = looks.sum(self.all.len(), |number, _| self.all[number].memory());
        size_of::<Producers>()
            + self.all.capacity() * size_of::<Box<Producer>>()
            + self.all.len() * each
            + ids
            + self.text_bytes
    }
}
