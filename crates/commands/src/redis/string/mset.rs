//! MSET, MSETNX and MSETEX: storing several strings as one.

use super::options::{Accepts, Options, When};
use super::set::{EventOrder, store, store_logged};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Find, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Deadline, KeyCx, KeysCx};
use tenon_engine::errors::CmdError;
use tenon_engine::store::Slot;
use tenon_engine::string::Text;
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// Stores strings.
pub static MSET: Command = Command {
    name: "MSET",
    group: Group::String,
    syntax: "key value [key value ...]",
    summary: "Atomically creates or modifies the string values of one or more keys.",
    complexity: "O(N) where N is the number of keys to set.",
    since: "1.0.1",
    arity: Arity::AtLeast(3),
    keys: Keys::Specs(&[KeySpec::pairs(1, KeyFlags::OVERWRITE)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM),
    run: Run::Keys(mset),
};

fn mset(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    check_pairs(args, "mset")?;
    store_pairs(cx, args, 1..args.len(), store_plain);
    reply.simple("OK");
    Ok(Effect::Verbatim)
}

/// Stores strings if none of the keys is there.
pub static MSETNX: Command = Command {
    name: "MSETNX",
    group: Group::String,
    syntax: "key value [key value ...]",
    summary: "Atomically modifies the string values of one or more keys only when all keys don't exist.",
    complexity: "O(N) where N is the number of keys to set.",
    since: "1.0.1",
    arity: Arity::AtLeast(3),
    keys: Keys::Specs(&[KeySpec::pairs(1, KeyFlags::CREATE)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM),
    run: Run::Keys(msetnx),
};

fn msetnx(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    check_pairs(args, "msetnx")?;
    Ok(Effect::when(store_pairs_when(cx, args, 1..args.len(), When::Absent, reply, store_plain)))
}

/// Stores strings with conditions and an expiry for all of them.
pub static MSETEX: Command = Command {
    name: "MSETEX",
    group: Group::String,
    syntax: "numkeys key value [key value ...] [NX | XX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | \
             PXAT unix-time-milliseconds | KEEPTTL]",
    summary: "Atomically sets multiple string keys with a shared expiration in a single operation.",
    complexity: "O(N) where N is the number of keys to set.",
    since: "8.4.0",
    arity: Arity::AtLeast(4),
    keys: Keys::Specs(&[KeySpec {
        find: Find::Count { count: 0, first: 1, step: 2 },
        ..KeySpec::counted(1, KeyFlags::OVERWRITE)
    }]),
    flags: Flags::WRITE.or(Flags::DENY_OOM),
    run: Run::Keys(msetex),
};

fn msetex(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    const FIRST: usize = 2;
    const COUNT_MAX: i64 = i32::MAX as i64;
    let count = parse_i64(args.get(1)).filter(|count| (1..=COUNT_MAX).contains(count));
    let count = count.ok_or(CmdError::text("ERR invalid numkeys value"))? as usize;
    let end = FIRST + 2 * count;
    if end > args.len() {
        return Err(CmdError::text("ERR wrong number of key-value pairs"));
    }
    let options = Options::parse(args, end, Accepts::MSetEx)?;
    let deadline = options.expire.deadline(cx.now_ms(), "msetex")?;
    let holds = store_pairs_when(cx, args, FIRST..end, options.when, reply, |cx, slot, text| {
        let _all_alike = store_logged(cx, slot, text, deadline, EventOrder::ExpireFirst);
    });
    Ok(if holds { Effect::As } else { Effect::Unchanged })
}

fn check_pairs(args: &Args<'_>, command: &str) -> Result<(), CmdError> {
    if args.len() % 2 == 1 { Ok(()) } else { Err(CmdError::Arity(command.to_owned())) }
}

/// Stores a string that the command as it came says enough of.
fn store_plain(cx: &mut KeyCx<'_>, slot: Option<Slot>, text: Text<'_>) {
    store(cx, slot, text, Deadline::Clear, EventOrder::SetFirst);
}

/// Stores the pairs with `store_one` if all or none of their keys are there, as `when` says, and answers whether it did.
fn store_pairs_when(
    cx: &mut KeysCx<'_>,
    args: &Args<'_>,
    pairs: std::ops::Range<usize>,
    when: When<'_>,
    reply: &mut Reply<'_>,
    store_one: impl FnMut(&mut KeyCx<'_>, Option<Slot>, Text<'_>),
) -> bool {
    let wanted = match when {
        When::Always | When::If(_) => None,
        When::Absent => Some(false),
        When::Present => Some(true),
    };
    let holds = wanted.is_none_or(|wanted| {
        pairs.clone().step_by(2).all(|at| cx.key(args.get(at)).find_for_write().is_some() == wanted)
    });
    if holds {
        store_pairs(cx, args, pairs, store_one);
    }
    reply.int(holds.into());
    holds
}

fn store_pairs(
    cx: &mut KeysCx<'_>,
    args: &Args<'_>,
    pairs: std::ops::Range<usize>,
    mut store_one: impl FnMut(&mut KeyCx<'_>, Option<Slot>, Text<'_>),
) {
    for at in pairs.step_by(2) {
        let mut cx = cx.key(args.get(at));
        let slot = cx.find();
        store_one(&mut cx, slot, Text::of_arg(args, at + 1));
    }
}
