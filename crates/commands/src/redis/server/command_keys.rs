//! The keys in a command that is given as arguments: COMMAND GETKEYS and GETKEYSANDFLAGS.

use super::key_specs::reply_flags;
use tenon_engine::args::Args;
use tenon_engine::command::{Flags, KeyFlags};
use tenon_engine::errors::CmdError;
use tenon_engine::table::CommandTable;
use tenon_engine::wire::resp::Reply;

/// Writes the keys of the command that stands from argument 2 on.
///
/// # Errors
/// When there is no such command, or it has no keys.
pub fn reply_keys(table: &CommandTable, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let (inner, keys) = keys_of(table, args)?;
    reply.array(keys.len());
    keys.into_iter().for_each(|(index, _)| reply.bulk(inner.get(index)));
    Ok(())
}

/// Writes the keys of the command that stands from argument 2 on, each with what is done to it.
///
/// # Errors
/// When there is no such command, or it has no keys.
pub fn reply_keys_and_flags(table: &CommandTable, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let (inner, keys) = keys_of(table, args)?;
    reply.array(keys.len());
    for (index, flags) in keys {
        reply.array(2);
        reply.bulk(inner.get(index));
        reply_flags(flags, reply);
    }
    Ok(())
}

/// A command's arguments, and which of them are keys.
type Keys<'a> = (Args<'a>, Vec<(usize, KeyFlags)>);

fn keys_of<'a>(table: &CommandTable, args: &Args<'a>) -> Result<Keys<'a>, CmdError> {
    let invalid = CmdError::text("ERR Invalid command specified");
    let inner = args.inner(2).ok_or(invalid.clone())?;
    let mut found = table.find(inner.get(0)).ok_or(invalid.clone())?;
    if !found.command.subcommands().is_empty()
        && let Some(name) = inner.try_get(1)
    {
        found = table.find_subcommand(found.command, name).ok_or(invalid)?;
    }
    let command = found.command;
    if command.keys.is_none() {
        return Err(CmdError::text("ERR The command has no key arguments"));
    }
    if !command.arity.accepts(inner.len()) {
        return Err(CmdError::text("ERR Invalid number of arguments specified for command"));
    }
    let keys = command.keys_of(&inner);
    if keys.is_empty() && !command.flags.any(Flags::NO_MANDATORY_KEYS) {
        return Err(CmdError::text("ERR Invalid arguments specified for command"));
    }
    Ok((inner, keys))
}
