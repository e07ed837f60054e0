//! ZREM, ZREMRANGEBYRANK, ZREMRANGEBYSCORE and ZREMRANGEBYLEX: members that go.

use super::bounds::{parse_lex_range, parse_score_range};
use super::range_query::RankRange;
use std::ops::Range;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeyCx};
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::zset::Direction;
use tenon_engine::store::types::{Zset, ZsetRef};
use tenon_engine::wire::resp::Reply;

const KEYS: Keys = Keys::Specs(&[KeySpec::at(1, KeyFlags::SHRINK)]);

/// Takes members out.
pub static ZREM: Command = Command {
    name: "ZREM",
    group: Group::SortedSet,
    syntax: "key member [member ...]",
    summary: "Removes one or more members from a sorted set. Deletes the sorted set if all members were removed.",
    complexity: "O(M*log(N)) with N being the number of elements in the sorted set and M the number of elements to be removed.",
    since: "1.2.0",
    arity: Arity::AtLeast(3),
    keys: KEYS,
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(zrem),
};

fn zrem(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let outcome = cx.update_existing(|zset: &mut Zset| {
        let removed = args.from(2).filter(|member| zset.remove(member).is_some()).count();
        Ok(Change::when(removed > 0, "zrem", removed).times(removed))
    })?;
    let (removed, effect) = outcome.unwrap_or((0, Effect::Unchanged));
    reply.int(removed as i64);
    Ok(effect)
}

/// Takes out the members of a range of ranks.
pub static ZREMRANGEBYRANK: Command = Command {
    name: "ZREMRANGEBYRANK",
    group: Group::SortedSet,
    syntax: "key start stop",
    summary: "Removes members in a sorted set within a range of indexes. Deletes the sorted set if all members were removed.",
    complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements removed by the operation.",
    since: "2.0.0",
    arity: Arity::Exactly(4),
    keys: KEYS,
    flags: Flags::WRITE,
    run: Run::Key(zremrangebyrank),
};

/// Takes out the members of a range of scores.
pub static ZREMRANGEBYSCORE: Command = Command {
    name: "ZREMRANGEBYSCORE",
    group: Group::SortedSet,
    syntax: "key min max",
    summary: "Removes members in a sorted set within a range of scores. Deletes the sorted set if all members were removed.",
    complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements removed by the operation.",
    since: "1.2.0",
    arity: Arity::Exactly(4),
    keys: KEYS,
    flags: Flags::WRITE,
    run: Run::Key(zremrangebyscore),
};

/// Takes out the members of a range of members, where all scores are equal.
pub static ZREMRANGEBYLEX: Command = Command {
    name: "ZREMRANGEBYLEX",
    group: Group::SortedSet,
    syntax: "key min max",
    summary: "Removes members in a sorted set within a lexicographical range. Deletes the sorted set if all members were removed.",
    complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements removed by the operation.",
    since: "2.8.9",
    arity: Arity::Exactly(4),
    keys: KEYS,
    flags: Flags::WRITE,
    run: Run::Key(zremrangebylex),
};

fn zremrangebyrank(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let range = RankRange::parse(args.get(2), args.get(3))?;
    remove_range(cx, "zremrangebyrank", reply, |zset| range.within(zset.len(), Direction::Ascending))
}

fn zremrangebyscore(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let range = parse_score_range(args.get(2), args.get(3))?;
    remove_range(cx, "zremrangebyscore", reply, |zset| zset.ranks_by_score(range))
}

fn zremrangebylex(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let range = parse_lex_range(args.get(2), args.get(3))?;
    remove_range(cx, "zremrangebylex", reply, |zset| zset.ranks_by_lex(range))
}

fn remove_range(
    cx: &mut KeyCx<'_>,
    event: &'static str,
    reply: &mut Reply<'_>,
    ranks_of: impl FnOnce(ZsetRef<'_>) -> Range<usize>,
) -> Result<Effect, CmdError> {
    let Some(slot) = cx.find_for_write() else {
        reply.int(0);
        return Ok(Effect::Unchanged);
    };
    let zset = cx.collection::<Zset>(slot)?;
    let ranks = ranks_of(zset);
    reply.int(ranks.len() as i64);
    if ranks.len() == zset.len() {
        let effect = cx.take_collection::<Zset>(slot, event);
        cx.count_changes(ranks.len() as i64 - 1);
        return Ok(effect);
    }
    let (kept_in, effect) = cx.update_in(slot, |zset: &mut Zset| {
        let removed = ranks.len();
        let kept_in = zset.remove_ranks(ranks, Direction::Ascending, |_, _| ());
        Ok(Change::when(removed > 0, event, kept_in).times(removed))
    })?;
    let allocations = kept_in.len();
    cx.worker().discard_part(kept_in, allocations);
    Ok(effect)
}
