//! A small sorted set: members and scores in turn in a packed run, in order. Knows no limits.
//!
//! ```text
//! score, an element:  an integer up to 2^53        as packed integers are, 1 to 8 bytes
//!                     4 bytes                      an f32 that is the same number
//!                     8 bytes                      the f64
//! ```

use std::cmp::Ordering;
use tenon_ds::packed::{HEADER, IntText, Item, Packed, PackedBuf};

/// Integers up to this magnitude are kept as such: each of them is an f64 of its own.
const INTEGER_MAX: f64 = (1u64 << 53) as f64;

/// A member as it lies in the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct PackedMember<'a> {
    /// Where the member starts.
    pub at: usize,
    /// Where the next member starts.
    pub end: usize,
    pub member: Item<'a>,
    pub score: f64,
}

/// The members in order.
#[inline]
pub(super) fn members(packed: Packed<'_>) -> impl Iterator<Item = PackedMember<'_>> {
    let mut elements = packed.iter();
    std::iter::from_fn(move || {
        let (member, score) = (elements.next()?, elements.next()?);
        Some(PackedMember { at: member.at, end: score.end, member: member.item, score: score_of(score.item) })
    })
}

#[inline]
fn score_of(item: Item<'_>) -> f64 {
    match item {
        Item::Int(int) => int as f64,
        Item::Bytes(bytes) => match *bytes {
            [a, b, c, d] => f32::from_le_bytes([a, b, c, d]).into(),
            [a, b, c, d, e, f, g, h] => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => unreachable!("a score has four bytes or eight"),
        },
    }
}

/// The element for a score; `room` holds its bytes.
fn score_item(score: f64, room: &mut [u8; 8]) -> Item<'_> {
    // The negative zero becomes the other one, as in Redis while a sorted set is small.
    if score.abs() <= INTEGER_MAX && score.trunc() == score {
        return Item::Int(score as i64);
    }
    let short = score as f32;
    if f64::from(short).to_bits() == score.to_bits() {
        room[..4].copy_from_slice(&short.to_le_bytes());
        Item::Bytes(&room[..4])
    } else {
        *room = score.to_le_bytes();
        Item::Bytes(room)
    }
}

/// A canonical member and its rank.
#[inline]
pub(super) fn find<'a>(packed: Packed<'a>, member: Item<'_>) -> Option<(usize, PackedMember<'a>)> {
    let found = packed.find::<2>(member)?;
    let score = packed.at(found.element.end);
    let member =
        PackedMember { at: found.element.at, end: score.end, member: found.element.item, score: score_of(score.item) };
    Some((found.index, member))
}

/// Where a member that is not there belongs: by score, where these are equal by bytes. Members are passed over unread
/// as long as their scores say enough.
fn place_of(packed: Packed<'_>, member: &[u8], score: f64) -> usize {
    let mut at = HEADER;
    while at < packed.bytes().len() {
        let score_at = packed.end_at(at);
        let (other, end) = match packed.quick_int_at(score_at) {
            Some((int, end)) => (int as f64, end),
            None => {
                let element = packed.at(score_at);
                (score_of(element.item), element.end)
            }
        };
        let order = match score.partial_cmp(&other) {
            Some(Ordering::Equal) | None => member.cmp(packed.at(at).item.as_bytes(&mut IntText::new())),
            Some(order) => order,
        };
        if order == Ordering::Less {
            break;
        }
        at = end;
    }
    at
}

/// Puts in a canonical member that is not there.
pub(super) fn insert(packed: &mut PackedBuf, member: Item<'_>, score: f64) {
    let at = place_of(packed.view(), member.as_bytes(&mut IntText::new()), score);
    packed.insert(at, member);
    packed.insert(at + member.packed_len(), score_item(score, &mut [0; 8]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_come_back() {
        let scores = [0.0, 1.0, -1.0, 0.5, 0.1, 1e300, 9_007_199_254_740_992.0, 9_007_199_254_740_994.0, 1e-320];
        for score in scores.into_iter().chain([f64::INFINITY, f64::NEG_INFINITY, 3.5e10, f64::MAX]) {
            let mut packed = PackedBuf::new();
            insert(&mut packed, Item::of(b"12"), score);
            let found = members(packed.view()).next().unwrap();
            assert_eq!((found.score.to_bits(), found.member), (score.to_bits(), Item::Int(12)), "{score}");
        }
        for (score, len) in [(3.0, 1), (1000.0, 3), (-2.0, 2), (1.5, 5), (0.1, 9), (f64::INFINITY, 5)] {
            assert_eq!(score_item(score, &mut [0; 8]).packed_len(), len, "{score}");
        }
    }
}
