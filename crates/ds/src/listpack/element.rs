//! One element of a listpack, as Redis's listpack encodes it (<https://github.com/antirez/listpack>), so that what is
//! kept is what dumps hold, and as long as Redis's settings count it. Knows no sequence.
//!
//! ```text
//! +------+---------+-------------+
//! | head | payload | back length |    the back length says how long head and payload are, read from its end backward
//! +------+---------+-------------+
//!
//! head:  0xxxxxxx                   the integers 0 to 127
//!        10xxxxxx                   a string of so many bytes
//!        110xxxxx, 1 B              an integer of 13 bits, its sign counted
//!        1110xxxx, 1 B              a string of up to 4,095 bytes
//!        0xf0, 4 B                  a string, its length little endian
//!        0xf1, 0xf2, 0xf3, 0xf4     an integer of 2, 3, 4 or 8 bytes, little endian
//!
//! back:  0xxxxxxx                                the length's low seven bits last, each byte but the first with the
//!        0xxxxxxx 1xxxxxxx ...                   high bit set
//! ```

use crate::packed::Item;

/// Bytes of the longest string that an element can be.
pub const LEN_MAX: usize = u32::MAX as usize - 1024;

const STRING_6: u8 = 0x80;
const INT_13: u8 = 0xc0;
const STRING_12: u8 = 0xe0;
const STRING_32: u8 = 0xf0;
const INT_16: u8 = 0xf1;
const INT_24: u8 = 0xf2;
const INT_32: u8 = 0xf3;
const INT_64: u8 = 0xf4;

/// An element and the bytes that it takes in its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// Where it starts.
    pub at: usize,
    /// Where the next one starts.
    pub end: usize,
    /// What it is.
    pub item: Item<'a>,
}

/// Bytes that an integer takes behind its head, and the head without the integer's own bits.
fn int_form(int: i64) -> (u8, usize) {
    const MAX_13: i64 = (1 << 12) - 1;
    const MAX_24: i64 = (1 << 23) - 1;
    match int {
        0..=127 => (0, 0),
        _ if (-MAX_13 - 1..=MAX_13).contains(&int) => (INT_13, 1),
        _ if i16::try_from(int).is_ok() => (INT_16, 2),
        _ if (-MAX_24 - 1..=MAX_24).contains(&int) => (INT_24, 3),
        _ if i32::try_from(int).is_ok() => (INT_32, 4),
        _ => (INT_64, 8),
    }
}

/// Bytes before the string itself.
fn string_head(len: usize) -> usize {
    match len {
        ..64 => 1,
        64..4096 => 2,
        _ => 5,
    }
}

/// Bytes that the length of head and payload takes behind them. As in Redis's `lpEncodeBacklen` the greatest numbers that two,
/// three and four bytes can hold have one byte more.
#[inline]
pub fn back_len(len: usize) -> usize {
    match len {
        ..0x80 => 1,
        0x80..0x3fff => 2,
        0x3fff..0x1f_ffff => 3,
        0x1f_ffff..0xfff_ffff => 4,
        _ => 5,
    }
}

/// Bytes of head and payload.
fn front_len(item: Item<'_>) -> usize {
    match item {
        Item::Bytes(bytes) => string_head(bytes.len()) + bytes.len(),
        Item::Int(int) => 1 + int_form(int).1,
    }
}

/// Bytes that the element takes in a sequence.
#[inline]
pub fn encoded_len(item: Item<'_>) -> usize {
    let front = front_len(item);
    front + back_len(front)
}

/// Writes an element into `place`, which is as long as `encoded_len` says.
///
/// # Panics
/// When the string is longer than `LEN_MAX`.
pub(super) fn write(item: Item<'_>, place: &mut [u8]) {
    let front = front_len(item);
    let (head, back) = place.split_at_mut(front);
    match item {
        Item::Bytes(bytes) => {
            assert!(bytes.len() <= LEN_MAX, "an element is shorter than 4 GiB");
            let start = front - bytes.len();
            match start {
                1 => head[0] = STRING_6 | bytes.len() as u8,
                2 => {
                    head[0] = STRING_12 | (bytes.len() >> 8) as u8;
                    head[1] = bytes.len() as u8;
                }
                _ => {
                    head[0] = STRING_32;
                    head[1..5].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
                }
            }
            head[start..].copy_from_slice(bytes);
        }
        Item::Int(int) => match int_form(int) {
            (_, 0) => head[0] = int as u8,
            (INT_13, _) => {
                head[0] = INT_13 | (int >> 8) as u8 & 0x1f;
                head[1] = int as u8;
            }
            (form, width) => {
                head[0] = form;
                head[1..].copy_from_slice(&int.to_le_bytes()[..width]);
            }
        },
    }
    let mut rest = front;
    let last = back.len() - 1;
    for at in (0..=last).rev() {
        back[at] = back_byte(rest, at);
        rest >>= 7;
    }
}

/// Byte `at` of a back length of which the lower bits are written already.
#[inline]
fn back_byte(rest: usize, at: usize) -> u8 {
    (rest & 0x7f) as u8 | if at > 0 { 0x80 } else { 0 }
}

/// Whether these bytes, as many as `back_len` says or as can hold it, say that head and payload before them have `front` bytes.
pub fn is_back(front: usize, back: &[u8]) -> bool {
    back.iter()
        .enumerate()
        .rev()
        .scan(front, |rest, (at, byte)| {
            let is_right = *byte == back_byte(*rest, at);
            *rest >>= 7;
            Some(is_right)
        })
        .all(|is_right| is_right)
}

/// Appends an element to bytes.
///
/// # Panics
/// When the string is longer than `LEN_MAX`.
#[inline]
pub fn append(item: Item<'_>, bytes: &mut Vec<u8>) {
    match item {
        Item::Int(int @ 0..=127) => bytes.extend_from_slice(&[int as u8, 1]),
        Item::Bytes(short) if short.len() < 64 => {
            bytes.push(STRING_6 | short.len() as u8);
            bytes.extend_from_slice(short);
            bytes.push(1 + short.len() as u8);
        }
        _ => append_longer(item, bytes),
    }
}

fn append_longer(item: Item<'_>, bytes: &mut Vec<u8>) {
    let at = bytes.len();
    bytes.resize(at + encoded_len(item), 0);
    write(item, &mut bytes[at..]);
}

/// The element that starts at byte `at`.
#[inline]
pub(super) fn read(bytes: &[u8], at: usize) -> Element<'_> {
    let head = bytes[at];
    let string = |start: usize, len: usize| {
        let front = start - at + len;
        Element { at, end: at + front + back_len(front), item: Item::Bytes(&bytes[start..start + len]) }
    };
    let int = |int: i64, width: usize| Element { at, end: at + width + 2, item: Item::Int(int) };
    let wide = |width: usize| {
        let payload = &bytes[at + 1..at + 1 + width];
        let mut wide = [if payload[width - 1] & 0x80 == 0 { 0 } else { 0xff }; 8];
        wide[..width].copy_from_slice(payload);
        int(i64::from_le_bytes(wide), width)
    };
    match head {
        ..STRING_6 => int(head.into(), 0),
        STRING_6..INT_13 => string(at + 1, (head & 0x3f).into()),
        INT_13..STRING_12 => {
            let unsigned = i64::from(head & 0x1f) << 8 | i64::from(bytes[at + 1]);
            int(if unsigned < 1 << 12 { unsigned } else { unsigned - (1 << 13) }, 1)
        }
        STRING_12..STRING_32 => string(at + 2, usize::from(head & 0x0f) << 8 | usize::from(bytes[at + 1])),
        STRING_32 => {
            let len = u32::from_le_bytes([bytes[at + 1], bytes[at + 2], bytes[at + 3], bytes[at + 4]]);
            string(at + 5, len as usize)
        }
        INT_16 => wide(2),
        INT_24 => wide(3),
        INT_32 => wide(4),
        INT_64.. => wide(8),
    }
}

/// Bytes before and behind a short string: its length, and that of both.
pub(super) const SHORT_STRING_AROUND: usize = 2;

/// The element that starts at byte `at`, if it is a short string in the form that most strings have.
#[inline]
pub(super) fn short_string(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let head = bytes[at];
    (STRING_6..INT_13).contains(&head).then(|| &bytes[at + 1..at + 1 + usize::from(head & 0x3f)])
}

/// Where the element that ends before byte `end` starts.
#[inline]
pub(super) fn start_of_previous(bytes: &[u8], end: usize) -> usize {
    let mut at = end - 1;
    let mut front = usize::from(bytes[at] & 0x7f);
    let mut shift = 7;
    while bytes[at] & 0x80 != 0 {
        at -= 1;
        front |= usize::from(bytes[at] & 0x7f) << shift;
        shift += 7;
    }
    at - front
}
