//! What a ring held when the process that had it was killed. Knows no record's meaning.
//!
//! Every thread may have been stopped anywhere. What a block's count lacks of what was reserved of it is not there; where that
//! lies, the notes of those who were appending say. It was confirmed to nobody, and is left out: whoever appended something that
//! builds on it did so behind it. Where the notes do not explain a count, nothing is known of that block and those behind it.

use super::Ring;
use super::flight::Flight;
use super::region::lay_out;
use super::{NONE, check, region_len};
use crate::region::Region;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// In one block so many may have been appending whose part in its count is not certain; with more of them it is not tried.
const UNCERTAIN_MAX: usize = 12;

/// What is left of a ring.
#[derive(Debug)]
pub struct Remains {
    ring: Arc<Ring>,
    from: u64,
    /// Everything before it had been reserved.
    head: u64,
}

/// What was found of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where they begin: at `from`, or before it, where a record began that was taken in part and is not whole.
    pub start: u64,
    /// Up to here it is all that there is.
    pub end: u64,
    /// Whether that is all that can have come to its place.
    pub is_all: bool,
    /// The records.
    pub bytes: Vec<u8>,
}

/// Bytes that were reserved for one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    start: u64,
    end: u64,
}

impl Stretch {
    fn new(start: u64, len: u64) -> Option<Stretch> {
        let end = start.checked_add(len)?;
        (len > 0).then_some(Stretch { start, end })
    }

    /// How many of its bytes lie between these positions.
    fn within(&self, start: u64, end: u64) -> u64 {
        self.end.min(end).saturating_sub(self.start.max(start))
    }
}

/// What those were appending who were stopped.
#[derive(Debug, Default)]
struct Stopped {
    /// Reserved, and not filled, or not to the end.
    unfilled: Vec<Stretch>,
    /// Filled; some may not be counted.
    filled: Vec<Stretch>,
    /// Reserved, or not.
    intended: Vec<Stretch>,
    /// Somebody may have reserved something, wherever.
    is_any_anywhere: bool,
}

impl Stopped {
    fn of(ring: &Ring, head: u64) -> Stopped {
        let mut stopped = Stopped::default();
        let notes = ring.notes.iter().flat_map(|notes| notes.iter());
        for flight in notes.filter_map(|note| note.flight()) {
            let (list, start, len) = match flight {
                Flight::Reserved { start, len } => (&mut stopped.unfilled, start, len),
                Flight::Filled { start, len } => (&mut stopped.filled, start, len),
                Flight::Intended { start, len } => (&mut stopped.intended, start, len),
                Flight::Unknown => {
                    stopped.is_any_anywhere = true;
                    continue;
                }
            };
            list.extend(Stretch::new(start, len).filter(|stretch| stretch.end <= head));
        }
        // What another one has had is not what was intended there; and of several who intended the same one has had it at most.
        let had: Vec<Stretch> = stopped.unfilled.iter().chain(&stopped.filled).copied().collect();
        stopped.intended.retain(|intended| had.iter().all(|had| had.within(intended.start, intended.end) == 0));
        stopped.intended.sort_by_key(|intended| (intended.start, intended.end));
        stopped.intended.dedup();
        stopped
    }

    /// Explains what a block's count lacks, and says of what was intended there whether it was reserved; nothing if that is not
    /// certain.
    fn explain(&self, start: u64, end: u64, missing: u64) -> Option<Vec<Stretch>> {
        let is_within = |stretch: &&Stretch| stretch.start >= start && stretch.end <= end;
        // Of one that lies in several blocks a part may be counted.
        let sure: u64 = self.unfilled.iter().filter(is_within).map(|stretch| stretch.end - stretch.start).sum();
        let rest = missing.checked_sub(sure)?;
        if rest > 0 && self.is_any_anywhere {
            return None;
        }
        let counted_perhaps = self.filled.iter().chain(self.unfilled.iter().filter(|stretch| !is_within(stretch)));
        let uncertain: Vec<(&Stretch, bool)> = self
            .intended
            .iter()
            .map(|stretch| (stretch, true))
            .chain(counted_perhaps.map(|stretch| (stretch, false)))
            .filter(|(stretch, _)| stretch.within(start, end) > 0)
            .collect();
        if uncertain.len() > UNCERTAIN_MAX {
            return None;
        }
        let lens: Vec<u64> = uncertain.iter().map(|(stretch, _)| stretch.within(start, end)).collect();
        let sum = |chosen: u32| -> u64 { (0..lens.len()).filter(|&at| chosen >> at & 1 == 1).map(|at| lens[at]).sum() };
        let mut possible = (0..1u32 << lens.len()).filter(|&chosen| sum(chosen) == rest);
        let first = possible.next()?;
        let (mut in_all, mut in_some) = (first, first);
        possible.for_each(|chosen| (in_all, in_some) = (in_all & chosen, in_some | chosen));
        let intended: Vec<usize> = (0..uncertain.len()).filter(|&at| uncertain[at].1).collect();
        if intended.iter().any(|&at| (in_all ^ in_some) >> at & 1 == 1) {
            return None;
        }
        Some(intended.into_iter().filter(|&at| in_all >> at & 1 == 1).map(|at| *uncertain[at].0).collect())
    }
}

impl Remains {
    /// What is left in a region of a ring whose bytes before `from` are known to have been taken. Nothing when the consumer of
    /// a ring that lay there cannot have come so far, and when another ring has the region.
    ///
    /// # Panics
    /// When the lengths are none of a ring.
    pub fn of(region: &Arc<Region>, block_len: usize, blocks: usize, from: u64) -> Option<Remains> {
        check(block_len, blocks, 0);
        if region.len() < region_len(block_len, blocks) {
            return None;
        }
        let ring = lay_out(region, block_len, blocks, region.lend()?);
        let (head, released) = (ring.ends.head.load(Ordering::Relaxed), ring.ends.released.load(Ordering::Relaxed));
        let is_of_this = released <= from && from <= head && from - released <= ring.capacity;
        is_of_this.then(|| Remains { ring, from, head })
    }

    /// Everything before it can be there.
    fn limit(&self) -> u64 {
        self.head.min(self.ring.ends.released.load(Ordering::Relaxed) + self.ring.capacity)
    }

    /// The last of the bytes before `from`, so many at most, as far as they are still there and not older than `oldest`.
    pub fn before(&self, len: usize, oldest: u64) -> Vec<u8> {
        let oldest = oldest.max(self.limit().saturating_sub(self.ring.capacity));
        let start = self.from.saturating_sub(len as u64).max(oldest.min(self.from));
        self.bytes(start, self.from)
    }

    /// The whole records behind `from` that lie before `limit`, without those that were not filled.
    pub fn records(&self, limit: u64) -> Found {
        let (end, mut unfilled, is_all) = self.known();
        let (end, is_all) = (end.min(limit), is_all || end >= limit);
        unfilled.retain(|stretch| stretch.end > self.from && stretch.start < end);
        unfilled.sort_by_key(|stretch| stretch.start);
        let start = unfilled.first().map_or(self.from, |first| first.start.min(self.from));
        let mut bytes = Vec::new();
        let mut at = self.from;
        for stretch in unfilled {
            bytes.extend(self.bytes(at, stretch.start.max(at)));
            at = stretch.end.min(end).max(at);
        }
        bytes.extend(self.bytes(at, end.max(at)));
        Found { start, end, is_all, bytes }
    }

    /// Up to where all is known, a record's end, and what is not filled before; and whether nothing is behind that.
    fn known(&self) -> (u64, Vec<Stretch>, bool) {
        let ring = &*self.ring;
        let mut stopped = Stopped::of(ring, self.head);
        let mut unfilled = stopped.unfilled.clone();
        // What is taken is released behind it, and counts are put back of what is released alone: this block's is there.
        let mut base = self.from & !(ring.block_len - 1);
        while base < self.limit() {
            let end = (base + ring.block_len).min(self.limit());
            let filled = u64::from(ring.block(base).filled.load(Ordering::Relaxed));
            let missing = (end - base).checked_sub(filled);
            let Some(reserved) = missing.and_then(|missing| stopped.explain(base, end, missing)) else {
                return (self.record_end(base), unfilled, false);
            };
            for stretch in reserved {
                stopped.intended.retain(|intended| *intended != stretch);
                // Of its other blocks it lacks all, too; so each of them is explained as this one.
                stopped.unfilled.push(stretch);
                unfilled.push(stretch);
            }
            base = end;
        }
        // Behind the limit nothing has come to its place.
        let end = if self.limit() < self.head { self.record_end(self.limit()) } else { self.head };
        (end.max(self.from), unfilled, true)
    }

    /// The last end of a record at or before a block's start.
    fn record_end(&self, base: u64) -> u64 {
        if base <= self.from {
            return self.from;
        }
        let end = match self.ring.block(base - 1).straddler.load(Ordering::Relaxed) {
            NONE => base,
            start => start.min(base),
        };
        end.max(self.from)
    }

    /// Position behind all that had been reserved.
    pub fn head(&self) -> u64 {
        self.head
    }

    fn bytes(&self, start: u64, end: u64) -> Vec<u8> {
        // SAFETY: nobody else has the region, and no ring fills anything in it.
        unsafe { self.ring.bytes_between(start, end) }.concat()
    }
}

#[cfg(test)]
mod tests {
    use super::super::consumer::Consumer;
    use super::super::flight::Note;
    use super::super::region::ring_in;
    use super::*;
    use proptest::prelude::*;

    const BLOCK_LEN: usize = 16;
    const BLOCKS: usize = 64;
    const START: u64 = 48;
    const THREADS: usize = 4;

    /// What a thread that appends does next.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Next {
        Intend,
        /// With what it took for the head.
        Reserve(u64),
        /// Others were first.
        ReserveAnywhere,
        SayReserved,
        /// The piece that lies in the block of this position.
        Copy(u64),
        SayFilled(u64),
        Count(u64),
        Strike,
    }

    #[derive(Clone, Debug)]
    struct Thread {
        index: usize,
        next: Next,
        record: Stretch,
    }

    /// What was appended.
    #[derive(Debug, Default)]
    struct Made {
        /// Records of which all bytes are there.
        copied: Vec<Stretch>,
        /// Records whose threads went on behind them.
        appended: Vec<Stretch>,
    }

    /// So that no record's bytes are those of another one.
    fn byte(position: u64) -> u8 {
        (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
    }

    impl Thread {
        fn note<'a>(&self, ring: &'a Ring) -> &'a Note {
            &ring.notes.as_ref().expect("it is a region's")[self.index].0
        }

        /// End of the piece of its record in the block of a position.
        fn piece_end(&self, at: u64) -> u64 {
            ((at | (BLOCK_LEN as u64 - 1)) + 1).min(self.record.end)
        }

        /// One step of `Ring::append`, or of `Ring::reserve` and `Ring::fill`, as they take them.
        fn step(&mut self, ring: &Ring, len: u64, made: &mut Made) {
            let head = &ring.ends.head.0;
            let block_of = |at: u64| ring.block(at);
            self.next = match self.next {
                Next::Intend => {
                    let room = ring.ends.released.load(Ordering::Relaxed) + ring.capacity;
                    let expected = head.load(Ordering::Relaxed);
                    if expected + len + (THREADS * 40) as u64 > room {
                        return;
                    }
                    self.record = Stretch { start: expected, end: expected + len };
                    self.note(ring).intend(expected, len);
                    Next::Reserve(expected)
                }
                Next::Reserve(expected) => {
                    let len = self.record.end - self.record.start;
                    match head.compare_exchange(expected, expected + len, Ordering::SeqCst, Ordering::Relaxed) {
                        Ok(_) => Next::SayReserved,
                        Err(_) => Next::ReserveAnywhere,
                    }
                }
                Next::ReserveAnywhere => {
                    let len = self.record.end - self.record.start;
                    let start = self.note(ring).reserve_anywhere(head, len);
                    self.record = Stretch { start, end: start + len };
                    Next::SayReserved
                }
                Next::SayReserved => {
                    self.note(ring).set_reserved(self.record.start);
                    Next::Copy(self.record.start)
                }
                Next::Copy(at) => {
                    let bytes: Vec<u8> = (at..self.piece_end(at)).map(byte).collect();
                    // SAFETY: these bytes are reserved, and there is room.
                    unsafe { ring.bytes.write((at & (ring.capacity - 1)) as usize, &bytes) };
                    if self.piece_end(at) == self.record.end {
                        made.copied.push(self.record);
                        Next::SayFilled(at)
                    } else {
                        block_of(at).straddler.store(self.record.start, Ordering::Relaxed);
                        Next::Count(at)
                    }
                }
                Next::SayFilled(at) => {
                    self.note(ring).set_filled_if_of(self.record.start);
                    Next::Count(at)
                }
                Next::Count(at) => {
                    let end = self.piece_end(at);
                    block_of(at).filled.fetch_add((end - at) as u32, Ordering::SeqCst);
                    if end == self.record.end { Next::Strike } else { Next::Copy(end) }
                }
                Next::Strike => {
                    self.note(ring).strike_if_of(self.record.start);
                    made.appended.push(self.record);
                    Next::Intend
                }
            };
        }

        /// Whether what it was at may be told from what others were at in any case.
        fn is_plain(&self) -> bool {
            let is_long = |stretch: &Stretch| stretch.start / BLOCK_LEN as u64 != (stretch.end - 1) / BLOCK_LEN as u64;
            match self.next {
                Next::Intend => true,
                Next::Copy(_) | Next::SayFilled(_) => !is_long(&self.record),
                _ => false,
            }
        }
    }

    fn take(consumer: &mut Consumer, at_most: u64) {
        consumer.look();
        if let Some(end) = consumer.whole_records().filter(|&end| end <= consumer.consumed() + at_most) {
            consumer.take(end);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 50_000 }))]

        /// Wherever threads and the consumer are stopped: what they had appended is found, in its order, and nothing that was
        /// not there.
        #[test]
        fn what_was_appended_is_found_wherever_threads_are_stopped(
            steps in prop::collection::vec((0usize..=THREADS, 5u64..40), 1..if cfg!(miri) { 60 } else { 400 }),
        ) {
            let region = Arc::new(Region::zeroed(region_len(BLOCK_LEN, BLOCKS)));
            let (ring, mut consumer) = ring_in(&region, BLOCK_LEN, BLOCKS, START);
            let nothing = Stretch { start: 0, end: 0 };
            let mut threads: Vec<Thread> =
                (0..THREADS).map(|index| Thread { index, next: Next::Intend, record: nothing }).collect();
            let mut made = Made::default();
            for (thread, len) in steps {
                match threads.get_mut(thread) {
                    Some(thread) => thread.step(&ring, len, &mut made),
                    None => take(&mut consumer, len * 4),
                }
            }
            let from = consumer.consumed();
            drop((ring, consumer));
            let remains = Remains::of(&region, BLOCK_LEN, BLOCKS, from).expect("the consumer stood there");
            let Found { start, end, is_all, bytes } = remains.records(u64::MAX);
            prop_assert_eq!(start, from, "whole records were taken");

            made.copied.sort_by_key(|record| record.start);
            let found = |record: &&Stretch| record.start >= from && record.end <= end;
            let must: Vec<Stretch> = made.appended.iter().filter(found).copied().collect();
            // Of those that may be there each is, whole, or is not; those that must be are.
            let mut rest = &bytes[..];
            for record in made.copied.iter().filter(found) {
                let record_bytes: Vec<u8> = (record.start..record.end).map(byte).collect();
                match rest.strip_prefix(&record_bytes[..]) {
                    Some(after) => rest = after,
                    None => prop_assert!(!must.contains(record), "{record:?} is missing: {threads:?}"),
                }
            }
            prop_assert!(rest.is_empty(), "there is more than was appended: {threads:?}");
            let first_lost = made.appended.iter().filter(|record| record.end > end).map(|record| record.end).min();
            let uncertain = threads.iter().filter(|thread| !thread.is_plain()).count();
            prop_assert!(!is_all || first_lost.is_none(), "{:?}", threads);
            if uncertain == 0 {
                prop_assert_eq!(first_lost, None, "{:?}", threads);
                prop_assert_eq!(end, remains.head());
            }
            // One that had just reserved, or was about to, is told from the others by the counts.
            let notes = threads.iter().filter_map(|thread| thread.note(&remains.ring).flight());
            let is_intended = |flight: &Flight| matches!(flight, Flight::Intended { .. });
            if uncertain == 1 && notes.filter(is_intended).count() == 1 {
                prop_assert_eq!(first_lost, None, "{:?}", threads);
            }
        }
    }
}
