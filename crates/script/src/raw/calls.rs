//! The ways that every script takes, on Lua's own stack: its keys and arguments going in, its calls of commands, and
//! their replies. mlua's safe functions take five to ten times the instructions for the same. Knows no command.
//!
//! # What must hold here
//!
//! Lua raises errors by jumping over the frames in between, and no destructor of theirs runs. So the functions of this
//! file are of two kinds, and none is of both:
//!
//! - those that call what can raise (`lua_createtable`, `lua_pushlstring`, `lua_rawset`, `lua_rawseti`, `lua_checkstack`,
//!   `lua_concat`, `lua_call`) own nothing that has a destructor, nor do those that call them;
//! - [`begin`], [`settle`] and [`results::write`], which own what they like, call nothing that can raise, and let no
//!   panic out.
//!
//! Whatever is not usual (errors, a script that has to stop, replies of RESP3) is left to a safe function, `finish`, which
//! has mlua raise it.
#![allow(unsafe_code)]

use super::results;
use crate::host::{HOST, Words};
use crate::interpreter::State;
use crate::redis::{NO_ARGUMENTS, NO_WORDS, Odd, TOO_LONG, in_one_piece, push_number};
use mlua::ffi;
use mlua::{Function, Lua, lua_State};
use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tenon_ds::progress;
use tenon_wire::resp::Proto;
use tenon_wire::resp::number::parse_i64;

/// Bytes of a reply's buffer that are kept for the next call.
const KEPT: usize = 64 * 1024;

/// `redis.call` or `redis.pcall`; `finish` gives what its call has come to where that is not usual.
pub(crate) fn caller(lua: &Lua, state: &State, finish: &Function) -> mlua::Result<Function> {
    closure(lua, state, finish, call)
}

/// A function that calls `runner` with the function that it is given, and with the keys and arguments in
/// [`State::input`], and writes what that returns. Gives what it raises instead.
pub(crate) fn runner(lua: &Lua, state: &State, runner: &Function) -> mlua::Result<Function> {
    let shared = std::ptr::from_ref(state).cast_mut().cast::<c_void>();
    // SAFETY: as in `closure`; a function of C has room for 20 values.
    unsafe {
        lua.exec_raw(runner, |lua| {
            ffi::lua_pushlightuserdata(lua, shared);
            ffi::lua_insert(lua, -2);
            for name in results::NAMES {
                push_string(lua, name);
            }
            ffi::lua_pushcclosure(lua, run, 2 + results::NAMES.len() as c_int);
        })
    }
}

/// A function of C with the state and a function beside it, its upvalues 1 and 2.
pub(super) fn closure(
    lua: &Lua,
    state: &State,
    beside: &Function,
    function: mlua::lua_CFunction,
) -> mlua::Result<Function> {
    let shared = std::ptr::from_ref(state).cast_mut().cast::<c_void>();
    // SAFETY: mlua calls this with `beside` alone on the stack and room for two values more, under protection, and it
    // owns nothing. What it leaves is one function.
    unsafe {
        lua.exec_raw(beside, |lua| {
            ffi::lua_pushlightuserdata(lua, shared);
            ffi::lua_insert(lua, -2);
            ffi::lua_pushcclosure(lua, function, 2);
        })
    }
}

/// Whether so many bytes more fit into the memory that a script may have.
///
/// # Safety
/// `lua` is of the interpreter that `state` is of.
pub(super) unsafe fn has_room(lua: *mut lua_State, state: &State, bytes: usize) -> bool {
    let most = state.memory_max();
    // SAFETY: it is only asked how many KiB there are.
    let taken = || unsafe { ffi::lua_gc(lua, ffi::LUA_GCCOUNT, 0) as usize * 1024 };
    most == 0 || taken().saturating_add(bytes) <= most
}

/// The state beside a function of C.
///
/// # Safety
/// `lua` is running a function that [`closure`] has made, or [`super::stack::register`], in an interpreter that lives.
pub(super) unsafe fn shared<'a>(lua: *mut lua_State) -> &'a State {
    // SAFETY: upvalue 1 is the address of the state that the interpreter owns and never moves; it changes nothing in it
    // but through cells.
    unsafe { &*ffi::lua_touserdata(lua, ffi::lua_upvalueindex(1)).cast::<State>().cast_const() }
}

/// Runs a script or function of a library: the only argument.
unsafe extern "C-unwind" fn run(lua: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this as `runner` has made it, with one argument and room for 20 values. `input` is as it was when
    // the run began until that run, which is this one, ends, and its slices are alive as long. The runner gives whether all
    // went well, and a value. Nothing here is owned.
    unsafe {
        let state = shared(lua);
        let words = &*state.input.words.as_ptr();
        let (keys, args) = words.split_at(state.input.keys.get());
        ffi::lua_pushvalue(lua, ffi::lua_upvalueindex(2));
        ffi::lua_insert(lua, 1);
        push_words(lua, keys);
        push_words(lua, args);
        ffi::lua_call(lua, 3, 2);
        if ffi::lua_toboolean(lua, 1) == 0 {
            return 1;
        }
        results::write(lua, state);
        0
    }
}

/// Pushes a list of strings.
///
/// # Safety
/// There is room for two values, and what the words point to is alive. May raise.
unsafe fn push_words(lua: *mut lua_State, words: &[(*const u8, usize)]) {
    // SAFETY: as the caller says.
    unsafe {
        ffi::lua_createtable(lua, words.len() as c_int, 0);
        for (index, (start, len)) in words.iter().enumerate() {
            progress::count(1);
            ffi::lua_pushlstring_(lua, start.cast::<c_char>(), *len);
            ffi::lua_rawseti_(lua, -2, index as c_int + 1);
        }
    }
}

/// `redis.call` and `redis.pcall`.
unsafe extern "C-unwind" fn call(lua: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this as `caller` has made it, with room for 20 values beside its arguments. The reply lies in the
    // state's buffer, which nobody touches before it is settled: what is called meanwhile allocates, or tells how far the
    // work has come to who runs no script here. Nothing here is owned.
    unsafe {
        let state = shared(lua);
        match begin(lua, state) {
            Some((start, len)) => {
                ffi::lua_settop(lua, 0);
                push_reply(lua, std::slice::from_raw_parts(start, len), 0);
                settle(state);
            }
            None => {
                ffi::lua_settop(lua, 0);
                ffi::lua_pushvalue(lua, ffi::lua_upvalueindex(2));
                ffi::lua_call(lua, 0, 1);
            }
        }
        1
    }
}

/// Runs the command that the arguments are. Gives its reply, in the state's buffer, if it is a usual one; else what it
/// came to is in [`State::odd`].
///
/// # Safety
/// `lua` runs a function of C. Raises nothing.
#[inline(never)]
unsafe fn begin(lua: *mut lua_State, state: &State) -> Option<(*const u8, usize)> {
    let begun = catch_unwind(AssertUnwindSafe(|| {
        let mut scratch = state.scratch.take().unwrap_or_default();
        let (words, out) = &mut *scratch;
        words.clear();
        out.clear();
        // SAFETY: as the caller says; only types of values are looked at, numbers and strings read as what they are.
        let odd = match unsafe { collect(lua, words) } {
            Err(text) => Some(Odd::Refused(text)),
            Ok(()) => match HOST.with(|host| host.call(words, state.proto.get(), out)) {
                Err(stop) => Some(Odd::Stopped(stop)),
                Ok(()) => None,
            },
        };
        let reply = in_one_piece(out);
        let is_usual = state.proto.get() == Proto::Resp2 && reply.first() != Some(&b'-');
        let place = is_usual.then_some((reply.as_ptr(), reply.len()));
        state.scratch.replace(Some(scratch));
        match odd {
            Some(odd) => Err(odd),
            None => place.ok_or(Odd::Reply),
        }
    }));
    match begun {
        Ok(Ok(place)) => Some(place),
        Ok(Err(odd)) => {
            state.odd.replace(Some(odd));
            None
        }
        Err(panic) => {
            state.panic.replace(Some(panic));
            state.odd.replace(Some(Odd::Panicked));
            None
        }
    }
}

/// Lets go of a reply that has been read.
pub(crate) fn settle(state: &State) {
    if let Ok(mut scratch) = state.scratch.try_borrow_mut()
        && let Some(scratch) = scratch.as_mut()
    {
        let (words, out) = &mut **scratch;
        words.clear();
        out.clear();
        out.shrink(KEPT);
    }
}

/// Writes a command's words; an error where there are none or one is no word.
///
/// # Safety
/// `lua` runs a function of C. Raises nothing.
unsafe fn collect(lua: *mut lua_State, words: &mut Words) -> Result<(), &'static str> {
    // SAFETY: the indexes are those of arguments. `lua_tolstring` converts no string, so it allocates nothing, and what
    // it gives is alive as long as the argument.
    unsafe {
        let count = ffi::lua_gettop(lua);
        if count == 0 {
            return Err(NO_ARGUMENTS);
        }
        for index in 1..=count {
            let fits = match ffi::lua_type(lua, index) {
                ffi::LUA_TSTRING => {
                    let mut len = 0;
                    let start = ffi::lua_tolstring(lua, index, &raw mut len);
                    words.push(std::slice::from_raw_parts(start.cast::<u8>(), len))
                }
                ffi::LUA_TNUMBER => push_number(words, ffi::lua_tonumber(lua, index)),
                _ => return Err(NO_WORDS),
            };
            if !fits {
                return Err(TOO_LONG);
            }
        }
    }
    Ok(())
}

/// A reply's first line, and for a string what it holds.
struct Piece<'a> {
    kind: u8,
    /// The line, or the string.
    text: &'a [u8],
    /// The line as a number; below zero where it is none.
    number: i64,
    /// Where the next reply begins.
    end: usize,
}

impl Piece<'_> {
    /// What stands for a reply that is none: there is none, as all of them are our own.
    const BROKEN: Piece<'static> = Piece { kind: b'_', text: b"", number: -1, end: usize::MAX };

    /// Reads the reply that begins at `at`. Does not panic, whatever it reads.
    fn read(bytes: &[u8], at: usize) -> Option<Piece<'_>> {
        let reply = bytes.get(at..)?;
        let line_end = memchr::memchr(b'\r', reply)?;
        let line = reply.get(1..line_end)?;
        let kind = reply[0];
        let number = if matches!(kind, b':' | b'$' | b'*') { parse_i64(line)? } else { -1 };
        let start = line_end + 2;
        if kind == b'$' && number >= 0 {
            let end = start.checked_add(usize::try_from(number).ok()?)?;
            return Some(Piece { kind, text: reply.get(start..end)?, number, end: at + end + 2 });
        }
        Some(Piece { kind, text: line, number, end: at + start })
    }
}

/// Pushes what the reply of RESP2 that begins at `at` is to a script. Gives where the next one begins.
///
/// # Safety
/// There is room for four values. May raise.
unsafe fn push_reply(lua: *mut lua_State, bytes: &[u8], at: usize) -> usize {
    let Piece { kind, text, number, end } = Piece::read(bytes, at).unwrap_or(Piece::BROKEN);
    // SAFETY: as the caller says; lists see to their own room.
    unsafe {
        match kind {
            b':' => ffi::lua_pushnumber(lua, number as f64),
            b'$' if number >= 0 => push_string(lua, text),
            b'*' if number >= 0 => return push_list(lua, bytes, end, number),
            b'$' | b'*' => ffi::lua_pushboolean(lua, 0),
            b'+' => push_field(lua, 1, b"ok", b"", text),
            b'-' => {
                let code: &[u8] = if memchr::memchr(b' ', text).is_some() { b"" } else { b"ERR " };
                push_field(lua, 2, b"err", code, text);
                push_string(lua, b"ignore_error_stats_update");
                ffi::lua_pushboolean(lua, 1);
                ffi::lua_rawset(lua, -3);
            }
            _ => ffi::lua_pushnil(lua),
        }
    }
    end
}

/// Pushes a list of so many replies, which begin at `at`. Gives where they end.
///
/// # Safety
/// There is room for one value. May raise.
unsafe fn push_list(lua: *mut lua_State, bytes: &[u8], mut at: usize, len: i64) -> usize {
    let len = c_int::try_from(len).unwrap_or(0);
    // SAFETY: there is room for the table; for its elements there is once Lua has been asked. It does not refuse, as
    // replies are no deeper than commands write them; an empty list would be the answer.
    unsafe {
        ffi::lua_createtable(lua, len, 0);
        if ffi::lua_checkstack(lua, 4) != 0 {
            for index in 1..=len {
                progress::count(1);
                at = push_reply(lua, bytes, at);
                ffi::lua_rawseti_(lua, -2, index);
            }
        }
    }
    at
}

/// Pushes a table with room for so many fields and one in it, which is these two texts together.
///
/// # Safety
/// There is room for four values. May raise.
unsafe fn push_field(lua: *mut lua_State, fields: c_int, name: &[u8], before: &[u8], text: &[u8]) {
    // SAFETY: as the caller says.
    unsafe {
        ffi::lua_createtable(lua, 0, fields);
        push_string(lua, name);
        if before.is_empty() {
            push_string(lua, text);
        } else {
            push_string(lua, before);
            push_string(lua, text);
            ffi::lua_concat(lua, 2);
        }
        ffi::lua_rawset(lua, -3);
    }
}

/// # Safety
/// There is room for a value. May raise.
pub(super) unsafe fn push_string(lua: *mut lua_State, text: &[u8]) {
    // SAFETY: the bytes are there, and Lua copies them.
    unsafe { ffi::lua_pushlstring_(lua, text.as_ptr().cast::<c_char>(), text.len()) }
}
