//! Intersection, union and difference of sets. Knows no keys.

use super::{Set, SetLimits, SetRef};
use crate::hash::element_hash;
use crate::types::Collection;
use std::ops::ControlFlow;
use tenon_ds::packed::{IntText, Item};

/// A member that is looked for in several sets: it is hashed at most once.
struct Probe<'a> {
    item: Item<'a>,
    hash: Option<u64>,
}

impl<'a> Probe<'a> {
    fn new(item: Item<'a>) -> Probe<'a> {
        Probe { item, hash: None }
    }

    fn is_in(&mut self, set: SetRef<'_>) -> bool {
        match set {
            SetRef::Table(members) => {
                let mut room: IntText = IntText::new();
                let bytes = self.item.as_bytes(&mut room);
                members.contains_hashed(bytes, *self.hash.get_or_insert_with(|| element_hash(bytes)))
            }
            SetRef::Ints(_) | SetRef::Packed(_) => set.contains(self.item),
        }
    }
}

/// Calls `visit` with each member that is in all of the sets, until there were `limit`; tells how many there were. No
/// sets at all have none in common.
pub fn intersection(mut sets: Vec<SetRef<'_>>, limit: usize, mut visit: impl FnMut(Item<'_>)) -> usize {
    // What is not in the smallest set is looked for nowhere.
    sets.sort_by_key(|set| set.len());
    let Some((smallest, others)) = sets.split_first() else { return 0 };
    let mut found = 0;
    let _ = smallest.try_for_each(|member| {
        if found == limit {
            return ControlFlow::Break(());
        }
        let mut probe = Probe::new(member);
        if others.iter().all(|&other| probe.is_in(other)) {
            found += 1;
            visit(member);
        }
        ControlFlow::Continue(())
    });
    found
}

/// All members of the sets.
pub fn union(sets: &[SetRef<'_>], limits: SetLimits) -> Set {
    let mut all = Set::default();
    for set in sets {
        set.for_each(|member| {
            all.add(member, limits);
        });
    }
    all
}

/// The members of `first` that are in none of the others.
pub fn difference(first: SetRef<'_>, mut others: Vec<SetRef<'_>>, limits: SetLimits) -> Set {
    let mut rest = Set::default();
    // Either each member of the first is looked for in all others until it is found (about half of them), or each
    // member of the others is taken out of a copy of the first.
    let searches = first.len().saturating_mul(others.len() + 1) / 2;
    let removals = others.iter().fold(first.len(), |sum, other| sum.saturating_add(other.len()));
    if searches <= removals {
        // A member is likeliest to be in the largest.
        others.sort_by_key(|other| std::cmp::Reverse(other.len()));
        first.for_each(|member| {
            let mut probe = Probe::new(member);
            if !others.iter().any(|&other| probe.is_in(other)) {
                rest.add(member, limits);
            }
        });
    } else {
        first.for_each(|member| {
            rest.add(member, limits);
        });
        for other in others {
            let _ = other.try_for_each(|member| {
                rest.remove(member);
                if rest.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        }
    }
    rest
}
