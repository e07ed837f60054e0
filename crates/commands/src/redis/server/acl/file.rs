//! ACL LOAD and SAVE: the file that `aclfile` names.

use super::container::ADMIN;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;

/// Reads the users from their file.
pub static LOAD: Command = Command {
    name: "ACL LOAD",
    group: Group::Server,
    syntax: "",
    summary: "Reloads the rules from the configured ACL file.",
    complexity: "O(N). Where N is the number of configured users.",
    since: "6.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: ADMIN,
    run: Run::Session(load),
};

fn load(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let loaded = cx.engine.load_acl_file(Some(&cx.session.client));
    // When its own user is gone or another one now, the reply still leaves.
    cx.session.closing |= loaded.map_err(|error| CmdError::new(format!("ERR {error}")))?;
    reply.simple("OK");
    Ok(())
}

/// Writes the users to their file.
pub static SAVE: Command = Command {
    name: "ACL SAVE",
    group: Group::Server,
    syntax: "",
    summary: "Saves the effective ACL rules in the configured ACL file.",
    complexity: "O(N). Where N is the number of configured users.",
    since: "6.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: ADMIN,
    run: Run::Session(save),
};

fn save(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    cx.engine.save_acl_file().map_err(|error| CmdError::new(format!("ERR {error}")))?;
    reply.simple("OK");
    Ok(())
}
