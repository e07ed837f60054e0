//! BLPOP, BRPOP, BLMPOP, BLMOVE and BRPOPLPUSH: taking elements off lists that may have to come first.

use super::pop::{Multiple, log_pop, pop_one};
use super::transfer::{self, transfer};
use super::which_end::{name_of, parse_end};
use tenon_engine::args::Args;
use tenon_engine::blocking::{Outcome, Timeout, Wait};
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeysCx;
use tenon_engine::ds::listpack::End;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::{List, ValueType};
use tenon_engine::wire::resp::Reply;

const FLAGS: Flags = Flags::WRITE.or(Flags::NO_SCRIPT).or(Flags::BLOCKING);
const KEYS: Keys = Keys::Specs(&[KeySpec::all_but_last(1, KeyFlags::READ_AND_DELETE)]);

/// Takes the first element off the first list that has one.
pub static BLPOP: Command = Command {
    name: "BLPOP",
    group: Group::List,
    syntax: "key [key ...] timeout",
    summary: "Removes and returns the first element in a list. Blocks until an element is available otherwise. Deletes \
              the list if the last element was popped.",
    complexity: "O(N) where N is the number of provided keys.",
    since: "2.0.0",
    arity: Arity::AtLeast(3),
    keys: KEYS,
    flags: FLAGS,
    run: Run::Blocking(blpop),
};

/// Takes the last element off the first list that has one.
pub static BRPOP: Command = Command {
    name: "BRPOP",
    group: Group::List,
    syntax: "key [key ...] timeout",
    summary: "Removes and returns the last element in a list. Blocks until an element is available otherwise. Deletes \
              the list if the last element was popped.",
    complexity: "O(N) where N is the number of provided keys.",
    since: "2.0.0",
    arity: Arity::AtLeast(3),
    keys: KEYS,
    flags: FLAGS,
    run: Run::Blocking(brpop),
};

/// Takes elements off the first list that has some.
pub static BLMPOP: Command = Command {
    name: "BLMPOP",
    group: Group::List,
    syntax: "timeout numkeys key [key ...] <LEFT | RIGHT> [COUNT count]",
    summary: "Pops the first element from one of multiple lists. Blocks until an element is available otherwise. \
              Deletes the list if the last element was popped.",
    complexity: "O(N+M) where N is the number of provided keys and M is the number of elements returned.",
    since: "7.0.0",
    arity: Arity::AtLeast(5),
    keys: Keys::Specs(&[KeySpec::counted(2, KeyFlags::READ_AND_DELETE)]),
    flags: Flags::WRITE.or(Flags::BLOCKING),
    run: Run::Blocking(blmpop),
};

/// Moves an element from either end of one list, once it has one, to either end of another.
pub static BLMOVE: Command = Command {
    name: "BLMOVE",
    group: Group::List,
    syntax: "source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout",
    summary: "Pops an element from a list, pushes it to another list and returns it. Blocks until an element is \
              available otherwise. Deletes the list if the last element was moved.",
    complexity: "O(1)",
    since: "6.2.0",
    arity: Arity::Exactly(6),
    keys: transfer::KEYS,
    flags: FLAGS.or(Flags::DENY_OOM),
    run: Run::Blocking(blmove),
};

/// Moves the last element of one list, once it has one, before the first of another.
pub static BRPOPLPUSH: Command = Command {
    name: "BRPOPLPUSH",
    group: Group::List,
    syntax: "source destination timeout",
    summary: "Pops an element from a list, pushes it to another list and returns it. Block until an element is \
              available otherwise. Deletes the list if the last element was popped.",
    complexity: "O(1)",
    since: "2.2.0",
    arity: Arity::Exactly(4),
    keys: transfer::KEYS,
    flags: FLAGS.or(Flags::DENY_OOM),
    run: Run::Blocking(brpoplpush),
};

fn blpop(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Outcome, CmdError> {
    pop(cx, args, End::Front, reply)
}

fn brpop(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Outcome, CmdError> {
    pop(cx, args, End::Back, reply)
}

fn pop(cx: &mut KeysCx<'_>, args: &Args<'_>, end: End, reply: &mut Reply<'_>) -> Result<Outcome, CmdError> {
    let last = args.len() - 1;
    let timeout = Timeout::of_seconds(args.get(last), cx.now_ms())?;
    for key in (1..last).map(|index| args.get(index)) {
        if !cx.may_take(key, ValueType::List)? {
            continue;
        }
        let mut cx = cx.key(key);
        let Some(slot) = cx.find() else { continue };
        cx.collection::<List>(slot)?;
        reply.array(2);
        reply.bulk(key);
        let _popped = pop_one(&mut cx, end, reply)?.expect("the list is there");
        return Ok(Outcome::Done(log_pop(&mut cx, end, None)));
    }
    Ok(Outcome::Wait(Wait::new(timeout, 1..last, ValueType::List)))
}

fn blmpop(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Outcome, CmdError> {
    let multiple = Multiple::of(args, 2)?;
    let timeout = Timeout::of_seconds(args.get(1), cx.now_ms())?;
    Ok(done_or(multiple.pop(cx, args, 3, reply)?, || Wait::new(timeout, 3..multiple.keys_end, ValueType::List)))
}

fn blmove(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Outcome, CmdError> {
    let (from, to) = (parse_end(args, 3)?, parse_end(args, 4)?);
    transfer_or_wait(cx, args, from, to, reply)
}

fn brpoplpush(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Outcome, CmdError> {
    transfer_or_wait(cx, args, End::Back, End::Front, reply)
}

fn transfer_or_wait(
    cx: &mut KeysCx<'_>,
    args: &Args<'_>,
    from: End,
    to: End,
    reply: &mut Reply<'_>,
) -> Result<Outcome, CmdError> {
    let timeout = Timeout::of_seconds(args.get(args.len() - 1), cx.now_ms())?;
    let moved = if cx.may_take(args.get(1), ValueType::List)? { transfer(cx, args, from, to, reply)? } else { None };
    // As the command that would not have waited.
    let moved = moved.map(|_| {
        let (source, destination) = (args.get(1).into(), args.get(2).into());
        cx.log(&["LMOVE".into(), source, destination, name_of(from).into(), name_of(to).into()])
    });
    Ok(done_or(moved, || Wait::new(timeout, 1..2, ValueType::List).or_null()))
}

fn done_or(effect: Option<Effect>, wait: impl FnOnce() -> Wait) -> Outcome {
    effect.map_or_else(|| Outcome::Wait(wait()), Outcome::Done)
}
