//! QUIT and RESET: the connection ends, or is as if it had just begun.

use super::client::identity::set_name;
use std::sync::atomic::Ordering;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::session::ReplyMode;
use tenon_engine::wire::resp::{Proto, Reply};

const FLAGS: Flags = Flags::NO_SCRIPT
    .or(Flags::LOADING)
    .or(Flags::STALE)
    .or(Flags::FAST)
    .or(Flags::NO_AUTH)
    .or(Flags::ALLOW_BUSY)
    .or(Flags::NOT_QUEUED)
    .or(Flags::WHILE_SUBSCRIBED);

/// Closes the connection once its replies are sent.
pub static QUIT: Command = Command {
    name: "QUIT",
    group: Group::Connection,
    syntax: "",
    summary: "Closes the connection.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::AtLeast(1),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(quit),
};

fn quit(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    cx.session.closing = true;
    // Before the reply: whoever has read it finds the client gone.
    cx.session.client.leaving.store(true, Ordering::Release);
    reply.simple("OK");
    Ok(())
}

/// Makes the connection what it was when it was opened.
pub static RESET: Command = Command {
    name: "RESET",
    group: Group::Connection,
    syntax: "",
    summary: "Resets the connection.",
    complexity: "O(1)",
    since: "6.2.0",
    arity: Arity::Exactly(1),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(reset),
};

fn reset(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let session = &mut *cx.session;
    cx.engine.unwatch(session);
    cx.engine.unsubscribe_all(session);
    cx.engine.stop_monitoring(session);
    cx.engine.stop_tracking(session);
    session.set_transaction(None);
    session.select(0);
    // Messages from before come before the answer, in the version of RESP that they were sent in.
    session.set_proto(Proto::Resp2, reply.out());
    cx.engine.log_out(session);
    session.touches = true;
    session.client.no_touch.store(false, Ordering::Relaxed);
    session.client.no_evict.store(false, Ordering::Relaxed);
    set_name(&session.client, b"");
    // As in Redis, SKIP still holds for this command's own reply. The client library stays what it was.
    if session.reply != ReplyMode::SkipThis {
        session.reply = ReplyMode::On;
    }
    reply.simple("RESET");
    Ok(())
}
