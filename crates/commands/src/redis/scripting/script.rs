//! SCRIPT: the scripts that the server knows.

use crate::redis::help::reply_help;
use crate::redis::help_command::help_command;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::scripting::Kind;
use tenon_engine::wire::resp::Reply;

/// Everything about scripts.
pub static SCRIPT: Command = Command {
    name: "SCRIPT",
    group: Group::Scripting,
    syntax: "",
    summary: "A container for Lua scripts management commands.",
    complexity: "Depends on subcommand.",
    since: "2.6.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: Flags::NONE,
    run: Run::Container(&[&DEBUG, &EXISTS, &FLUSH, &HELP, &KILL, &LOAD, &SHOW]),
};

static HELP: Command = help_command("SCRIPT HELP", Group::Scripting, "5.0.0", help);

static DEBUG: Command = Command {
    name: "SCRIPT DEBUG",
    group: Group::Scripting,
    syntax: "YES | SYNC | NO",
    summary: "Sets the debug mode of server-side Lua scripts.",
    complexity: "O(1)",
    since: "3.2.0",
    arity: Arity::Exactly(3),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT,
    run: Run::Session(debug),
};

static EXISTS: Command = Command {
    name: "SCRIPT EXISTS",
    group: Group::Scripting,
    syntax: "sha1 [sha1 ...]",
    summary: "Determines whether server-side Lua scripts exist in the script cache.",
    complexity: "O(N) with N being the number of scripts to check (so checking a single script is an O(1) operation).",
    since: "2.6.0",
    arity: Arity::AtLeast(3),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT,
    run: Run::Session(exists),
};

static FLUSH: Command = Command {
    name: "SCRIPT FLUSH",
    group: Group::Scripting,
    syntax: "[ASYNC | SYNC]",
    summary: "Removes all server-side Lua scripts from the script cache.",
    complexity: "O(N) with N being the number of scripts in cache",
    since: "2.6.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT,
    run: Run::Session(flush),
};

static KILL: Command = Command {
    name: "SCRIPT KILL",
    group: Group::Scripting,
    syntax: "",
    summary: "Terminates a server-side Lua script during execution.",
    complexity: "O(1)",
    since: "2.6.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT.or(Flags::ALLOW_BUSY).or(Flags::WAITS_FOR_SCRIPTS),
    run: Run::Session(kill),
};

static LOAD: Command = Command {
    name: "SCRIPT LOAD",
    group: Group::Scripting,
    syntax: "script",
    summary: "Loads a server-side Lua script to the script cache.",
    complexity: "O(N) with N being the length in bytes of the script body.",
    since: "2.6.0",
    arity: Arity::Exactly(3),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT.or(Flags::STALE),
    run: Run::Session(load),
};

static SHOW: Command = Command {
    name: "SCRIPT SHOW",
    group: Group::Scripting,
    syntax: "sha1",
    summary: "Show server-side Lua script in the script cache.",
    complexity: "O(1).",
    since: "8.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT.or(Flags::STALE),
    run: Run::Session(show),
};

fn debug(_cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    if args.is(2, "no") {
        reply.simple("OK");
        return Ok(());
    }
    if args.is(2, "yes") || args.is(2, "sync") {
        // The debugger would step through scripts in a copy of the process, which there is none of.
        return Err(CmdError::text("ERR SCRIPT DEBUG YES and SYNC are not supported: there is no debugger"));
    }
    Err(CmdError::text("ERR Use SCRIPT DEBUG YES/SYNC/NO"))
}

fn exists(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let shas = args.from(2);
    reply.array(shas.len());
    for sha in shas {
        reply.int(cx.engine.script(sha).is_some().into());
    }
    Ok(())
}

fn flush(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let known = args.len() == 2 || args.len() == 3 && (args.is(2, "sync") || args.is(2, "async"));
    if !known {
        return Err(CmdError::text("ERR SCRIPT FLUSH only support SYNC|ASYNC option"));
    }
    cx.engine.script_flush(cx.worker);
    reply.simple("OK");
    Ok(())
}

fn kill(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    cx.engine.scripts.running.kill(Kind::Script)?;
    reply.simple("OK");
    Ok(())
}

fn load(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let sha = cx.engine.script_load(cx.worker, args.get(2))?;
    reply.bulk(&sha);
    Ok(())
}

fn show(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let script = cx.engine.script(args.get(2)).ok_or(CmdError::text("NOSCRIPT No matching script."))?;
    reply.bulk(&script.source);
    Ok(())
}

const LINES: &[&str] = &[
    "DEBUG (YES|SYNC|NO)",
    "    Set the debug mode for subsequent scripts executed.",
    "EXISTS <sha1> [<sha1> ...]",
    "    Return information about the existence of the scripts in the script cache.",
    "FLUSH [ASYNC|SYNC]",
    "    Flush the Lua scripts cache. Very dangerous on replicas.",
    "    When called without the optional mode argument, the behavior is determined by the",
    "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
    "    * ASYNC: Asynchronously flush the scripts cache.",
    "    * SYNC: Synchronously flush the scripts cache.",
    "KILL",
    "    Kill the currently executing Lua script.",
    "LOAD <script>",
    "    Load a script into the scripts cache without executing it.",
    "SHOW <sha1>",
    "    Show a script from the scripts cache.",
];

fn help(_cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply_help(args, LINES, reply);
    Ok(())
}
