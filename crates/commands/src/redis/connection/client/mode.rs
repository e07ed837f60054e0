//! CLIENT REPLY, NO-EVICT, NO-TOUCH and CAPA: switches of a connection.

use std::sync::atomic::Ordering;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::session::ReplyMode;
use tenon_engine::wire::resp::Reply;

/// Switches replies on, off, or off for one command.
pub static REPLY: Command = Command {
    name: "CLIENT REPLY",
    group: Group::Connection,
    syntax: "<ON | OFF | SKIP>",
    summary: "Instructs the server whether to reply to commands.",
    complexity: "O(1)",
    since: "3.2.0",
    arity: Arity::Exactly(3),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT.or(Flags::LOADING).or(Flags::STALE),
    run: Run::Session(reply_mode),
};

fn reply_mode(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let mode = &mut cx.session.reply;
    if args.is(2, "ON") {
        *mode = ReplyMode::On;
        reply.simple("OK");
    } else if args.is(2, "OFF") {
        *mode = ReplyMode::Off;
    } else if args.is(2, "SKIP") {
        // Skipping one of the replies that are off anyway changes nothing.
        if *mode != ReplyMode::Off {
            *mode = ReplyMode::SkipNext;
        }
    } else {
        return Err(CmdError::Syntax);
    }
    Ok(())
}

/// The value of a switch.
fn on_or_off(args: &Args<'_>, index: usize) -> Result<bool, CmdError> {
    match (args.is(index, "ON"), args.is(index, "OFF")) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => Err(CmdError::Syntax),
    }
}

/// Keeps the connection open where clients are evicted for their memory.
pub static NO_EVICT: Command = Command {
    name: "CLIENT NO-EVICT",
    group: Group::Connection,
    syntax: "<ON | OFF>",
    summary: "Sets the client eviction mode of the connection.",
    complexity: "O(1)",
    since: "7.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::None,
    flags: Flags::ADMIN.or(Flags::NO_SCRIPT).or(Flags::LOADING).or(Flags::STALE),
    run: Run::Session(no_evict),
};

fn no_evict(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    cx.session.client.no_evict.store(on_or_off(args, 2)?, Ordering::Relaxed);
    reply.simple("OK");
    Ok(())
}

/// Keeps the connection's reads and writes from counting as accesses.
pub static NO_TOUCH: Command = Command {
    name: "CLIENT NO-TOUCH",
    group: Group::Connection,
    syntax: "<ON | OFF>",
    summary: "Controls whether commands sent by the client affect the LRU/LFU of accessed keys.",
    complexity: "O(1)",
    since: "7.2.0",
    arity: Arity::Exactly(3),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT.or(Flags::LOADING).or(Flags::STALE),
    run: Run::Session(no_touch),
};

fn no_touch(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let on = on_or_off(args, 2)?;
    cx.session.touches = !on;
    cx.session.client.no_touch.store(on, Ordering::Relaxed);
    reply.simple("OK");
    Ok(())
}

/// Says what the client is able to do. There is nobody to redirect it to: it is for who looks for such clients.
pub static CAPA: Command = Command {
    name: "CLIENT CAPA",
    group: Group::Connection,
    syntax: "capability [capability ...]",
    summary: "A client claims its capability.",
    complexity: "O(1)",
    since: "8.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT.or(Flags::LOADING).or(Flags::STALE).or(Flags::ALLOW_BUSY),
    run: Run::Session(capa),
};

fn capa(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    // What is not known is passed over, for clients that are ahead of the server.
    if (2..args.len()).any(|at| args.is(at, "REDIRECT")) {
        cx.session.client.follows_redirects.store(true, Ordering::Relaxed);
    }
    reply.simple("OK");
    Ok(())
}
