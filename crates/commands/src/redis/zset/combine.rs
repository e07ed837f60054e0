//! ZUNION, ZINTER, ZDIFF, their STORE forms and ZINTERCARD: sorted sets made of sets of either type.

use super::combine_sources::{Options, Output, Takes, check_types, parse_keys, sources_of, steps, with_sources};
use super::scores::{reply_member, reply_members_header};
use crate::redis::combination::{Combination, are_soon_found};
use std::cell::Cell;
use std::ops::Range;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeysCx;
use tenon_engine::errors::CmdError;
use tenon_engine::store::entry::ValueRef;
use tenon_engine::store::types::ZsetLimits;
use tenon_engine::store::types::zset::{
    Combined, Source, difference, have_in_common, intersection, intersection_len, union,
};
use tenon_engine::wire::resp::Reply;

const READ_KEYS: Keys = Keys::Specs(&[KeySpec::counted(1, KeyFlags::READ)]);
const STORE_KEYS: Keys = Keys::Specs(&[KeySpec::at(1, KeyFlags::OVERWRITE), KeySpec::counted(2, KeyFlags::READ)]);

/// Gives what any of the sets has.
pub static ZUNION: Command = Command {
    name: "ZUNION",
    group: Group::SortedSet,
    syntax: "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX | COUNT>] [WITHSCORES]",
    summary: "Returns the union of multiple sorted sets.",
    complexity: "O(N)+O(M*log(M)) with N being the sum of the sizes of the input sorted sets, and M being the number of elements in the resulting sorted set.",
    since: "6.2.0",
    arity: Arity::AtLeast(3),
    keys: READ_KEYS,
    flags: Flags::READONLY,
    run: Run::Keys(zunion),
};

/// Keeps what any of the sets has.
pub static ZUNIONSTORE: Command = Command {
    name: "ZUNIONSTORE",
    group: Group::SortedSet,
    syntax: "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX | COUNT>]",
    summary: "Stores the union of multiple sorted sets in a key.",
    complexity: "O(N)+O(M log(M)) with N being the sum of the sizes of the input sorted sets, and M being the number of elements in the resulting sorted set.",
    since: "2.0.0",
    arity: Arity::AtLeast(4),
    keys: STORE_KEYS,
    flags: Flags::WRITE.or(Flags::DENY_OOM),
    run: Run::Keys(zunionstore),
};

/// Gives what all of the sets have.
pub static ZINTER: Command = Command {
    name: "ZINTER",
    group: Group::SortedSet,
    syntax: "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX | COUNT>] [WITHSCORES]",
    summary: "Returns the intersect of multiple sorted sets.",
    complexity: "O(N*K)+O(M*log(M)) worst case with N being the smallest input sorted set, K being the number of input sorted sets and M being the number of elements in the resulting sorted set.",
    since: "6.2.0",
    arity: Arity::AtLeast(3),
    keys: READ_KEYS,
    flags: Flags::READONLY,
    run: Run::Keys(zinter),
};

/// Keeps what all of the sets have.
pub static ZINTERSTORE: Command = Command {
    name: "ZINTERSTORE",
    group: Group::SortedSet,
    syntax: "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX | COUNT>]",
    summary: "Stores the intersect of multiple sorted sets in a key.",
    complexity: "O(N*K)+O(M*log(M)) worst case with N being the smallest input sorted set, K being the number of input sorted sets and M being the number of elements in the resulting sorted set.",
    since: "2.0.0",
    arity: Arity::AtLeast(4),
    keys: STORE_KEYS,
    flags: Flags::WRITE.or(Flags::DENY_OOM),
    run: Run::Keys(zinterstore),
};

/// Counts what all of the sets have.
pub static ZINTERCARD: Command = Command {
    name: "ZINTERCARD",
    group: Group::SortedSet,
    syntax: "numkeys key [key ...] [LIMIT limit]",
    summary: "Returns the number of members of the intersect of multiple sorted sets.",
    complexity: "O(N*K) worst case with N being the smallest input sorted set, K being the number of input sorted sets.",
    since: "7.0.0",
    arity: Arity::AtLeast(3),
    keys: READ_KEYS,
    flags: Flags::READONLY,
    run: Run::Keys(zintercard),
};

/// Gives what the first set has and no other.
pub static ZDIFF: Command = Command {
    name: "ZDIFF",
    group: Group::SortedSet,
    syntax: "numkeys key [key ...] [WITHSCORES]",
    summary: "Returns the difference between multiple sorted sets.",
    complexity: "O(L + (N-K)log(N)) worst case where L is the total number of elements in all the sets, N is the size of the first set, and K is the size of the result set.",
    since: "6.2.0",
    arity: Arity::AtLeast(3),
    keys: READ_KEYS,
    flags: Flags::READONLY,
    run: Run::Keys(zdiff),
};

/// Keeps what the first set has and no other.
pub static ZDIFFSTORE: Command = Command {
    name: "ZDIFFSTORE",
    group: Group::SortedSet,
    syntax: "destination numkeys key [key ...]",
    summary: "Stores the difference of multiple sorted sets in a key.",
    complexity: "O(L + (N-K)log(N)) worst case where L is the total number of elements in all the sets, N is the size of the first set, and K is the size of the result set.",
    since: "6.2.0",
    arity: Arity::AtLeast(4),
    keys: STORE_KEYS,
    flags: Flags::WRITE.or(Flags::DENY_OOM),
    run: Run::Keys(zdiffstore),
};

fn zunion(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    give(cx, args, Combination::Union, "zunion", reply)
}

fn zinter(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    give(cx, args, Combination::Intersection, "zinter", reply)
}

fn zdiff(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    give(cx, args, Combination::Difference, "zdiff", reply)
}

fn zunionstore(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    store(cx, args, Combination::Union, "zunionstore", reply)
}

fn zinterstore(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    store(cx, args, Combination::Intersection, "zinterstore", reply)
}

fn zdiffstore(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    store(cx, args, Combination::Difference, "zdiffstore", reply)
}

/// What the keys hold, of which [`check_types`] has seen that it can be combined; nothing where one is not there.
fn all_or_none(values: Vec<Option<ValueRef<'_>>>) -> Option<Vec<Source<'_>>> {
    sources_of(values).expect("the types were checked at this instant").into_iter().collect()
}

fn zintercard(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let keys = parse_keys(args, 1, "zintercard")?;
    check_types(cx, args, &keys)?;
    let options = Options::parse(args, &keys, Takes::Limit, Output::Elsewhere)?;
    let limit = options.limit;
    // A few are found soon as a rule, and nothing need be lent for that.
    let are_found = Cell::new(false);
    let steps = |values: &[Option<ValueRef<'_>>]| {
        let steps = steps(Combination::Intersection, values);
        let sources = || all_or_none(values.to_vec()).unwrap_or_default();
        are_found.set(are_soon_found(limit, (steps, values.len()), |looks| have_in_common(sources(), limit, looks)));
        if are_found.get() { 0 } else { steps }
    };
    let common = cx.with_values(keys.map(|index| args.get(index)), steps, |values| match are_found.get() {
        true => limit,
        false => all_or_none(values).map_or(0, |all| intersection_len(all, limit)),
    });
    reply.int(common as i64);
    Ok(Effect::Unchanged)
}

fn give(
    cx: &mut KeysCx<'_>,
    args: &Args<'_>,
    operation: Combination,
    name: &str,
    reply: &mut Reply<'_>,
) -> Result<Effect, CmdError> {
    /// Nothing is packed that is not kept.
    const UNPACKED: ZsetLimits = ZsetLimits { members: 0, bytes: 0 };
    let (keys, options) = parse(cx, args, 1, operation, Output::Reply, name)?;
    let scores = options.scores;
    let combined =
        with_sources(cx, args, (&keys, operation), |sources| combine(sources, &options, operation, UNPACKED));
    let members = combined.len();
    reply_members_header(reply, members, scores);
    combined.for_each(|member, score| reply_member(reply, member, score, scores));
    // It was made for this reply alone; a large one is freed when no shard is locked.
    cx.worker().discard_part(combined, members);
    Ok(Effect::Unchanged)
}

/// Puts the result in the place of whatever the destination holds, and answers how many members it has.
fn store(
    cx: &mut KeysCx<'_>,
    args: &Args<'_>,
    operation: Combination,
    name: &'static str,
    reply: &mut Reply<'_>,
) -> Result<Effect, CmdError> {
    let limits = cx.engine().config.zset_limits();
    let (keys, options) = parse(cx, args, 2, operation, Output::Elsewhere, name)?;
    let steps = |values: &[Option<ValueRef<'_>>]| steps(operation, values);
    let make = move |_: &Args<'_>, values: Vec<Option<ValueRef<'_>>>| {
        Ok(combine(sources_of(values)?, &options, operation, limits))
    };
    cx.make_and_store(args, keys, reply, steps, make, move |cx, args, reply, combined: Combined| {
        reply.int(combined.len() as i64);
        Ok(cx.key(args.get(1)).replace_with(name, combined.into_zset(limits)))
    })
}

/// Where the keys are, whose types are looked at, and what is said of them.
fn parse(
    cx: &mut KeysCx<'_>,
    args: &Args<'_>,
    count_at: usize,
    operation: Combination,
    output: Output,
    name: &str,
) -> Result<(Range<usize>, Options), CmdError> {
    let keys = parse_keys(args, count_at, name)?;
    // Before the options, as in Redis.
    check_types(cx, args, &keys)?;
    let takes = if operation == Combination::Difference { Takes::Nothing } else { Takes::Weights };
    let options = Options::parse(args, &keys, takes, output)?;
    Ok((keys, options))
}

fn combine(
    sources: Vec<Option<Source<'_>>>,
    options: &Options,
    operation: Combination,
    limits: ZsetLimits,
) -> Combined {
    let weights = options.weights.iter().copied();
    match operation {
        Combination::Union => {
            let there: Vec<_> =
                sources.into_iter().zip(weights).filter_map(|(set, weight)| Some((set?, weight))).collect();
            union(&there, options.aggregate, limits)
        }
        Combination::Intersection => {
            let all: Option<Vec<_>> =
                sources.into_iter().zip(weights).map(|(set, weight)| Some((set?, weight))).collect();
            // Where one is not there, all have nothing.
            all.map(|all| intersection(&all, options.aggregate, limits)).unwrap_or_default()
        }
        Combination::Difference => {
            let (first, others) = sources.split_first().expect("there is a key at least");
            let others = others.iter().flatten().copied().collect();
            first.map(|first| difference(first, others, limits)).unwrap_or_default()
        }
    }
}
