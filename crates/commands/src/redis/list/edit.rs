//! LSET, LINSERT, LREM and LTRIM: changing a list anywhere.

use super::push::check_len;
use super::range::{index, part};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeyCx};
use tenon_engine::ds::listpack::End;
use tenon_engine::ds::packed::Item;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::{Collection, List};
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

const COUNT_TOO_SMALL: CmdError =
    CmdError::text("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807");

/// Replaces one element.
pub static LSET: Command = Command {
    name: "LSET",
    group: Group::List,
    syntax: "key index element",
    summary: "Sets the value of an element in a list by its index.",
    complexity: "O(N) where N is the length of the list. Setting either the first or the last element of the list is \
                 O(1).",
    since: "1.0.0",
    arity: Arity::Exactly(4),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM),
    run: Run::Key(lset),
};

/// Adds an element beside another.
pub static LINSERT: Command = Command {
    name: "LINSERT",
    group: Group::List,
    syntax: "key <BEFORE | AFTER> pivot element",
    summary: "Inserts an element before or after another element in a list.",
    complexity: "O(N) where N is the number of elements to traverse before seeing the value pivot. This means that \
                 inserting somewhere on the left end on the list (head) can be considered O(1) and inserting somewhere \
                 on the right end (tail) is O(N).",
    since: "2.2.0",
    arity: Arity::Exactly(5),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::ADD)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM),
    run: Run::Key(linsert),
};

/// Takes out elements that are equal to another.
pub static LREM: Command = Command {
    name: "LREM",
    group: Group::List,
    syntax: "key count element",
    summary: "Removes elements from a list. Deletes the list if the last element was removed.",
    complexity: "O(N+M) where N is the length of the list and M is the number of elements removed.",
    since: "1.0.0",
    arity: Arity::Exactly(4),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::SHRINK)]),
    flags: Flags::WRITE,
    run: Run::Key(lrem),
};

/// Takes out what lies outside a range.
pub static LTRIM: Command = Command {
    name: "LTRIM",
    group: Group::List,
    syntax: "key start stop",
    summary: "Removes elements from both ends a list. Deletes the list if all elements were trimmed.",
    complexity: "O(N) where N is the number of elements to be removed by the operation.",
    since: "1.0.0",
    arity: Arity::Exactly(4),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::SHRINK)]),
    flags: Flags::WRITE,
    run: Run::Key(ltrim),
};

fn lset(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let limits = cx.engine().list_limits();
    let element = args.get(3);
    let updated = cx.update_existing(|list: &mut List| {
        // As in Redis an index that is none is worse than no key only where there is a key.
        let number = parse_i64(args.get(2)).ok_or(CmdError::NotInteger)?;
        let index = index(number, list.len()).ok_or(CmdError::OutOfRange)?;
        check_len(element)?;
        list.prepare([element].into_iter(), &limits);
        list.replace(index, Item::of(element), &limits);
        list.shrunk(&limits);
        Ok(Change::made("lset", ()))
    })?;
    let ((), effect) = updated.ok_or(CmdError::NoSuchKey)?;
    reply.simple("OK");
    Ok(effect)
}

fn linsert(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let behind = if args.is(2, "BEFORE") {
        0
    } else if args.is(2, "AFTER") {
        1
    } else {
        return Err(CmdError::Syntax);
    };
    let (pivot, element) = (Item::of(args.get(3)), args.get(4));
    let limits = cx.engine().list_limits();
    let updated = cx.update_existing(|list: &mut List| {
        let Some(at) = list.view().iter_from(0).find_next(pivot, usize::MAX) else {
            return Ok(Change::nothing(-1));
        };
        check_len(element)?;
        list.prepare([element].into_iter(), &limits);
        list.insert(at + behind, Item::of(element), &limits);
        Ok(Change::made("linsert", list.len() as i64))
    })?;
    let (len, effect) = updated.unwrap_or((0, Effect::Unchanged));
    reply.int(len);
    Ok(effect)
}

fn lrem(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let count = parse_i64(args.get(2)).ok_or(CmdError::NotInteger)?;
    if count == i64::MIN {
        return Err(COUNT_TOO_SMALL);
    }
    let (from, most) = match count {
        0 => (End::Front, usize::MAX),
        1.. => (End::Front, count as usize),
        _ => (End::Back, count.unsigned_abs() as usize),
    };
    let item = Item::of(args.get(3));
    let limits = cx.engine().list_limits();
    let updated = cx.update_existing(|list: &mut List| {
        let removed = list.remove_equal(item, most, from);
        list.shrunk(&limits);
        Ok(Change::when(removed > 0, "lrem", removed).times(removed))
    })?;
    let (removed, effect) = updated.unwrap_or((0, Effect::Unchanged));
    reply.int(removed as i64);
    Ok(effect)
}

fn ltrim(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let start = parse_i64(args.get(2)).ok_or(CmdError::NotInteger)?;
    let stop = parse_i64(args.get(3)).ok_or(CmdError::NotInteger)?;
    let limits = cx.engine().list_limits();
    let updated = cx.update_existing(|list: &mut List| {
        let (kept, len) = (part(start, stop, list.len()), list.len());
        let behind = list.remove(kept.end, list.len() - kept.end);
        let before = list.remove(0, kept.start);
        list.shrunk(&limits);
        // As in Redis this is a change even where nothing was outside.
        let removed = len - kept.len();
        Ok(Change::made("ltrim", (removed, behind, before)).times(removed))
    })?;
    reply.simple("OK");
    let Some(((removed, behind, before), effect)) = updated else { return Ok(Effect::Unchanged) };
    let allocations = behind.allocations() + before.allocations();
    cx.worker().discard_part((behind, before), allocations);
    Ok(if removed > 0 { effect } else { Effect::Unchanged })
}
