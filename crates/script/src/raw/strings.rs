//! `string.find`, `match`, `gmatch`, `gsub` and `rep` on Lua's own stack. What they do with the bytes is not known here, see
//! pattern/.
//!
//! # What must hold here
//!
//! Lua raises errors by jumping over the frames in between, and no destructor of theirs runs. Functions of C here may
//! raise at any call of Lua's, and own nothing. What is searched and made owns what it likes, runs within [`safely`], does
//! not touch the stack, and lets no panic out: what it leaves for Lua to copy is in the state.
#![allow(unsafe_code)]

use super::calls::{closure, has_room, push_string, shared};
use super::stack::{KEPT, finisher};
use crate::arguments::truncate;
use crate::interpreter::State;
use crate::pattern::{self, Capture, Caret, Fault};
use crate::redis::Odd;
use mlua::{Lua, Table, ffi, lua_State};
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

const FUNCTIONS: [(&str, ffi::lua_CFunction); 5] =
    [("find", find), ("match", match_), ("gmatch", gmatch), ("gsub", gsub), ("rep", rep)];

/// Puts the functions into the table that the prelude takes them from.
pub(crate) fn register(lua: &Lua, state: &Rc<State>, raw: &Table) -> mlua::Result<()> {
    let finish = finisher(lua, state, &state.json)?;
    for (name, function) in FUNCTIONS {
        raw.raw_set(name, closure(lua, state, &finish, function)?)?;
    }
    Ok(())
}

/// Why something is not done.
#[derive(Clone, Copy)]
enum Refusal {
    /// A text with the place of the call in front.
    Text(&'static str),
    NoMemory,
    /// What [`State::odd`] or [`State::panic`] says.
    Odd,
}

/// Runs what owns something.
#[inline(always)]
fn safely<T: Copy>(state: &State, run: impl FnOnce() -> Result<T, Fault>) -> Result<T, Refusal> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(Fault::Pattern(text))) => Err(Refusal::Text(text)),
        Ok(Err(Fault::NoMemory)) => Err(Refusal::NoMemory),
        Ok(Err(Fault::Stopped(stop))) => {
            state.odd.replace(Some(Odd::Stopped(stop)));
            Err(Refusal::Odd)
        }
        Err(panic) => {
            state.panic.replace(Some(panic));
            state.odd.replace(Some(Odd::Panicked));
            Err(Refusal::Odd)
        }
    }
}

/// Raises what was refused.
///
/// # Safety
/// `lua` runs a function that [`register`] has made.
#[cold]
unsafe fn refuse(lua: *mut lua_State, refusal: Refusal) -> c_int {
    // SAFETY: without the arguments there is room; a place is at level 1, and upvalue 2 is the function that raises.
    unsafe {
        ffi::lua_settop(lua, 0);
        match refusal {
            Refusal::Text(text) => {
                ffi::luaL_where(lua, 1);
                push_string(lua, text.as_bytes());
                ffi::lua_concat(lua, 2);
                ffi::lua_error(lua)
            }
            Refusal::NoMemory => {
                push_string(lua, b"not enough memory");
                ffi::lua_error(lua)
            }
            Refusal::Odd => {
                ffi::lua_pushvalue(lua, ffi::lua_upvalueindex(2));
                ffi::lua_call(lua, 0, 0);
                0
            }
        }
    }
}

/// An argument that is a string, or a number, which becomes one.
///
/// # Safety
/// `lua` runs a function of C, and the argument stays where it is for `'a`. May raise.
unsafe fn text<'a>(lua: *mut lua_State, number: c_int) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: as the caller says.
    unsafe {
        let start = ffi::luaL_checklstring(lua, number, &raw mut len);
        std::slice::from_raw_parts(start.cast::<u8>(), len)
    }
}

/// An upvalue that is a string.
///
/// # Safety
/// `lua` runs a function of C with such an upvalue, which stays for `'a`.
unsafe fn beside<'a>(lua: *mut lua_State, number: c_int) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: as the caller says.
    unsafe {
        let start = ffi::lua_tolstring(lua, ffi::lua_upvalueindex(number), &raw mut len);
        std::slice::from_raw_parts(start.cast::<u8>(), len)
    }
}

/// An argument that is a number, cut to an integer, or what stands for it where it is absent.
///
/// # Safety
/// `lua` runs a function of C. May raise.
unsafe fn integer_or(lua: *mut lua_State, number: c_int, absent: i64) -> i64 {
    // SAFETY: as the caller says.
    unsafe {
        if ffi::lua_type(lua, number) <= ffi::LUA_TNIL { absent } else { truncate(ffi::luaL_checknumber(lua, number)) }
    }
}

/// Pushes what a match has caught: so many captures. Gives how many, or what is wrong with one.
///
/// # Safety
/// `lua` runs a function of C, with the text that was searched as an argument or upvalue; no search was made since. May raise.
unsafe fn push_captures(
    lua: *mut lua_State,
    state: &State,
    text: &[u8],
    found: (usize, usize),
    count: usize,
) -> Result<c_int, Refusal> {
    // SAFETY: as the caller says; a function of C has room for 20 values, more of them are asked for.
    unsafe {
        if count > 8 {
            ffi::luaL_checkstack_(lua, count as c_int, c"too many captures".as_ptr());
        }
        for index in 0..count {
            match state.patterns.captures.of(found, index) {
                Ok(Capture::Bytes { from, to }) => push_string(lua, &text[from..to]),
                Ok(Capture::Position(at)) => ffi::lua_pushnumber(lua, (at + 1) as f64),
                Ok(Capture::Open { .. }) => {}
                Err(Fault::Pattern(text)) => return Err(Refusal::Text(text)),
                Err(_) => return Err(Refusal::Odd),
            }
        }
    }
    Ok(count as c_int)
}

unsafe extern "C-unwind" fn find(lua: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this as `register` has made it.
    unsafe { search(lua, Wanted::Places) }
}

unsafe extern "C-unwind" fn match_(lua: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this as `register` has made it.
    unsafe { search(lua, Wanted::Captures) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Where the match is, and its captures.
    Places,
    /// Its captures, or all of it.
    Captures,
}

/// # Safety
/// `lua` runs a function that [`register`] has made. May raise.
#[inline(always)]
unsafe fn search(lua: *mut lua_State, wanted: Wanted) -> c_int {
    // SAFETY: as the caller says; the texts are arguments, which stay.
    unsafe {
        let state = shared(lua);
        let (text, pattern) = (text(lua, 1), text(lua, 2));
        let len = text.len() as i64;
        let from = integer_or(lua, 3, 1);
        let from = if from < 0 { from.saturating_add(len + 1).max(0) } else { from };
        let from = (from - 1).clamp(0, len) as usize;
        if wanted == Wanted::Places && (ffi::lua_toboolean(lua, 4) != 0 || !pattern::has_specials(pattern)) {
            return match safely(state, || Ok(pattern::find_plain(&text[from..], pattern))) {
                Ok(Some(at)) => {
                    ffi::lua_pushnumber(lua, (from + at + 1) as f64);
                    ffi::lua_pushnumber(lua, (from + at + pattern.len()) as f64);
                    2
                }
                Ok(None) => {
                    ffi::lua_pushnil(lua);
                    1
                }
                Err(refusal) => refuse(lua, refusal),
            };
        }
        let found = match safely(state, || pattern::search(state, text, pattern, from, Caret::Binds)) {
            Ok(Some(found)) => found,
            Ok(None) => {
                ffi::lua_pushnil(lua);
                return 1;
            }
            Err(refusal) => return refuse(lua, refusal),
        };
        let (mut count, mut before) = (state.patterns.captures.count(), 0);
        if wanted == Wanted::Places {
            ffi::lua_pushnumber(lua, (found.0 + 1) as f64);
            ffi::lua_pushnumber(lua, found.1 as f64);
            before = 2;
        } else {
            count = count.max(1);
        }
        match push_captures(lua, state, text, found, count) {
            Ok(count) => before + count,
            Err(refusal) => refuse(lua, refusal),
        }
    }
}

/// `string.gmatch`: a function that gives the next match, with the text, the pattern, and how far it has come beside it.
unsafe extern "C-unwind" fn gmatch(lua: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this as `register` has made it, with room for 20 values.
    unsafe {
        for number in [1, 2] {
            text(lua, number);
        }
        ffi::lua_settop(lua, 2);
        ffi::lua_pushvalue(lua, ffi::lua_upvalueindex(1));
        ffi::lua_insert(lua, 1);
        ffi::lua_pushvalue(lua, ffi::lua_upvalueindex(2));
        ffi::lua_insert(lua, 2);
        ffi::lua_pushnumber(lua, 0.0);
        ffi::lua_pushcclosure(lua, next_match, 5);
        1
    }
}

unsafe extern "C-unwind" fn next_match(lua: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this as `gmatch` has made it: upvalues 3 and 4 are strings, and 5 is a number.
    unsafe {
        let state = shared(lua);
        let (text, pattern) = (beside(lua, 3), beside(lua, 4));
        let from = ffi::lua_tonumber(lua, ffi::lua_upvalueindex(5)) as usize;
        let found = match safely(state, || pattern::search(state, text, pattern, from, Caret::Byte)) {
            Ok(found) => found,
            Err(refusal) => return refuse(lua, refusal),
        };
        // Behind an empty match a byte is passed; behind the last one the text is.
        let (from, to) = found.unwrap_or((text.len(), text.len()));
        let next = if from == to { to + 1 } else { to };
        ffi::lua_pushnumber(lua, next as f64);
        ffi::lua_replace(lua, ffi::lua_upvalueindex(5));
        if found.is_none() {
            return 0;
        }
        match push_captures(lua, state, text, (from, to), state.patterns.captures.count().max(1)) {
            Ok(count) => count,
            Err(refusal) => refuse(lua, refusal),
        }
    }
}

/// `string.gsub`.
unsafe extern "C-unwind" fn gsub(lua: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this as `register` has made it; the texts are arguments, which stay.
    unsafe {
        let state = shared(lua);
        let (text, pattern) = (text(lua, 1), text(lua, 2));
        let kind = ffi::lua_type(lua, 3);
        let most = match integer_or(lua, 4, i64::MAX) {
            i64::MAX => i64::MAX,
            // C takes it for an int.
            most => i64::from(most as i32),
        };
        match kind {
            ffi::LUA_TSTRING | ffi::LUA_TNUMBER => replace_by_text(lua, state, text, pattern, most),
            ffi::LUA_TTABLE | ffi::LUA_TFUNCTION => replace_by_call(lua, state, text, pattern, most),
            _ => ffi::luaL_argerror(lua, 3, c"string/function/table expected".as_ptr()),
        }
    }
}

/// # Safety
/// `lua` runs [`gsub`], whose third argument is a string or a number. May raise.
unsafe fn replace_by_text(lua: *mut lua_State, state: &State, subject: &[u8], pattern: &[u8], most: i64) -> c_int {
    // SAFETY: as the caller says. Nobody touches the state's text while Lua copies it.
    unsafe {
        let by = text(lua, 3);
        match safely(state, || pattern::replace(state, subject, pattern, by, most)) {
            Ok(0) => {
                ffi::lua_pushvalue(lua, 1);
                ffi::lua_pushnumber(lua, 0.0);
            }
            Ok(count) => {
                push_made(lua, state);
                ffi::lua_pushnumber(lua, count as f64);
            }
            Err(refusal) => return refuse(lua, refusal),
        }
        2
    }
}

/// Pushes the state's text, and keeps its buffer if that is not large.
///
/// # Safety
/// `lua` runs a function of C, with room for a value. May raise: what is in the state then goes when the run ends.
unsafe fn push_made(lua: *mut lua_State, state: &State) {
    // SAFETY: as the caller says; nobody touches the text while Lua copies it.
    unsafe { push_string(lua, &*state.text.as_ptr()) };
    settle(state);
}

/// Lets go of a text that is large.
pub(crate) fn settle(state: &State) {
    if let Ok(mut text) = state.text.try_borrow_mut() {
        text.clear();
        text.shrink_to(KEPT);
    }
}

/// What `gsub` has made so far: at first in its own frame, then in a value of Lua's, which goes with it whatever is raised.
struct Output {
    start: *mut u8,
    len: usize,
    capacity: usize,
}

impl Output {
    /// Bytes that lie in the frame.
    const FEW: usize = 256;
    /// Where the value lies.
    const PLACE: c_int = 4;

    /// Adds bytes, with room for so many more behind them.
    ///
    /// # Safety
    /// `lua` runs [`gsub`], with any value at [`Output::PLACE`] and room for one more. `start` is where `capacity` bytes may be
    /// written, of which `len` are. May raise.
    #[inline(always)]
    unsafe fn add(&mut self, lua: *mut lua_State, state: &State, bytes: &[u8], behind: usize) -> bool {
        // SAFETY: as the caller says; there is room for the bytes when they are copied.
        unsafe {
            if bytes.len() > self.capacity - self.len && !self.grow(lua, state, bytes.len().saturating_add(behind)) {
                return false;
            }
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(self.len), bytes.len());
            self.len += bytes.len();
            true
        }
    }

    /// Sees to the room for so many bytes more. Gives whether there is memory.
    ///
    /// # Safety
    /// As for [`Output::add`].
    #[cold]
    unsafe fn grow(&mut self, lua: *mut lua_State, state: &State, more: usize) -> bool {
        // SAFETY: as the caller says; what was written is where it was until it is copied.
        unsafe {
            let capacity = self.len.saturating_add(more).max(self.capacity.saturating_add(self.capacity / 2));
            if !has_room(lua, state, capacity) || capacity > isize::MAX as usize / 2 {
                return false;
            }
            let start = ffi::lua_newuserdata(lua, capacity).cast::<u8>();
            std::ptr::copy_nonoverlapping(self.start, start, self.len);
            ffi::lua_replace(lua, Output::PLACE);
            (self.start, self.capacity) = (start, capacity);
            true
        }
    }
}

/// # Safety
/// `lua` runs [`gsub`], whose third argument is a table or a function. May raise.
unsafe fn replace_by_call(lua: *mut lua_State, state: &State, text: &[u8], pattern: &[u8], most: i64) -> c_int {
    let mut few = [const { MaybeUninit::<u8>::uninit() }; Output::FEW];
    let mut out = Output { start: few.as_mut_ptr().cast::<u8>(), len: 0, capacity: Output::FEW };
    // SAFETY: as the caller says. The place of the output is the one behind the arguments that count; what a value is
    // that a call gives is looked at before its bytes are read, while it is on the stack.
    unsafe {
        ffi::lua_settop(lua, 3);
        ffi::lua_pushnil(lua);
        let is_function = ffi::lua_type(lua, 3) == ffi::LUA_TFUNCTION;
        let (mut at, mut count) = (0, 0);
        while count < most {
            let found = match safely(state, || pattern::search(state, text, pattern, at, Caret::Binds)) {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(refusal) => return refuse(lua, refusal),
            };
            count += 1;
            if is_function {
                ffi::lua_pushvalue(lua, 3);
            }
            // A table is asked for the first.
            let captures = if is_function { state.patterns.captures.count().max(1) } else { 1 };
            let captures = match push_captures(lua, state, text, found, captures) {
                Ok(captures) => captures,
                Err(refusal) => return refuse(lua, refusal),
            };
            if is_function {
                ffi::lua_call(lua, captures, 1);
            } else {
                ffi::lua_gettable(lua, 3);
            }
            let (from, to) = found;
            let by = if ffi::lua_toboolean(lua, -1) == 0 {
                &text[from..to]
            } else if ffi::lua_isstring(lua, -1) != 0 {
                self::text(lua, Output::PLACE + 1)
            } else {
                return refuse_value(lua);
            };
            let passed = if to == from { text.get(from..from + 1).unwrap_or_default() } else { b"" };
            // What is left of the text is mostly about what comes.
            let behind = text.len() - from;
            if !out.add(lua, state, &text[at..from], behind)
                || !out.add(lua, state, by, behind)
                || !out.add(lua, state, passed, behind)
            {
                return refuse(lua, Refusal::NoMemory);
            }
            ffi::lua_settop(lua, Output::PLACE);
            at = to + passed.len();
            if at > text.len() || (to == from && passed.is_empty()) || pattern::is_bound(pattern) {
                break;
            }
        }
        if count == 0 {
            ffi::lua_pushvalue(lua, 1);
        } else if out.add(lua, state, &text[at..], 0) && has_room(lua, state, out.len) {
            push_string(lua, std::slice::from_raw_parts(out.start, out.len));
        } else {
            return refuse(lua, Refusal::NoMemory);
        }
        ffi::lua_pushnumber(lua, count as f64);
        2
    }
}

/// Says that the value on top is none to put in a match's place.
///
/// # Safety
/// `lua` runs [`gsub`], with room for more. Raises.
#[cold]
unsafe fn refuse_value(lua: *mut lua_State) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        let name = ffi::lua_typename(lua, ffi::lua_type(lua, -1));
        ffi::luaL_error(lua, c"invalid replacement value (a %s)".as_ptr(), name)
    }
}

/// `string.rep`: what does not fit is refused before it is made.
unsafe extern "C-unwind" fn rep(lua: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this as `register` has made it; the text is an argument, which stays.
    unsafe {
        let state = shared(lua);
        let text = text(lua, 1);
        let count = truncate(ffi::luaL_checknumber(lua, 2)) as i32;
        let len = text.len().checked_mul(usize::try_from(count).unwrap_or(0));
        // Twice, as it is made here and then copied.
        let both = len.and_then(|len| len.checked_mul(2));
        let Some((len, _)) = len.zip(both).filter(|(_, both)| has_room(lua, state, *both)) else {
            return refuse(lua, Refusal::NoMemory);
        };
        match safely(state, || pattern::repeat(state, text, len)) {
            Ok(()) => push_made(lua, state),
            Err(refusal) => return refuse(lua, refusal),
        }
        1
    }
}
