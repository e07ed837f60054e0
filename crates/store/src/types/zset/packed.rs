//! A small sorted set: members and scores in turn in a packed run, in order. Knows no limits.
//!
//! ```text
//! score, an element:  an integer up to 2^53        as packed integers are, 1 to 8 bytes
//!                     4 bytes                      an f32 that is the same number
//!                     8 bytes                      the f64
//! ```

use super::{LexRange, ScoreRange};
use std::cmp::Ordering;
use std::ops::Range;
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

/// The score that starts at byte `at`, and where it ends.
#[inline]
fn score_at(packed: Packed<'_>, at: usize) -> (f64, usize) {
    if let Some((int, end)) = packed.quick_int_at(at) {
        return (int as f64, end);
    }
    let element = packed.at(at);
    (score_of(element.item), element.end)
}

/// The ranks whose scores are in a range. Members are passed over unread.
pub(super) fn ranks_by_score(packed: Packed<'_>, range: ScoreRange) -> Range<usize> {
    let (mut at, mut rank, mut start) = (HEADER, 0, 0);
    while at < packed.bytes().len() {
        let (score, end) = score_at(packed, packed.end_at(at));
        if !range.reaches(score) {
            break;
        }
        rank += 1;
        if range.is_above(score) {
            start = rank;
        }
        at = end;
    }
    start..rank
}

/// The ranks whose members are in a range, where all scores are equal: found in one pass.
pub(super) fn ranks_by_lex(packed: Packed<'_>, range: LexRange<'_>) -> Range<usize> {
    let mut room = IntText::new();
    let (mut start, mut end) = (0, 0);
    for found in members(packed) {
        let member = found.member.as_bytes(&mut room);
        if !range.reaches(member) {
            break;
        }
        let is_below = start == end && range.is_above(member);
        end += 1;
        if is_below {
            start = end;
        }
    }
    start..end
}

/// Where a member that is not there belongs: by score, where these are equal by bytes. Members are passed over unread
/// as long as their scores say enough.
fn place_of(packed: Packed<'_>, member: &[u8], score: f64) -> usize {
    let mut at = HEADER;
    while at < packed.bytes().len() {
        let (other, end) = score_at(packed, packed.end_at(at));
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

/// Puts a canonical member behind all others.
pub(super) fn push(packed: &mut PackedBuf, member: Item<'_>, score: f64) {
    packed.push(member);
    packed.push(score_item(score, &mut [0; 8]));
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

    #[test]
    fn ranks_are_those_of_the_members_in_a_range() {
        use super::super::LexBound::{Exclusive, Highest, Inclusive, Lowest};
        let names = ["", "10", "9", "a", "aa", "b", "c"];
        let mut packed = PackedBuf::new();
        names.iter().for_each(|name| insert(&mut packed, Item::of(name.as_bytes()), 0.0));
        let ends = ["", "1", "10", "8", "a", "ab", "b", "c", "d"].map(str::as_bytes);
        let bounds = ends.into_iter().flat_map(|end| [Inclusive(end), Exclusive(end)]).chain([Lowest, Highest]);
        let bounds: Vec<_> = bounds.collect();
        for (min, max) in bounds.iter().flat_map(|min| bounds.iter().map(move |max| (*min, *max))) {
            let range = LexRange { min, max };
            let is_in = |name: &str| !range.is_above(name.as_bytes()) && range.reaches(name.as_bytes());
            let expected: Vec<usize> = (0..names.len()).filter(|rank| is_in(names[*rank])).collect();
            assert_eq!(ranks_by_lex(packed.view(), range).collect::<Vec<_>>(), expected, "{range:?}");
        }
    }

    #[test]
    fn ranks_are_those_of_the_scores_in_a_range() {
        use super::super::ScoreBound::{Exclusive, Inclusive};
        let scores = [-7.0, -1.5, 0.0, 0.0, 0.25, 1.0, 3.0, 3.0, 3.0, 1e18];
        let mut packed = PackedBuf::new();
        scores.iter().enumerate().for_each(|(index, score)| insert(&mut packed, Item::Int(index as i64), *score));
        let ends = [f64::NEG_INFINITY, -7.0, -2.0, 0.0, 0.25, 2.0, 3.0, 1e18, f64::INFINITY];
        let bounds: Vec<_> = ends.into_iter().flat_map(|end| [Inclusive(end), Exclusive(end)]).collect();
        for (min, max) in bounds.iter().flat_map(|min| bounds.iter().map(move |max| (*min, *max))) {
            let range = ScoreRange { min, max };
            let ranks = ranks_by_score(packed.view(), range);
            let expected: Vec<usize> = (0..scores.len())
                .filter(|rank| !range.is_above(scores[*rank]) && range.reaches(scores[*rank]))
                .collect();
            assert_eq!(ranks.collect::<Vec<_>>(), expected, "{range:?}");
        }
    }
}
