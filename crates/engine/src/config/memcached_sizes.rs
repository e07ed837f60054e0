//! What memory, the longest item and the longest piece of one must be to each other on memcached's command line. It knows
//! no other options. Tenon has no pieces; who gives a combination that memcached would not start with hears of it.

use std::fmt::{self, Display, Formatter};

use super::memcached_refusal::integer;

const MEGABYTE: u64 = 1 << 20;
/// What memcached's slabs take from the system at once.
const PAGE: u64 = MEGABYTE;
const ITEM_MIN: u64 = 1 << 10;
const ITEM_MAX: u64 = 1 << 30;

/// Sizes as memcached's options give them, in bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    memory: u64,
    item: u64,
    piece: u64,
    /// Whether `slab_chunk_max` was given.
    piece_is_given: bool,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes { memory: 64 * MEGABYTE, item: MEGABYTE, piece: PAGE / 2, piece_is_given: false }
    }
}

/// Why memcached does not start with such sizes. Shown in its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeRefusal {
    /// Items of less than 1 KiB.
    ItemTooSmall,
    /// Items of more than half of the memory.
    ItemOverHalf,
    /// Items of more than a gigabyte.
    ItemTooLarge,
    /// Pieces that are longer than an item may be.
    PieceOverItem {
        /// The longest piece.
        piece: u64,
        /// The longest item.
        item: u64,
    },
    /// An item that is no number of pieces.
    ItemNotOfPieces {
        /// The longest piece.
        piece: u64,
        /// The longest item.
        item: u64,
    },
    /// A page that is no number of pieces.
    PageNotOfPieces {
        /// The longest piece.
        piece: u64,
    },
    /// A piece whose length is no number. memcached says so and is killed by a division by zero.
    PieceNotANumber,
    /// A piece whose length is not there. memcached says so and is killed by reading it.
    PieceMissing,
}

impl Display for SizeRefusal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::ItemTooSmall => f.write_str("Item max size cannot be less than 1024 bytes."),
            Self::ItemOverHalf => f.write_str("Cannot set item size limit higher than 1/2 of memory max."),
            Self::ItemTooLarge => f.write_str("Cannot set item size limit higher than a gigabyte."),
            Self::PieceOverItem { piece, item } => {
                write!(f, "slab_chunk_max (bytes: {piece}) cannot be larger than -I (item_size_max {item})")
            }
            Self::ItemNotOfPieces { piece, item } => {
                write!(f, "-I (item_size_max: {item}) must be evenly divisible by slab_chunk_max (bytes: {piece})")
            }
            Self::PageNotOfPieces { piece } => {
                write!(f, "slab_chunk_max (bytes: {piece}) must divide evenly into {PAGE} (slab_page_size)")
            }
            Self::PieceNotANumber => f.write_str("could not parse argument to slab_chunk_max"),
            Self::PieceMissing => f.write_str("Missing slab_chunk_max argument"),
        }
    }
}

impl Sizes {
    /// `-m`, in megabytes; what is no such number is refused by whoever reads the option.
    pub(super) fn set_memory(&mut self, megabytes: u32) {
        self.memory = u64::from(megabytes) * MEGABYTE;
    }

    /// `-I`: bytes, or kilobytes or megabytes by the unit behind; what is no number is 0, as memcached reads it. `None` of
    /// one below 0.
    pub(super) fn set_item(&mut self, word: &str) -> Option<()> {
        let (digits, factor) = match word.as_bytes().last() {
            Some(b'k' | b'K') => (&word[..word.len() - 1], 1 << 10),
            Some(b'm' | b'M') => (&word[..word.len() - 1], MEGABYTE),
            _ => (word, 1),
        };
        self.item = u64::from(digits.parse().ok().or_else(|| u32::try_from(integer(digits)).ok())?) * factor;
        Some(())
    }

    /// `-o slab_chunk_max=`.
    pub(super) fn set_piece(&mut self, word: Option<&str>) -> Result<(), SizeRefusal> {
        let piece = word.ok_or(SizeRefusal::PieceMissing)?.parse::<u32>();
        self.piece = piece.ok().filter(|&piece| piece > 0).ok_or(SizeRefusal::PieceNotANumber)?.into();
        self.piece_is_given = true;
        Ok(())
    }

    /// `-o no_chunked_items`: a piece is a page.
    pub(super) fn set_whole_items(&mut self) {
        self.piece = PAGE;
    }

    /// `-o no_modern`: the same, where nothing else was said.
    pub(super) fn set_old_ways(&mut self) {
        if !self.piece_is_given {
            self.piece = PAGE;
        }
    }

    /// Bytes of the longest item, once all options are read.
    pub(super) fn item_max(&self) -> Result<u64, SizeRefusal> {
        let Sizes { memory, item, mut piece, piece_is_given } = *self;
        if item < ITEM_MIN {
            return Err(SizeRefusal::ItemTooSmall);
        }
        if item > memory / 2 {
            return Err(SizeRefusal::ItemOverHalf);
        }
        if item > ITEM_MAX {
            return Err(SizeRefusal::ItemTooLarge);
        }
        if item > MEGABYTE && !piece_is_given {
            piece = PAGE / 2;
        }
        if piece > item {
            return Err(SizeRefusal::PieceOverItem { piece, item });
        }
        if !item.is_multiple_of(piece) {
            return Err(SizeRefusal::ItemNotOfPieces { piece, item });
        }
        if !PAGE.is_multiple_of(piece) {
            return Err(SizeRefusal::PageNotOfPieces { piece });
        }
        Ok(item)
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::LoadProblem;
    use super::super::memcached::read;

    #[test]
    fn sizes_that_memcached_would_not_start_with_are_refused() {
        for (line, expected) in [
            ("", "1048576"),
            ("-m 64 -I 32m", "33554432"),
            ("-m 2", "1048576"),
            ("-I 512k", "524288"),
            ("-I 1m -m 2 -o slab_chunk_max=1024", "1048576"),
            ("-I 1024 -o slab_chunk_max=1024", "1024"),
            ("-I 3m -o no_chunked_items", "3145728"),
            ("-I 1024m -m 2048", "1073741824"),
            ("-I 512k -o slab_chunk_max=16384,no_modern", "524288"),
            ("-m 64 -I 32m -I 33m", "Cannot set item size limit higher than 1/2 of memory max."),
            ("-m 64 -I 256m", "Cannot set item size limit higher than 1/2 of memory max."),
            ("-m 1", "Cannot set item size limit higher than 1/2 of memory max."),
            ("-m 0", "Cannot set item size limit higher than 1/2 of memory max."),
            ("-I 2000m", "Cannot set item size limit higher than 1/2 of memory max."),
            ("-I 1025m -m 4000", "Cannot set item size limit higher than a gigabyte."),
            ("-I 1023", "Item max size cannot be less than 1024 bytes."),
            ("-I x", "Item max size cannot be less than 1024 bytes."),
            ("-I 2g", "Item max size cannot be less than 1024 bytes."),
            ("-m x", "Cannot set item size limit higher than 1/2 of memory max."),
            ("-I 0", "Item max size cannot be less than 1024 bytes."),
            ("-I 1024", "slab_chunk_max (bytes: 524288) cannot be larger than -I (item_size_max 1024)"),
            (
                "-I 512k -o no_chunked_items",
                "slab_chunk_max (bytes: 1048576) cannot be larger than -I (item_size_max 524288)",
            ),
            ("-I 512k -o no_modern", "slab_chunk_max (bytes: 1048576) cannot be larger than -I (item_size_max 524288)"),
            ("-I 1500k", "-I (item_size_max: 1536000) must be evenly divisible by slab_chunk_max (bytes: 524288)"),
            (
                "-I 3000 -o slab_chunk_max=3000",
                "slab_chunk_max (bytes: 3000) must divide evenly into 1048576 (slab_page_size)",
            ),
            ("-o slab_chunk_max=0", "could not parse argument to slab_chunk_max"),
            ("-o slab_chunk_max=16k", "could not parse argument to slab_chunk_max"),
            ("-o slab_chunk_max", "Missing slab_chunk_max argument"),
        ] {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let said = match read(&words, None) {
                Ok(asked) => {
                    let item_max = asked.settings.iter().rfind(|(name, _)| *name == "max-value-size");
                    item_max.map(|(_, words)| words.join(" "))
                }
                Err(LoadProblem::MemcachedSizes(refusal)) => Some(refusal.to_string()),
                Err(other) => panic!("{line}: {other:?}"),
            };
            assert_eq!(said.as_deref(), Some(expected), "{line}");
        }
    }
}
