//! Text to a function, by Lua's compiler itself: of mlua's, names and errors are UTF-8 alone. Knows no sandbox.
//!
//! What runs under mlua's protection owns nothing, as all of it may raise: see calls.rs.
#![allow(unsafe_code)]

use mlua::{Lua, Value, ffi};
use std::ffi::c_char;

/// The function that a text is, or the compiler's error as a string. A name goes on to its first NUL.
///
/// # Errors
/// When there is no memory for the name.
pub(crate) fn compile(lua: &Lua, source: &[u8], name: &[u8]) -> mlua::Result<Value> {
    // SAFETY: mlua calls this under protection, with room for 20 values. It owns nothing, so that what raises jumps over no
    // destructor. Lua copies the name and puts a NUL behind it; the copy lies on the stack while the parser, which does
    // not hold it, collects garbage (CVE-2025-49844).
    unsafe {
        lua.exec_raw((), |lua| {
            ffi::lua_pushlstring_(lua, name.as_ptr().cast::<c_char>(), name.len());
            let name = ffi::lua_tolstring(lua, -1, std::ptr::null_mut());
            ffi::luaL_loadbuffer(lua, source.as_ptr().cast::<c_char>(), source.len(), name);
            ffi::lua_remove(lua, -2);
        })
    }
}
