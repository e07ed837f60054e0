//! SHUTDOWN: ends the server. Knows not how; it asks whoever started it.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;

/// Ends the server.
pub static SHUTDOWN: Command = Command {
    name: "SHUTDOWN",
    group: Group::Server,
    syntax: "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
    summary: "Shuts the server down.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::AtLeast(1),
    keys: Keys::None,
    flags: Flags::ADMIN
        .or(Flags::NO_SCRIPT)
        .or(Flags::LOADING)
        .or(Flags::STALE)
        .or(Flags::NO_MULTI)
        .or(Flags::ALLOW_BUSY),
    run: Run::Session(shutdown),
};

#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    save: bool,
    no_save: bool,
    /// NOW skips waiting for replicas and FORCE ignores errors of saving: with neither replicas nor saving, both are
    /// fulfilled as they are.
    hurry: bool,
    abort: bool,
}

impl Options {
    fn parse(args: &Args<'_>) -> Result<Options, CmdError> {
        let mut options = Options::default();
        for word in args.from(1) {
            let flag = match word.to_ascii_lowercase().as_slice() {
                b"save" => &mut options.save,
                b"nosave" => &mut options.no_save,
                b"now" | b"force" => &mut options.hurry,
                b"abort" => &mut options.abort,
                _ => return Err(CmdError::Syntax),
            };
            *flag = true;
        }
        let others = options.save || options.no_save || options.hurry;
        if options.abort && others || options.save && options.no_save {
            return Err(CmdError::Syntax);
        }
        Ok(options)
    }
}

fn shutdown(cx: &mut SessionCx<'_>, args: &Args<'_>, _reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let options = Options::parse(args)?;
    if options.abort {
        // A shutdown waits for nothing that could be called off.
        return Err(CmdError::text("ERR No shutdown in progress."));
    }
    if options.save {
        return Err(CmdError::text(
            "ERR SHUTDOWN SAVE is not possible: the data is in memory alone. Use SHUTDOWN NOSAVE.",
        ));
    }
    if !options.no_save
        && let Some(kind) = cx.engine.scripts.running.busy()
    {
        // A busy script may have written half of what belongs together.
        return Err(CmdError::Busy(kind));
    }
    if !cx.engine.shut_down() {
        return Err(CmdError::text("ERR Errors trying to SHUTDOWN. Check logs."));
    }
    // As in Redis there is no reply: the connection ends.
    cx.session.closing = true;
    Ok(())
}
