//! What the containers' HELP answers, and the error that points to it. Knows no command.

use tenon_engine::args::Args;
use tenon_engine::errors::{CmdError, shown};
use tenon_engine::wire::resp::Reply;

/// Answers a container's HELP: `lines` describe its subcommands but for HELP itself, as Redis words them.
pub fn reply_help(container: &str, lines: &[&str], reply: &mut Reply<'_>) {
    reply.array(lines.len() + 3);
    reply.simple(&format!("{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    for line in lines {
        reply.simple(line);
    }
    reply.simple("HELP");
    reply.simple("    Prints this help.");
}

/// Redis's error for a subcommand whose arguments are more or fewer than any of its forms takes, where the arity in
/// the command table does not say so already. `container` is in upper case.
pub fn wrong_form(container: &str, args: &Args<'_>) -> CmdError {
    let name = args.try_get(1).unwrap_or_default();
    let shown = shown(&name[..name.len().min(128)]);
    CmdError::new(format!("ERR unknown subcommand or wrong number of arguments for '{shown}'. Try {container} HELP."))
}
