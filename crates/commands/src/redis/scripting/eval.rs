//! EVAL and its kin: scripts that come with their text or are named by its SHA1.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Begin, Command, Find, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::ServerCx;
use tenon_engine::errors::CmdError;
use tenon_engine::scripting::{Access, By};
use tenon_engine::wire::resp::Reply;

const ROW: KeySpec = KeySpec {
    notes: "We cannot tell how the keys will be used so we assume the worst, RW and UPDATE",
    flags: KeyFlags::READ_AND_CHANGE,
    begin: Begin::Index(2),
    find: Find::Count { count: 0, first: 1, step: 1 },
};
const ROW_RO: KeySpec = KeySpec {
    notes: "We cannot tell how the keys will be used so we assume the worst, RO and ACCESS",
    flags: KeyFlags::READ,
    ..ROW
};

/// The keys of what may write: behind their number, argument 2.
pub(super) const KEYS: Keys = Keys::Specs(&[ROW]);
/// The keys of what only reads.
pub(super) const KEYS_RO: Keys = Keys::Specs(&[ROW_RO]);
/// The same without a note, as EVALSHA's have none.
const KEYS_UNSAID: Keys = Keys::Specs(&[KeySpec { notes: "", ..ROW }]);
const KEYS_RO_UNSAID: Keys = Keys::Specs(&[KeySpec { notes: "", ..ROW_RO }]);

/// What all of them have in common.
pub(super) const FLAGS: Flags = Flags::NO_SCRIPT.or(Flags::STALE).or(Flags::SKIP_MONITOR).or(Flags::NO_MANDATORY_KEYS);

/// Runs a script.
pub static EVAL: Command = Command {
    name: "EVAL",
    group: Group::Scripting,
    syntax: "script numkeys [key [key ...]] [arg [arg ...]]",
    summary: "Executes a server-side Lua script.",
    complexity: "Depends on the script that is executed.",
    since: "2.6.0",
    arity: Arity::AtLeast(3),
    keys: KEYS,
    flags: FLAGS.or(Flags::MAY_REPLICATE),
    run: Run::Server(|cx, args, reply| run(cx, args, By::Source, Access::ReadWrite, reply)),
};

/// Runs a script that does not write.
pub static EVAL_RO: Command = Command {
    name: "EVAL_RO",
    group: Group::Scripting,
    syntax: "script numkeys [key [key ...]] [arg [arg ...]]",
    summary: "Executes a read-only server-side Lua script.",
    complexity: "Depends on the script that is executed.",
    since: "7.0.0",
    arity: Arity::AtLeast(3),
    keys: KEYS_RO,
    flags: FLAGS.or(Flags::READONLY),
    run: Run::Server(|cx, args, reply| run(cx, args, By::Source, Access::ReadOnly, reply)),
};

/// Runs a script that the server knows.
pub static EVALSHA: Command = Command {
    name: "EVALSHA",
    group: Group::Scripting,
    syntax: "sha1 numkeys [key [key ...]] [arg [arg ...]]",
    summary: "Executes a server-side Lua script by SHA1 digest.",
    complexity: "Depends on the script that is executed.",
    since: "2.6.0",
    arity: Arity::AtLeast(3),
    keys: KEYS_UNSAID,
    flags: FLAGS.or(Flags::MAY_REPLICATE),
    run: Run::Server(|cx, args, reply| run(cx, args, By::Sha, Access::ReadWrite, reply)),
};

/// Runs a script that the server knows and that does not write.
pub static EVALSHA_RO: Command = Command {
    name: "EVALSHA_RO",
    group: Group::Scripting,
    syntax: "sha1 numkeys [key [key ...]] [arg [arg ...]]",
    summary: "Executes a read-only server-side Lua script by SHA1 digest.",
    complexity: "Depends on the script that is executed.",
    since: "7.0.0",
    arity: Arity::AtLeast(3),
    keys: KEYS_RO_UNSAID,
    flags: FLAGS.or(Flags::READONLY),
    run: Run::Server(|cx, args, reply| run(cx, args, By::Sha, Access::ReadOnly, reply)),
};

fn run(cx: &mut ServerCx<'_>, args: &Args<'_>, by: By, access: Access, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    cx.engine.eval(cx, args, by, access, reply)
}
