//! COPY: a value once more under another key, in this database or another, with its expiry.

use crate::redis::database::parse_database;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeysCx;
use tenon_engine::errors::CmdError;
use tenon_engine::notify::EventClass;
use tenon_engine::store::entry::{Meta, NewValue, ValueRef};
use tenon_engine::store::types::{Object, ValueType};
use tenon_engine::wire::resp::Reply;

/// Copies a value.
pub static COPY: Command = Command {
    name: "COPY",
    group: Group::Generic,
    syntax: "source destination [DB destination-db] [REPLACE]",
    summary: "Copies the value of a key to a new key.",
    complexity: "O(N) worst case for collections, where N is the number of nested items. O(1) for string values.",
    since: "6.2.0",
    arity: Arity::AtLeast(3),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::READ), KeySpec::at(2, KeyFlags::OVERWRITE)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM),
    run: Run::Keys(copy),
};

fn copy(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let (from, to) = (args.get(1), args.get(2));
    let mut database = cx.database();
    let mut replace = false;
    let mut at = 3;
    while at < args.len() {
        if args.is(at, "REPLACE") {
            replace = true;
        } else if args.is(at, "DB") && at + 1 < args.len() {
            at += 1;
            database = parse_database(cx.engine(), args.get(at))?;
        } else {
            return Err(CmdError::Syntax);
        }
        at += 1;
    }
    if database == cx.database() && from == to {
        return Err(CmdError::SameObject);
    }
    let mut source = cx.key(from);
    let Some(slot) = source.find_for_read() else {
        reply.int(0);
        return Ok(Effect::Unchanged);
    };
    let is_short = !matches!(source.entry(slot).value(), ValueRef::Object(_));
    if !replace && cx.key_in(database, to).find_for_write().is_some() {
        reply.int(0);
        return Ok(Effect::Unchanged);
    }
    if is_short {
        return Ok(store(cx, args, (database, replace), None, reply));
    }
    let steps = |values: &[Option<ValueRef<'_>>]| match values {
        [Some(ValueRef::Object(object))] => object.allocations(),
        _ => 0,
    };
    let make = |_: &Args<'_>, values: Vec<Option<ValueRef<'_>>>| {
        Ok(values.into_iter().flatten().next().and_then(|value| match value {
            ValueRef::Object(object) => Some(Box::new(object.share())),
            ValueRef::Bytes(_) | ValueRef::Int(_) | ValueRef::Packed(..) => None,
        }))
    };
    cx.make_and_store(args, 1..2, reply, steps, make, move |cx, args, reply, object| {
        Ok(store(cx, args, (database, replace), object, reply))
    })
}

/// Stores a copy of the source, of which `object` is the value if that is one.
fn store(
    cx: &mut KeysCx<'_>,
    args: &Args<'_>,
    (database, replace): (usize, bool),
    object: Option<Box<Object>>,
    reply: &mut Reply<'_>,
) -> Effect {
    let (from, to) = (args.get(1), args.get(2));
    let mut target = cx.key_in(database, to);
    let found = target.find();
    if found.is_some() && !replace {
        reply.int(0);
        return Effect::Unchanged;
    }
    let displaced = target.displaced(found);
    let mut source = cx.key(from);
    let Some(slot) = source.find() else {
        reply.int(0);
        return Effect::Unchanged;
    };
    let entry = source.entry(slot);
    let meta = entry.meta();
    let is_raw = entry.is_raw();
    let value_type = ValueType::of(entry.value());
    // A short string or small collection lies inside the entry of its key, which the new entry may displace.
    let bytes;
    let value = match entry.value() {
        ValueRef::Bytes(short) => {
            bytes = short.to_vec();
            NewValue::Bytes(&bytes)
        }
        ValueRef::Int(int) => NewValue::Int(int),
        ValueRef::Packed(form, elements) => {
            bytes = elements.to_vec();
            NewValue::Packed(form, &bytes)
        }
        ValueRef::Object(_) => NewValue::Object(object.expect("it is the source's, at this instant")),
    };
    let access = cx.worker().clock.access.created();
    let mut target = cx.key_in(database, to);
    target.store_moved(value, &Meta { access, ..meta });
    if is_raw && let Some(slot) = target.find() {
        target.mark_raw(slot);
    }
    target.notify(EventClass::GENERIC, "copy_to");
    target.notify_displaced(displaced, value_type);
    reply.int(1);
    Effect::Verbatim
}
