//! LPOP, RPOP and LMPOP: taking elements off an end.

use super::which_end::{parse_end, pop_event};
use crate::redis::pop_args::PopArgs;
use crate::redis::reply_item::bulk_item;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeyCx, KeysCx};
use tenon_engine::ds::listpack::End;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::{Collection, List, ValueType};
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

const KEYS: Keys = Keys::Specs(&[KeySpec::at(1, KeyFlags::READ_AND_DELETE)]);

/// Takes the first elements off.
pub static LPOP: Command = Command {
    name: "LPOP",
    group: Group::List,
    syntax: "key [count]",
    summary: "Returns the first elements in a list after removing it. Deletes the list if the last element was popped.",
    complexity: "O(N) where N is the number of elements returned",
    since: "1.0.0",
    arity: Arity::AtLeast(2),
    keys: KEYS,
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(lpop),
};

/// Takes the last elements off.
pub static RPOP: Command = Command {
    name: "RPOP",
    group: Group::List,
    syntax: "key [count]",
    summary: "Returns and removes the last elements of a list. Deletes the list if the last element was popped.",
    complexity: "O(N) where N is the number of elements returned",
    since: "1.0.0",
    arity: Arity::AtLeast(2),
    keys: KEYS,
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(rpop),
};

/// Takes elements off the first list that is there.
pub static LMPOP: Command = Command {
    name: "LMPOP",
    group: Group::List,
    syntax: "numkeys key [key ...] <LEFT | RIGHT> [COUNT count]",
    summary: "Returns multiple elements from a list after removing them. Deletes the list if the last element was \
              popped.",
    complexity: "O(N+M) where N is the number of provided keys and M is the number of elements returned.",
    since: "7.0.0",
    arity: Arity::AtLeast(4),
    keys: Keys::Specs(&[KeySpec::counted(1, KeyFlags::READ_AND_DELETE)]),
    flags: Flags::WRITE,
    run: Run::Keys(lmpop),
};

fn lpop(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    pop(cx, args, End::Front, reply)
}

fn rpop(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    pop(cx, args, End::Back, reply)
}

fn pop(cx: &mut KeyCx<'_>, args: &Args<'_>, end: End, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    match args.len() {
        2 => Ok(pop_one(cx, end, reply)?.unwrap_or_else(|| {
            reply.null();
            Effect::Unchanged
        })),
        3 => {
            let count = parse_i64(args.get(2)).and_then(|count| usize::try_from(count).ok());
            let count = count.ok_or(CmdError::MustBePositive)?;
            Ok(pop_many(cx, end, count, reply)?.unwrap_or_else(|| {
                reply.null_array();
                Effect::Unchanged
            }))
        }
        _ => Err(CmdError::Arity(pop_event(end).to_owned())),
    }
}

/// Takes one element off and replies with it; without a list it replies nothing.
pub(super) fn pop_one(cx: &mut KeyCx<'_>, end: End, reply: &mut Reply<'_>) -> Result<Option<Effect>, CmdError> {
    let limits = cx.engine().list_limits();
    let updated = cx.update_existing(|list: &mut List| {
        list.pop(end, |item| bulk_item(reply, item)).expect("no list in a keyspace is empty");
        list.shrunk(&limits);
        Ok(Change::made(pop_event(end), ()))
    })?;
    Ok(updated.map(|((), effect)| effect))
}

/// Takes up to `count` elements off and replies with the array of them; without a list it replies nothing.
pub(super) fn pop_many(
    cx: &mut KeyCx<'_>,
    end: End,
    count: usize,
    reply: &mut Reply<'_>,
) -> Result<Option<Effect>, CmdError> {
    let limits = cx.engine().list_limits();
    let updated = cx.update_existing(|list: &mut List| {
        let count = count.min(list.len());
        reply.array(count);
        if count == 0 {
            return Ok(Change::nothing(List::default()));
        }
        // Taken out at once, they cost no more than what they are next to.
        let from = match end {
            End::Front => {
                list.view().iter_from(0).take(count).for_each(|item| bulk_item(reply, item));
                0
            }
            End::Back => {
                list.view().iter_back_from(list.len()).take(count).for_each(|item| bulk_item(reply, item));
                list.len() - count
            }
        };
        let taken = list.remove(from, count);
        list.shrunk(&limits);
        Ok(Change::made(pop_event(end), taken).times(count))
    })?;
    Ok(updated.map(|(taken, effect)| {
        let allocations = taken.allocations();
        cx.worker().discard_part(taken, allocations);
        effect
    }))
}

/// Puts down that so many elements, or one, were taken off the list.
pub(super) fn log_pop(cx: &mut KeyCx<'_>, end: End, count: Option<usize>) -> Effect {
    let key = cx.key;
    let name = match end {
        End::Front => "LPOP",
        End::Back => "RPOP",
    };
    match count {
        None => cx.log(&[name.into(), key.into()]),
        Some(count) => cx.log(&[name.into(), key.into(), (count as u64).into()]),
    }
}

/// What LMPOP and BLMPOP are asked for.
pub(super) type Multiple = PopArgs<End>;

impl Multiple {
    /// Reads the arguments from the number of keys on, which is argument `at`.
    pub(super) fn of(args: &Args<'_>, at: usize) -> Result<Multiple, CmdError> {
        PopArgs::parse(args, at, parse_end)
    }

    /// Takes elements off the first list that is there and replies with its key and them; without one it replies
    /// nothing.
    pub(super) fn pop(
        &self,
        cx: &mut KeysCx<'_>,
        args: &Args<'_>,
        first_key: usize,
        reply: &mut Reply<'_>,
    ) -> Result<Option<Effect>, CmdError> {
        for key in (first_key..self.keys_end).map(|index| args.get(index)) {
            if !cx.may_take(key, ValueType::List)? {
                continue;
            }
            let mut cx = cx.key(key);
            let Some(slot) = cx.find() else { continue };
            cx.collection::<List>(slot)?;
            reply.array(2);
            reply.bulk(key);
            let effect = pop_many(&mut cx, self.side, self.count, reply)?;
            return Ok(effect.map(|_| log_pop(&mut cx, self.side, Some(self.count))));
        }
        Ok(None)
    }
}

fn lmpop(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let effect = Multiple::of(args, 1)?.pop(cx, args, 2, reply)?;
    Ok(effect.unwrap_or_else(|| {
        reply.null_array();
        Effect::Unchanged
    }))
}
