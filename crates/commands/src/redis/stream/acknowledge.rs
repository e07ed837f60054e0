//! XACK: entries are done with.

use super::id::parse_ids;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeyCx};
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::Stream;
use tenon_engine::wire::resp::Reply;

/// Acknowledges entries that consumers of a group were given.
pub static XACK: Command = Command {
    name: "XACK",
    group: Group::Stream,
    syntax: "key group id [id ...]",
    summary: "Returns the number of messages that were successfully acknowledged by the consumer group member of a stream.",
    complexity: "O(1) for each message ID processed.",
    since: "5.0.0",
    arity: Arity::AtLeast(4),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(xack),
};

fn xack(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let outcome = cx.update_read(|stream: &mut Stream| {
        let Some(group) = stream.group_mut(args.get(2)) else { return Ok(Change::nothing(0)) };
        let ids = parse_ids(args, 3..args.len())?;
        let count = ids.into_iter().filter(|&id| group.acknowledge(id)).count();
        Ok(if count > 0 { Change::aside(None, count).times(count) } else { Change::nothing(count) })
    })?;
    let (count, effect) = outcome.unwrap_or((0, Effect::Unchanged));
    reply.int(count as i64);
    Ok(effect)
}
