//! ZPOPMIN, ZPOPMAX and ZMPOP: taking off the members with the lowest or highest scores.

use super::scores::{Scores, reply_member, reply_members_header};
use crate::redis::pop_args::PopArgs;
use crate::redis::reply_item::bulk_item;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeyCx, KeysCx};
use tenon_engine::ds::packed::Item;
use tenon_engine::errors::CmdError;
use tenon_engine::store::Slot;
use tenon_engine::store::types::zset::Direction;
use tenon_engine::store::types::{Collection, ValueType, Zset};
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

/// The event of members that are taken off the end where this direction begins.
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
        let effect = cx.take_collection::<Zset>(slot, event);
        cx.count_changes(count as i64 - 1);
        return Ok(effect);
    }
    let (kept_in, effect) = cx.update_in(slot, |zset: &mut Zset| {
        let len = zset.view().len();
        let ranks = match direction {
            Direction::Ascending => 0..count,
            Direction::Descending => len - count..len,
        };
        let kept_in = zset.remove_ranks(ranks, direction, &mut visit);
        Ok(Change::when(count > 0, event, kept_in).times(count))
    })?;
    let allocations = kept_in.len();
    cx.worker().discard_part(kept_in, allocations);
    Ok(effect)
}

/// Puts down that so many members, or one, were taken off the sorted set.
pub(super) fn log_pop(cx: &mut KeyCx<'_>, direction: Direction, count: Option<usize>) -> Effect {
    let key = cx.key;
    let name = match direction {
        Direction::Ascending => "ZPOPMIN",
        Direction::Descending => "ZPOPMAX",
    };
    match count {
        None => cx.log(&[name.into(), key.into()]),
        Some(count) => cx.log(&[name.into(), key.into(), (count as u64).into()]),
    }
}

/// What ZMPOP and BZMPOP are asked for.
pub(super) type Multiple = PopArgs<Direction>;

impl Multiple {
    /// Reads the arguments from the number of keys on, which is argument `at`.
    pub(super) fn of(args: &Args<'_>, at: usize) -> Result<Multiple, CmdError> {
        PopArgs::parse(args, at, |args, index| match () {
            () if args.is(index, "MIN") => Ok(Direction::Ascending),
            () if args.is(index, "MAX") => Ok(Direction::Descending),
            () => Err(CmdError::Syntax),
        })
    }

    /// Takes members off the first sorted set that is there and replies with its key and them; without one it replies
    /// nothing.
    pub(super) fn pop(
        &self,
        cx: &mut KeysCx<'_>,
        args: &Args<'_>,
        first_key: usize,
        reply: &mut Reply<'_>,
    ) -> Result<Option<Effect>, CmdError> {
        for key in (first_key..self.keys_end).map(|index| args.get(index)) {
            if !cx.may_take(key, ValueType::Zset)? {
                continue;
            }
            let mut cx = cx.key(key);
            let Some(slot) = cx.find_for_write() else { continue };
            let count = self.count.min(cx.collection::<Zset>(slot)?.len());
            reply.array(2);
            reply.bulk(key);
            reply.array(count);
            let _taken = take_off(&mut cx, slot, count, self.side, |member, score| {
                reply.array(2);
                bulk_item(reply, member);
                reply.double(score);
            })?;
            return Ok(Some(log_pop(&mut cx, self.side, Some(count))));
        }
        Ok(None)
    }
}

fn zmpop(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let effect = Multiple::of(args, 1)?.pop(cx, args, 2, reply)?;
    Ok(effect.unwrap_or_else(|| {
        reply.null_array();
        Effect::Unchanged
    }))
}
