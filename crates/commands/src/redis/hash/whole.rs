//! HGETALL, HKEYS, HVALS, HLEN and HSCAN: looking at a hash as a whole.

use crate::redis::reply_item::bulk_item;
use crate::redis::scan_page::{PageOptions, parse_cursor, reply_no_page, reply_page};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::ds::packed::Item;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::Hash;
use tenon_engine::wire::resp::Reply;

/// Gives all fields and values.
pub static HGETALL: Command = Command {
    name: "HGETALL",
    group: Group::Hash,
    syntax: "key",
    summary: "Returns all fields and values in a hash.",
    complexity: "O(N) where N is the size of the hash.",
    since: "2.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(hgetall),
};

fn hgetall(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let is_there = cx.answer_with::<Hash>(
        reply,
        |hash| 0..hash.len(),
        |hash, all, reply| {
            reply.map(all.len());
            hash.for_each(|field, value| {
                bulk_item(reply, field);
                bulk_item(reply, value);
            });
        },
    )?;
    if !is_there {
        reply.map(0);
    }
    Ok(Effect::Unchanged)
}

/// Gives all fields.
pub static HKEYS: Command = Command {
    name: "HKEYS",
    group: Group::Hash,
    syntax: "key",
    summary: "Returns all fields in a hash.",
    complexity: "O(N) where N is the size of the hash.",
    since: "2.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(hkeys),
};

fn hkeys(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    answer_with_each(cx, reply, |field, _| field)
}

/// Gives all values.
pub static HVALS: Command = Command {
    name: "HVALS",
    group: Group::Hash,
    syntax: "key",
    summary: "Returns all values in a hash.",
    complexity: "O(N) where N is the size of the hash.",
    since: "2.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(hvals),
};

fn hvals(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    answer_with_each(cx, reply, |_, value| value)
}

/// Answers with one thing of every field.
fn answer_with_each(
    cx: &mut KeyCx<'_>,
    reply: &mut Reply<'_>,
    of: impl for<'a> Fn(Item<'a>, Item<'a>) -> Item<'a> + Send + 'static,
) -> Result<Effect, CmdError> {
    let is_there = cx.answer_with::<Hash>(
        reply,
        |hash| 0..hash.len(),
        move |hash, all, reply| {
            reply.array(all.len());
            hash.for_each(|field, value| bulk_item(reply, of(field, value)));
        },
    )?;
    if !is_there {
        reply.array(0);
    }
    Ok(Effect::Unchanged)
}

/// Counts the fields.
pub static HLEN: Command = Command {
    name: "HLEN",
    group: Group::Hash,
    syntax: "key",
    summary: "Returns the number of fields in a hash.",
    complexity: "O(1)",
    since: "2.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::LOOK)]),
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(hlen),
};

fn hlen(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    reply.int(cx.read_collection::<Hash>()?.map_or(0, |hash| hash.len() as i64));
    Ok(Effect::Unchanged)
}

/// Gives the fields page by page.
pub static HSCAN: Command = Command {
    name: "HSCAN",
    group: Group::Hash,
    syntax: "key cursor [MATCH pattern] [COUNT count] [NOVALUES]",
    summary: "Iterates over fields and values of a hash.",
    complexity: "O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to return back to 0. N is the number of elements inside the collection.",
    since: "2.8.0",
    arity: Arity::AtLeast(3),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(hscan),
};

fn hscan(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let cursor = parse_cursor(args.get(2))?;
    let Some(hash) = cx.read_collection::<Hash>()? else {
        // Options are not looked at then, as in Redis.
        reply_no_page(reply);
        return Ok(Effect::Unchanged);
    };
    let mut with_values = true;
    let options = PageOptions::parse(args, 3, |at| {
        let is_novalues = args.is(at, "NOVALUES");
        with_values &= !is_novalues;
        is_novalues.into()
    })?;
    reply_page(reply, |page| {
        let mut given = 0;
        let next = hash.scan(cursor, options.count, |field, value| {
            if options.accept_item(field) {
                bulk_item(page, field);
                given += 1;
                if with_values {
                    bulk_item(page, value);
                    given += 1;
                }
            }
        });
        (next, given)
    });
    Ok(Effect::Unchanged)
}
