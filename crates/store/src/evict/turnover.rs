//! Time as a cache has it: how many keys have come since. Knows no key, and of seconds what it is told.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Bits of a tick in an entry: sixteen times as many as a cache of the smallest keys sees while one of them stays.
const TICK_BITS: u32 = 20;
const TICK_MASK: u32 = (1 << TICK_BITS) - 1;
/// What lies further back than this is taken for a use to come, which another worker's clock may have been ahead by.
const AGE_MAX: u32 = TICK_MASK - TICK_MASK / 16;
/// No key is to be older for long: who goes round them makes older ones as old as this ([`aged`]).
pub const AGE_KEPT: u32 = TICK_MASK / 2;
/// Ticks in which all keys are to be gone round: less than half of those from [`AGE_KEPT`] to the age that would be taken for a use
/// to come, as a shard that is held may be passed by once.
pub const TICKS_OF_AGING: u32 = 1 << 17;
/// How many ticks there are before they begin anew.
pub const TICKS: u32 = TICK_MASK + 1;
/// Bits of the count of hits in an entry.
const HITS_BITS: u32 = 4;
/// What the count of hits stops at.
pub const HITS_MAX: u8 = (1 << HITS_BITS) - 1;
/// A hit counts by how long ago the one before was: nothing within one such part of a round, the time in which as many keys
/// come as there are.
const PARTS_OF_ROUND: u64 = 32;
/// What a hit counts at most: that is after two rounds.
const HIT_COUNTS_MAX: u32 = 4;
/// Ticks of a round until somebody has counted the keys.
const FIRST_ROUND: u64 = 512;
/// Bits behind the point in the parts of a round that a tick is.
const PART_BITS: u32 = 32;
/// Seconds of which it is known at which tick they began.
const SECONDS_KNOWN: usize = 1_024;
/// A tick for each such part of `maxmemory`: with keys as small as they get, 65,536 of them fill it.
const TICKS_OF_LIMIT_LOG2: u32 = 22;
/// Keys to a tick where there is no limit.
const KEYS_UNLIMITED: u64 = 4_096;

/// The ticks of a cache, one for so many keys that come, and one for each second, and when they were.
///
/// What is evicted should not depend on how fast the cache is filled: at a hundred thousand keys a second, those of the
/// last second are all there is, and once a day, all are of long ago. So age is counted in keys that have come since.
/// For clients, who ask how many seconds ago a key was used, the ticks of the last 1,024 seconds are kept; what is older
/// is told as if there had been one a second.
///
/// In cache lines of its own: every batch reads the tick.
#[derive(Debug)]
#[repr(align(128))]
pub struct Turnover {
    tick: AtomicU32,
    /// The part of a round that a tick is, in fixed point.
    parts_a_tick: AtomicU64,
    /// The second that began last.
    second: AtomicU32,
    /// For each of the last seconds, by its number's low bits: the number, and below it the tick when it began.
    began: Box<[AtomicU64]>,
}

/// Keys to a tick at this `maxmemory`: few enough that a key's age is known to a small part of its stay, and so many that
/// workers seldom meet here.
#[inline]
pub fn keys_to_tick(limit: u64) -> u64 {
    if limit == 0 { KEYS_UNLIMITED } else { (limit >> TICKS_OF_LIMIT_LOG2).max(1) }
}

/// It is the same only as itself.
impl PartialEq for Turnover {
    fn eq(&self, other: &Turnover) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Turnover {}

impl Default for Turnover {
    fn default() -> Turnover {
        Turnover {
            tick: AtomicU32::new(0),
            parts_a_tick: AtomicU64::new(parts_a_tick(FIRST_ROUND)),
            second: AtomicU32::new(0),
            began: (0..SECONDS_KNOWN).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl Turnover {
    /// The tick now.
    #[inline]
    pub fn tick(&self) -> u32 {
        self.tick.load(Ordering::Relaxed) & TICK_MASK
    }

    /// So many keys have come as make a tick; gives the tick that begins.
    pub fn advance(&self) -> u32 {
        self.tick.fetch_add(1, Ordering::Relaxed).wrapping_add(1) & TICK_MASK
    }

    /// Says how many ticks a round takes: as many as the keys that are there made when they came.
    pub fn note_round(&self, ticks: u64) {
        self.parts_a_tick.store(parts_a_tick(ticks), Ordering::Relaxed);
    }

    /// The bits of an entry with these that is used now, at this tick.
    ///
    /// Hits that follow one another at once tell little about the next ones, so they count as one, and a busy key's bits
    /// mostly stay as they are. Who is asked for after a long time is likely to be asked for after as long a time again, so
    /// such hits count for more. The first one always counts.
    #[inline]
    pub fn used_again(&self, now: u32, access: u32) -> u32 {
        let gap = u64::from(age(now, access));
        let parts = (gap * self.parts_a_tick.load(Ordering::Relaxed)) >> PART_BITS;
        // One from a part on, and one more with each four times as many.
        let counts = parts.checked_ilog2().map_or(0, |log2| (1 + log2 / 2).min(HIT_COUNTS_MAX)) as u8;
        let hits = hits(access);
        bits(now, hits + counts.max(u8::from(hits == 0)))
    }

    /// Says which second it is of a clock that is never set. Whoever is behind says nothing.
    #[inline]
    pub fn note_second(&self, second: u32) {
        let known = self.second.load(Ordering::Relaxed);
        if known < second {
            self.turn(known, second);
        }
    }

    #[cold]
    fn turn(&self, known: u32, second: u32) {
        // One of those who see the new second turns it.
        if self.second.compare_exchange(known, second, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return;
        }
        // Those that nobody has seen go by as well, as far as they are kept.
        let passed = if known == 0 { 1 } else { second - known };
        let kept = passed.min(SECONDS_KNOWN as u32);
        let first = self.tick.fetch_add(passed, Ordering::Relaxed).wrapping_add(passed - kept);
        for step in 1..=kept {
            let number = second.wrapping_sub(kept - step);
            let word = u64::from(number) << 32 | u64::from(first.wrapping_add(step) & TICK_MASK);
            self.began[number as usize % SECONDS_KNOWN].store(word, Ordering::Relaxed);
        }
    }

    /// The tick with which second `number` began, if that is known.
    fn began(&self, number: u32) -> Option<u32> {
        let word = self.began[number as usize % SECONDS_KNOWN].load(Ordering::Relaxed);
        ((word >> 32) as u32 == number && word != 0).then_some(word as u32)
    }

    /// Seconds since an entry with these bits was used, when it is `now`, a tick; and exactly so within what is known.
    pub fn seconds_since(&self, now: u32, access: u32) -> u32 {
        let second = self.second.load(Ordering::Relaxed);
        let (used, mut oldest) = (access >> HITS_BITS, now);
        for ago in 0..SECONDS_KNOWN as u32 {
            let Some(began) = self.began(second.wrapping_sub(ago)) else {
                return ago.saturating_sub(1) + ticks_between(oldest, used);
            };
            if ticks_between(now, began) >= ticks_between(now, used) {
                return ago;
            }
            oldest = began;
        }
        SECONDS_KNOWN as u32 - 1 + ticks_between(oldest, used)
    }

    /// The bits of an entry that was used `seconds` before `now`, a tick.
    pub fn used_before(&self, now: u32, seconds: u32) -> u32 {
        let second = self.second.load(Ordering::Relaxed);
        let known = (0..SECONDS_KNOWN as u32).take_while(|ago| self.began(second.wrapping_sub(*ago)).is_some());
        let (ago, tick) = match known.take_while(|ago| *ago <= seconds).last() {
            Some(ago) => (ago, self.began(second.wrapping_sub(ago)).unwrap_or(now)),
            None => (0, now),
        };
        let further = (seconds - ago).min(AGE_KEPT.saturating_sub(ticks_between(now, tick)));
        bits(tick.wrapping_sub(further), 0)
    }
}

/// The bits of an entry that is used at this tick, with so many hits.
#[inline]
pub fn bits(tick: u32, hits: u8) -> u32 {
    (tick & TICK_MASK) << HITS_BITS | u32::from(hits.min(HITS_MAX))
}

/// The part of a round of so many ticks that one is, in fixed point.
fn parts_a_tick(round: u64) -> u64 {
    (PARTS_OF_ROUND << PART_BITS) / round.max(1)
}

/// How often an entry with these bits was used since it came, hits counted by how long ago the one before was.
#[inline]
pub fn hits(access: u32) -> u8 {
    access as u8 & HITS_MAX
}

/// Ticks from when an entry with these bits was used to `now`; none where it was used after that, by another worker.
#[inline]
pub fn age(now: u32, access: u32) -> u32 {
    ticks_between(now, access >> HITS_BITS)
}

/// What becomes of the bits of an entry that is older than is kept; none for others.
#[inline]
pub fn aged(now: u32, access: u32) -> Option<u32> {
    (age(now, access) > AGE_KEPT).then(|| bits(now.wrapping_sub(AGE_KEPT), hits(access)))
}

#[inline]
fn ticks_between(now: u32, then: u32) -> u32 {
    let ticks = now.wrapping_sub(then) & TICK_MASK;
    if ticks > AGE_MAX { 0 } else { ticks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_hold_tick_and_hits() {
        for (tick, count) in [(0, 0), (1, 3), (TICK_MASK, HITS_MAX)] {
            let access = bits(tick, count);
            assert!(access < 1 << 24);
            assert_eq!((age(tick.wrapping_add(5), access), hits(access)), (5, count));
        }
        assert_eq!(hits(bits(0, 200)), HITS_MAX);
        // Used later than this worker's clock knows.
        assert_eq!(age(10, bits(12, 0)), 0);
        assert_eq!(age(3, bits(TICK_MASK - 1, 0)), 5);
    }

    #[test]
    fn hits_count_by_how_long_ago_the_one_before_was() {
        let turnover = Turnover::default();
        for round in [320, 3_200, 100_000] {
            turnover.note_round(round);
            let part = round as u32 / 32;
            let counted = |gap: u32, before: u8| {
                let access = turnover.used_again(3 + gap, bits(3, before));
                assert_eq!(age(3 + gap, access), 0);
                hits(access) - before
            };
            // The first hit counts, others when some time has passed.
            assert_eq!((counted(0, 0), counted(0, 1), counted(part - 1, 0), counted(part - 1, 1)), (1, 0, 1, 0));
            let gaps = [1, 3, 4, 15, 16, 63, 64, 160].map(|parts| counted(parts * part + 1, 1));
            assert_eq!(gaps, [1, 1, 2, 2, 3, 3, 4, 4], "a round of {round}");
            assert_eq!(turnover.used_again(500, bits(0, HITS_MAX)), bits(500, HITS_MAX));
        }
        turnover.note_round(0);
        assert_eq!(hits(turnover.used_again(5, bits(3, 1))), 5);
    }

    #[test]
    fn seconds_are_told_of_ticks() {
        let turnover = Turnover::default();
        let mut used = Vec::new();
        for second in 1_000..1_100 {
            turnover.note_second(second);
            turnover.note_second(second);
            used.push(bits(turnover.tick(), 2));
            (0..second % 7 * 10).for_each(|_| {
                turnover.advance();
            });
        }
        let now = turnover.tick();
        for (ago, access) in used.iter().rev().enumerate() {
            assert_eq!(turnover.seconds_since(now, *access), ago as u32);
            let before = turnover.used_before(now, ago as u32);
            assert_eq!(turnover.seconds_since(now, before), ago as u32);
        }
        // Before it began there was a tick each second.
        assert_eq!(turnover.seconds_since(now, turnover.used_before(now, 5_000)), 5_000);
        // A minute in which nothing happened.
        turnover.note_second(1_159);
        let now = turnover.tick();
        assert_eq!(turnover.seconds_since(now, used[99]), 60);
        assert_eq!(turnover.seconds_since(now, used[0]), 159);
        // What another worker's clock says that is behind turns nothing back, and what was known is not to come once more.
        for second in [1_150, 1_159, 1_158, 1_159] {
            turnover.note_second(second);
            assert_eq!((turnover.tick(), turnover.seconds_since(now, used[99])), (now, 60));
        }
    }

    #[test]
    fn what_is_older_than_can_be_told_is_old() {
        let turnover = Turnover::default();
        turnover.note_second(77);
        let now = turnover.tick();
        let old = turnover.used_before(now, u32::MAX);
        assert_eq!((age(now, old), aged(now, old)), (AGE_KEPT, None));
        (0..2 * TICKS_OF_AGING).for_each(|_| {
            turnover.advance();
        });
        let now = turnover.tick();
        assert_eq!(age(now, old), AGE_KEPT + 2 * TICKS_OF_AGING, "it is older by now");
        let kept = aged(now, old | 7).expect("it is older than is kept");
        assert_eq!((age(now, kept), hits(kept)), (AGE_KEPT, 7));
        assert!(age(now, turnover.used_before(now, u32::MAX)) <= AGE_KEPT);
    }

    #[test]
    fn ticks_come_with_a_part_of_the_limit() {
        assert_eq!([0, 1 << 20, 64 << 20, 1 << 30].map(keys_to_tick), [4_096, 1, 16, 256]);
    }
}
