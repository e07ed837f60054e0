//! The declaration of a container's HELP subcommand. Knows no container.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;

/// What a handler without data is.
pub type SessionHandler = fn(&mut SessionCx<'_>, &Args<'_>, &mut Reply<'_>) -> Result<(), CmdError>;

/// A HELP subcommand; `name` is `CONTAINER HELP`.
pub const fn help_command(name: &'static str, group: Group, since: &'static str, run: SessionHandler) -> Command {
    Command {
        name,
        group,
        syntax: "",
        summary: "Returns helpful text about the different subcommands.",
        complexity: "O(1)",
        since,
        arity: Arity::Exactly(2),
        keys: Keys::None,
        flags: Flags::LOADING.or(Flags::STALE),
        run: Run::Session(run),
    }
}
