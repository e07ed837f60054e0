//! XNACK: entries are given back, for others to have at once.

use super::claim::no_key_or_group;
use super::id::parse_ids;
use std::ops::Range;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeyCx};
use tenon_engine::errors::{CmdError, shown};
use tenon_engine::store::types::Stream;
use tenon_engine::store::types::stream::{NotPending, Recount};
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

const WRONG_MODE: CmdError = CmdError::text("ERR mode must be SILENT, FAIL, or FATAL");
const NUMIDS_NOT_POSITIVE: CmdError = CmdError::text("ERR numids must be a positive integer");
const TOO_FEW_IDS: CmdError = CmdError::text("ERR number of IDs doesn't match numids");
const NEGATIVE_COUNT: CmdError = CmdError::text("ERR Invalid RETRYCOUNT value, must be >= 0");
const NO_IDS: CmdError = CmdError::text("ERR syntax error, expected IDS keyword");

/// Gives back entries that consumers of a group were given.
pub static XNACK: Command = Command {
    name: "XNACK",
    group: Group::Stream,
    syntax: "key group <SILENT | FAIL | FATAL> IDS numids id [id ...] [RETRYCOUNT count] [FORCE]",
    summary: "Releases pending messages back to the group's PEL without acknowledging them, making them available for re-delivery.",
    complexity: "O(1) for each message ID processed.",
    since: "8.8.0",
    arity: Arity::AtLeast(7),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(xnack),
};

/// What XNACK is asked for beside key and group.
struct Asked {
    recount: Recount,
    not_pending: NotPending,
    /// Which arguments are the ids.
    ids: Range<usize>,
}

impl Asked {
    fn parse(args: &Args<'_>) -> Result<Asked, CmdError> {
        let modes = [("SILENT", Recount::Undone), ("FAIL", Recount::Kept), ("FATAL", Recount::Most)];
        let (_, recount) = modes.into_iter().find(|(word, _)| args.is(3, word)).ok_or(WRONG_MODE)?;
        let mut asked = Asked { recount, not_pending: NotPending::PassedOver, ids: 0..0 };
        let mut at = 4;
        while at < args.len() {
            let has_value = at + 1 < args.len();
            if has_value && args.is(at, "IDS") {
                let count = parse_i64(args.get(at + 1)).and_then(|count| i32::try_from(count).ok());
                let count = count.filter(|&count| count > 0).ok_or(NUMIDS_NOT_POSITIVE)?;
                asked.ids = at + 2..at + 2 + count as usize;
                if asked.ids.end > args.len() {
                    return Err(TOO_FEW_IDS);
                }
                at = asked.ids.end;
            } else if args.is(at, "FORCE") {
                asked.not_pending = NotPending::Made;
                at += 1;
            } else if has_value && args.is(at, "RETRYCOUNT") {
                let count = parse_i64(args.get(at + 1)).ok_or(CmdError::NotInteger)?;
                asked.recount = Recount::Set(u64::try_from(count).map_err(|_| NEGATIVE_COUNT)?);
                at += 2;
            } else {
                let option = shown(args.get(at));
                return Err(CmdError::new(format!("ERR Unrecognized XNACK option '{option}'")));
            }
        }
        if asked.ids.is_empty() { Err(NO_IDS) } else { Ok(asked) }
    }
}

fn xnack(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let group = args.get(2);
    let outcome = cx.update_existing(|stream: &mut Stream| {
        if stream.group(group).is_none() {
            return Err(no_key_or_group(args.get(1), group));
        }
        let asked = Asked::parse(args)?;
        let ids = parse_ids(args, asked.ids)?;
        let released = ids.into_iter().filter(|&id| stream.release(group, id, asked.recount, asked.not_pending));
        Ok(match released.count() {
            0 => Change::nothing(0),
            // Whoever waits to claim entries may have them now.
            count => Change::awaited(None, count).times(count),
        })
    })?;
    let (count, effect) = outcome.ok_or_else(|| no_key_or_group(args.get(1), group))?;
    reply.int(count as i64);
    Ok(effect)
}
