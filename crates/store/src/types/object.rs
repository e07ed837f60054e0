//! What a value is when it does not fit its entry. Knows nothing of keys and commands.

use super::rope::{CHUNK_LEN, Rope};
use super::{
    Collection, DeadlinesRef, Hash, HashRef, List, PackedForm, PackedKind, Set, SetRef, Stream, Zset, ZsetRef,
};
use crate::entry::NewValue;
use crate::hash::element_hash;
use bytes::Bytes;
use tenon_ds::hash_table::Ahead;
use tenon_ds::looks::Looks;

/// How many ids of producers a stream forgets in one go: more than one brings into a stream in the same time, and less than
/// anybody notices. What is left is past all the same.
const FORGOTTEN_MAX: usize = 256;

/// A value with an allocation of its own.
#[derive(Debug)]
pub enum Object {
    /// A string that readers take a reference to.
    Shared(Bytes),
    /// A string in chunks.
    Rope(Rope),
    /// A hash that is no longer small.
    Hash(Hash),
    /// A list that is no longer small.
    List(List),
    /// A set that is no longer small.
    Set(Set),
    /// A sorted set that is no longer small.
    Zset(Zset),
    /// A stream.
    Stream(Box<Stream>),
}

impl Object {
    /// The same value once more; long strings are shared by reference as far as they can be, collections are copied.
    pub fn share(&self) -> Object {
        match self {
            Object::Hash(hash) => Object::Hash(hash.clone()),
            Object::List(list) => Object::List(list.clone()),
            Object::Set(set) => Object::Set(set.clone()),
            Object::Zset(zset) => Object::Zset(zset.clone()),
            Object::Stream(stream) => Object::Stream(stream.clone()),
            Object::Shared(bytes) => Object::Shared(bytes.clone()),
            Object::Rope(rope) => Object::Rope(rope.share()),
        }
    }

    /// The object for a string: shared as it is, or in chunks when it is longer than one.
    pub fn string(bytes: &[u8]) -> Object {
        if bytes.len() <= CHUNK_LEN {
            Object::Shared(Bytes::copy_from_slice(bytes))
        } else {
            Object::Rope(Rope::from(bytes))
        }
    }

    /// The object for a string that has arrived in chunks.
    pub fn from_rope(mut rope: Rope) -> Object {
        match rope.take_single() {
            Some(bytes) => Object::Shared(bytes),
            None => Object::Rope(rope),
        }
    }

    /// The object for a small collection of these packed bytes.
    pub fn of_packed(form: PackedForm, bytes: Vec<u8>) -> Object {
        let object = match form.kind {
            PackedKind::List => List::from_packed(form, bytes).map(Object::List),
            PackedKind::Hash => Hash::from_packed(form, bytes).map(Object::Hash),
            PackedKind::Set | PackedKind::IntSet => Set::from_packed(form, bytes).map(Object::Set),
            PackedKind::Zset => Zset::from_packed(form, bytes).map(Object::Zset),
        };
        object.expect("the bytes are of the form that they are kept as")
    }

    /// Hands the value to `put` as it is to be stored: a small collection packed.
    pub fn store<R>(self, put: impl FnOnce(NewValue<'_>) -> R) -> R {
        match self {
            Object::List(list) => NewValue::of_collection(list, put).0,
            Object::Hash(hash) => NewValue::of_collection(hash, put).0,
            Object::Set(set) => NewValue::of_collection(set, put).0,
            Object::Zset(zset) => NewValue::of_collection(zset, put).0,
            Object::Shared(_) | Object::Rope(_) | Object::Stream(_) => put(NewValue::Object(Box::new(self))),
        }
    }

    /// The string in chunks, made so if it was not; `None` when the object is no string.
    pub fn as_rope(&mut self) -> Option<&mut Rope> {
        if let Object::Shared(bytes) = self {
            *self = Object::Rope(Rope::from(std::mem::take(bytes)));
        }
        match self {
            Object::Rope(rope) => Some(rope),
            Object::Shared(_)
            | Object::Hash(_)
            | Object::List(_)
            | Object::Set(_)
            | Object::Zset(_)
            | Object::Stream(_) => None,
        }
    }

    /// Starts loading the slots of its table in which a member or field would be found. Gives the hash that
    /// [`Object::prefetch_element`] is to have; `None` when it has no such table.
    #[inline]
    pub fn prefetch_slots(&self, member: &[u8]) -> Option<u64> {
        self.has_table().then(|| {
            let hash = element_hash(member);
            self.prefetch(hash, Ahead::Slots);
            hash
        })
    }

    /// Starts loading the member or field of this hash, when its slots have had time to arrive.
    #[inline]
    pub fn prefetch_element(&self, hash: u64) {
        self.prefetch(hash, Ahead::Element);
    }

    fn has_table(&self) -> bool {
        match self {
            Object::Hash(hash) => matches!(hash.view(), HashRef::Table(_)),
            Object::Set(set) => matches!(set.view(), SetRef::Table(_)),
            Object::Zset(zset) => matches!(zset.view(), ZsetRef::Tree(_)),
            Object::Shared(_) | Object::Rope(_) | Object::List(_) | Object::Stream(_) => false,
        }
    }

    fn prefetch(&self, hash: u64, ahead: Ahead) {
        match self {
            Object::Hash(fields) => {
                if let HashRef::Table(fields) = fields.view() {
                    fields.prefetch(hash, ahead);
                }
            }
            Object::Set(members) => {
                if let SetRef::Table(members) = members.view() {
                    members.prefetch(hash, ahead);
                }
            }
            Object::Zset(members) => {
                if let ZsetRef::Tree(members) = members.view() {
                    members.prefetch(hash, ahead);
                }
            }
            Object::Shared(_) | Object::Rope(_) | Object::List(_) | Object::Stream(_) => {}
        }
    }

    /// About how many allocations there are to free.
    pub fn allocations(&self) -> usize {
        let elements = match self {
            Object::Shared(_) => 1,
            Object::Rope(rope) => rope.len() / CHUNK_LEN + 1,
            Object::Hash(hash) => hash.view().len(),
            Object::List(list) => list.allocations(),
            Object::Set(set) => match set.view() {
                SetRef::Table(members) => members.len(),
                SetRef::Ints(_) | SetRef::Packed(_) => 1,
            },
            Object::Zset(zset) => zset.view().len(),
            Object::Stream(stream) => stream.allocations(),
        };
        elements + self.deadlines().map_or(0, DeadlinesRef::allocations)
    }

    /// The deadlines of members, if any has one.
    #[inline]
    pub fn deadlines(&self) -> Option<DeadlinesRef<'_>> {
        match self {
            Object::Hash(hash) => hash.deadlines(),
            Object::Set(set) => set.deadlines(),
            Object::Zset(zset) => zset.deadlines(),
            Object::Shared(_) | Object::Rope(_) | Object::List(_) | Object::Stream(_) => None,
        }
    }

    /// When the first member expires, or what a stream remembers of its producers, in milliseconds since the UNIX epoch.
    #[inline]
    pub fn members_due_ms(&self) -> Option<u64> {
        match self {
            Object::Stream(stream) => stream.producers_due_ms(),
            _ => self.deadlines().and_then(DeadlinesRef::next_ms),
        }
    }

    /// Takes out members whose deadlines are past, at most so many; tells how many there were. Each is handed to `visit`, but
    /// for what streams remember, which nobody is told of.
    pub fn take_past_members(&mut self, now_ms: u64, at_most: usize, visit: &mut dyn FnMut(&[u8])) -> usize {
        match self {
            Object::Hash(hash) => hash.take_past(now_ms, at_most, visit),
            Object::Set(set) => set.take_past(now_ms, at_most, visit),
            Object::Zset(zset) => zset.take_past(now_ms, at_most, visit),
            Object::Stream(stream) => stream.forget_past(now_ms, at_most.min(FORGOTTEN_MAX)),
            Object::Shared(_) | Object::Rope(_) | Object::List(_) => 0,
        }
    }

    /// Whether it is a collection of which the deadlines of all members are past.
    pub fn is_past(&self, now_ms: u64) -> bool {
        match self {
            Object::Hash(hash) => hash.is_past(now_ms),
            Object::Set(set) => set.is_past(now_ms),
            Object::Zset(zset) => zset.is_past(now_ms),
            Object::Shared(_) | Object::Rope(_) | Object::List(_) | Object::Stream(_) => false,
        }
    }

    /// About how many steps `memory` takes.
    pub fn memory_steps(&self) -> usize {
        /// Elements to a part of a large collection's table, about: its parts are what is added up.
        const ELEMENTS_A_PART: usize = 512;
        match self {
            Object::Shared(_) | Object::Rope(_) | Object::List(_) => self.allocations(),
            Object::Stream(stream) => stream.memory_steps(),
            _ => self.allocations() / ELEMENTS_A_PART + 1,
        }
    }

    /// Bytes of memory, the object itself included.
    pub fn memory(&self, looks: Looks) -> usize {
        size_of::<Object>()
            + match self {
                Object::Shared(bytes) => bytes.len(),
                Object::Rope(rope) => rope.memory(looks),
                Object::Hash(hash) => hash.memory(looks),
                Object::List(list) => list.memory(looks),
                Object::Set(set) => set.memory(looks),
                Object::Zset(zset) => zset.memory(looks),
                Object::Stream(stream) => stream.memory(looks),
            }
    }
}
