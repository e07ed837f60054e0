//! XLEN, XRANGE and XREVRANGE: reading a stream that is there.

use super::id::parse_range;
use super::reply::reply_entries;
use std::ops::RangeInclusive;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::Stream;
use tenon_engine::store::types::stream::StreamId;
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// Tells how many entries there are.
pub static XLEN: Command = Command {
    name: "XLEN",
    group: Group::Stream,
    syntax: "key",
    summary: "Return the number of messages in a stream.",
    complexity: "O(1)",
    since: "5.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::LOOK)]),
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(xlen),
};

/// Gives the entries in a range of ids.
pub static XRANGE: Command = Command {
    name: "XRANGE",
    group: Group::Stream,
    syntax: "key start end [COUNT count]",
    summary: "Returns the messages from a stream within a range of IDs.",
    complexity: "O(N) with N being the number of elements being returned. If N is constant (e.g. always asking for the first 10 elements with COUNT), you can consider it O(1).",
    since: "5.0.0",
    arity: Arity::AtLeast(4),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(xrange),
};

/// Gives the entries in a range of ids, the last first.
pub static XREVRANGE: Command = Command {
    name: "XREVRANGE",
    group: Group::Stream,
    syntax: "key end start [COUNT count]",
    summary: "Returns the messages from a stream within a range of IDs in reverse order.",
    complexity: "O(N) with N being the number of elements returned. If N is constant (e.g. always asking for the first 10 elements with COUNT), you can consider it O(1).",
    since: "5.0.0",
    arity: Arity::AtLeast(4),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(xrevrange),
};

fn xlen(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    reply.int(cx.read_collection::<Stream>()?.map_or(0, Stream::len) as i64);
    Ok(Effect::Unchanged)
}

/// How many entries are wanted; all without COUNT.
fn parse_count(args: &Args<'_>) -> Result<usize, CmdError> {
    let mut count = usize::MAX;
    for at in (4..args.len()).step_by(2) {
        if !args.is(at, "COUNT") || at + 1 == args.len() {
            return Err(CmdError::Syntax);
        }
        let number = parse_i64(args.get(at + 1)).ok_or(CmdError::NotInteger)?;
        count = usize::try_from(number.max(0)).unwrap_or(usize::MAX);
    }
    Ok(count)
}

fn xrange(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let ids = parse_range(args.get(2), args.get(3))?;
    let count = parse_count(args)?;
    let within = ids.clone();
    give_entries(cx, reply, (within, count), move |stream, reply| {
        _ = reply_entries(reply, stream.range(ids).take(count))
    })
}

fn xrevrange(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let ids = parse_range(args.get(3), args.get(2))?;
    let count = parse_count(args)?;
    let within = ids.clone();
    give_entries(cx, reply, (within, count), move |stream, reply| {
        reply_entries(reply, stream.range_back(ids).take(count));
    })
}

/// Answers with at most so many of the entries with these ids.
fn give_entries(
    cx: &mut KeyCx<'_>,
    reply: &mut Reply<'_>,
    (ids, count): (RangeInclusive<StreamId>, usize),
    give: impl FnOnce(&Stream, &mut Reply<'_>) + Send + 'static,
) -> Result<Effect, CmdError> {
    let is_there = cx.answer_with::<Stream>(
        reply,
        // How many have ids between others is not known without a look at them.
        |stream| {
            let are_all =
                *ids.end() >= stream.last_id() && stream.first().is_some_and(|first| *ids.start() <= first.id());
            0..if are_all { count.min(stream.len() as usize) } else { 0 }
        },
        move |stream, _, reply| if count == 0 { reply.null_array() } else { give(stream, reply) },
    )?;
    if !is_there {
        reply.array(0);
    }
    Ok(Effect::Unchanged)
}
