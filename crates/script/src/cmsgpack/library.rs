//! The table of `cmsgpack`.

use super::{pack, unpack};
use crate::interpreter::State;
use crate::raw::stack::{Body, register};
use mlua::{Lua, Table};
use std::rc::Rc;

const FUNCTIONS: [(&str, Body); 4] = [
    ("pack", pack::pack),
    ("unpack", unpack::unpack),
    ("unpack_one", unpack::unpack_one),
    ("unpack_limit", unpack::unpack_limit),
];

/// The table.
pub(crate) fn library(lua: &Lua, state: &Rc<State>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    register(lua, state, &state.json, &table, &FUNCTIONS)?;
    table.raw_set("_NAME", "cmsgpack")?;
    table.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    table.raw_set("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo")?;
    table.raw_set("_DESCRIPTION", "MessagePack C implementation for Lua")?;
    Ok(table)
}
