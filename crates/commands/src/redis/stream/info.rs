//! XINFO: streams, their groups and consumers, as somebody looks at them.

use super::group::no_group;
use super::reply::{reply_entries, reply_entry, reply_id};
use crate::redis::help::{reply_help, wrong_form};
use crate::redis::help_command::help_command;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, Keys, Run};
use tenon_engine::context::{KeyCx, SessionCx};
use tenon_engine::ds::progress;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::Stream;
use tenon_engine::store::types::stream::{self, Consumer, Producers, StreamId};
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// Looks at streams.
pub static XINFO: Command = Command {
    name: "XINFO",
    group: Group::Stream,
    syntax: "",
    summary: "A container for stream introspection commands.",
    complexity: "Depends on subcommand.",
    since: "5.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: Flags::NONE,
    run: Run::Container(&[&XINFO_CONSUMERS, &XINFO_GROUPS, &XINFO_HELP, &XINFO_STREAM]),
};

static XINFO_CONSUMERS: Command = Command {
    name: "XINFO CONSUMERS",
    group: Group::Stream,
    syntax: "key group",
    summary: "Returns a list of the consumers in a consumer group.",
    complexity: "O(1)",
    since: "5.0.0",
    arity: Arity::Exactly(4),
    keys: Keys::SUBCOMMAND,
    flags: Flags::READONLY,
    run: Run::Key(consumers),
};

static XINFO_GROUPS: Command = Command {
    name: "XINFO GROUPS",
    group: Group::Stream,
    syntax: "key",
    summary: "Returns a list of the consumer groups of a stream.",
    complexity: "O(1)",
    since: "5.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::SUBCOMMAND,
    flags: Flags::READONLY,
    run: Run::Key(groups),
};

static XINFO_HELP: Command = help_command("XINFO HELP", Group::Stream, "5.0.0", help);

static XINFO_STREAM: Command = Command {
    name: "XINFO STREAM",
    group: Group::Stream,
    syntax: "key [FULL [COUNT count]]",
    summary: "Returns information about a stream.",
    complexity: "O(1)",
    since: "5.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::SUBCOMMAND,
    flags: Flags::READONLY,
    run: Run::Key(stream),
};

const HELP: [&str; 6] = [
    "CONSUMERS <key> <groupname>",
    "    Show consumers of <groupname>.",
    "GROUPS <key>",
    "    Show the stream consumer groups.",
    "STREAM <key> [FULL [COUNT <count>]",
    "    Show information about the stream.",
];

/// Entries of each kind that FULL shows when the client does not say.
const COUNT_DEFAULT: usize = 10;

fn consumers(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let now_ms = cx.now_ms();
    let stream = cx.read_collection::<Stream>()?.ok_or(CmdError::NoSuchKey)?;
    let group = stream.group(args.get(3)).ok_or_else(|| no_group(args.get(3), args.get(2)))?;
    let consumers = group.consumers();
    reply.array(consumers.len());
    for consumer in consumers {
        reply.map(4);
        reply.bulk(b"name");
        reply.bulk(consumer.name());
        reply.bulk(b"pending");
        reply.int(consumer.pending().len() as i64);
        reply.bulk(b"idle");
        reply.int(now_ms.saturating_sub(consumer.seen_ms) as i64);
        reply.bulk(b"inactive");
        reply.int(consumer.active_ms.map_or(-1, |active_ms| now_ms.saturating_sub(active_ms) as i64));
    }
    Ok(Effect::Unchanged)
}

fn groups(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let stream = cx.read_collection::<Stream>()?.ok_or(CmdError::NoSuchKey)?;
    let groups = stream.groups();
    reply.array(groups.len());
    for (name, group) in groups {
        reply.map(6);
        reply.bulk(b"name");
        reply.bulk(name);
        reply.bulk(b"consumers");
        reply.int(group.consumers().len() as i64);
        reply.bulk(b"pending");
        reply.int(group.pending_len() as i64);
        reply_position(stream, group, reply);
    }
    Ok(Effect::Unchanged)
}

/// Writes how far a group has come: three pairs.
fn reply_position(stream: &Stream, group: &stream::Group, reply: &mut Reply<'_>) {
    reply.bulk(b"last-delivered-id");
    reply_id(reply, group.last_id());
    reply.bulk(b"entries-read");
    reply_known(group.entries_read().map(|read| read as i64), reply);
    reply.bulk(b"lag");
    reply_known(stream.lag(group), reply);
}

fn reply_known(number: Option<i64>, reply: &mut Reply<'_>) {
    match number {
        Some(number) => reply.int(number),
        None => reply.null(),
    }
}

/// How many entries of each kind FULL shows; `None` without FULL.
fn parse_full(args: &Args<'_>) -> Result<Option<usize>, CmdError> {
    match args.len() {
        3 => Ok(None),
        4 if args.is(3, "FULL") => Ok(Some(COUNT_DEFAULT)),
        6 if args.is(3, "FULL") && args.is(4, "COUNT") => {
            let count = parse_i64(args.get(5)).ok_or(CmdError::NotInteger)?;
            Ok(Some(match usize::try_from(count) {
                Ok(0) => usize::MAX,
                Ok(count) => count,
                Err(_) => COUNT_DEFAULT,
            }))
        }
        _ => Err(wrong_form(args)),
    }
}

fn stream(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let stream = cx.read_collection::<Stream>()?.ok_or(CmdError::NoSuchKey)?;
    let full = parse_full(args)?;
    let state = stream.state();
    reply.map(if full.is_some() { 15 } else { 16 });
    reply.bulk(b"length");
    reply.int(stream.len() as i64);
    reply.bulk(b"radix-tree-keys");
    reply.int(stream.block_count() as i64);
    reply.bulk(b"radix-tree-nodes");
    reply.int(stream.block_count() as i64 + 1);
    reply.bulk(b"last-generated-id");
    reply_id(reply, state.last_id);
    reply.bulk(b"max-deleted-entry-id");
    reply_id(reply, state.max_deleted_id);
    reply.bulk(b"entries-added");
    reply.int(state.entries_added as i64);
    reply.bulk(b"recorded-first-entry-id");
    reply_id(reply, stream.first().map_or(StreamId::MIN, |entry| entry.id()));
    reply_producers(stream, reply);
    match full {
        None => reply_ends(stream, reply),
        Some(count) => reply_everything(stream, count, reply),
    }
    Ok(Effect::Unchanged)
}

/// Writes what the stream remembers of its producers: six pairs.
fn reply_producers(stream: &Stream, reply: &mut Reply<'_>) {
    let (limits, producers) = (stream.producer_limits(), stream.producers());
    let counts = producers.map(Producers::counts).unwrap_or_default();
    for (name, number) in [
        ("idmp-duration", limits.duration_s.into()),
        ("idmp-maxsize", limits.ids_max.into()),
        ("pids-tracked", producers.map_or(0, Producers::len) as u64),
        ("iids-tracked", producers.map_or(0, Producers::ids) as u64),
        ("iids-added", counts.added),
        ("iids-duplicates", counts.duplicates),
    ] {
        reply.bulk(name.as_bytes());
        reply.int(number as i64);
    }
}

fn reply_ends(stream: &Stream, reply: &mut Reply<'_>) {
    reply.bulk(b"groups");
    reply.int(stream.groups().len() as i64);
    for (name, entry) in [("first-entry", stream.first()), ("last-entry", stream.last())] {
        reply.bulk(name.as_bytes());
        match entry {
            Some(entry) => reply_entry(reply, &entry),
            None => reply.null(),
        }
    }
}

fn reply_everything(stream: &Stream, count: usize, reply: &mut Reply<'_>) {
    reply.bulk(b"entries");
    reply_entries(reply, stream.range(StreamId::MIN..=StreamId::MAX).take(count));
    reply.bulk(b"groups");
    let groups = stream.groups();
    reply.array(groups.len());
    for (name, group) in groups {
        reply.map(8);
        reply.bulk(b"name");
        reply.bulk(name);
        reply_position(stream, group, reply);
        reply.bulk(b"pel-count");
        reply.int(group.pending_len() as i64);
        reply.bulk(b"nacked-count");
        reply.int(group.released_len() as i64);
        reply.bulk(b"pending");
        reply.array(group.pending_len().min(count));
        for (id, pending) in group.pending_in(StreamId::MIN..=StreamId::MAX).take(count) {
            reply.array(4);
            reply_id(reply, id);
            reply.bulk(group.holder_of(pending));
            reply.int(pending.delivered_ms() as i64);
            reply.int(pending.deliveries as i64);
        }
        reply.bulk(b"consumers");
        let consumers = group.consumers();
        reply.array(consumers.len());
        consumers.for_each(|consumer| reply_consumer(group, consumer, count, reply));
    }
}

fn reply_consumer(group: &stream::Group, consumer: &Consumer, count: usize, reply: &mut Reply<'_>) {
    reply.map(5);
    reply.bulk(b"name");
    reply.bulk(consumer.name());
    reply.bulk(b"seen-time");
    reply.int(consumer.seen_ms as i64);
    reply.bulk(b"active-time");
    reply.int(consumer.active_ms.map_or(-1, |active_ms| active_ms as i64));
    reply.bulk(b"pel-count");
    reply.int(consumer.pending().len() as i64);
    reply.bulk(b"pending");
    reply.array(consumer.pending().len().min(count));
    for &id in consumer.pending().iter().take(count) {
        progress::count(1);
        let pending = group.pending(id).expect("a consumer's entry is its group's");
        reply.array(3);
        reply_id(reply, id);
        reply.int(pending.delivered_ms() as i64);
        reply.int(pending.deliveries as i64);
    }
}

fn help(_cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply_help(args, &HELP, reply);
    Ok(())
}
