//! ACL itself, and its HELP.

use super::{check, file, list, log, user};
use crate::redis::help::reply_help;
use crate::redis::help_command::help_command;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;

/// The flags of the subcommands that only administrators need.
pub(super) const ADMIN: Flags = Flags::ADMIN.or(ANYBODY);
/// The flags of the others.
pub(super) const ANYBODY: Flags = Flags::NO_SCRIPT.or(Flags::LOADING).or(Flags::STALE);

/// Everything about users.
pub static ACL: Command = Command {
    name: "ACL",
    group: Group::Server,
    syntax: "",
    summary: "A container for Access List Control commands.",
    complexity: "Depends on subcommand.",
    since: "6.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: Flags::NONE,
    run: Run::Container(&[
        &list::CAT,
        &user::DELUSER,
        &check::DRYRUN,
        &check::GENPASS,
        &user::GETUSER,
        &HELP,
        &list::LIST,
        &file::LOAD,
        &log::LOG,
        &file::SAVE,
        &user::SETUSER,
        &list::USERS,
        &list::WHOAMI,
    ]),
};

/// Explains the subcommands.
pub static HELP: Command = help_command("ACL HELP", Group::Server, "6.0.0", help);

fn help(_cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply_help(
        args,
        &[
            "CAT [<category>]",
            "    List all commands that belong to <category>, or all command categories",
            "    when no category is specified.",
            "DELUSER <username> [<username> ...]",
            "    Delete a list of users.",
            "DRYRUN <username> <command> [<arg> ...]",
            "    Returns whether the user can execute the given command without executing the command.",
            "GETUSER <username>",
            "    Get the user's details.",
            "GENPASS [<bits>]",
            "    Generate a secure 256-bit user password. The optional `bits` argument can",
            "    be used to specify a different size.",
            "LIST",
            "    Show users details in config file format.",
            "LOAD",
            "    Reload users from the ACL file.",
            "LOG [<count> | RESET]",
            "    Show the ACL log entries.",
            "SAVE",
            "    Save the current config to the ACL file.",
            "SETUSER <username> <attribute> [<attribute> ...]",
            "    Create or modify a user with the specified attributes.",
            "USERS",
            "    List all the registered usernames.",
            "WHOAMI",
            "    Return the current connection username.",
        ],
        reply,
    );
    Ok(())
}
