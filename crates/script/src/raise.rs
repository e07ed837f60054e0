//! Errors that Rust raises in scripts, and what a script sees of them. Knows no command.
//!
//! mlua raises an error of a Rust function as an object of its own. Whatever catches errors in a script (`pcall`,
//! `xpcall`, coroutines, the run itself) is the prelude's, and turns that object into the string or the table that Redis
//! raises, by [`explain`]. A [`Stop`], or a panic, is never
//! turned into anything: it passes through every `pcall`.

use crate::host::Stop;
use mlua::{Error, Lua, Value};
use std::fmt;

/// What was raised.
#[derive(Clone, Debug)]
pub(crate) enum Raised {
    /// A string.
    Text(Vec<u8>),
    /// A table with the error in `err`; `counted`: the statistics know it already.
    Table { err: Vec<u8>, counted: bool },
    /// The script has to end.
    Stop(Stop),
    /// So it has, as something of Rust has panicked; the state holds with what.
    Panicked,
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Raised::Text(text) | Raised::Table { err: text, .. } => f.write_str(&String::from_utf8_lossy(text)),
            Raised::Panicked => f.write_str("a panic"),
            Raised::Stop(stop) => write!(f, "the script is stopped: {stop:?}"),
        }
    }
}

impl std::error::Error for Raised {}

impl From<Raised> for Error {
    fn from(raised: Raised) -> Error {
        Error::external(raised)
    }
}

/// An error with the place in front where the function that runs was called, as `luaL_error` raises it.
pub(crate) fn failure(lua: &Lua, text: impl AsRef<[u8]>) -> Error {
    Raised::Text([place(lua, 1).as_bytes(), text.as_ref()].concat()).into()
}

/// An error of argument `number` of the function that runs, as `luaL_argerror` raises it.
pub(crate) fn bad_argument(lua: &Lua, number: usize, text: &str) -> Error {
    let name = lua.inspect_stack(0, |debug| debug.names().name.map(|name| name.into_owned())).flatten();
    let name = name.unwrap_or_else(|| "?".to_owned());
    failure(lua, format!("bad argument #{number} to '{name}' ({text})"))
}

/// The error of an argument of the wrong type.
pub(crate) fn wrong_type(lua: &Lua, number: usize, expected: &str, value: Option<&Value>) -> Error {
    let got = value.map_or("no value", type_name);
    bad_argument(lua, number, &format!("{expected} expected, got {got}"))
}

/// An error of a function of `redis`: a table, as `luaPushError` makes it.
pub(crate) fn redis_error(text: &str) -> Error {
    Raised::Table { err: with_code(text.as_bytes()), counted: false }.into()
}

/// The text of an error reply, as Redis keeps it in `err`: `-CODE text` without the dash, anything else behind `ERR`.
pub(crate) fn with_code(text: &[u8]) -> Vec<u8> {
    let (code, text) = match text.strip_prefix(b"-") {
        Some(rest) => match rest.iter().position(|byte| *byte == b' ') {
            Some(blank) => (&rest[..blank], &rest[blank + 1..]),
            None => (&b"ERR"[..], rest),
        },
        None => (&b"ERR"[..], text),
    };
    let start = text.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(start, |last| last + 1);
    [code, b" ", &text[start..end]].concat()
}

/// The name that Lua gives a value's type.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Boolean(_) => "boolean",
        Value::Integer(_) | Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Table(_) => "table",
        Value::Function(_) => "function",
        Value::Thread(_) => "thread",
        _ => "userdata",
    }
}

/// `chunk:line: ` of the function so many levels above the one that runs; nothing where that is not Lua's.
fn place(lua: &Lua, level: usize) -> String {
    let place = lua.inspect_stack(level, |debug| {
        let line = debug.current_line()?;
        Some(format!("{}:{line}: ", debug.source().short_src?))
    });
    place.flatten().unwrap_or_default()
}

/// What a script sees of an error object: the value to give it, or nothing when it is not to see it at all.
pub(crate) fn explain(lua: &Lua, error: &Error) -> mlua::Result<Option<Value>> {
    match raised(error) {
        Some(Raised::Stop(_) | Raised::Panicked) => Ok(None),
        Some(Raised::Text(text)) => Ok(Some(Value::String(lua.create_string(text)?))),
        Some(Raised::Table { err, counted }) => {
            let table = lua.create_table()?;
            table.raw_set("err", lua.create_string(err)?)?;
            if *counted {
                table.raw_set("ignore_error_stats_update", true)?;
            }
            Ok(Some(Value::Table(table)))
        }
        None => {
            let text = match root(error) {
                Error::RuntimeError(text) | Error::MemoryError(text) => text.clone(),
                other => other.to_string(),
            };
            Ok(Some(Value::String(lua.create_string(text)?)))
        }
    }
}

/// What was raised, if one of ours was.
pub(crate) fn raised(error: &Error) -> Option<&Raised> {
    match root(error) {
        Error::ExternalError(inner) => inner.downcast_ref(),
        _ => None,
    }
}

fn root(error: &Error) -> &Error {
    match error {
        Error::CallbackError { cause, .. } => root(cause),
        other => other,
    }
}
