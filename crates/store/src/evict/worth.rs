//! What a key is worth under `allkeys-tenon`. Knows neither the limit nor who needs the room.
//!
//! A key's worth is its hits, to the power of one and a half, over the keys that have come since the last one, over the
//! square root of its size. A key that nobody has asked for again counts as a fifth of a hit, so it stays a fifteenth as
//! long as one that somebody has: most are never asked for again, and a scan passes without taking anything with it. A
//! key that comes back soon after it was evicted was misjudged: it begins with the hits that it had and three more
//! ([`super::Ghosts`]).

use super::turnover::{self, HITS_MAX};
use crate::entry::EntryRef;

/// Hits that a key which comes back begins with, beside those that it had.
const COMING_BACK: u8 = 3;
/// Steps of logarithms to base 2.
const STEP: u32 = 1 << STEP_BITS;
const STEP_BITS: u32 = 8;
/// The size's logarithm counts a half: requests and bytes are both to be served well.
const SIZE_PART: u32 = 2;

/// `1.5 * log2(hits + 0.2)` in steps, from that of no hit on.
const HITS_WORTH: [u32; HITS_MAX as usize + 1] =
    [0, 993, 1328, 1536, 1687, 1805, 1902, 1985, 2057, 2121, 2178, 2230, 2277, 2321, 2362, 2399];

/// The base-2 logarithm in steps, read off a straight line between powers of two.
fn log2(number: u64) -> u32 {
    let number = number.max(1);
    let whole = number.ilog2();
    let part = (number << (63 - whole) << 1) >> (64 - STEP_BITS);
    whole * STEP + part as u32
}

/// How willingly an entry is let go at this tick: the largest goes first.
pub fn badness(entry: EntryRef<'_>, tick: u32) -> u64 {
    let access = entry.access();
    badness_of(turnover::age(tick, access), turnover::hits(access), entry.rough_memory())
}

/// The same for an entry of `bytes`, whose last hit was `age` ticks ago.
fn badness_of(age: u32, hits: u8, bytes: usize) -> u64 {
    let most = HITS_WORTH[HITS_WORTH.len() - 1];
    u64::from(log2(u64::from(age) + 1) + log2(bytes as u64) / SIZE_PART + most - HITS_WORTH[usize::from(hits)])
}

/// The hits that a key begins with, if it is remembered with so many.
pub fn hits_again(remembered: u8) -> u8 {
    (remembered + COMING_BACK).min(HITS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key without a hit, in hits.
    const NO_HIT: f64 = 0.2;
    /// The power of the hits.
    const POWER: f64 = 1.5;

    #[test]
    fn the_table_of_hits_is_their_logarithm() {
        let steps = |hits: f64| ((hits + NO_HIT) / NO_HIT).log2() * POWER * f64::from(STEP);
        for (hits, worth) in HITS_WORTH.iter().enumerate() {
            assert!((steps(hits as f64) - f64::from(*worth)).abs() < 1.0, "{hits}: {worth}, {}", steps(hits as f64));
        }
    }

    #[test]
    fn logarithms_are_near() {
        for number in (1..2_000).chain([1 << 20, 3 << 30, u64::MAX]) {
            let exact = (number as f64).log2() * f64::from(STEP);
            assert!((f64::from(log2(number)) - exact).abs() < 0.09 * f64::from(STEP), "{number}");
        }
        assert_eq!(log2(0), 0);
    }

    #[test]
    fn what_is_used_more_or_later_or_smaller_stays() {
        assert!(badness_of(100, 0, 100) > badness_of(50, 0, 100));
        assert!(badness_of(100, 0, 100) > badness_of(1_000, 1, 100));
        assert!(badness_of(100, 0, 100) < badness_of(10_000, 1, 100));
        assert!(badness_of(100, 1, 100) > badness_of(100, 2, 100));
        assert!(badness_of(100, 1, 1_000) > badness_of(100, 1, 500));
        assert!(badness_of(100, 1, 1_000) < badness_of(150, 1, 500));
        assert!(hits_again(0) == 3 && hits_again(HITS_MAX) == HITS_MAX);
        // Nothing overflows at the ends.
        assert!(badness_of(u32::MAX, 0, usize::MAX) > badness_of(0, HITS_MAX, 0));
    }
}
