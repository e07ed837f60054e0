//! GETBIT and SETBIT: one bit of a string.

use super::offset::parse_offset;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::notify::EventClass;
use tenon_engine::store::types::bitmap::Bit;
use tenon_engine::string::{self, Text};
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// Reads a bit.
pub static GETBIT: Command = Command {
    name: "GETBIT",
    group: Group::Bitmap,
    syntax: "key offset",
    summary: "Returns a bit value by offset.",
    complexity: "O(1)",
    since: "2.2.0",
    arity: Arity::Exactly(3),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(getbit),
};

fn getbit(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let offset = parse_offset(cx, args.get(2))?;
    let byte = cx.read_string()?.and_then(|value| string::byte_at(value, (offset / 8) as usize));
    reply.int((Bit::of(byte.unwrap_or(0), offset) == Bit::Set).into());
    Ok(Effect::Unchanged)
}

/// Sets or clears a bit.
pub static SETBIT: Command = Command {
    name: "SETBIT",
    group: Group::Bitmap,
    syntax: "key offset value",
    summary: "Sets or clears the bit at offset of the string value. Creates the key if it doesn't exist.",
    complexity: "O(1)",
    since: "2.2.0",
    arity: Arity::Exactly(4),
    keys: Keys::ONE,
    flags: Flags::WRITE.or(Flags::DENY_OOM),
    run: Run::Key(setbit),
};

fn setbit(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let offset = parse_offset(cx, args.get(2))?;
    let bit = match parse_i64(args.get(3)) {
        Some(0) => Bit::Clear,
        Some(1) => Bit::Set,
        _ => return Err(CmdError::text("ERR bit is not an integer or out of range")),
    };
    let index = (offset / 8) as usize;
    let slot = cx.find_for_write();
    // A bit behind the end makes the string longer, even when it is zero.
    let before = match slot {
        Some(slot) => string::byte_at(cx.string(slot)?, index),
        None => None,
    };
    let after = bit.put(before.unwrap_or(0), offset);
    reply.int((Bit::of(before.unwrap_or(0), offset) == Bit::Set).into());
    if before == Some(after) {
        return Ok(Effect::Unchanged);
    }
    match slot {
        Some(slot) => {
            cx.write_at(slot, index, Text::Bytes(&[after]));
        }
        None => cx.create_at(index, &Text::Bytes(&[after])),
    }
    cx.notify(EventClass::STRING, "setbit");
    Ok(Effect::Verbatim)
}
