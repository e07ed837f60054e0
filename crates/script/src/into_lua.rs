//! Replies to Lua values, straight from their bytes. Knows no command.

use mlua::{Either, IntoLua, Lua, LuaString, Table, Value};
use tenon_ds::progress;

/// Bytes as they become a Lua string: text, as nearly all are, goes straight to Lua's stack; for what is none mlua knows
/// only the way by a reference, which costs as much again.
pub(crate) fn string(bytes: &[u8]) -> Either<&str, impl IntoLua> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Either::Left(text),
        Err(_) => Either::Right(LuaString::wrap(bytes)),
    }
}

/// The value of the reply that `bytes` starts with, and how many bytes it takes.
///
/// The bytes are replies of our own: well-formed, and no deeper than commands write them.
pub(crate) fn decode(lua: &Lua, bytes: &[u8]) -> mlua::Result<(Value, usize)> {
    let line_end = bytes.iter().position(|byte| *byte == b'\r').expect("a reply has a line");
    let line = &bytes[1..line_end];
    let end = line_end + 2;
    let single = |name: &str, value: Value| -> mlua::Result<(Value, usize)> { Ok((of_one(lua, name, value)?, end)) };
    match bytes[0] {
        b'+' => Ok((of_one(lua, "ok", string(line))?, end)),
        b'-' => {
            let table = lua.create_table_with_capacity(0, 2)?;
            table.raw_set("err", lua.create_string(crate::raise::with_code(&bytes[..line_end]))?)?;
            table.raw_set("ignore_error_stats_update", true)?;
            Ok((Value::Table(table), end))
        }
        b':' => Ok((Value::Number(number(line) as f64), end)),
        b'$' => match number(line) {
            len @ 0.. => {
                let text = &bytes[end..end + len as usize];
                Ok((Value::String(lua.create_string(text)?), end + len as usize + 2))
            }
            _ => Ok((Value::Boolean(false), end)),
        },
        b'*' => match number(line) {
            len @ 0.. => {
                let (table, end) = list(lua, bytes, end, len as usize)?;
                Ok((Value::Table(table), end))
            }
            _ => Ok((Value::Boolean(false), end)),
        },
        b'_' => Ok((Value::Nil, end)),
        b'#' => Ok((Value::Boolean(line == b"t"), end)),
        b',' => {
            let text = std::str::from_utf8(line).expect("a double is ASCII");
            single("double", Value::Number(text.parse().expect("it is a number")))
        }
        b'(' => single("big_number", Value::String(lua.create_string(line)?)),
        b'=' => {
            let text = &bytes[end..end + number(line) as usize];
            let inner = lua.create_table_with_capacity(0, 2)?;
            inner.raw_set("format", lua.create_string(&text[..3])?)?;
            inner.raw_set("string", lua.create_string(&text[4..])?)?;
            let (value, _) = single("verbatim_string", Value::Table(inner))?;
            Ok((value, end + text.len() + 2))
        }
        b'%' => {
            let mut at = end;
            let map = lua.create_table()?;
            for _ in 0..number(line) {
                progress::count(1);
                let (key, len) = decode(lua, &bytes[at..])?;
                at += len;
                let (value, len) = decode(lua, &bytes[at..])?;
                at += len;
                map.raw_set(key, value)?;
            }
            Ok((single("map", Value::Table(map))?.0, at))
        }
        b'~' => {
            let mut at = end;
            let set = lua.create_table()?;
            for _ in 0..number(line) {
                progress::count(1);
                let (member, len) = decode(lua, &bytes[at..])?;
                at += len;
                set.raw_set(member, true)?;
            }
            Ok((single("set", Value::Table(set))?.0, at))
        }
        b'|' => {
            // What is said about a reply is not shown to scripts.
            let mut at = end;
            for _ in 0..2 * number(line) {
                at += decode(lua, &bytes[at..])?.1;
            }
            let (value, len) = decode(lua, &bytes[at..])?;
            Ok((value, at + len))
        }
        b'>' => {
            let (table, end) = list(lua, bytes, end, number(line) as usize)?;
            Ok((Value::Table(table), end))
        }
        other => unreachable!("no reply starts with {:?}", other as char),
    }
}

/// A table with one field.
fn of_one(lua: &Lua, name: &str, value: impl IntoLua) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set(name, value)?;
    Ok(Value::Table(table))
}

/// The string that `bytes` start with, if they start with one that is not null, and how many bytes it takes.
fn bulk(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let rest = bytes.strip_prefix(b"$")?;
    let digits = rest.iter().position(|byte| *byte == b'\r').expect("a length has a line");
    let len = usize::try_from(number(&rest[..digits])).ok()?;
    let start = digits + 3;
    Some((&bytes[start..start + len], start + len + 2))
}

fn list(lua: &Lua, bytes: &[u8], mut at: usize, len: usize) -> mlua::Result<(Table, usize)> {
    let table = lua.create_table_with_capacity(len, 0)?;
    for index in 1..=len {
        progress::count(1);
        if let Some((text, taken)) = bulk(&bytes[at..]) {
            at += taken;
            table.raw_set(index, string(text))?;
            continue;
        }
        let (value, taken) = decode(lua, &bytes[at..])?;
        at += taken;
        if !value.is_nil() {
            table.raw_set(index, value)?;
        }
    }
    Ok((table, at))
}

fn number(line: &[u8]) -> i64 {
    tenon_wire::resp::number::parse_i64(line).expect("a reply's number is one")
}
