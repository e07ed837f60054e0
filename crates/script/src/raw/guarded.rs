//! Functions of Lua's own libraries behind a look at their first argument: they know no read-only tables. Knows of these
//! only that a table has what lies behind each.
//!
//! The function of C runs in the frame of ours, so that its errors name what the script has called, and where, and it
//! counts the arguments that there are. Nothing here owns anything, as all of it may raise: see calls.rs.
#![allow(unsafe_code)]

use mlua::{Function, Lua, Table, ffi, lua_State};
use std::ffi::{c_char, c_int, c_void};

const READONLY: &[u8] = b"Attempt to modify a readonly table";

/// Puts the makers into the table that the prelude takes them from: `reading(f, behind)` and `writing(f, behind)` give a
/// function that does what `f` does, with what `behind` has of the first argument in its place, or refuses that argument
/// if `behind` has it.
pub(crate) fn register(lua: &Lua, raw: &Table) -> mlua::Result<()> {
    raw.raw_set("reading", lua.create_function(|lua, (f, behind)| guard(lua, f, behind, reading))?)?;
    raw.raw_set("writing", lua.create_function(|lua, (f, behind)| guard(lua, f, behind, writing))?)
}

fn guard(lua: &Lua, f: Function, behind: Table, guard: ffi::lua_CFunction) -> mlua::Result<Function> {
    // SAFETY: mlua calls this under protection, with the two arguments on the stack and room for more, and it owns nothing.
    // It leaves one function. One of C without upvalues needs none in another's frame.
    let guarded: Option<Function> = unsafe {
        lua.exec_raw((behind, f), |lua| {
            let is_bare = ffi::lua_getupvalue(lua, -1, 1).is_null();
            match ffi::lua_tocfunction(lua, -1) {
                Some(function) if is_bare => {
                    ffi::lua_pushlightuserdata(lua, function as *mut c_void);
                    ffi::lua_remove(lua, -2);
                    ffi::lua_pushcclosure(lua, guard, 2);
                }
                _ => ffi::lua_settop(lua, 0),
            }
        })?
    };
    Ok(guarded.expect("Lua's own functions are of C"))
}

/// Pushes what lies behind the first argument, or nil. Gives whether there is something.
///
/// # Safety
/// `lua` runs a function that [`guard`] has made. May raise.
unsafe fn push_behind(lua: *mut lua_State) -> bool {
    // SAFETY: upvalue 1 is the table, and a function of C has room for 20 values. Without an argument there is nothing to
    // look for, and nil is in no table.
    unsafe {
        if ffi::lua_gettop(lua) == 0 {
            ffi::lua_pushnil(lua);
            return false;
        }
        ffi::lua_pushvalue(lua, 1);
        ffi::lua_rawget(lua, ffi::lua_upvalueindex(1));
        ffi::lua_type(lua, -1) != ffi::LUA_TNIL
    }
}

/// Runs the guarded function in the frame of the one that runs.
///
/// # Safety
/// `lua` runs a function that [`guard`] has made, with its arguments alone on the stack. May raise.
unsafe fn go_on(lua: *mut lua_State) -> c_int {
    // SAFETY: upvalue 2 is a function's address as `guard` has put it there.
    unsafe {
        let function = ffi::lua_touserdata(lua, ffi::lua_upvalueindex(2));
        std::mem::transmute::<*mut c_void, ffi::lua_CFunction>(function)(lua)
    }
}

unsafe extern "C-unwind" fn reading(lua: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this as `guard` has made it. What lies behind takes the place of the argument, which is there.
    unsafe {
        if push_behind(lua) {
            ffi::lua_replace(lua, 1);
        } else {
            ffi::lua_pop(lua, 1);
        }
        go_on(lua)
    }
}

unsafe extern "C-unwind" fn writing(lua: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this as `guard` has made it, with room for a text.
    unsafe {
        let is_shared = push_behind(lua);
        ffi::lua_pop(lua, 1);
        if is_shared {
            ffi::lua_pushlstring_(lua, READONLY.as_ptr().cast::<c_char>(), READONLY.len());
            ffi::lua_error(lua)
        }
        go_on(lua)
    }
}
