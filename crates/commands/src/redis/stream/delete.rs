//! XDEL, XDELEX and XACKDEL: single entries go.

use super::id::parse_ids;
use super::references::DeletionArgs;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeyCx};
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::Stream;
use tenon_engine::store::types::stream::{Deletion, References};
use tenon_engine::wire::resp::Reply;

const KEYS: Keys = Keys::Specs(&[KeySpec::at(1, KeyFlags::SHRINK)]);

/// Deletes entries.
pub static XDEL: Command = Command {
    name: "XDEL",
    group: Group::Stream,
    syntax: "key id [id ...]",
    summary: "Returns the number of messages after removing them from a stream.",
    complexity: "O(1) for each single item to delete in the stream, regardless of the stream size.",
    since: "5.0.0",
    arity: Arity::AtLeast(3),
    keys: KEYS,
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(xdel),
};

/// Deletes entries, and says what becomes of those that consumer groups still know.
pub static XDELEX: Command = Command {
    name: "XDELEX",
    group: Group::Stream,
    syntax: "key [KEEPREF | DELREF | ACKED] IDS numids id [id ...]",
    summary: "Deletes one or multiple entries from the stream.",
    complexity: "O(1) for each single item to delete in the stream, regardless of the stream size.",
    since: "8.2.0",
    arity: Arity::AtLeast(5),
    keys: KEYS,
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(xdelex),
};

/// Acknowledges entries and deletes them.
pub static XACKDEL: Command = Command {
    name: "XACKDEL",
    group: Group::Stream,
    syntax: "key group [KEEPREF | DELREF | ACKED] IDS numids id [id ...]",
    summary: "Acknowledges and deletes one or multiple messages for a stream consumer group.",
    complexity: "O(1) for each message ID processed.",
    since: "8.2.0",
    arity: Arity::AtLeast(6),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE.or(KeyFlags::DELETE))]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(xackdel),
};

fn xdel(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let outcome = cx.update_existing(|stream: &mut Stream| {
        let ids = parse_ids(args, 2..args.len())?;
        let deleted = ids.into_iter().filter(|&id| stream.delete(id, References::Keep) == Deletion::Deleted).count();
        Ok(Change::when(deleted > 0, "xdel", deleted).times(deleted))
    })?;
    let (deleted, effect) = outcome.unwrap_or((0, Effect::Unchanged));
    reply.int(deleted as i64);
    Ok(effect)
}

/// What XDELEX and XACKDEL reply for an entry.
fn code(deletion: Deletion) -> i64 {
    match deletion {
        Deletion::Missing | Deletion::Forgotten => -1,
        Deletion::Deleted => 1,
        Deletion::Needed => 2,
    }
}

fn xdelex(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let asked = parse_for_stream(cx, args, 2)?;
    // Where there is nothing to delete from, the ids may be anything.
    let outcome = cx.update_existing(|stream: &mut Stream| {
        let ids = asked.ids(args)?;
        let deletions: Vec<_> = ids.into_iter().map(|id| stream.delete(id, asked.references)).collect();
        let any = |what| deletions.contains(&what);
        Ok(change_of(any(Deletion::Deleted), any(Deletion::Forgotten), deletions))
    })?;
    Ok(reply_deletions(outcome, asked.len(), reply))
}

fn xackdel(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let group = args.get(2);
    let asked = parse_for_stream(cx, args, 3)?;
    let outcome = cx.update_read(|stream: &mut Stream| {
        if stream.group(group).is_none() {
            return Ok(Change::nothing(vec![Deletion::Missing; asked.len()]));
        }
        let ids = asked.ids(args)?;
        let (mut any_acknowledged, mut any_deleted) = (false, false);
        let acknowledge_and_delete = |id| {
            if !stream.group_mut(group).is_some_and(|group| group.acknowledge(id)) {
                return Deletion::Missing;
            }
            any_acknowledged = true;
            let deletion = stream.delete(id, asked.references);
            any_deleted |= deletion == Deletion::Deleted;
            // It was acknowledged, and is not there: as if it had been deleted now.
            if matches!(deletion, Deletion::Missing | Deletion::Forgotten) { Deletion::Deleted } else { deletion }
        };
        let deletions: Vec<_> = ids.into_iter().map(acknowledge_and_delete).collect();
        Ok(change_of(any_deleted, any_acknowledged, deletions))
    })?;
    Ok(reply_deletions(outcome, asked.len(), reply))
}

/// Reads the arguments from `first` on; what another type holds goes before what is wrong with them.
fn parse_for_stream(cx: &mut KeyCx<'_>, args: &Args<'_>, first: usize) -> Result<DeletionArgs, CmdError> {
    if let Some(slot) = cx.find() {
        cx.collection::<Stream>(slot)?;
    }
    DeletionArgs::parse(args, first)
}

/// What it comes to that entries were deleted, or groups know less of some.
fn change_of<R>(any_deleted: bool, any_forgotten: bool, result: R) -> Change<R> {
    match (any_deleted, any_forgotten) {
        (true, _) => Change::made("xdel", result),
        (false, true) => Change::aside(None, result),
        (false, false) => Change::nothing(result),
    }
}

/// Writes what became of entries; without a stream there was none.
fn reply_deletions(outcome: Option<(Vec<Deletion>, Effect)>, count: usize, reply: &mut Reply<'_>) -> Effect {
    let (deletions, effect) = outcome.unwrap_or_else(|| (vec![Deletion::Missing; count], Effect::Unchanged));
    reply.array(count);
    deletions.into_iter().for_each(|deletion| reply.int(code(deletion)));
    effect
}
