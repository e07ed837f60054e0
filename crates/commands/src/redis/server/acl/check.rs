//! ACL DRYRUN and GENPASS: what an administrator wants to know and to have before rules are written.

use super::container::{ADMIN, ANYBODY};
use crate::redis::help::wrong_form;
use std::fmt::Write as _;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::{CmdError, shown};
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// Tells whether a user may run a command.
pub static DRYRUN: Command = Command {
    name: "ACL DRYRUN",
    group: Group::Server,
    syntax: "username command [arg [arg ...]]",
    summary: "Simulates the execution of a command by a user, without executing the command.",
    complexity: "O(1).",
    since: "7.0.0",
    arity: Arity::AtLeast(4),
    keys: Keys::None,
    flags: ADMIN,
    run: Run::Session(dryrun),
};

fn dryrun(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let shown = |index: usize| shown(args.get(index));
    let user = cx.engine.acl.find(args.get(2));
    let user = user.ok_or_else(|| CmdError::new(format!("ERR User '{}' not found", shown(2))))?;
    let table = &cx.engine.commands;
    let unknown = || CmdError::new(format!("ERR Command '{}' not found", shown(3)));
    let inner = args.inner(3).ok_or_else(unknown)?;
    let mut found = table.find(inner.get(0)).ok_or_else(unknown)?;
    if !found.command.subcommands().is_empty()
        && let Some(name) = inner.try_get(1)
    {
        found = table.find_subcommand(found.command, name).ok_or_else(unknown)?;
    }
    if !found.command.arity.accepts(inner.len()) {
        return Err(CmdError::Arity(found.command.full_name()));
    }
    // As Valkey has it, the database is the one that whoever asks has selected.
    match user.rights().check(found, &inner, cx.engine.databases_seen_from(cx.session.database)) {
        Ok(()) => reply.simple("OK"),
        Err(denial) => reply.bulk(&denial.explanation(&user.name, found.command, inner.get(denial.argument()))),
    }
    Ok(())
}

/// Makes a password up.
pub static GENPASS: Command = Command {
    name: "ACL GENPASS",
    group: Group::Server,
    syntax: "[bits]",
    summary: "Generates a pseudorandom, secure password that can be used to identify ACL users.",
    complexity: "O(1)",
    since: "6.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: ANYBODY,
    run: Run::Session(genpass),
};

fn genpass(_cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    const BITS_DEFAULT: i64 = 256;
    const BITS_MAX: i64 = 4096;
    if args.len() > 3 {
        return Err(wrong_form(args));
    }
    let bits = args.try_get(2).map_or(Some(BITS_DEFAULT), parse_i64).ok_or(CmdError::NotInteger)?;
    if !(1..=BITS_MAX).contains(&bits) {
        return Err(CmdError::text(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096",
        ));
    }
    let digits = (bits as usize).div_ceil(4);
    let mut random = vec![0; digits.div_ceil(2)];
    getrandom::fill(&mut random).map_err(|error| CmdError::new(format!("ERR no randomness: {error}")))?;
    let mut password = String::with_capacity(2 * random.len());
    for byte in random {
        // A string takes no error.
        let _ = write!(password, "{byte:02x}");
    }
    reply.bulk(&password.as_bytes()[..digits]);
    Ok(())
}
