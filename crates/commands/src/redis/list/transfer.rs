//! LMOVE and RPOPLPUSH: an element from one list to another.

use super::which_end::{parse_end, pop_event, push_event};
use crate::redis::reply_item::bulk_item;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeysCx};
use tenon_engine::ds::listpack::End;
use tenon_engine::ds::packed::Item;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::List;
use tenon_engine::wire::resp::Reply;

pub(super) const KEYS: Keys = Keys::Specs(&[KeySpec::at(1, KeyFlags::READ_AND_DELETE), KeySpec::at(2, KeyFlags::ADD)]);

/// Moves an element from either end of one list to either end of another.
pub static LMOVE: Command = Command {
    name: "LMOVE",
    group: Group::List,
    syntax: "source destination <LEFT | RIGHT> <LEFT | RIGHT>",
    summary: "Returns an element after popping it from one list and pushing it to another. Deletes the list if the last \
              element was moved.",
    complexity: "O(1)",
    since: "6.2.0",
    arity: Arity::Exactly(5),
    keys: KEYS,
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::BRIEF),
    run: Run::Keys(lmove),
};

/// Moves the last element of one list before the first of another.
pub static RPOPLPUSH: Command = Command {
    name: "RPOPLPUSH",
    group: Group::List,
    syntax: "source destination",
    summary: "Returns the last element of a list after removing and pushing it to another list. Deletes the list if \
              the last element was popped.",
    complexity: "O(1)",
    since: "1.2.0",
    arity: Arity::Exactly(3),
    keys: KEYS,
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::BRIEF),
    run: Run::Keys(rpoplpush),
};

fn lmove(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let (from, to) = (parse_end(args, 3)?, parse_end(args, 4)?);
    Ok(transfer(cx, args, from, to, reply)?.unwrap_or_else(|| nothing(reply)))
}

fn rpoplpush(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    Ok(transfer(cx, args, End::Back, End::Front, reply)?.unwrap_or_else(|| nothing(reply)))
}

fn nothing(reply: &mut Reply<'_>) -> Effect {
    reply.null();
    Effect::Unchanged
}

/// Moves an element from the list that the first argument names to the second's and replies with it; without a list
/// there it replies nothing.
pub(super) fn transfer(
    cx: &mut KeysCx<'_>,
    args: &Args<'_>,
    from: End,
    to: End,
    reply: &mut Reply<'_>,
) -> Result<Option<Effect>, CmdError> {
    let limits = cx.engine().list_limits();
    let mut source = cx.key(args.get(1));
    // It is an access when it is popped from; of one list both count, as with Redis.
    let found = if args.get(1) == args.get(2) { source.find_for_write() } else { source.find() };
    let Some(slot) = found else { return Ok(None) };
    let item = source.collection::<List>(slot)?.end(from).expect("no list in a keyspace is empty");
    let element = item.to_vec();
    if args.get(1) == args.get(2) {
        // One change of one list, which is written back once. What was pushed at the end that is popped is equal to what
        // would have been.
        return Ok(source
            .update_existing(|list: &mut List| {
                list.prepare([&element[..]].into_iter(), &limits);
                list.push(to, Item::of(&element), &limits);
                list.pop(from, |item| bulk_item(reply, item)).expect("an element is there");
                list.shrunk(&limits);
                Ok(Change::made(push_event(to), ()).and(Some(pop_event(from))))
            })?
            .map(|((), effect)| effect));
    }
    // In this order, as Redis tells of it: first the push, then the pop.
    let ((), _pushed) = cx.key(args.get(2)).update(|list: &mut List| {
        list.prepare([&element[..]].into_iter(), &limits);
        list.push(to, Item::of(&element), &limits);
        Ok(Change::made(push_event(to), ()))
    })?;
    let popped = cx.key(args.get(1)).update_existing(|list: &mut List| {
        list.pop(from, |item| bulk_item(reply, item)).expect("the element is still there");
        list.shrunk(&limits);
        // It counts with the push.
        Ok(Change::made(pop_event(from), ()).times(0))
    })?;
    Ok(popped.map(|((), effect)| effect))
}
