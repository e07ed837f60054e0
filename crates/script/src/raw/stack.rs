//! A call of a function of Rust on Lua's own stack: its arguments, its results, the tables it reads and makes. mlua's safe
//! functions take five times the instructions for the same. Knows no library.
//!
//! # What must hold here
//!
//! Lua raises errors by jumping over the frames in between, and no destructor of theirs runs. The functions of libraries
//! are ordinary Rust and own what they like: so no method of a [`Stack`] raises anything. That is because
//!
//! - the memory limit is lifted while a function runs, and without one mlua's allocator refuses nothing. What is made is
//!   bounded by what was given, and [`Stack::worked`] is asked before;
//! - nothing is pushed before Lua has given room for it ([`Stack::reserve`]);
//! - tables are given no key that they refuse, no more keys than they hold, and none while they are walked;
//! - no code of a script runs, nor do metatables count. The finalizers that the garbage collector may call are mlua's, which
//!   raise nothing; and that there is one call left for them before Lua's stacks overflow, [`enter`] has tried before.
//!
//! What a function has come to is raised by [`enter`], which owns nothing, when [`answer`] has let go of everything.
#![allow(unsafe_code)]

use super::calls::{has_room, shared};
use crate::cjson::Settings;
use crate::host::{HOST, Stop};
use crate::interpreter::{State, Unlimited};
use crate::redis::Odd;
use mlua::{Function, Lua, Table, ffi, lua_State};
use std::borrow::Cow;
use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// A function of a library. Gives how many of the values on top are its results.
pub(crate) type Body = fn(&mut Stack<'_>) -> Result<usize, Fault>;

/// An error, as the functions of Lua's own libraries in C raise theirs.
#[derive(Debug)]
pub(crate) enum Fault {
    /// A text with the place of the call in front, as `luaL_error` raises it.
    Failed(Cow<'static, [u8]>),
    /// A text about an argument, as `luaL_argerror` raises it.
    Argument(usize, Cow<'static, [u8]>),
    /// A text and no more.
    Bare(&'static str),
    /// A table with the text in `err`, as the functions of `redis` raise it.
    Table(&'static str),
    /// The script has to end.
    Stopped(Stop),
}

impl Fault {
    pub(crate) fn failed(text: impl Into<String>) -> Fault {
        Fault::Failed(text.into().into_bytes().into())
    }

    pub(crate) fn argument(number: usize, text: impl Into<String>) -> Fault {
        Fault::Argument(number, text.into().into_bytes().into())
    }

    pub(crate) const NO_MEMORY: Fault = Fault::Bare("not enough memory");
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// There is none.
    None,
    Nil,
    Boolean(bool),
    /// `cjson.null`.
    Null,
    Number(f64),
    String,
    Table,
    Function,
    Thread,
    Userdata,
}

impl Kind {
    /// The name that Lua gives it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::None => "no value",
            Kind::Nil => "nil",
            Kind::Boolean(_) => "boolean",
            Kind::Number(_) => "number",
            Kind::String => "string",
            Kind::Table => "table",
            Kind::Function => "function",
            Kind::Thread => "thread",
            Kind::Null | Kind::Userdata => "userdata",
        }
    }

    pub(crate) fn is_nothing(self) -> bool {
        matches!(self, Kind::None | Kind::Nil)
    }
}

/// Where a value lies: from 1, the arguments first.
pub(crate) type Place = usize;

/// Most keys that one call gives tables: what Lua's largest table holds.
const KEYS_MAX: u32 = 1 << 26;
/// Bytes of the buffer for texts that are kept for the next call.
pub(super) const KEPT: usize = 64 * 1024;

/// The stack of a function that runs.
pub(crate) struct Stack<'a> {
    lua: *mut lua_State,
    pub(crate) state: &'a State,
    args: Place,
    top: Place,
    /// What lies up to here stays there.
    floor: Place,
    /// So many values more fit.
    room: usize,
    keys: u32,
    walks: u32,
}

/// Puts functions into a library's table. `settings` are those that [`Stack::settings`] gives them.
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

/// Puts functions of C into a table, which run these bodies by way of `enter`.
pub(super) fn register_by<'n>(
    enter: ffi::lua_CFunction,
    lua: &Lua,
    (state, settings): (&Rc<State>, &Rc<Settings>),
    table: &Table,
    functions: impl Iterator<Item = (&'n str, *mut c_void)>,
) -> mlua::Result<()> {
    let finish = finisher(lua, state, settings)?;
    for (name, body) in functions {
        table.raw_set(name, closure(lua, state, settings, &finish, body, enter)?)?;
    }
    Ok(())
}

/// A function of C that runs a body by way of `enter`.
fn closure(
    lua: &Lua,
    state: &Rc<State>,
    settings: &Rc<Settings>,
    finish: &Function,
    body: *mut c_void,
    enter: ffi::lua_CFunction,
) -> mlua::Result<Function> {
    let state = Rc::as_ptr(state).cast_mut().cast::<c_void>();
    let settings = Rc::as_ptr(settings).cast_mut().cast::<c_void>();
    // SAFETY: mlua calls this with `finish` alone on the stack and room for what it pushes, under protection, and it owns
    // nothing. What it leaves is one function.
    unsafe {
        lua.exec_raw(finish, |lua| {
            ffi::lua_pushlightuserdata(lua, state);
            ffi::lua_insert(lua, -2);
            ffi::lua_pushlightuserdata(lua, body);
            ffi::lua_pushlightuserdata(lua, settings);
            ffi::lua_pushcclosure(lua, nothing, 0);
            ffi::lua_pushcclosure(lua, enter, 5);
        })
    }
}

/// A function that raises what [`State::odd`] says. Those that lie beside it hold what they point to by it.
pub(super) fn finisher(lua: &Lua, state: &Rc<State>, settings: &Rc<Settings>) -> mlua::Result<Function> {
    let held = (Rc::clone(state), Rc::clone(settings));
    lua.create_function(move |_, (): ()| -> mlua::Result<()> {
        let (state, _) = &held;
        Err(match state.odd.take() {
            Some(Odd::Stopped(stop)) => crate::raise::Raised::Stop(stop),
            _ => crate::raise::Raised::Panicked,
        }
        .into())
    })
}

/// How a call ends.
pub(super) enum Ending {
    /// With so many results.
    Results(c_int),
    /// The value on top is raised.
    Raise,
    /// The text on top is raised, behind the place of the call.
    Failed,
    /// The text on top is said about an argument.
    Argument(c_int),
    /// The function beside raises what there is to raise.
    Finish,
}

/// Every library function that makes values.
unsafe extern "C-unwind" fn enter(lua: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this as `register` has made it. Nothing here is owned.
    unsafe {
        try_call(lua);
        let ending = answer(lua);
        end(lua, ending)
    }
}

/// Sees that a call can be made, or raises that it cannot.
///
/// # Safety
/// `lua` runs a function that [`closure`] has made, with room for a value.
pub(super) unsafe fn try_call(lua: *mut lua_State) {
    // SAFETY: as the caller says: upvalue 5 is a function.
    unsafe {
        ffi::lua_pushvalue(lua, ffi::lua_upvalueindex(5));
        ffi::lua_call(lua, 0, 0);
    }
}

/// Ends a call.
///
/// # Safety
/// `lua` runs a function that [`closure`] has made, and its stack is as the ending says, with room: no more than a text lies
/// there where something is pushed.
pub(super) unsafe fn end(lua: *mut lua_State, ending: Ending) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        match ending {
            Ending::Results(count) => count,
            Ending::Raise => ffi::lua_error(lua),
            Ending::Failed => {
                ffi::luaL_where(lua, 1);
                ffi::lua_insert(lua, -2);
                ffi::lua_concat(lua, 2);
                ffi::lua_error(lua)
            }
            Ending::Argument(number) => {
                ffi::luaL_argerror(lua, number, ffi::lua_tolstring(lua, -1, std::ptr::null_mut()))
            }
            Ending::Finish => {
                ffi::lua_settop(lua, 0);
                ffi::lua_pushvalue(lua, ffi::lua_upvalueindex(2));
                ffi::lua_call(lua, 0, 0);
                0
            }
        }
    }
}

/// A call that shows that calls can be made.
unsafe extern "C-unwind" fn nothing(_: *mut lua_State) -> c_int {
    0
}

/// Runs the function's body.
///
/// # Safety
/// `lua` runs [`enter`]. Raises nothing, and lets no panic out.
#[inline(never)]
unsafe fn answer(lua: *mut lua_State) -> Ending {
    // SAFETY: as the caller says: upvalue 3 is the body as `register` has put it there. Lua gives a function of C room for
    // 20 values beside its arguments.
    let (state, body, args) = unsafe {
        let body = ffi::lua_touserdata(lua, ffi::lua_upvalueindex(3));
        (shared(lua), std::mem::transmute::<*mut c_void, Body>(body), ffi::lua_gettop(lua) as usize)
    };
    let called = catch_unwind(AssertUnwindSafe(|| {
        let owner = state.lua.upgrade();
        let _unlimited = Unlimited::new(&owner, state);
        // SAFETY: a function of C runs, with so many arguments alone.
        let mut stack = unsafe { Stack::new(lua, state, args) };
        match body(&mut stack) {
            Ok(count) => {
                assert!(count <= stack.top - args, "the results are there");
                Ending::Results(count as c_int)
            }
            Err(fault) => stack.end(fault),
        }
    }));
    called.unwrap_or_else(|panic| {
        state.panic.replace(Some(panic));
        Ending::Finish
    })
}

impl<'a> Stack<'a> {
    /// # Safety
    /// `lua` runs a function that [`closure`] has made, of the interpreter that `state` is of, with so many arguments alone on
    /// the stack. What pushes something may be called while memory is unlimited.
    pub(super) unsafe fn new(lua: *mut lua_State, state: &'a State, args: usize) -> Stack<'a> {
        let room = ffi::LUA_MINSTACK as usize;
        Stack { lua, state, args, top: args, floor: args, room, keys: 0, walks: 0 }
    }

    /// How many arguments there are.
    pub(crate) fn args(&self) -> usize {
        self.args
    }

    /// Where the last value lies.
    pub(crate) fn top(&self) -> Place {
        self.top
    }

    /// cjson's settings, those of the table that the function is from.
    pub(crate) fn settings(&self) -> &'a Settings {
        // SAFETY: upvalue 4 is their address as `register` has put it there, and upvalue 2 holds them.
        unsafe { &*ffi::lua_touserdata(self.lua, ffi::lua_upvalueindex(4)).cast::<Settings>().cast_const() }
    }

    /// What a value is.
    pub(crate) fn kind(&self, at: Place) -> Kind {
        if at == 0 || at > self.top {
            return Kind::None;
        }
        let index = at as c_int;
        // SAFETY: there is a value at that place, and it is only looked at.
        unsafe {
            match ffi::lua_type(self.lua, index) {
                ffi::LUA_TNIL => Kind::Nil,
                ffi::LUA_TBOOLEAN => Kind::Boolean(ffi::lua_toboolean(self.lua, index) != 0),
                ffi::LUA_TNUMBER => Kind::Number(ffi::lua_tonumber(self.lua, index)),
                ffi::LUA_TSTRING => Kind::String,
                ffi::LUA_TTABLE => Kind::Table,
                ffi::LUA_TFUNCTION => Kind::Function,
                ffi::LUA_TTHREAD => Kind::Thread,
                ffi::LUA_TLIGHTUSERDATA if ffi::lua_touserdata(self.lua, index).is_null() => Kind::Null,
                _ => Kind::Userdata,
            }
        }
    }

    /// The bytes of a value that is a string.
    pub(crate) fn string(&self, at: Place) -> Option<&[u8]> {
        if self.kind(at) != Kind::String {
            return None;
        }
        // SAFETY: a string is there, as it stays while `self` is borrowed.
        Some(unsafe { self.bytes(at) })
    }

    /// # Safety
    /// A string or a number is there, and stays there for `'b`.
    unsafe fn bytes<'b>(&self, at: Place) -> &'b [u8] {
        let mut len = 0;
        // SAFETY: as the caller says. A number becomes a string in its place, which takes memory, and that is unlimited.
        unsafe {
            let start = ffi::lua_tolstring(self.lua, at as c_int, &raw mut len);
            std::slice::from_raw_parts(start.cast::<u8>(), len)
        }
    }

    fn wrong_type(&self, number: usize, expected: &str) -> Fault {
        Fault::argument(number, format!("{expected} expected, got {}", self.kind(number).name()))
    }

    /// An argument that is a string, or a number as one.
    pub(crate) fn text(&mut self, number: usize) -> Result<&'a [u8], Fault> {
        match self.kind(number) {
            // SAFETY: it is there; and up to the floor, which is never lowered beneath the arguments, values stay.
            Kind::String | Kind::Number(_) if number <= self.args => Ok(unsafe { self.bytes(number) }),
            _ => Err(self.wrong_type(number, "string")),
        }
    }

    /// The number that a value is, or that a string holds.
    pub(crate) fn as_number(&self, at: Place) -> Option<f64> {
        match self.kind(at) {
            Kind::Number(value) => Some(value),
            // SAFETY: a string is there, and is only looked at.
            Kind::String => unsafe {
                let is_number = ffi::lua_isnumber(self.lua, at as c_int) != 0;
                is_number.then(|| ffi::lua_tonumber(self.lua, at as c_int))
            },
            _ => None,
        }
    }

    /// An argument that is a number, or a string that holds one.
    pub(crate) fn number(&self, number: usize) -> Result<f64, Fault> {
        self.as_number(number).ok_or_else(|| self.wrong_type(number, "number"))
    }

    /// A number cut to an integer; what does not fit becomes the least, as the processor cuts it.
    pub(crate) fn integer(&self, number: usize) -> Result<i64, Fault> {
        self.number(number).map(crate::arguments::truncate)
    }

    /// An integer that may be absent.
    pub(crate) fn integer_or(&self, number: usize, absent: i64) -> Result<i64, Fault> {
        if self.kind(number).is_nothing() { Ok(absent) } else { self.integer(number) }
    }

    /// A number cut to 64 bits and then to 32, as a cast to `int` does.
    pub(crate) fn int(&self, number: usize) -> Result<i32, Fault> {
        self.integer(number).map(|value| value as i32)
    }

    /// Sees to the room for one value more, and counts it as there.
    fn reserve(&mut self) -> Result<(), Fault> {
        const MORE: usize = 32;
        if self.room == 0 {
            // SAFETY: with memory unlimited this does not raise; it refuses where Lua's own bound is.
            self.room = unsafe {
                if ffi::lua_checkstack(self.lua, MORE as c_int) != 0 {
                    MORE
                } else {
                    ffi::lua_checkstack(self.lua, 1) as usize
                }
            };
            if self.room == 0 {
                return Err(Fault::Failed(b"stack overflow".into()));
            }
        }
        self.room -= 1;
        self.top += 1;
        Ok(())
    }

    /// Counts so many values as gone.
    fn dropped(&mut self, count: usize) {
        assert!(self.top - count >= self.floor, "what lies below stays");
        self.top -= count;
        self.room += count;
    }

    /// Takes values away.
    pub(crate) fn pop(&mut self, count: usize) {
        self.dropped(count);
        // SAFETY: so many are there.
        unsafe { ffi::lua_settop(self.lua, self.top as c_int) };
    }

    pub(crate) fn push_nil(&mut self) -> Result<(), Fault> {
        self.reserve()?;
        // SAFETY: there is room.
        unsafe { ffi::lua_pushnil(self.lua) };
        Ok(())
    }

    /// Pushes `cjson.null`.
    pub(crate) fn push_null(&mut self) -> Result<(), Fault> {
        self.reserve()?;
        // SAFETY: there is room.
        unsafe { ffi::lua_pushlightuserdata(self.lua, std::ptr::null_mut()) };
        Ok(())
    }

    pub(crate) fn push_boolean(&mut self, value: bool) -> Result<(), Fault> {
        self.reserve()?;
        // SAFETY: there is room.
        unsafe { ffi::lua_pushboolean(self.lua, c_int::from(value)) };
        Ok(())
    }

    pub(crate) fn push_number(&mut self, value: f64) -> Result<(), Fault> {
        self.reserve()?;
        // SAFETY: there is room.
        unsafe { ffi::lua_pushnumber(self.lua, value) };
        Ok(())
    }

    pub(crate) fn push_string(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.reserve()?;
        // SAFETY: there is room, and memory. Lua copies the bytes.
        unsafe { ffi::lua_pushlstring_(self.lua, bytes.as_ptr().cast::<c_char>(), bytes.len()) };
        Ok(())
    }

    /// Pushes an empty table, with room for so many fields.
    pub(crate) fn push_table(&mut self, fields: usize) -> Result<(), Fault> {
        self.reserve()?;
        // SAFETY: there is room, and memory.
        unsafe { ffi::lua_createtable(self.lua, 0, fields.min(16) as c_int) };
        Ok(())
    }

    /// Moves the value on top to a place among those above the arguments.
    pub(crate) fn insert(&mut self, at: Place) {
        assert!(at > self.floor && at <= self.top, "it is a place that may change");
        // SAFETY: it is the place of a value.
        unsafe { ffi::lua_insert(self.lua, at as c_int) };
    }

    /// Sees that a table may be given one key more.
    fn may_set(&mut self, table: Place) -> Result<(), Fault> {
        assert!(self.walks == 0, "no table changes while one is walked");
        assert!(self.kind(table) == Kind::Table, "what is given keys is a table");
        self.keys += 1;
        if self.keys > KEYS_MAX { Err(Fault::Bare("table overflow")) } else { Ok(()) }
    }

    /// Makes the value on top element `index` of the table below it.
    pub(crate) fn set_element(&mut self, index: usize) -> Result<(), Fault> {
        self.may_set(self.top - 1)?;
        self.dropped(1);
        // SAFETY: the table and the value are there.
        unsafe { ffi::lua_rawseti_(self.lua, -2, index as c_int) };
        Ok(())
    }

    /// Puts the value on top into the table below, under the key in between.
    pub(crate) fn set_field(&mut self) -> Result<(), Fault> {
        match self.kind(self.top - 1) {
            Kind::Nil => return Err(Fault::Bare("table index is nil")),
            Kind::Number(key) if key.is_nan() => return Err(Fault::Bare("table index is NaN")),
            _ => self.may_set(self.top - 2)?,
        }
        self.dropped(2);
        // SAFETY: the table, a key that it takes, and the value are there.
        unsafe { ffi::lua_rawset(self.lua, -3) };
        Ok(())
    }

    /// A table's length as `#` gives it.
    pub(crate) fn len(&self, table: Place) -> usize {
        assert!(self.kind(table) == Kind::Table, "it is a table");
        // SAFETY: it is.
        unsafe { ffi::lua_objlen(self.lua, table as c_int) }
    }

    /// Pushes an element of a table, whatever its metatable says.
    pub(crate) fn push_element(&mut self, table: Place, index: usize) -> Result<(), Fault> {
        assert!(self.kind(table) == Kind::Table, "it is a table");
        self.reserve()?;
        // SAFETY: it is a table, and there is room.
        unsafe { ffi::lua_rawgeti_(self.lua, table as c_int, index as c_int) };
        Ok(())
    }

    /// Calls `each` with the place of each key of a table, its value behind it, until that gives `false`. Tells whether it
    /// never has.
    pub(crate) fn walk(
        &mut self,
        table: Place,
        mut each: impl FnMut(&mut Stack<'a>, Place) -> Result<bool, Fault>,
    ) -> Result<bool, Fault> {
        assert!(self.kind(table) == Kind::Table, "what is walked is a table");
        self.push_nil()?;
        let (key, floor) = (self.top, self.floor);
        self.walks += 1;
        let has_ended = loop {
            self.reserve()?;
            // SAFETY: the key is the one that was given last, as it lies beneath the floor meanwhile; the table has not
            // been changed, which is refused to all; and there is room for the value.
            if unsafe { ffi::lua_next(self.lua, table as c_int) } == 0 {
                self.floor = floor;
                self.dropped(2);
                break true;
            }
            self.floor = key + 1;
            let goes_on = each(self, key)?;
            self.floor = key;
            self.pop(self.top - key);
            if !goes_on {
                self.floor = floor;
                self.pop(1);
                break false;
            }
        };
        self.walks -= 1;
        Ok(has_ended)
    }

    /// Counts a piece of work, and now and then asks the host whether to go on. `bytes` is what has been made so far
    /// beside Lua's memory.
    pub(crate) fn worked(&mut self, bytes: usize) -> Result<(), Fault> {
        self.worked_long(bytes, 1)
    }

    /// The same, of a piece that is so small that the memory need not be looked at after each.
    #[inline]
    pub(crate) fn worked_little(&mut self, bytes: usize) -> Result<(), Fault> {
        if self.state.is_time(1) { self.ask_host(bytes) } else { Ok(()) }
    }

    /// The same, of a piece that takes as long as so many others.
    pub(crate) fn worked_long(&mut self, bytes: usize, work: usize) -> Result<(), Fault> {
        self.need(bytes)?;
        if self.state.is_time(work) { self.ask_host(bytes) } else { Ok(()) }
    }

    fn ask_host(&mut self, bytes: usize) -> Result<(), Fault> {
        self.need(bytes)?;
        if HOST.is_set() {
            HOST.with(|host| host.interrupt()).map_err(Fault::Stopped)?;
        }
        Ok(())
    }

    /// Refuses what does not fit into the memory.
    pub(crate) fn need(&self, bytes: usize) -> Result<(), Fault> {
        // SAFETY: they are of the same interpreter.
        if unsafe { has_room(self.lua, self.state, bytes) } { Ok(()) } else { Err(Fault::NO_MEMORY) }
    }

    /// An empty buffer for a text.
    pub(crate) fn buffer(&self) -> Vec<u8> {
        self.state.text.take()
    }

    /// Pushes a text, and keeps its buffer for the next one.
    pub(crate) fn push_buffer(&mut self, mut text: Vec<u8>) -> Result<(), Fault> {
        if text.len() > KEPT {
            // Both are there for a moment.
            self.need(text.capacity().saturating_add(text.len()))?;
        }
        self.push_string(&text)?;
        if text.capacity() <= KEPT {
            text.clear();
            self.state.text.replace(text);
        }
        Ok(())
    }

    /// Leaves on the stack what [`enter`] raises.
    pub(super) fn end(&mut self, fault: Fault) -> Ending {
        // SAFETY: all values go, and with them comes the room of the beginning.
        unsafe { ffi::lua_settop(self.lua, 0) };
        (self.top, self.floor, self.walks, self.room) = (0, 0, 0, ffi::LUA_MINSTACK as usize);
        let (text, ending) = match fault {
            Fault::Failed(text) => (text, Ending::Failed),
            // Its NUL ends a text for C.
            Fault::Argument(number, text) => (text, Ending::Argument(number as c_int)),
            Fault::Bare(text) => (Cow::Borrowed(text.as_bytes()), Ending::Raise),
            Fault::Table(text) => {
                let pushed = self.push_table(1).and_then(|()| self.push_string(b"err"));
                let text = crate::raise::with_code(text.as_bytes());
                let set = pushed.and_then(|()| self.push_string(&text)).and_then(|()| self.set_field());
                assert!(set.is_ok(), "there is room");
                return Ending::Raise;
            }
            Fault::Stopped(stop) => {
                self.state.odd.replace(Some(Odd::Stopped(stop)));
                return Ending::Finish;
            }
        };
        assert!(self.push_string(&text).is_ok(), "there is room");
        ending
    }
}
