//! CLIENT PAUSE, UNPAUSE and UNBLOCK: making clients wait, and ending their wait.

use crate::redis::help::wrong_form;
use tenon_engine::args::Args;
use tenon_engine::blocking::Unblocking;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::pause::PauseMode;
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

const FLAGS: Flags = Flags::ADMIN.or(Flags::NO_SCRIPT).or(Flags::LOADING).or(Flags::STALE);

/// Lets clients' commands wait for some time.
pub static PAUSE: Command = Command {
    name: "CLIENT PAUSE",
    group: Group::Connection,
    syntax: "timeout [WRITE | ALL]",
    summary: "Suspends commands processing.",
    complexity: "O(1)",
    since: "3.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(pause),
};

fn pause(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    if args.len() > 4 {
        return Err(wrong_form(args));
    }
    let mode = match args.len() {
        3 => PauseMode::All,
        _ if args.is(3, "ALL") => PauseMode::All,
        _ if args.is(3, "WRITE") => PauseMode::Write,
        _ => return Err(CmdError::text("ERR CLIENT PAUSE mode must be WRITE or ALL")),
    };
    let timeout_ms = length_of_pause(args.get(2), cx.worker.clock.now_ms)?;
    cx.engine.pause_clients(cx.session, timeout_ms, mode);
    reply.simple("OK");
    Ok(())
}

/// How long a pause is, in milliseconds.
fn length_of_pause(timeout_ms: &[u8], now_ms: u64) -> Result<u64, CmdError> {
    let timeout = parse_i64(timeout_ms).ok_or(CmdError::text("ERR timeout is not an integer or out of range"))?;
    let timeout = u64::try_from(timeout).map_err(|_| CmdError::text("ERR timeout is negative"))?;
    let end = now_ms.checked_add(timeout).filter(|end| i64::try_from(*end).is_ok());
    end.map(|_| timeout).ok_or(CmdError::text("ERR timeout is out of range"))
}

/// Ends a pause.
pub static UNPAUSE: Command = Command {
    name: "CLIENT UNPAUSE",
    group: Group::Connection,
    syntax: "",
    summary: "Resumes processing commands from paused clients.",
    complexity: "O(N) Where N is the number of paused clients",
    since: "6.2.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(unpause),
};

fn unpause(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    cx.engine.end_pause();
    reply.simple("OK");
    Ok(())
}

/// Ends another client's blocking command.
pub static UNBLOCK: Command = Command {
    name: "CLIENT UNBLOCK",
    group: Group::Connection,
    syntax: "client-id [TIMEOUT | ERROR]",
    summary: "Unblocks a client blocked by a blocking command from a different connection.",
    complexity: "O(log N) where N is the number of client connections",
    since: "5.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(unblock),
};

fn unblock(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let how = match args.len() {
        3 => Unblocking::AsTimeout,
        4 if args.is(3, "TIMEOUT") => Unblocking::AsTimeout,
        4 if args.is(3, "ERROR") => Unblocking::WithError,
        4 => return Err(CmdError::text("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
        _ => return Err(wrong_form(args)),
    };
    let id = parse_i64(args.get(2)).ok_or(CmdError::NotInteger)?;
    // Who waits for the end of a pause is not unblocked, in Redis neither.
    let client = u64::try_from(id).ok().and_then(|id| cx.engine.clients.get(id));
    let unblocked = client.is_some_and(|client| cx.engine.unblock(cx.worker, &client, how));
    reply.int(unblocked.into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_end_within_the_reach_of_i64() {
        assert_eq!(length_of_pause(b"0", 1_000), Ok(0));
        assert_eq!(length_of_pause(b"250", 1_000), Ok(250));
        for (timeout, text) in [
            ("9223372036854775807", "ERR timeout is out of range"),
            ("9223372036854775808", "ERR timeout is not an integer or out of range"),
            ("-1", "ERR timeout is negative"),
            ("1.5", "ERR timeout is not an integer or out of range"),
            ("", "ERR timeout is not an integer or out of range"),
        ] {
            assert_eq!(length_of_pause(timeout.as_bytes(), 1_000), Err(CmdError::text(text)), "{timeout}");
        }
    }
}
