//! Collections made of elements that somebody else has written: what must not be twice is looked for, and the form is
//! the one that the same elements would have come to one by one. Knows no form of writing.

use super::{DecodeError, Limits, Value};
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use tenon_ds::listpack::End;
use tenon_ds::packed::{IntText, Item};
use tenon_store::hash::element_hash;
use tenon_store::types::set::IntSet;
use tenon_store::types::zset::{Gathered, Members};
use tenon_store::types::{
    Collection, Fields, Hash, HashForm, HashRef, List, MEMBER_DEADLINE_MAX_MS, MemberForm, Set, SetForm, SetRef,
    WithDeadlines, Zset, ZsetForm, ZsetRef,
};

/// Up to so many elements of a packed form each new one is looked for among those before it. Of more, their hashes tell
/// whether one is there twice: a form has a hundred of them as a rule, and by the settings tens of thousands.
const LOOKED_FOR_MAX: usize = 8;

/// Room for hashes to begin with, which most forms do not outgrow.
const HASHES_MIN: usize = 16 * LOOKED_FOR_MAX;

type Elements<'i, 'a> = &'i mut dyn Iterator<Item = Result<Item<'a>, DecodeError>>;

/// A list that grows at its end.
pub(super) struct ListBuilder<'l> {
    list: List,
    limits: &'l Limits,
}

impl<'l> ListBuilder<'l> {
    pub(super) fn new(limits: &'l Limits) -> ListBuilder<'l> {
        ListBuilder { list: List::default(), limits }
    }

    pub(super) fn push(&mut self, element: Item<'_>) {
        let mut room = IntText::new();
        self.list.prepare(std::iter::once(element.as_bytes(&mut room)), &self.limits.list);
        self.list.push(End::Back, element, &self.limits.list);
    }

    pub(super) fn push_all(&mut self, elements: Elements<'_, '_>) -> Result<(), DecodeError> {
        for element in elements {
            self.push(element?);
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Value, DecodeError> {
        not_empty(self.list).map(Value::List)
    }
}

/// The hashes of the elements of a packed form, once there are some.
#[derive(Default)]
struct Seen(HashSet<u64, BuildHasherDefault<AsItIs>>);

impl Seen {
    /// Whether an element is surely not among `len` others, which `each` gives; else it is to be looked for.
    fn is_new(&mut self, element: &[u8], len: usize, each: impl FnOnce(&mut dyn FnMut(Item<'_>))) -> bool {
        if len < LOOKED_FOR_MAX {
            return false;
        }
        if self.0.is_empty() {
            self.0.reserve(HASHES_MIN);
            let mut room = IntText::new();
            each(&mut |element| _ = self.add(element.as_bytes(&mut room)));
        }
        self.add(element)
    }

    /// Adds an element; `false` where it may be there already.
    fn add(&mut self, element: &[u8]) -> bool {
        self.0.insert(element_hash(element))
    }
}

/// What is hashed by a seed that nobody knows need not be hashed again.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, _: &[u8]) {
        unreachable!("hashes are numbers");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A hash whose fields are all different.
pub(super) struct HashBuilder<'l> {
    hash: Hash,
    seen: Seen,
    limits: &'l Limits,
}

impl<'l> HashBuilder<'l> {
    /// A hash that will have about so many fields.
    pub(super) fn new(count: usize, limits: &'l Limits) -> HashBuilder<'l> {
        let is_large = count > limits.hash.fields;
        let hash = if is_large { Hash::from(HashForm::Table(Fields::default())) } else { Hash::default() };
        HashBuilder { hash, seen: Seen::default(), limits }
    }

    pub(super) fn set(&mut self, field: &[u8], value: &[u8]) -> Result<(), DecodeError> {
        if let HashRef::Packed(packed) = self.hash.view()
            && self.seen.is_new(field, packed.len(), |each| packed.iter().for_each(|(field, _)| each(field)))
        {
            self.hash.add_new(field, value, self.limits.hash);
            return Ok(());
        }
        let is_new = self.hash.set(field, value, self.limits.hash);
        is_new.then_some(()).ok_or(DecodeError::malformed("a hash has a field twice"))
    }

    /// Sets a field that expires, or one that does not.
    pub(super) fn set_until(
        &mut self,
        field: &[u8],
        value: &[u8],
        deadline_ms: Option<u64>,
    ) -> Result<(), DecodeError> {
        self.set(field, value)?;
        deadline_ms.map_or(Ok(()), |deadline_ms| set_deadline(&mut self.hash, field, deadline_ms))
    }

    /// Sets fields with the values behind them and their deadlines behind these; 0 is none.
    pub(super) fn set_all_until(&mut self, elements: Elements<'_, '_>) -> Result<(), DecodeError> {
        let (mut field_room, mut value_room) = (IntText::new(), IntText::new());
        while let Some(field) = elements.next() {
            let (field, value, deadline_ms) = (field?, second(elements)?, second(elements)?);
            let Item::Int(deadline_ms @ 0..) = deadline_ms else {
                return Err(DecodeError::malformed("a field's deadline is none"));
            };
            let deadline_ms = Some(deadline_ms.unsigned_abs()).filter(|ms| *ms > 0);
            self.set_until(field.as_bytes(&mut field_room), value.as_bytes(&mut value_room), deadline_ms)?;
        }
        Ok(())
    }

    /// Sets fields with the values behind them.
    pub(super) fn set_all(&mut self, elements: Elements<'_, '_>) -> Result<(), DecodeError> {
        let (mut field_room, mut value_room) = (IntText::new(), IntText::new());
        while let Some(field) = elements.next() {
            let (field, value) = (field?, second(elements)?);
            self.set(field.as_bytes(&mut field_room), value.as_bytes(&mut value_room))?;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Value, DecodeError> {
        not_empty(self.hash).map(Value::Hash)
    }
}

/// A set whose members are all different.
pub(super) struct SetBuilder<'l> {
    set: Set,
    /// Members that are still to come, as far as that is known.
    count: usize,
    seen: Seen,
    limits: &'l Limits,
}

impl<'l> SetBuilder<'l> {
    /// A set that will have about so many members.
    pub(super) fn new(count: usize, limits: &'l Limits) -> SetBuilder<'l> {
        SetBuilder { set: Set::default(), count, seen: Seen::default(), limits }
    }

    pub(super) fn add(&mut self, member: Item<'_>) -> Result<(), DecodeError> {
        if self.set.is_empty() {
            self.set.expect(member.as_bytes(&mut IntText::new()), self.count, self.limits.set);
        }
        if let SetRef::Packed(packed) = self.set.view() {
            let mut room = IntText::new();
            let each = |each: &mut dyn FnMut(Item<'_>)| packed.iter().for_each(|element| each(element.item));
            if self.seen.is_new(member.as_bytes(&mut room), packed.len(), each) {
                self.set.add_new(member, self.limits.set);
                return Ok(());
            }
        }
        let is_new = self.set.add(member, self.limits.set);
        is_new.then_some(()).ok_or(DecodeError::malformed("a set has a member twice"))
    }

    pub(super) fn add_all(&mut self, members: Elements<'_, '_>) -> Result<(), DecodeError> {
        for member in members {
            self.add(member?)?;
        }
        Ok(())
    }

    /// Adds integers to an empty set, which are in ascending order and all different.
    pub(super) fn add_ascending(
        &mut self,
        ints: impl ExactSizeIterator<Item = i64> + DoubleEndedIterator + Clone,
    ) -> Result<(), DecodeError> {
        debug_assert!(self.set.is_empty());
        if ints.len() > self.limits.set.ints {
            return self.add_all(&mut ints.map(|int| Ok(Item::Int(int))));
        }
        self.set = Set::from(SetForm::Ints(IntSet::from_ascending(ints)));
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Value, DecodeError> {
        not_empty(self.set).map(Value::Set)
    }
}

const MEMBER_TWICE: DecodeError = DecodeError::malformed("a sorted set has a member twice");

/// A sorted set whose members are all different, and no score NaN. In whatever order they come, they are sorted.
pub(super) struct ZsetBuilder<'l> {
    zset: Zset,
    /// All members of a packed form, once there are some.
    many: Option<Gathered>,
    seen: Seen,
    /// Whether one of them may be there twice.
    may_repeat: bool,
    limits: &'l Limits,
}

impl<'l> ZsetBuilder<'l> {
    /// A sorted set that will have about so many members.
    pub(super) fn new(count: usize, limits: &'l Limits) -> ZsetBuilder<'l> {
        let is_large = count > limits.zset.members;
        let zset = if is_large { Zset::from(ZsetForm::Tree(Members::new())) } else { Zset::default() };
        ZsetBuilder { zset, many: None, seen: Seen::default(), may_repeat: false, limits }
    }

    pub(super) fn add(&mut self, member: &[u8], score: f64) -> Result<(), DecodeError> {
        if score.is_nan() {
            return Err(DecodeError::malformed("a score is not a number"));
        }
        if let Some(many) = &mut self.many {
            self.may_repeat |= !self.seen.add(member);
            many.push(member, score);
            return Ok(());
        }
        if let ZsetRef::Packed(_) = self.zset.view()
            && self.zset.view().len() >= LOOKED_FOR_MAX
        {
            let mut room = IntText::new();
            let many = self.many.insert(Gathered::default());
            self.zset.view().for_each(|member, score| many.push(member.as_bytes(&mut room), score));
            let each = |each: &mut dyn FnMut(Item<'_>)| self.zset.view().for_each(|member, _| each(member));
            self.may_repeat = !self.seen.is_new(member, LOOKED_FOR_MAX, each);
            many.push(member, score);
            return Ok(());
        }
        let mut is_new = true;
        self.zset.update(member, self.limits.zset, |before| {
            is_new = before.is_none();
            is_new.then_some(score)
        });
        is_new.then_some(()).ok_or(MEMBER_TWICE)
    }

    /// Adds members with the scores behind them.
    pub(super) fn add_all(&mut self, elements: Elements<'_, '_>) -> Result<(), DecodeError> {
        let mut room = IntText::new();
        while let Some(member) = elements.next() {
            let (member, score) = (member?, second(elements)?);
            self.add(member.as_bytes(&mut room), score_of(score)?)?;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Value, DecodeError> {
        let Some(mut many) = self.many else { return not_empty(self.zset).map(Value::Zset) };
        if self.may_repeat {
            let len = many.len();
            many.unite(|first, _| first);
            if many.len() < len {
                return Err(MEMBER_TWICE);
            }
        }
        // Mostly they have come in their order, which is soon seen.
        many.sort();
        Ok(Value::Zset(many.into_zset(self.limits.zset)))
    }
}

/// Gives a member of a collection a deadline.
pub(super) fn set_deadline<F: MemberForm>(
    collection: &mut WithDeadlines<F>,
    member: &[u8],
    deadline_ms: u64,
) -> Result<(), DecodeError> {
    if deadline_ms > MEMBER_DEADLINE_MAX_MS {
        return Err(DecodeError::malformed("a member's deadline is later than any can be"));
    }
    if !collection.has(member) {
        return Err(DecodeError::malformed("a member that is not there has a deadline"));
    }
    collection.set_deadline(member, deadline_ms);
    Ok(())
}

/// The element that belongs to the one before.
fn second<'a>(elements: Elements<'_, 'a>) -> Result<Item<'a>, DecodeError> {
    elements.next().unwrap_or(Err(DecodeError::malformed("the last of a collection's pairs is half")))
}

/// The score that an element of a small sorted set is.
fn score_of(element: Item<'_>) -> Result<f64, DecodeError> {
    match element {
        Item::Int(int) => Ok(int as f64),
        Item::Bytes(text) => {
            let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
            number.ok_or(DecodeError::malformed("a score is no number"))
        }
    }
}

fn not_empty<T: Collection>(collection: T) -> Result<T, DecodeError> {
    if collection.is_empty() { Err(DecodeError::Empty) } else { Ok(collection) }
}
