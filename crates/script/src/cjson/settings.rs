//! The table of `cjson` and its settings.

use super::{decode, encode};
use crate::arguments::{at_most, get, integer, is_absent, string};
use crate::interpreter::{State, function};
use crate::raise::bad_argument;
use crate::raw::stack::{Body, register};
use mlua::{Lua, MultiValue, Table, Value};
use std::cell::Cell;
use std::rc::Rc;

/// What becomes of numbers that JSON has no words for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Invalid {
    /// An error.
    Refused,
    /// Written as C does.
    Written,
    /// Written as null.
    Null,
}

/// The settings of one `cjson`.
///
/// In Redis they hold for all scripts to come. Here a script's end puts them back: each worker has a state of its own, so
/// that what another script finds would be a matter of chance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values {
    pub(super) sparse_convert: bool,
    pub(super) sparse_ratio: i64,
    pub(super) sparse_safe: i64,
    pub(super) encode_depth_max: usize,
    pub(super) encode_invalid: Invalid,
    pub(super) encode_precision: usize,
    keep_buffer: bool,
    pub(super) decode_depth_max: usize,
    pub(super) decode_invalid: bool,
}

const INITIAL: Values = Values {
    sparse_convert: false,
    sparse_ratio: 2,
    sparse_safe: 10,
    encode_depth_max: 1000,
    encode_invalid: Invalid::Refused,
    encode_precision: 14,
    keep_buffer: true,
    decode_depth_max: 1000,
    decode_invalid: true,
};

/// Where the settings of one `cjson` are kept.
#[derive(Debug)]
pub(crate) struct Settings(Cell<Values>);

impl Default for Settings {
    fn default() -> Settings {
        Settings(Cell::new(INITIAL))
    }
}

impl Settings {
    /// Puts all of them back.
    pub(crate) fn reset(&self) {
        self.0.set(INITIAL);
    }

    pub(super) fn get(&self) -> Values {
        self.0.get()
    }

    fn change(&self, change: impl FnOnce(&mut Values)) {
        let mut values = self.0.get();
        change(&mut values);
        self.0.set(values);
    }
}

type Call = fn(&Lua, &Rc<State>, &Rc<Settings>, MultiValue) -> mlua::Result<MultiValue>;

/// The table.
pub(crate) fn library(lua: &Lua, state: &Rc<State>, settings: &Rc<Settings>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let often: [(&str, Body); 2] = [("encode", encode::encode), ("decode", decode::decode)];
    register(lua, state, settings, &table, &often)?;
    let functions: [(&str, Call); 8] = [
        ("encode_sparse_array", encode_sparse_array),
        ("encode_max_depth", encode_max_depth),
        ("decode_max_depth", decode_max_depth),
        ("encode_number_precision", encode_number_precision),
        ("encode_keep_buffer", encode_keep_buffer),
        ("encode_invalid_numbers", encode_invalid_numbers),
        ("decode_invalid_numbers", decode_invalid_numbers),
        // Another cjson with settings of its own.
        ("new", |lua, state, _, _| Ok(one(Value::Table(library(lua, state, &Rc::default())?)))),
    ];
    for (name, call) in functions {
        let (state, settings) = (Rc::clone(state), Rc::clone(settings));
        let own = Rc::clone(&state);
        table.raw_set(name, function(lua, &own, move |lua, _, args| call(lua, &state, &settings, args))?)?;
    }
    table.raw_set("null", Value::NULL)?;
    table.raw_set("_NAME", "cjson")?;
    table.raw_set("_VERSION", "2.1.0")?;
    Ok(table)
}

fn one(value: Value) -> MultiValue {
    std::iter::once(value).collect()
}

/// An integer setting that argument `number` may change.
fn bounded(lua: &Lua, args: &MultiValue, number: usize, least: i64, most: i64) -> mlua::Result<Option<i64>> {
    if is_absent(args, number) {
        return Ok(None);
    }
    let value = integer(lua, args, number)?;
    if !(least..=most).contains(&value) {
        // The original names the first argument whichever it is.
        return Err(bad_argument(lua, 1, &format!("expected integer between {least} and {most}")));
    }
    Ok(Some(value))
}

/// A setting that argument `number` may change to a truth value or to one of these words, given as its index.
fn option(lua: &Lua, args: &MultiValue, number: usize, words: &[&str]) -> mlua::Result<Option<usize>> {
    if is_absent(args, number) {
        return Ok(None);
    }
    if let Some(Value::Boolean(truth)) = get(args, number) {
        return Ok(Some(usize::from(*truth)));
    }
    let word = string(lua, args, number)?;
    match words.iter().position(|known| word.as_bytes() == known.as_bytes()) {
        Some(index) => Ok(Some(index)),
        None => Err(bad_argument(lua, number, &format!("invalid option '{}'", word.to_string_lossy()))),
    }
}

const OFF_ON: [&str; 2] = ["off", "on"];
const INT_MAX: i64 = i32::MAX as i64;

fn encode_sparse_array(
    lua: &Lua,
    _: &Rc<State>,
    settings: &Rc<Settings>,
    args: MultiValue,
) -> mlua::Result<MultiValue> {
    at_most(lua, &args, 3)?;
    let convert = option(lua, &args, 1, &OFF_ON)?;
    let ratio = bounded(lua, &args, 2, 0, INT_MAX)?;
    let safe = bounded(lua, &args, 3, 0, INT_MAX)?;
    settings.change(|values| {
        values.sparse_convert = convert.map_or(values.sparse_convert, |convert| convert == 1);
        values.sparse_ratio = ratio.unwrap_or(values.sparse_ratio);
        values.sparse_safe = safe.unwrap_or(values.sparse_safe);
    });
    let values = settings.get();
    let now = [
        Value::Boolean(values.sparse_convert),
        Value::Integer(values.sparse_ratio),
        Value::Integer(values.sparse_safe),
    ];
    Ok(now.into_iter().collect())
}

fn encode_max_depth(lua: &Lua, _: &Rc<State>, settings: &Rc<Settings>, args: MultiValue) -> mlua::Result<MultiValue> {
    at_most(lua, &args, 1)?;
    if let Some(depth) = bounded(lua, &args, 1, 1, INT_MAX)? {
        settings.change(|values| values.encode_depth_max = depth as usize);
    }
    Ok(one(Value::Integer(settings.get().encode_depth_max as i64)))
}

fn decode_max_depth(lua: &Lua, _: &Rc<State>, settings: &Rc<Settings>, args: MultiValue) -> mlua::Result<MultiValue> {
    at_most(lua, &args, 1)?;
    if let Some(depth) = bounded(lua, &args, 1, 1, INT_MAX)? {
        settings.change(|values| values.decode_depth_max = depth as usize);
    }
    Ok(one(Value::Integer(settings.get().decode_depth_max as i64)))
}

fn encode_number_precision(
    lua: &Lua,
    _: &Rc<State>,
    settings: &Rc<Settings>,
    args: MultiValue,
) -> mlua::Result<MultiValue> {
    at_most(lua, &args, 1)?;
    if let Some(precision) = bounded(lua, &args, 1, 1, 14)? {
        settings.change(|values| values.encode_precision = precision as usize);
    }
    Ok(one(Value::Integer(settings.get().encode_precision as i64)))
}

fn encode_keep_buffer(lua: &Lua, _: &Rc<State>, settings: &Rc<Settings>, args: MultiValue) -> mlua::Result<MultiValue> {
    at_most(lua, &args, 1)?;
    if let Some(keep) = option(lua, &args, 1, &OFF_ON)? {
        // There is no buffer to keep; the setting is remembered for who asks.
        settings.change(|values| values.keep_buffer = keep == 1);
    }
    Ok(one(Value::Boolean(settings.get().keep_buffer)))
}

fn encode_invalid_numbers(
    lua: &Lua,
    _: &Rc<State>,
    settings: &Rc<Settings>,
    args: MultiValue,
) -> mlua::Result<MultiValue> {
    at_most(lua, &args, 1)?;
    if let Some(index) = option(lua, &args, 1, &["off", "on", "null"])? {
        let invalid = [Invalid::Refused, Invalid::Written, Invalid::Null][index];
        settings.change(|values| values.encode_invalid = invalid);
    }
    Ok(one(match settings.get().encode_invalid {
        Invalid::Refused => Value::Boolean(false),
        Invalid::Written => Value::Boolean(true),
        Invalid::Null => Value::String(lua.create_string("null")?),
    }))
}

fn decode_invalid_numbers(
    lua: &Lua,
    _: &Rc<State>,
    settings: &Rc<Settings>,
    args: MultiValue,
) -> mlua::Result<MultiValue> {
    at_most(lua, &args, 1)?;
    if let Some(on) = option(lua, &args, 1, &OFF_ON)? {
        settings.change(|values| values.decode_invalid = on == 1);
    }
    Ok(one(Value::Boolean(settings.get().decode_invalid)))
}
