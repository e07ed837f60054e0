//! What SORT sorts: the elements of a list, set or sorted set, one after another in memory of their own. Knows no option.

use std::ops::{ControlFlow, Range};
use tenon_engine::context::view_of;
use tenon_engine::ds::packed::{IntText, Item};
use tenon_engine::errors::CmdError;
use tenon_engine::store::entry::ValueRef;
use tenon_engine::store::types::zset::Direction;
use tenon_engine::store::types::{List, Set, ValueType, Zset};

/// Elements that lie one behind the other in a collection, and which of them comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) places: Range<usize>,
    /// Sets are read forward alone.
    pub(super) direction: Direction,
}

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

    /// All of it.
    pub(super) fn whole(self) -> Part {
        Part { places: 0..self.len(), direction: Direction::Ascending }
    }

    /// Calls `visit` with each element of a part: a list's in order, a sorted set's by score, a set's in no particular
    /// order.
    pub(super) fn for_each(self, part: &Part, mut visit: impl FnMut(&[u8])) {
        const WHY: &str = "the type was looked at";
        let mut room = IntText::new();
        let mut visit = |element: Item<'a>| visit(element.as_bytes(&mut room));
        let Part { places, direction } = part;
        match (self.value_type, *direction) {
            (ValueType::List, Direction::Ascending) => {
                let list = view_of::<List>(self.value).expect(WHY);
                list.iter_from(places.start).take(places.len()).for_each(visit);
            }
            (ValueType::List, Direction::Descending) => {
                let list = view_of::<List>(self.value).expect(WHY);
                list.iter_back_from(places.end).take(places.len()).for_each(visit);
            }
            (ValueType::Set, _) => {
                let mut place = 0;
                let _ = view_of::<Set>(self.value).expect(WHY).try_for_each(|member| {
                    if place == places.end {
                        return ControlFlow::Break(());
                    }
                    if place >= places.start {
                        visit(member);
                    }
                    place += 1;
                    ControlFlow::Continue(())
                });
            }
            (_, direction) => {
                let zset = view_of::<Zset>(self.value).expect(WHY);
                zset.for_each_in(places.clone(), direction, |member, _| visit(member));
            }
        }
    }
}

/// Bytes of elements that lie in one piece: one buffer for all would be copied as it grows.
const PIECE: usize = 256 * 1024;

/// Elements by their index.
#[derive(Clone, Debug, Default)]
pub(super) struct Elements {
    pieces: Vec<Vec<u8>>,
    places: Vec<Place>,
}

/// Where an element lies: behind the one before it, if that lies in the same piece.
#[derive(Clone, Copy, Debug)]
struct Place {
    piece: u32,
    /// Where it ends in the piece: an element is no longer than a string may be.
    end: u32,
}

impl Elements {
    /// A copy of a part of a collection.
    pub(super) fn of(sortable: Sortable<'_>, part: &Part) -> Elements {
        let mut elements = Elements::with_room(part.places.len());
        sortable.for_each(part, |element| elements.push(element));
        elements
    }

    /// None, and room to note so many.
    pub(super) fn with_room(count: usize) -> Elements {
        Elements { pieces: Vec::new(), places: Vec::with_capacity(count) }
    }

    pub(super) fn push(&mut self, element: &[u8]) {
        let has_room = |piece: &Vec<u8>| piece.is_empty() || piece.len() + element.len() <= PIECE;
        if !self.pieces.last().is_some_and(has_room) {
            // What is followed by a second piece is long.
            let capacity = if self.pieces.is_empty() { element.len() } else { PIECE.max(element.len()) };
            self.pieces.push(Vec::with_capacity(capacity));
        }
        let piece = self.pieces.len() as u32 - 1;
        let bytes = &mut self.pieces[piece as usize];
        bytes.extend_from_slice(element);
        self.places.push(Place { piece, end: bytes.len() as u32 });
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn get(&self, index: usize) -> &[u8] {
        let Place { piece, end } = self.places[index];
        let before = index.checked_sub(1).map(|before| self.places[before]);
        let start = before.filter(|before| before.piece == piece).map_or(0, |before| before.end);
        &self.pieces[piece as usize][start as usize..end as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_engine::ds::listpack::End;
    use tenon_engine::store::types::{Collection, ListLimits, Object, SetLimits, ZsetLimits};

    fn texts(object: &Object, part: Option<&Part>) -> Vec<Vec<u8>> {
        let sortable = Sortable::of(ValueRef::Object(object)).expect("it can be sorted");
        let whole = sortable.whole();
        let elements = Elements::of(sortable, part.unwrap_or(&whole));
        (0..elements.len()).map(|index| elements.get(index).to_vec()).collect()
    }

    #[test]
    fn elements_of_any_length_are_found_by_their_index() {
        let mut elements = Elements::default();
        let lens = [
            0,
            1,
            PIECE - 1,
            0,
            1,
            0,
            2,
            PIECE - 2,
            PIECE,
            0,
            PIECE + 1,
            5,
            0,
            3 * PIECE,
            0,
            0,
            PIECE / 2,
            PIECE / 2,
            1,
        ];
        for (len, byte) in lens.into_iter().zip(0..) {
            elements.push(&vec![byte; len]);
        }
        assert_eq!(elements.len(), lens.len());
        for (index, len) in lens.into_iter().enumerate() {
            assert!(elements.get(index) == vec![index as u8; len], "element {index}");
        }
        let held: usize = elements.pieces.iter().map(Vec::capacity).sum();
        assert!(held <= lens.iter().sum::<usize>() + 4 * PIECE, "{held} bytes");
    }

    #[test]
    fn parts_are_parts_of_the_whole_in_either_direction() {
        const LEN: usize = 300;
        // Few elements stay packed, and many do not; of sets integers are a form of their own.
        for (most, prefix) in [(LEN, "x"), (8, "x"), (LEN, "")] {
            let (mut list, mut set, mut zset) = (List::default(), Set::default(), Zset::default());
            for number in 0..LEN {
                let text = format!("{prefix}{}", number * 7919 % 1000).into_bytes();
                list.push(End::Back, Item::of(&text), &ListLimits::new(most as i32, usize::MAX));
                set.add(Item::of(&text), SetLimits { ints: most, members: most, bytes: 64 });
                zset.set(&text, (number % 11) as f64, ZsetLimits { members: most, bytes: 64 });
            }
            for object in [list.into_object(), set.into_object(), zset.into_object()] {
                let all = texts(&object, None);
                assert_eq!(all.len(), LEN);
                for places in [0..0, 0..1, 0..LEN, 5..9, LEN - 1..LEN, LEN..LEN, 17..290] {
                    let mut expected = all[places.clone()].to_vec();
                    let forward = Part { places: places.clone(), direction: Direction::Ascending };
                    assert_eq!(texts(&object, Some(&forward)), expected);
                    if !matches!(object, Object::Set(_)) {
                        expected.reverse();
                        let backward = Part { places, direction: Direction::Descending };
                        assert_eq!(texts(&object, Some(&backward)), expected);
                    }
                }
            }
        }
    }
}
