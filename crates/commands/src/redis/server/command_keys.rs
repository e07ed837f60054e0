//! The keys in a command that is given as arguments: COMMAND GETKEYS and GETKEYSANDFLAGS.

use super::key_specs::reply_flags_of_key;
use tenon_engine::args::Args;
use tenon_engine::command::{Command, Keys};
use tenon_engine::errors::CmdError;
use tenon_engine::table::CommandTable;
use tenon_engine::wire::resp::Reply;

/// Writes the keys of the command that stands from argument 2 on.
///
/// # Errors
/// When there is no such command, or it has no keys.
pub fn reply_keys(table: &CommandTable, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let (_, inner, at) = keys_of(table, args)?;
    reply.array(at.len());
    at.into_iter().for_each(|index| reply.bulk(inner.get(index)));
    Ok(())
}

/// Writes the keys of the command that stands from argument 2 on, each with what is done to it.
///
/// # Errors
/// When there is no such command, or it has no keys.
pub fn reply_keys_and_flags(table: &CommandTable, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let (command, inner, at) = keys_of(table, args)?;
    reply.array(at.len());
    for (nth, index) in at.into_iter().enumerate() {
        reply.array(2);
        reply.bulk(inner.get(index));
        reply_flags_of_key(command, &inner, nth, reply);
    }
    Ok(())
}

/// The command, its arguments, and which of them are keys.
fn keys_of<'a>(table: &CommandTable, args: &Args<'a>) -> Result<(&'static Command, Args<'a>, Vec<usize>), CmdError> {
    let invalid = CmdError::text("ERR Invalid command specified");
    let inner = args.inner(2).ok_or(invalid.clone())?;
    let mut found = table.find(inner.get(0)).ok_or(invalid.clone())?;
    if !found.command.subcommands().is_empty()
        && let Some(name) = inner.try_get(1)
    {
        found = table.find_subcommand(found.command, name).ok_or(invalid)?;
    }
    let command = found.command;
    if command.keys == Keys::None {
        return Err(CmdError::text("ERR The command has no key arguments"));
    }
    if !command.arity.accepts(inner.len()) {
        return Err(CmdError::text("ERR Invalid number of arguments specified for command"));
    }
    let at: Vec<usize> = command.keys.indexes(&inner).collect();
    if at.is_empty() {
        return Err(CmdError::text("ERR Invalid arguments specified for command"));
    }
    Ok((command, inner, at))
}
