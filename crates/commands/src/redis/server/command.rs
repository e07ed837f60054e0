//! COMMAND: the table of commands, as clients read it. Knows no command but what its declaration says.

use super::command_docs::reply_docs;
use super::command_info::reply_info;
use super::command_keys::{reply_keys, reply_keys_and_flags};
use crate::redis::help::reply_help;
use crate::redis::help_command::help_command;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::ds::glob::{Case, glob};
use tenon_engine::errors::CmdError;
use tenon_engine::table::CommandTable;
use tenon_engine::wire::OutBuf;
use tenon_engine::wire::resp::Reply;

const FLAGS: Flags = Flags::LOADING.or(Flags::STALE).or(Flags::IN_CONNECTION);

/// Alone: every command.
pub static COMMAND: Command = Command {
    name: "COMMAND",
    group: Group::Server,
    syntax: "",
    summary: "Returns detailed information about all commands.",
    complexity: "O(N) where N is the total number of Redis commands",
    since: "2.8.13",
    arity: Arity::AtLeast(1),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Alone(all, &[&COUNT, &DOCS, &GETKEYS, &GETKEYSANDFLAGS, &INFO, &LIST, &HELP]),
};

fn all(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let table = &cx.engine.commands;
    let description = table.description(reply.proto(), || {
        let (commands, mut out) = (table.top(), OutBuf::new());
        let mut described = Reply::new(&mut out, reply.proto());
        described.array(commands.len());
        commands.iter().for_each(|command| reply_info(command, &mut described));
        out.take_joined().into()
    });
    reply.out().push_shared(description);
    Ok(())
}

/// Counts the commands.
pub static COUNT: Command = Command {
    name: "COMMAND COUNT",
    group: Group::Server,
    syntax: "",
    summary: "Returns a count of commands.",
    complexity: "O(1)",
    since: "2.8.13",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(count),
};

fn count(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply.int(cx.engine.commands.top_len() as i64);
    Ok(())
}

/// Documents commands.
pub static DOCS: Command = Command {
    name: "COMMAND DOCS",
    group: Group::Server,
    syntax: "[command-name [command-name ...]]",
    summary: "Returns documentary information about one, multiple or all commands.",
    complexity: "O(N) where N is the number of commands to look up",
    since: "7.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(docs),
};

fn docs(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let table = &cx.engine.commands;
    let commands = match args.len() {
        2 => table.top(),
        _ => args.from(2).filter_map(|name| by_full_name(table, name)).collect(),
    };
    reply.map(commands.len());
    for command in commands {
        reply.bulk(command.full_name().as_bytes());
        reply_docs(command, reply);
    }
    Ok(())
}

/// Finds the keys in a command.
pub static GETKEYS: Command = Command {
    name: "COMMAND GETKEYS",
    group: Group::Server,
    syntax: "command [arg [arg ...]]",
    summary: "Extracts the key names from an arbitrary command.",
    complexity: "O(N) where N is the number of arguments to the command",
    since: "2.8.13",
    arity: Arity::AtLeast(4),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(getkeys),
};

fn getkeys(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply_keys(&cx.engine.commands, args, reply)
}

/// Finds the keys in a command, and what it does to them.
pub static GETKEYSANDFLAGS: Command = Command {
    name: "COMMAND GETKEYSANDFLAGS",
    group: Group::Server,
    syntax: "command [arg [arg ...]]",
    summary: "Extracts the key names and access flags for an arbitrary command.",
    complexity: "O(N) where N is the number of arguments to the command",
    since: "7.0.0",
    arity: Arity::AtLeast(4),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(getkeysandflags),
};

fn getkeysandflags(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply_keys_and_flags(&cx.engine.commands, args, reply)
}

/// Describes commands.
pub static INFO: Command = Command {
    name: "COMMAND INFO",
    group: Group::Server,
    syntax: "[command-name [command-name ...]]",
    summary: "Returns information about one, multiple or all commands.",
    complexity: "O(N) where N is the number of commands to look up",
    since: "2.8.13",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(info),
};

fn info(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    if args.len() == 2 {
        return all(cx, args, reply);
    }
    reply.array(args.len() - 2);
    for name in args.from(2) {
        match by_full_name(&cx.engine.commands, name) {
            Some(command) => reply_info(command, reply),
            None => reply.null(),
        }
    }
    Ok(())
}

/// The command of a name as `full_name` gives it, in any case.
fn by_full_name(table: &CommandTable, name: &[u8]) -> Option<&'static Command> {
    let mut words = name.splitn(2, |&byte| byte == b'|');
    let command = table.find(words.next()?)?.command;
    match words.next() {
        Some(subcommand) => Some(table.find_subcommand(command, subcommand)?.command),
        None => Some(command),
    }
}

/// Names the commands.
pub static LIST: Command = Command {
    name: "COMMAND LIST",
    group: Group::Server,
    syntax: "[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]",
    summary: "Returns a list of command names.",
    complexity: "O(N) where N is the total number of Redis commands",
    since: "7.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(list),
};

/// Which commands LIST names.
enum Filter<'a> {
    /// All, subcommands too.
    All,
    /// Those of a module: there are no modules.
    Module,
    Category(&'a [u8]),
    Pattern(&'a [u8]),
}

impl Filter<'_> {
    fn parse<'a>(args: &Args<'a>) -> Result<Filter<'a>, CmdError> {
        match args.len() {
            2 => Ok(Filter::All),
            5 if args.is(2, "FILTERBY") => match args.get(3).to_ascii_lowercase().as_slice() {
                b"module" => Ok(Filter::Module),
                b"aclcat" => Ok(Filter::Category(args.get(4))),
                b"pattern" => Ok(Filter::Pattern(args.get(4))),
                _ => Err(CmdError::Syntax),
            },
            _ => Err(CmdError::Syntax),
        }
    }

    fn passes(&self, command: &Command) -> bool {
        match self {
            Filter::All => true,
            Filter::Module => false,
            Filter::Category(wanted) => {
                command.categories().iter().any(|category| category.as_bytes().eq_ignore_ascii_case(wanted))
            }
            Filter::Pattern(pattern) => glob(pattern, command.full_name().as_bytes(), Case::Insensitive),
        }
    }
}

fn list(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let filter = Filter::parse(args)?;
    let mut commands = cx.engine.commands.top();
    let subcommands: Vec<_> = commands.iter().flat_map(|command| command.subcommands()).copied().collect();
    commands.extend(subcommands);
    commands.retain(|command| filter.passes(command));
    reply.array(commands.len());
    commands.iter().for_each(|command| reply.bulk(command.full_name().as_bytes()));
    Ok(())
}

/// Explains the subcommands.
pub static HELP: Command = Command { flags: FLAGS, ..help_command("COMMAND HELP", Group::Server, "5.0.0", help) };

fn help(_cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply_help(
        args,
        &[
            "(no subcommand)",
            "    Return details about all Redis commands.",
            "COUNT",
            "    Return the total number of commands in this Redis server.",
            "LIST",
            "    Return a list of all commands in this Redis server.",
            "INFO [<command-name> ...]",
            "    Return details about multiple Redis commands.",
            "    If no command names are given, documentation details for all",
            "    commands are returned.",
            "DOCS [<command-name> ...]",
            "    Return documentation details about multiple Redis commands.",
            "    If no command names are given, documentation details for all",
            "    commands are returned.",
            "GETKEYS <full-command>",
            "    Return the keys from a full Redis command.",
            "GETKEYSANDFLAGS <full-command>",
            "    Return the keys and the access flags from a full Redis command.",
        ],
        reply,
    );
    Ok(())
}
