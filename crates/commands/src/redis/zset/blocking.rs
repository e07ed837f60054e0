//! BZPOPMIN, BZPOPMAX and BZMPOP: taking members off sorted sets that may have to come first.

use super::pop::{Multiple, log_pop, take_off};
use crate::redis::reply_item::bulk_item;
use tenon_engine::args::Args;
use tenon_engine::blocking::{Outcome, Timeout, Wait};
use tenon_engine::command::{Arity, Command, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeysCx;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::zset::Direction;
use tenon_engine::store::types::{ValueType, Zset};
use tenon_engine::wire::resp::Reply;

const FLAGS: Flags = Flags::WRITE.or(Flags::NO_SCRIPT).or(Flags::FAST).or(Flags::BLOCKING);
const KEYS: Keys = Keys::Specs(&[KeySpec::all_but_last(1, KeyFlags::READ_AND_DELETE)]);

/// Takes the member with the lowest score off the first sorted set that has one.
pub static BZPOPMIN: Command = Command {
    name: "BZPOPMIN",
    group: Group::SortedSet,
    syntax: "key [key ...] timeout",
    summary: "Removes and returns the member with the lowest score from one or more sorted sets. Blocks until a member is available otherwise. Deletes the sorted set if the last element was popped.",
    complexity: "O(log(N)) with N being the number of elements in the sorted set.",
    since: "5.0.0",
    arity: Arity::AtLeast(3),
    keys: KEYS,
    flags: FLAGS,
    run: Run::Blocking(bzpopmin),
};

/// Takes the member with the highest score off the first sorted set that has one.
pub static BZPOPMAX: Command = Command {
    name: "BZPOPMAX",
    group: Group::SortedSet,
    syntax: "key [key ...] timeout",
    summary: "Removes and returns the member with the highest score from one or more sorted sets. Blocks until a member available otherwise. Deletes the sorted set if the last element was popped.",
    complexity: "O(log(N)) with N being the number of elements in the sorted set.",
    since: "5.0.0",
    arity: Arity::AtLeast(3),
    keys: KEYS,
    flags: FLAGS,
    run: Run::Blocking(bzpopmax),
};

/// Takes members off the first sorted set that has some.
pub static BZMPOP: Command = Command {
    name: "BZMPOP",
    group: Group::SortedSet,
    syntax: "timeout numkeys key [key ...] <MIN | MAX> [COUNT count]",
    summary: "Removes and returns a member by score from one or more sorted sets. Blocks until a member is available otherwise. Deletes the sorted set if the last element was popped.",
    complexity: "O(K) + O(M*log(N)) where K is the number of provided keys, N being the number of elements in the sorted set, and M being the number of elements popped.",
    since: "7.0.0",
    arity: Arity::AtLeast(5),
    keys: Keys::Specs(&[KeySpec::counted(2, KeyFlags::READ_AND_DELETE)]),
    flags: Flags::WRITE.or(Flags::BLOCKING),
    run: Run::Blocking(bzmpop),
};

fn bzpopmin(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Outcome, CmdError> {
    pop(cx, args, Direction::Ascending, reply)
}

fn bzpopmax(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Outcome, CmdError> {
    pop(cx, args, Direction::Descending, reply)
}

fn pop(cx: &mut KeysCx<'_>, args: &Args<'_>, direction: Direction, reply: &mut Reply<'_>) -> Result<Outcome, CmdError> {
    let last = args.len() - 1;
    let timeout = Timeout::of_seconds(args.get(last), cx.now_ms())?;
    for key in (1..last).map(|index| args.get(index)) {
        if !cx.may_take(key, ValueType::Zset)? {
            continue;
        }
        let mut cx = cx.key(key);
        let Some(slot) = cx.find_for_write() else { continue };
        cx.collection::<Zset>(slot)?;
        reply.array(3);
        reply.bulk(key);
        let _taken = take_off(&mut cx, slot, 1, direction, |member, score| {
            bulk_item(reply, member);
            reply.double(score);
        })?;
        return Ok(Outcome::Done(log_pop(&mut cx, direction, None)));
    }
    Ok(Outcome::Wait(Wait::new(timeout, 1..last, ValueType::Zset)))
}

fn bzmpop(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Outcome, CmdError> {
    let multiple = Multiple::of(args, 2)?;
    let timeout = Timeout::of_seconds(args.get(1), cx.now_ms())?;
    Ok(match multiple.pop(cx, args, 3, reply)? {
        Some(effect) => Outcome::Done(effect),
        None => Outcome::Wait(Wait::new(timeout, 3..multiple.keys_end, ValueType::Zset)),
    })
}
