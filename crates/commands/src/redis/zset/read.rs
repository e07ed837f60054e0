//! ZCARD, ZSCORE, ZMSCORE, ZCOUNT, ZLEXCOUNT and ZSCAN: looking at members and scores.

use super::bounds::{parse_lex_range, parse_score_range};
use crate::redis::reply_item::bulk_item;
use crate::redis::scan_page::{PageOptions, parse_cursor, reply_no_page, reply_page};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::Zset;
use tenon_engine::wire::resp::{Reply, write_double};

/// Counts the members.
pub static ZCARD: Command = Command {
    name: "ZCARD",
    group: Group::SortedSet,
    syntax: "key",
    summary: "Returns the number of members in a sorted set.",
    complexity: "O(1)",
    since: "1.2.0",
    arity: Arity::Exactly(2),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::LOOK)]),
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(zcard),
};

fn zcard(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    reply.int(cx.read_collection::<Zset>()?.map_or(0, |zset| zset.len() as i64));
    Ok(Effect::Unchanged)
}

/// Gives a member's score.
pub static ZSCORE: Command = Command {
    name: "ZSCORE",
    group: Group::SortedSet,
    syntax: "key member",
    summary: "Returns the score of a member in a sorted set.",
    complexity: "O(1)",
    since: "1.2.0",
    arity: Arity::Exactly(3),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(zscore),
};

fn zscore(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let zset = cx.read_collection::<Zset>()?;
    reply_score(reply, zset.and_then(|zset| zset.score(args.get(2))));
    Ok(Effect::Unchanged)
}

fn reply_score(reply: &mut Reply<'_>, score: Option<f64>) {
    match score {
        Some(score) => reply.double(score),
        None => reply.null(),
    }
}

/// Gives the scores of several members.
pub static ZMSCORE: Command = Command {
    name: "ZMSCORE",
    group: Group::SortedSet,
    syntax: "key member [member ...]",
    summary: "Returns the score of one or more members in a sorted set.",
    complexity: "O(N) where N is the number of members being requested.",
    since: "6.2.0",
    arity: Arity::AtLeast(3),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(zmscore),
};

fn zmscore(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let zset = cx.read_collection::<Zset>()?;
    reply.array(args.len() - 2);
    for member in args.from(2) {
        reply_score(reply, zset.and_then(|zset| zset.score(member)));
    }
    Ok(Effect::Unchanged)
}

/// Counts the members whose scores are in a range.
pub static ZCOUNT: Command = Command {
    name: "ZCOUNT",
    group: Group::SortedSet,
    syntax: "key min max",
    summary: "Returns the count of members in a sorted set that have scores within a range.",
    complexity: "O(log(N)) with N being the number of elements in the sorted set.",
    since: "2.0.0",
    arity: Arity::Exactly(4),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(zcount),
};

fn zcount(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let range = parse_score_range(args.get(2), args.get(3))?;
    let zset = cx.read_collection::<Zset>()?;
    reply.int(zset.map_or(0, |zset| zset.ranks_by_score(range).len() as i64));
    Ok(Effect::Unchanged)
}

/// Counts the members in a range, where all scores are equal.
pub static ZLEXCOUNT: Command = Command {
    name: "ZLEXCOUNT",
    group: Group::SortedSet,
    syntax: "key min max",
    summary: "Returns the number of members in a sorted set within a lexicographical range.",
    complexity: "O(log(N)) with N being the number of elements in the sorted set.",
    since: "2.8.9",
    arity: Arity::Exactly(4),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(zlexcount),
};

fn zlexcount(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let range = parse_lex_range(args.get(2), args.get(3))?;
    let zset = cx.read_collection::<Zset>()?;
    reply.int(zset.map_or(0, |zset| zset.ranks_by_lex(range).len() as i64));
    Ok(Effect::Unchanged)
}

/// Gives members and scores page by page.
pub static ZSCAN: Command = Command {
    name: "ZSCAN",
    group: Group::SortedSet,
    syntax: "key cursor [MATCH pattern] [COUNT count] [NOSCORES]",
    summary: "Iterates over members and scores of a sorted set.",
    complexity: "O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to return back to 0. N is the number of elements inside the collection.",
    since: "2.8.0",
    arity: Arity::AtLeast(3),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(zscan),
};

fn zscan(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let cursor = parse_cursor(args.get(2))?;
    let Some(zset) = cx.read_collection::<Zset>()? else {
        // Options are not looked at then, as in Redis.
        reply_no_page(reply);
        return Ok(Effect::Unchanged);
    };
    let mut with_scores = true;
    let options = PageOptions::parse(args, 3, |at| {
        let is_noscores = args.is(at, "NOSCORES");
        with_scores &= !is_noscores;
        is_noscores.into()
    })?;
    reply_page(reply, |page| {
        let mut given = 0;
        let mut text = Vec::new();
        let next = zset.scan(cursor, options.count, |member, score| {
            if options.accept_item(member) {
                bulk_item(page, member);
                given += 1;
                if with_scores {
                    // A string in RESP3, too.
                    text.clear();
                    write_double(&mut text, score);
                    page.bulk(&text);
                    given += 1;
                }
            }
        });
        (next, given)
    });
    Ok(Effect::Unchanged)
}
