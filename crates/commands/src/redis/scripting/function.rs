//! FUNCTION: libraries of functions come, go and are saved.

use super::function_help::HELP;
use super::function_list::{LIST, STATS};
use crate::redis::help::wrong_form;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::{ServerCx, SessionCx};
use tenon_engine::errors::{CmdError, shown};
use tenon_engine::scripting::{Kind, Restore};
use tenon_engine::wire::resp::Reply;

/// Everything about functions.
pub static FUNCTION: Command = Command {
    name: "FUNCTION",
    group: Group::Scripting,
    syntax: "",
    summary: "A container for function commands.",
    complexity: "Depends on subcommand.",
    since: "7.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: Flags::NONE,
    run: Run::Container(&[&DELETE, &DUMP, &FLUSH, &HELP, &KILL, &LIST, &LOAD, &RESTORE, &STATS]),
};

static DELETE: Command = Command {
    name: "FUNCTION DELETE",
    group: Group::Scripting,
    syntax: "library-name",
    summary: "Deletes a library and its functions.",
    complexity: "O(1)",
    since: "7.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT.or(Flags::WRITE).or(Flags::CHANGES_LIBRARIES),
    run: Run::Session(delete),
};

static DUMP: Command = Command {
    name: "FUNCTION DUMP",
    group: Group::Scripting,
    syntax: "",
    summary: "Dumps all libraries into a serialized binary payload.",
    complexity: "O(N) where N is the number of functions",
    since: "7.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT,
    run: Run::Session(dump),
};

static FLUSH: Command = Command {
    name: "FUNCTION FLUSH",
    group: Group::Scripting,
    syntax: "[ASYNC | SYNC]",
    summary: "Deletes all libraries and functions.",
    complexity: "O(N) where N is the number of functions deleted",
    since: "7.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT.or(Flags::WRITE).or(Flags::CHANGES_LIBRARIES),
    run: Run::Session(flush),
};

static KILL: Command = Command {
    name: "FUNCTION KILL",
    group: Group::Scripting,
    syntax: "",
    summary: "Terminates a function during execution.",
    complexity: "O(1)",
    since: "7.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT.or(Flags::ALLOW_BUSY).or(Flags::WAITS_FOR_SCRIPTS),
    run: Run::Session(kill),
};

static LOAD: Command = Command {
    name: "FUNCTION LOAD",
    group: Group::Scripting,
    syntax: "[REPLACE] function-code",
    summary: "Creates a library.",
    complexity: "O(1) (considering compilation time is redundant)",
    since: "7.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT.or(Flags::WRITE).or(Flags::DENY_OOM).or(Flags::CHANGES_LIBRARIES),
    run: Run::Server(load),
};

static RESTORE: Command = Command {
    name: "FUNCTION RESTORE",
    group: Group::Scripting,
    syntax: "serialized-value [FLUSH | APPEND | REPLACE]",
    summary: "Restores all libraries from a payload.",
    complexity: "O(N) where N is the number of functions on the payload",
    since: "7.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT.or(Flags::WRITE).or(Flags::DENY_OOM).or(Flags::CHANGES_LIBRARIES),
    run: Run::Server(restore),
};

fn delete(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    cx.engine.function_delete(cx.worker, args.get(2))?;
    reply.simple("OK");
    Ok(())
}

fn dump(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply.bulk(&cx.engine.function_dump());
    Ok(())
}

fn flush(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    if args.len() > 3 {
        return Err(wrong_form(args));
    }
    if args.len() == 3 && !args.is(2, "sync") && !args.is(2, "async") {
        return Err(CmdError::text("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
    }
    cx.engine.function_flush(cx.worker);
    reply.simple("OK");
    Ok(())
}

fn kill(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    cx.engine.scripts.running.kill(Kind::Function)?;
    reply.simple("OK");
    Ok(())
}

fn load(cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let code = args.len() - 1;
    for at in 2..code {
        if !args.is(at, "replace") {
            let option = shown(args.get(at));
            return Err(CmdError::new(format!("ERR Unknown option given: {option}")));
        }
    }
    let name = cx.engine.function_load(cx, args.get(code), code > 2)?;
    reply.bulk(&name);
    Ok(())
}

fn restore(cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    if args.len() > 4 {
        return Err(wrong_form(args));
    }
    let how = match args.try_get(3) {
        None => Restore::Append,
        Some(_) if args.is(3, "append") => Restore::Append,
        Some(_) if args.is(3, "replace") => Restore::Replace,
        Some(_) if args.is(3, "flush") => Restore::Flush,
        Some(_) => {
            return Err(CmdError::text(
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            ));
        }
    };
    cx.engine.function_restore(cx, args.get(2), how)?;
    reply.simple("OK");
    Ok(())
}
