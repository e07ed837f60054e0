//! FCALL and FCALL_RO: functions of libraries.

use super::eval::{FLAGS, KEYS, KEYS_RO};
use tenon_engine::command::{Arity, Command, Flags, Group, Run};
use tenon_engine::scripting::Access;

/// Calls a function.
pub static FCALL: Command = Command {
    name: "FCALL",
    group: Group::Scripting,
    syntax: "function numkeys [key [key ...]] [arg [arg ...]]",
    summary: "Invokes a function.",
    complexity: "Depends on the function that is executed.",
    since: "7.0.0",
    arity: Arity::AtLeast(3),
    keys: KEYS,
    flags: FLAGS.or(Flags::MAY_REPLICATE),
    run: Run::Server(|cx, args, reply| cx.engine.fcall(cx, args, Access::ReadWrite, reply)),
};

/// Calls a function that does not write.
pub static FCALL_RO: Command = Command {
    name: "FCALL_RO",
    group: Group::Scripting,
    syntax: "function numkeys [key [key ...]] [arg [arg ...]]",
    summary: "Invokes a read-only function.",
    complexity: "Depends on the function that is executed.",
    since: "7.0.0",
    arity: Arity::AtLeast(3),
    keys: KEYS_RO,
    flags: FLAGS.or(Flags::READONLY),
    run: Run::Server(|cx, args, reply| cx.engine.fcall(cx, args, Access::ReadOnly, reply)),
};
