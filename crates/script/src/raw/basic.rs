//! `pcall`, `unpack` and `tostring` on Lua's own stack: as Lua has them but for what errors show, for bounds that C does not
//! keep, and for speed. Nothing here owns anything, as all of it may raise: see calls.rs.
#![allow(unsafe_code)]

use super::calls::push_string;
use crate::arguments::truncate;
use mlua::{Function, Lua, Table, ffi, lua_State};
use std::ffi::c_int;

/// More results than this `unpack` cannot give.
const STACK_MAX: f64 = 8000.0;
/// From here on Lua does not write all digits of an integer.
const DIGITS_END: f64 = 1e14;

/// Puts into the table that the prelude takes them from `unpack`, and the makers `catching(shown)`, which gives a `pcall`
/// that gives `shown(failure)` for failures that are no texts, and `writing_out(tostring)`.
pub(crate) fn register(lua: &Lua, raw: &Table) -> mlua::Result<()> {
    // SAFETY: mlua calls this under protection, with room for a value, and it owns nothing.
    let unpack: Function = unsafe { lua.exec_raw((), |lua| ffi::lua_pushcclosure(lua, unpack, 0))? };
    raw.raw_set("unpack", unpack)?;
    for (name, function) in [("catching", pcall as ffi::lua_CFunction), ("writing_out", tostring)] {
        let make = move |lua: &Lua, beside: Function| -> mlua::Result<Function> {
            // SAFETY: mlua calls this under protection, with the function on the stack, and it owns nothing.
            unsafe { lua.exec_raw(beside, |lua| ffi::lua_pushcclosure(lua, function, 1)) }
        };
        raw.raw_set(name, lua.create_function(make)?)?;
    }
    Ok(())
}

unsafe extern "C-unwind" fn pcall(lua: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this as `register` has made it. Behind as many results as there may be Lua has room for a few values.
    unsafe {
        let given = ffi::lua_gettop(lua);
        if given == 0 {
            // What Redis makes of it.
            ffi::lua_pushboolean(lua, 0);
            push_string(lua, b"attempt to call a boolean value");
            return 2;
        }
        if ffi::lua_pcall(lua, given - 1, ffi::LUA_MULTRET, 0) == ffi::LUA_OK {
            ffi::lua_pushboolean(lua, 1);
            ffi::lua_insert(lua, 1);
            return ffi::lua_gettop(lua);
        }
        if matches!(ffi::lua_type(lua, 1), ffi::LUA_TUSERDATA | ffi::LUA_TLIGHTUSERDATA | ffi::LUA_TTABLE) {
            ffi::lua_pushvalue(lua, ffi::lua_upvalueindex(1));
            ffi::lua_insert(lua, 1);
            ffi::lua_call(lua, 1, 1);
        }
        ffi::lua_pushboolean(lua, 0);
        ffi::lua_insert(lua, 1);
        2
    }
}

/// An argument that is a number; what stands for it where it is absent.
///
/// # Safety
/// `lua` runs a function of C. May raise.
unsafe fn number_or(lua: *mut lua_State, number: c_int, absent: f64) -> f64 {
    // SAFETY: as the caller says.
    unsafe { if ffi::lua_type(lua, number) <= ffi::LUA_TNIL { absent } else { ffi::luaL_checknumber(lua, number) } }
}

unsafe extern "C-unwind" fn unpack(lua: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this; there is room for what is pushed once Lua has been asked.
    unsafe {
        ffi::luaL_checktype(lua, 1, ffi::LUA_TTABLE);
        let from = number_or(lua, 2, 1.0);
        let to = number_or(lua, 3, f64::NAN);
        // The arguments take places on the stack beside the results: those that are absent need none.
        let mut given = if to.is_nan() && ffi::lua_type(lua, 3) <= ffi::LUA_TNIL { 2 } else { 3 };
        let to = if given == 2 { ffi::lua_objlen(lua, 1) as f64 } else { to };
        if given == 2 && ffi::lua_type(lua, 2) <= ffi::LUA_TNIL {
            given = 1;
        }
        ffi::lua_settop(lua, given);
        // C cuts both to an int, between which the difference may overflow (CVE-2025-46817): what is none is refused, as is
        // NaN.
        let are_ints = [from, to].iter().all(|end| *end > -2_147_483_649.0 && *end < 2_147_483_648.0);
        if !are_ints || to - from + 1.0 + f64::from(given) > STACK_MAX {
            return ffi::luaL_error(lua, c"too many results to unpack".as_ptr());
        }
        let (from, to) = (truncate(from) as i32, truncate(to) as i32);
        if from > to {
            return 0;
        }
        let count = to - from + 1;
        if ffi::lua_checkstack(lua, count) == 0 {
            return ffi::luaL_error(lua, c"too many results to unpack".as_ptr());
        }
        for index in 0..count {
            ffi::lua_rawgeti_(lua, 1, from + index);
        }
        count
    }
}

unsafe extern "C-unwind" fn tostring(lua: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this as `register` has made it, with Lua's own beside it.
    unsafe {
        if ffi::lua_type(lua, 1) == ffi::LUA_TNUMBER {
            let value = ffi::lua_tonumber(lua, 1);
            let is_minus_zero = value == 0.0 && value.is_sign_negative();
            if value.abs() < DIGITS_END && value.trunc() == value && !is_minus_zero {
                push_string(lua, itoa::Buffer::new().format(value as i64).as_bytes());
                return 1;
            }
        }
        match ffi::lua_tocfunction(lua, ffi::lua_upvalueindex(1)) {
            Some(function) => function(lua),
            None => 0,
        }
    }
}
