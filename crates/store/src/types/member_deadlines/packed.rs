//! The deadlines of a small collection's members behind its packed elements, in the entry of its key: one for each member,
//! also for those that have none, in the order of the elements. So no member is written twice.
//!
//! ```text
//! +-----------------+---------------------+-----------------------------+
//! | packed elements | 6 B for each member | where the elements end, 2 B |
//! +-----------------+---------------------+-----------------------------+
//! ```
//!
//! While the collection is changed they are beside its elements, as they are, if only values change; who adds, removes or
//! moves members has them kept by member meanwhile. Knows no entry and no present.

use super::run::{DEADLINE_LEN, Run, deadline_bytes, deadline_of};
use super::{MEMBER_DEADLINE_MAX_MS, MemberDeadlines};
use crate::types::set::IntSetRef;
use crate::types::{PackedForm, PackedKind};
use tenon_ds::packed::{IntText, Item, Packed};

/// Instead of a deadline where there is none: later than any.
const NONE: u64 = (1 << (8 * DEADLINE_LEN)) - 1;
const _: () = assert!(NONE > MEMBER_DEADLINE_MAX_MS);

/// Bytes that say where the elements end.
const END_LEN: usize = size_of::<u16>();

/// The most bytes that elements and deadlines may take together.
pub(in crate::types) const LEN_MAX: usize = u16::MAX as usize;

/// The deadlines of a small collection's members, for reading.
#[derive(Clone, Copy, Debug)]
pub struct PackedDeadlines<'a> {
    kind: PackedKind,
    elements: &'a [u8],
    each: &'a [[u8; DEADLINE_LEN]],
}

/// The same beside their elements: good as long as no element comes, goes or changes its place.
#[derive(Clone, Debug)]
pub(in crate::types) struct Each(Vec<[u8; DEADLINE_LEN]>);

/// Where the elements end in the bytes of a packed collection with deadlines.
#[inline]
fn end_of_elements(bytes: &[u8]) -> usize {
    let end = bytes.last_chunk().expect("the place where the elements end is there");
    u16::from_le_bytes(*end).into()
}

/// The elements of a packed collection, without what lies behind them.
#[inline]
pub(in crate::types) fn elements_of(form: PackedForm, bytes: &[u8]) -> &[u8] {
    if form.has_deadlines { &bytes[..end_of_elements(bytes)] } else { bytes }
}

/// Calls `visit` with each member of packed elements, in their order.
fn for_each_member(kind: PackedKind, elements: &[u8], mut visit: impl FnMut(Item<'_>)) {
    let step = match kind {
        PackedKind::IntSet => return IntSetRef::new(elements).iter().for_each(|int| visit(Item::Int(int))),
        PackedKind::Hash | PackedKind::Zset => 2,
        _ => 1,
    };
    Packed::new(elements).iter().step_by(step).for_each(|element| visit(element.item));
}

/// How many bytes a collection of so many members has behind its elements.
pub(in crate::types) fn len_of(members: usize) -> usize {
    members * DEADLINE_LEN + END_LEN
}

/// Which of the members this is, in the order of the elements.
pub(in crate::types) fn place_of(kind: PackedKind, elements: &[u8], member: &[u8]) -> Option<usize> {
    let item = Item::of(member);
    match (kind, item) {
        (PackedKind::IntSet, Item::Int(int)) => IntSetRef::new(elements).find(int).ok(),
        (PackedKind::IntSet, Item::Bytes(_)) => None,
        (PackedKind::Hash | PackedKind::Zset, _) => Packed::new(elements).find::<2>(item).map(|found| found.index),
        (PackedKind::Set | PackedKind::List, _) => Packed::new(elements).find::<1>(item).map(|found| found.index),
    }
}

impl Each {
    /// So many members without a deadline.
    pub(in crate::types) fn none(members: usize) -> Each {
        Each(vec![deadline_bytes(NONE); members])
    }

    /// Deadlines that were kept by member.
    pub(in crate::types) fn of_members(kind: PackedKind, elements: &[u8], deadlines: &MemberDeadlines) -> Each {
        let mut each = Vec::new();
        let mut room = IntText::new();
        for_each_member(kind, elements, |member| {
            let deadline_ms = deadlines.of(member.as_bytes(&mut room));
            each.push(deadline_bytes(deadline_ms.unwrap_or(NONE)));
        });
        Each(each)
    }

    /// Cuts them off from the bytes of a packed collection, of which the elements stay.
    pub(in crate::types) fn split_off(bytes: &mut Vec<u8>) -> Each {
        let end = end_of_elements(bytes);
        let (each, _) = bytes[end..].as_chunks();
        let each = Each(each.to_vec());
        bytes.truncate(end);
        each
    }

    /// Writes them behind the elements.
    ///
    /// # Panics
    /// When the elements are longer than [`LEN_MAX`].
    pub(in crate::types) fn append_to(&self, elements: &mut Vec<u8>) {
        let end = u16::try_from(elements.len()).expect("what lies in an entry is short");
        elements.extend_from_slice(self.0.as_flattened());
        elements.extend_from_slice(&end.to_le_bytes());
    }

    /// The same kept by member.
    pub(in crate::types) fn by_member(&self, kind: PackedKind, elements: &[u8]) -> MemberDeadlines {
        let mut run = Run::with_room_for(elements.len() + len_of(self.0.len()));
        self.view(kind, elements).for_each(|member, deadline_ms| run.push(member, deadline_ms));
        MemberDeadlines::from(run)
    }

    /// For reading, with their elements.
    pub(in crate::types) fn view<'a>(&'a self, kind: PackedKind, elements: &'a [u8]) -> PackedDeadlines<'a> {
        PackedDeadlines { kind, elements, each: &self.0 }
    }

    /// Gives the member at a place a deadline.
    pub(in crate::types) fn set(&mut self, place: usize, deadline_ms: u64) {
        self.0[place] = deadline_bytes(deadline_ms);
    }

    /// Takes the deadline of the member at a place away; tells whether it had one.
    pub(in crate::types) fn remove(&mut self, place: usize) -> bool {
        std::mem::replace(&mut self.0[place], deadline_bytes(NONE)) != deadline_bytes(NONE)
    }

    /// Whether none has one.
    pub(in crate::types) fn is_empty(&self) -> bool {
        self.0.iter().all(|bytes| *bytes == deadline_bytes(NONE))
    }

    /// Bytes of the allocation.
    pub(in crate::types) fn memory(&self) -> usize {
        self.0.capacity() * DEADLINE_LEN
    }
}

impl<'a> PackedDeadlines<'a> {
    /// Those in the bytes of a packed collection, if it has any.
    #[inline]
    pub fn of_packed(form: PackedForm, bytes: &'a [u8]) -> Option<PackedDeadlines<'a>> {
        form.has_deadlines.then(|| {
            let (elements, behind) = bytes.split_at(end_of_elements(bytes));
            let (each, _) = behind.as_chunks();
            PackedDeadlines { kind: form.kind, elements, each }
        })
    }

    /// Each member's deadline, a late one where it has none.
    fn each_ms(self) -> impl Iterator<Item = u64> {
        self.each.iter().map(|bytes| deadline_of(*bytes))
    }

    /// How many members have a deadline.
    pub fn len(self) -> usize {
        self.each_ms().filter(|&deadline_ms| deadline_ms != NONE).count()
    }

    /// Whether none has one.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The deadline of a member in milliseconds since the UNIX epoch.
    pub fn of(self, member: &[u8]) -> Option<u64> {
        let place = place_of(self.kind, self.elements, member)?;
        Some(deadline_of(self.each[place])).filter(|&deadline_ms| deadline_ms != NONE)
    }

    /// How many deadlines are past.
    pub fn past(self, now_ms: u64) -> usize {
        self.each_ms().filter(|&deadline_ms| deadline_ms < now_ms).count()
    }

    /// The first deadline.
    pub fn next_ms(self) -> Option<u64> {
        self.each_ms().min().filter(|&deadline_ms| deadline_ms != NONE)
    }

    /// Whether each member has a deadline, and it is past.
    pub fn are_all_past(self, now_ms: u64) -> bool {
        self.each_ms().all(|deadline_ms| deadline_ms < now_ms)
    }

    /// Calls `visit` with each member that has a deadline and with that.
    pub fn for_each(self, mut visit: impl FnMut(&[u8], u64)) {
        let mut each = self.each_ms();
        let mut room = IntText::new();
        for_each_member(self.kind, self.elements, |member| match each.next() {
            Some(NONE) | None => {}
            Some(deadline_ms) => visit(member.as_bytes(&mut room), deadline_ms),
        });
    }
}
