//! The ends of ranges of scores and of members as clients write them: `5`, `(5`, `-inf`, `[a`, `(a`, `+`, `-`.

use tenon_engine::double::parse_double_leniently;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::zset::{LexBound, LexRange, ScoreBound, ScoreRange};

const NO_SCORE: CmdError = CmdError::text("ERR min or max is not a float");
const NO_MEMBER: CmdError = CmdError::text("ERR min or max not valid string range item");

fn score_bound(text: &[u8]) -> Result<ScoreBound, CmdError> {
    match text {
        [b'(', number @ ..] => parse_double_leniently(number).map(ScoreBound::Exclusive),
        number => parse_double_leniently(number).map(ScoreBound::Inclusive),
    }
    .ok_or(NO_SCORE)
}

/// The range of scores between two texts.
pub(super) fn parse_score_range(min: &[u8], max: &[u8]) -> Result<ScoreRange, CmdError> {
    Ok(ScoreRange { min: score_bound(min)?, max: score_bound(max)? })
}

fn lex_bound(text: &[u8]) -> Result<LexBound<'_>, CmdError> {
    match text {
        // Redis sees the end of a string in a NUL here.
        [b'-'] | [b'-', 0, ..] => Ok(LexBound::Lowest),
        [b'+'] | [b'+', 0, ..] => Ok(LexBound::Highest),
        [b'[', member @ ..] => Ok(LexBound::Inclusive(member)),
        [b'(', member @ ..] => Ok(LexBound::Exclusive(member)),
        _ => Err(NO_MEMBER),
    }
}

/// The range of members between two texts.
pub(super) fn parse_lex_range<'a>(min: &'a [u8], max: &'a [u8]) -> Result<LexRange<'a>, CmdError> {
    Ok(LexRange { min: lex_bound(min)?, max: lex_bound(max)? })
}
