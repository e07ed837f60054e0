//! The fields of a small hash: field and value in turn in a packed run, and once that is long, beside it where each
//! field starts. Knows no limits.
//!
//! Redis passes over half of up to 512 fields to find one, and so would whoever reads the run alone.

use crate::hash::element_hash;
use crate::types::PACKED_INLINE_MAX;
use std::ops::Range;
use tenon_ds::packed::{IntText, Item, Packed, PackedBuf, Places, REACH};

/// Fields and values, to be changed.
#[derive(Clone, Debug, Default)]
pub struct PackedFields {
    run: PackedBuf,
    /// Of a run that was once longer than what lies in an entry, unless it has grown out of reach.
    places: Option<Box<Places>>,
}

/// Fields and values, for reading.
#[derive(Clone, Copy, Debug)]
pub struct PackedFieldsRef<'a> {
    /// Field and value in turn.
    pub run: Packed<'a>,
    places: Option<&'a Places>,
}

/// A field that is there.
struct Found<'a> {
    /// Where the field starts.
    at: usize,
    /// The value.
    value: Item<'a>,
    /// The bytes of the value.
    range: Range<usize>,
}

impl<'a> PackedFieldsRef<'a> {
    /// The fields in a run, without their places.
    #[inline]
    pub(super) fn of_run(run: Packed<'a>) -> PackedFieldsRef<'a> {
        PackedFieldsRef { run, places: None }
    }

    /// How many fields there are.
    #[inline]
    pub fn len(self) -> usize {
        self.run.len() / 2
    }

    /// Whether there is no field.
    pub fn is_empty(self) -> bool {
        self.run.is_empty()
    }

    /// Fields and values in their order.
    pub fn iter(self) -> impl Iterator<Item = (Item<'a>, Item<'a>)> {
        let mut elements = self.run.iter();
        std::iter::from_fn(move || Some((elements.next()?.item, elements.next()?.item)))
    }

    /// The value of a field.
    #[inline]
    pub fn get(self, field: &[u8]) -> Option<Item<'a>> {
        self.find(field).map(|found| found.value)
    }

    #[inline]
    fn find(self, field: &[u8]) -> Option<Found<'a>> {
        let wanted = Item::of(field);
        let element = match self.places {
            None => self.run.find::<2>(wanted)?.element,
            Some(places) => {
                let mut starts = places.of(element_hash(field));
                starts.find_map(|at| Some(self.run.at(at)).filter(|element| element.item == wanted))?
            }
        };
        let value = self.run.at(element.end);
        Some(Found { at: element.at, value: value.item, range: value.at..value.end })
    }
}

impl PackedFields {
    /// The fields in a run.
    pub(super) fn from_run(run: PackedBuf) -> PackedFields {
        PackedFields { run, places: None }
    }

    /// The fields, for reading.
    #[inline]
    pub(super) fn view(&self) -> PackedFieldsRef<'_> {
        PackedFieldsRef { run: self.run.view(), places: self.places.as_deref() }
    }

    /// The bytes of the run.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.run.into_bytes()
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        let places = self.places.as_ref().map_or(0, |places| size_of::<Places>() + places.memory());
        self.run.memory() + places
    }

    /// Gives back the run's allocation's room beside what it holds.
    pub(super) fn fit(&mut self) {
        self.run.fit();
    }

    /// Gives a field that is there another value; tells whether it is there.
    pub(super) fn replace(&mut self, field: &[u8], value: Item<'_>) -> bool {
        let Some(Found { at, range, .. }) = self.view().find(field) else { return false };
        let by = value.packed_len() as isize - range.len() as isize;
        self.run.replace(range, value);
        if by != 0 {
            self.places.take_if(|_| self.run.byte_len() >= REACH);
            if let Some(places) = &mut self.places {
                places.moved(at, by);
            }
            self.has_grown();
        }
        true
    }

    /// Adds a field that is not there.
    ///
    /// # Panics
    /// When there are as many as a run can count.
    pub(super) fn push(&mut self, field: &[u8], value: &[u8]) {
        if let Some(places) = &mut self.places {
            places.insert(element_hash(field), self.run.byte_len());
        }
        self.run.push(Item::of(field));
        self.run.push(Item::of(value));
        self.has_grown();
    }

    /// Takes a field out; tells whether it was there.
    pub(super) fn remove(&mut self, field: &[u8]) -> bool {
        let Some(Found { at, range, .. }) = self.view().find(field) else { return false };
        if let Some(places) = &mut self.places {
            places.remove(element_hash(field), at);
            places.moved(at, at as isize - range.end as isize);
        }
        self.run.remove(at..range.end, 2);
        true
    }

    /// Sees to it that the fields of a long run have places, and those of one that is longer than they reach have none.
    #[inline]
    fn has_grown(&mut self) {
        let len = self.run.byte_len();
        if len >= REACH {
            self.places = None;
        } else if len > PACKED_INLINE_MAX && self.places.is_none() {
            self.note_places();
        }
    }

    #[cold]
    fn note_places(&mut self) {
        let mut places = Places::with_capacity(self.run.len() / 2);
        let mut room = IntText::new();
        for field in self.run.view().iter().step_by(2) {
            places.insert(element_hash(field.item.as_bytes(&mut room)), field.at);
        }
        self.places = Some(Box::new(places));
    }
}
