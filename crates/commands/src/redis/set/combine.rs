//! SINTER, SINTERCARD, SUNION, SDIFF and their STORE forms: sets made of sets.

use crate::redis::combination::{Combination, are_soon_found};
use crate::redis::reply_item::bulk_item;
use std::cell::Cell;
use std::ops::Range;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{KeysCx, view_of};
use tenon_engine::errors::CmdError;
use tenon_engine::store::entry::ValueRef;
use tenon_engine::store::types::set::{
    Visited, difference, have_in_common, intersection, union, visit_difference, visit_union,
};
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

/// Sees to it that each key at these places of the arguments holds a set or nothing: an access of each.
fn check_types(cx: &mut KeysCx<'_>, args: &Args<'_>, mut keys: Range<usize>) -> Result<(), CmdError> {
    keys.try_for_each(|index| cx.key(args.get(index)).read_collection::<Set>().map(|_| ()))
}

/// Calls `visit` with the sets of the keys at these places of the arguments, which only a reply is made of: their shards need
/// not be held for that.
fn with_sets<R>(
    cx: &mut KeysCx<'_>,
    args: &Args<'_>,
    (keys, combination): (Range<usize>, Combination),
    visit: impl FnOnce(Vec<Option<SetRef<'_>>>) -> R,
) -> Result<R, CmdError> {
    check_types(cx, args, keys.clone())?;
    let keys = keys.map(|index| args.get(index));
    cx.with_values(keys, |values| steps(combination, values), |values| Ok(visit(sets_of(values)?)))
}

fn sets_of(values: Vec<Option<ValueRef<'_>>>) -> Result<Vec<Option<SetRef<'_>>>, CmdError> {
    values.into_iter().map(|value| value.map(view_of::<Set>).transpose()).collect()
}

fn steps(combination: Combination, values: &[Option<ValueRef<'_>>]) -> usize {
    combination.steps(values.iter().map(|value| Some(value.as_ref()?.collection::<Set>()?.len())))
}

/// The sets to intersect; none when one of them is empty, as then nothing is in all.
fn all_or_none(sets: Vec<Option<SetRef<'_>>>) -> Vec<SetRef<'_>> {
    sets.into_iter().collect::<Option<Vec<_>>>().unwrap_or_default()
}

fn sinter(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    with_sets(cx, args, (1..args.len(), Combination::Intersection), |sets| {
        let members = reply.set_deferred();
        let count = intersection(all_or_none(sets), usize::MAX, |member| bulk_item(reply, member));
        reply.finish(members, count);
    })?;
    Ok(Effect::Unchanged)
}

fn sinterstore(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let limits = cx.engine().config.set_limits();
    make_and_store(cx, args, (Combination::Intersection, "sinterstore"), reply, move |sets| {
        let mut common = Set::default();
        intersection(all_or_none(sets), usize::MAX, |member| common.add_new(member, limits));
        common
    })
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
    let limit = if limit == 0 { usize::MAX } else { limit };
    let keys = FIRST..FIRST + count;
    check_types(cx, args, keys.clone())?;
    // A few are found soon as a rule, and nothing need be lent for that.
    let are_found = Cell::new(false);
    let steps = |values: &[Option<ValueRef<'_>>]| {
        let steps = steps(Combination::Intersection, values);
        let sets = || all_or_none(sets_of(values.to_vec()).unwrap_or_default());
        are_found.set(are_soon_found(limit, (steps, values.len()), |looks| have_in_common(sets(), limit, looks)));
        if are_found.get() { 0 } else { steps }
    };
    let common = cx.with_values(keys.map(|index| args.get(index)), steps, |values| match are_found.get() {
        true => Ok(limit),
        false => Ok(intersection(all_or_none(sets_of(values)?), limit, |_| ())),
    })?;
    reply.int(common as i64);
    Ok(Effect::Unchanged)
}

fn sunion(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let limits = cx.engine().config.set_limits();
    let (members, visited) = with_sets(cx, args, (1..args.len(), Combination::Union), |sets| {
        let sets: Vec<SetRef<'_>> = sets.into_iter().flatten().collect();
        (reply.set_deferred(), visit_union(&sets, limits, |member| bulk_item(reply, member)))
    })?;
    finish(cx, members, visited, reply);
    Ok(Effect::Unchanged)
}

fn sunionstore(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let limits = cx.engine().config.set_limits();
    make_and_store(cx, args, (Combination::Union, "sunionstore"), reply, move |sets| {
        union(&sets.into_iter().flatten().collect::<Vec<_>>(), limits)
    })
}

/// The first set and those of the others that are there; an empty one when the first is not there.
fn first_and_others(sets: Vec<Option<SetRef<'_>>>) -> (SetRef<'_>, Vec<SetRef<'_>>) {
    let mut sets = sets.into_iter();
    let first = sets.next().expect("there is a key at least").unwrap_or(SetRef::EMPTY);
    (first, sets.flatten().collect())
}

fn sdiff(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let limits = cx.engine().config.set_limits();
    let (members, visited) = with_sets(cx, args, (1..args.len(), Combination::Difference), |sets| {
        let (first, others) = first_and_others(sets);
        (reply.set_deferred(), visit_difference(first, &others, limits, |member| bulk_item(reply, member)))
    })?;
    finish(cx, members, visited, reply);
    Ok(Effect::Unchanged)
}

fn sdiffstore(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let limits = cx.engine().config.set_limits();
    make_and_store(cx, args, (Combination::Difference, "sdiffstore"), reply, move |sets| {
        let (first, others) = first_and_others(sets);
        difference(first, &others, limits)
    })
}

/// Ends a reply of members; a large set that was made for it alone is freed when no shard is locked.
fn finish(cx: &mut KeysCx<'_>, members: Deferred, visited: Visited, reply: &mut Reply<'_>) {
    reply.finish(members, visited.count);
    if let Some(made) = visited.made {
        cx.worker().discard_part(made, visited.count);
    }
}

/// Puts what is made of the sets behind the destination in the place of whatever that holds, and answers how many members it has.
fn make_and_store(
    cx: &mut KeysCx<'_>,
    args: &Args<'_>,
    (combination, event): (Combination, &'static str),
    reply: &mut Reply<'_>,
    make: impl Fn(Vec<Option<SetRef<'_>>>) -> Set + Send + 'static,
) -> Result<Effect, CmdError> {
    let sources = 2..args.len();
    check_types(cx, args, sources.clone())?;
    let steps = |values: &[Option<ValueRef<'_>>]| steps(combination, values);
    let make = move |_: &Args<'_>, values: Vec<Option<ValueRef<'_>>>| Ok(make(sets_of(values)?));
    cx.make_and_store(args, sources, reply, steps, make, move |cx, args, reply, set: Set| {
        reply.int(set.view().len() as i64);
        Ok(cx.key(args.get(1)).replace_with(event, set))
    })
}
