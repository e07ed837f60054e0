//! The arguments of a Rust function, taken as C functions of Lua take theirs. Knows no function.

use crate::raise::{bad_argument, wrong_type};
use mlua::{Lua, LuaString, MultiValue, Value};

/// Argument `number`, from 1.
pub(crate) fn get(args: &MultiValue, number: usize) -> Option<&Value> {
    args.get(number - 1)
}

/// Whether argument `number` is absent or nil.
pub(crate) fn is_absent(args: &MultiValue, number: usize) -> bool {
    matches!(get(args, number), None | Some(Value::Nil))
}

/// A string, or a number as one.
pub(crate) fn string(lua: &Lua, args: &MultiValue, number: usize) -> mlua::Result<LuaString> {
    match get(args, number) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(value @ (Value::Integer(_) | Value::Number(_))) => {
            Ok(lua.coerce_string(value.clone())?.expect("a number has a text"))
        }
        value => Err(wrong_type(lua, number, "string", value)),
    }
}

/// A number, or a string that reads as one.
pub(crate) fn double(lua: &Lua, args: &MultiValue, number: usize) -> mlua::Result<f64> {
    match get(args, number) {
        Some(Value::Integer(value)) => Ok(*value as f64),
        Some(Value::Number(value)) => Ok(*value),
        Some(value @ Value::String(_)) => match lua.coerce_number(value.clone())? {
            Some(value) => Ok(value),
            None => Err(wrong_type(lua, number, "number", Some(value))),
        },
        value => Err(wrong_type(lua, number, "number", value)),
    }
}

/// A number cut to an integer; what does not fit becomes the least, as the processor cuts it.
pub(crate) fn integer(lua: &Lua, args: &MultiValue, number: usize) -> mlua::Result<i64> {
    Ok(truncate(double(lua, args, number)?))
}

/// A number cut to 64 bits and then to 32, as a cast to `int` does.
pub(crate) fn int(lua: &Lua, args: &MultiValue, number: usize) -> mlua::Result<i32> {
    Ok(integer(lua, args, number)? as i32)
}

/// What the processor makes of a double that is cast to a 64-bit integer.
pub(crate) fn truncate(value: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) { value as i64 } else { i64::MIN }
}

/// Refuses more than `most` arguments, in the words of cjson.
pub(crate) fn at_most(lua: &Lua, args: &MultiValue, most: usize) -> mlua::Result<()> {
    if args.len() > most { Err(bad_argument(lua, most + 1, "found too many arguments")) } else { Ok(()) }
}
