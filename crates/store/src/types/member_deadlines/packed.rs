//! The deadlines of a small collection's members behind its packed elements, in the entry of its key: one for each member,
//! also for those that have none, in the order of the elements. So no member is written twice.
//!
//! ```text
//! +-----------------+---------------------+-----------------------------+
//! | packed elements | 6 B for each member | where the elements end, 2 B |
//! +-----------------+---------------------+-----------------------------+
//! ```
//!
//! Knows no entry and no present.

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

/// Writes the deadlines behind the elements.
///
/// # Panics
/// When they are many, or the elements are longer than [`LEN_MAX`].
pub(in crate::types) fn append(bytes: &mut Vec<u8>, kind: PackedKind, members: usize, deadlines: &MemberDeadlines) {
    let run = deadlines.few().expect("what lies in an entry has few members");
    let end = bytes.len();
    bytes.resize(end + len_of(members), 0);
    let (elements, behind) = bytes.split_at_mut(end);
    let (each, last) = behind.as_chunks_mut::<DEADLINE_LEN>();
    // What was read from such bytes is in the order of the elements.
    let mut records = run.iter().peekable();
    let mut places = each.iter_mut();
    let mut room = IntText::new();
    for_each_member(kind, elements, |member| {
        let member = member.as_bytes(&mut room);
        let deadline_ms = match records.next_if(|&(next, _)| next == member) {
            Some((_, deadline_ms)) => Some(deadline_ms),
            None => run.of(member),
        };
        *places.next().expect("each member has a place") = deadline_bytes(deadline_ms.unwrap_or(NONE));
    });
    let end = u16::try_from(end).expect("what lies in an entry is short");
    last.copy_from_slice(&end.to_le_bytes());
}

/// Cuts the deadlines off that lie behind the elements.
pub(in crate::types) fn split_off(bytes: &mut Vec<u8>, kind: PackedKind) -> MemberDeadlines {
    let deadlines = PackedDeadlines::new(kind, bytes);
    let mut run = Run::with_room_for(deadlines.elements.len() + len_of(deadlines.each.len()));
    deadlines.for_each(|member, deadline_ms| run.push(member, deadline_ms));
    let end = deadlines.elements.len();
    bytes.truncate(end);
    MemberDeadlines::from(run)
}

impl<'a> PackedDeadlines<'a> {
    /// Those in the bytes of a packed collection, if it has any.
    #[inline]
    pub fn of_packed(form: PackedForm, bytes: &'a [u8]) -> Option<PackedDeadlines<'a>> {
        form.has_deadlines.then(|| PackedDeadlines::new(form.kind, bytes))
    }

    fn new(kind: PackedKind, bytes: &'a [u8]) -> PackedDeadlines<'a> {
        let (elements, behind) = bytes.split_at(end_of_elements(bytes));
        let (each, _) = behind.as_chunks();
        PackedDeadlines { kind, elements, each }
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
        let item = Item::of(member);
        let index = match (self.kind, item) {
            (PackedKind::IntSet, Item::Int(int)) => IntSetRef::new(self.elements).find(int).ok(),
            (PackedKind::IntSet, Item::Bytes(_)) => None,
            (PackedKind::Hash | PackedKind::Zset, _) => {
                Packed::new(self.elements).find::<2>(item).map(|found| found.index)
            }
            _ => Packed::new(self.elements).find::<1>(item).map(|found| found.index),
        };
        Some(deadline_of(self.each[index?])).filter(|&deadline_ms| deadline_ms != NONE)
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
