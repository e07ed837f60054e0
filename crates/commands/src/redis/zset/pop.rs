//! ZPOPMIN, ZPOPMAX and ZMPOP: taking off the members with the lowest or highest scores.

use super::scores::{Scores, reply_member, reply_members_header};
use crate::redis::reply_item::bulk_item;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeyCx, KeysCx};
use tenon_engine::ds::packed::Item;
use tenon_engine::errors::CmdError;
use tenon_engine::store::Slot;
use tenon_engine::store::types::zset::Direction;
use tenon_engine::store::types::{Collection, Zset};
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

const KEYS: Keys = Keys::Specs(&[KeySpec::at(1, KeyFlags::READ_AND_DELETE)]);

/// Takes off the members with the lowest scores.
pub static ZPOPMIN: Command = Command {
    name: "ZPOPMIN",
    group: Group::SortedSet,
    syntax: "key [count]",
    summary: "Returns the lowest-scoring members from a sorted set after removing them. Deletes the sorted set if the last member was popped.",
    complexity: "O(log(N)*M) with N being the number of elements in the sorted set, and M being the number of elements popped.",
    since: "5.0.0",
    arity: Arity::AtLeast(2),
    keys: KEYS,
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(zpopmin),
};

/// Takes off the members with the highest scores.
pub static ZPOPMAX: Command = Command {
    name: "ZPOPMAX",
    group: Group::SortedSet,
    syntax: "key [count]",
    summary: "Returns the highest-scoring members from a sorted set after removing them. Deletes the sorted set if the last member was popped.",
    complexity: "O(log(N)*M) with N being the number of elements in the sorted set, and M being the number of elements popped.",
    since: "5.0.0",
    arity: Arity::AtLeast(2),
    keys: KEYS,
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(zpopmax),
};

/// Takes members off the first sorted set that is there.
pub static ZMPOP: Command = Command {
    name: "ZMPOP",
    group: Group::SortedSet,
    syntax: "numkeys key [key ...] <MIN | MAX> [COUNT count]",
    summary: "Returns the highest- or lowest-scoring members from one or more sorted sets after removing them. Deletes the sorted set if the last member was popped.",
    complexity: "O(K) + O(M*log(N)) where K is the number of provided keys, N being the number of elements in the sorted set, and M being the number of elements popped.",
    since: "7.0.0",
    arity: Arity::AtLeast(4),
    keys: Keys::Specs(&[KeySpec::counted(1, KeyFlags::READ_AND_DELETE)]),
    flags: Flags::WRITE,
    run: Run::Keys(zmpop),
};

/// Which members are taken off: the first in this direction.
fn event_of(direction: Direction) -> &'static str {
    match direction {
        Direction::Ascending => "zpopmin",
        Direction::Descending => "zpopmax",
    }
}

fn zpopmin(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    pop(cx, args, Direction::Ascending, reply)
}

fn zpopmax(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    pop(cx, args, Direction::Descending, reply)
}

fn pop(cx: &mut KeyCx<'_>, args: &Args<'_>, direction: Direction, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let count = match args.len() {
        2 => None,
        3 => {
            let count = parse_i64(args.get(2)).and_then(|count| usize::try_from(count).ok());
            Some(count.ok_or(CmdError::MustBePositive)?)
        }
        _ => return Err(CmdError::Syntax),
    };
    let Some(slot) = cx.find_for_write() else {
        reply.array(0);
        return Ok(Effect::Unchanged);
    };
    let popped = count.unwrap_or(1).min(cx.collection::<Zset>(slot)?.len());
    match count {
        // One member and its score are an array of two, in RESP3 as well.
        None => {
            reply.array(2);
            take_off(cx, slot, popped, direction, |member, score| {
                bulk_item(reply, member);
                reply.double(score);
            })
        }
        Some(_) => {
            reply_members_header(reply, popped, Scores::With);
            take_off(cx, slot, popped, direction, |member, score| reply_member(reply, member, score, Scores::With))
        }
    }
}

/// Takes off `count` members of the sorted set in a slot, which are there, and hands them to `visit`.
pub(super) fn take_off(
    cx: &mut KeyCx<'_>,
    slot: Slot,
    count: usize,
    direction: Direction,
    mut visit: impl FnMut(Item<'_>, f64),
) -> Result<Effect, CmdError> {
    let event = event_of(direction);
    let zset = cx.collection::<Zset>(slot)?;
    if count == zset.len() {
        zset.for_each_in(0..count, direction, visit);
        return Ok(cx.take_collection::<Zset>(slot, event));
    }
    let outcome = cx.update_existing(|zset: &mut Zset| {
        let len = zset.view().len();
        let ranks = match direction {
            Direction::Ascending => 0..count,
            Direction::Descending => len - count..len,
        };
        zset.remove_ranks(ranks, direction, &mut visit);
        Ok(Change::when(count > 0, event, ()))
    })?;
    Ok(outcome.map_or(Effect::Unchanged, |((), effect)| effect))
}

/// What ZMPOP is asked for behind the number of keys.
pub(super) struct Multiple {
    /// The arguments that are keys end before this one.
    pub(super) keys_end: usize,
    pub(super) direction: Direction,
    pub(super) count: usize,
}

impl Multiple {
    /// Reads the arguments from the number of keys on, which is argument `at`.
    pub(super) fn parse(args: &Args<'_>, at: usize) -> Result<Multiple, CmdError> {
        let positive = |index: usize, error: &'static str| {
            let number = parse_i64(args.get(index)).filter(|&number| number > 0);
            number.and_then(|number| usize::try_from(number).ok()).ok_or(CmdError::text(error))
        };
        let keys = positive(at, "ERR numkeys should be greater than 0")?;
        let keys_end = (at + 1).checked_add(keys).filter(|&end| end < args.len()).ok_or(CmdError::Syntax)?;
        let direction = match () {
            () if args.is(keys_end, "MIN") => Direction::Ascending,
            () if args.is(keys_end, "MAX") => Direction::Descending,
            () => return Err(CmdError::Syntax),
        };
        let mut count = None;
        let mut at = keys_end + 1;
        while at < args.len() {
            if count.is_some() || !args.is(at, "COUNT") || at + 1 == args.len() {
                return Err(CmdError::Syntax);
            }
            count = Some(positive(at + 1, "ERR count should be greater than 0")?);
            at += 2;
        }
        Ok(Multiple { keys_end, direction, count: count.unwrap_or(1) })
    }
}

fn zmpop(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let wanted = Multiple::parse(args, 1)?;
    for index in 2..wanted.keys_end {
        let key = args.get(index);
        if let Some(effect) = pop_multiple(&mut cx.key(key), key, &wanted, reply)? {
            return Ok(effect);
        }
    }
    reply.null_array();
    Ok(Effect::Unchanged)
}

/// Takes members off one of the keys and replies with the key and them; without a sorted set it replies nothing.
pub(super) fn pop_multiple(
    cx: &mut KeyCx<'_>,
    key: &[u8],
    wanted: &Multiple,
    reply: &mut Reply<'_>,
) -> Result<Option<Effect>, CmdError> {
    let Some(slot) = cx.find_for_write() else { return Ok(None) };
    let count = wanted.count.min(cx.collection::<Zset>(slot)?.len());
    reply.array(2);
    reply.bulk(key);
    reply.array(count);
    let effect = take_off(cx, slot, count, wanted.direction, |member, score| {
        reply.array(2);
        bulk_item(reply, member);
        reply.double(score);
    })?;
    Ok(Some(effect))
}
