//! OBJECT: how a value is kept, and how it was used.

use crate::redis::help::reply_help;
use tenon_engine::Engine;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{KeyCx, SessionCx};
use tenon_engine::errors::CmdError;
use tenon_engine::store::entry::{EntryRef, ValueRef};
use tenon_engine::store::types::{Collection, Object, PackedKind};
use tenon_engine::wire::resp::Reply;

/// Looks at a value from outside.
pub static OBJECT: Command = Command {
    name: "OBJECT",
    group: Group::Generic,
    syntax: "",
    summary: "A container for object introspection commands.",
    complexity: "Depends on subcommand.",
    since: "2.2.3",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: Flags::NONE,
    run: Run::Container(&[&OBJECT_ENCODING, &OBJECT_FREQ, &OBJECT_HELP, &OBJECT_IDLETIME, &OBJECT_REFCOUNT]),
};

static OBJECT_ENCODING: Command = Command {
    name: "OBJECT ENCODING",
    group: Group::Generic,
    syntax: "key",
    summary: "Returns the internal encoding of a Redis object.",
    complexity: "O(1)",
    since: "2.2.3",
    arity: Arity::Exactly(3),
    keys: Keys::Specs(&[KeySpec::at(2, KeyFlags::LOOK)]),
    flags: Flags::READONLY,
    run: Run::Key(encoding),
};

static OBJECT_FREQ: Command = Command {
    name: "OBJECT FREQ",
    group: Group::Generic,
    syntax: "key",
    summary: "Returns the logarithmic access frequency counter of a Redis object.",
    complexity: "O(1)",
    since: "4.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::Specs(&[KeySpec::at(2, KeyFlags::LOOK)]),
    flags: Flags::READONLY,
    run: Run::Key(freq),
};

static OBJECT_HELP: Command = Command {
    name: "OBJECT HELP",
    group: Group::Generic,
    syntax: "",
    summary: "Returns helpful text about the different subcommands.",
    complexity: "O(1)",
    since: "6.2.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: Flags::LOADING.or(Flags::STALE),
    run: Run::Session(help),
};

static OBJECT_IDLETIME: Command = Command {
    name: "OBJECT IDLETIME",
    group: Group::Generic,
    syntax: "key",
    summary: "Returns the time since the last access to a Redis object.",
    complexity: "O(1)",
    since: "2.2.3",
    arity: Arity::Exactly(3),
    keys: Keys::Specs(&[KeySpec::at(2, KeyFlags::LOOK)]),
    flags: Flags::READONLY,
    run: Run::Key(idletime),
};

static OBJECT_REFCOUNT: Command = Command {
    name: "OBJECT REFCOUNT",
    group: Group::Generic,
    syntax: "key",
    summary: "Returns the reference count of a value of a key.",
    complexity: "O(1)",
    since: "2.2.3",
    arity: Arity::Exactly(3),
    keys: Keys::Specs(&[KeySpec::at(2, KeyFlags::LOOK)]),
    flags: Flags::READONLY,
    run: Run::Key(refcount),
};

/// The longest string that Redis keeps in one allocation with its object (`OBJ_ENCODING_EMBSTR_SIZE_LIMIT`).
const EMBSTR_LEN_MAX: usize = 44;

/// Integers from 0 to below this one are shared in Redis (`OBJ_SHARED_INTEGERS`).
const SHARED_INTEGERS: i64 = 10_000;
/// The count of references that stands for "never freed" (`OBJ_SHARED_REFCOUNT`).
const SHARED_REFERENCES: i64 = i32::MAX as i64;

const FREQ_UNKNOWN: CmdError = CmdError::text(
    "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.",
);
const IDLE_UNKNOWN: CmdError = CmdError::text(
    "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.",
);

const HELP: [&str; 12] = [
    "ENCODING <key>",
    "    Return the kind of internal representation used in order to store the value",
    "    associated with a <key>.",
    "FREQ <key>",
    "    Return the access frequency index of the <key>. The returned integer is",
    "    proportional to the logarithm of the recent access frequency of the key.",
    "IDLETIME <key>",
    "    Return the idle time of the <key>, that is the approximated number of",
    "    seconds elapsed since the last access to the key.",
    "REFCOUNT <key>",
    "    Return the number of references of the value associated with the specified",
    "    <key>.",
];

/// The name of the encoding that Redis would have for this value.
pub(crate) fn encoding_name(entry: EntryRef<'_>) -> &'static str {
    match entry.value() {
        ValueRef::Int(_) => "int",
        ValueRef::Bytes(bytes) if bytes.len() <= EMBSTR_LEN_MAX && !entry.is_raw() => "embstr",
        ValueRef::Bytes(_) | ValueRef::Object(Object::Shared(_) | Object::Rope(_)) => "raw",
        ValueRef::Packed(form, _) => match form.kind {
            PackedKind::IntSet => "intset",
            PackedKind::Hash if form.has_deadlines => "listpackex",
            _ => "listpack",
        },
        ValueRef::Object(Object::List(list)) => list.view().encoding(),
        ValueRef::Object(Object::Hash(hash)) => hash.encoding(),
        ValueRef::Object(Object::Set(set)) => set.encoding(),
        ValueRef::Object(Object::Zset(zset)) => zset.view().encoding(),
        ValueRef::Object(Object::Stream(_)) => "stream",
    }
}

fn encoding(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    match cx.inspect() {
        Some(entry) => reply.bulk(encoding_name(entry).as_bytes()),
        None => reply.null(),
    }
    Ok(Effect::Unchanged)
}

fn freq(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let clock = cx.worker().clock.access;
    match cx.inspect().map(|entry| entry.access()) {
        None => reply.null(),
        Some(_) if !clock.notes_frequency() => return Err(FREQ_UNKNOWN),
        Some(access) => reply.int(clock.frequency(access).into()),
    }
    Ok(Effect::Unchanged)
}

fn idletime(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let clock = cx.worker().clock.access;
    match cx.inspect().map(|entry| entry.access()) {
        None => reply.null(),
        Some(_) if clock.notes_frequency() => return Err(IDLE_UNKNOWN),
        Some(access) => reply.int(clock.idle_seconds(access).into()),
    }
    Ok(Effect::Unchanged)
}

/// How many refer to a value, as Redis says it: an integer below 10,000 lies in the entry here and not in an object that
/// all keys share, but either way another copy costs nothing, which is what those who ask want to know. Policies that
/// note accesses keep Redis from sharing.
pub(crate) fn reference_count(value: ValueRef<'_>, engine: &Engine) -> i64 {
    let shares = engine.config.maxmemory() == 0 || !engine.policy().notes_accesses();
    if shares && matches!(value, ValueRef::Int(0..SHARED_INTEGERS)) { SHARED_REFERENCES } else { 1 }
}

fn refcount(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let engine = cx.engine();
    match cx.inspect() {
        Some(entry) => reply.int(reference_count(entry.value(), engine)),
        None => reply.null(),
    }
    Ok(Effect::Unchanged)
}

fn help(_cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply_help(args, &HELP, reply);
    Ok(())
}
