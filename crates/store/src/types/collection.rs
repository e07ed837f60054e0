//! What all collections have in common: packed in their key's entry while they are small, an object once they are
//! large. Knows no particular type.

use super::{DeadlinesRef, Object, ValueType};

/// The forms of a small collection whose elements lie packed in the entry of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackedKind {
    /// Elements in order.
    List,
    /// Fields and values in turn.
    Hash,
    /// Members in any order.
    Set,
    /// Integers in ascending order, of one width.
    IntSet,
    /// Members and scores in turn, in the order of scores.
    Zset,
}

/// How a small collection lies in the entry of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedForm {
    /// The form of its elements.
    pub kind: PackedKind,
    /// Whether deadlines of members lie behind them (`member_deadlines/packed.rs`).
    pub has_deadlines: bool,
}

impl PackedForm {
    /// Elements with nothing behind them.
    pub const fn plain(kind: PackedKind) -> PackedForm {
        PackedForm { kind, has_deadlines: false }
    }
}

/// The most bytes of a packed collection that lie in the entry itself: they are copied with each change. What is longer
/// and still packed is an object, which changes where it is.
pub const PACKED_INLINE_MAX: usize = 2 * 1024;

/// A collection type.
pub trait Collection: Default + 'static {
    /// Which type it is.
    const VALUE_TYPE: ValueType;

    /// What reading needs; it borrows from the entry or the object.
    type View<'a>: Copy;

    /// The collection, for reading.
    fn view(&self) -> Self::View<'_>;

    /// The collection in these packed bytes, for reading; `None` when they are of another type.
    fn view_packed(form: PackedForm, bytes: &[u8]) -> Option<Self::View<'_>>;

    /// The collection in these packed bytes, to be changed; `None` when they are of another type.
    fn from_packed(form: PackedForm, bytes: Vec<u8>) -> Option<Self>;

    /// Whether the collection can lie packed in so many bytes.
    fn packs_into(&self, at_most: usize) -> bool;

    /// Hands the collection to `put` as packed bytes, and gives what that gives with the allocation that they lie in, to be
    /// used again.
    ///
    /// # Panics
    /// When it cannot be packed ([`packs_into`](Collection::packs_into)).
    fn pack<R>(self, put: impl FnOnce(PackedForm, &[u8]) -> R) -> (R, Vec<u8>);

    /// The packed bytes' allocation, to be used again; `None` when there is none.
    fn into_packed_bytes(self) -> Option<Vec<u8>>;

    /// The collection that an object is, if it is of this type.
    fn of_object(object: &Object) -> Option<&Self>;

    /// The collection that an object is, to be changed where it is.
    fn of_object_mut(object: &mut Object) -> Option<&mut Self>;

    /// The object for the collection.
    fn into_object(self) -> Object;

    /// Whether there is no element: then the key goes.
    fn is_empty(&self) -> bool;

    /// The deadlines of members, if any has one.
    fn deadlines(&self) -> Option<DeadlinesRef<'_>> {
        None
    }

    /// Whether something of it goes when its time has come: members, or what it remembers.
    fn expires_in_part(&self) -> bool {
        self.deadlines().is_some()
    }
}
