//! Ranges of scores and of members. Knows not how clients write them.

/// One end of a range of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScoreBound {
    /// This score is in the range.
    Inclusive(f64),
    /// This score is not in the range, what is next to it is.
    Exclusive(f64),
}

/// A range of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreRange {
    /// The lower end.
    pub min: ScoreBound,
    /// The upper end.
    pub max: ScoreBound,
}

impl ScoreRange {
    /// Whether a score is below the range.
    #[inline]
    pub fn is_above(self, score: f64) -> bool {
        match self.min {
            ScoreBound::Inclusive(min) => score < min,
            ScoreBound::Exclusive(min) => score <= min,
        }
    }

    /// Whether a score is not beyond the upper end.
    #[inline]
    pub fn reaches(self, score: f64) -> bool {
        match self.max {
            ScoreBound::Inclusive(max) => score <= max,
            ScoreBound::Exclusive(max) => score < max,
        }
    }
}

/// One end of a range of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexBound<'a> {
    /// Before every member.
    Lowest,
    /// Behind every member.
    Highest,
    /// This member is in the range.
    Inclusive(&'a [u8]),
    /// This member is not in the range, what is next to it is.
    Exclusive(&'a [u8]),
}

/// A range of members, which makes sense where all scores are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LexRange<'a> {
    /// The lower end.
    pub min: LexBound<'a>,
    /// The upper end.
    pub max: LexBound<'a>,
}

impl LexRange<'_> {
    /// Whether a member is below the range.
    #[inline]
    pub fn is_above(self, member: &[u8]) -> bool {
        match self.min {
            LexBound::Lowest => false,
            LexBound::Highest => true,
            LexBound::Inclusive(min) => member < min,
            LexBound::Exclusive(min) => member <= min,
        }
    }

    /// Whether a member is not beyond the upper end.
    #[inline]
    pub fn reaches(self, member: &[u8]) -> bool {
        match self.max {
            LexBound::Lowest => false,
            LexBound::Highest => true,
            LexBound::Inclusive(max) => member <= max,
            LexBound::Exclusive(max) => member < max,
        }
    }
}
