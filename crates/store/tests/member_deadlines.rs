//! Collections whose members expire, against plain maps: random changes, deadlines and the passing of time; and the
//! keyspace that removes what is due.

use std::collections::BTreeMap;
use tenon_ds::looks::Looks;
use tenon_ds::packed::Item;
use tenon_store::entry::{Entry, Meta, NewValue, ValueRef};
use tenon_store::hash::KeyHasher;
use tenon_store::keyspace::{Ahead, Expired, Keyspace, TICK_MS};
use tenon_store::types::{
    Collection, Hash, HashLimits, MEMBER_DEADLINE_MAX_MS, MemberForm, Object, Set, SetLimits, WithDeadlines, Zset,
    ZsetLimits,
};

const START_MS: u64 = 1_700_000_000_000;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 24) % bound
    }
}

/// Members with their deadlines.
type Model = BTreeMap<Vec<u8>, Option<u64>>;

fn member(number: u64) -> Vec<u8> {
    match number % 3 {
        0 => number.to_string().into_bytes(),
        1 => format!("m{number}").into_bytes(),
        _ => format!("a member with a name that is too long for any packed form: {number}").into_bytes(),
    }
}

fn next_of(model: &Model) -> Option<u64> {
    model.values().flatten().min().copied()
}

/// A small collection says the same of itself where it lies packed, and is the same when it is taken out of there.
fn check_packed<F: MemberForm + Clone>(collection: &WithDeadlines<F>, model: &Model, now_ms: u64) {
    if !collection.packs_into(usize::MAX) {
        return;
    }
    let make = |form, bytes: &[u8]| Entry::new(b"k", NewValue::Packed(form, bytes), &Meta::default());
    let (entry, _) = collection.clone().pack(make);
    let entry = entry.view();
    assert_eq!(entry.members_due_ms(), next_of(model));
    let ValueRef::Packed(form, bytes) = entry.value() else { panic!("it is packed") };
    assert_eq!(form.has_deadlines, next_of(model).is_some());
    let view = WithDeadlines::<F>::view_packed(form, bytes).expect("it is of this type");
    assert_eq!(F::len(view), model.len());
    let is_past = !model.is_empty() && model.values().all(|deadline| deadline.is_some_and(|ms| ms < now_ms));
    assert_eq!(entry.value().are_members_past(now_ms), is_past);
    let again = WithDeadlines::<F>::from_packed(form, bytes.to_vec()).expect("it is of this type");
    let deadlines = entry.value().deadlines();
    for (member, deadline_ms) in model {
        assert!(F::has(view, member) && again.has(member));
        assert_eq!(deadlines.and_then(|deadlines| deadlines.of(member)), *deadline_ms);
        assert_eq!(again.deadline_ms(member), *deadline_ms);
    }
    let mut seen = Model::new();
    if let Some(deadlines) = deadlines {
        assert_eq!(deadlines.len(), model.values().flatten().count());
        assert_eq!(deadlines.of(b"nobody"), None);
        deadlines.for_each_from(0, 1, &mut |member, deadline_ms| _ = seen.insert(member.to_vec(), Some(deadline_ms)));
    }
    assert!(seen.iter().eq(model.iter().filter(|(_, deadline_ms)| deadline_ms.is_some())));
}

fn check<F: MemberForm + Clone>(collection: &WithDeadlines<F>, model: &Model, now_ms: u64) {
    assert_eq!(F::len(collection.view()), model.len());
    assert_eq!(collection.is_empty(), model.is_empty());
    for (member, deadline_ms) in model {
        assert!(collection.has(member));
        assert_eq!(collection.deadline_ms(member), *deadline_ms, "{member:?}");
    }
    let deadlines = collection.deadlines();
    let expected = model.values().flatten().count();
    assert_eq!(deadlines.map(|deadlines| deadlines.len()), (expected > 0).then_some(expected));
    assert_eq!(deadlines.and_then(|deadlines| deadlines.next_ms()), next_of(model));
    let is_past = !model.is_empty() && model.values().all(|deadline| deadline.is_some_and(|ms| ms < now_ms));
    assert_eq!(collection.is_past(now_ms), is_past);
    check_packed(collection, model, now_ms);
    let mut seen = Model::new();
    if let Some(deadlines) = deadlines {
        let mut place = Some(0);
        while let Some(from) = place {
            place = deadlines.for_each_from(from, 7, &mut |member, deadline_ms| {
                assert_eq!(seen.insert(member.to_vec(), Some(deadline_ms)), None, "each comes once");
            });
        }
        let due = model.values().flatten().filter(|&&deadline_ms| deadline_ms < now_ms).count();
        assert_eq!((deadlines.past(now_ms, usize::MAX), deadlines.past(now_ms, 3)), (due, due.min(3)));
    }
    assert!(model.iter().filter(|(_, deadline)| deadline.is_some()).eq(seen.iter()));
}

/// How a type takes members in, and out by chance.
struct Ways<F> {
    /// Adds a member, or sets it once more.
    set: fn(&mut WithDeadlines<F>, &[u8], u64),
    /// Whether setting it once more takes the deadline away.
    set_persists: bool,
    /// Takes out some members in a way of the type's own; gives them.
    pop: fn(&mut WithDeadlines<F>, &mut Random) -> Vec<Vec<u8>>,
}

fn play<F: MemberForm + Clone>(seed: u64, members: u64, rounds: u64, ways: &Ways<F>) {
    let mut random = Random(seed);
    let (mut collection, mut model) = (WithDeadlines::<F>::default(), Model::new());
    let mut now_ms = START_MS;
    for round in 0..rounds {
        let name = member(random.below(members));
        match random.below(16) {
            0..=5 => {
                (ways.set)(&mut collection, &name, random.below(100));
                let deadline = model.entry(name).or_default();
                if ways.set_persists {
                    *deadline = None;
                }
            }
            6..=9 => {
                if let Some(deadline) = model.get_mut(&name) {
                    let ahead_ms = [10, 1_000, 100_000][random.below(3) as usize];
                    let deadline_ms = match random.below(50) {
                        0 => MEMBER_DEADLINE_MAX_MS,
                        _ => now_ms + 1 + random.below(ahead_ms),
                    };
                    collection.set_deadline(&name, deadline_ms);
                    *deadline = Some(deadline_ms);
                }
            }
            10 => {
                let had = model.get_mut(&name).and_then(Option::take);
                assert_eq!(collection.persist(&name), had.is_some(), "round {round}");
            }
            11 | 12 => assert_eq!(collection.take(&name), model.remove(&name).is_some(), "round {round}"),
            13 => {
                for popped in (ways.pop)(&mut collection, &mut random) {
                    assert!(model.remove(&popped).is_some(), "round {round}");
                }
            }
            _ => {
                let most_ms = [3, 300, 5_000][random.below(3) as usize];
                now_ms += random.below(most_ms);
                let due = model.values().flatten().filter(|&&deadline_ms| deadline_ms < now_ms).count();
                let at_most = 1 + random.below(5) as usize;
                let first = collection.take_past(now_ms, at_most, &mut |_| {});
                assert_eq!(first, due.min(at_most), "round {round}");
                assert_eq!(first + collection.take_past(now_ms, usize::MAX, &mut |_| {}), due, "round {round}");
                model.retain(|_, deadline| deadline.is_none_or(|deadline_ms| deadline_ms >= now_ms));
            }
        }
        if round % 16 == 0 {
            check(&collection, &model, now_ms);
            check(&collection, &model, now_ms + random.below(10_000));
            check(&collection.clone(), &model, now_ms);
        }
    }
    check(&collection, &model, now_ms);
}

const SETS: Ways<tenon_store::types::SetForm> = Ways {
    set: |set: &mut Set, member, _| {
        set.add(Item::Bytes(member), SetLimits { ints: 8, members: 16, bytes: 20 });
    },
    set_persists: false,
    pop: |set, random| {
        let mut popped = Vec::new();
        let count = random.below(3) as usize;
        if random.below(2) == 0 {
            popped.extend(set.pop(|| random.below(u64::MAX) << 24, |member| member.to_vec()));
        } else {
            set.pop_many(count, || random.below(u64::MAX) << 24, |member| popped.push(member.to_vec()));
        }
        popped
    },
};

const HASHES: Ways<tenon_store::types::HashForm> = Ways {
    set: |hash: &mut Hash, field, number| {
        hash.set(field, &number.to_le_bytes(), HASH_LIMITS);
    },
    set_persists: true,
    pop: |_, _| Vec::new(),
};

const HASH_LIMITS: HashLimits = HashLimits { fields: 16, bytes: 20 };

const COUNTERS: Ways<tenon_store::types::HashForm> = Ways {
    set: |hash: &mut Hash, field, number| {
        // Sometimes the limits have become lower than what is there.
        let bytes = if number == 0 { 1 } else { HASH_LIMITS.bytes };
        hash.set_value(field, &number.to_le_bytes()[..1], HashLimits { bytes, ..HASH_LIMITS });
    },
    set_persists: false,
    ..HASHES
};

const ZSETS: Ways<tenon_store::types::ZsetForm> = Ways {
    set: |zset: &mut Zset, member, number| {
        zset.set(member, number as f64, ZsetLimits { members: 16, bytes: 20 });
    },
    set_persists: false,
    pop: |zset, random| {
        let mut popped = Vec::new();
        let len = zset.view().len();
        let first = random.below(len as u64 + 1) as usize;
        let ranks = first..(first + random.below(3) as usize).min(len);
        zset.remove_ranks(ranks, tenon_store::types::zset::Direction::Descending, |member, _| {
            popped.push(member.to_vec());
        });
        popped
    },
};

#[test]
fn collections_with_deadlines_behave_like_maps() {
    let rounds = if cfg!(miri) { 40 } else { 20_000 };
    for (seed, members) in [(3, 60), (1, 3), (2, 12), (4, 1_500)].into_iter().take(if cfg!(miri) { 1 } else { 4 }) {
        play(seed, members, rounds, &HASHES);
        play(seed, members, rounds, &COUNTERS);
        play(seed, members, rounds, &SETS);
        play(seed, members, rounds, &ZSETS);
    }
}

#[test]
#[should_panic(expected = "only what is there expires")]
fn what_is_not_there_gets_no_deadline() {
    Hash::default().set_deadline(b"f", START_MS);
}

#[test]
#[cfg_attr(miri, ignore = "a hundred thousand steps of code that other tests walk")]
fn a_deadline_costs_its_member_once_more_and_little_beside() {
    let count = 100_000;
    let mut set = Set::default();
    let limits = SetLimits { ints: 0, members: 0, bytes: 0 };
    (0..count).for_each(|number| assert!(set.add(Item::Bytes(format!("member:{number:07}").as_bytes()), limits)));
    let before = set.memory(Looks::ALL);
    // In another order than that of the members.
    for number in 0..count {
        let deadline_ms = START_MS + (number * 7_919) % count;
        set.set_deadline(format!("member:{number:07}").as_bytes(), deadline_ms);
    }
    let each = (set.memory(Looks::ALL) - before) as f64 / count as f64;
    assert!(each <= 27.0, "{each} bytes a deadline of a member of 14");
    // What is gone leaves no room behind.
    (0..count).filter(|number| number % 20 != 0).for_each(|number| {
        assert!(set.persist(format!("member:{number:07}").as_bytes()));
    });
    let each = (set.memory(Looks::ALL) - before) as f64 / (count / 20) as f64;
    assert!(each <= 60.0, "{each} bytes a deadline when a twentieth of them is left");
}

/// A key of the model: its own deadline, and its fields with theirs.
#[derive(Clone, Debug, Default)]
struct Key {
    deadline_ms: Option<u64>,
    fields: Model,
}

impl Key {
    fn due_ms(&self) -> Option<u64> {
        self.deadline_ms.into_iter().chain(next_of(&self.fields)).min()
    }
}

/// A copy of the hash that a value is.
fn hash_of(value: ValueRef<'_>) -> Hash {
    let object = match value {
        ValueRef::Packed(form, bytes) => Object::of_packed(form, bytes.to_vec()),
        ValueRef::Object(object) => object.share(),
        ValueRef::Bytes(_) | ValueRef::Int(_) => unreachable!("all are hashes"),
    };
    let Object::Hash(hash) = object else { unreachable!("all are hashes") };
    hash
}

fn is_past(deadline_ms: Option<u64>, now_ms: u64) -> bool {
    deadline_ms.is_some_and(|deadline_ms| deadline_ms < now_ms)
}

/// Keys with hashes, in a keyspace and in a model.
#[derive(Default)]
struct Keys {
    keyspace: Keyspace,
    model: BTreeMap<Vec<u8>, Key>,
    now_ms: u64,
}

impl Keys {
    fn hasher() -> KeyHasher {
        KeyHasher::new(7)
    }

    fn deadline(&self, random: &mut Random) -> Option<u64> {
        let ahead_ms = [50, 3_000, 2_000_000][random.below(3) as usize];
        (random.below(3) != 0).then(|| self.now_ms + 1 + random.below(ahead_ms))
    }

    fn put(&mut self, name: &[u8], random: &mut Random) {
        let (mut hash, mut fields) = (Hash::default(), Model::new());
        for _ in 0..=random.below(6) {
            let field = member(random.below(20));
            hash.set(&field, b"v", HASH_LIMITS);
            let deadline_ms = self.deadline(random);
            if let Some(deadline_ms) = deadline_ms {
                hash.set_deadline(&field, deadline_ms);
            }
            fields.insert(field, deadline_ms);
        }
        let deadline_ms = if random.below(4) == 0 { self.deadline(random) } else { None };
        let meta = Meta { deadline_ms, ..Meta::default() };
        let object = Object::Hash(hash);
        match random.below(3) {
            0 => self.store(name, NewValue::Object(Box::new(object)), &meta),
            _ => object.store(|value| self.store(name, value, &meta)),
        }
        self.model.insert(name.to_vec(), Key { deadline_ms, fields });
    }

    fn store(&mut self, name: &[u8], value: NewValue<'_>, meta: &Meta) {
        let key_hash = Keys::hasher().hash(name);
        match self.keyspace.find(key_hash, name) {
            Some(slot) => drop(self.keyspace.overwrite(slot, value, meta, self.now_ms)),
            None => drop(self.keyspace.insert(key_hash, name, value, meta, self.now_ms)),
        }
    }

    /// Changes a field of a key that is there.
    fn change(&mut self, name: &[u8], random: &mut Random) {
        let Some(slot) = self.keyspace.find(Keys::hasher().hash(name), name) else { return };
        let (field, deadline_ms) = (member(random.below(20)), self.deadline(random));
        let fields = &mut self.model.get_mut(name).expect("they agree").fields;
        let mut entry = self.keyspace.entry_mut(slot);
        let mut packed = match entry.view().value() {
            ValueRef::Packed(form, bytes) => Some((entry.view().meta(), Object::of_packed(form, bytes.to_vec()))),
            _ => None,
        };
        let object = packed.as_mut().map(|(_, object)| object).or(entry.object());
        let Some(Object::Hash(hash)) = object else { unreachable!("all are hashes") };
        match (random.below(4), deadline_ms) {
            (0, _) if fields.len() > 1 => assert_eq!(hash.remove(&field), fields.remove(&field).is_some()),
            (_, Some(deadline_ms)) if fields.contains_key(&field) => {
                hash.set_deadline(&field, deadline_ms);
                fields.insert(field, Some(deadline_ms));
            }
            _ => {
                hash.set(&field, b"w", HASH_LIMITS);
                fields.insert(field, None);
            }
        }
        match packed {
            Some((meta, object)) => object.store(|value| self.store(name, value, &meta)),
            None => _ = self.keyspace.members_changed(slot, self.now_ms),
        }
    }

    fn set_deadline(&mut self, name: &[u8], random: &mut Random) {
        let Some(slot) = self.keyspace.find(Keys::hasher().hash(name), name) else { return };
        let deadline_ms = self.deadline(random);
        self.keyspace.set_meta(slot, &Meta { deadline_ms, ..Meta::default() }, self.now_ms);
        self.model.get_mut(name).expect("they agree").deadline_ms = deadline_ms;
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) {
        let Some(slot) = self.keyspace.find(Keys::hasher().hash(from), from) else { return };
        let entry = self.keyspace.remove(slot);
        let meta = entry.view().meta();
        let hash = Keys::hasher().hash(to);
        if let Some(slot) = self.keyspace.find(hash, to) {
            drop(self.keyspace.remove(slot));
        }
        let value = match entry.view().value() {
            ValueRef::Packed(form, bytes) => Entry::new(to, NewValue::Packed(form, bytes), &meta),
            _ => Entry::new(to, NewValue::Object(entry.into_object().expect("it is a hash")), &meta),
        };
        self.keyspace.insert_entry(hash, value, self.now_ms);
        let key = self.model.remove(from).expect("they agree");
        self.model.insert(to.to_vec(), key);
    }

    fn pass_time(&mut self, random: &mut Random) {
        let most_ms = [3, 100, 5_000, 500_000][random.below(4) as usize];
        self.now_ms += random.below(most_ms);
        let (now_ms, model) = (self.now_ms, &mut self.model);
        let (mut calls, mut gone) = (0, Vec::new());
        let budget = 1 + random.below(8) as usize;
        while !self.keyspace.expire_due(
            now_ms,
            budget,
            |_| unreachable!("there is no snapshot"),
            |expired| match expired {
                Expired::Key(entry) => {
                    let key = model.remove(entry.view().key()).expect("only what is there expires");
                    assert!(is_past(key.deadline_ms, now_ms));
                }
                Expired::Member(field) => gone.push(field.to_vec()),
                Expired::Members { of, count, first_due_ms } => {
                    let key = model.get_mut(of.key()).expect("only what is there expires");
                    assert_eq!(next_of(&key.fields), Some(first_due_ms));
                    let hash = hash_of(of.value());
                    let before = key.fields.len();
                    key.fields.retain(|field, deadline_ms| {
                        let is_left = hash.has(field);
                        assert!(is_left || is_past(*deadline_ms, now_ms));
                        is_left
                    });
                    assert_eq!((before - key.fields.len(), hash.view().len()), (count, key.fields.len()));
                    assert_eq!((gone.len(), gone.iter().any(|field| key.fields.contains_key(field))), (count, false));
                    gone.clear();
                }
                Expired::AllMembers { of, count, first_due_ms } => {
                    let key = model.remove(of.view().key()).expect("only what is there expires");
                    assert_eq!((next_of(&key.fields), key.fields.len()), (Some(first_due_ms), count));
                    assert!(key.fields.values().all(|&deadline_ms| is_past(deadline_ms, now_ms)));
                }
            },
        ) {
            calls += 1;
            assert!(calls < 10_000, "it comes to an end");
        }
    }

    fn check(&self) {
        let late = self.now_ms.saturating_sub(TICK_MS);
        assert!(self.model.values().all(|key| !is_past(key.due_ms(), late)), "what was due is gone");
        let first = self.model.values().filter_map(Key::due_ms).min();
        let due = self.keyspace.next_due_ms();
        assert_eq!(due.is_some(), first.is_some());
        assert!(due <= first.map(|first| first + TICK_MS), "{due:?} is later than {first:?}");
        assert_eq!(self.keyspace.len(), self.model.len());
        let expiring = self.model.values().filter(|key| key.deadline_ms.is_some()).count();
        let with_deadlines = self.model.values().filter(|key| next_of(&key.fields).is_some()).count();
        assert_eq!((self.keyspace.expiring(), self.keyspace.with_deadlines()), (expiring, with_deadlines));
        for (name, key) in &self.model {
            let slot = self.keyspace.find(Keys::hasher().hash(name), name).expect("they agree");
            let entry = self.keyspace.entry(slot);
            assert_eq!(entry.deadline_ms(), key.deadline_ms);
            assert_eq!(entry.members_due_ms(), next_of(&key.fields));
            assert_eq!(entry.due_ms(), key.due_ms());
            check(&hash_of(entry.value()), &key.fields, self.now_ms);
        }
    }
}

#[test]
fn a_keyspace_removes_members_that_are_due() {
    for (seed, names, rounds) in [(1, 4, 20_000), (2, 60, 20_000), (3, 2_000, 20_000)] {
        let mut random = Random(seed);
        let mut keys = Keys { now_ms: START_MS, ..Keys::default() };
        for round in 0..if cfg!(miri) { 50 } else { rounds } {
            let name = format!("key:{}", random.below(names)).into_bytes();
            match random.below(16) {
                0..=4 => keys.put(&name, &mut random),
                5..=9 => keys.change(&name, &mut random),
                10 => keys.set_deadline(&name, &mut random),
                11 => {
                    if let Some(slot) = keys.keyspace.find(Keys::hasher().hash(&name), &name) {
                        drop(keys.keyspace.remove(slot));
                        keys.model.remove(&name);
                    }
                }
                12 => {
                    let to = format!("key:{}", random.below(names)).into_bytes();
                    keys.rename(&name, &to);
                }
                _ => {
                    keys.pass_time(&mut random);
                    if round % 16 == 0 {
                        keys.check();
                    }
                }
            }
        }
    }
}

#[test]
fn a_snapshot_is_handed_each_key_once_before_its_members_go() {
    let mut keyspace = Keyspace::default();
    let names = ["one", "two", "three"];
    // More than a packed run may have.
    let members = if cfg!(miri) { 20 } else { 40 };
    for name in names {
        let mut hash = Hash::default();
        hash.set(b"stays", b"v", HASH_LIMITS);
        for number in 0..members {
            hash.set(&member(number), b"v", HASH_LIMITS);
            hash.set_deadline(&member(number), START_MS + 1);
        }
        let value = NewValue::Object(Box::new(Object::Hash(hash)));
        keyspace.insert(Keys::hasher().hash(name.as_bytes()), name.as_bytes(), value, &Meta::default(), START_MS);
    }
    keyspace.begin_snapshot();
    let mut handed_over = Vec::new();
    // A budget for one key and a half.
    while !keyspace.expire_due(
        START_MS + 1_000,
        members as usize * 3 / 2,
        |entry| {
            handed_over.push(entry.key().to_vec());
            Ahead::HandedOver
        },
        |_| {},
    ) {}
    handed_over.sort();
    let mut names = names.map(|name| name.as_bytes().to_vec());
    names.sort();
    assert_eq!(handed_over, names);
}
