//! SHUTDOWN: ends the server. Knows not how; it asks whoever started it.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::saving::{Ending, OnFailure};
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
    /// Skips waiting for replicas: without any, it is fulfilled as it is.
    now: bool,
    /// Ends the server also when the data cannot be saved.
    force: bool,
    abort: bool,
}

impl Options {
    fn parse(args: &Args<'_>) -> Result<Options, CmdError> {
        let mut options = Options::default();
        for word in args.from(1) {
            let flag = match word.to_ascii_lowercase().as_slice() {
                b"save" => &mut options.save,
                b"nosave" => &mut options.no_save,
                b"now" => &mut options.now,
                b"force" => &mut options.force,
                b"abort" => &mut options.abort,
                _ => return Err(CmdError::Syntax),
            };
            *flag = true;
        }
        let others = options.save || options.no_save || options.now || options.force;
        if options.abort && others || options.save && options.no_save {
            return Err(CmdError::Syntax);
        }
        Ok(options)
    }
}

fn shutdown(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let options = Options::parse(args)?;
    if options.abort {
        if !cx.engine.call_off_end() {
            return Err(CmdError::text("ERR No shutdown in progress."));
        }
        reply.simple("OK");
        return Ok(());
    }
    if !options.no_save
        && let Some(kind) = cx.engine.scripts.running.busy()
    {
        // A busy script may have written half of what belongs together.
        return Err(CmdError::Busy(kind));
    }
    let ending = match (options.save, options.no_save) {
        (true, _) => Ending::Save,
        (_, true) => Ending::NoSave,
        (false, false) => Ending::AsConfigured,
    };
    // As in Redis there is no reply: the connection ends.
    cx.engine.shut_down_for(cx, ending, if options.force { OnFailure::EndAnyway } else { OnFailure::GoOn }, reply)
}
