//! What ZUNION and its kin combine: the sets under their keys, of either type, and what is said of them.

use super::scores::Scores;
use crate::redis::combination::Combination;
use std::ops::Range;
use tenon_engine::args::Args;
use tenon_engine::context::{KeysCx, view_of};
use tenon_engine::double::parse_double;
use tenon_engine::errors::CmdError;
use tenon_engine::store::entry::ValueRef;
use tenon_engine::store::types::zset::{Aggregate, Source};
use tenon_engine::store::types::{Set, Zset};
use tenon_engine::wire::resp::number::parse_i64;

/// Which options a command takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// WEIGHTS and AGGREGATE.
    Weights,
    /// Neither, as scores are not changed.
    Nothing,
    /// LIMIT, as only the members are counted.
    Limit,
}

/// Where the members go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// Into the reply, with their scores where WITHSCORES says so.
    Reply,
    Elsewhere,
}

/// What is said of the sources.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) weights: Vec<f64>,
    pub(super) aggregate: Aggregate,
    pub(super) scores: Scores,
    /// The most members that are counted.
    pub(super) limit: usize,
}

/// The keys whose number is argument `count_at`, for the command of this name in lower case.
pub(super) fn parse_keys(args: &Args<'_>, count_at: usize, name: &str) -> Result<Range<usize>, CmdError> {
    let count = parse_i64(args.get(count_at)).ok_or(CmdError::NotInteger)?;
    if count < 1 {
        return Err(CmdError::new(format!("ERR at least 1 input key is needed for '{name}' command")));
    }
    let first = count_at + 1;
    let end = usize::try_from(count).ok().and_then(|count| first.checked_add(count));
    Ok(first..end.filter(|&end| end <= args.len()).ok_or(CmdError::Syntax)?)
}

impl Options {
    /// Reads the options behind the keys.
    pub(super) fn parse(
        args: &Args<'_>,
        keys: &Range<usize>,
        takes: Takes,
        output: Output,
    ) -> Result<Options, CmdError> {
        let mut options = Options {
            weights: vec![1.0; keys.len()],
            aggregate: Aggregate::Sum,
            scores: Scores::Without,
            limit: usize::MAX,
        };
        let mut at = keys.end;
        while at < args.len() {
            let left = args.len() - at;
            if takes == Takes::Weights && left > keys.len() && args.is(at, "WEIGHTS") {
                for (weight, index) in options.weights.iter_mut().zip(at + 1..) {
                    *weight = parse_double(args.get(index)).ok_or(CmdError::text("ERR weight value is not a float"))?;
                }
                at += 1 + keys.len();
            } else if takes == Takes::Weights && left >= 2 && args.is(at, "AGGREGATE") {
                options.aggregate = match () {
                    () if args.is(at + 1, "SUM") => Aggregate::Sum,
                    () if args.is(at + 1, "MIN") => Aggregate::Min,
                    () if args.is(at + 1, "MAX") => Aggregate::Max,
                    () if args.is(at + 1, "COUNT") => Aggregate::Count,
                    () => return Err(CmdError::Syntax),
                };
                at += 2;
            } else if output == Output::Reply && args.is(at, "WITHSCORES") {
                options.scores = Scores::With;
                at += 1;
            } else if takes == Takes::Limit && left >= 2 && args.is(at, "LIMIT") {
                let limit = parse_i64(args.get(at + 1)).and_then(|limit| usize::try_from(limit).ok());
                let limit = limit.ok_or(CmdError::text("ERR LIMIT can't be negative"))?;
                options.limit = if limit == 0 { usize::MAX } else { limit };
                at += 2;
            } else {
                return Err(CmdError::Syntax);
            }
        }
        Ok(options)
    }
}

/// Sees to it that each key holds a sorted set or a set or nothing: an access of each.
pub(super) fn check_types(cx: &mut KeysCx<'_>, args: &Args<'_>, keys: &Range<usize>) -> Result<(), CmdError> {
    for index in keys.clone() {
        cx.key(args.get(index)).find_for_read();
        cx.peek(args.get(index)).map(|entry| source_of(entry.value())).transpose()?;
    }
    Ok(())
}

/// Calls `visit` with what the keys hold, of which [`check_types`] has seen that it can be combined; nothing where a key is not
/// there. Only a reply is made of it: the shards need not be held for that.
pub(super) fn with_sources<R>(
    cx: &mut KeysCx<'_>,
    args: &Args<'_>,
    (keys, combination): (&Range<usize>, Combination),
    visit: impl FnOnce(Vec<Option<Source<'_>>>) -> R,
) -> R {
    let keys = keys.clone().map(|index| args.get(index));
    cx.with_values(
        keys,
        |values| steps(combination, values),
        |values| visit(sources_of(values).expect("the types were checked at this instant")),
    )
}

/// About how many members are looked at.
pub(super) fn steps(combination: Combination, values: &[Option<ValueRef<'_>>]) -> usize {
    combination.steps(values.iter().map(|value| Some(source_of((*value)?).ok()?.len())))
}

/// What values are that can be combined.
pub(super) fn sources_of(values: Vec<Option<ValueRef<'_>>>) -> Result<Vec<Option<Source<'_>>>, CmdError> {
    values.into_iter().map(|value| value.map(source_of).transpose()).collect()
}

fn source_of(value: ValueRef<'_>) -> Result<Source<'_>, CmdError> {
    view_of::<Zset>(value).map(Source::Zset).or_else(|_| view_of::<Set>(value).map(Source::Set))
}
