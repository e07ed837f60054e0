//! DEL and UNLINK: take keys away. A value that is long to free is freed after the locks in both.

use tenon_engine::command::{Arity, Command, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::notify::EventClass;

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
    run: Run::Each(delete),
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
    run: Run::Each(delete),
};

fn delete(cx: &mut KeyCx<'_>) -> bool {
    let is_deleted = cx.delete();
    if is_deleted {
        cx.notify(EventClass::GENERIC, "del");
    }
    is_deleted
}
