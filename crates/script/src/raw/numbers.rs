//! Functions of libraries that give a number, and take no memory of Lua's for it: they get along without what those of
//! stack.rs need to make values. Knows no library.
//!
//! What must hold here is what stack.rs says. A body cannot change the stack, which it only borrows; and memory is
//! limited as it is for the script until something is wrong, which takes a text.
#![allow(unsafe_code)]

use super::calls::shared;
use super::stack::{Ending, Fault, Stack, end, register_by, try_call};
use crate::cjson::Settings;
use crate::interpreter::{State, Unlimited};
use mlua::{Lua, Table, ffi, lua_State};
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// A function of a library that gives a number.
pub(crate) type Body = fn(&Stack<'_>) -> Result<f64, Fault>;

/// Puts functions into a library's table.
pub(crate) fn register(
    lua: &Lua,
    state: &Rc<State>,
    settings: &Rc<Settings>,
    table: &Table,
    functions: &[(&str, Body)],
) -> mlua::Result<()> {
    let functions = functions.iter().map(|(name, body)| (*name, *body as *mut c_void));
    register_by(enter, lua, (state, settings), table, functions)
}

unsafe extern "C-unwind" fn enter(lua: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this as `register` has made it. Nothing here is owned.
    unsafe {
        if let Some(number) = answer(lua) {
            ffi::lua_pushnumber(lua, number);
            return 1;
        }
        try_call(lua);
        let ending = fail(lua);
        end(lua, ending)
    }
}

/// Runs the function's body. What is wrong is in [`State::fault`].
///
/// # Safety
/// `lua` runs [`enter`]. Raises nothing, and lets no panic out.
#[inline(never)]
unsafe fn answer(lua: *mut lua_State) -> Option<f64> {
    // SAFETY: as the caller says: upvalue 3 is the body as `register` has put it there.
    let (state, body, args) = unsafe {
        let body = ffi::lua_touserdata(lua, ffi::lua_upvalueindex(3));
        (shared(lua), std::mem::transmute::<*mut c_void, Body>(body), ffi::lua_gettop(lua) as usize)
    };
    let called = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: as the caller says; a body cannot push anything.
        body(&unsafe { Stack::new(lua, state, args) })
    }));
    match called {
        Ok(Ok(number)) => return Some(number),
        Ok(Err(fault)) => _ = state.fault.replace(Some(fault)),
        Err(panic) => _ = state.panic.replace(Some(panic)),
    }
    None
}

/// Leaves on the stack what is raised.
///
/// # Safety
/// `lua` runs [`enter`], and a call can be made. Raises nothing, and lets no panic out.
#[cold]
unsafe fn fail(lua: *mut lua_State) -> Ending {
    // SAFETY: as the caller says.
    let (state, args) = unsafe { (shared(lua), ffi::lua_gettop(lua) as usize) };
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let owner = state.lua.upgrade();
        let _unlimited = Unlimited::new(&owner, state);
        let fault = state.fault.take();
        // SAFETY: as the caller says; memory is unlimited.
        fault.map(|fault| unsafe { Stack::new(lua, state, args) }.end(fault))
    }));
    ended.ok().flatten().unwrap_or(Ending::Finish)
}
