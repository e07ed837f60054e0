//! FUNCTION LIST and STATS: which libraries there are, and which function runs for long.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::ds::glob::{Case, glob};
use tenon_engine::errors::{CmdError, shown};
use tenon_engine::scripting::{Kind, Library};
use tenon_engine::wire::resp::Reply;

/// Lists the libraries.
pub(super) static LIST: Command = Command {
    name: "FUNCTION LIST",
    group: Group::Scripting,
    syntax: "[LIBRARYNAME library-name-pattern] [WITHCODE]",
    summary: "Returns information about all libraries.",
    complexity: "O(N) where N is the number of functions",
    since: "7.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT,
    run: Run::Session(list),
};

/// Tells what runs.
pub(super) static STATS: Command = Command {
    name: "FUNCTION STATS",
    group: Group::Scripting,
    syntax: "",
    summary: "Returns information about a function during execution.",
    complexity: "O(1)",
    since: "7.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT.or(Flags::ALLOW_BUSY),
    run: Run::Session(stats),
};

fn list(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let (mut pattern, mut with_code) = (None, false);
    let mut at = 2;
    while at < args.len() {
        if !with_code && args.is(at, "withcode") {
            with_code = true;
        } else if pattern.is_none() && args.is(at, "libraryname") {
            at += 1;
            let Some(given) = args.try_get(at) else {
                return Err(CmdError::text("ERR library name argument was not given"));
            };
            pattern = Some(given);
        } else {
            let word = shown(args.get(at));
            return Err(CmdError::new(format!("ERR Unknown argument {word}")));
        }
        at += 1;
    }
    let shelf = cx.engine.scripts.libraries.shelf();
    let is_shown = |library: &Library| pattern.is_none_or(|pattern| glob(pattern, &library.name, Case::Insensitive));
    let shown: Vec<_> = shelf.libraries().filter(|library| is_shown(library)).collect();
    reply.array(shown.len());
    for library in shown {
        reply_library(library, with_code, reply);
    }
    Ok(())
}

fn reply_library(library: &Library, with_code: bool, reply: &mut Reply<'_>) {
    reply.map(if with_code { 4 } else { 3 });
    reply.bulk(b"library_name");
    reply.bulk(&library.name);
    reply.bulk(b"engine");
    reply.bulk(b"LUA");
    reply.bulk(b"functions");
    reply.array(library.functions.len());
    for function in &library.functions {
        reply.map(3);
        reply.bulk(b"name");
        reply.bulk(&function.info.name);
        reply.bulk(b"description");
        match &function.info.description {
            Some(description) => reply.bulk(description),
            None => reply.null(),
        }
        reply.bulk(b"flags");
        reply.set(function.info.flags.names().count());
        for flag in function.info.flags.names() {
            reply.simple(flag);
        }
    }
    if with_code {
        reply.bulk(b"library_code");
        reply.bulk(&library.code);
    }
}

fn stats(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let scripts = &cx.engine.scripts;
    let running = scripts.running.longest_function();
    if running.is_none() && scripts.running.busy().is_some() {
        return Err(CmdError::Busy(Kind::Script));
    }
    reply.map(2);
    reply.bulk(b"running_script");
    match running {
        Some(function) => {
            reply.map(3);
            reply.bulk(b"name");
            reply.bulk(function.name.as_bytes());
            reply.bulk(b"command");
            reply.array(function.command.len());
            function.command.iter().for_each(|word| reply.bulk(word));
            reply.bulk(b"duration_ms");
            reply.int(function.started.elapsed().as_millis() as i64);
        }
        None => reply.null(),
    }
    let shelf = scripts.libraries.shelf();
    reply.bulk(b"engines");
    reply.map(1);
    reply.bulk(b"LUA");
    reply.map(2);
    reply.bulk(b"libraries_count");
    reply.int(shelf.libraries().len() as i64);
    reply.bulk(b"functions_count");
    reply.int(shelf.function_count() as i64);
    Ok(())
}
