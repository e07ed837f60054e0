//! SISMEMBER, SMISMEMBER, SCARD, SMEMBERS and SSCAN: reading the members of a set.

use crate::redis::reply_item::bulk_item;
use crate::redis::scan_page::{PageOptions, parse_cursor, reply_no_page, reply_page};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::ds::packed::Item;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::Set;
use tenon_engine::wire::resp::Reply;

/// Tells whether a member is there.
pub static SISMEMBER: Command = Command {
    name: "SISMEMBER",
    group: Group::Set,
    syntax: "key member",
    summary: "Determines whether a member belongs to a set.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::LOOK)]),
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(sismember),
};

fn sismember(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let set = cx.read_collection::<Set>()?;
    reply.int(set.is_some_and(|set| set.contains(Item::Bytes(args.get(2)))).into());
    Ok(Effect::Unchanged)
}

/// Tells of several members whether each is there.
pub static SMISMEMBER: Command = Command {
    name: "SMISMEMBER",
    group: Group::Set,
    syntax: "key member [member ...]",
    summary: "Determines whether multiple members belong to a set.",
    complexity: "O(N) where N is the number of elements being checked for membership",
    since: "6.2.0",
    arity: Arity::AtLeast(3),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(smismember),
};

fn smismember(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let set = cx.read_collection::<Set>()?;
    reply.array(args.len() - 2);
    for member in args.from(2) {
        reply.int(set.is_some_and(|set| set.contains(Item::Bytes(member))).into());
    }
    Ok(Effect::Unchanged)
}

/// Counts the members.
pub static SCARD: Command = Command {
    name: "SCARD",
    group: Group::Set,
    syntax: "key",
    summary: "Returns the number of members in a set.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::LOOK)]),
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(scard),
};

fn scard(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    reply.int(cx.read_collection::<Set>()?.map_or(0, |set| set.len() as i64));
    Ok(Effect::Unchanged)
}

/// Gives all members.
pub static SMEMBERS: Command = Command {
    name: "SMEMBERS",
    group: Group::Set,
    syntax: "key",
    summary: "Returns all members of a set.",
    complexity: "O(N) where N is the set cardinality.",
    since: "1.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(smembers),
};

fn smembers(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let is_there = cx.answer_with::<Set>(
        reply,
        |set| 0..set.len(),
        |set, all, reply| {
            reply.set(all.len());
            set.for_each(|member| bulk_item(reply, member));
        },
    )?;
    if !is_there {
        reply.set(0);
    }
    Ok(Effect::Unchanged)
}

/// Gives the members page by page.
pub static SSCAN: Command = Command {
    name: "SSCAN",
    group: Group::Set,
    syntax: "key cursor [MATCH pattern] [COUNT count]",
    summary: "Iterates over members of a set.",
    complexity: "O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to return back to 0. N is the number of elements inside the collection.",
    since: "2.8.0",
    arity: Arity::AtLeast(3),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(sscan),
};

fn sscan(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let cursor = parse_cursor(args.get(2))?;
    match cx.read_collection::<Set>()? {
        Some(set) => {
            let options = PageOptions::parse(args, 3, |_| 0)?;
            reply_page(reply, |page| {
                let mut given = 0;
                let next = set.scan(cursor, options.count, |member| {
                    if options.accept_item(member) {
                        bulk_item(page, member);
                        given += 1;
                    }
                });
                (next, given)
            });
        }
        // Options are not looked at then, as in Redis.
        None => reply_no_page(reply),
    }
    Ok(Effect::Unchanged)
}
