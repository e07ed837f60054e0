//! ZRANGE, ZRANGESTORE and the older commands that each do a part of it.

use super::range_query::{By, Form, Output, RangeQuery};
use super::scores::{reply_member, reply_members_header};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{KeyCx, KeysCx, view_of};
use tenon_engine::ds::packed::IntText;
use tenon_engine::errors::CmdError;
use tenon_engine::store::entry::ValueRef;
use tenon_engine::store::types::zset::Direction;
use tenon_engine::store::types::{Collection, Zset};
use tenon_engine::wire::resp::Reply;

/// Gives the members of a range.
pub static ZRANGE: Command = Command {
    name: "ZRANGE",
    group: Group::SortedSet,
    syntax: "key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]",
    summary: "Returns members in a sorted set within a range of indexes.",
    complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements returned.",
    since: "1.2.0",
    arity: Arity::AtLeast(4),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(zrange),
};

/// Gives the members of a range of ranks, the highest first.
pub static ZREVRANGE: Command = Command {
    name: "ZREVRANGE",
    group: Group::SortedSet,
    syntax: "key start stop [WITHSCORES]",
    summary: "Returns members in a sorted set within a range of indexes in reverse order.",
    complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements returned.",
    since: "1.2.0",
    arity: Arity::AtLeast(4),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(zrevrange),
};

/// Gives the members of a range of scores.
pub static ZRANGEBYSCORE: Command = Command {
    name: "ZRANGEBYSCORE",
    group: Group::SortedSet,
    syntax: "key min max [WITHSCORES] [LIMIT offset count]",
    summary: "Returns members in a sorted set within a range of scores.",
    complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements being returned. If M is constant (e.g. always asking for the first 10 elements with LIMIT), you can consider it O(log(N)).",
    since: "1.0.5",
    arity: Arity::AtLeast(4),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(zrangebyscore),
};

/// Gives the members of a range of scores, the highest first.
pub static ZREVRANGEBYSCORE: Command = Command {
    name: "ZREVRANGEBYSCORE",
    group: Group::SortedSet,
    syntax: "key max min [WITHSCORES] [LIMIT offset count]",
    summary: "Returns members in a sorted set within a range of scores in reverse order.",
    complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements being returned. If M is constant (e.g. always asking for the first 10 elements with LIMIT), you can consider it O(log(N)).",
    since: "2.2.0",
    arity: Arity::AtLeast(4),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(zrevrangebyscore),
};

/// Gives the members of a range of members, where all scores are equal.
pub static ZRANGEBYLEX: Command = Command {
    name: "ZRANGEBYLEX",
    group: Group::SortedSet,
    syntax: "key min max [LIMIT offset count]",
    summary: "Returns members in a sorted set within a lexicographical range.",
    complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements being returned. If M is constant (e.g. always asking for the first 10 elements with LIMIT), you can consider it O(log(N)).",
    since: "2.8.9",
    arity: Arity::AtLeast(4),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(zrangebylex),
};

/// Gives the members of a range of members, where all scores are equal, the last first.
pub static ZREVRANGEBYLEX: Command = Command {
    name: "ZREVRANGEBYLEX",
    group: Group::SortedSet,
    syntax: "key max min [LIMIT offset count]",
    summary: "Returns members in a sorted set within a lexicographical range in reverse order.",
    complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements being returned. If M is constant (e.g. always asking for the first 10 elements with LIMIT), you can consider it O(log(N)).",
    since: "2.8.9",
    arity: Arity::AtLeast(4),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(zrevrangebylex),
};

/// Keeps the members of a range under another key.
pub static ZRANGESTORE: Command = Command {
    name: "ZRANGESTORE",
    group: Group::SortedSet,
    syntax: "dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]",
    summary: "Stores a range of members from sorted set in a key.",
    complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements stored into the destination key.",
    since: "6.2.0",
    arity: Arity::AtLeast(5),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::OVERWRITE), KeySpec::at(2, KeyFlags::READ)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM),
    run: Run::Keys(zrangestore),
};

fn zrange(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    give_range(cx, args, None, None, reply)
}

fn zrevrange(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    give_range(cx, args, Some(By::Rank), Some(Direction::Descending), reply)
}

fn zrangebyscore(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    give_range(cx, args, Some(By::Score), Some(Direction::Ascending), reply)
}

fn zrevrangebyscore(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    give_range(cx, args, Some(By::Score), Some(Direction::Descending), reply)
}

fn zrangebylex(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    give_range(cx, args, Some(By::Lex), Some(Direction::Ascending), reply)
}

fn zrevrangebylex(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    give_range(cx, args, Some(By::Lex), Some(Direction::Descending), reply)
}

fn give_range(
    cx: &mut KeyCx<'_>,
    args: &Args<'_>,
    by: Option<By>,
    direction: Option<Direction>,
    reply: &mut Reply<'_>,
) -> Result<Effect, CmdError> {
    let query = RangeQuery::parse(args, 2, Form { by, direction, output: Output::Reply })?;
    let (direction, scores) = (query.direction, query.scores);
    let is_there = cx.answer_with::<Zset>(
        reply,
        |zset| query.ranks(zset),
        move |zset, ranks, reply| {
            reply_members_header(reply, ranks.len(), scores);
            zset.for_each_in(ranks, direction, |member, score| reply_member(reply, member, score, scores));
        },
    )?;
    if !is_there {
        reply.array(0);
    }
    Ok(Effect::Unchanged)
}

fn zrangestore(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let query = parse_stored(args)?;
    let limits = cx.engine().config.zset_limits();
    cx.key(args.get(2)).read_collection::<Zset>()?;
    let steps = |values: &[Option<ValueRef<'_>>]| {
        let zset = values.iter().flatten().next().and_then(|value| value.collection::<Zset>());
        zset.map_or(0, |zset| query.ranks(zset).len())
    };
    let make = move |args: &Args<'_>, values: Vec<Option<ValueRef<'_>>>| {
        let mut stored = Zset::default();
        if let Some(zset) = values.into_iter().flatten().next().map(view_of::<Zset>).transpose()? {
            let ranks = parse_stored(args)?.ranks(zset);
            let mut room: IntText = IntText::new();
            // In ascending order whatever the direction, as that is how they are put in at the least cost.
            zset.for_each_in(ranks, Direction::Ascending, |member, score| {
                stored.set(member.as_bytes(&mut room), score, limits);
            });
        }
        Ok(stored)
    };
    cx.make_and_store(args, 2..3, reply, steps, make, |cx, args, reply, stored: Zset| {
        reply.int(stored.view().len() as i64);
        Ok(cx.key(args.get(1)).replace_with("zrangestore", stored))
    })
}

fn parse_stored<'a>(args: &Args<'a>) -> Result<RangeQuery<'a>, CmdError> {
    RangeQuery::parse(args, 3, Form { by: None, direction: None, output: Output::Store })
}
