//! Numbers, lengths and strings on their way into a payload or a file. Knows no type of value.
//!
//! ```text
//!   00LLLLLL                      a length of 6 bits
//!   01LLLLLL LLLLLLLL             of 14 bits
//!   10000000 four bytes           of 32 bits, big-endian
//!   10000001 eight bytes          of 64 bits
//!   11000000 / 01 / 02            a string that is an integer of 8, 16 or 32 bits, little-endian
//!   11000011 length length bytes  a string that is compressed: of how many bytes, to how many
//! ```

use super::lzf::{lzf_append, lzf_append_plain, lzf_compress};
use crate::resp::number::parse_i64;

/// Strings up to this length are looked at for being an integer, in bytes: 32 bits have no more digits and a sign.
const INT_LEN_MAX: usize = 11;
/// Strings up to this length are never compressed, in bytes.
const PLAIN_LEN_MAX: usize = 20;
/// What has at most so many bytes compressed needs no allocation.
const SHORT_LEN_MAX: usize = 128;
/// Strings of more than so many bytes are compressed to where they are to stand, a piece of so many after the other. With
/// memory for each string, of pages of its own as such lengths are, those of all before would be kept beside it
/// (`ds/extents.rs`); and of what compresses well little more than comes of it is touched.
const LONG_ABOVE: usize = 16 << 10;
const PIECE_LEN: usize = 256 << 10;
/// Bytes that compressing must save at least.
const SAVED_MIN: usize = 4;
/// Bytes up to which a string is compressed where others wait meanwhile; of longer ones what is zeros is.
const QUICK_LEN_MAX: usize = 16 << 20;

/// Of each piece of a string of more than so many bytes some are tried before all of it is compressed.
const TRIED_ABOVE: usize = 4 << 20;
/// How many, at its beginning and in its middle.
const TRIED_BYTES: usize = 4 << 10;

/// The first byte of a length of 32 bits.
const LEN_32: u8 = 0x80;
/// The first bytes of special strings.
pub(super) const INT_8: u8 = 0;
pub(super) const INT_16: u8 = 1;
pub(super) const INT_32: u8 = 2;
pub(super) const COMPRESSED: u8 = 3;
pub(super) const SPECIAL: u8 = 0xC0;

/// Whether strings are compressed where that pays (`rdbcompression`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// They are.
    On,
    /// They are, but for very long ones, of which only what is zeros is: others wait meanwhile.
    Quick,
    /// They are written as they are.
    Off,
}

/// Writes in Redis's format.
pub struct Writer<'s> {
    out: &'s mut Vec<u8>,
    compression: Compression,
}

impl<'s> Writer<'s> {
    /// A writer behind what is in `out`.
    pub fn new(out: &'s mut Vec<u8>, compression: Compression) -> Writer<'s> {
        Writer { out, compression }
    }

    /// Bytes as they are.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// One byte.
    #[inline]
    pub fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    /// A length, or any number that is mostly small.
    #[inline]
    pub fn length(&mut self, len: u64) {
        match len {
            0..=0x3F => self.byte(len as u8),
            0x40..=0x3FFF => self.raw(&[0x40 | (len >> 8) as u8, len as u8]),
            0x4000..=0xFFFF_FFFF => {
                self.byte(LEN_32);
                self.raw(&(len as u32).to_be_bytes());
            }
            _ => {
                self.byte(0x81);
                self.raw(&len.to_be_bytes());
            }
        }
    }

    /// A double in eight bytes.
    pub fn double(&mut self, number: f64) {
        self.raw(&number.to_le_bytes());
    }

    /// A string: as an integer, compressed or as it is, whichever is short.
    pub fn string(&mut self, text: &[u8]) {
        if text.len() <= INT_LEN_MAX
            && let Some(int) = parse_i64(text)
            && self.special_int(int)
        {
            return;
        }
        if self.compression != Compression::Off && text.len() > PLAIN_LEN_MAX && self.compressed(text) {
            return;
        }
        self.length(text.len() as u64);
        self.raw(text);
    }

    /// A string of `len` bytes that is no integer and lies in pieces, best of some hundred KiB: each is compressed by itself.
    pub fn string_in_pieces<'p>(&mut self, len: usize, pieces: impl Iterator<Item = &'p [u8]> + Clone) {
        let only_zeros = self.compression == Compression::Quick && len > QUICK_LEN_MAX;
        if self.compression != Compression::Off
            && (PLAIN_LEN_MAX + 1..u32::MAX as usize).contains(&len)
            && (!only_zeros || pieces.clone().any(is_zeros))
            && (len <= TRIED_ABOVE || pieces.clone().any(|piece| self.seems_to_shrink(piece)))
            && self.compressed_pieces(len, pieces.clone(), only_zeros)
        {
            return;
        }
        self.length(len as u64);
        pieces.for_each(|piece| self.raw(piece));
    }

    /// Whether some of the piece gets shorter, so that all of it may: what noise there is in pictures and the like costs ten times
    /// as much to go through as to write.
    fn seems_to_shrink(&mut self, piece: &[u8]) -> bool {
        let begin = self.out.len();
        [0, piece.len() / 2].into_iter().any(|from| {
            let tried = &piece[from..][..TRIED_BYTES.min(piece.len() - from)];
            let is_shorter = lzf_append(tried, tried.len().saturating_sub(1), self.out);
            self.out.truncate(begin);
            is_shorter
        })
    }

    /// Writes the string compressed, if that is shorter; tells whether it did.
    fn compressed_pieces<'p>(&mut self, len: usize, pieces: impl Iterator<Item = &'p [u8]>, only_zeros: bool) -> bool {
        let begin = self.out.len();
        // A form of a length that holds any that may come of it.
        self.raw(&[SPECIAL | COMPRESSED, LEN_32, 0, 0, 0, 0]);
        self.length(len as u64);
        let first = self.out.len();
        // A hole is the same piece again and again.
        let mut before = (&[][..], first..first);
        for piece in pieces {
            let from = self.out.len();
            let left = len - SAVED_MIN - (from - first);
            let has_room = if std::ptr::eq(piece, before.0) {
                let has_room = before.1.len() <= left;
                if has_room {
                    self.out.extend_from_within(before.1.clone());
                }
                has_room
            } else if only_zeros && !is_zeros(piece) {
                lzf_append_plain(piece, left, self.out)
            } else {
                lzf_append(piece, left, self.out)
            };
            if !has_room {
                self.out.truncate(begin);
                return false;
            }
            before = (piece, from..self.out.len());
        }
        let compressed = (self.out.len() - first) as u32;
        self.out[begin + 2..][..4].copy_from_slice(&compressed.to_be_bytes());
        true
    }

    /// Writes the string compressed, if that is shorter; tells whether it did.
    fn compressed(&mut self, text: &[u8]) -> bool {
        if text.len() > LONG_ABOVE {
            return text.len() < u32::MAX as usize && self.compressed_pieces(text.len(), text.chunks(PIECE_LEN), false);
        }
        let len_max = text.len() - SAVED_MIN;
        let mut short = [0; SHORT_LEN_MAX];
        let mut longer;
        let room = match short.get_mut(..len_max) {
            Some(room) => room,
            None => {
                longer = vec![0; len_max];
                &mut longer[..]
            }
        };
        let Some(len) = lzf_compress(text, room) else { return false };
        self.byte(SPECIAL | COMPRESSED);
        self.length(len as u64);
        self.length(text.len() as u64);
        self.raw(&room[..len]);
        true
    }

    /// A string that is the decimal form of a number.
    pub fn int_string(&mut self, int: i64) {
        if !self.special_int(int) {
            let mut digits = itoa::Buffer::new();
            let text = digits.format(int).as_bytes();
            self.length(text.len() as u64);
            self.raw(text);
        }
    }

    /// Writes the number, if it has at most 32 bits.
    fn special_int(&mut self, int: i64) -> bool {
        if let Ok(int) = i8::try_from(int) {
            self.raw(&[SPECIAL | INT_8, int as u8]);
        } else if let Ok(int) = i16::try_from(int) {
            self.byte(SPECIAL | INT_16);
            self.raw(&int.to_le_bytes());
        } else if let Ok(int) = i32::try_from(int) {
            self.byte(SPECIAL | INT_32);
            self.raw(&int.to_le_bytes());
        } else {
            return false;
        }
        true
    }
}

/// Whether there is nothing but zeros, and something.
fn is_zeros(bytes: &[u8]) -> bool {
    // Compared with itself, a byte further on: the library compares many at once.
    bytes.first() == Some(&0) && bytes[1..] == bytes[..bytes.len() - 1]
}

#[cfg(test)]
mod tests {
    use super::super::Reader;
    use super::*;

    fn in_pieces(pieces: &[Vec<u8>], compression: Compression) -> Vec<u8> {
        let len = pieces.iter().map(Vec::len).sum();
        let mut out = b"before".to_vec();
        Writer::new(&mut out, compression).string_in_pieces(len, pieces.iter().map(|piece| &piece[..]));
        let written = out.split_off(6);
        assert_eq!(out, b"before");
        assert_eq!(
            Reader::new(&mut &written[..], len).string().expect("it is one"),
            pieces.concat(),
            "{compression:?}"
        );
        written
    }

    fn noise(len: usize) -> Vec<u8> {
        let mut random = 1u32;
        std::iter::repeat_with(|| {
            random = random.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
            (random >> 24) as u8
        })
        .take(len)
        .collect()
    }

    #[test]
    fn pieces_are_one_string() {
        const LEN: usize = 40_000;
        let (zeros, noise, text) = (vec![0; LEN], noise(LEN), b"abcabcd ".repeat(LEN / 8));
        let on = |pieces: &[&Vec<u8>]| {
            let pieces: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.to_vec()).collect();
            in_pieces(&pieces, Compression::Off);
            assert_eq!(in_pieces(&pieces, Compression::Quick), in_pieces(&pieces, Compression::On));
            in_pieces(&pieces, Compression::On).len()
        };
        assert!(on(&[&zeros, &zeros, &zeros]) < 3 * LEN / 80);
        assert!(on(&[&text, &noise, &text, &vec![1]]) < LEN + LEN / 10);
        // As they are, if that is shorter.
        assert_eq!(on(&[&noise, &noise, &vec![7; 100]]), 5 + 2 * LEN + 100);
        assert_eq!(on(&[&vec![], &vec![0; 20]]), 21);
        assert_eq!(on(&[&vec![0; 20], &vec![0]]), 1 + 5 + 1 + 5 + 2);
    }

    #[test]
    fn a_long_string_is_compressed_in_pieces() {
        for len in [LONG_ABOVE, LONG_ABOVE + 1, PIECE_LEN, PIECE_LEN + 1, 3 * PIECE_LEN - 7] {
            let (noise, mut text) = (noise(len), b"abcabcd ".repeat(len / 8 + 1));
            text.truncate(len);
            for (string, len_max) in
                [(&text, len / 50), (&noise, len + 5), (&[&noise[..len / 2], &text[..len / 2]].concat(), len)]
            {
                let mut out = b"before".to_vec();
                Writer::new(&mut out, Compression::On).string(string);
                assert!(out.len() <= 6 + len_max, "{len}: {}", out.len());
                assert_eq!(&Reader::new(&mut &out[6..], len).string().expect("it is one"), string);
            }
        }
    }

    #[test]
    fn what_is_not_shorter_takes_no_more_memory_than_it_has_bytes() {
        let (noise, zeros) = (noise(1_000_000), vec![0; 100_000]);
        for pieces in
            [vec![&noise[..]], vec![&noise[..500_000], &zeros, &noise[..500_000]], vec![&zeros, &zeros, &noise]]
        {
            let len = pieces.iter().map(|piece| piece.len()).sum();
            for compression in [Compression::On, Compression::Quick] {
                let mut out = Vec::with_capacity(len + 20);
                let room = out.capacity();
                Writer::new(&mut out, compression).string_in_pieces(len, pieces.iter().copied());
                assert_eq!(out.capacity(), room, "{compression:?}");
                out.clear();
                Writer::new(&mut out, compression).string(&pieces.concat());
                assert_eq!(out.capacity(), room, "{compression:?}");
            }
        }
    }

    #[test]
    fn the_same_piece_again_and_again_is_compressed_once_and_written_each_time() {
        let (hole, other) = (vec![0; 5_000], b"abcabcd ".repeat(600));
        let pieces = [&hole[..], &hole[..], &other[..], &other[..], &hole[..], &hole[..100]];
        let mut written = Vec::new();
        let mut writer = Writer::new(&mut written, Compression::On);
        writer.string_in_pieces(pieces.concat().len(), pieces.into_iter());
        assert!(written.len() < 1_000);
        assert_eq!(Reader::new(&mut &written[..], usize::MAX).string().expect("it is one"), pieces.concat());
    }

    #[test]
    fn a_very_long_string_is_compressed_if_some_of_a_piece_is_shorter() {
        let noise = noise(1 << 20);
        let mut pieces = vec![noise.clone(); 1 + TRIED_ABOVE / noise.len()];
        let len = pieces.len() * noise.len();
        // The only piece that would shrink does not where it is tried: it is left, too.
        let shrinks = |range: std::ops::Range<usize>| {
            let mut piece = noise.clone();
            piece[range].fill(b' ');
            piece
        };
        pieces[2] = shrinks(100_000..500_000);
        assert_eq!(in_pieces(&pieces, Compression::On).len(), 5 + len);
        pieces[2] = shrinks(100_000..noise.len());
        assert!(in_pieces(&pieces, Compression::On).len() < len - noise.len() / 2);
        pieces[2] = shrinks(0..900_000);
        assert!(in_pieces(&pieces, Compression::On).len() < len - noise.len() / 2);
    }

    #[test]
    fn where_others_wait_zeros_alone_of_a_very_long_string_are_compressed() {
        let text = b"abcabcd ".repeat(100_000);
        let texts = vec![text.clone(); 1 + QUICK_LEN_MAX / text.len()];
        let len = texts.len() * text.len();
        assert_eq!(in_pieces(&texts, Compression::Quick).len(), 5 + len);
        assert!(in_pieces(&texts, Compression::On).len() < len / 50);
        let mut holes = vec![vec![0; text.len()]; texts.len()];
        holes.extend([text.clone(), vec![1; 10]]);
        let written = in_pieces(&holes, Compression::Quick).len();
        assert!((text.len()..text.len() + text.len() / 16 + len / 80).contains(&written), "{written}");
        assert_eq!(in_pieces(&holes, Compression::Off).len(), 5 + len + text.len() + 10);
    }
}
