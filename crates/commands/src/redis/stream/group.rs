//! XGROUP: consumer groups and their consumers.

use super::id::{parse_bound, parse_id};
use super::producers::{limits_of_new, log_limits};
use crate::redis::help::{reply_help, wrong_form};
use crate::redis::help_command::help_command;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeyCx, SessionCx, Word};
use tenon_engine::errors::{CmdError, shown};
use tenon_engine::store::types::Stream;
use tenon_engine::store::types::stream;
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

const NO_KEY: CmdError = CmdError::text(
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.",
);
const BUSY_GROUP: CmdError = CmdError::text("BUSYGROUP Consumer Group name already exists");
const NEGATIVE_ENTRIES_READ: CmdError = CmdError::text("ERR value for ENTRIESREAD must be positive or -1");

/// Changes the consumer groups of a stream.
pub static XGROUP: Command = Command {
    name: "XGROUP",
    group: Group::Stream,
    syntax: "",
    summary: "A container for consumer groups commands.",
    complexity: "Depends on subcommand.",
    since: "5.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: Flags::NONE,
    run: Run::Container(&[
        &XGROUP_CREATE,
        &XGROUP_CREATECONSUMER,
        &XGROUP_DELCONSUMER,
        &XGROUP_DESTROY,
        &XGROUP_HELP,
        &XGROUP_SETID,
    ]),
};

static XGROUP_CREATE: Command = Command {
    name: "XGROUP CREATE",
    group: Group::Stream,
    syntax: "key group <id | $> [MKSTREAM] [ENTRIESREAD entries-read]",
    summary: "Creates a consumer group.",
    complexity: "O(1)",
    since: "5.0.0",
    arity: Arity::AtLeast(5),
    keys: Keys::Specs(&[KeySpec::at(2, KeyFlags::ADD)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM),
    run: Run::Key(create),
};

static XGROUP_CREATECONSUMER: Command = Command {
    name: "XGROUP CREATECONSUMER",
    group: Group::Stream,
    syntax: "key group consumer",
    summary: "Creates a consumer in a consumer group.",
    complexity: "O(1)",
    since: "6.2.0",
    arity: Arity::Exactly(5),
    keys: Keys::Specs(&[KeySpec::at(2, KeyFlags::ADD)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM),
    run: Run::Key(create_consumer),
};

static XGROUP_DELCONSUMER: Command = Command {
    name: "XGROUP DELCONSUMER",
    group: Group::Stream,
    syntax: "key group consumer",
    summary: "Deletes a consumer from a consumer group.",
    complexity: "O(1)",
    since: "5.0.0",
    arity: Arity::Exactly(5),
    keys: Keys::Specs(&[KeySpec::at(2, KeyFlags::SHRINK)]),
    flags: Flags::WRITE,
    run: Run::Key(delete_consumer),
};

static XGROUP_DESTROY: Command = Command {
    name: "XGROUP DESTROY",
    group: Group::Stream,
    syntax: "key group",
    summary: "Destroys a consumer group.",
    complexity: "O(N) where N is the number of entries in the group's pending entries list (PEL).",
    since: "5.0.0",
    arity: Arity::Exactly(4),
    keys: Keys::Specs(&[KeySpec::at(2, KeyFlags::SHRINK)]),
    flags: Flags::WRITE,
    run: Run::Key(destroy),
};

static XGROUP_HELP: Command = help_command("XGROUP HELP", Group::Stream, "5.0.0", help);

static XGROUP_SETID: Command = Command {
    name: "XGROUP SETID",
    group: Group::Stream,
    syntax: "key group <id | $> [ENTRIESREAD entries-read]",
    summary: "Sets the last-delivered ID of a consumer group.",
    complexity: "O(1)",
    since: "5.0.0",
    arity: Arity::AtLeast(5),
    keys: Keys::Specs(&[KeySpec::at(2, KeyFlags::CHANGE)]),
    flags: Flags::WRITE,
    run: Run::Key(set_id),
};

const HELP: [&str; 14] = [
    "CREATE <key> <groupname> <id|$> [option]",
    "    Create a new consumer group. Options are:",
    "    * MKSTREAM",
    "      Create the empty stream if it does not exist.",
    "    * ENTRIESREAD entries_read",
    "      Set the group's entries_read counter (internal use).",
    "CREATECONSUMER <key> <groupname> <consumer>",
    "    Create a new consumer in the specified group.",
    "DELCONSUMER <key> <groupname> <consumer>",
    "    Remove the specified consumer.",
    "DESTROY <key> <groupname>",
    "    Remove the specified group.",
    "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
    "    Set the current group ID and entries_read counter.",
];

/// The error for a group that a stream does not have.
pub(super) fn no_group(group: &[u8], key: &[u8]) -> CmdError {
    let (group, key) = (shown(group), shown(key));
    CmdError::new(format!("NOGROUP No such consumer group '{group}' for key name '{key}'"))
}

/// How many arguments CREATE has at most, whatever is repeated; looked at when all else is.
const CREATE_LEN_MAX: usize = 8;
/// Likewise SETID.
const SET_ID_LEN_MAX: usize = 7;

/// The options of CREATE and SETID.
struct Options {
    makes_stream: bool,
    entries_read: Option<u64>,
}

impl Options {
    fn parse(args: &Args<'_>, may_make_stream: bool) -> Result<Options, CmdError> {
        let mut options = Options { makes_stream: false, entries_read: None };
        let mut at = 5;
        while at < args.len() {
            if may_make_stream && args.is(at, "MKSTREAM") {
                options.makes_stream = true;
                at += 1;
            } else if args.is(at, "ENTRIESREAD") && at + 1 < args.len() {
                let entries = parse_i64(args.get(at + 1)).ok_or(CmdError::NotInteger)?;
                if entries < -1 {
                    return Err(NEGATIVE_ENTRIES_READ);
                }
                options.entries_read = u64::try_from(entries).ok();
                at += 2;
            } else {
                return Err(wrong_form(args));
            }
        }
        Ok(options)
    }

    /// How many entries the group has read, of so many that there ever were: no more than those, where a client says it. What
    /// a log says is so: a group whose stream was told of less by XSETID has read more.
    fn entries_read(&self, entries_added: u64, is_replaying: bool) -> Option<u64> {
        let entries_max = if is_replaying { u64::MAX } else { entries_added };
        self.entries_read.map(|entries| entries.min(entries_max))
    }
}

/// Puts CREATE or SETID down with the number of entries that it came to.
fn log_with_entries_read(cx: &mut KeyCx<'_>, args: &Args<'_>, entries_read: Option<u64>) -> Effect {
    let word = |(before, word)| match entries_read {
        Some(entries) if before >= 5 && args.is(before, "ENTRIESREAD") => Word::Unsigned(entries),
        _ => Word::Bytes(word),
    };
    // By its own name, whatever clients call it.
    cx.log_of(&["XGROUP".into()], args.from(1).enumerate().map(word))
}

fn create(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let options = Options::parse(args, true)?;
    let is_replaying = cx.is_replaying();
    let create = |stream: &mut Stream| {
        if args.len() > CREATE_LEN_MAX {
            return Err(wrong_form(args));
        }
        let state = stream.state();
        let last_id = if args.get(4) == b"$" { state.last_id } else { parse_id(args.get(4), 0)? };
        let entries_read = options.entries_read(state.entries_added, is_replaying);
        if !stream.add_group(args.get(3), stream::Group::new(last_id, entries_read)) {
            return Err(BUSY_GROUP);
        }
        Ok(Change::aside(Some("xgroup-create"), entries_read))
    };
    let limits_of_new = if options.makes_stream { limits_of_new(cx) } else { None };
    let create = |stream: &mut Stream| {
        let change = create(stream)?;
        if let Some(limits) = limits_of_new {
            stream.set_producer_limits(limits);
        }
        Ok(change)
    };
    let (entries_read, mut effect) =
        if options.makes_stream { cx.update(create)? } else { cx.update_existing(create)?.ok_or(NO_KEY)? };
    if limits_of_new.is_some() || entries_read != options.entries_read {
        effect = log_with_entries_read(cx, args, entries_read);
    }
    if let Some(limits) = limits_of_new {
        effect = log_limits(cx, limits);
    }
    reply.ok();
    Ok(effect)
}

/// Changes a group of a stream, both of which must be there.
fn update_group<R>(
    cx: &mut KeyCx<'_>,
    args: &Args<'_>,
    change: impl FnOnce(&mut stream::Group) -> Change<R>,
) -> Result<(R, Effect), CmdError> {
    let (key, name) = (args.get(2), args.get(3));
    let outcome = cx.update_existing(|stream: &mut Stream| {
        Ok(change(stream.group_mut(name).ok_or_else(|| no_group(name, key))?))
    })?;
    outcome.ok_or(NO_KEY)
}

fn set_id(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let options = Options::parse(args, false)?;
    let (key, name) = (args.get(2), args.get(3));
    let is_replaying = cx.is_replaying();
    let outcome = cx.update_existing(|stream: &mut Stream| {
        let state = stream.state();
        let group = stream.group_mut(name).ok_or_else(|| no_group(name, key))?;
        if args.len() > SET_ID_LEN_MAX {
            return Err(wrong_form(args));
        }
        let last_id = if args.get(4) == b"$" { state.last_id } else { parse_bound(args.get(4), 0)? };
        let entries_read = options.entries_read(state.entries_added, is_replaying);
        group.set_position(last_id, entries_read);
        Ok(Change::aside(Some("xgroup-setid"), entries_read))
    })?;
    let (entries_read, mut effect) = outcome.ok_or(NO_KEY)?;
    if entries_read != options.entries_read {
        effect = log_with_entries_read(cx, args, entries_read);
    }
    reply.ok();
    Ok(effect)
}

fn destroy(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let outcome = cx.update_existing(|stream: &mut Stream| {
        let group = stream.remove_group(args.get(3));
        // Who waits for entries in the group is to learn that it is gone.
        Ok(if group.is_some() { Change::awaited(Some("xgroup-destroy"), group) } else { Change::nothing(group) })
    })?;
    let (group, effect) = outcome.ok_or(NO_KEY)?;
    reply.int(group.is_some().into());
    if let Some(group) = group {
        let allocations = group.allocations();
        cx.worker().discard_part(group, allocations);
    }
    Ok(effect)
}

fn create_consumer(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let now_ms = cx.now_ms();
    let (is_new, effect) = update_group(cx, args, |group| match group.add_consumer(args.get(4), now_ms, None) {
        Some(_) => Change::aside(Some("xgroup-createconsumer"), true),
        None => Change::nothing(false),
    })?;
    reply.int(is_new.into());
    Ok(effect)
}

fn delete_consumer(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let (consumer, effect) = update_group(cx, args, |group| match group.remove_consumer(args.get(4)) {
        Some(consumer) => Change::aside(Some("xgroup-delconsumer"), Some(consumer)),
        None => Change::nothing(None),
    })?;
    reply.int(consumer.as_ref().map_or(0, |consumer| consumer.pending().len()) as i64);
    if let Some(consumer) = consumer {
        let allocations = consumer.allocations();
        cx.worker().discard_part(consumer, allocations);
    }
    Ok(effect)
}

fn help(_cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply_help(args, &HELP, reply);
    Ok(())
}
