//! SLOWLOG: the last slow commands.

use crate::redis::help::{reply_help, wrong_form};
use crate::redis::help_command::help_command;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::slowlog::CommandLog;
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

const FLAGS: Flags = Flags::ADMIN.or(Flags::LOADING).or(Flags::STALE);
/// Entries that GET shows when not told how many.
const COUNT_DEFAULT: usize = 10;

/// The container.
pub static SLOWLOG: Command = Command {
    name: "SLOWLOG",
    group: Group::Server,
    syntax: "",
    summary: "A container for slow log commands.",
    complexity: "Depends on subcommand.",
    since: "2.2.12",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: Flags::NONE,
    run: Run::Container(&[&GET, &LEN, &RESET, &HELP]),
};

/// Shows the last slow commands.
pub static GET: Command = Command {
    name: "SLOWLOG GET",
    group: Group::Server,
    syntax: "[count]",
    summary: "Returns the slow log's entries.",
    complexity: "O(N) where N is the number of entries returned",
    since: "2.2.12",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(get),
};

fn get(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    if args.len() > 3 {
        return Err(wrong_form(args));
    }
    let count = args.try_get(2).map_or(Ok(COUNT_DEFAULT), parse_count)?;
    reply_entries(&cx.engine.slowlog, count, reply);
    Ok(())
}

/// How many entries are asked for; -1 is all.
pub(super) fn parse_count(text: &[u8]) -> Result<usize, CmdError> {
    match parse_i64(text) {
        Some(-1) => Ok(usize::MAX),
        Some(count @ 0..) => Ok(usize::try_from(count).unwrap_or(usize::MAX)),
        _ => Err(CmdError::text("ERR count should be greater than or equal to -1")),
    }
}

/// Shows the last entries of a log, the newest first.
pub(super) fn reply_entries(log: &CommandLog, count: usize, reply: &mut Reply<'_>) {
    let commands = log.last(count);
    reply.array(commands.len());
    for command in commands {
        reply.array(6);
        reply.int(command.id as i64);
        reply.int(command.at_seconds as i64);
        reply.int(command.amount as i64);
        reply.array(command.args.len());
        command.args.iter().for_each(|arg| reply.bulk(arg));
        reply.bulk(command.remote.as_bytes());
        reply.bulk(command.name.as_bytes());
    }
}

/// Counts the slow commands that are remembered.
pub static LEN: Command = Command {
    name: "SLOWLOG LEN",
    group: Group::Server,
    syntax: "",
    summary: "Returns the number of entries in the slow log.",
    complexity: "O(1)",
    since: "2.2.12",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(len),
};

fn len(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply.int(cx.engine.slowlog.len() as i64);
    Ok(())
}

/// Forgets the slow commands.
pub static RESET: Command = Command {
    name: "SLOWLOG RESET",
    group: Group::Server,
    syntax: "",
    summary: "Clears all entries from the slow log.",
    complexity: "O(N) where N is the number of entries in the slowlog",
    since: "2.2.12",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(reset),
};

fn reset(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    cx.engine.slowlog.clear();
    reply.simple("OK");
    Ok(())
}

/// Explains the subcommands.
pub static HELP: Command = help_command("SLOWLOG HELP", Group::Server, "6.2.0", help);

fn help(_cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply_help(
        args,
        &[
            "GET [<count>]",
            "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
            "    Entries are made of:",
            "    id, timestamp, time in microseconds, arguments array, client IP and port,",
            "    client name",
            "LEN",
            "    Return the length of the slowlog.",
            "RESET",
            "    Reset the slowlog.",
        ],
        reply,
    );
    Ok(())
}
