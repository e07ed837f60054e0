//! CONFIG: reads and changes settings, writes them to the file, and forgets statistics. Knows no setting by name.

use crate::redis::help::reply_help;
use crate::redis::help_command::help_command;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::config::{Caller, Config};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;

const FLAGS: Flags = Flags::ADMIN.or(Flags::NO_SCRIPT).or(Flags::LOADING).or(Flags::STALE);

/// The container.
pub static CONFIG: Command = Command {
    name: "CONFIG",
    group: Group::Server,
    syntax: "",
    summary: "A container for server configuration commands.",
    complexity: "Depends on subcommand.",
    since: "2.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: Flags::NONE,
    run: Run::Container(&[&GET, &SET, &RESETSTAT, &REWRITE, &HELP]),
};

/// Reads settings.
pub static GET: Command = Command {
    name: "CONFIG GET",
    group: Group::Server,
    syntax: "parameter [parameter ...]",
    summary: "Returns the effective values of configuration parameters.",
    complexity: "O(N) when N is the number of configuration parameters provided",
    since: "2.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(get),
};

fn get(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let patterns: Vec<&[u8]> = args.from(2).collect();
    let rows = cx.engine.config.get(&patterns);
    reply.map(rows.len());
    for (name, value) in rows {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    Ok(())
}

/// Changes settings, all or none.
pub static SET: Command = Command {
    name: "CONFIG SET",
    group: Group::Server,
    syntax: "parameter value [parameter value ...]",
    summary: "Sets configuration parameters in-flight.",
    complexity: "O(N) when N is the number of configuration parameters provided",
    since: "2.0.0",
    arity: Arity::AtLeast(4),
    keys: Keys::None,
    flags: FLAGS.or(Flags::SWITCHES_LOG),
    run: Run::Session(set),
};

fn set(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let words: Vec<&[u8]> = args.from(2).collect();
    // Also where the arguments turn out to be wrong.
    for (index, pair) in words.chunks_exact(2).enumerate() {
        if Config::is_sensitive(pair[0]) {
            cx.keep_secret(2 + index * 2 + 1);
        }
    }
    let (pairs, []) = words.as_chunks::<2>() else { return Err(CmdError::Syntax) };
    let pairs: Vec<(&[u8], &[u8])> = pairs.iter().map(|&[name, value]| (name, value)).collect();
    let caller = if cx.session.client.info.is_local() { Caller::Local } else { Caller::Remote };
    cx.engine.set_config(&pairs, caller).map_err(|error| CmdError::new(format!("ERR {error}")))?;
    // The next command of the batch may be about how keys are used.
    cx.engine.follow_policy(cx.worker);
    reply.simple("OK");
    Ok(())
}

/// Forgets statistics.
pub static RESETSTAT: Command = Command {
    name: "CONFIG RESETSTAT",
    group: Group::Server,
    syntax: "",
    summary: "Resets the server's statistics.",
    complexity: "O(1)",
    since: "2.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(resetstat),
};

fn resetstat(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    cx.engine.reset_stats();
    reply.simple("OK");
    Ok(())
}

/// Writes the settings to the file that the server was started with.
pub static REWRITE: Command = Command {
    name: "CONFIG REWRITE",
    group: Group::Server,
    syntax: "",
    summary: "Persists the effective configuration to file.",
    complexity: "O(1)",
    since: "2.8.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(rewrite),
};

fn rewrite(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    cx.engine.rewrite_config().map_err(|error| CmdError::new(format!("ERR {error}")))?;
    reply.simple("OK");
    Ok(())
}

/// Explains the subcommands.
pub static HELP: Command = help_command("CONFIG HELP", Group::Server, "5.0.0", help);

fn help(_cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply_help(
        args,
        &[
            "GET <pattern>",
            "    Return parameters matching the glob-like <pattern> and their values.",
            "SET <directive> <value>",
            "    Set the configuration <directive> to <value>.",
            "RESETSTAT",
            "    Reset statistics reported by the INFO command.",
            "REWRITE",
            "    Rewrite the configuration file.",
        ],
        reply,
    );
    Ok(())
}
