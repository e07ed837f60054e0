//! AUTH: a client gives its password.

use tenon_engine::acl::DEFAULT_USER;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;

const NO_PASSWORD_SET: &str = "ERR AUTH <password> called without any password configured for the default user. Are \
    you sure your configuration is correct?";

/// Authenticates the connection.
pub static AUTH: Command = Command {
    name: "AUTH",
    group: Group::Connection,
    syntax: "[username] password",
    summary: "Authenticates the connection.",
    complexity: "O(N) where N is the number of passwords defined for the user",
    since: "1.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT
        .or(Flags::LOADING)
        .or(Flags::STALE)
        .or(Flags::FAST)
        .or(Flags::NO_AUTH)
        .or(Flags::ALLOW_BUSY),
    run: Run::Session(auth),
};

fn auth(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    (1..args.len()).for_each(|index| cx.keep_secret(index));
    if args.len() > 3 {
        return Err(CmdError::Syntax);
    }
    let (user, password) = match args.len() {
        2 if cx.engine.is_open() => return Err(CmdError::text(NO_PASSWORD_SET)),
        2 => (DEFAULT_USER, args.get(1)),
        _ => (args.get(1), args.get(2)),
    };
    cx.engine.log_in(cx.worker, cx.session, (user, password), args)?;
    reply.simple("OK");
    Ok(())
}
