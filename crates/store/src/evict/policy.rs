//! The names of the eviction policies (<https://redis.io/docs/latest/develop/reference/eviction/>).

/// What is evicted when `maxmemory` is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Nothing: commands that need memory are refused.
    #[default]
    NoEviction,
    /// The key not accessed for longest.
    AllKeysLru,
    /// The key accessed least often.
    AllKeysLfu,
    /// Any key.
    AllKeysRandom,
    /// Of the keys with a deadline, the one not accessed for longest.
    VolatileLru,
    /// Of the keys with a deadline, the one accessed least often.
    VolatileLfu,
    /// Of the keys with a deadline, any.
    VolatileRandom,
    /// Of the keys with a deadline, the one that is due first.
    VolatileTtl,
}

impl Policy {
    /// Every policy, with the name that `maxmemory-policy` knows it by.
    pub const ALL: [(Policy, &'static str); 8] = [
        (Policy::NoEviction, "noeviction"),
        (Policy::AllKeysLru, "allkeys-lru"),
        (Policy::AllKeysLfu, "allkeys-lfu"),
        (Policy::AllKeysRandom, "allkeys-random"),
        (Policy::VolatileLru, "volatile-lru"),
        (Policy::VolatileLfu, "volatile-lfu"),
        (Policy::VolatileRandom, "volatile-random"),
        (Policy::VolatileTtl, "volatile-ttl"),
    ];

    /// The name.
    pub fn name(self) -> &'static str {
        Policy::ALL[self as usize].1
    }

    /// The policy of a name.
    pub fn from_name(name: &str) -> Option<Policy> {
        Policy::ALL.iter().find(|(_, n)| n.eq_ignore_ascii_case(name)).map(|(policy, _)| *policy)
    }

    /// Whether only keys with a deadline may go.
    pub fn volatile_only(self) -> bool {
        matches!(self, Policy::VolatileLru | Policy::VolatileLfu | Policy::VolatileRandom | Policy::VolatileTtl)
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
        for (index, (policy, name)) in Policy::ALL.into_iter().enumerate() {
            assert_eq!(policy as usize, index);
            assert_eq!(policy.name(), name);
            assert_eq!(Policy::from_name(name), Some(policy));
        }
        assert_eq!(Policy::from_name("lru"), None);
    }
}
