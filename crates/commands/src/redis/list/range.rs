//! Indexes as clients give them: from the end where they are negative, and maybe outside. Knows no list.

use std::ops::Range;

/// The index that a client's number stands for, if there is one among `len`.
pub(super) fn index(number: i64, len: usize) -> Option<usize> {
    let index = if number < 0 { (len as i64).checked_add(number)? } else { number };
    usize::try_from(index).ok().filter(|&index| index < len)
}

/// The part of `len` elements from `start` to `stop`, the latter included; an empty one lies at the beginning.
pub(super) fn part(start: i64, stop: i64, len: usize) -> Range<usize> {
    let len = len as i64;
    let from_front = |number: i64| if number < 0 { len.saturating_add(number) } else { number };
    let (start, stop) = (from_front(start).max(0), from_front(stop).min(len - 1));
    if start > stop { 0..0 } else { start as usize..stop as usize + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_inside() {
        assert_eq!((part(0, -1, 5), part(-2, 10, 5), part(1, 1, 5)), (0..5, 3..5, 1..2));
        let edges = [i64::MIN, i64::MIN + 1, -6, -5, -1, 0, 1, 4, 5, i64::MAX - 1, i64::MAX];
        for len in [0, 1, 5] {
            for start in edges {
                assert!(index(start, len).is_none_or(|index| index < len), "{len} {start}");
                for stop in edges {
                    let part = part(start, stop, len);
                    assert!(part.start <= part.end && part.end <= len, "{len} {start} {stop}");
                }
            }
        }
        assert_eq!((index(-1, 5), index(-5, 5), index(-6, 5), index(5, 5)), (Some(4), Some(0), None, None));
    }
}
