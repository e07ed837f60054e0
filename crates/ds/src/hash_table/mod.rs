//! A table of tagged pointers, ordered by tag, that grows in small steps. Knows nothing of what it points to.
//!
//! A slot is one word: 48 bits of pointer and, above them, a 16-bit tag taken from the hash of the key.
//!
//! ```text
//! 63            48 47                                   0
//! +---------------+-------------------------------------+
//! | tag           | address of the element, 0 = empty    |
//! +---------------+-------------------------------------+
//! ```
//!
//! The home of a tag is `tag * homes / 65536`, which keeps the order: the elements lie in the order of their tags,
//! each at its home or behind it with no gap between (linear probing that stays sorted). From that follow
//!
//! - a search for what is not there ends at the first larger tag, so a high load stays cheap;
//! - growing to any size needs only the tags, not the elements: a pass over words that lie in order, so the table
//!   grows in steps of an eighth or so and wastes little;
//! - a scan in the order of tags meets every element that stays in the table exactly once, however often the table
//!   grows or shrinks between its steps.
//!
//! A `TagTable` doubles in one go, which suits a few thousand elements. An `ExtendibleTable` is many of them behind a
//! directory, for any number.
//!
//! The last slots are slack for the elements that are pushed past the last home, and the very last is always empty,
//! so no search has to look for the end.

mod directory;
mod divide;
mod drop;
mod extendible;
mod pointer;
mod relocate;
mod size;
mod table;

pub use extendible::{Ahead, ExtendibleTable, Location};
pub use pointer::{Pointer, prefetch, prefetch_to_write};
pub use table::{Place, Search, Slot, TagTable};
