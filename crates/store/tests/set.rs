//! Sets against a plain set: random changes in all three forms, back and forth over their limits, samples and algebra.

use std::collections::BTreeSet;
use tenon_ds::looks::Looks;
use tenon_ds::packed::Item;
use tenon_store::types::{Collection, Set, SetLimits, SetRef, set};

const LIMITS: SetLimits = SetLimits { ints: 40, members: 20, bytes: 12 };

/// Members in most tests: enough for several segments of a table, but for Miri.
const MEMBERS: u64 = if cfg!(miri) { 50 } else { 6_000 };

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
}

/// What members look like in a test.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Ints,
    Words,
    LongWords,
    Mixed,
}

fn member(kind: Kind, number: u64) -> Vec<u8> {
    match kind {
        Kind::Ints => (number as i64 - 100).pow(3).to_string().into_bytes(),
        Kind::Words => format!("w{number}").into_bytes(),
        Kind::LongWords => format!("a long word {number}").into_bytes(),
        Kind::Mixed => member([Kind::Ints, Kind::Words, Kind::LongWords][number as usize % 3], number),
    }
}

type Model = BTreeSet<Vec<u8>>;

fn members_of(set: SetRef<'_>) -> Model {
    let mut members = Model::new();
    set.for_each(|member| assert!(members.insert(member.to_vec()), "a member is there once"));
    members
}

fn check(set: &Set, model: &Model) {
    assert_eq!(&members_of(set.view()), model);
    assert_eq!((set.view().len(), set.is_empty()), (model.len(), model.is_empty()));
    match set.view() {
        SetRef::Ints(ints) => {
            assert!(ints.iter().is_sorted());
            assert!(model.len() <= LIMITS.ints);
        }
        SetRef::Packed(_) => {
            assert!(model.len() <= LIMITS.members);
            assert!(model.iter().all(|member| member.len() <= LIMITS.bytes));
        }
        SetRef::Table(members) => {
            let bytes: usize = model.iter().map(Vec::len).sum();
            assert!(members.memory(Looks::ALL) >= bytes);
        }
    }
    // The packed forms read back the same from their bytes.
    if set.packs_into(usize::MAX) {
        let ((form, bytes), _) = set.clone().pack(|form, bytes| (form, bytes.to_vec()));
        assert_eq!(&members_of(Set::view_packed(form, &bytes).unwrap()), model);
        let copy = Set::from_packed(form, bytes).unwrap();
        assert_eq!(&members_of(copy.view()), model);
    }
    assert_eq!(&members_of(set.clone().view()), model);
}

/// A set of random members, and what is in it.
fn random_set(random: &mut Random, kind: Kind, count: u64) -> (Set, Model) {
    let (mut set, mut model) = (Set::default(), Model::new());
    for _ in 0..count {
        let member = member(kind, random.below(count * 2));
        assert_eq!(set.add(Item::Bytes(&member), LIMITS), model.insert(member));
    }
    (set, model)
}

#[test]
fn behaves_like_a_set() {
    for kind in [Kind::Ints, Kind::Words, Kind::LongWords, Kind::Mixed] {
        let ranges: &[u64] = if cfg!(miri) { &[30] } else { &[10, 30, 100, MEMBERS] };
        for &range in ranges {
            let mut random = Random(range);
            let (mut set, mut model) = (Set::default(), Model::new());
            let rounds = range.max(20) * if cfg!(miri) { 2 } else { 4 };
            for round in 0..rounds {
                let growing = round * 4 / rounds % 2 == 0;
                let member = member(kind, random.below(range));
                // As it came from a client, and as a packed sequence gives it.
                let item = if random.below(2) == 0 { Item::Bytes(&member) } else { Item::of(&member) };
                assert_eq!(set.view().contains(item), model.contains(&member));
                if random.below(8) < if growing { 7 } else { 1 } {
                    assert_eq!(set.add(item, LIMITS), model.insert(member.clone()));
                } else {
                    assert_eq!(set.remove(item), model.remove(&member));
                }
                assert_eq!(set.view().len(), model.len());
                if round % (rounds / if cfg!(miri) { 3 } else { 20 }) == 0 {
                    check(&set, &model);
                }
            }
            for member in std::mem::take(&mut model) {
                assert!(set.remove(Item::Bytes(&member)));
            }
            check(&set, &model);
        }
    }
}

#[test]
fn forms_follow_the_limits() {
    let encoding = |members: &[&str], expected: usize| {
        let mut set = Set::default();
        set.expect(members[0].as_bytes(), expected, LIMITS);
        for member in members {
            assert!(set.add(Item::Bytes(member.as_bytes()), LIMITS));
        }
        set.encoding()
    };
    assert_eq!(encoding(&["1", "2", "-3"], 3), "intset");
    assert_eq!(encoding(&["1", "a"], 2), "listpack");
    assert_eq!(encoding(&["a", "1"], 2), "listpack");
    assert_eq!(encoding(&["01"], 1), "listpack");
    assert_eq!(encoding(&["a", "a string that is long"], 2), "hashtable");
    assert_eq!(encoding(&["a string that is long"], 1), "hashtable");
    assert_eq!(encoding(&["1", "a string that is long"], 2), "hashtable");
    // Digits count too when integers become members among others.
    assert_eq!(encoding(&["1234567890123", "a"], 2), "hashtable");
    assert_eq!(encoding(&["-123456789012", "a"], 2), "hashtable");
    // What is said to come decides, though there may be fewer different ones.
    assert_eq!(encoding(&["1"], 40), "intset");
    assert_eq!(encoding(&["1"], 41), "hashtable");
    assert_eq!(encoding(&["a"], 20), "listpack");
    assert_eq!(encoding(&["a"], 21), "hashtable");
    let few = SetLimits { ints: 2, ..LIMITS };
    let mut set = Set::default();
    set.expect(b"1", 3, few);
    assert_eq!(set.encoding(), "listpack");
    let mut set = Set::default();
    (1..4).for_each(|int| assert!(set.add(Item::Int(int), few)));
    assert_eq!(set.encoding(), "hashtable");
    let mut set = Set::default();
    (0..20).for_each(|int| assert!(set.add(Item::Int(int), LIMITS)));
    set.add(Item::Bytes(b"a"), LIMITS);
    assert_eq!(set.encoding(), "hashtable");
}

#[test]
fn samples_are_members_and_as_many_as_asked_for() {
    let mut random = Random(3);
    for kind in [Kind::Ints, Kind::Words, Kind::LongWords] {
        let counts: &[u64] = if cfg!(miri) { &[6] } else { &[1, 15, 30, MEMBERS / 2] };
        for &count in counts {
            let (set, model) = random_set(&mut random, kind, count);
            let mut source = Random(count);
            let len = model.len();
            for wanted in [0, 1, 2, len / 4, len / 2, len - 1, len, len + 1, usize::MAX] {
                let mut seen = Model::new();
                set.view().sample_distinct(
                    wanted,
                    || source.next(),
                    |member| {
                        assert!(seen.insert(member.to_vec()), "no member twice");
                    },
                );
                assert_eq!(seen.len(), wanted.min(len));
                assert!(seen.is_subset(&model));
                let (mut popped, mut rest) = (Model::new(), set.clone());
                rest.pop_many(
                    wanted,
                    || source.next(),
                    |member| {
                        assert!(popped.insert(member.to_vec()), "no member twice");
                    },
                );
                assert_eq!(popped.len(), wanted.min(len));
                check(&rest, &model.difference(&popped).cloned().collect());
            }
            let mut repeated = 0;
            set.view().sample_repeated(
                3 * len,
                || source.next(),
                |member| {
                    assert!(model.contains(&member.to_vec()));
                    repeated += 1;
                    true
                },
            );
            assert_eq!(repeated, 3 * len);
            let mut first = 0;
            set.view().sample_repeated(
                3 * len,
                || source.next(),
                |_| {
                    first += 1;
                    first < 2
                },
            );
            assert_eq!(first, 2, "it wanted no more");
            let one = set.view().sample(|| source.next()).unwrap();
            assert!(model.contains(&one.to_vec()));
        }
    }
    let mut empty = Set::default();
    assert_eq!(empty.view().sample(|| 1), None);
    assert_eq!(empty.pop(|| 1, |_| ()), None);
    empty.view().sample_repeated(5, || 1, |_| unreachable!("there is no member"));
    empty.pop_many(5, || 1, |_| unreachable!("there is no member"));
}

#[test]
fn every_member_is_as_likely_as_any_other() {
    let mut random = Random(77);
    let mut source = Random(78);
    for (kind, count) in [(Kind::Ints, 10), (Kind::Words, 10), (Kind::LongWords, 10)] {
        let (set, model) = random_set(&mut random, kind, count);
        let rounds = if cfg!(miri) { 5 } else { 4_000 };
        let mut counts = vec![[0u32; 3]; model.len()];
        let index_of = |member: Item<'_>| model.iter().position(|known| *known == member.to_vec()).unwrap();
        for _ in 0..rounds {
            counts[index_of(set.view().sample(|| source.next()).unwrap())][0] += 1;
            set.view().sample_distinct(3, || source.next(), |member| counts[index_of(member)][1] += 1);
            set.clone().pop(|| source.next(), |member| counts[index_of(member)][2] += 1);
        }
        for (column, per_round) in [(0, 1.0), (1, 3f64.min(model.len() as f64)), (2, 1.0)] {
            let expected = f64::from(rounds) * per_round / model.len() as f64;
            for count in &counts {
                let off = (f64::from(count[column]) - expected).abs();
                assert!(cfg!(miri) || off < 6.0 * expected.sqrt(), "{count:?} of {expected}");
            }
        }
    }
}

#[test]
fn a_scan_gives_all() {
    let mut random = Random(4);
    for (kind, count) in [(Kind::Ints, 30), (Kind::Words, 15), (Kind::Words, MEMBERS)] {
        let (set, model) = random_set(&mut random, kind, count);
        let (mut seen, mut cursor) = (Model::new(), 0);
        loop {
            cursor = set.view().scan(cursor, 10, |member| assert!(seen.insert(member.to_vec()), "no member twice"));
            if cursor == 0 {
                break;
            }
        }
        assert_eq!(seen, model);
    }
}

#[test]
fn algebra_agrees_with_a_plain_set() {
    let mut random = Random(9);
    let kinds = [Kind::Ints, Kind::Words, Kind::LongWords, Kind::Mixed];
    for round in 0..if cfg!(miri) { 4 } else { 300 } {
        let operands: Vec<(Set, Model)> = (0..1 + random.below(4))
            .map(|_| {
                let kind = kinds[(round / 2 + random.below(2)) as usize % 4];
                let most = [5, 30, 300, if cfg!(miri) { 60 } else { 3_000 }][random.below(4) as usize];
                let count = 1 + random.below(most);
                random_set(&mut random, kind, count)
            })
            .collect();
        let views: Vec<SetRef<'_>> = operands.iter().map(|(set, _)| set.view()).collect();
        let models: Vec<&Model> = operands.iter().map(|(_, model)| model).collect();
        let (first, others) = models.split_first().unwrap();

        let all: Model = models.iter().flat_map(|model| model.iter().cloned()).collect();
        assert_eq!(members_of(set::union(&views, LIMITS).view()), all);
        let mut seen = Model::new();
        let visited = set::visit_union(&views, LIMITS, |member| assert!(seen.insert(member.to_vec())));
        assert_eq!((&seen, visited.count), (&all, all.len()));

        let common: Model =
            first.iter().filter(|member| others.iter().all(|other| other.contains(*member))).cloned().collect();
        let mut seen = Model::new();
        let count = set::intersection(views.clone(), usize::MAX, |member| assert!(seen.insert(member.to_vec())));
        assert_eq!((&seen, count), (&common, common.len()));
        for limit in [0, 1, 3] {
            assert_eq!(set::intersection(views.clone(), limit, |_| ()), common.len().min(limit));
        }
        for wanted in [1, 3] {
            assert_eq!(set::have_in_common(views.clone(), wanted, usize::MAX), common.len() >= wanted);
            assert!(!set::have_in_common(views.clone(), wanted, 4) || common.len() >= wanted);
            assert!(!set::have_in_common(views.clone(), wanted, wanted - 1), "no more are found than looked for");
        }

        let rest: Model =
            first.iter().filter(|member| !others.iter().any(|other| other.contains(*member))).cloned().collect();
        assert_eq!(members_of(set::difference(views[0], &views[1..], LIMITS).view()), rest);
        let mut seen = Model::new();
        let visit = |member: Item<'_>| assert!(seen.insert(member.to_vec()));
        let visited = set::visit_difference(views[0], &views[1..], LIMITS, visit);
        assert_eq!((&seen, visited.count), (&rest, rest.len()));
    }
    assert_eq!(set::intersection(Vec::new(), usize::MAX, |_| ()), 0);
}
