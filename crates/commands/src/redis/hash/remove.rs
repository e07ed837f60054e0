//! HDEL: fields that go.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeyCx};
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::Hash;
use tenon_engine::wire::resp::Reply;

/// Takes fields out.
pub static HDEL: Command = Command {
    name: "HDEL",
    group: Group::Hash,
    syntax: "key field [field ...]",
    summary: "Deletes one or more fields and their values from a hash. Deletes the hash if no fields remain.",
    complexity: "O(N) where N is the number of fields to be removed.",
    since: "2.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::SHRINK)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(hdel),
};

fn hdel(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let outcome = cx.update_existing(|hash: &mut Hash| {
        let removed = args.from(2).filter(|field| hash.remove(field)).count();
        Ok(Change::when(removed > 0, "hdel", removed).times(removed))
    })?;
    let (removed, effect) = outcome.unwrap_or((0, Effect::Unchanged));
    reply.int(removed as i64);
    Ok(effect)
}
