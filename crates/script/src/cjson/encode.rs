//! Lua values to JSON.

use super::settings::{Invalid, Values};
use crate::interpreter::State;
use crate::number::write_g;
use crate::raise::{bad_argument, failure, type_name};
use mlua::{Lua, LuaString, MultiValue, Table, Value};

/// Tables in tables, whatever `encode_max_depth` says: where the original's stack of Lua ends too, near enough.
const NESTING_MAX: usize = 1_000;

/// `cjson.encode`.
pub(super) fn encode(lua: &Lua, state: &State, values: &Values, args: &MultiValue) -> mlua::Result<LuaString> {
    if args.len() != 1 {
        return Err(bad_argument(lua, 1, "expected 1 argument"));
    }
    let mut encoder = Encoder { lua, state, values, out: Vec::new() };
    encoder.value(&args[0], 0)?;
    lua.create_string(encoder.out)
}

struct Encoder<'a> {
    lua: &'a Lua,
    state: &'a State,
    values: &'a Values,
    out: Vec<u8>,
}

impl Encoder<'_> {
    fn refuse(&self, value: &Value, why: &str) -> mlua::Error {
        failure(self.lua, format!("Cannot serialise {}: {why}", type_name(value)))
    }

    fn value(&mut self, value: &Value, depth: usize) -> mlua::Result<()> {
        match value {
            Value::String(text) => self.string(&text.as_bytes())?,
            Value::Integer(number) => self.number(*number as f64, value)?,
            Value::Number(number) => self.number(*number, value)?,
            Value::Boolean(truth) => self.out.extend_from_slice(if *truth { b"true" } else { b"false" }),
            Value::Table(table) => self.table(table, depth + 1)?,
            Value::Nil => self.out.extend_from_slice(b"null"),
            Value::LightUserData(pointer) if pointer.0.is_null() => self.out.extend_from_slice(b"null"),
            _ => return Err(self.refuse(value, "type not supported")),
        }
        Ok(())
    }

    fn number(&mut self, number: f64, value: &Value) -> mlua::Result<()> {
        if !number.is_finite() {
            match self.values.encode_invalid {
                Invalid::Refused => return Err(self.refuse(value, "must not be NaN or Inf")),
                Invalid::Written if number.is_nan() => self.out.extend_from_slice(b"nan"),
                Invalid::Written => write_g(&mut self.out, number, self.values.encode_precision),
                Invalid::Null => self.out.extend_from_slice(b"null"),
            }
            return Ok(());
        }
        write_g(&mut self.out, number, self.values.encode_precision);
        Ok(())
    }

    fn string(&mut self, text: &[u8]) -> mlua::Result<()> {
        self.state.worked(self.lua, self.out.len() + text.len())?;
        self.out.push(b'"');
        for &byte in text {
            match byte {
                b'"' | b'\\' | b'/' => self.out.extend_from_slice(&[b'\\', byte]),
                0x08 => self.out.extend_from_slice(b"\\b"),
                0x09 => self.out.extend_from_slice(b"\\t"),
                0x0A => self.out.extend_from_slice(b"\\n"),
                0x0C => self.out.extend_from_slice(b"\\f"),
                0x0D => self.out.extend_from_slice(b"\\r"),
                0..0x20 | 0x7F => self.out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
                _ => self.out.push(byte),
            }
        }
        self.out.push(b'"');
        Ok(())
    }

    fn table(&mut self, table: &Table, depth: usize) -> mlua::Result<()> {
        // Tables that hold each other many times over would else go on without bound.
        self.state.worked(self.lua, self.out.len())?;
        if depth > self.values.encode_depth_max.min(NESTING_MAX) {
            return Err(failure(self.lua, format!("Cannot serialise, excessive nesting ({depth})")));
        }
        match self.array_len(table)? {
            Some(len) if len > 0 => {
                self.out.push(b'[');
                for index in 1..=len {
                    if index > 1 {
                        self.out.push(b',');
                    }
                    self.value(&table.raw_get::<Value>(index)?, depth)?;
                }
                self.out.push(b']');
            }
            _ => self.object(table, depth)?,
        }
        Ok(())
    }

    fn object(&mut self, table: &Table, depth: usize) -> mlua::Result<()> {
        self.out.push(b'{');
        let mut is_first = true;
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair?;
            if !std::mem::take(&mut is_first) {
                self.out.push(b',');
            }
            match &key {
                Value::String(text) => self.string(&text.as_bytes())?,
                Value::Integer(number) => {
                    self.out.push(b'"');
                    self.number(*number as f64, &key)?;
                    self.out.push(b'"');
                }
                Value::Number(number) => {
                    self.out.push(b'"');
                    self.number(*number, &key)?;
                    self.out.push(b'"');
                }
                _ => return Err(self.refuse(&key, "table key must be a number or string")),
            }
            self.out.push(b':');
            self.value(&value, depth)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    /// The largest index when all keys are indexes, and not too many between them lack; else nothing.
    fn array_len(&self, table: &Table) -> mlua::Result<Option<i64>> {
        let (mut items, mut most) = (0_i64, 0_i64);
        for pair in table.pairs::<Value, Value>() {
            let (key, _) = pair?;
            let index = match key {
                Value::Integer(index) if index >= 1 => index,
                Value::Number(index) if index >= 1.0 && index.floor() == index => index as i64,
                _ => return Ok(None),
            };
            most = most.max(index);
            items += 1;
        }
        let values = self.values;
        let is_sparse =
            values.sparse_ratio > 0 && most > items.saturating_mul(values.sparse_ratio) && most > values.sparse_safe;
        if !is_sparse {
            return Ok(Some(most));
        }
        if values.sparse_convert {
            return Ok(None);
        }
        Err(self.refuse(&Value::Table(table.clone()), "excessively sparse array"))
    }
}
