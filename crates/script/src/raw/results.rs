//! What a script returns, to its client's reply as Redis converts it, on Lua's own stack. mlua's safe functions hold each
//! value by a reference on a second stack, which costs more than writing it. Knows no command.
//!
//! # What must hold here
//!
//! Lua raises errors by jumping over the frames in between, and no destructor of theirs runs. [`write()`] owns what it likes:
//! so nothing in it raises anything, for the reasons that stack.rs has. The memory limit is lifted while tables are
//! written, room is asked for before anything is pushed, no table is changed but a new one, and no code of a script runs.
//!
//! Deep values are walked with a list of what is open and not by recursion: a script decides how deep they are. The table
//! of each that is open lies on the stack, one above the other.
#![allow(unsafe_code)]

use super::calls::has_room;
use crate::arguments::truncate;
use crate::host::{HOST, Stop};
use crate::interpreter::{Failure, State, Unlimited};
use mlua::{ffi, lua_State};
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tenon_wire::out::Mark;
use tenon_wire::resp::{Proto, Reply};

/// How deep lists may lie in each other: as far as Redis's stack reaches, at two slots a level.
const DEPTH_MAX: usize = 4_000;
/// Elements of a map that is written: what Lua's largest table surely holds.
const ELEMENTS_MAX: c_int = 1 << 26;
/// A string of so many bytes is work of its own.
const LONG: usize = 4096;
/// So long any reply may be, in bytes.
const SHORT: usize = 1 << 20;
/// Bytes that take as long as one value does.
const BYTES_A_VALUE: usize = 256;

/// A field that means something in a table that is returned.
#[derive(Clone, Copy)]
#[repr(i32)]
enum Field {
    Err,
    Ok,
    Double,
    Map,
    Set,
    BigNumber,
    VerbatimString,
    Format,
    String,
    IsCounted,
}

/// The names of the fields: upvalues of [`super::calls::runner`]'s function, behind its first two.
pub(super) const NAMES: [&[u8]; 10] = [
    b"err",
    b"ok",
    b"double",
    b"map",
    b"set",
    b"big_number",
    b"verbatim_string",
    b"format",
    b"string",
    b"ignore_error_stats_update",
];

/// What has become of a result.
pub(crate) enum Written {
    /// It is in the reply, with these errors in it.
    Whole(Vec<Failure>),
    /// Nothing of it: the script has to end.
    Stopped(Stop),
    /// Nothing of it: it takes more memory than the state may.
    TooLong,
    /// Nothing of it: its reply has more bytes than these, which it may have.
    LongerThan(usize),
}

/// Writes the value on top of the stack as the reply of the run; what has come of it is in [`State::written`].
///
/// # Safety
/// `lua` runs the function that [`super::calls::runner`] has made, and its run goes on. Raises nothing, and lets no
/// panic out.
#[inline(never)]
pub(super) unsafe fn write(lua: *mut lua_State, state: &State) {
    let written = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the run has put it there, and does not touch it before it ends.
        let reply = unsafe { &mut *state.input.reply.get() };
        let begin = reply.out().mark();
        let mut writer = Writer { lua, state, begin, reply, host_max: None, open: Vec::new(), errors: Vec::new() };
        // SAFETY: as the caller says.
        match unsafe { writer.write() } {
            Ok(()) => Written::Whole(writer.errors),
            Err(end) => {
                drop(reply.out().split_off(begin));
                end
            }
        }
    }));
    match written {
        Ok(written) => state.written.set(Some(written)),
        Err(panic) => _ = state.panic.replace(Some(panic)),
    }
}

/// A list whose elements are being written.
struct Open {
    /// So many are.
    written: c_int,
    /// As many as its header says.
    len: c_int,
    /// Where its header begins, and how long it is; none where its length holds.
    header: Option<(Mark, usize)>,
}

/// How far the writing of a result has come. All methods ask of `lua` what [`write()`] does.
struct Writer<'a, 'r> {
    lua: *mut lua_State,
    state: &'a State,
    reply: &'a mut Reply<'r>,
    /// Where the result begins.
    begin: Mark,
    /// The most bytes it may have by the host; known when it is longer than any may be.
    host_max: Option<usize>,
    open: Vec<Open>,
    errors: Vec<Failure>,
}

/// A line as C has it: it ends at the first NUL.
fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|&byte| byte == 0).next().unwrap_or_default()
}

impl Writer<'_, '_> {
    /// Writes the value on top, which goes.
    unsafe fn write(&mut self) -> Result<(), Written> {
        // SAFETY: a value is there, and room for one more; `write_value` takes away what it has written, and opens what
        // it has not. An open list's table is on top, and has room above it.
        unsafe {
            if ffi::lua_type(self.lua, -1) != ffi::LUA_TTABLE {
                return self.write_value();
            }
            let owner = self.state.lua.upgrade();
            let _unlimited = Unlimited::new(&owner, self.state);
            self.write_value()?;
            while let Some(list) = self.open.last_mut() {
                if list.written == list.len {
                    self.open.pop();
                    ffi::lua_settop(self.lua, -2);
                    continue;
                }
                ffi::lua_rawgeti_(self.lua, -1, list.written + 1);
                if ffi::lua_type(self.lua, -1) == ffi::LUA_TNIL {
                    ffi::lua_settop(self.lua, -2);
                    self.end_early()?;
                } else {
                    list.written += 1;
                    self.write_value()?;
                }
            }
            Ok(())
        }
    }

    unsafe fn write_value(&mut self) -> Result<(), Written> {
        self.worked(1)?;
        // SAFETY: a value is on top.
        unsafe {
            if self.open.len() >= DEPTH_MAX {
                self.refuse_depth();
                return Ok(());
            }
            match ffi::lua_type(self.lua, -1) {
                ffi::LUA_TSTRING => {
                    let text = self.text();
                    if text.len() >= LONG {
                        self.need_reply(text.len())?;
                        self.worked(text.len() / BYTES_A_VALUE)?;
                    }
                    self.reply.bulk(text);
                }
                ffi::LUA_TNUMBER => self.reply.int(truncate(ffi::lua_tonumber(self.lua, -1))),
                ffi::LUA_TBOOLEAN => self.write_boolean(ffi::lua_toboolean(self.lua, -1) != 0),
                ffi::LUA_TTABLE => return self.write_table(),
                _ => self.reply.null(),
            }
            ffi::lua_settop(self.lua, -2);
        }
        Ok(())
    }

    /// In RESP2, which a script begins with, truth is 1 and falsehood null.
    fn write_boolean(&mut self, truth: bool) {
        match self.state.proto.get() {
            Proto::Resp2 if truth => self.reply.int(1),
            Proto::Resp2 => self.reply.null(),
            Proto::Resp3 => self.reply.boolean(truth),
        }
    }

    /// Says that the value on top, which goes, lies too deep.
    unsafe fn refuse_depth(&mut self) {
        self.reply.error("ERR reached lua stack limit");
        // SAFETY: it is there.
        unsafe { ffi::lua_settop(self.lua, -2) };
    }

    /// The bytes of the string on top. They are there as long as it is, which the caller sees to.
    unsafe fn text<'b>(&self) -> &'b [u8] {
        let mut len = 0;
        // SAFETY: it is a string, so nothing is converted.
        unsafe {
            let start = ffi::lua_tolstring(self.lua, -1, &raw mut len);
            std::slice::from_raw_parts(start.cast::<u8>(), len)
        }
    }

    /// Pushes a field of the table on top if it is of this kind. Metatables do not count.
    unsafe fn has(&self, field: Field, kind: c_int) -> bool {
        // SAFETY: it is a table, `write_table` has asked for room, and the name is an upvalue.
        unsafe {
            ffi::lua_pushvalue(self.lua, ffi::lua_upvalueindex(3 + field as c_int));
            ffi::lua_rawget(self.lua, -2);
            let has = ffi::lua_type(self.lua, -1) == kind;
            if !has {
                ffi::lua_settop(self.lua, -2);
            }
            has
        }
    }

    /// Writes the table on top, which goes, or stays as one that is open.
    unsafe fn write_table(&mut self) -> Result<(), Written> {
        // SAFETY: a table is there. Six values more are the most that are pushed above it: a map and what is made of it, a
        // key, its value, and the key again. What `has` has pushed is of the kind that it was asked for.
        unsafe {
            if ffi::lua_checkstack(self.lua, 6) == 0 {
                self.refuse_depth();
                return Ok(());
            }
            let table = ffi::lua_gettop(self.lua);
            if self.has(Field::Err, ffi::LUA_TSTRING) {
                let text = self.text().to_vec();
                self.reply.error(until_nul(&text));
                ffi::lua_settop(self.lua, table);
                let is_counted = self.has(Field::IsCounted, ffi::LUA_TBOOLEAN) && ffi::lua_toboolean(self.lua, -1) != 0;
                self.errors.push(Failure { text, place: None, is_counted, is_broken: false });
            } else if self.has(Field::Ok, ffi::LUA_TSTRING) {
                let line = self.text();
                self.write_line(b'+', until_nul(line));
            } else if self.has(Field::Double, ffi::LUA_TNUMBER) {
                self.reply.double(ffi::lua_tonumber(self.lua, -1));
            } else if self.has(Field::Map, ffi::LUA_TTABLE) {
                let len = self.flatten(table, 2)?;
                self.reply.map(len as usize / 2);
                self.open.push(Open { written: 0, len, header: None });
                return Ok(());
            } else if self.has(Field::Set, ffi::LUA_TTABLE) {
                let len = self.flatten(table, 1)?;
                self.reply.set(len as usize);
                self.open.push(Open { written: 0, len, header: None });
                return Ok(());
            } else if self.has(Field::BigNumber, ffi::LUA_TSTRING) {
                let digits = self.text();
                self.write_big_number(digits);
            } else if !self.wrote_verbatim(table) {
                self.open_list();
                return Ok(());
            }
            ffi::lua_settop(self.lua, table - 1);
        }
        Ok(())
    }

    /// Writes a line in which line ends are blanks.
    fn write_line(&mut self, sigil: u8, line: &[u8]) {
        let tail = self.reply.out().tail();
        tail.push(sigil);
        tail.extend(line.iter().map(|&byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
        tail.extend_from_slice(b"\r\n");
    }

    fn write_big_number(&mut self, digits: &[u8]) {
        match self.reply.proto() {
            Proto::Resp2 => {
                let blank = |byte: &u8| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte };
                let line: Vec<u8> = digits.iter().map(blank).collect();
                self.reply.bulk(&line);
            }
            Proto::Resp3 => self.write_line(b'(', digits),
        }
    }

    /// Writes the table on top, at this place, if it is a text with a format; else leaves it as it was.
    unsafe fn wrote_verbatim(&mut self, table: c_int) -> bool {
        // SAFETY: it is a table, with room above it.
        unsafe {
            let mut three = [b' '; 3];
            let is_one = self.has(Field::VerbatimString, ffi::LUA_TTABLE) && self.has(Field::Format, ffi::LUA_TSTRING);
            if is_one {
                for (to, from) in three.iter_mut().zip(self.text()) {
                    *to = *from;
                }
                ffi::lua_settop(self.lua, table + 1);
                if self.has(Field::String, ffi::LUA_TSTRING) {
                    let text = self.text();
                    self.reply.verbatim(&three, text);
                    return true;
                }
            }
            ffi::lua_settop(self.lua, table);
            false
        }
    }

    /// Opens the list that the table on top is. It ends before its first nil, where Lua's own length mostly is.
    unsafe fn open_list(&mut self) {
        // SAFETY: it is a table, whose length is no more than it can hold.
        let len = unsafe { ffi::lua_objlen(self.lua, -1) };
        let begin = self.reply.out().mark();
        self.reply.array(len);
        let header = self.reply.out().len_since(begin);
        self.open.push(Open { written: 0, len: len as c_int, header: Some((begin, header)) });
    }

    /// Ends the innermost list before its length as Lua has it: there is a nil in between.
    fn end_early(&mut self) -> Result<(), Written> {
        let Some(list) = self.open.last_mut() else { return Ok(()) };
        list.len = list.written;
        let Some((begin, header_len)) = list.header else { return Ok(()) };
        let header = format!("*{}\r\n", list.len).into_bytes();
        let moved = self.reply.out().replace(begin, header_len, &header);
        self.worked(moved / BYTES_A_VALUE)
    }

    /// Makes a list of the keys of the table on top, each with its value behind it where `each` is 2, in the place of the
    /// table that it is a field of. Gives its length.
    unsafe fn flatten(&mut self, place: c_int, each: c_int) -> Result<c_int, Written> {
        let mut len = 0;
        // SAFETY: the table is there and not changed while it is walked, each key is the one that was given last, there
        // is room, and the list is new and holds what is put into it.
        unsafe {
            let (walked, list, key) = (place + 1, place + 2, place + 3);
            ffi::lua_createtable(self.lua, 0, 0);
            ffi::lua_pushnil(self.lua);
            while ffi::lua_next(self.lua, walked) != 0 {
                if len + each > ELEMENTS_MAX {
                    return Err(Written::TooLong);
                }
                ffi::lua_pushvalue(self.lua, key);
                ffi::lua_rawseti_(self.lua, list, len + 1);
                if each == 2 {
                    ffi::lua_rawseti_(self.lua, list, len + 2);
                } else {
                    ffi::lua_settop(self.lua, key);
                }
                len += each;
                self.worked(1)?;
            }
            ffi::lua_replace(self.lua, place);
            ffi::lua_settop(self.lua, place);
        }
        // Many may be open at a time.
        self.need_lua()?;
        Ok(len)
    }

    /// Counts what was done, in values, and now and then asks the host whether to go on.
    #[inline]
    fn worked(&mut self, work: usize) -> Result<(), Written> {
        if self.state.is_time(work) { self.ask() } else { Ok(()) }
    }

    #[cold]
    fn ask(&mut self) -> Result<(), Written> {
        self.need_reply(0)?;
        HOST.with(|host| host.interrupt()).map_err(Written::Stopped)
    }

    /// Refuses a result whose reply would be longer than the state may be large, or than the host allows.
    fn need_reply(&mut self, bytes: usize) -> Result<(), Written> {
        let most = self.state.memory_max();
        let len = self.reply.out().len_since(self.begin).saturating_add(bytes);
        if most > 0 && len > most {
            return Err(Written::TooLong);
        }
        if len <= SHORT {
            return Ok(());
        }
        let most = *self.host_max.get_or_insert_with(|| HOST.with(|host| host.reply_max()).max(SHORT));
        if len > most { Err(Written::LongerThan(most)) } else { Ok(()) }
    }

    /// Refuses a result that has made the state larger than it may be.
    fn need_lua(&self) -> Result<(), Written> {
        // SAFETY: they are of the same interpreter.
        if unsafe { has_room(self.lua, self.state, 0) } { Ok(()) } else { Err(Written::TooLong) }
    }
}
