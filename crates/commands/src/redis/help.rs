//! What the containers' HELP answers, and the error that points to it. Knows no command.

use tenon_engine::args::Args;
use tenon_engine::errors::{CmdError, shown};
use tenon_engine::wire::resp::Reply;

/// What the client calls the container, which `rename-command` may have given another name, in upper case.
fn container(args: &Args<'_>) -> String {
    String::from_utf8_lossy(args.get(0)).to_ascii_uppercase()
}

/// Answers a container's HELP: `lines` describe its subcommands but for HELP itself, as Redis words them.
pub fn reply_help(args: &Args<'_>, lines: &[&str], reply: &mut Reply<'_>) {
    let container = container(args);
    reply.array(lines.len() + 3);
    reply.simple(&format!("{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    for line in lines {
        reply.simple(line);
    }
    reply.simple("HELP");
    reply.simple("    Prints this help.");
}

/// Redis's error for a subcommand whose arguments are more or fewer than any of its forms takes, where the arity in
/// the command table does not say so already.
pub fn wrong_form(args: &Args<'_>) -> CmdError {
    let container = container(args);
    let name = args.try_get(1).unwrap_or_default();
    let shown = shown(&name[..name.len().min(128)]);
    CmdError::new(format!("ERR unknown subcommand or wrong number of arguments for '{shown}'. Try {container} HELP."))
}
