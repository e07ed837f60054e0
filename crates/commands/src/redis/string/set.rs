//! SET and its kin: storing one string, with or without conditions and an expiry.

use super::options::{Accepts, Expire, Expiry, Options, TimeUnit, When};
use super::value::reply_optional;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Deadline, KeyCx};
use tenon_engine::errors::CmdError;
use tenon_engine::notify::EventClass;
use tenon_engine::store::Slot;
use tenon_engine::store::keyspace::is_past;
use tenon_engine::store::types::ValueType;
use tenon_engine::string::Text;
use tenon_engine::wire::resp::Reply;

/// Stores a string.
pub static SET: Command = Command {
    name: "SET",
    group: Group::String,
    syntax: "key value [NX | XX | IFEQ ifeq-value | IFNE ifne-value | IFDEQ ifdeq-digest | IFDNE ifdne-digest] [GET] \
             [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
    summary: "Sets the string value of a key, ignoring its type. The key is created if it doesn't exist.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::Found {
        specs: &[KeySpec::at(1, KeyFlags::READ_AND_CHANGE.or(KeyFlags::VARIABLE_FLAGS))
            .notes("RW and ACCESS due to the optional `GET` argument")],
        find: set_keys,
    },
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::BRIEF),
    run: Run::Key(set),
};

/// SET reads the old value only where it is to give it back. One that compares it, with IFEQ and its kin, asks for no right
/// to read, as in Redis 8.6.
fn set_keys(args: &Args<'_>) -> Vec<(usize, KeyFlags)> {
    const COMPARES: [&str; 4] = ["IFEQ", "IFNE", "IFDEQ", "IFDNE"];
    let has = |words: &[&str]| (3..args.len()).any(|at| words.iter().any(|word| args.is(at, word)));
    let flags = match () {
        () if has(&["GET"]) => KeyFlags::READ_AND_CHANGE,
        () if has(&COMPARES) => KeyFlags::CHANGE,
        () => KeyFlags::OVERWRITE,
    };
    vec![(1, flags)]
}

fn set(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    if args.len() > 3 {
        return set_with_options(cx, args, reply);
    }
    cx.set(Text::of_arg(args, 2).into_value(), Deadline::Clear);
    cx.notify(EventClass::STRING, "set");
    reply.ok();
    Ok(Effect::Verbatim)
}

fn set_with_options(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let options = Options::parse(args, 3, Accepts::Set)?;
    let deadline = options.expire.deadline(cx.now_ms(), "set")?;
    let slot = if options.get { cx.find_for_read() } else { cx.find() };
    let mut before = None;
    if options.get || matches!(options.when, When::If(_)) {
        before = slot.map(|slot| cx.string(slot)).transpose()?;
    }
    let holds = match options.when {
        When::Always => true,
        When::Absent => slot.is_none(),
        When::Present => slot.is_some(),
        When::If(condition) => condition.holds(before)?,
    };
    match (options.get, holds) {
        (true, _) => reply_optional(before, reply),
        (false, true) => reply.ok(),
        (false, false) => reply.null(),
    }
    if holds {
        return Ok(store_logged(cx, slot, Text::of_arg(args, 2), deadline, EventOrder::SetFirst));
    }
    // A lock that somebody waits for is in use.
    if let Some(slot) = slot.filter(|_| !options.get) {
        cx.note_attempt(slot);
    }
    Ok(Effect::Unchanged)
}

/// In which order is told that a string was stored and that it has an expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventOrder {
    SetFirst,
    /// As MSETEX of Redis has it.
    ExpireFirst,
}

/// What storing a string has come to.
pub(super) enum Stored {
    /// It is there.
    At(Slot),
    /// Its time has passed already: the key is gone.
    Removed,
    /// As before, there being no key.
    Nothing,
}

/// Stores a string as `store` does, and puts down what the key has then, whatever led to it.
pub(super) fn store_logged(
    cx: &mut KeyCx<'_>,
    slot: Option<Slot>,
    text: Text<'_>,
    deadline: Deadline,
    order: EventOrder,
) -> Effect {
    match store(cx, slot, text, deadline, order) {
        Stored::At(slot) => cx.log_string(slot),
        Stored::Removed => cx.log_deleted(),
        Stored::Nothing => Effect::Unchanged,
    }
}

/// Stores a string in a slot that was just found, or as a new key; one whose time has passed already is removed.
pub(super) fn store(
    cx: &mut KeyCx<'_>,
    slot: Option<Slot>,
    text: Text<'_>,
    deadline: Deadline,
    order: EventOrder,
) -> Stored {
    if let Deadline::At(ms) = deadline
        && is_past(Some(ms), cx.expiry_now_ms())
    {
        let displaced = cx.displaced(slot);
        let stored = if cx.delete() { Stored::Removed } else { Stored::Nothing };
        // Redis stores it, and removes it soon after.
        cx.notify_displaced(displaced, ValueType::String);
        if slot.is_none() {
            cx.notify(EventClass::NEW, "new");
        }
        notify_stored(cx, deadline, order);
        cx.notify(EventClass::EXPIRED, "expired");
        return stored;
    }
    let slot = cx.store_over(slot, text.into_value(), deadline, 0, None);
    notify_stored(cx, deadline, order);
    Stored::At(slot)
}

fn notify_stored(cx: &mut KeyCx<'_>, deadline: Deadline, order: EventOrder) {
    let (set, expire) = ((EventClass::STRING, "set"), (EventClass::GENERIC, "expire"));
    let has_expiry = matches!(deadline, Deadline::At(_));
    let events = match order {
        EventOrder::SetFirst => [Some(set), has_expiry.then_some(expire)],
        EventOrder::ExpireFirst => [has_expiry.then_some(expire), Some(set)],
    };
    events.into_iter().flatten().for_each(|(class, event)| cx.notify(class, event));
}

/// Stores a string if the key is not there.
pub static SETNX: Command = Command {
    name: "SETNX",
    group: Group::String,
    syntax: "key value",
    summary: "Set the string value of a key only when the key doesn't exist.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CREATE)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::FAST),
    run: Run::Key(setnx),
};

fn setnx(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    if cx.find_for_write().is_some() {
        reply.int(0);
        return Ok(Effect::Unchanged);
    }
    reply.int(1);
    store(cx, None, Text::of_arg(args, 2), Deadline::Clear, EventOrder::SetFirst);
    Ok(Effect::Verbatim)
}

/// Stores a string with an expiry in seconds.
pub static SETEX: Command = Command {
    name: "SETEX",
    group: Group::String,
    syntax: "key seconds value",
    summary: "Sets the string value and expiration time of a key. Creates the key if it doesn't exist.",
    complexity: "O(1)",
    since: "2.0.0",
    arity: Arity::Exactly(4),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::OVERWRITE)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::BRIEF),
    run: Run::Key(setex),
};

fn setex(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    set_for(cx, args, reply, TimeUnit::Seconds, "setex")
}

/// Stores a string with an expiry in milliseconds.
pub static PSETEX: Command = Command {
    name: "PSETEX",
    group: Group::String,
    syntax: "key milliseconds value",
    summary: "Sets both string value and expiration time in milliseconds of a key. The key is created if it doesn't \
              exist.",
    complexity: "O(1)",
    since: "2.6.0",
    arity: Arity::Exactly(4),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::OVERWRITE)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::BRIEF),
    run: Run::Key(psetex),
};

fn psetex(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    set_for(cx, args, reply, TimeUnit::Milliseconds, "psetex")
}

fn set_for(
    cx: &mut KeyCx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    unit: TimeUnit,
    command: &'static str,
) -> Result<Effect, CmdError> {
    let expire = Expire::After(Expiry { unit, amount: args.get(2) });
    let deadline = expire.deadline(cx.now_ms(), command)?;
    let slot = cx.find();
    reply.ok();
    Ok(store_logged(cx, slot, Text::of_arg(args, 3), deadline, EventOrder::SetFirst))
}

/// Stores a string and answers the one before.
pub static GETSET: Command = Command {
    name: "GETSET",
    group: Group::String,
    syntax: "key value",
    summary: "Returns the previous string value of a key after setting it to a new value.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::ONE,
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::FAST),
    run: Run::Key(getset),
};

fn getset(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let slot = cx.find_for_read();
    let before = slot.map(|slot| cx.string(slot)).transpose()?;
    reply_optional(before, reply);
    store(cx, slot, Text::of_arg(args, 2), Deadline::Clear, EventOrder::SetFirst);
    Ok(Effect::Verbatim)
}
