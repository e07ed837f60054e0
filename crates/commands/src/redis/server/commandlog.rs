//! COMMANDLOG: the last slow commands, and those with large requests and replies. Knows not how they are found.

use super::slowlog::{parse_count, reply_entries};
use crate::redis::help::reply_help;
use crate::redis::help_command::help_command;
use tenon_engine::Engine;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::slowlog::CommandLog;
use tenon_engine::wire::resp::Reply;

const FLAGS: Flags = Flags::ADMIN.or(Flags::LOADING).or(Flags::STALE);

/// The container.
pub static COMMANDLOG: Command = Command {
    name: "COMMANDLOG",
    group: Group::Server,
    syntax: "",
    summary: "A container for command log commands.",
    complexity: "Depends on subcommand.",
    since: "8.1.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: Flags::NONE,
    run: Run::Container(&[&GET, &LEN, &RESET, &HELP]),
};

/// The log that an argument names.
fn log_of<'e>(engine: &'e Engine, args: &Args<'_>, at: usize) -> Result<&'e CommandLog, CmdError> {
    match () {
        () if args.is(at, "slow") => Ok(&engine.slowlog),
        () if args.is(at, "large-request") => Ok(&engine.large_requests),
        () if args.is(at, "large-reply") => Ok(&engine.large_replies),
        () => Err(CmdError::text("ERR type should be one of the following: slow, large-request, large-reply")),
    }
}

/// Shows the last commands of a log.
pub static GET: Command = Command {
    name: "COMMANDLOG GET",
    group: Group::Server,
    syntax: "count <SLOW | LARGE-REQUEST | LARGE-REPLY>",
    summary: "Returns the specified command log's entries.",
    complexity: "O(N) where N is the number of entries returned",
    since: "8.1.0",
    arity: Arity::Exactly(4),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(get),
};

fn get(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let count = parse_count(args.get(2))?;
    reply_entries(log_of(cx.engine, args, 3)?, count, reply);
    Ok(())
}

/// Counts the commands of a log.
pub static LEN: Command = Command {
    name: "COMMANDLOG LEN",
    group: Group::Server,
    syntax: "<SLOW | LARGE-REQUEST | LARGE-REPLY>",
    summary: "Returns the number of entries in the specified type of command log.",
    complexity: "O(1)",
    since: "8.1.0",
    arity: Arity::Exactly(3),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(len),
};

fn len(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply.int(log_of(cx.engine, args, 2)?.len() as i64);
    Ok(())
}

/// Forgets the commands of a log.
pub static RESET: Command = Command {
    name: "COMMANDLOG RESET",
    group: Group::Server,
    syntax: "<SLOW | LARGE-REQUEST | LARGE-REPLY>",
    summary: "Clears all entries from the specified type of command log.",
    complexity: "O(N) where N is the number of entries in the commandlog",
    since: "8.1.0",
    arity: Arity::Exactly(3),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(reset),
};

fn reset(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    log_of(cx.engine, args, 2)?.clear();
    reply.simple("OK");
    Ok(())
}

/// Explains the subcommands.
pub static HELP: Command = help_command("COMMANDLOG HELP", Group::Server, "8.1.0", help);

fn help(_cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply_help(
        args,
        &[
            "GET <count> <type>",
            "    Return top <count> entries of the specified <type> from the commandlog (-1 mean all).",
            "    Entries are made of:",
            "    id, timestamp,",
            "        time in microseconds for type of slow,",
            "        or size in bytes for type of large-request,",
            "        or size in bytes for type of large-reply",
            "    arguments array, client IP and port,",
            "    client name",
            "LEN <type>",
            "    Return the length of the specified type of commandlog.",
            "RESET <type>",
            "    Reset the specified type of commandlog.",
        ],
        reply,
    );
    Ok(())
}
