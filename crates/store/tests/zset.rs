//! Sorted sets against a plain map: random changes in both forms, over their limits and back, ranges, samples, algebra.

use std::collections::BTreeMap;
use std::ops::Range;
use tenon_ds::packed::Item;
use tenon_store::types::zset::{
    Aggregate, Combined, Direction, LexBound, LexRange, ScoreBound, ScoreRange, Source, difference, have_in_common,
    intersection, intersection_len, union,
};
use tenon_store::types::{Collection, Set, SetLimits, Zset, ZsetLimits, ZsetRef};

const LIMITS: ZsetLimits = ZsetLimits { members: 20, bytes: 12 };
const SET_LIMITS: SetLimits = SetLimits { ints: 10, members: 20, bytes: 12 };

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93) ^ mixed >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn member(&mut self, bound: u64) -> Vec<u8> {
        match self.below(bound) {
            number if number % 3 == 0 => number.to_string().into_bytes(),
            number if number % 41 == 1 => format!("a long member {number}").into_bytes(),
            number => format!("m{number}").into_bytes(),
        }
    }

    fn score(&mut self) -> f64 {
        match self.below(12) {
            0 => f64::INFINITY,
            1 => f64::NEG_INFINITY,
            2 => 0.1,
            3 => 0.5,
            other => other as f64 - 8.0,
        }
    }
}

type Model = BTreeMap<Vec<u8>, f64>;

/// Members and scores in order.
fn in_order(model: &Model) -> Vec<(Vec<u8>, f64)> {
    let mut members: Vec<_> = model.iter().map(|(member, score)| (member.clone(), *score)).collect();
    members.sort_by(|(first, score), (second, other)| score.partial_cmp(other).unwrap().then(first.cmp(second)));
    members
}

fn walk(zset: ZsetRef<'_>, ranks: Range<usize>, direction: Direction) -> Vec<(Vec<u8>, f64)> {
    let mut seen = Vec::new();
    zset.for_each_in(ranks, direction, |member, score| seen.push((member.to_vec(), score)));
    seen
}

fn check(zset: &Zset, model: &Model) {
    let (view, members) = (zset.view(), in_order(model));
    assert_eq!((view.len(), view.is_empty(), zset.is_empty()), (members.len(), members.is_empty(), members.is_empty()));
    assert_eq!(walk(view, 0..view.len(), Direction::Ascending), members);
    let reversed: Vec<_> = members.iter().rev().cloned().collect();
    assert_eq!(walk(view, 0..view.len(), Direction::Descending), reversed);
    for (rank, (member, score)) in members.iter().enumerate() {
        assert_eq!((view.score(member), view.rank(member)), (Some(*score), Some((rank, *score))));
        assert_eq!(view.at(rank).map(|(member, score)| (member.to_vec(), score)), Some((member.clone(), *score)));
    }
    assert_eq!((view.at(members.len()), view.rank(b"nobody"), view.score(b"nobody")), (None, None, None));
    if zset.packs_into(usize::MAX) {
        let ((form, bytes), _) = zset.clone().pack(|form, bytes| (form, bytes.to_vec()));
        assert!(members.len() <= LIMITS.members && members.iter().all(|(member, _)| member.len() <= LIMITS.bytes));
        let read = Zset::view_packed(form, &bytes).unwrap();
        assert_eq!(walk(read, 0..read.len(), Direction::Ascending), members);
        assert_eq!(Zset::from_packed(form, bytes).unwrap().view().len(), members.len());
    }
    let copy = zset.clone();
    assert_eq!(walk(copy.view(), 0..members.len(), Direction::Ascending), members);
}

fn check_ranges(zset: &Zset, model: &Model, random: &mut Random) {
    let (view, members) = (zset.view(), in_order(model));
    for _ in 0..20 {
        let mut bound = || {
            let score = random.score();
            if random.below(2) == 0 { ScoreBound::Inclusive(score) } else { ScoreBound::Exclusive(score) }
        };
        let range = ScoreRange { min: bound(), max: bound() };
        let expected: Vec<_> = members
            .iter()
            .filter(|(_, score)| match range.min {
                ScoreBound::Inclusive(min) => *score >= min,
                ScoreBound::Exclusive(min) => *score > min,
            })
            .filter(|(_, score)| match range.max {
                ScoreBound::Inclusive(max) => *score <= max,
                ScoreBound::Exclusive(max) => *score < max,
            })
            .cloned()
            .collect();
        assert_eq!(walk(view, view.ranks_by_score(range), Direction::Ascending), expected, "{range:?}");
    }
}

#[test]
fn behaves_like_a_map_that_is_sorted() {
    for (seed, members) in [(1, 15), (2, 30), (3, 60), (4, 400)] {
        let mut random = Random(seed);
        let (mut zset, mut model) = (Zset::default(), Model::new());
        let rounds = if cfg!(miri) { 50 } else { 4_000 };
        for round in 0..rounds {
            let member = random.member(members);
            match random.below(10) {
                0..=5 => {
                    let score = random.score();
                    zset.update(&member, LIMITS, |before| {
                        assert_eq!(before, model.get(&member).copied());
                        Some(score)
                    });
                    model.insert(member, score);
                }
                6 => zset.update(&member, LIMITS, |before| {
                    assert_eq!(before, model.get(&member).copied());
                    None
                }),
                7 | 8 => assert_eq!(zset.remove(&member), model.remove(&member)),
                _ if !model.is_empty() => {
                    let start = random.below(model.len() as u64) as usize;
                    let end = (start + random.below(4) as usize).min(model.len());
                    let direction = [Direction::Ascending, Direction::Descending][random.below(2) as usize];
                    let expected = walk(zset.view(), start..end, direction);
                    let mut removed = Vec::new();
                    zset.remove_ranks(start..end, direction, |member, score| removed.push((member.to_vec(), score)));
                    assert_eq!(removed, expected);
                    removed.iter().for_each(|(member, score)| assert_eq!(model.remove(member), Some(*score)));
                }
                _ => {}
            }
            if round % 50 == 0 {
                check(&zset, &model);
                check_ranges(&zset, &model, &mut random);
            }
        }
        check(&zset, &model);
        let len = zset.view().len();
        zset.remove_ranks(0..len, Direction::Ascending, |_, _| ());
        assert!(zset.is_empty());
    }
}

#[test]
fn ranges_of_members_where_scores_are_equal() {
    for count in [10, if cfg!(miri) { 60 } else { 200 }] {
        let mut zset = Zset::default();
        let names: Vec<Vec<u8>> = (0..count).map(|number| format!("{:03}", number * 2).into_bytes()).collect();
        names.iter().for_each(|name| zset.set(name, 0.0, LIMITS));
        let bounds = [LexBound::Lowest, LexBound::Highest, LexBound::Inclusive(b"006"), LexBound::Exclusive(b"006")];
        let bounds = bounds.into_iter().chain([LexBound::Inclusive(b"007"), LexBound::Exclusive(b"0")]);
        for min in bounds.clone() {
            for max in bounds.clone() {
                let range = LexRange { min, max };
                let expected: Vec<_> =
                    names.iter().filter(|name| !range.is_above(name) && range.reaches(name)).collect();
                let found = walk(zset.view(), zset.view().ranks_by_lex(range), Direction::Ascending);
                assert!(found.iter().map(|(member, _)| member).eq(expected), "{range:?}");
            }
        }
    }
}

#[test]
fn samples_are_members_and_fair() {
    for count in [5u64, 300] {
        let (mut zset, mut random) = (Zset::default(), Random(count));
        (0..count).for_each(|number| zset.set(number.to_string().as_bytes(), number as f64, LIMITS));
        let view = zset.view();
        for wanted in [0, 1, 4, count as usize / 2, count as usize, 2 * count as usize] {
            let mut seen = Model::new();
            view.sample_distinct(
                wanted,
                || random.next(),
                |member, score| assert!(seen.insert(member.to_vec(), score).is_none()),
            );
            assert_eq!(seen.len(), wanted.min(count as usize));
            let mut repeated = 0;
            view.sample_repeated(
                wanted,
                || random.next(),
                |member, score| {
                    assert_eq!(view.score(&member.to_vec()), Some(score));
                    repeated += 1;
                    true
                },
            );
            assert_eq!(repeated, wanted);
        }
        let rounds = if cfg!(miri) { 2 } else { 200 } * count;
        let mut counts: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        for _ in 0..rounds {
            *counts.entry(view.sample(|| random.next()).unwrap().0.to_vec()).or_default() += 1;
        }
        // Two hundred are expected, with a deviation of fourteen.
        assert!(
            cfg!(miri) || counts.len() == count as usize && counts.values().all(|count| (100..300).contains(count))
        );
    }
    assert_eq!(Zset::default().view().sample(|| 0), None);
}

fn random_source(random: &mut Random, members: u64) -> (Zset, Model) {
    let (mut zset, mut model) = (Zset::default(), Model::new());
    for _ in 0..random.below(2 * members) {
        let (member, score) = (random.member(members), random.below(9) as f64);
        zset.set(&member, score, LIMITS);
        model.insert(member, score);
    }
    (zset, model)
}

/// Holds what was combined against the model, both before and after it is made a sorted set.
fn check_combined(combined: Combined, model: &Model) {
    let mut members = Vec::new();
    combined.for_each(|member, score| members.push((member.to_vec(), score)));
    assert_eq!(combined.len(), model.len());
    let zset = combined.into_zset(LIMITS);
    check(&zset, model);
    zset.view().for_each(|member, score| assert_eq!((member.to_vec(), score), members.remove(0)));
}

#[test]
fn what_was_combined_keeps_its_negative_zeros() {
    let unpacked = ZsetLimits { members: 0, bytes: 0 };
    // Few members, and more than are gathered; Miri takes minutes for so many, and other tests have it sum up.
    for &members in if cfg!(miri) { &[1][..] } else { &[1, 2_000] } {
        let mut zset = Zset::default();
        (0..members).for_each(|number| zset.set(format!("{number}").as_bytes(), -336.0, LIMITS));
        let sources = [(Source::Zset(zset.view()), 0.0), (Source::Zset(zset.view()), 0.0)];
        let combined = [
            union(&sources[..1], Aggregate::Sum, unpacked),
            union(&sources, Aggregate::Sum, unpacked),
            intersection(&sources, Aggregate::Max, unpacked),
        ];
        for combined in combined {
            let mut zeros = 0;
            combined.for_each(|_, score| zeros += usize::from(score.to_bits() == (-0.0f64).to_bits()));
            assert_eq!((zeros, combined.len()), (members, members));
        }
    }
}

#[test]
fn algebra_agrees_with_plain_maps() {
    let mut random = Random(9);
    for round in 0..if cfg!(miri) { 4 } else { 300 } {
        let members = [8, 40][round % 2];
        let zsets: Vec<(Zset, Model)> = (0..2).map(|_| random_source(&mut random, members)).collect();
        let (mut set, mut set_model) = (Set::default(), Model::new());
        for _ in 0..random.below(members) {
            let member = random.member(members);
            set.add(Item::Bytes(&member), SET_LIMITS);
            set_model.insert(member, 1.0);
        }
        let sources = [Source::Zset(zsets[0].0.view()), Source::Set(set.view()), Source::Zset(zsets[1].0.view())];
        let models = [&zsets[0].1, &set_model, &zsets[1].1];
        let weights = [2.0, 3.0, -1.0];
        let weighted: Vec<_> = sources.into_iter().zip(weights).collect();
        type Join = fn(f64, f64) -> f64;
        let plain: [(Aggregate, Join); 3] =
            [(Aggregate::Sum, |a, b| a + b), (Aggregate::Min, f64::min), (Aggregate::Max, f64::max)];
        for (aggregate, join) in plain {
            let (mut all, mut counts) = (Model::new(), BTreeMap::<Vec<u8>, usize>::new());
            for (model, weight) in models.iter().zip(weights) {
                for (member, score) in *model {
                    let score = score * weight;
                    all.entry(member.clone()).and_modify(|before| *before = join(*before, score)).or_insert(score);
                    *counts.entry(member.clone()).or_default() += 1;
                }
            }
            check_combined(union(&weighted, aggregate, LIMITS), &all);
            all.retain(|member, _| counts[member] == models.len());
            check_combined(intersection(&weighted, aggregate, LIMITS), &all);
            assert_eq!(intersection_len(sources.to_vec(), usize::MAX), all.len());
            assert_eq!(intersection_len(sources.to_vec(), 1), all.len().min(1));
            assert_eq!(have_in_common(sources.to_vec(), 2, usize::MAX), all.len() >= 2);
            assert!(!have_in_common(sources.to_vec(), 2, 3) || all.len() >= 2);
            assert!(!have_in_common(sources.to_vec(), 2, 1), "no more are found than looked for");
        }
        let mut rest = models[0].clone();
        rest.retain(|member, _| !models[1].contains_key(member) && !models[2].contains_key(member));
        check_combined(difference(sources[0], sources[1..].to_vec(), LIMITS), &rest);
    }
}
