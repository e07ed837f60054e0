//! What SORT sorts: the elements of a list, set or sorted set, one after another in memory of their own. Knows no option.

use tenon_engine::context::view_of;
use tenon_engine::ds::packed::{IntText, Item};
use tenon_engine::errors::CmdError;
use tenon_engine::store::entry::ValueRef;
use tenon_engine::store::types::{List, Set, ValueType, Zset};

/// A collection that can be sorted, for reading.
#[derive(Clone, Copy)]
pub(super) struct Sortable<'a> {
    value: ValueRef<'a>,
    value_type: ValueType,
}

impl<'a> Sortable<'a> {
    /// The collection that a value is.
    pub(super) fn of(value: ValueRef<'a>) -> Result<Sortable<'a>, CmdError> {
        let value_type = ValueType::of(value);
        match value_type {
            ValueType::List | ValueType::Set | ValueType::Zset => Ok(Sortable { value, value_type }),
            ValueType::String | ValueType::Hash | ValueType::Stream => Err(CmdError::WrongType),
        }
    }

    /// Which type it is.
    pub(super) fn value_type(self) -> ValueType {
        self.value_type
    }

    /// How many elements there are.
    pub(super) fn len(self) -> usize {
        const WHY: &str = "the type was looked at";
        match self.value_type {
            ValueType::List => view_of::<List>(self.value).expect(WHY).len(),
            ValueType::Set => view_of::<Set>(self.value).expect(WHY).len(),
            _ => view_of::<Zset>(self.value).expect(WHY).len(),
        }
    }

    /// Calls `visit` with each element: a list's in order, a sorted set's by score, a set's in no particular order.
    pub(super) fn for_each(self, mut visit: impl FnMut(&[u8])) {
        const WHY: &str = "the type was looked at";
        let mut room = IntText::new();
        let mut visit = |element: Item<'a>| visit(element.as_bytes(&mut room));
        match self.value_type {
            ValueType::List => view_of::<List>(self.value).expect(WHY).iter_from(0).for_each(visit),
            ValueType::Set => view_of::<Set>(self.value).expect(WHY).for_each(visit),
            _ => view_of::<Zset>(self.value).expect(WHY).for_each(|member, _| visit(member)),
        }
    }
}

/// Elements by their index.
#[derive(Debug, Default)]
pub(super) struct Elements {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Elements {
    /// A copy of a collection's elements.
    pub(super) fn of(sortable: Sortable<'_>) -> Elements {
        let mut elements = Elements::default();
        elements.ends.reserve(sortable.len());
        sortable.for_each(|element| elements.push(element));
        elements
    }

    pub(super) fn push(&mut self, element: &[u8]) {
        self.bytes.extend_from_slice(element);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }
}
