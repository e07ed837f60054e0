//! The names of the eviction policies (<https://redis.io/docs/latest/develop/reference/eviction/>).

/// What is evicted when `maxmemory` is reached; in the order in which Redis lists them, and Tenon's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Of the keys with a deadline, the one not accessed for longest.
    VolatileLru,
    /// Of the keys with a deadline, the one accessed least often.
    VolatileLfu,
    /// Of the keys with a deadline, any.
    VolatileRandom,
    /// Of the keys with a deadline, the one that is due first.
    VolatileTtl,
    /// The key not accessed for longest.
    AllKeysLru,
    /// The key accessed least often.
    AllKeysLfu,
    /// Any key.
    AllKeysRandom,
    /// Nothing: commands that need memory are refused.
    #[default]
    NoEviction,
    /// Tenon's own: the key that has been least useful for its size, those remembered that have gone ([`super::worth`]).
    AllKeysTenon,
}

impl Policy {
    /// Every policy.
    pub const ALL: [Policy; 9] = [
        Policy::VolatileLru,
        Policy::VolatileLfu,
        Policy::VolatileRandom,
        Policy::VolatileTtl,
        Policy::AllKeysLru,
        Policy::AllKeysLfu,
        Policy::AllKeysRandom,
        Policy::NoEviction,
        Policy::AllKeysTenon,
    ];

    /// The names that `maxmemory-policy` knows them by.
    pub const NAMES: [&'static str; 9] = [
        "volatile-lru",
        "volatile-lfu",
        "volatile-random",
        "volatile-ttl",
        "allkeys-lru",
        "allkeys-lfu",
        "allkeys-random",
        "noeviction",
        "allkeys-tenon",
    ];

    /// The name.
    pub fn name(self) -> &'static str {
        Policy::NAMES[self as usize]
    }

    /// The policy of a name.
    pub fn from_name(name: &str) -> Option<Policy> {
        let index = Policy::NAMES.iter().position(|known| known.eq_ignore_ascii_case(name))?;
        Some(Policy::ALL[index])
    }

    /// Whether only keys with a deadline may go.
    pub fn volatile_only(self) -> bool {
        matches!(self, Policy::VolatileLru | Policy::VolatileLfu | Policy::VolatileRandom | Policy::VolatileTtl)
    }

    /// Whether any key is as good as another.
    pub fn is_random(self) -> bool {
        matches!(self, Policy::AllKeysRandom | Policy::VolatileRandom)
    }

    /// Whether the choice depends on when or how often a key was accessed.
    pub fn notes_accesses(self) -> bool {
        self.notes_frequency() || matches!(self, Policy::AllKeysLru | Policy::VolatileLru | Policy::AllKeysTenon)
    }

    /// Whether entries keep a tick and a count of hits, and keys that have gone are remembered.
    #[inline]
    pub fn remembers(self) -> bool {
        self == Policy::AllKeysTenon
    }

    /// Whether entries keep a frequency instead of a clock.
    pub fn notes_frequency(self) -> bool {
        matches!(self, Policy::AllKeysLfu | Policy::VolatileLfu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_policies_agree() {
        for (index, (policy, name)) in Policy::ALL.into_iter().zip(Policy::NAMES).enumerate() {
            assert_eq!(policy as usize, index);
            assert_eq!(policy.name(), name);
            assert_eq!(Policy::from_name(name), Some(policy));
        }
        assert_eq!(Policy::from_name("lru"), None);
    }
}
