//! Intersection, union and difference of sets. Knows no keys.
//!
//! The members of a large set are taken some at a time. All memory that the searches for them read is asked for before
//! the first search, so that none waits for another's.

use super::members::TOGETHER;
use super::{Members, Set, SetForm, SetLimits, SetRef};
use crate::hash::element_hash;
use crate::types::Collection;
use std::cmp::Reverse;
use std::ops::ControlFlow;
use tenon_ds::packed::{IntText, Item};

/// The most sets of which a union is found by searching those before: beyond, a set of all costs less.
const SEARCHED_MAX: usize = 4;

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

/// Calls `visit` with some members of a set after the others, each with its hash, until it breaks off.
fn some_at_a_time<'a>(
    members: &'a Members,
    mut visit: impl FnMut(&mut Vec<(&'a [u8], u64)>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut all = members.iter();
    let mut some = Vec::with_capacity(TOGETHER);
    loop {
        some.clear();
        some.extend(all.by_ref().take(TOGETHER).map(|member| (member, element_hash(member))));
        if some.is_empty() {
            return ControlFlow::Continue(());
        }
        visit(&mut some)?;
    }
}

/// Leaves of some members those that are in a set, or those that are not.
fn retain(some: &mut Vec<(&[u8], u64)>, set: SetRef<'_>, if_there: bool) {
    match set {
        SetRef::Table(members) => {
            let mut are_there = members.contain(some).into_iter();
            some.retain(|_| are_there.next() == Some(if_there));
        }
        SetRef::Ints(_) | SetRef::Packed(_) => some.retain(|(member, _)| set.contains(Item::Bytes(member)) == if_there),
    }
}

/// Calls `visit` with each member of a set that is in all of the others, or in none of them, until it breaks off.
fn search<'a>(
    set: SetRef<'a>,
    others: &[SetRef<'_>],
    if_there: bool,
    mut visit: impl FnMut(Item<'a>) -> ControlFlow<()>,
) {
    let _ = match set {
        // Nothing is looked for, so nothing is hashed.
        _ if others.is_empty() => set.try_for_each(visit),
        SetRef::Table(members) => some_at_a_time(members, |some| {
            others.iter().for_each(|&other| retain(some, other, if_there));
            some.iter().try_for_each(|(member, _)| visit(Item::Bytes(member)))
        }),
        SetRef::Ints(_) | SetRef::Packed(_) => set.try_for_each(|member| {
            let mut probe = Probe::new(member);
            match others.iter().all(|&other| probe.is_in(other) == if_there) {
                true => visit(member),
                false => ControlFlow::Continue(()),
            }
        }),
    };
}

/// Whether a set has more members than any small form holds.
fn is_large(set: SetRef<'_>, limits: SetLimits) -> bool {
    matches!(set, SetRef::Table(_)) && set.len() > limits.ints.max(limits.members)
}

/// The same members in a set of its own.
fn copy(set: SetRef<'_>, limits: SetLimits) -> Set {
    match set {
        SetRef::Table(members) if is_large(set, limits) => SetForm::Table(members.clone()).into(),
        _ => {
            let mut copied = Set::default();
            add_all(&mut copied, set, limits);
            copied
        }
    }
}

fn add_all(to: &mut Set, set: SetRef<'_>, limits: SetLimits) {
    match (to.elements_mut(), set) {
        (SetForm::Table(all), SetRef::Table(members)) => {
            let _ = some_at_a_time(members, |some| {
                all.prefetch_all(some);
                for &(member, hash) in some.iter() {
                    all.add_hashed(member, hash);
                }
                ControlFlow::Continue(())
            });
        }
        _ => set.for_each(|member| {
            to.add(member, limits);
        }),
    }
}

fn remove_all(from: &mut Set, set: SetRef<'_>) {
    let go_on_unless = |is_empty: bool| if is_empty { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let _ = match (from.elements_mut(), set) {
        (SetForm::Table(rest), SetRef::Table(members)) => some_at_a_time(members, |some| {
            rest.prefetch_all(some);
            for &(member, hash) in some.iter() {
                rest.remove_hashed(member, hash);
            }
            go_on_unless(rest.is_empty())
        }),
        _ => set.try_for_each(|member| {
            from.remove(member);
            go_on_unless(from.is_empty())
        }),
    };
}

/// Calls `visit` with each member that is in all of the sets, until there were `limit`; tells how many there were. No
/// sets at all have none in common.
pub fn intersection(mut sets: Vec<SetRef<'_>>, limit: usize, mut visit: impl FnMut(Item<'_>)) -> usize {
    // What is not in the smallest set is looked for nowhere.
    sets.sort_by_key(|set| set.len());
    let Some((smallest, others)) = sets.split_first().filter(|_| limit > 0) else { return 0 };
    let mut found = 0;
    search(*smallest, others, true, |member| {
        found += 1;
        visit(member);
        if found < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    found
}

/// Whether so many members that are in all of the sets are found where no more than `looks` of the smallest one are looked for.
pub fn have_in_common(mut sets: Vec<SetRef<'_>>, wanted: usize, looks: usize) -> bool {
    sets.sort_by_key(|set| set.len());
    let Some((smallest, others)) = sets.split_first().filter(|_| wanted <= looks) else { return false };
    let (mut found, mut left) = (0, looks);
    let _ = smallest.try_for_each(|member| {
        let mut probe = Probe::new(member);
        found += usize::from(others.iter().all(|&other| probe.is_in(other)));
        left -= 1;
        if found < wanted && left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    found >= wanted
}

/// All members of the sets.
pub fn union(sets: &[SetRef<'_>], limits: SetLimits) -> Set {
    // To copy a table takes less than to add its members one after the other.
    let large = (0..sets.len()).filter(|&index| is_large(sets[index], limits));
    let first = large.max_by_key(|&index| sets[index].len());
    let mut all = first.map_or_else(Set::default, |first| copy(sets[first], limits));
    for (_, set) in sets.iter().enumerate().filter(|(index, _)| Some(*index) != first) {
        add_all(&mut all, *set, limits);
    }
    all
}

/// What came of visiting the members of sets.
pub struct Visited {
    /// How many there were.
    pub count: usize,
    /// The set that was made of them, where that took less.
    pub made: Option<Set>,
}

impl Visited {
    /// Calls `visit` with each member of a set that was made for that.
    fn made(set: Set, visit: impl FnMut(Item<'_>)) -> Visited {
        set.view().for_each(visit);
        Visited { count: set.view().len(), made: Some(set) }
    }
}

/// Calls `visit` with each member of the sets, once.
pub fn visit_union(sets: &[SetRef<'_>], limits: SetLimits, mut visit: impl FnMut(Item<'_>)) -> Visited {
    let is_searched = sets.len() <= SEARCHED_MAX && sets.iter().any(|&set| is_large(set, limits));
    if sets.len() > 1 && !is_searched {
        return Visited::made(union(sets, limits), visit);
    }
    let mut sets = sets.to_vec();
    sets.sort_by_key(|set| Reverse(set.len()));
    let mut found = 0;
    for (index, set) in sets.iter().enumerate() {
        search(*set, &sets[..index], false, |member| {
            found += 1;
            visit(member);
            ControlFlow::Continue(())
        });
    }
    Visited { count: found, made: None }
}

/// Whether members of the first set are better looked for in the others, until they are found (which is about half of
/// them), than the members of the others taken out of a copy of the first.
fn is_searched(first: SetRef<'_>, others: &[SetRef<'_>]) -> bool {
    let searches = first.len().saturating_mul(others.len() + 1) / 2;
    searches <= others.iter().fold(first.len(), |sum, other| sum.saturating_add(other.len()))
}

/// The members of `first` that are in none of the others.
pub fn difference(first: SetRef<'_>, others: &[SetRef<'_>], limits: SetLimits) -> Set {
    if !is_searched(first, others) {
        let mut rest = copy(first, limits);
        others.iter().for_each(|&other| remove_all(&mut rest, other));
        return rest;
    }
    let mut rest = Set::default();
    search_difference(first, others, |member| rest.add_new(member, limits));
    rest
}

/// Calls `visit` with each member of `first` that is in none of the others.
pub fn visit_difference(
    first: SetRef<'_>,
    others: &[SetRef<'_>],
    limits: SetLimits,
    mut visit: impl FnMut(Item<'_>),
) -> Visited {
    if !is_large(first, limits) || !is_searched(first, others) {
        return Visited::made(difference(first, others, limits), visit);
    }
    let mut found = 0;
    search_difference(first, others, |member| {
        found += 1;
        visit(member);
    });
    Visited { count: found, made: None }
}

fn search_difference<'a>(first: SetRef<'a>, others: &[SetRef<'_>], mut visit: impl FnMut(Item<'a>)) {
    // A member is likeliest to be in the largest.
    let mut others = others.to_vec();
    others.sort_by_key(|other| Reverse(other.len()));
    search(first, &others, false, |member| {
        visit(member);
        ControlFlow::Continue(())
    });
}
