//! LPUSH, RPUSH and their kin: adding elements at either end.

use super::which_end::push_event;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeyCx};
use tenon_engine::ds::listpack::{End, LEN_MAX};
use tenon_engine::ds::packed::Item;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::{List, ListLimits};
use tenon_engine::wire::resp::Reply;

const FLAGS: Flags = Flags::WRITE.or(Flags::DENY_OOM).or(Flags::FAST);
const KEYS: Keys = Keys::Specs(&[KeySpec::at(1, KeyFlags::ADD)]);
const COMPLEXITY: &str = "O(1) for each element added, so O(N) to add N elements when the command is called with \
                          multiple arguments.";

/// Adds elements before the first.
pub static LPUSH: Command = Command {
    name: "LPUSH",
    group: Group::List,
    syntax: "key element [element ...]",
    summary: "Prepends one or more elements to a list. Creates the key if it doesn't exist.",
    complexity: COMPLEXITY,
    since: "1.0.0",
    arity: Arity::AtLeast(3),
    keys: KEYS,
    flags: FLAGS,
    run: Run::Key(lpush),
};

/// Adds elements behind the last.
pub static RPUSH: Command = Command {
    name: "RPUSH",
    group: Group::List,
    syntax: "key element [element ...]",
    summary: "Appends one or more elements to a list. Creates the key if it doesn't exist.",
    complexity: COMPLEXITY,
    since: "1.0.0",
    arity: Arity::AtLeast(3),
    keys: KEYS,
    flags: FLAGS,
    run: Run::Key(rpush),
};

/// Adds elements before the first of a list that is there.
pub static LPUSHX: Command = Command {
    name: "LPUSHX",
    group: Group::List,
    syntax: "key element [element ...]",
    summary: "Prepends one or more elements to a list only when the list exists.",
    complexity: COMPLEXITY,
    since: "2.2.0",
    arity: Arity::AtLeast(3),
    keys: KEYS,
    flags: FLAGS,
    run: Run::Key(lpushx),
};

/// Adds elements behind the last of a list that is there.
pub static RPUSHX: Command = Command {
    name: "RPUSHX",
    group: Group::List,
    syntax: "key element [element ...]",
    summary: "Appends one or more elements to a list only when the list exists.",
    complexity: COMPLEXITY,
    since: "2.2.0",
    arity: Arity::AtLeast(3),
    keys: KEYS,
    flags: FLAGS,
    run: Run::Key(rpushx),
};

const TOO_LARGE: CmdError = CmdError::text("ERR Element too large");

/// Refuses an element that no list can hold.
pub(super) fn check_len(element: &[u8]) -> Result<(), CmdError> {
    if element.len() > LEN_MAX { Err(TOO_LARGE) } else { Ok(()) }
}

fn lpush(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    push(cx, args, End::Front, reply)
}

fn rpush(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    push(cx, args, End::Back, reply)
}

fn lpushx(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    push_existing(cx, args, End::Front, reply)
}

fn rpushx(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    push_existing(cx, args, End::Back, reply)
}

fn push(cx: &mut KeyCx<'_>, args: &Args<'_>, end: End, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let limits = cx.engine().list_limits();
    let (len, effect) = cx.update(|list: &mut List| add(list, args, end, &limits))?;
    reply.int(len as i64);
    Ok(effect)
}

fn push_existing(cx: &mut KeyCx<'_>, args: &Args<'_>, end: End, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let limits = cx.engine().list_limits();
    let updated = cx.update_existing(|list: &mut List| add(list, args, end, &limits))?;
    let (len, effect) = updated.unwrap_or((0, Effect::Unchanged));
    reply.int(len as i64);
    Ok(effect)
}

/// Adds the arguments from the second on; gives the new length.
fn add(list: &mut List, args: &Args<'_>, end: End, limits: &ListLimits) -> Result<Change<usize>, CmdError> {
    args.from(2).try_for_each(check_len)?;
    list.prepare(args.from(2), limits);
    args.from(2).for_each(|element| list.push(end, Item::of(element), limits));
    Ok(Change::made(push_event(end), list.len()).times(args.len() - 2))
}
