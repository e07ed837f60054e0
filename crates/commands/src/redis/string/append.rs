//! APPEND: a string grows at its end.

use super::value::check_length;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Deadline, KeyCx};
use tenon_engine::errors::CmdError;
use tenon_engine::notify::EventClass;
use tenon_engine::string::{self, Text};
use tenon_engine::wire::resp::Reply;

/// Adds to a string's end.
pub static APPEND: Command = Command {
    name: "APPEND",
    group: Group::String,
    syntax: "key value",
    summary: "Appends a string to the value of a key. Creates the key if it doesn't exist.",
    complexity: "O(1). The amortized time complexity is O(1) assuming the appended value is small and the already \
                 present value is of any size, since the dynamic string library used by Redis will double the free \
                 space available on every reallocation.",
    since: "2.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::ADD)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::FAST),
    run: Run::Key(append),
};

fn append(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let more = args.len_of(2);
    let mut len = more;
    match cx.find_for_write() {
        Some(slot) => {
            let before = string::len(cx.string(slot)?);
            check_length(cx, before, more)?;
            cx.append(slot, Text::of_arg(args, 2));
            len += before;
        }
        None => cx.store(None, Text::of_arg(args, 2).into_value(), Deadline::Clear, 0, None),
    }
    cx.notify(EventClass::STRING, "append");
    reply.int(len as i64);
    Ok(Effect::Verbatim)
}
