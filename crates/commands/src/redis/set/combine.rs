//! SINTER, SINTERCARD, SUNION, SDIFF and their STORE forms: sets made of sets.

use crate::redis::reply_item::bulk_item;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeysCx;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::set::{Visited, difference, intersection, union, visit_difference, visit_union};
use tenon_engine::store::types::{Collection, Set, SetRef};
use tenon_engine::wire::resp::number::parse_i64;
use tenon_engine::wire::resp::{Deferred, Reply};

/// Gives what all sets have.
pub static SINTER: Command = Command {
    name: "SINTER",
    group: Group::Set,
    syntax: "key [key ...]",
    summary: "Returns the intersect of multiple sets.",
    complexity: "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.",
    since: "1.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::ALL,
    flags: Flags::READONLY,
    run: Run::Keys(sinter),
};

/// Keeps what all sets have.
pub static SINTERSTORE: Command = Command {
    name: "SINTERSTORE",
    group: Group::Set,
    syntax: "destination key [key ...]",
    summary: "Stores the intersect of multiple sets in a key.",
    complexity: "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.",
    since: "1.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE), KeySpec::rest(2, KeyFlags::READ)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM),
    run: Run::Keys(sinterstore),
};

/// Counts what all sets have.
pub static SINTERCARD: Command = Command {
    name: "SINTERCARD",
    group: Group::Set,
    syntax: "numkeys key [key ...] [LIMIT limit]",
    summary: "Returns the number of members of the intersect of multiple sets.",
    complexity: "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.",
    since: "7.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::Counted { count: 1, step: 1 },
    flags: Flags::READONLY,
    run: Run::Keys(sintercard),
};

/// Gives what any set has.
pub static SUNION: Command = Command {
    name: "SUNION",
    group: Group::Set,
    syntax: "key [key ...]",
    summary: "Returns the union of multiple sets.",
    complexity: "O(N) where N is the total number of elements in all given sets.",
    since: "1.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::ALL,
    flags: Flags::READONLY,
    run: Run::Keys(sunion),
};

/// Keeps what any set has.
pub static SUNIONSTORE: Command = Command {
    name: "SUNIONSTORE",
    group: Group::Set,
    syntax: "destination key [key ...]",
    summary: "Stores the union of multiple sets in a key.",
    complexity: "O(N) where N is the total number of elements in all given sets.",
    since: "1.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::OVERWRITE), KeySpec::rest(2, KeyFlags::READ)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM),
    run: Run::Keys(sunionstore),
};

/// Gives what the first set has and no other.
pub static SDIFF: Command = Command {
    name: "SDIFF",
    group: Group::Set,
    syntax: "key [key ...]",
    summary: "Returns the difference of multiple sets.",
    complexity: "O(N) where N is the total number of elements in all given sets.",
    since: "1.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::ALL,
    flags: Flags::READONLY,
    run: Run::Keys(sdiff),
};

/// Keeps what the first set has and no other.
pub static SDIFFSTORE: Command = Command {
    name: "SDIFFSTORE",
    group: Group::Set,
    syntax: "destination key [key ...]",
    summary: "Stores the difference of multiple sets in a key.",
    complexity: "O(N) where N is the total number of elements in all given sets.",
    since: "1.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::OVERWRITE), KeySpec::rest(2, KeyFlags::READ)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM),
    run: Run::Keys(sdiffstore),
};

/// The sets of the keys from argument `first` up to `end`; one that is not there is empty.
fn read_sets<'c>(
    cx: &'c mut KeysCx<'_>,
    args: &Args<'_>,
    keys: std::ops::Range<usize>,
) -> Result<Vec<Option<SetRef<'c>>>, CmdError> {
    cx.read_collections::<Set>(keys.map(|index| args.get(index)))
}

/// The sets to intersect; none when one of them is empty, as then nothing is in all.
fn all_or_none(sets: Vec<Option<SetRef<'_>>>) -> Vec<SetRef<'_>> {
    sets.into_iter().collect::<Option<Vec<_>>>().unwrap_or_default()
}

fn sinter(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let sets = all_or_none(read_sets(cx, args, 1..args.len())?);
    let members = reply.set_deferred();
    let count = intersection(sets, usize::MAX, |member| bulk_item(reply, member));
    reply.finish(members, count);
    Ok(Effect::Unchanged)
}

fn sinterstore(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let limits = cx.engine().config.set_limits();
    let sets = all_or_none(read_sets(cx, args, 2..args.len())?);
    let mut common = Set::default();
    intersection(sets, usize::MAX, |member| common.add_new(member, limits));
    Ok(store(cx, args, "sinterstore", common, reply))
}

fn sintercard(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    const FIRST: usize = 2;
    let count = parse_i64(args.get(1)).and_then(|count| usize::try_from(count).ok()).filter(|&count| count > 0);
    let count = count.ok_or(CmdError::text("ERR numkeys should be greater than 0"))?;
    if count > args.len() - FIRST {
        return Err(CmdError::text("ERR Number of keys can't be greater than number of args"));
    }
    let mut limit = 0;
    for at in (FIRST + count..args.len()).step_by(2) {
        let value = args.try_get(at + 1).filter(|_| args.is(at, "LIMIT")).ok_or(CmdError::Syntax)?;
        limit = parse_i64(value)
            .and_then(|limit| usize::try_from(limit).ok())
            .ok_or(CmdError::text("ERR LIMIT can't be negative"))?;
    }
    let sets = all_or_none(read_sets(cx, args, FIRST..FIRST + count)?);
    let limit = if limit == 0 { usize::MAX } else { limit };
    reply.int(intersection(sets, limit, |_| ()) as i64);
    Ok(Effect::Unchanged)
}

fn sunion(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let limits = cx.engine().config.set_limits();
    let sets: Vec<SetRef<'_>> = read_sets(cx, args, 1..args.len())?.into_iter().flatten().collect();
    let members = reply.set_deferred();
    let visited = visit_union(&sets, limits, |member| bulk_item(reply, member));
    finish(cx, members, visited, reply);
    Ok(Effect::Unchanged)
}

fn sunionstore(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let limits = cx.engine().config.set_limits();
    let sets: Vec<SetRef<'_>> = read_sets(cx, args, 2..args.len())?.into_iter().flatten().collect();
    let all = union(&sets, limits);
    Ok(store(cx, args, "sunionstore", all, reply))
}

/// The first set and those of the others that are there; an empty one when the first is not there.
fn first_and_others<'c>(
    cx: &'c mut KeysCx<'_>,
    args: &Args<'_>,
    keys: std::ops::Range<usize>,
) -> Result<(SetRef<'c>, Vec<SetRef<'c>>), CmdError> {
    let mut sets = read_sets(cx, args, keys)?.into_iter();
    let first = sets.next().expect("there is a key at least").unwrap_or(SetRef::EMPTY);
    Ok((first, sets.flatten().collect()))
}

fn sdiff(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let limits = cx.engine().config.set_limits();
    let (first, others) = first_and_others(cx, args, 1..args.len())?;
    let members = reply.set_deferred();
    let visited = visit_difference(first, &others, limits, |member| bulk_item(reply, member));
    finish(cx, members, visited, reply);
    Ok(Effect::Unchanged)
}

fn sdiffstore(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let limits = cx.engine().config.set_limits();
    let (first, others) = first_and_others(cx, args, 2..args.len())?;
    let rest = difference(first, &others, limits);
    Ok(store(cx, args, "sdiffstore", rest, reply))
}

/// Ends a reply of members; a large set that was made for it alone is freed when no shard is locked.
fn finish(cx: &mut KeysCx<'_>, members: Deferred, visited: Visited, reply: &mut Reply<'_>) {
    reply.finish(members, visited.count);
    if let Some(made) = visited.made {
        cx.worker().discard_part(made, visited.count);
    }
}

/// Puts the result in the place of whatever the destination holds, and answers how many members it has.
fn store(cx: &mut KeysCx<'_>, args: &Args<'_>, event: &'static str, set: Set, reply: &mut Reply<'_>) -> Effect {
    reply.int(set.view().len() as i64);
    cx.key(args.get(1)).replace_with(event, set)
}
