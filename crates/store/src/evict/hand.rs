//! A hand that goes around the keys, and the bar at which one goes. Knows no shard and no lock, nor who needs the room.
//!
//! ```text
//! keys in the order of their tags, each as bad as it is ([`super::worth`]):
//!
//!   2 4 3 1 9 2 5 1 3 8 ...      the bar is at 7: 9 goes, and the next time 8
//!   -------->                    five were looked at: as many as should be, so the bar stays where it is
//! ```
//!
//! The hand looks at each key once a round, and the first that is as bad as the bar goes. The bar rises with each key
//! that goes and falls with each that is looked at, so that one in so many goes: it comes to be where all keys of a
//! round beyond it are as many as have to go. The worst of a few neighbours is a worse choice: where the hand falls at
//! random it comes twice to where nothing bad is left, and not at all to others.

use super::worth::badness;
use crate::keyspace::Keyspace;
use std::sync::atomic::{AtomicU64, Ordering};
use tenon_ds::hash_table::Slot;

/// Bits behind the point in the bar.
const PART_BITS: u32 = 8;
/// What the bar rises by with a key that goes, in parts: 2 % of how bad it is, as badness is a logarithm.
const RISE: u64 = 1_872;
/// No more than so many times the keys that should be looked at lower the bar at once.
const FALL_MAX: u64 = 4;
/// Keys that are asked for from memory together.
const KEYS_AHEAD: usize = 8;

/// How bad a key must be to go, for all hands. Workers write it without waiting for each other: what is lost then comes
/// with the next key.
///
/// In cache lines of its own, as it changes with every key that goes.
#[derive(Debug)]
#[repr(align(128))]
pub struct Bar(AtomicU64);

impl Default for Bar {
    /// So high that no key is as bad: the first that goes says how bad keys are.
    fn default() -> Bar {
        Bar(AtomicU64::new(u64::MAX))
    }
}

impl Bar {
    /// How bad a key must be.
    #[inline]
    pub fn badness(&self) -> u64 {
        self.0.load(Ordering::Relaxed) >> PART_BITS
    }

    /// A key this bad goes, after `looked_at` were looked at, where it should be one in `samples`.
    pub fn note(&self, badness: u64, looked_at: usize, samples: usize) {
        let bar = self.0.load(Ordering::Relaxed);
        let badness = badness << PART_BITS;
        // Where none of many was as bad as the bar it is far too high.
        let bar = match bar {
            u64::MAX => badness,
            bar if badness >> PART_BITS < bar >> PART_BITS => u64::midpoint(bar, badness),
            bar => bar,
        };
        let samples = samples.max(1) as u64;
        let fall = RISE * (looked_at as u64).min(samples * FALL_MAX) / samples;
        self.0.store((bar + RISE).saturating_sub(fall), Ordering::Relaxed);
    }
}

/// What came of a walk through a part of a keyspace.
#[derive(Clone, Copy, Debug)]
pub struct Walked {
    /// The worst key that was looked at, with its badness.
    pub worst: Option<(Slot, u64)>,
    /// Keys that were looked at.
    pub looked_at: usize,
    /// The tag to go on from; `None` at the end.
    pub next: Option<u16>,
}

/// Walks through the keys of a keyspace from a tag on, as far as the first that is as bad as `bar`, and past `most` keys
/// at most. Of several with one tag those behind the last one may be passed by for this round.
pub fn walk(keyspace: &Keyspace, from: u16, bar: u64, most: usize, tick: u32) -> Walked {
    let mut walked = Walked { worst: None, looked_at: 0, next: Some(from) };
    let mut slots = keyspace.slots_from(from);
    loop {
        // Entries lie scattered: some are asked for before the first is looked at. Those behind the one that goes the
        // hand comes to the next time.
        let mut ahead = [None; KEYS_AHEAD];
        for (place, slot) in ahead.iter_mut().zip(slots.by_ref().take(most - walked.looked_at)) {
            keyspace.prefetch_slot(slot);
            *place = Some(slot);
        }
        for slot in ahead.into_iter().flatten() {
            let badness = badness(keyspace.entry(slot), tick);
            walked.looked_at += 1;
            if walked.worst.is_none_or(|(_, most)| badness > most) {
                walked.worst = Some((slot, badness));
            }
            if badness >= bar || walked.looked_at == most {
                walked.next = keyspace.tag(slot).checked_add(1);
                return walked;
            }
        }
        if ahead.contains(&None) {
            walked.next = None;
            return walked;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Meta, NewValue};
    use crate::evict::turnover::bits;
    use crate::hash::KeyHasher;

    const KEYS: u32 = if cfg!(miri) { 100 } else { 2_000 };
    const TICK: u32 = 5_000;

    /// Keys of which each was used at its number's tick.
    fn keys() -> Keyspace {
        let (hasher, mut keyspace) = (KeyHasher::new(3), Keyspace::default());
        for number in 0..KEYS {
            let key = number.to_be_bytes();
            let meta = Meta { access: bits(number, 0), ..Meta::default() };
            keyspace.insert(hasher.hash(&key), &key, NewValue::Int(1), &meta, 0);
        }
        keyspace
    }

    fn number(keyspace: &Keyspace, slot: Slot) -> u32 {
        u32::from_be_bytes(keyspace.entry(slot).key().try_into().expect("four bytes"))
    }

    #[test]
    fn a_round_looks_at_each_key_once() {
        let keyspace = keys();
        for most in [1, 7, 8, 9, 64, usize::MAX] {
            let (mut seen, mut looked_at, mut from) = (Vec::new(), 0, Some(0));
            while let Some(tag) = from {
                let walked = walk(&keyspace, tag, u64::MAX, most, TICK);
                assert!(walked.looked_at <= most);
                seen.extend(walked.worst.map(|(slot, _)| number(&keyspace, slot)));
                (looked_at, from) = (looked_at + walked.looked_at, walked.next);
            }
            let worst = seen.iter().min().copied();
            let seen_all = seen.len();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), seen_all);
            // Those that share a tag with one before them are passed by now and then.
            assert!(looked_at <= KEYS as usize && looked_at + 2 * KEYS as usize / 20 > KEYS as usize, "{looked_at}");
            assert!(worst < Some(KEYS / 20), "{worst:?}");
        }
        assert!(walk(&Keyspace::default(), 0, 0, 5, TICK).worst.is_none());
    }

    #[test]
    fn the_first_that_is_as_bad_as_the_bar_ends_a_walk() {
        let keyspace = keys();
        let badness = |slot: &Slot| badness(keyspace.entry(*slot), TICK);
        let mut all: Vec<u64> = keyspace.slots_from(0).map(|slot| badness(&slot)).collect();
        all.sort_unstable();
        let bar = all[all.len() * 3 / 4];
        let as_bad = all.iter().filter(|badness| **badness >= bar).count();
        let (mut from, mut gone) = (Some(0), 0);
        while let Some(tag) = from {
            let walked = walk(&keyspace, tag, bar, usize::MAX, TICK);
            from = walked.next;
            let (slot, worst) = walked.worst.expect("one was looked at");
            assert_eq!(worst, badness(&slot));
            assert!(keyspace.slots_from(tag).take(walked.looked_at - 1).all(|before| badness(&before) < bar));
            if worst >= bar {
                assert_eq!(keyspace.slots_from(tag).nth(walked.looked_at - 1), Some(slot));
                gone += 1;
            } else {
                assert_eq!(from, None);
            }
        }
        assert!(gone <= as_bad && gone + KEYS as usize / 40 > as_bad, "{gone} of {as_bad}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "safe code that has to be walked a hundred thousand times to show anything")]
    fn the_bar_comes_to_where_one_in_so_many_goes() {
        let mut random = 1u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 33) % below
        };
        for samples in [1, 5, 30] {
            let bar = Bar::default();
            // Badness begins high and then falls, as when other keys come.
            for least in [6_000, 100] {
                let (mut looked_at_all, mut went, mut badness_all) = (0, 0u32, 0);
                for round in 0..4_000 {
                    let (mut worst, mut looked_at) = (0, 0);
                    while (looked_at == 0 || worst < bar.badness()) && looked_at < 6 * samples {
                        (worst, looked_at) = (worst.max(least + next(1_000)), looked_at + 1);
                    }
                    bar.note(worst, looked_at, samples);
                    if round >= 2_000 {
                        (looked_at_all, went, badness_all) =
                            (looked_at_all + looked_at, went + 1, badness_all + worst - least);
                    }
                }
                let (each, mean) = (looked_at_all as f64 / f64::from(went), badness_all / u64::from(went));
                assert!((each / samples as f64 - 1.0).abs() < 0.1, "{each} for each of {samples}");
                // The mean of the worst one in so many: a perfect choice leaves half of that part below it.
                let perfect = 1_000 - 500 / samples as u64;
                assert!(mean + 60 > perfect && mean < perfect + 60, "{mean} {perfect}");
            }
        }
    }
}
