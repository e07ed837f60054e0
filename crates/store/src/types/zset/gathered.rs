//! The members of a small sorted set in the making, in any order: sorted once instead of each being looked for among those
//! before it. Knows no sources.

use super::packed;
use super::{Members, Zset, ZsetForm, ZsetLimits};
use std::cmp::Ordering;
use std::ops::Range;
use tenon_ds::packed::{COUNT_MAX, Item, PackedBuf};

/// Members and their scores, which are no NaN.
#[derive(Debug, Default)]
pub struct Gathered {
    bytes: Vec<u8>,
    members: Vec<Member>,
}

#[derive(Clone, Debug)]
struct Member {
    bytes: Range<usize>,
    score: f64,
}

impl Gathered {
    /// Adds one.
    pub fn push(&mut self, member: &[u8], score: f64) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(member);
        self.members.push(Member { bytes: from..self.bytes.len(), score });
    }

    /// How many there are.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Calls `visit` with each of them, as it came or as they were sorted.
    pub(super) fn for_each(&self, mut visit: impl FnMut(&[u8], f64)) {
        self.members.iter().for_each(|member| visit(&self.bytes[member.bytes.clone()], member.score));
    }

    /// Makes one of members that are the same: `combine` is given their scores in the order in which they came.
    pub fn unite(&mut self, combine: impl Fn(f64, f64) -> f64) {
        let Gathered { bytes, members } = self;
        // What is equal stays in its order.
        members.sort_by(|one, other| bytes[one.bytes.clone()].cmp(&bytes[other.bytes.clone()]));
        members.dedup_by(|later, first| {
            let are_same = bytes[later.bytes.clone()] == bytes[first.bytes.clone()];
            if are_same {
                first.score = combine(first.score, later.score);
            }
            are_same
        });
    }

    /// Puts them in the order of a sorted set.
    pub fn sort(&mut self) {
        let Gathered { bytes, members } = self;
        let member_of = |member: &Member| &bytes[member.bytes.clone()];
        members.sort_unstable_by(|one, other| {
            let by_score = one.score.partial_cmp(&other.score).unwrap_or(Ordering::Equal);
            by_score.then_with(|| member_of(one).cmp(member_of(other)))
        });
    }

    /// The sorted set of them, which were sorted, and no two of which are the same.
    pub fn into_zset(self, limits: ZsetLimits) -> Zset {
        let Gathered { bytes, members } = self;
        let member_of = |member: &Member| &bytes[member.bytes.clone()];
        let stays_packed = members.len() <= limits.members.min(COUNT_MAX / 2)
            && members.iter().all(|member| member.bytes.len() <= limits.bytes);
        if !stays_packed {
            let mut tree = Members::new();
            members.iter().for_each(|member| tree.add_new(member_of(member), member.score));
            return Zset::from(ZsetForm::Tree(tree));
        }
        let mut packed = PackedBuf::new();
        for member in &members {
            packed::push(&mut packed, Item::of(member_of(member)), member.score);
        }
        Zset::from(ZsetForm::Packed(packed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Collection, ZsetRef};
    use proptest::prelude::*;

    fn listed(zset: &Zset) -> Vec<(Vec<u8>, u64)> {
        let mut all = Vec::new();
        zset.view().for_each(|member, score| all.push((member.to_vec(), score.to_bits())));
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 128 }))]

        #[test]
        fn members_that_were_gathered_are_what_they_are_one_by_one(
            members in prop::collection::vec((0..60u32, prop_oneof![-3..3i32, Just(1_000_000)]), 0..80),
            most in prop_oneof![Just(10), Just(128)],
        ) {
            let limits = ZsetLimits { members: most, bytes: 7 };
            let mut gathered = Gathered::default();
            let mut model = Zset::default();
            for (member, score) in members {
                // Some are integers, some too long for a packed run.
                let text = if member == 59 { "a long member".to_owned() } else { format!("{:03}", member * 7) };
                let score = f64::from(score) / 2.0;
                gathered.push(text.as_bytes(), score);
                model.update(text.as_bytes(), limits, |before| Some(before.map_or(score, |before| before + score)));
            }
            gathered.unite(|first, second| first + second);
            gathered.sort();
            let zset = gathered.into_zset(limits);
            prop_assert_eq!(listed(&zset), listed(&model));
            prop_assert_eq!(matches!(zset.view(), ZsetRef::Packed(_)), matches!(model.view(), ZsetRef::Packed(_)));
        }
    }
}
