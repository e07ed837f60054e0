//! LLEN, LINDEX and LRANGE: reading a list.

use super::range::{index, part};
use crate::redis::reply_item::bulk_item;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::List;
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// Tells how many elements there are.
pub static LLEN: Command = Command {
    name: "LLEN",
    group: Group::List,
    syntax: "key",
    summary: "Returns the length of a list.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::LOOK)]),
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(llen),
};

/// Reads one element.
pub static LINDEX: Command = Command {
    name: "LINDEX",
    group: Group::List,
    syntax: "key index",
    summary: "Returns an element from a list by its index.",
    complexity: "O(N) where N is the number of elements to traverse to get to the element at index. This makes asking \
                 for the first or the last element of the list O(1).",
    since: "1.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(lindex),
};

/// Reads elements that follow one another.
pub static LRANGE: Command = Command {
    name: "LRANGE",
    group: Group::List,
    syntax: "key start stop",
    summary: "Returns a range of elements from a list.",
    complexity: "O(S+N) where S is the distance of start offset from HEAD for small lists, from nearest end (HEAD or \
                 TAIL) for large lists; and N is the number of elements in the specified range.",
    since: "1.0.0",
    arity: Arity::Exactly(4),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(lrange),
};

fn llen(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let len = cx.read_collection::<List>()?.map_or(0, |list| list.len());
    reply.int(len as i64);
    Ok(Effect::Unchanged)
}

fn lindex(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let Some(list) = cx.read_collection::<List>()? else {
        // As in Redis an index that is none is no error for a key that is not there.
        reply.null();
        return Ok(Effect::Unchanged);
    };
    let number = parse_i64(args.get(2)).ok_or(CmdError::NotInteger)?;
    match index(number, list.len()).and_then(|index| list.get(index)) {
        Some(item) => bulk_item(reply, item),
        None => reply.null(),
    }
    Ok(Effect::Unchanged)
}

fn lrange(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let start = parse_i64(args.get(2)).ok_or(CmdError::NotInteger)?;
    let stop = parse_i64(args.get(3)).ok_or(CmdError::NotInteger)?;
    let is_there = cx.answer_with::<List>(
        reply,
        |list| part(start, stop, list.len()),
        |list, part, reply| {
            reply.array(part.len());
            list.iter_from(part.start).take(part.len()).for_each(|item| bulk_item(reply, item));
        },
    )?;
    if !is_there {
        reply.array(0);
    }
    Ok(Effect::Unchanged)
}
