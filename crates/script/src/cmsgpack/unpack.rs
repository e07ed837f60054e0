//! MessagePack to Lua values.

use crate::arguments::{integer, integer_or, string};
use crate::interpreter::State;
use crate::raise::{Raised, failure};
use mlua::{Lua, MultiValue, Value};

/// Containers in containers; the original goes on to the end of Lua's stack, and the recursion here has to end before
/// the machine's does.
const NESTING_MAX: usize = 1_000;
/// More results than this a function cannot give.
const RESULTS_MAX: usize = 7_990;

/// `cmsgpack.unpack`.
pub(super) fn unpack(lua: &Lua, state: &State, args: MultiValue) -> mlua::Result<MultiValue> {
    unpack_full(lua, state, &args, 0, 0)
}

/// `cmsgpack.unpack_one`.
pub(super) fn unpack_one(lua: &Lua, state: &State, args: MultiValue) -> mlua::Result<MultiValue> {
    let offset = integer_or(lua, &args, 2, 0)?;
    unpack_full(lua, state, &args, 1, offset)
}

/// `cmsgpack.unpack_limit`.
pub(super) fn unpack_limit(lua: &Lua, state: &State, args: MultiValue) -> mlua::Result<MultiValue> {
    let limit = integer(lua, &args, 2)?;
    let offset = integer_or(lua, &args, 3, 0)?;
    unpack_full(lua, state, &args, limit, offset)
}

fn unpack_full(lua: &Lua, state: &State, args: &MultiValue, limit: i64, offset: i64) -> mlua::Result<MultiValue> {
    let all = limit == 0 && offset == 0;
    let text = string(lua, args, 1)?;
    let text = text.as_bytes();
    let len = text.len();
    if offset < 0 || limit < 0 {
        // The second number is the length, in the original too.
        let text = format!("Invalid request to unpack with offset of {} and limit of {}.", offset as i32, len as i32);
        return Err(failure(lua, text));
    }
    if offset as u64 > len as u64 {
        let text = format!("Start offset {} greater than input length {}.", offset as i32, len as i32);
        return Err(failure(lua, text));
    }
    let most = if all { i64::from(i32::MAX) } else { limit };
    let mut input = Input { lua, state, left: &text[offset as usize..] };
    let mut values = Vec::new();
    while !input.left.is_empty() && (values.len() as i64) < most {
        if values.len() >= RESULTS_MAX {
            let text = "stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)";
            return Err(failure(lua, text));
        }
        values.push(match input.value(0) {
            Ok(value) => value,
            Err(Bad::Short) => return Err(failure(lua, "Missing bytes in input.")),
            Err(Bad::Format) => return Err(failure(lua, "Bad data format in input.")),
            Err(Bad::Lua(error)) => return Err(error),
        });
    }
    if !all {
        let next = if input.left.is_empty() { -1 } else { (len - input.left.len()) as i64 };
        values.insert(0, Value::Integer(next));
    }
    Ok(values.into_iter().collect())
}

/// Why there is no value.
enum Bad {
    Short,
    Format,
    Lua(mlua::Error),
}

impl From<mlua::Error> for Bad {
    fn from(error: mlua::Error) -> Bad {
        Bad::Lua(error)
    }
}

struct Input<'a> {
    lua: &'a Lua,
    state: &'a State,
    left: &'a [u8],
}

impl<'a> Input<'a> {
    fn bytes(&mut self, len: usize) -> Result<&'a [u8], Bad> {
        let (bytes, left) = self.left.split_at_checked(len).ok_or(Bad::Short)?;
        self.left = left;
        Ok(bytes)
    }

    fn fixed<const LEN: usize>(&mut self) -> Result<[u8; LEN], Bad> {
        Ok(self.bytes(LEN)?.try_into().expect("so many were taken"))
    }

    /// A length in so many bytes.
    fn length(&mut self, bytes: usize) -> Result<usize, Bad> {
        Ok(self.bytes(bytes)?.iter().fold(0, |len, byte| len << 8 | usize::from(*byte)))
    }

    fn value(&mut self, level: usize) -> Result<Value, Bad> {
        self.state.worked(self.lua, 0)?;
        let [tag] = self.fixed()?;
        let number = |value: f64| Ok(Value::Number(value));
        match tag {
            0x00..=0x7F => number(f64::from(tag)),
            0x80..=0x8F => self.map(usize::from(tag & 0xF), level),
            0x90..=0x9F => self.array(usize::from(tag & 0xF), level),
            0xA0..=0xBF => self.text(usize::from(tag & 0x1F)),
            0xC0 => Ok(Value::Nil),
            0xC2 => Ok(Value::Boolean(false)),
            0xC3 => Ok(Value::Boolean(true)),
            0xCA => number(f32::from_be_bytes(self.fixed()?).into()),
            0xCB => number(f64::from_be_bytes(self.fixed()?)),
            0xCC => number(u8::from_be_bytes(self.fixed()?).into()),
            0xCD => number(u16::from_be_bytes(self.fixed()?).into()),
            0xCE => number(u32::from_be_bytes(self.fixed()?).into()),
            // Signed, in the original too.
            0xCF => number(i64::from_be_bytes(self.fixed()?) as f64),
            0xD0 => number(i8::from_be_bytes(self.fixed()?).into()),
            0xD1 => number(i16::from_be_bytes(self.fixed()?).into()),
            0xD2 => number(i32::from_be_bytes(self.fixed()?).into()),
            0xD3 => number(i64::from_be_bytes(self.fixed()?) as f64),
            0xD9 => self.sized_text(1),
            0xDA => self.sized_text(2),
            0xDB => self.sized_text(4),
            0xDC | 0xDD => {
                let len = self.length(if tag == 0xDC { 2 } else { 4 })?;
                self.array(len, level)
            }
            0xDE | 0xDF => {
                let len = self.length(if tag == 0xDE { 2 } else { 4 })?;
                self.map(len, level)
            }
            0xE0..=0xFF => number(f64::from(tag as i8)),
            _ => Err(Bad::Format),
        }
    }

    fn sized_text(&mut self, bytes: usize) -> Result<Value, Bad> {
        let len = self.length(bytes)?;
        self.text(len)
    }

    fn text(&mut self, len: usize) -> Result<Value, Bad> {
        let text = self.bytes(len)?;
        Ok(Value::String(self.lua.create_string(text)?))
    }

    /// What is said of a length is not believed: a table grows as its elements come.
    fn array(&mut self, len: usize, level: usize) -> Result<Value, Bad> {
        if level >= NESTING_MAX {
            return Err(failure(self.lua, "stack overflow (in function mp_decode_to_lua_array)").into());
        }
        let table = self.lua.create_table()?;
        for index in 1..=len {
            let value = self.value(level + 1)?;
            table.raw_set(index, value)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, len: usize, level: usize) -> Result<Value, Bad> {
        if level >= NESTING_MAX {
            return Err(failure(self.lua, "stack overflow (in function mp_decode_to_lua_hash)").into());
        }
        let table = self.lua.create_table()?;
        for _ in 0..len {
            let key = self.value(level + 1)?;
            let value = self.value(level + 1)?;
            match key {
                Value::Nil => return Err(Bad::Lua(Raised::Text(b"table index is nil".to_vec()).into())),
                Value::Number(number) if number.is_nan() => {
                    return Err(Bad::Lua(Raised::Text(b"table index is NaN".to_vec()).into()));
                }
                key => table.raw_set(key, value)?,
            }
        }
        Ok(Value::Table(table))
    }
}
