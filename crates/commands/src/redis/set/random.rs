//! SPOP and SRANDMEMBER: members by chance.

use crate::redis::answer_limit::AnswerLimit;
use crate::redis::random_count::RandomCount;
use crate::redis::reply_item::bulk_item;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeyCx};
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::Set;
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// Takes out random members.
pub static SPOP: Command = Command {
    name: "SPOP",
    group: Group::Set,
    syntax: "key [count]",
    summary: "Returns one or more random members from a set after removing them. Deletes the set if the last member was popped.",
    complexity: "Without the count argument O(1), otherwise O(N) where N is the value of the passed count.",
    since: "1.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::READ_AND_DELETE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(spop),
};

fn spop(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    match args.len() {
        2 => pop_one(cx, reply),
        3 => {
            let count = parse_i64(args.get(2)).and_then(|count| usize::try_from(count).ok());
            pop_many(cx, count.ok_or(CmdError::MustBePositive)?, reply)
        }
        _ => Err(CmdError::Syntax),
    }
}

fn pop_one(cx: &mut KeyCx<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let mut random = cx.worker().random_source();
    let (logs, mut gone) = (cx.logs(), Vec::new());
    let outcome = cx.update_existing(|set: &mut Set| {
        let popped = set.pop(
            || random.bits(),
            |member| {
                gone.extend(logs.then(|| member.to_vec()));
                bulk_item(reply, member);
            },
        );
        Ok(Change::when(popped.is_some(), "spop", ()))
    })?;
    match outcome {
        Some(((), effect)) => Ok(if effect.is_change() { log_removed(cx, &gone) } else { effect }),
        None => {
            reply.null();
            Ok(Effect::Unchanged)
        }
    }
}

fn pop_many(cx: &mut KeyCx<'_>, count: usize, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let mut random = cx.worker().random_source();
    let Some(slot) = cx.find_for_write() else {
        reply.set(0);
        return Ok(Effect::Unchanged);
    };
    let set = cx.collection::<Set>(slot)?;
    let len = set.len();
    reply.set(count.min(len));
    if count >= len {
        set.for_each(|member| bulk_item(reply, member));
        let _taken = cx.take_collection::<Set>(slot, "spop");
        cx.count_changes(len as i64 - 1);
        return Ok(cx.log_deleted());
    }
    let (logs, mut gone) = (cx.logs(), Vec::new());
    let ((), effect) = cx.update_in(slot, |set: &mut Set| {
        set.pop_many(
            count,
            || random.bits(),
            |member| {
                gone.extend(logs.then(|| member.to_vec()));
                bulk_item(reply, member);
            },
        );
        Ok(Change::when(count > 0, "spop", ()).times(count))
    })?;
    Ok(if effect.is_change() { log_removed(cx, &gone) } else { Effect::Unchanged })
}

/// Puts down which members chance has taken out.
fn log_removed(cx: &mut KeyCx<'_>, members: &[Vec<u8>]) -> Effect {
    if members.is_empty() {
        return Effect::As;
    }
    let key = cx.key;
    cx.log_of(&["SREM".into(), key.into()], members.iter().map(|member| member.as_slice().into()))
}

/// Gives random members.
pub static SRANDMEMBER: Command = Command {
    name: "SRANDMEMBER",
    group: Group::Set,
    syntax: "key [count]",
    summary: "Get one or multiple random members from a set",
    complexity: "Without the count argument O(1), otherwise O(N) where N is the absolute value of the passed count.",
    since: "1.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(srandmember),
};

fn srandmember(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let count = match args.len() {
        2 => None,
        3 => Some(RandomCount::parse(args.get(2), i64::MAX)?),
        _ => return Err(CmdError::Syntax),
    };
    let (mut random, limit) = (cx.worker().random_source(), AnswerLimit::of(cx, reply));
    let set = cx.read_collection::<Set>()?;
    match (set, count) {
        (None, None) => reply.null(),
        (None, Some(_)) => reply.array(0),
        (Some(set), None) => match set.sample(|| random.bits()) {
            Some(member) => bulk_item(reply, member),
            None => reply.null(),
        },
        (Some(set), Some(count)) => {
            count.check()?;
            match count {
                RandomCount::Distinct(count) => {
                    reply.array(count.min(set.len()));
                    set.sample_distinct(count, || random.bits(), |member| bulk_item(reply, member));
                }
                RandomCount::Repeated(count) => {
                    reply.array(count);
                    set.sample_repeated(
                        count,
                        || random.bits(),
                        |member| {
                            bulk_item(reply, member);
                            limit.allows_more(reply)
                        },
                    );
                    limit.check(reply)?;
                }
            }
        }
    }
    Ok(Effect::Unchanged)
}
