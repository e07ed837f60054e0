//! TYPE: what kind of value a key holds.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::ValueType;
use tenon_engine::wire::resp::Reply;

/// Names the type of a value.
pub static TYPE: Command = Command {
    name: "TYPE",
    group: Group::Generic,
    syntax: "key",
    summary: "Determines the type of value stored at a key.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::LOOK)]),
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(type_of),
};

fn type_of(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    reply.simple(cx.peek().map_or("none", |entry| ValueType::of(entry.value()).name()));
    Ok(Effect::Unchanged)
}
