//! Where records lie in the order that scans go through, so that a scan's length can be checked. Knows no protocol.

use super::layout::{identity, place};
use std::io::Write as _;
use std::sync::Arc;

/// The places, in order, of the records that are there before a workload begins, which no workload deletes.
#[derive(Clone, Debug)]
pub struct Places {
    all: Arc<[u64]>,
}

impl Places {
    /// Of so many records.
    pub(super) fn of(records: u64, place: impl Fn(u64) -> u64) -> Places {
        let mut all: Vec<u64> = (0..records).map(|number| place(identity(number))).collect();
        all.sort_unstable();
        Places { all: all.into() }
    }

    /// How many records a scan of `len` finds at least that begins at one of this place. More may be there that were inserted
    /// since, or that have its very place.
    pub(super) fn least(&self, place: u64, len: u64) -> u64 {
        let behind = self.all.len() - self.all.partition_point(|other| *other <= place);
        len.min(1 + behind as u64)
    }
}

/// A record's place in YCSB's index over RESP, moved so that none is below 0.
pub(super) fn in_index(identity: u64) -> u64 {
    let mut name = [0; 24];
    (i64::from(place(named(identity, &mut name))) - i64::from(i32::MIN)).unsigned_abs()
}

/// A record's place in the order of names: its digits as if all numbers were equally long.
pub(super) fn by_name(identity: u64) -> u64 {
    let digits = identity.checked_ilog10().unwrap_or(0) + 1;
    // No identity has more than 19 digits.
    identity.saturating_mul(10_u64.pow(19_u32.saturating_sub(digits)))
}

/// `user` and the identity's digits.
fn named(identity: u64, name: &mut [u8; 24]) -> &[u8] {
    let mut left = &mut name[..];
    write!(left, "user{identity}").expect("the longest has 24 bytes");
    let len = 24 - left.len();
    &name[..len]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    #[test]
    fn places_are_in_the_order_that_servers_have() {
        let mut records: Vec<u64> = (0..2_000).collect();
        records.sort_by_key(|number| Key::record(*number).to_vec());
        assert!(records.windows(2).all(|pair| by_name(identity(pair[0])) < by_name(identity(pair[1]))));
        records.sort_by_key(|number| place(&Key::record(*number)));
        assert!(records.windows(2).all(|pair| in_index(identity(pair[0])) <= in_index(identity(pair[1]))));
        // 20 digits do not come out of YCSB's hash.
        assert!((0..2_000).all(|number| identity(number) < 10_u64.pow(19)));
        assert_eq!(by_name(12), 12 * 10_u64.pow(17));
        assert_eq!(
            (named(0, &mut [0; 24]), named(u64::MAX, &mut [0; 24])),
            (&b"user0"[..], &b"user18446744073709551615"[..])
        );
    }

    #[test]
    fn a_scan_finds_as_many_as_are_asked_for_unless_it_comes_to_the_end() {
        let places = Places::of(100, by_name);
        let at = |index: usize| places.all[index];
        assert_eq!(places.least(at(0), 7), 7);
        assert_eq!([places.least(at(95), 5), places.least(at(95), 6), places.least(at(99), 6)], [5, 5, 1]);
        // One that was inserted since may be behind all others.
        assert_eq!(places.least(at(99) + 1, 6), 1);
    }
}
