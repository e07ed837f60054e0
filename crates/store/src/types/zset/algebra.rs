//! Union, intersection and difference of sorted sets and sets, whose members all have the score 1. Knows no keys.

use super::gathered::Gathered;
use super::{Zset, ZsetLimits, ZsetRef};
use crate::types::{Collection, SetRef};
use std::collections::HashSet;
use std::ops::ControlFlow;
use tenon_ds::packed::{IntText, Item};

/// What is combined.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// A sorted set.
    Zset(ZsetRef<'a>),
    /// A set.
    Set(SetRef<'a>),
}

/// The score that a member of a set counts with.
const SET_SCORE: f64 = 1.0;

impl<'a> Source<'a> {
    /// How many members there are.
    pub fn len(self) -> usize {
        match self {
            Source::Zset(zset) => zset.len(),
            Source::Set(set) => set.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    fn score(self, member: &[u8]) -> Option<f64> {
        match self {
            Source::Zset(zset) => zset.score(member),
            Source::Set(set) => set.contains(Item::Bytes(member)).then_some(SET_SCORE),
        }
    }

    /// Calls `visit` for each member until it breaks off.
    fn try_for_each(self, mut visit: impl FnMut(&[u8], f64) -> ControlFlow<()>) {
        let mut room: IntText = IntText::new();
        let _ = match self {
            Source::Zset(ZsetRef::Tree(members)) => {
                members.visit(0..members.len(), super::Direction::Ascending, |score, member| visit(member, score))
            }
            Source::Zset(zset) => {
                let mut flow = ControlFlow::Continue(());
                zset.for_each(|member, score| {
                    if flow.is_continue() {
                        flow = visit(member.as_bytes(&mut room), score);
                    }
                });
                flow
            }
            Source::Set(set) => set.try_for_each(|member| visit(member.as_bytes(&mut room), SET_SCORE)),
        };
    }
}

/// What becomes of the scores that a member has in several sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aggregate {
    /// They are added; infinities of both signs come to 0.
    #[default]
    Sum,
    /// The lowest.
    Min,
    /// The highest.
    Max,
    /// They do not count: the weights of the sets that have the member are added.
    Count,
}

impl Aggregate {
    /// What a member's score in one set comes to.
    fn weighted(self, score: f64, weight: f64) -> f64 {
        match self {
            Aggregate::Count => weight,
            Aggregate::Sum | Aggregate::Min | Aggregate::Max => score * weight,
        }
    }

    fn of(self, first: f64, second: f64) -> f64 {
        match self {
            Aggregate::Sum | Aggregate::Count => number(first + second),
            // Written so that what is no number loses.
            Aggregate::Min => {
                if second < first {
                    second
                } else {
                    first
                }
            }
            Aggregate::Max => {
                if second > first {
                    second
                } else {
                    first
                }
            }
        }
    }
}

/// The number, 0 where it is none.
fn number(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// In the order of their sizes, in which Redis adds scores, too: sums depend on it in their last digits.
fn by_size<'a>(sources: &[(Source<'a>, f64)]) -> Vec<(Source<'a>, f64)> {
    let mut sorted = sources.to_vec();
    sorted.sort_by_key(|(source, _)| source.len());
    sorted
}

/// Up to so many members are gathered and then sorted; of more, each is put where it belongs.
const GATHERED_MAX: usize = 1_024;

/// All members of the sources, whose scores are multiplied by their weights.
pub fn union(sources: &[(Source<'_>, f64)], aggregate: Aggregate, limits: ZsetLimits) -> Combined {
    let lens = || sources.iter().map(|(source, _)| source.len());
    let mut all = match lens().sum::<usize>() {
        ..=GATHERED_MAX => Outcome::Small(Gathered::default()),
        _ => Outcome::Large(Zset::of_at_least(lens().max().unwrap_or(0), limits)),
    };
    for (source, weight) in by_size(sources) {
        source.try_for_each(|member, score| {
            let score = number(aggregate.weighted(score, weight));
            match &mut all {
                Outcome::Small(gathered) => gathered.push(member, score),
                Outcome::Large(zset) => zset
                    .update(member, limits, |before| Some(before.map_or(score, |before| aggregate.of(before, score)))),
            }
            ControlFlow::Continue(())
        });
    }
    if let Outcome::Small(gathered) = &mut all {
        gathered.unite(|first, second| aggregate.of(first, second));
    }
    all.combined()
}

/// The members that are in all of the sources, whose scores are multiplied by their weights. No sources at all have none
/// in common.
pub fn intersection(sources: &[(Source<'_>, f64)], aggregate: Aggregate, limits: ZsetLimits) -> Combined {
    let sorted = by_size(sources);
    let Some(((smallest, weight), others)) = sorted.split_first() else { return Combined::default() };
    let mut common = Outcome::default();
    smallest.try_for_each(|member, score| {
        let first = number(aggregate.weighted(score, *weight));
        let sum = others.iter().try_fold(first, |sum, (other, weight)| {
            other.score(member).map(|score| aggregate.of(sum, aggregate.weighted(score, *weight)))
        });
        if let Some(sum) = sum {
            common.add(member, sum, limits);
        }
        ControlFlow::Continue(())
    });
    common.combined()
}

/// Whether so many members that are in all of the sources are found where no more than `looks` of the smallest one are looked
/// for.
pub fn have_in_common(mut sources: Vec<Source<'_>>, wanted: usize, looks: usize) -> bool {
    sources.sort_by_key(|source| source.len());
    let Some((smallest, others)) = sources.split_first().filter(|_| wanted <= looks) else { return false };
    let (mut found, mut left) = (0, looks);
    smallest.try_for_each(|member, _| {
        found += usize::from(others.iter().all(|other| other.score(member).is_some()));
        left -= 1;
        if found < wanted && left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    found >= wanted
}

/// How many members are in all of the sources, counted up to `limit`.
pub fn intersection_len(mut sources: Vec<Source<'_>>, limit: usize) -> usize {
    sources.sort_by_key(|source| source.len());
    let Some((smallest, others)) = sources.split_first() else { return 0 };
    let mut count = 0;
    smallest.try_for_each(|member, _| {
        count += usize::from(others.iter().all(|other| other.score(member).is_some()));
        if count < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    count
}

/// The members of `first` that are in none of the others, with their scores.
pub fn difference(first: Source<'_>, mut others: Vec<Source<'_>>, limits: ZsetLimits) -> Combined {
    let mut rest = Outcome::default();
    // Each is looked for in about half of the others until it is found, or each of these in the first.
    let searches = first.len().saturating_mul(others.len() + 1) / 2;
    if searches > others.iter().fold(first.len(), |sum, other| sum.saturating_add(other.len())) {
        let mut gone = HashSet::new();
        for other in others {
            other.try_for_each(|member, _| {
                if first.score(member).is_some() {
                    gone.insert(member.to_vec());
                }
                ControlFlow::Continue(())
            });
        }
        first.try_for_each(|member, score| {
            if !gone.contains(member) {
                rest.add(member, score, limits);
            }
            ControlFlow::Continue(())
        });
        return rest.combined();
    }
    // A member is likeliest to be in the largest.
    others.sort_by_key(|other| std::cmp::Reverse(other.len()));
    first.try_for_each(|member, score| {
        if others.iter().all(|other| other.score(member).is_none()) {
            rest.add(member, score, limits);
        }
        ControlFlow::Continue(())
    });
    rest.combined()
}

/// What sets come to, in order: to be kept as a sorted set, or to be gone through once. Only the former costs what the
/// form costs that it is kept in, and a small one's form has no negative zero.
#[derive(Debug, Default)]
pub struct Combined(Outcome);

impl Combined {
    /// How many members there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            Outcome::Small(gathered) => gathered.len(),
            Outcome::Large(zset) => zset.view().len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `visit` for all members in ascending order, with their scores.
    pub fn for_each(&self, mut visit: impl FnMut(Item<'_>, f64)) {
        match &self.0 {
            Outcome::Small(gathered) => gathered.for_each(|member, score| visit(Item::Bytes(member), score)),
            Outcome::Large(zset) => zset.view().for_each(visit),
        }
    }

    /// The sorted set.
    pub fn into_zset(self, limits: ZsetLimits) -> Zset {
        match self.0 {
            Outcome::Small(gathered) => gathered.into_zset(limits),
            Outcome::Large(zset) => zset,
        }
    }
}

/// A sorted set in the making.
#[derive(Debug)]
enum Outcome {
    Small(Gathered),
    Large(Zset),
}

impl Default for Outcome {
    fn default() -> Outcome {
        Outcome::Small(Gathered::default())
    }
}

impl Outcome {
    /// Adds a member that is not there.
    fn add(&mut self, member: &[u8], score: f64, limits: ZsetLimits) {
        match self {
            Outcome::Small(gathered) if gathered.len() < GATHERED_MAX => gathered.push(member, score),
            Outcome::Small(gathered) => {
                let mut zset = Zset::of_at_least(gathered.len() + 1, limits);
                gathered.for_each(|member, score| zset.set(member, score, limits));
                zset.set(member, score, limits);
                *self = Outcome::Large(zset);
            }
            Outcome::Large(zset) => zset.set(member, score, limits),
        }
    }

    fn combined(mut self) -> Combined {
        if let Outcome::Small(gathered) = &mut self {
            gathered.sort();
        }
        Combined(self)
    }
}
