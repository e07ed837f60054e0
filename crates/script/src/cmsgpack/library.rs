//! The table of `cmsgpack`.

use super::{pack, unpack};
use crate::interpreter::{State, function};
use mlua::{Lua, Table};
use std::rc::Rc;

/// The table.
pub(crate) fn library(lua: &Lua, state: &Rc<State>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("pack", function(lua, state, pack::pack)?)?;
    table.raw_set("unpack", function(lua, state, unpack::unpack)?)?;
    table.raw_set("unpack_one", function(lua, state, unpack::unpack_one)?)?;
    table.raw_set("unpack_limit", function(lua, state, unpack::unpack_limit)?)?;
    table.raw_set("_NAME", "cmsgpack")?;
    table.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    table.raw_set("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo")?;
    table.raw_set("_DESCRIPTION", "MessagePack C implementation for Lua")?;
    Ok(table)
}
