//! The texts that SORT's elements are sorted by: one that is long is kept once for all elements that name it, and by reference
//! where that can be, so that a few bytes of elements do not ask for all the memory there is. Knows no key.

use super::elements::Elements;
use bytes::Bytes;
use std::cmp::Ordering;
use std::collections::HashMap;
use tenon_engine::ds::packed::{IntText, Item};
use tenon_engine::ds::progress;
use tenon_engine::store::entry::ValueRef;
use tenon_engine::store::types::{Object, Rope};
use tenon_engine::string;

/// Length of a text in bytes from which on it is looked up whether another element has named it.
const LONG_LEN: usize = 256;

/// Texts by the index of their element.
#[derive(Debug, Default)]
pub(super) struct Texts {
    kinds: Vec<Kind>,
    /// Empty where the text is of another kind.
    short: Elements,
    long: Vec<Rope>,
    /// Which of the long ones lies where in the store. Nothing there moves or changes while texts are gathered.
    by_address: HashMap<usize, u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Absent,
    Short,
    Long(u32),
}

impl Texts {
    /// None, and room for so many.
    pub(super) fn with_room(count: usize) -> Texts {
        Texts { kinds: Vec::with_capacity(count), short: Elements::with_room(count), ..Texts::default() }
    }

    /// Adds that an element has none.
    pub(super) fn push_absent(&mut self) {
        self.push(Kind::Absent, b"");
    }

    /// Adds a string of the store.
    pub(super) fn push_string(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Int(int) => self.push(Kind::Short, Item::Int(int).as_bytes(&mut IntText::new())),
            ValueRef::Bytes(bytes) => self.push_bytes(bytes),
            ValueRef::Object(object) => self.push_long(std::ptr::from_ref(object).addr(), || match object {
                Object::Shared(bytes) => Rope::from(bytes.clone()),
                Object::Rope(rope) => rope.share(),
                _ => string::no_string(),
            }),
            ValueRef::Packed(..) => string::no_string(),
        }
    }

    /// Adds a text that lies in one piece in the store.
    pub(super) fn push_bytes(&mut self, text: &[u8]) {
        if text.len() < LONG_LEN {
            self.push(Kind::Short, text);
        } else {
            self.push_long(text.as_ptr().addr(), || Rope::from(Bytes::copy_from_slice(text)));
        }
    }

    fn push_long(&mut self, address: usize, rope: impl FnOnce() -> Rope) {
        let index = *self.by_address.entry(address).or_insert_with(|| {
            self.long.push(rope());
            self.long.len() as u32 - 1
        });
        self.push(Kind::Long(index), b"");
    }

    fn push(&mut self, kind: Kind, short: &[u8]) {
        self.kinds.push(kind);
        self.short.push(short);
    }

    /// The order of two elements by their texts; those without one come first.
    pub(super) fn compare(&self, one: usize, other: usize) -> Ordering {
        match (self.kinds[one], self.kinds[other]) {
            (Kind::Short, Kind::Short) => self.short.get(one).cmp(self.short.get(other)),
            // Of long ones that are the same not a byte is looked at.
            (kind, same) if kind == same => Ordering::Equal,
            (Kind::Absent, _) => Ordering::Less,
            (_, Kind::Absent) => Ordering::Greater,
            (Kind::Short, Kind::Long(long)) => compare_pieces([self.short.get(one)], self.long_pieces(long)),
            (Kind::Long(long), Kind::Short) => compare_pieces(self.long_pieces(long), [self.short.get(other)]),
            (Kind::Long(one), Kind::Long(other)) => compare_pieces(self.long_pieces(one), self.long_pieces(other)),
        }
    }

    fn long_pieces(&self, long: u32) -> impl Iterator<Item = &[u8]> {
        self.long[long as usize].slices()
    }
}

/// The order of two texts in pieces, however they are cut.
fn compare_pieces<'a>(one: impl IntoIterator<Item = &'a [u8]>, other: impl IntoIterator<Item = &'a [u8]>) -> Ordering {
    fn next<'a>(pieces: &mut impl Iterator<Item = &'a [u8]>) -> &'a [u8] {
        pieces.find(|piece| !piece.is_empty()).unwrap_or_default()
    }
    let (mut ones, mut others) = (one.into_iter(), other.into_iter());
    let (mut one, mut other) = (next(&mut ones), next(&mut others));
    loop {
        let len = one.len().min(other.len());
        if len == 0 {
            return one.len().cmp(&other.len());
        }
        progress::count_bytes(len);
        let order = one[..len].cmp(&other[..len]);
        if order != Ordering::Equal {
            return order;
        }
        (one, other) = (&one[len..], &other[len..]);
        if one.is_empty() {
            one = next(&mut ones);
        }
        if other.is_empty() {
            other = next(&mut others);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_compare_as_wholes() {
        let texts = ["", "a", "ab", "abc", "abd", "b"];
        let cut = |text: &'static str, at: usize| {
            let (first, rest) = text.as_bytes().split_at(at.min(text.len()));
            [first, b"", rest]
        };
        for (one, other) in texts.iter().flat_map(|one| texts.iter().map(move |other| (*one, *other))) {
            for (at, other_at) in [(0, 0), (1, 2), (2, 1), (3, 0)] {
                assert_eq!(compare_pieces(cut(one, at), cut(other, other_at)), one.cmp(other), "{one} {other}");
            }
        }
    }

    #[test]
    fn a_long_text_is_kept_once_and_by_reference() {
        let long = vec![b'x'; LONG_LEN];
        let chunk = Bytes::from(vec![b'y'; 20_000]);
        let objects = [Object::Shared(chunk.clone()), Object::Rope(Rope::from(&vec![b'z'; 2_000_000][..]))];
        let mut texts = Texts::default();
        for _ in 0..3 {
            objects.iter().for_each(|object| texts.push_string(ValueRef::Object(object)));
            texts.push_bytes(&long);
            texts.push_bytes(b"short");
            texts.push_string(ValueRef::Int(7));
            texts.push_absent();
        }
        assert_eq!(texts.long.len(), 3);
        let first = |rope: &Rope| rope.slices().find(|slice| !slice.is_empty()).map(<[u8]>::as_ptr);
        let Object::Rope(rope) = &objects[1] else { unreachable!("it was made so") };
        assert_eq!((first(&texts.long[0]), first(&texts.long[1])), (Some(chunk.as_ptr()), first(rope)));
        let mut indexes: Vec<usize> = (0..18).collect();
        indexes.sort_by(|one, other| texts.compare(*one, *other));
        // Without a text, 7, short, x, y and z.
        assert_eq!(indexes, [5, 11, 17, 4, 10, 16, 3, 9, 15, 2, 8, 14, 0, 6, 12, 1, 7, 13]);
    }
}
