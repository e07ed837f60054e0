//! ZUNION, ZINTER, ZDIFF, their STORE forms and ZINTERCARD: sorted sets made of sets of either type.

use super::combine_sources::{Options, Output, Takes, check_types, parse_keys, sources};
use super::scores::{Scores, reply_member, reply_members_header};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeysCx;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::ZsetLimits;
use tenon_engine::store::types::zset::{Combined, Source, difference, intersection, intersection_len, union};
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

/// How sets are combined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

fn zunion(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    give(cx, args, Operation::Union, "zunion", reply)
}

fn zinter(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    give(cx, args, Operation::Intersection, "zinter", reply)
}

fn zdiff(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    give(cx, args, Operation::Difference, "zdiff", reply)
}

fn zunionstore(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    store(cx, args, Operation::Union, "zunionstore", reply)
}

fn zinterstore(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    store(cx, args, Operation::Intersection, "zinterstore", reply)
}

fn zdiffstore(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    store(cx, args, Operation::Difference, "zdiffstore", reply)
}

fn zintercard(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let keys = parse_keys(args, 1, "zintercard")?;
    check_types(cx, args, &keys)?;
    let options = Options::parse(args, &keys, Takes::Limit, Output::Elsewhere)?;
    let all: Option<Vec<Source<'_>>> = sources(cx, args, &keys).into_iter().collect();
    reply.int(all.map_or(0, |all| intersection_len(all, options.limit) as i64));
    Ok(Effect::Unchanged)
}

fn give(
    cx: &mut KeysCx<'_>,
    args: &Args<'_>,
    operation: Operation,
    name: &str,
    reply: &mut Reply<'_>,
) -> Result<Effect, CmdError> {
    /// Nothing is packed that is not kept.
    const UNPACKED: ZsetLimits = ZsetLimits { members: 0, bytes: 0 };
    let (combined, scores) = combine(cx, args, 1, operation, Output::Reply, UNPACKED, name)?;
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
    operation: Operation,
    name: &'static str,
    reply: &mut Reply<'_>,
) -> Result<Effect, CmdError> {
    let limits = cx.engine().config.zset_limits();
    let (combined, _) = combine(cx, args, 2, operation, Output::Elsewhere, limits, name)?;
    reply.int(combined.len() as i64);
    Ok(cx.key(args.get(1)).replace_with(name, combined.into_zset(limits)))
}

fn combine(
    cx: &mut KeysCx<'_>,
    args: &Args<'_>,
    count_at: usize,
    operation: Operation,
    output: Output,
    limits: ZsetLimits,
    name: &str,
) -> Result<(Combined, Scores), CmdError> {
    let keys = parse_keys(args, count_at, name)?;
    // Before the options, as in Redis.
    check_types(cx, args, &keys)?;
    let takes = if operation == Operation::Difference { Takes::Nothing } else { Takes::Weights };
    let options = Options::parse(args, &keys, takes, output)?;
    let sources = sources(cx, args, &keys);
    let weights = options.weights.iter().copied();
    let combined = match operation {
        Operation::Union => {
            let there: Vec<_> =
                sources.into_iter().zip(weights).filter_map(|(set, weight)| Some((set?, weight))).collect();
            union(&there, options.aggregate, limits)
        }
        Operation::Intersection => {
            let all: Option<Vec<_>> =
                sources.into_iter().zip(weights).map(|(set, weight)| Some((set?, weight))).collect();
            // Where one is not there, all have nothing.
            all.map(|all| intersection(&all, options.aggregate, limits)).unwrap_or_default()
        }
        Operation::Difference => {
            let (first, others) = sources.split_first().expect("there is a key at least");
            let others = others.iter().flatten().copied().collect();
            first.map(|first| difference(first, others, limits)).unwrap_or_default()
        }
    };
    Ok((combined, options.scores))
}
