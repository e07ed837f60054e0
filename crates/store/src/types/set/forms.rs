//! A set in one of three forms: integers in order, a packed run of members, a table. Knows no command.
//!
//! ```text
//!                    a member that is no integer                  too many members, or too long a one
//!   integers  -------------------------------------->  packed  --------------------------------------> table
//!       \_______________________________________________________________________________________________^
//!                                         too many integers
//! ```
//!
//! No form goes back, as in Redis.

use super::{IntSet, IntSetRef, Members};
use crate::hash::element_hash;
use crate::types::{MemberForm, Object, PackedKind, ValueType, WithDeadlines};
use std::ops::ControlFlow;
use tenon_ds::looks::Looks;
use tenon_ds::packed::{COUNT_MAX, Element, IntText, Item, Packed, PackedBuf};

/// Up to where a set stays in its small forms.
#[derive(Clone, Copy, Debug)]
pub struct SetLimits {
    /// Integers in the form for integers (`set-max-intset-entries`).
    pub ints: usize,
    /// Members in the packed form (`set-max-listpack-entries`).
    pub members: usize,
    /// Bytes of a member in the packed form (`set-max-listpack-value`).
    pub bytes: usize,
}

/// A set, to be changed.
pub type Set = WithDeadlines<SetForm>;

/// Members, to be changed.
#[derive(Clone, Debug)]
pub enum SetForm {
    /// Integers only, and few.
    Ints(IntSet),
    /// Few and short members.
    Packed(PackedBuf),
    /// Many or long ones.
    Table(Members),
}

/// A set, for reading.
#[derive(Clone, Copy, Debug)]
pub enum SetRef<'a> {
    /// Integers only, and few.
    Ints(IntSetRef<'a>),
    /// Few and short members.
    Packed(Packed<'a>),
    /// Many or long ones.
    Table(&'a Members),
}

impl Default for SetForm {
    fn default() -> SetForm {
        SetForm::Ints(IntSet::default())
    }
}

impl MemberForm for SetForm {
    const VALUE_TYPE: ValueType = ValueType::Set;

    type View<'a> = SetRef<'a>;

    fn view(&self) -> SetRef<'_> {
        match self {
            SetForm::Ints(ints) => SetRef::Ints(ints.view()),
            SetForm::Packed(packed) => SetRef::Packed(packed.view()),
            SetForm::Table(members) => SetRef::Table(members),
        }
    }

    fn len(view: SetRef<'_>) -> usize {
        view.len()
    }

    fn has(view: SetRef<'_>, member: &[u8]) -> bool {
        view.contains(Item::Bytes(member))
    }

    fn take(&mut self, member: &[u8]) -> bool {
        self.remove(Item::Bytes(member))
    }

    fn view_packed(form: PackedKind, bytes: &[u8]) -> Option<SetRef<'_>> {
        match form {
            PackedKind::IntSet => Some(SetRef::Ints(IntSetRef::new(bytes))),
            PackedKind::Set => Some(SetRef::Packed(Packed::new(bytes))),
            PackedKind::List | PackedKind::Hash | PackedKind::Zset => None,
        }
    }

    fn from_packed(form: PackedKind, bytes: Vec<u8>) -> Option<SetForm> {
        match form {
            PackedKind::IntSet => Some(SetForm::Ints(IntSet::from_bytes(bytes))),
            PackedKind::Set => Some(SetForm::Packed(PackedBuf::from_bytes(bytes))),
            PackedKind::List | PackedKind::Hash | PackedKind::Zset => None,
        }
    }

    fn packed(&self) -> Option<(PackedKind, &[u8])> {
        match self {
            SetForm::Ints(ints) => Some((PackedKind::IntSet, ints.bytes())),
            SetForm::Packed(packed) => Some((PackedKind::Set, packed.view().bytes())),
            SetForm::Table(_) => None,
        }
    }

    fn into_packed_bytes(self) -> Option<Vec<u8>> {
        match self {
            SetForm::Ints(ints) => Some(ints.into_bytes()),
            SetForm::Packed(packed) => Some(packed.into_bytes()),
            SetForm::Table(_) => None,
        }
    }

    fn of_object(object: &Object) -> Option<&Set> {
        if let Object::Set(set) = object { Some(set) } else { None }
    }

    fn of_object_mut(object: &mut Object) -> Option<&mut Set> {
        if let Object::Set(set) = object { Some(set) } else { None }
    }

    fn into_object(set: Set) -> Object {
        Object::Set(set)
    }

    fn fit(&mut self) {
        match self {
            SetForm::Ints(ints) => ints.fit(),
            SetForm::Packed(packed) => packed.fit(),
            SetForm::Table(_) => {}
        }
    }

    fn memory(&self, looks: Looks) -> usize {
        match self {
            SetForm::Ints(ints) => ints.memory(),
            SetForm::Packed(packed) => packed.memory(),
            SetForm::Table(members) => members.memory(looks),
        }
    }
}

/// The element as packed sequences hold it, where equal strings are equal elements.
#[inline]
fn canonical(member: Item<'_>) -> Item<'_> {
    match member {
        Item::Bytes(bytes) => Item::of(bytes),
        Item::Int(_) => member,
    }
}

/// The number that a member is, if it is one.
#[inline]
fn number(member: Item<'_>) -> Option<i64> {
    match canonical(member) {
        Item::Int(int) => Some(int),
        Item::Bytes(_) => None,
    }
}

/// Where a canonical member is in a packed sequence.
#[inline]
fn find_packed<'a>(packed: Packed<'a>, member: Item<'_>) -> Option<Element<'a>> {
    packed.find::<1>(member).map(|found| found.element)
}

impl<'a> SetRef<'a> {
    /// The set of no member.
    pub const EMPTY: SetRef<'static> = SetRef::Ints(IntSetRef::new(&[]));

    /// How many members there are.
    #[inline]
    pub fn len(self) -> usize {
        match self {
            SetRef::Ints(ints) => ints.len(),
            SetRef::Packed(packed) => packed.len(),
            SetRef::Table(members) => members.len(),
        }
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether the member is there; its bytes need not be canonical.
    #[inline]
    pub fn contains(self, member: Item<'_>) -> bool {
        match self {
            SetRef::Ints(ints) => number(member).is_some_and(|int| ints.contains(int)),
            SetRef::Packed(packed) => find_packed(packed, canonical(member)).is_some(),
            SetRef::Table(members) => members.contains(member.as_bytes(&mut IntText::new())),
        }
    }

    /// Calls `visit` with each member until it breaks off, integers in ascending order, others in no particular one. A
    /// string may be the decimal form of a number.
    pub fn try_for_each(self, mut visit: impl FnMut(Item<'a>) -> ControlFlow<()>) -> ControlFlow<()> {
        match self {
            SetRef::Ints(ints) => ints.iter().try_for_each(|int| visit(Item::Int(int))),
            SetRef::Packed(packed) => packed.iter().try_for_each(|element| visit(element.item)),
            SetRef::Table(members) => members.iter().try_for_each(|member| visit(Item::Bytes(member))),
        }
    }

    /// Calls `visit` with each member.
    pub fn for_each(self, mut visit: impl FnMut(Item<'a>)) {
        let _ = self.try_for_each(|member| {
            visit(member);
            ControlFlow::Continue(())
        });
    }

    /// Calls `visit` with about `count` members from a cursor on; gives the next cursor, 0 at the end. The small forms
    /// come whole, whatever the cursor.
    pub fn scan(self, cursor: u64, count: usize, mut visit: impl FnMut(Item<'a>)) -> u64 {
        match self {
            SetRef::Table(members) => members.scan(cursor, count, |member| visit(Item::Bytes(member))),
            SetRef::Ints(_) | SetRef::Packed(_) => {
                self.for_each(visit);
                0
            }
        }
    }
}

impl SetForm {
    /// Chooses the form for up to `count` members that will be added, of which this is the first: an empty set takes the
    /// form that they would come to, any other becomes a table if they could be too many.
    fn expect(&mut self, first: &[u8], count: usize, limits: SetLimits) {
        match self {
            SetForm::Ints(ints) if ints.view().is_empty() => {
                if count > limits.ints || Item::of(first) == Item::Bytes(first) {
                    *self = match count > limits.members {
                        true => SetForm::Table(Members::default()),
                        false => SetForm::Packed(PackedBuf::new()),
                    };
                }
            }
            SetForm::Ints(_) if count > limits.ints => self.become_table(),
            SetForm::Packed(_) if count > limits.members => self.become_table(),
            SetForm::Ints(_) | SetForm::Packed(_) | SetForm::Table(_) => {}
        }
    }

    /// Adds a member; tells whether it is new. Its bytes need not be canonical.
    fn add(&mut self, member: Item<'_>, limits: SetLimits) -> bool {
        match self {
            SetForm::Table(members) => members.add(member.as_bytes(&mut IntText::new())),
            SetForm::Packed(packed) => {
                let is_new = find_packed(packed.view(), canonical(member)).is_none();
                if is_new {
                    self.add_new(member, limits);
                }
                is_new
            }
            SetForm::Ints(ints) => {
                let Some(int) = number(member) else {
                    self.leave_ints(member.len(), limits);
                    return self.add(member, limits);
                };
                let is_new = ints.add(int);
                if is_new && ints.view().len() > limits.ints {
                    self.become_table();
                }
                is_new
            }
        }
    }

    /// Adds a member that is not there. Its bytes need not be canonical.
    fn add_new(&mut self, member: Item<'_>, limits: SetLimits) {
        match self {
            SetForm::Table(members) => {
                let mut room: IntText = IntText::new();
                let bytes = member.as_bytes(&mut room);
                members.add_new(bytes, element_hash(bytes));
            }
            SetForm::Packed(packed) => {
                let member = canonical(member);
                if packed.len() < limits.members.min(COUNT_MAX) && member.len() <= limits.bytes {
                    packed.push(member);
                } else {
                    self.become_table();
                    self.add_new(member, limits);
                }
            }
            SetForm::Ints(_) => _ = self.add(member, limits),
        }
    }

    /// Gives up the form for integers, as a member of so many bytes is none.
    fn leave_ints(&mut self, member_len: usize, limits: SetLimits) {
        let SetForm::Ints(ints) = self else { return };
        let ints = ints.view();
        // The longest are at the ends.
        let longest = if ints.is_empty() {
            0
        } else {
            Item::Int(ints.get(0)).len().max(Item::Int(ints.get(ints.len() - 1)).len())
        };
        if ints.len() < limits.members.min(COUNT_MAX) && longest.max(member_len) <= limits.bytes {
            let mut packed = PackedBuf::new();
            ints.iter().for_each(|int| packed.push(Item::Int(int)));
            *self = SetForm::Packed(packed);
        } else {
            self.become_table();
        }
    }

    fn become_table(&mut self) {
        let mut members = Members::default();
        let mut room: IntText = IntText::new();
        self.view().for_each(|member| {
            members.add(member.as_bytes(&mut room));
        });
        *self = SetForm::Table(members);
    }

    /// Takes a member out; tells whether it was there. Its bytes need not be canonical.
    fn remove(&mut self, member: Item<'_>) -> bool {
        match self {
            SetForm::Ints(ints) => {
                let Some(Ok(index)) = number(member).map(|int| ints.view().find(int)) else { return false };
                ints.remove(index);
                true
            }
            SetForm::Packed(packed) => {
                let Some(Element { at, end, .. }) = find_packed(packed.view(), canonical(member)) else { return false };
                packed.remove(at..end, 1);
                true
            }
            SetForm::Table(members) => members.remove(member.as_bytes(&mut IntText::new())),
        }
    }
}

impl Set {
    /// Chooses the form for up to `count` members that will be added, of which this is the first: an empty set takes the
    /// form that they would come to, any other becomes a table if they could be too many.
    pub fn expect(&mut self, first: &[u8], count: usize, limits: SetLimits) {
        self.elements_mut().expect(first, count, limits);
    }

    /// Adds a member, which keeps its deadline if it is there; tells whether it is new. Its bytes need not be canonical.
    pub fn add(&mut self, member: Item<'_>, limits: SetLimits) -> bool {
        self.elements_mut().add(member, limits)
    }

    /// Adds a member that is not there. Its bytes need not be canonical.
    pub fn add_new(&mut self, member: Item<'_>, limits: SetLimits) {
        self.elements_mut().add_new(member, limits);
    }

    /// Takes a member out; tells whether it was there. Its bytes need not be canonical.
    pub fn remove(&mut self, member: Item<'_>) -> bool {
        self.take(member.as_bytes(&mut IntText::new()))
    }

    /// Redis's name for the encoding.
    pub fn encoding(&self) -> &'static str {
        match self.elements() {
            SetForm::Ints(_) => "intset",
            SetForm::Packed(_) => "listpack",
            SetForm::Table(_) => "hashtable",
        }
    }
}
