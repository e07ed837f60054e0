//! XSETID: what a stream counts, set from outside.

use super::id::parse_id;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeyCx};
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::Stream;
use tenon_engine::store::types::stream::StreamId;
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

const NEGATIVE: CmdError = CmdError::text("ERR entries_added must be positive");
const BELOW_GIVEN: CmdError =
    CmdError::text("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id");
const BELOW_DELETED: CmdError =
    CmdError::text("ERR The ID specified in XSETID is smaller than current max_deleted_entry_id");
const BELOW_LAST: CmdError =
    CmdError::text("ERR The ID specified in XSETID is smaller than the target stream top item");
const BELOW_LEN: CmdError =
    CmdError::text("ERR The entries_added specified in XSETID is smaller than the target stream length");

/// Sets the last id of a stream.
pub static XSETID: Command = Command {
    name: "XSETID",
    group: Group::Stream,
    syntax: "key last-id [ENTRIESADDED entries-added] [MAXDELETEDID max-deleted-id]",
    summary: "An internal command for replicating stream values.",
    complexity: "O(1)",
    since: "5.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::FAST),
    run: Run::Key(xsetid),
};

fn xsetid(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let last_id = parse_id(args.get(2), 0)?;
    let (mut entries_added, mut max_deleted_id) = (None, StreamId::MIN);
    for at in (3..args.len()).step_by(2) {
        let value = args.try_get(at + 1).ok_or(CmdError::Syntax)?;
        match () {
            () if args.is(at, "ENTRIESADDED") => {
                let count = parse_i64(value).ok_or(CmdError::NotInteger)?;
                entries_added = Some(u64::try_from(count).map_err(|_| NEGATIVE)?);
            }
            () if args.is(at, "MAXDELETEDID") => {
                max_deleted_id = parse_id(value, 0)?;
                if last_id < max_deleted_id {
                    return Err(BELOW_GIVEN);
                }
            }
            () => return Err(CmdError::Syntax),
        }
    }
    let outcome = cx.update_existing(|stream: &mut Stream| {
        let mut state = stream.state();
        if last_id < state.max_deleted_id {
            return Err(BELOW_DELETED);
        }
        if let Some(last) = stream.last() {
            if last_id < last.id() {
                return Err(BELOW_LAST);
            }
            if entries_added.is_some_and(|count| count < stream.len()) {
                return Err(BELOW_LEN);
            }
        }
        state.last_id = last_id;
        state.entries_added = entries_added.unwrap_or(state.entries_added);
        if max_deleted_id != StreamId::MIN {
            state.max_deleted_id = max_deleted_id;
        }
        stream.set_state(state);
        Ok(Change::aside(Some("xsetid"), ()))
    })?;
    let ((), effect) = outcome.ok_or(CmdError::NoSuchKey)?;
    reply.ok();
    Ok(effect)
}
