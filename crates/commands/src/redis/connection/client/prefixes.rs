//! Which prefixes a client may not have together: those of which one begins with another. Knows no client and no text.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::ops::Bound;
use tenon_engine::ds::progress;

/// Two prefixes that a key could have both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overlap<'a> {
    /// The one that is asked for.
    pub(super) prefix: &'a [u8],
    pub(super) other: &'a [u8],
    /// Whether the other one is there; else it is asked for, too.
    pub(super) is_there: bool,
}

/// The overlap that Redis finds, which looks for one of each prefix in turn: first among those that are there, in their order,
/// then among those behind it. Of those that are there only the empty one, of who wants to hear of every key, is the beginning
/// of another.
pub(super) fn first_overlap<'a>(there: &'a BTreeSet<Box<[u8]>>, wanted: &[&'a [u8]]) -> Option<Overlap<'a>> {
    let mut behind = Shortest::default();
    let overlaps = |index: &usize| behind.add(wanted[*index]) || overlapping(there, wanted[*index]).is_some();
    let first = (0..wanted.len()).rev().filter(overlaps).last()?;
    let prefix = wanted[first];
    if let Some(other) = overlapping(there, prefix) {
        return Some(Overlap { prefix, other, is_there: true });
    }
    let other = wanted[first + 1..].iter().find(|other| prefix.starts_with(other) || other.starts_with(prefix));
    Some(Overlap { prefix, other: other.expect("it overlaps with one of them"), is_there: false })
}

/// The first of these prefixes, none of which but the empty one is the beginning of another, that a prefix overlaps with.
///
/// What is between a string and a beginning of it in their order begins with that, too: so the beginning is what comes just
/// before the string. And what begins with a string follows just behind it.
fn overlapping<'s, P: Borrow<[u8]> + Ord>(prefixes: &'s BTreeSet<P>, prefix: &[u8]) -> Option<&'s P> {
    let until = prefixes.range::<[u8], _>((Bound::Unbounded, Bound::Included(prefix))).next_back();
    let behind = || prefixes.range::<[u8], _>((Bound::Excluded(prefix), Bound::Unbounded)).next();
    let empty = prefixes.first().filter(|first| (*first).borrow().is_empty());
    empty
        .or_else(|| until.filter(|shorter| prefix.starts_with((*shorter).borrow())))
        .or_else(|| behind().filter(|longer| (*longer).borrow().starts_with(prefix)))
}

/// Of all prefixes that were added those that begin with no other: whatever overlaps with one that does overlaps with that
/// other, too.
#[derive(Default)]
struct Shortest<'a>(BTreeSet<&'a [u8]>);

impl<'a> Shortest<'a> {
    /// Adds a prefix; tells whether it overlaps with one that was added before.
    fn add(&mut self, prefix: &'a [u8]) -> bool {
        progress::count(1);
        let mut overlaps = false;
        while let Some(&other) = overlapping(&self.0, prefix) {
            overlaps = true;
            if prefix.starts_with(other) {
                return true;
            }
            self.0.remove(other);
        }
        self.0.insert(prefix);
        overlaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn overlap(a: &[u8], b: &[u8]) -> bool {
        a.starts_with(b) || b.starts_with(a)
    }

    /// As Redis looks for it.
    fn by_pairs<'a>(there: &[&'a [u8]], wanted: &[&'a [u8]]) -> Option<Overlap<'a>> {
        wanted.iter().enumerate().find_map(|(index, &prefix)| {
            let of = |others: &[&'a [u8]], is_there| {
                let other = *others.iter().find(|other| overlap(prefix, other))?;
                Some(Overlap { prefix, other, is_there })
            };
            of(there, true).or_else(|| of(&wanted[index + 1..], false))
        })
    }

    /// Few bytes, so that many of them overlap.
    fn prefix() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![vec(0..2u8, 0..5), vec(254..=255u8, 1..4), vec(0..20u8, 2..4)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn it_is_the_one_that_is_found_pair_by_pair(
            named in vec(prefix(), 0..6),
            hears_of_every_key: bool,
            wanted in vec(prefix(), 0..8),
        ) {
            let mut there: BTreeSet<Box<[u8]>> = BTreeSet::new();
            for prefix in named {
                if !there.iter().any(|other| overlap(other, &prefix)) {
                    there.insert(prefix.into());
                }
            }
            if hears_of_every_key {
                there.insert(Box::default());
            }
            let wanted: Vec<&[u8]> = wanted.iter().map(|prefix| &prefix[..]).collect();
            let by_pairs = by_pairs(&there.iter().map(|prefix| &**prefix).collect::<Vec<_>>(), &wanted);
            prop_assert_eq!(first_overlap(&there, &wanted), by_pairs);
        }
    }
}
