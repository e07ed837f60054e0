//! Lua values to MessagePack.

use crate::interpreter::State;
use crate::raise::bad_argument;
use mlua::{Lua, LuaString, MultiValue, Table, Value};

/// Tables deeper than this are written as nil, so that circles end.
const NESTING_MAX: usize = 16;

/// `cmsgpack.pack`: all arguments, one behind the other.
pub(super) fn pack(lua: &Lua, state: &State, args: MultiValue) -> mlua::Result<LuaString> {
    if args.is_empty() {
        return Err(bad_argument(lua, 0, "MessagePack pack needs input."));
    }
    let mut out = Vec::new();
    for value in &args {
        write(lua, state, &mut out, value, 0)?;
    }
    lua.create_string(out)
}

fn write(lua: &Lua, state: &State, out: &mut Vec<u8>, value: &Value, level: usize) -> mlua::Result<()> {
    match value {
        Value::String(text) => {
            let text = text.as_bytes();
            state.worked(lua, out.len() + text.len())?;
            write_string(out, &text);
        }
        Value::Boolean(truth) => out.push(if *truth { 0xC3 } else { 0xC2 }),
        Value::Integer(number) => write_integer(out, *number),
        Value::Number(number) => write_number(out, *number),
        Value::Table(table) if level < NESTING_MAX => write_table(lua, state, out, table, level)?,
        _ => out.push(0xC0),
    }
    Ok(())
}

fn write_string(out: &mut Vec<u8>, text: &[u8]) {
    match text.len() {
        len @ 0..32 => out.push(0xA0 | len as u8),
        len @ 32..=0xFF => out.extend_from_slice(&[0xD9, len as u8]),
        len => write_length(out, [0xDA, 0xDB], len),
    }
    out.extend_from_slice(text);
}

/// A length in two or four bytes.
fn write_length(out: &mut Vec<u8>, tags: [u8; 2], len: usize) {
    match u16::try_from(len) {
        Ok(len) => {
            out.push(tags[0]);
            out.extend_from_slice(&len.to_be_bytes());
        }
        Err(_) => {
            out.push(tags[1]);
            out.extend_from_slice(&(len as u32).to_be_bytes());
        }
    }
}

fn write_number(out: &mut Vec<u8>, number: f64) {
    let whole = crate::arguments::truncate(number);
    if whole as f64 == number && !number.is_infinite() {
        return write_integer(out, whole);
    }
    let short = number as f32;
    if f64::from(short) == number {
        out.push(0xCA);
        out.extend_from_slice(&short.to_be_bytes());
    } else {
        out.push(0xCB);
        out.extend_from_slice(&number.to_be_bytes());
    }
}

fn write_integer(out: &mut Vec<u8>, number: i64) {
    let mut tagged = |tag: u8, bytes: &[u8]| {
        out.push(tag);
        out.extend_from_slice(bytes);
    };
    match number {
        -32..=127 => out.push(number as u8),
        128..=0xFF => tagged(0xCC, &[number as u8]),
        0x100..=0xFFFF => tagged(0xCD, &(number as u16).to_be_bytes()),
        0x1_0000..=0xFFFF_FFFF => tagged(0xCE, &(number as u32).to_be_bytes()),
        0x1_0000_0000.. => tagged(0xCF, &number.to_be_bytes()),
        -128..-32 => tagged(0xD0, &[number as u8]),
        -0x8000..-128 => tagged(0xD1, &(number as i16).to_be_bytes()),
        -0x8000_0000..-0x8000 => tagged(0xD2, &(number as i32).to_be_bytes()),
        _ => tagged(0xD3, &number.to_be_bytes()),
    }
}

fn write_table(lua: &Lua, state: &State, out: &mut Vec<u8>, table: &Table, level: usize) -> mlua::Result<()> {
    // Tables that hold each other many times over would else go on without bound.
    state.worked(lua, out.len())?;
    if is_array(table)? {
        let len = table.raw_len();
        match len {
            0..=15 => out.push(0x90 | len as u8),
            _ => write_length(out, [0xDC, 0xDD], len),
        }
        for index in 1..=len {
            // As in the original through the metatable.
            write(lua, state, out, &table.get::<Value>(index)?, level + 1)?;
        }
        return Ok(());
    }
    let pairs = table.pairs::<Value, Value>().count();
    match pairs {
        0..=15 => out.push(0x80 | pairs as u8),
        _ => write_length(out, [0xDE, 0xDF], pairs),
    }
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        write(lua, state, out, &key, level + 1)?;
        write(lua, state, out, &value, level + 1)?;
    }
    Ok(())
}

/// Whether the keys are 1 to their number.
fn is_array(table: &Table) -> mlua::Result<bool> {
    let (mut count, mut most) = (0, 0);
    for pair in table.pairs::<Value, Value>() {
        let (key, _) = pair?;
        let index = match key {
            Value::Integer(index) => index,
            Value::Number(index) if f64::from(index as i32) == index => index as i64,
            _ => return Ok(false),
        };
        if index <= 0 || index > i64::from(i32::MAX) {
            return Ok(false);
        }
        most = most.max(index);
        count += 1;
    }
    Ok(most == count)
}
