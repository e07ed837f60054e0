//! ACL SETUSER, GETUSER and DELUSER: one user's rules.

use super::container::ADMIN;
use tenon_engine::acl::{DEFAULT_USER, Deletion, Selector};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;

/// Makes a user, or changes it.
pub static SETUSER: Command = Command {
    name: "ACL SETUSER",
    group: Group::Server,
    syntax: "username [rule [rule ...]]",
    summary: "Creates and modifies an ACL user and its rules.",
    complexity: "O(N). Where N is the number of rules provided.",
    since: "6.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::None,
    flags: ADMIN,
    run: Run::Session(setuser),
};

fn setuser(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    (2..args.len()).for_each(|index| cx.keep_secret(index));
    let rules: Vec<&[u8]> = args.from(3).collect();
    cx.engine.set_user(args.get(2), &rules).map_err(|error| CmdError::new(format!("ERR {error}")))?;
    reply.simple("OK");
    Ok(())
}

/// Describes a user.
pub static GETUSER: Command = Command {
    name: "ACL GETUSER",
    group: Group::Server,
    syntax: "username",
    summary: "Lists the ACL rules of a user.",
    complexity: "O(N). Where N is the number of password, command and pattern rules that the user has.",
    since: "6.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::None,
    flags: ADMIN,
    run: Run::Session(getuser),
};

fn getuser(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    cx.keep_secret(2);
    let Some(user) = cx.engine.acl.find(args.get(2)) else {
        reply.null();
        return Ok(());
    };
    let rights = user.rights();
    let root = rights.root();
    reply.map(3 + selector_parts(root));
    reply.bulk(b"flags");
    let flags = rights.flag_names();
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"passwords");
    let passwords = rights.password_hashes();
    reply.array(passwords.len());
    passwords.iter().for_each(|hash| reply.bulk(hash.as_bytes()));
    reply_selector(root, reply);
    reply.bulk(b"selectors");
    reply.array(rights.selectors().len());
    for selector in rights.selectors() {
        reply.map(selector_parts(selector));
        reply_selector(selector, reply);
    }
    Ok(())
}

/// How many names a selector has here. Its databases are told of only where they are not all: some client libraries read
/// what Redis answers by the place and not by the name.
fn selector_parts(selector: &Selector) -> usize {
    3 + usize::from(selector.databases_text().is_some())
}

/// Writes these names, each with its value.
fn reply_selector(selector: &Selector, reply: &mut Reply<'_>) {
    reply.bulk(b"commands");
    reply.bulk(selector.commands_text().as_bytes());
    reply.bulk(b"keys");
    reply.bulk(&selector.keys_text());
    reply.bulk(b"channels");
    reply.bulk(&selector.channels_text());
    if let Some(databases) = selector.databases_text() {
        reply.bulk(b"databases");
        reply.bulk(databases.as_bytes());
    }
}

/// Deletes users and closes their connections.
pub static DELUSER: Command = Command {
    name: "ACL DELUSER",
    group: Group::Server,
    syntax: "username [username ...]",
    summary: "Deletes ACL users, and terminates their connections.",
    complexity: "O(1) amortized time considering the typical user.",
    since: "6.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::None,
    flags: ADMIN,
    run: Run::Session(deluser),
};

fn deluser(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    (2..args.len()).for_each(|index| cx.keep_secret(index));
    if args.from(2).any(|name| name == DEFAULT_USER) {
        return Err(CmdError::text("ERR The 'default' user cannot be removed"));
    }
    let mut deleted = 0;
    for name in args.from(2) {
        match cx.engine.delete_user(name, &cx.session.client) {
            Deletion::NoSuchUser => continue,
            Deletion::Deleted => {}
            // The reply still leaves.
            Deletion::DeletedOwn => cx.session.closing = true,
        }
        deleted += 1;
    }
    reply.int(deleted);
    Ok(())
}
