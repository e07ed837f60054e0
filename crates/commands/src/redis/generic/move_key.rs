//! MOVE: a key goes to another database, with its value and expiry.

use super::moved::put;
use crate::redis::database::parse_database;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::notify::EventClass;
use tenon_engine::wire::resp::Reply;

/// Moves a key to another database.
pub static MOVE: Command = Command {
    name: "MOVE",
    group: Group::Generic,
    syntax: "key db",
    summary: "Moves a key to another database.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::ONE,
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(move_key),
};

fn move_key(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let database = parse_database(cx.engine(), args.get(2))?;
    if database == cx.database() {
        return Err(CmdError::SameObject);
    }
    let found = cx.find_for_write();
    let Some(slot) = found.filter(|_| cx.in_database(database).find().is_none()) else {
        reply.int(0);
        return Ok(Effect::Unchanged);
    };
    cx.as_one_change(|cx| {
        let entry = cx.take(slot);
        put(&mut cx.in_database(database), entry);
    });
    // That the one is gone and the other there is one change.
    cx.count_changes(-1);
    cx.notify(EventClass::GENERIC, "move_from");
    cx.in_database(database).notify(EventClass::GENERIC, "move_to");
    reply.int(1);
    Ok(Effect::Verbatim)
}
