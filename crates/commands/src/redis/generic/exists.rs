//! EXISTS and TOUCH: how many of the keys are there; only TOUCH is an access.

use tenon_engine::command::{Arity, Command, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeyCx;

/// Counts the keys that are there.
pub static EXISTS: Command = Command {
    name: "EXISTS",
    group: Group::Generic,
    syntax: "key [key ...]",
    summary: "Determines whether one or more keys exist.",
    complexity: "O(N) where N is the number of keys to check.",
    since: "1.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::Specs(&[KeySpec::rest(1, KeyFlags::LOOK)]),
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Each(exists),
};

/// Counts the keys that are there, each an access.
pub static TOUCH: Command = Command {
    name: "TOUCH",
    group: Group::Generic,
    syntax: "key [key ...]",
    summary: "Returns the number of existing keys out of those specified after updating the time they were last accessed.",
    complexity: "O(N) where N is the number of keys that will be touched.",
    since: "3.2.1",
    arity: Arity::AtLeast(2),
    keys: Keys::Specs(&[KeySpec::rest(1, KeyFlags::LOOK)]),
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Each(touch),
};

fn exists(cx: &mut KeyCx<'_>) -> bool {
    cx.peek().is_some()
}

fn touch(cx: &mut KeyCx<'_>) -> bool {
    // That is what it is for, also where CLIENT NO-TOUCH is on.
    cx.touch_always();
    cx.read().is_some()
}
