//! What ZRANGE and its kin ask for: a range by rank, by score or by member, in one of two directions, and a part of it.

use super::bounds::{parse_lex_range, parse_score_range};
use super::scores::Scores;
use std::ops::Range;
use tenon_engine::args::Args;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::ZsetRef;
use tenon_engine::store::types::zset::{Direction, LexRange, ScoreRange};
use tenon_engine::wire::resp::number::parse_i64;

/// Indexes from the beginning, or from the end where they are negative; both are in the range.
#[derive(Clone, Copy, Debug)]
pub(super) struct RankRange {
    start: i64,
    stop: i64,
}

impl RankRange {
    pub(super) fn parse(start: &[u8], stop: &[u8]) -> Result<RankRange, CmdError> {
        let number = |text| parse_i64(text).ok_or(CmdError::NotInteger);
        Ok(RankRange { start: number(start)?, stop: number(stop)? })
    }

    /// The ranks among `len`, where the indexes count in a direction.
    pub(super) fn within(self, len: usize, direction: Direction) -> Range<usize> {
        let len = len as i64;
        let from_start = |index: i64| if index < 0 { index + len } else { index };
        let start = from_start(self.start).max(0);
        let end = from_start(self.stop).min(len - 1) + 1;
        if start >= end {
            return 0..0;
        }
        let (start, end) = (start as usize, end as usize);
        match direction {
            Direction::Ascending => start..end,
            Direction::Descending => len as usize - end..len as usize - start,
        }
    }
}

/// What a range goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Rank,
    Score,
    Lex,
}

/// Which options a command takes beside LIMIT.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    /// What the range goes by; `None` where BYSCORE and BYLEX say it.
    pub(super) by: Option<By>,
    /// The direction; `None` where REV says it.
    pub(super) direction: Option<Direction>,
    /// Whether there is a reply with scores or without, which WITHSCORES says.
    pub(super) output: Output,
}

/// Where the members go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    Reply,
    Store,
}

#[derive(Clone, Copy, Debug)]
enum Bounds<'a> {
    Rank(RankRange),
    Score(ScoreRange),
    Lex(LexRange<'a>),
}

/// The part of a range that is wanted, counted in its direction.
#[derive(Clone, Copy, Debug)]
struct Limit {
    offset: i64,
    /// Negative for all.
    count: i64,
}

/// A range that is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct RangeQuery<'a> {
    bounds: Bounds<'a>,
    limit: Limit,
    pub(super) direction: Direction,
    pub(super) scores: Scores,
}

impl<'a> RangeQuery<'a> {
    /// Reads bounds and options from argument `at` on, which is the first bound.
    pub(super) fn parse(args: &Args<'a>, at: usize, form: Form) -> Result<RangeQuery<'a>, CmdError> {
        let (first, second) = (args.get(at), args.get(at + 1));
        let Form { mut by, mut direction, output } = form;
        let mut limit = Limit { offset: 0, count: -1 };
        let mut scores = Scores::Without;
        let mut at = at + 2;
        while at < args.len() {
            if output == Output::Reply && args.is(at, "WITHSCORES") {
                scores = Scores::With;
            } else if args.is(at, "LIMIT") && at + 2 < args.len() {
                let number = |at| parse_i64(args.get(at)).ok_or(CmdError::NotInteger);
                limit = Limit { offset: number(at + 1)?, count: number(at + 2)? };
                at += 2;
            } else if direction.is_none() && args.is(at, "REV") {
                direction = Some(Direction::Descending);
            } else if by.is_none() && args.is(at, "BYLEX") {
                by = Some(By::Lex);
            } else if by.is_none() && args.is(at, "BYSCORE") {
                by = Some(By::Score);
            } else {
                return Err(CmdError::Syntax);
            }
            at += 1;
        }
        let by = by.unwrap_or(By::Rank);
        let direction = direction.unwrap_or(Direction::Ascending);
        if limit.count != -1 && by == By::Rank {
            return Err(CmdError::text(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ));
        }
        if scores == Scores::With && by == By::Lex {
            return Err(CmdError::text("ERR syntax error, WITHSCORES not supported in combination with BYLEX"));
        }
        // Downwards the higher bound comes first.
        let (min, max) = match direction {
            Direction::Ascending => (first, second),
            Direction::Descending => (second, first),
        };
        let bounds = match by {
            By::Rank => Bounds::Rank(RankRange::parse(first, second)?),
            By::Score => Bounds::Score(parse_score_range(min, max)?),
            By::Lex => Bounds::Lex(parse_lex_range(min, max)?),
        };
        Ok(RangeQuery { bounds, limit, direction, scores })
    }

    /// The ranks that are wanted.
    pub(super) fn ranks(&self, zset: ZsetRef<'_>) -> Range<usize> {
        let Range { start, end } = match self.bounds {
            Bounds::Rank(range) => return range.within(zset.len(), self.direction),
            Bounds::Score(range) => zset.ranks_by_score(range),
            Bounds::Lex(range) => zset.ranks_by_lex(range),
        };
        // A negative offset is beyond every range.
        let offset = usize::try_from(self.limit.offset).unwrap_or(usize::MAX).min(end - start);
        let count = usize::try_from(self.limit.count).unwrap_or(usize::MAX).min(end - start - offset);
        match self.direction {
            Direction::Ascending => start + offset..start + offset + count,
            Direction::Descending => end - offset - count..end - offset,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_count_from_either_end() {
        let within = |start, stop, direction| RankRange { start, stop }.within(5, direction);
        for (start, stop, ranks) in [
            (0, -1, 0..5),
            (1, 2, 1..3),
            (-2, -1, 3..5),
            (-100, 100, 0..5),
            (3, 1, 0..0),
            (5, 9, 0..0),
            (0, -6, 0..0),
            (i64::MIN, i64::MAX, 0..5),
            (i64::MAX, i64::MIN, 0..0),
            (i64::MIN, i64::MIN, 0..0),
        ] {
            assert_eq!(within(start, stop, Direction::Ascending), ranks, "{start} {stop}");
            let mirrored = if ranks.is_empty() { ranks } else { 5 - ranks.end..5 - ranks.start };
            assert_eq!(within(start, stop, Direction::Descending), mirrored, "{start} {stop}");
        }
        assert_eq!(RankRange { start: 0, stop: -1 }.within(0, Direction::Descending), 0..0);
    }
}
