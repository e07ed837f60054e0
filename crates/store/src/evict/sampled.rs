//! Sampled eviction: the worst of a few keys chosen at random. Knows neither the limit nor who needs the room.

use super::{Policy, worth};
use crate::access::AccessClock;
use crate::entry::EntryRef;
use crate::keyspace::Keyspace;
use tenon_ds::hash_table::Slot;

/// How to choose.
#[derive(Clone, Copy, Debug)]
pub struct Sampling {
    /// The policy.
    pub policy: Policy,
    /// Keys to look at (`maxmemory-samples`).
    pub samples: usize,
    /// The present, for idle times and frequencies.
    pub clock: AccessClock,
}

/// How willingly a key is let go: the largest goes first.
fn badness(entry: EntryRef<'_>, how: &Sampling) -> u64 {
    match how.policy {
        Policy::NoEviction | Policy::AllKeysRandom | Policy::VolatileRandom => 0,
        Policy::AllKeysTenon => worth::badness(entry, how.clock.tick()),
        Policy::AllKeysLru | Policy::VolatileLru => u64::from(how.clock.idle_seconds(entry.access())),
        Policy::AllKeysLfu | Policy::VolatileLfu => u64::from(u8::MAX - how.clock.frequency(entry.access())),
        Policy::VolatileTtl => u64::MAX - entry.deadline_ms().unwrap_or(u64::MAX),
    }
}

/// The key of `keyspace` that should go, with its badness; `None` when the policy lets none go.
pub fn victim(keyspace: &Keyspace, how: &Sampling, mut random: impl FnMut() -> u32) -> Option<(Slot, u64)> {
    let volatile = how.policy.volatile_only();
    if how.policy == Policy::NoEviction || keyspace.is_empty() || volatile && keyspace.expiring() == 0 {
        return None;
    }
    let mut worst: Option<(Slot, u64)> = None;
    let mut consider = |slot: Slot| {
        let badness = badness(keyspace.entry(slot), how);
        if worst.is_none_or(|(_, most)| badness > most) {
            worst = Some((slot, badness));
        }
    };
    let mut looked_at = 0;
    // A key with a deadline is found quickly when one in eight has one.
    for _ in 0..how.samples * 8 {
        let slot = keyspace.sample(random())?;
        if !volatile || keyspace.entry(slot).deadline_ms().is_some() {
            consider(slot);
            looked_at += 1;
            if looked_at == how.samples {
                break;
            }
        }
    }
    if looked_at == 0 {
        let slots = keyspace.volatile_slots();
        for _ in 0..how.samples {
            consider(slots[random() as usize % slots.len()]);
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Noting;
    use crate::entry::{Meta, NewValue};
    use crate::hash::KeyHasher;

    const KEYS: u32 = if cfg!(miri) { 100 } else { 1_000 };

    fn evict_half(policy: Policy, noting: Noting, meta: impl Fn(u32) -> Meta) -> Vec<u32> {
        let hasher = KeyHasher::new(3);
        let clock = AccessClock::new(noting, 1_000_000_000);
        let mut keyspace = Keyspace::default();
        for number in 0..KEYS {
            let key = number.to_be_bytes();
            keyspace.insert(hasher.hash(&key), &key, NewValue::Int(1), &meta(number), 0);
        }
        let how = Sampling { policy, samples: 10, clock };
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 32) as u32
        };
        for _ in 0..KEYS / 2 {
            let Some((slot, _)) = victim(&keyspace, &how, &mut random) else { break };
            keyspace.remove(slot);
        }
        let mut left = Vec::new();
        keyspace.scan(0, usize::MAX, |entry| left.push(u32::from_be_bytes(entry.key().try_into().unwrap())));
        left
    }

    fn mean(numbers: &[u32]) -> u32 {
        numbers.iter().sum::<u32>() / numbers.len() as u32
    }

    #[test]
    fn the_worst_go_first() {
        let access = |access| Meta { access, ..Meta::default() };
        let left = evict_half(Policy::AllKeysLru, Noting::Clock, access);
        assert!(left.len() as u32 == KEYS / 2 && mean(&left) > KEYS * 2 / 3, "{}", mean(&left));
        let frequency = Noting::Frequency { log_factor: 10, decay_minutes: 0 };
        let left = evict_half(Policy::AllKeysLfu, frequency, |n| access(n / 4));
        assert!(left.len() as u32 == KEYS / 2 && mean(&left) > KEYS * 2 / 3, "{}", mean(&left));
        let deadline = |n: u32| Meta { deadline_ms: Some(1 << 40 | u64::from(n)), ..Meta::default() };
        let left = evict_half(Policy::VolatileTtl, Noting::Clock, deadline);
        assert!(left.len() as u32 == KEYS / 2 && mean(&left) > KEYS * 2 / 3, "{}", mean(&left));
    }

    #[test]
    fn volatile_policies_leave_other_keys() {
        let policies = [Policy::VolatileLru, Policy::VolatileLfu, Policy::VolatileRandom, Policy::VolatileTtl];
        for policy in policies.into_iter().take(if cfg!(miri) { 1 } else { 4 }) {
            // One key in a hundred has a deadline: sampling alone hardly finds them.
            let meta = |n: u32| Meta { deadline_ms: (n.is_multiple_of(100)).then_some(1 << 40), ..Meta::default() };
            let left = evict_half(policy, Noting::Clock, meta);
            assert_eq!(left.len() as u32, KEYS - KEYS / 100);
            assert!(left.iter().all(|n| !n.is_multiple_of(100)));
        }
        assert_eq!(evict_half(Policy::NoEviction, Noting::Clock, |_| Meta::default()).len() as u32, KEYS);
        assert_eq!(evict_half(Policy::AllKeysRandom, Noting::Clock, |_| Meta::default()).len() as u32, KEYS / 2);
    }
}
