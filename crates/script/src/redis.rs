//! The `redis` table of scripts and libraries. Knows no command: calls go to the host.

use crate::arguments::truncate;
use crate::host::{HOST, LogLevel, Propagation, Stop, Words};
use crate::interpreter::{Kind, Settings, State, function};
use crate::raise::{Raised, redis_error, with_code};
use crate::raw::calls;
use crate::raw::stack::{Body, Fault, Kind as ValueKind, Stack, register};
use crate::{into_lua, library};
use mlua::{Lua, MultiValue, Table, Value};
use sha1::{Digest, Sha1};
use std::io::IoSlice;
use std::rc::Rc;
use tenon_ds::progress;
use tenon_wire::OutBuf;
use tenon_wire::resp::Proto;
use tenon_wire::resp::double::DoubleText;

const LOG_LEVELS: [(&str, LogLevel); 4] = [
    ("LOG_DEBUG", LogLevel::Debug),
    ("LOG_VERBOSE", LogLevel::Verbose),
    ("LOG_NOTICE", LogLevel::Notice),
    ("LOG_WARNING", LogLevel::Warning),
];

/// The flag of `redis.set_repl` that has writes be logged.
const REPL_AOF: i64 = 1;
/// All of its flags; there are no replicas.
const REPL: [(&str, i64); 5] =
    [("REPL_NONE", 0), ("REPL_AOF", REPL_AOF), ("REPL_SLAVE", 2), ("REPL_REPLICA", 2), ("REPL_ALL", 3)];

/// What a call does about an error reply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnError {
    Raise,
    Return,
}

/// What a call has come to that is not a usual reply.
pub(crate) enum Odd {
    /// A reply that takes more than usual; it is in the state's buffer.
    Reply,
    /// Its arguments are none of a command.
    Refused(&'static str),
    /// The script has to end.
    Stopped(Stop),
    /// The host has panicked.
    Panicked,
}

/// What a call without arguments is told.
pub(crate) const NO_ARGUMENTS: &str = "Please specify at least one argument for this redis lib call";
/// What a call is told with an argument that is no word.
pub(crate) const NO_WORDS: &str = "Lua redis lib command arguments must be strings or integers";
/// What a call is told whose arguments are too long together.
pub(crate) const TOO_LONG: &str = "Lua redis lib command arguments are too long";

const OFTEN: [(&str, Body); 3] = [("error_reply", error_reply), ("status_reply", status_reply), ("sha1hex", sha1hex)];

/// The table while scripts run.
pub(crate) fn library(lua: &Lua, state: &Rc<State>, kind: Kind, settings: &Settings) -> mlua::Result<Table> {
    let table = constants(lua, settings)?;
    for (name, flag) in REPL {
        table.raw_set(name, flag)?;
    }
    for (name, on_error) in [("call", OnError::Raise), ("pcall", OnError::Return)] {
        let finish = function(lua, state, move |lua, state, _| finish(lua, state, on_error))?;
        table.raw_set(name, calls::caller(lua, state, &finish)?)?;
    }
    table.raw_set("log", function(lua, state, log)?)?;
    table.raw_set("setresp", function(lua, state, setresp)?)?;
    register(lua, state, &state.json, &table, &OFTEN)?;
    table.raw_set("set_repl", function(lua, state, set_repl)?)?;
    table.raw_set("acl_check_cmd", function(lua, state, acl_check_cmd)?)?;
    if kind == Kind::Scripts {
        table.raw_set("replicate_commands", function(lua, state, |_, _, _| Ok(true))?)?;
        // There is no debugger: as in Redis without one, a breakpoint is passed by.
        table.raw_set("breakpoint", function(lua, state, |_, _, _| Ok(false))?)?;
        table.raw_set("debug", function(lua, state, |_, _, _| Ok(()))?)?;
    }
    Ok(table)
}

/// The table while a library is loaded.
pub(crate) fn while_loading(lua: &Lua, state: &Rc<State>, settings: &Settings) -> mlua::Result<Table> {
    let table = constants(lua, settings)?;
    table.raw_set("log", function(lua, state, log)?)?;
    table.raw_set("register_function", function(lua, state, library::register)?)?;
    Ok(table)
}

fn constants(lua: &Lua, settings: &Settings) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for (number, (name, _)) in LOG_LEVELS.iter().enumerate() {
        table.raw_set(*name, number)?;
    }
    let (version, number) = settings.redis_version;
    table.raw_set("REDIS_VERSION", version)?;
    table.raw_set("REDIS_VERSION_NUM", number)?;
    Ok(table)
}

/// Writes a command's words; an error where there are none or one is no word.
fn collect(args: &MultiValue, words: &mut Words) -> Result<(), &'static str> {
    if args.is_empty() {
        return Err(NO_ARGUMENTS);
    }
    for value in args {
        let fits = match value {
            Value::String(text) => words.push(&text.as_bytes()),
            Value::Integer(value) => words.push(itoa::Buffer::new().format(*value).as_bytes()),
            Value::Number(value) => push_number(words, *value),
            _ => return Err(NO_WORDS),
        };
        if !fits {
            return Err(TOO_LONG);
        }
    }
    Ok(())
}

/// Writes a number as a command's word, as Redis does from 7.2 on; tells whether it fits.
pub(crate) fn push_number(words: &mut Words, value: f64) -> bool {
    if value.is_nan() && value.is_sign_negative() {
        // As `0/0` is on x86.
        return words.push(b"-nan");
    }
    // There is one zero.
    words.push(DoubleText::of(value + 0.0).as_bytes())
}

/// What a call has come to that `raw::calls` leaves to us.
fn finish(lua: &Lua, state: &State, on_error: OnError) -> mlua::Result<Value> {
    match state.odd.take() {
        Some(Odd::Reply) | None => {}
        Some(Odd::Refused(text)) => {
            let error = redis_error(text);
            return match on_error {
                OnError::Raise => Err(error),
                OnError::Return => caught(lua, &error),
            };
        }
        Some(Odd::Stopped(stop)) => return Err(Raised::Stop(stop).into()),
        Some(Odd::Panicked) => return Err(Raised::Panicked.into()),
    }
    let mut scratch = state.scratch.take().unwrap_or_default();
    let (_, out) = &mut *scratch;
    let bytes = in_one_piece(out);
    let result = if on_error == OnError::Raise && bytes.first() == Some(&b'-') {
        Err(Raised::Table { err: with_code(bytes), counted: true }.into())
    } else {
        into_lua::decode(lua, bytes).map(|(value, _)| value)
    };
    state.scratch.replace(Some(scratch));
    calls::settle(state);
    result
}

fn caught(lua: &Lua, error: &mlua::Error) -> mlua::Result<Value> {
    Ok(crate::raise::explain(lua, error)?.unwrap_or(Value::Nil))
}

/// All bytes of a reply, put together where they are in several pieces: as long ones are, and long values in them.
pub(crate) fn in_one_piece(out: &mut OutBuf) -> &[u8] {
    if out.contiguous().is_none() {
        // Counted before, and with what the script is given of it.
        progress::count_bytes(out.len());
        progress::will_take(2 * out.len());
        let mut bytes = Vec::with_capacity(out.len());
        while !out.is_empty() {
            let mut piece = [IoSlice::new(&[])];
            out.io_slices(&mut piece);
            let len = piece[0].len();
            bytes.extend_from_slice(&piece[0]);
            out.advance(len);
        }
        *out.tail() = bytes;
    }
    out.contiguous().expect("it was put together")
}

fn log(lua: &Lua, _: &State, args: MultiValue) -> mlua::Result<()> {
    if args.len() < 2 {
        return Err(redis_error("redis.log() requires two arguments or more."));
    }
    let Some(level) = lua.coerce_number(args[0].clone())? else {
        return Err(redis_error("First argument must be a number (log level)."));
    };
    let Some((_, level)) = usize::try_from(truncate(level)).ok().and_then(|level| LOG_LEVELS.get(level)) else {
        return Err(redis_error("Invalid debug level."));
    };
    let mut text = Vec::new();
    for value in args.iter().skip(1) {
        if let Some(word) = lua.coerce_string(value.clone())? {
            if !text.is_empty() {
                text.push(b' ');
            }
            text.extend_from_slice(&word.as_bytes());
        }
    }
    HOST.with(|host| host.log(*level, &text));
    Ok(())
}

fn setresp(lua: &Lua, state: &State, args: MultiValue) -> mlua::Result<()> {
    if args.len() != 1 {
        return Err(redis_error("redis.setresp() requires one argument."));
    }
    state.proto.set(match lua.coerce_number(args[0].clone())?.map(truncate) {
        Some(2) => Proto::Resp2,
        Some(3) => Proto::Resp3,
        _ => return Err(redis_error("RESP version must be 2 or 3.")),
    });
    Ok(())
}

/// Pushes a table with one field.
fn push_reply(stack: &mut Stack<'_>, field: &str, text: &[u8]) -> Result<usize, Fault> {
    stack.push_table(1)?;
    stack.push_string(field.as_bytes())?;
    stack.push_string(text)?;
    stack.set_field()?;
    Ok(1)
}

/// What `error_reply` and `status_reply` answer where the only argument is not a string.
fn push_refusal(stack: &mut Stack<'_>) -> Result<usize, Fault> {
    push_reply(stack, "err", &with_code(b"wrong number or type of arguments"))
}

fn is_one_string(stack: &Stack<'_>) -> bool {
    stack.args() == 1 && stack.kind(1) == ValueKind::String
}

fn error_reply(stack: &mut Stack<'_>) -> Result<usize, Fault> {
    if !is_one_string(stack) {
        return push_refusal(stack);
    }
    // A text for C, which ends at its first NUL.
    let text = stack.text(1)?.split(|byte| *byte == 0).next().unwrap_or_default();
    let text = if text.starts_with(b"-") { with_code(text) } else { with_code(&[b"-", text].concat()) };
    push_reply(stack, "err", &text)
}

fn status_reply(stack: &mut Stack<'_>) -> Result<usize, Fault> {
    if !is_one_string(stack) {
        return push_refusal(stack);
    }
    let text = stack.text(1)?;
    push_reply(stack, "ok", text)
}

fn sha1hex(stack: &mut Stack<'_>) -> Result<usize, Fault> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    if stack.args() != 1 {
        return Err(Fault::Table("wrong number of arguments"));
    }
    let text = match stack.kind(1) {
        ValueKind::String | ValueKind::Number(_) => stack.text(1)?,
        _ => b"",
    };
    let mut hex = [0; 40];
    for (two, byte) in hex.chunks_exact_mut(2).zip(Sha1::digest(text)) {
        two.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
    stack.push_string(&hex)?;
    Ok(1)
}

fn set_repl(lua: &Lua, _: &State, args: MultiValue) -> mlua::Result<()> {
    if args.len() != 1 {
        return Err(redis_error("redis.set_repl() requires two arguments."));
    }
    // What is no number counts as none of the flags.
    let flags = lua.coerce_number(args[0].clone())?.map_or(0, truncate);
    if !(0..=3).contains(&flags) {
        return Err(redis_error("Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE."));
    }
    let propagation = if flags & REPL_AOF == 0 { Propagation::Withheld } else { Propagation::Logged };
    HOST.with(|host| host.propagate(propagation));
    Ok(())
}

fn acl_check_cmd(_: &Lua, _: &State, args: MultiValue) -> mlua::Result<bool> {
    let mut words = Words::default();
    collect(&args, &mut words).map_err(redis_error)?;
    HOST.with(|host| host.may_call(&words)).map_err(|_| redis_error("Invalid command passed to redis.acl_check_cmd()"))
}

/// `math.random`.
pub(crate) fn random(stack: &Stack<'_>) -> Result<f64, Fault> {
    let part = stack.state.next_random();
    let value = match stack.args() {
        0 => part,
        1 => {
            let most = stack.int(1)?;
            if most < 1 {
                return Err(Fault::argument(1, "interval is empty"));
            }
            (part * f64::from(most)).floor() + 1.0
        }
        2 => {
            let (least, most) = (stack.int(1)?, stack.int(2)?);
            if least > most {
                return Err(Fault::argument(2, "interval is empty"));
            }
            let count = f64::from(most.wrapping_sub(least).wrapping_add(1));
            (part * count).floor() + f64::from(least)
        }
        _ => return Err(Fault::failed("wrong number of arguments")),
    };
    Ok(value)
}
