//! A list, for reading. Knows no command.

use tenon_ds::listpack::{self, End, Listpack};
use tenon_ds::packed::Item;
use tenon_ds::quicklist::{Elements, Quicklist};

/// A list, for reading.
#[derive(Clone, Copy, Debug)]
pub enum ListRef<'a> {
    /// One listpack.
    Packed(Listpack<'a>),
    /// Many.
    Chain(&'a Quicklist),
}

impl<'a> ListRef<'a> {
    /// How many elements there are.
    #[inline]
    pub fn len(self) -> usize {
        match self {
            ListRef::Packed(listpack) => listpack.len(),
            ListRef::Chain(chain) => chain.len(),
        }
    }

    /// Whether there is none, which no list in a keyspace is.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The element of this index.
    pub fn get(self, index: usize) -> Option<Item<'a>> {
        match self {
            ListRef::Packed(listpack) => listpack.get(index).map(|element| element.item),
            ListRef::Chain(chain) => chain.get(index),
        }
    }

    /// The elements from this index on, in order.
    pub fn iter_from(self, index: usize) -> Items<'a> {
        match self {
            ListRef::Packed(listpack) => Items::Packed(listpack.iter_from(index), End::Back),
            ListRef::Chain(chain) => Items::Chain(chain.iter_from(index)),
        }
    }

    /// The elements before this index, backward.
    pub fn iter_back_from(self, index: usize) -> Items<'a> {
        match self {
            ListRef::Packed(listpack) => Items::Packed(listpack.iter_until(index), End::Front),
            ListRef::Chain(chain) => Items::Chain(chain.iter_back_from(index)),
        }
    }

    /// The element at an end.
    #[inline]
    pub fn end(self, end: End) -> Option<Item<'a>> {
        match (self, end) {
            (ListRef::Packed(listpack), end) => listpack.end(end).map(|element| element.item),
            (ListRef::Chain(chain), End::Front) => chain.get(0),
            (ListRef::Chain(chain), End::Back) => chain.get(chain.len().wrapping_sub(1)),
        }
    }

    /// Redis's name for the encoding.
    pub fn encoding(self) -> &'static str {
        match self {
            ListRef::Packed(_) => "listpack",
            ListRef::Chain(_) => "quicklist",
        }
    }
}

/// The elements of a list from somewhere on, in one direction.
#[derive(Clone, Debug)]
pub enum Items<'a> {
    /// Of one listpack, towards this end.
    Packed(listpack::Iter<'a>, End),
    /// Of many.
    Chain(Elements<'a>),
}

impl Items<'_> {
    /// Goes on until behind the next element that is equal to `wanted`, over `at_most` elements; gives how many others lay
    /// before it. Takes a sixth of what comparing each that `next` gives takes.
    pub fn find_next(&mut self, wanted: Item<'_>, at_most: usize) -> Option<usize> {
        match self {
            Items::Packed(elements, towards) => elements.find_next(wanted, *towards, at_most),
            Items::Chain(elements) => elements.find_next(wanted, at_most),
        }
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<Item<'a>> {
        match self {
            Items::Packed(elements, End::Back) => elements.next().map(|element| element.item),
            Items::Packed(elements, End::Front) => elements.next_back().map(|element| element.item),
            Items::Chain(elements) => elements.next(),
        }
    }
}
