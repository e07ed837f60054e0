//! Functions of Lua's own libraries behind a look at their first argument: they know no read-only tables. Knows of these
//! only that a table has what lies behind each.
//!
//! The function of C runs in the frame of ours, so that its errors name what the script has called, and where, and it
//! counts the arguments that there are. Nothing here owns anything, as all of it may raise: see calls.rs.
#![allow(unsafe_code)]

use super::calls::push_string;
use mlua::{Function, Lua, Table, ffi, lua_State};
use std::ffi::{c_int, c_void};

const READONLY: &[u8] = b"Attempt to modify a readonly table";

/// Puts the makers into the table that the prelude takes them from: `reading(f, behind)` and `writing(f, behind)` give a
/// function that does what `f` does, with what `behind` has of the first argument in its place, or refuses that argument
/// if `behind` has it; `inserting(insert, behind, slowly)` gives one that writes, and has `slowly` do what C would be long
/// at; `removing(remove, behind)` one that has nothing to remove from what `behind` has; `walking(behind, next, reading)`
/// gives `pairs`, by `reading` for what `behind` has.
pub(crate) fn register(lua: &Lua, raw: &Table) -> mlua::Result<()> {
    let makers: [(&str, ffi::lua_CFunction); 4] =
        [("reading", reading), ("writing", writing), ("inserting", inserting), ("removing", removing)];
    for (name, guarding) in makers {
        let make = move |lua: &Lua, (f, behind, beside): (Function, Table, Option<Function>)| {
            guard(lua, f, behind, beside, guarding)
        };
        raw.raw_set(name, lua.create_function(make)?)?;
    }
    let make = |lua: &Lua, functions: (Table, Function, Function)| -> mlua::Result<Function> {
        // SAFETY: mlua calls this under protection, with the three on the stack, and it owns nothing.
        unsafe { lua.exec_raw(functions, |lua| ffi::lua_pushcclosure(lua, walking, 3)) }
    };
    raw.raw_set("walking", lua.create_function(make)?)
}

fn guard(
    lua: &Lua,
    f: Function,
    behind: Table,
    beside: Option<Function>,
    guard: ffi::lua_CFunction,
) -> mlua::Result<Function> {
    // SAFETY: mlua calls this under protection, with the three arguments on the stack and room for more, and it owns nothing.
    // It leaves one function. One of C without upvalues needs none in another's frame.
    let guarded: Option<Function> = unsafe {
        lua.exec_raw((behind, beside, f), |lua| {
            let is_bare = ffi::lua_getupvalue(lua, -1, 1).is_null();
            match ffi::lua_tocfunction(lua, -1) {
                Some(function) if is_bare => {
                    ffi::lua_pushlightuserdata(lua, function as *mut c_void);
                    ffi::lua_replace(lua, -2);
                    ffi::lua_insert(lua, -2);
                    ffi::lua_pushcclosure(lua, guard, 3);
                }
                _ => ffi::lua_settop(lua, 0),
            }
        })?
    };
    Ok(guarded.expect("Lua's own functions are of C"))
}

/// Pushes what lies behind the first argument where there is something. Gives whether there is.
///
/// # Safety
/// `lua` runs a function of C whose first upvalue is the table to look into. May raise.
unsafe fn push_behind(lua: *mut lua_State) -> bool {
    // SAFETY: as the caller says, and a function of C has room for 20 values.
    unsafe {
        // What something lies behind has a metatable, which no script takes from it; few other tables have one.
        if ffi::lua_gettop(lua) == 0 || ffi::lua_getmetatable(lua, 1) == 0 {
            return false;
        }
        ffi::lua_pop(lua, 1);
        ffi::lua_pushvalue(lua, 1);
        ffi::lua_rawget(lua, ffi::lua_upvalueindex(1));
        let is_something = ffi::lua_type(lua, -1) != ffi::LUA_TNIL;
        if !is_something {
            ffi::lua_pop(lua, 1);
        }
        is_something
    }
}

/// Raises that a table is read-only where something lies behind the first argument.
///
/// # Safety
/// As for [`push_behind`].
unsafe fn refuse_shared(lua: *mut lua_State) {
    // SAFETY: as the caller says, with room for a text.
    unsafe {
        if push_behind(lua) {
            push_string(lua, READONLY);
            ffi::lua_error(lua)
        }
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
        }
        go_on(lua)
    }
}

unsafe extern "C-unwind" fn writing(lua: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this as `guard` has made it.
    unsafe {
        refuse_shared(lua);
        go_on(lua)
    }
}

unsafe extern "C-unwind" fn inserting(lua: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this as `guard` has made it, with the function beside that takes the three arguments.
    unsafe {
        ffi::luaL_checktype(lua, 1, ffi::LUA_TTABLE);
        refuse_shared(lua);
        if ffi::lua_gettop(lua) == 3 {
            let at = ffi::luaL_checknumber(lua, 2).trunc();
            // What lies between is moved in one go, which nobody could interrupt where it is more than the table is long.
            if !(1.0..=f64::from(i32::MAX)).contains(&at) {
                ffi::lua_pushnumber(lua, at);
                ffi::lua_replace(lua, 2);
                ffi::lua_pushvalue(lua, ffi::lua_upvalueindex(3));
                ffi::lua_insert(lua, 1);
                ffi::lua_call(lua, 3, 0);
                return 0;
            }
        }
        go_on(lua)
    }
}

unsafe extern "C-unwind" fn removing(lua: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this as `guard` has made it.
    unsafe {
        ffi::luaL_checktype(lua, 1, ffi::LUA_TTABLE);
        // Of what is shared there is no element that could go.
        if push_behind(lua) { 0 } else { go_on(lua) }
    }
}

unsafe extern "C-unwind" fn walking(lua: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this as `register` has made it: upvalue 1 is the table, 2 `next`, 3 the one that reads.
    unsafe {
        ffi::luaL_checktype(lua, 1, ffi::LUA_TTABLE);
        let walk = if push_behind(lua) { 3 } else { 2 };
        ffi::lua_pushvalue(lua, ffi::lua_upvalueindex(walk));
        ffi::lua_pushvalue(lua, 1);
        ffi::lua_pushnil(lua);
        3
    }
}
