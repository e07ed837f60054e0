//! DEL and UNLINK: take keys away. A value that is long to free is freed after the locks in both.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeysCx;
use tenon_engine::errors::CmdError;
use tenon_engine::notify::EventClass;
use tenon_engine::wire::resp::Reply;

/// Deletes keys.
pub static DEL: Command = Command {
    name: "DEL",
    group: Group::Generic,
    syntax: "key [key ...]",
    summary: "Deletes one or more keys.",
    complexity: "O(N) where N is the number of keys that will be removed.",
    since: "1.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::Specs(&[KeySpec::rest(1, KeyFlags::REMOVE)]),
    flags: Flags::WRITE.or(Flags::BRIEF),
    run: Run::Keys(delete),
};

/// Deletes keys and frees them later.
pub static UNLINK: Command = Command {
    name: "UNLINK",
    group: Group::Generic,
    syntax: "key [key ...]",
    summary: "Asynchronously deletes one or more keys.",
    complexity: "O(1) for each key removed regardless of its size.",
    since: "4.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::Specs(&[KeySpec::rest(1, KeyFlags::REMOVE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Keys(delete),
};

fn delete(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let mut deleted = 0;
    for key in args.from(1) {
        let mut cx = cx.key(key);
        if cx.delete() {
            cx.notify(EventClass::GENERIC, "del");
            deleted += 1;
        }
    }
    reply.int(deleted);
    Ok(Effect::when(deleted > 0))
}
