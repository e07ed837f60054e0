//! The most of something that there was at one time in the last few seconds. Knows not what is counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many seconds count; as many as with Redis.
const SECONDS: u64 = 8;
/// The bits of the amount, of which more counts as the most there is; the second is above them.
const AMOUNT_BITS: u32 = 32;
const AMOUNT_MAX: u64 = (1 << AMOUNT_BITS) - 1;

/// The most in each of the last seconds, which whoever sees some notes.
///
/// ```text
/// 63        32 31         0
/// +-----------+------------+
/// |  second   |   amount   |   the second's last bits choose the word, so that a later one is always more
/// +-----------+------------+
/// ```
#[derive(Debug, Default)]
pub struct RecentMost([AtomicU64; SECONDS as usize]);

impl RecentMost {
    /// Notes that there is so much.
    pub fn note(&self, now_ms: u64, amount: u64) {
        let second = now_ms / 1_000;
        let word = (second << AMOUNT_BITS) | amount.min(AMOUNT_MAX);
        let most = &self.0[(second % SECONDS) as usize];
        // Most of what is noted is no more than was noted before: then the others' view of it stays.
        if most.load(Ordering::Relaxed) < word {
            most.fetch_max(word, Ordering::Relaxed);
        }
    }

    /// The most of the last seconds.
    pub fn get(&self, now_ms: u64) -> u64 {
        let recent = |word: u64| (word >> AMOUNT_BITS) + SECONDS > now_ms / 1_000;
        let words = self.0.iter().map(|most| most.load(Ordering::Relaxed));
        words.filter(|word| recent(*word)).map(|word| word & AMOUNT_MAX).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_ago_does_not_count() {
        let most = RecentMost::default();
        let start = 1_800_000_000_000;
        assert_eq!(most.get(start), 0);
        most.note(start, 500);
        most.note(start + 999, 700);
        most.note(start + 999, 600);
        most.note(start + 3_000, 100);
        assert_eq!([0, 3_000, 7_999].map(|later| most.get(start + later)), [700; 3]);
        assert_eq!([8_000, 10_999, 11_000].map(|later| most.get(start + later)), [100, 100, 0]);
        // In the place of what was noted eight seconds before.
        most.note(start + 8_000, 1);
        most.note(start + 11_000, u64::MAX);
        assert_eq!(most.get(start + 11_000), AMOUNT_MAX);
    }
}
