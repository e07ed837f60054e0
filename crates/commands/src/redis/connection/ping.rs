//! PING and ECHO: the server says something back.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;

/// Says PONG.
pub static PING: Command = Command {
    name: "PING",
    group: Group::Connection,
    syntax: "[message]",
    summary: "Returns the server's liveliness response.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::AtLeast(1),
    keys: Keys::None,
    flags: Flags::FAST.or(Flags::WHILE_SUBSCRIBED),
    run: Run::Session(ping),
};

fn ping(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    match args.len() {
        // Between messages only something like a message can be told apart.
        1 | 2 if cx.session.only_listens() => {
            reply.array(2);
            reply.bulk(b"pong");
            reply.bulk(args.try_get(1).unwrap_or_default());
        }
        1 => reply.simple("PONG"),
        2 => reply.bulk(args.get(1)),
        _ => return Err(CmdError::Arity("ping".to_owned())),
    }
    Ok(())
}

/// Says what it was told.
pub static ECHO: Command = Command {
    name: "ECHO",
    group: Group::Connection,
    syntax: "message",
    summary: "Returns the given string.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: Flags::FAST.or(Flags::LOADING).or(Flags::STALE),
    run: Run::Session(echo),
};

fn echo(_cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply.bulk(args.get(1));
    Ok(())
}
