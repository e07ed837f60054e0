//! DUMP: a value in a form that RESTORE takes, here and in the original.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::persist::rdb;
use tenon_engine::wire::resp::Reply;

/// Gives a value as a payload.
pub static DUMP: Command = Command {
    name: "DUMP",
    group: Group::Generic,
    syntax: "key",
    summary: "Returns a serialized representation of the value stored at a key.",
    complexity: "O(1) to access the key and additional O(N*M) to serialize it, where N is the number of Redis objects composing the value and M their average size. For small string values the time complexity is thus O(1)+O(1*M) where M is small, so simply O(1).",
    since: "2.6.0",
    arity: Arity::Exactly(2),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::READ)]),
    flags: Flags::READONLY,
    run: Run::Key(dump),
};

fn dump(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let Some(slot) = cx.find_for_read() else {
        reply.null();
        return Ok(Effect::Unchanged);
    };
    let entry = cx.entry(slot);
    let (flags, is_long) = (entry.flags(), rdb::is_large(entry.value()));
    cx.answer_with_value(slot, is_long, reply, move |value, reply| {
        reply.bulk_shared(&rdb::dump(value, flags).into());
    });
    Ok(Effect::Unchanged)
}
