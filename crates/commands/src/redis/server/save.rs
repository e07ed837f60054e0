//! SAVE, BGSAVE and LASTSAVE: the data in a file. Knows neither file nor thread.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::saving::{CalledOff, NotBegun, Refusal};
use tenon_engine::wire::resp::Reply;

/// Saves while the client waits. Other clients go on: the file holds the data as it was when the command came.
pub static SAVE: Command = Command {
    name: "SAVE",
    group: Group::Server,
    syntax: "",
    summary: "Synchronously saves the database(s) to disk.",
    complexity: "O(N) where N is the total number of keys in all databases",
    since: "1.0.0",
    arity: Arity::Exactly(1),
    keys: Keys::None,
    flags: Flags::ADMIN.or(Flags::NO_SCRIPT).or(Flags::NO_ASYNC_LOADING).or(Flags::NO_MULTI),
    run: Run::Session(save),
};

fn save(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    cx.engine.save(cx, reply)
}

/// Saves in the background.
pub static BGSAVE: Command = Command {
    name: "BGSAVE",
    group: Group::Server,
    syntax: "[SCHEDULE | CANCEL]",
    summary: "Asynchronously saves the database(s) to disk.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::AtLeast(1),
    keys: Keys::None,
    flags: Flags::ADMIN.or(Flags::NO_SCRIPT).or(Flags::NO_ASYNC_LOADING),
    run: Run::Session(bgsave),
};

fn bgsave(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let is_patient = match args.len() {
        1 => false,
        2 if args.is(1, "SCHEDULE") => true,
        2 if args.is(1, "CANCEL") => return cancel(cx, reply),
        _ => return Err(CmdError::Syntax),
    };
    // EXEC holds shards: the moment has to wait.
    let refusal = if cx.session.is_in_exec() {
        Err(NotBegun::Refused(if cx.engine.saving.is_running() { Refusal::Saving } else { Refusal::OtherSnapshot }))
    } else {
        cx.engine.save_in_background(cx.worker)
    };
    match refusal {
        Ok(()) => reply.simple("Background saving started"),
        Err(NotBegun::Refused(Refusal::Saving)) => {
            return Err(CmdError::text("ERR Background save already in progress"));
        }
        Err(NotBegun::Refused(Refusal::OtherSnapshot)) if is_patient || cx.session.is_in_exec() => {
            cx.engine.schedule_save();
            reply.simple("Background saving scheduled");
        }
        // Redis says no more where it cannot fork, and logs why.
        Err(NotBegun::NoThread) => return Err(CmdError::text("ERR")),
        Err(NotBegun::Refused(Refusal::OtherSnapshot)) => {
            return Err(CmdError::text(
                "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to \
                 schedule a BGSAVE whenever possible.",
            ));
        }
    }
    Ok(())
}

/// Calls off the save in the background, or else the one that is to begin.
fn cancel(cx: &mut SessionCx<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply.simple(match cx.engine.saving.call_off_background() {
        Some(CalledOff::Running) => "Background saving cancelled",
        Some(CalledOff::Scheduled) => "Scheduled background saving cancelled",
        None => return Err(CmdError::text("ERR Background saving is currently not in progress or scheduled")),
    });
    Ok(())
}

/// Says when the data was last on disk; before the first time, when the server started.
pub static LASTSAVE: Command = Command {
    name: "LASTSAVE",
    group: Group::Server,
    syntax: "",
    summary: "Returns the Unix timestamp of the last successful save to disk.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(1),
    keys: Keys::None,
    flags: Flags::LOADING.or(Flags::STALE).or(Flags::FAST).or(Flags::IN_ADMIN),
    run: Run::Session(lastsave),
};

fn lastsave(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply.int(cx.engine.saving.saved_s() as i64);
    Ok(())
}
