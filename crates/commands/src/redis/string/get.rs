//! GET: reads a string.

use super::value::reply_string;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;

/// Reads a string.
pub static GET: Command = Command {
    name: "GET",
    group: Group::String,
    syntax: "key",
    summary: "Returns the string value of a key.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(get),
};

fn get(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    match cx.read_string()? {
        Some(value) => reply_string(value, reply),
        None => reply.null(),
    }
    Ok(Effect::Unchanged)
}
