//! `string.find`, `match`, `rep`, and what `gmatch` and `gsub` are made of.

use super::matcher::{Capture, Fault, Matcher, until_nul};
use crate::arguments::{get, int, is_absent, string};
use crate::host::{HOST, Stop};
use crate::interpreter::{State, function};
use crate::raise::{Raised, bad_argument, failure};
use crate::raw::stack::{Body, Fault as Raise, Kind, Stack, register as register_raw};
use mlua::{Function, Lua, LuaString, MultiValue, Table, Value};
use std::rc::Rc;

const FUNCTIONS: [(&str, Body); 4] = [
    ("find", |stack| search(stack, Wanted::Places)),
    ("match", |stack| search(stack, Wanted::Captures)),
    ("rep", rep),
    ("step", step),
];

/// Puts the functions into the table that the prelude takes them from.
pub(crate) fn register(lua: &Lua, state: &Rc<State>, raw: &Table) -> mlua::Result<()> {
    register_raw(lua, state, &state.json, raw, &FUNCTIONS)?;
    raw.raw_set("gsub", function(lua, state, gsub)?)?;
    let shared = Rc::clone(state);
    let replace = lua.create_function(move |_, functions: (Function, Function)| {
        shared.replacing.replace(Some(functions));
        Ok(())
    })?;
    raw.raw_set("replace", replace)?;
    Ok(())
}

fn interrupt() -> Result<(), Stop> {
    if HOST.is_set() { HOST.with(|host| host.interrupt()) } else { Ok(()) }
}

fn raised(lua: &Lua, fault: Fault) -> mlua::Error {
    match fault {
        Fault::Pattern(text) => failure(lua, text),
        Fault::Stopped(stop) => Raised::Stop(stop).into(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Where the match is, and its captures.
    Places,
    /// Its captures, or all of it.
    Captures,
}

fn fault_of(fault: Fault) -> Raise {
    match fault {
        Fault::Pattern(text) => Raise::failed(text),
        Fault::Stopped(stop) => Raise::Stopped(stop),
    }
}

/// Pushes the captures; all of the match where there are none and `whole` says so.
fn push_captures(
    stack: &mut Stack<'_>,
    matcher: &Matcher<'_>,
    text: &[u8],
    found: (usize, usize),
    whole: bool,
) -> Result<(), Raise> {
    let count = match matcher.captures().len() {
        0 => usize::from(whole),
        count => count,
    };
    (0..count).try_for_each(|index| push_capture(stack, matcher, text, index, found))
}

fn push_capture(
    stack: &mut Stack<'_>,
    matcher: &Matcher<'_>,
    text: &[u8],
    index: usize,
    found: (usize, usize),
) -> Result<(), Raise> {
    match matcher.capture(index, found.0, found.1).map_err(fault_of)? {
        Capture::Bytes { from, to } => stack.push_string(&text[from..to]),
        Capture::Position(at) => stack.push_number((at + 1) as f64),
        Capture::Open { .. } => unreachable!("an open capture is a fault"),
    }
}

fn search(stack: &mut Stack<'_>, wanted: Wanted) -> Result<usize, Raise> {
    let (text, pattern) = (stack.text(1)?, stack.text(2)?);
    let from = stack.integer_or(3, 1)?;
    let len = text.len() as i64;
    let from = if from < 0 { from.saturating_add(len + 1).max(0) } else { from };
    let from = (from - 1).clamp(0, len) as usize;
    if wanted == Wanted::Places {
        let is_plain = !matches!(stack.kind(4), Kind::None | Kind::Nil | Kind::Boolean(false));
        let has_specials = || until_nul(pattern).iter().any(|byte| b"^$*+?.([%-".contains(byte));
        if is_plain || !has_specials() {
            let Some(at) = find_plain(&text[from..], pattern).map(|at| from + at) else {
                stack.push_nil()?;
                return Ok(1);
            };
            stack.push_number((at + 1) as f64)?;
            stack.push_number((at + pattern.len()) as f64)?;
            return Ok(2);
        }
    }
    let is_anchored = pattern.first() == Some(&b'^');
    let mut interrupt = interrupt;
    let mut matcher = Matcher::new(text, pattern, &mut interrupt);
    let last = if is_anchored { from } else { text.len() };
    for at in from..=last {
        let found = matcher.at(at, usize::from(is_anchored)).map_err(fault_of)?;
        let Some(end) = found else { continue };
        if wanted == Wanted::Places {
            stack.push_number((at + 1) as f64)?;
            stack.push_number(end as f64)?;
        }
        push_captures(stack, &matcher, text, (at, end), wanted == Wanted::Captures)?;
        return Ok(stack.top() - stack.args());
    }
    stack.push_nil()?;
    Ok(1)
}

fn find_plain(text: &[u8], wanted: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, wanted)
}

/// `step(text, pattern, from, literal_caret, first_capture)`: the first match from there on: its first position, the
/// position behind it, and its captures or all of it; of several captures the first alone if that is said. Where Lua would
/// raise a text behind the place of the call, it is given behind `false`: the call is the prelude's, and its place not meant.
fn step(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    match try_step(stack) {
        Err(Raise::Failed(text)) => {
            stack.pop(stack.top() - stack.args());
            stack.push_boolean(false)?;
            stack.push_string(&text)?;
            Ok(2)
        }
        result => result,
    }
}

fn try_step(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let (text, pattern) = (stack.text(1)?, stack.text(2)?);
    let from = stack.integer_or(3, 1)? as usize - 1;
    let literal_caret = stack.kind(4) == Kind::Boolean(true);
    let is_anchored = !literal_caret && pattern.first() == Some(&b'^');
    let mut interrupt = interrupt;
    let mut matcher = Matcher::new(text, pattern, &mut interrupt);
    let last = if is_anchored { from } else { text.len() };
    for at in from..=last {
        let found = matcher.at(at, usize::from(is_anchored)).map_err(fault_of)?;
        let Some(end) = found else { continue };
        stack.push_number((at + 1) as f64)?;
        stack.push_number((end + 1) as f64)?;
        if stack.kind(5) == Kind::Boolean(true) {
            push_capture(stack, &matcher, text, 0, (at, end))?;
        } else {
            push_captures(stack, &matcher, text, (at, end), true)?;
        }
        return Ok(stack.top() - stack.args());
    }
    stack.push_nil()?;
    Ok(1)
}

/// `string.gsub`.
fn gsub(lua: &Lua, state: &State, args: MultiValue) -> mlua::Result<(LuaString, f64)> {
    let (text, pattern) = (string(lua, &args, 1)?, string(lua, &args, 2)?);
    match get(&args, 3) {
        Some(Value::String(_) | Value::Integer(_) | Value::Number(_)) => {}
        Some(by @ (Value::Table(_) | Value::Function(_))) => {
            let most = most(lua, &args)?.min(text.as_bytes().len() as i64 + 1);
            return gsub_in_lua(lua, state, (text, pattern, by.clone(), most as f64));
        }
        _ => return Err(bad_argument(lua, 3, "string/function/table expected")),
    }
    let by = string(lua, &args, 3)?;
    let (text, pattern, by) = (text.as_bytes(), pattern.as_bytes(), by.as_bytes());
    let most = most(lua, &args)?;
    let is_anchored = pattern.first() == Some(&b'^');
    let mut interrupt = interrupt;
    let mut matcher = Matcher::new(&text, &pattern, &mut interrupt);
    let (mut out, mut at, mut count) = (Vec::new(), 0, 0);
    while count < most {
        let found = matcher.at(at, usize::from(is_anchored)).map_err(|fault| raised(lua, fault))?;
        if let Some(end) = found {
            count += 1;
            add_replacement(lua, &matcher, &text, &by, (at, end), &mut out)?;
            if !state.has_room(lua, out.len()) {
                return Err(Raised::Text(b"not enough memory".to_vec()).into());
            }
        }
        match found {
            Some(end) if end > at => at = end,
            _ if at < text.len() => {
                out.push(text[at]);
                at += 1;
            }
            _ => break,
        }
        if is_anchored {
            break;
        }
    }
    out.extend_from_slice(&text[at..]);
    Ok((lua.create_string(out)?, count as f64))
}

/// How many replacements are wanted at most.
fn most(lua: &Lua, args: &MultiValue) -> mlua::Result<i64> {
    if is_absent(args, 4) { Ok(i64::MAX) } else { Ok(int(lua, args, 4)?.into()) }
}

/// The prelude does it where a function of the script may run; what that raises goes on from here as it is.
fn gsub_in_lua(lua: &Lua, state: &State, call: (LuaString, LuaString, Value, f64)) -> mlua::Result<(LuaString, f64)> {
    let (replace, pcall) = state.replacing.borrow().clone().expect("the prelude has given it");
    let (text, pattern, by, most) = call;
    let result: MultiValue = state.limited(lua, || pcall.call((replace, text, pattern, by, most)))?;
    let mut results = result.into_iter();
    match (results.next(), results.next(), results.next()) {
        (Some(Value::Boolean(true)), Some(Value::String(text)), Some(count)) => {
            Ok((text, lua.coerce_number(count)?.unwrap_or(0.0)))
        }
        (Some(Value::Boolean(true)), _, Some(Value::String(why))) => Err(failure(lua, why.as_bytes())),
        (_, Some(Value::Error(error)), _) => Err(*error),
        (_, raised, _) => {
            state.kept.replace(raised);
            Err(Raised::Kept.into())
        }
    }
}

fn add_replacement(
    lua: &Lua,
    matcher: &Matcher<'_>,
    text: &[u8],
    by: &[u8],
    found: (usize, usize),
    out: &mut Vec<u8>,
) -> mlua::Result<()> {
    let mut bytes = by.iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'0') => out.extend_from_slice(&text[found.0..found.1]),
            Some(digit @ b'1'..=b'9') => {
                let index = usize::from(digit - b'1');
                match matcher.capture(index, found.0, found.1).map_err(|fault| raised(lua, fault))? {
                    Capture::Bytes { from, to } => out.extend_from_slice(&text[from..to]),
                    Capture::Position(at) => out.extend_from_slice((at + 1).to_string().as_bytes()),
                    Capture::Open { .. } => unreachable!("an open capture is a fault"),
                }
            }
            // The NUL behind a C string's end, where the sign is the last.
            other => out.push(other.copied().unwrap_or(0)),
        }
    }
    Ok(())
}

/// `string.rep`: what does not fit is refused before it is made.
fn rep(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let text = stack.text(1)?;
    let count = usize::try_from(stack.int(2)?).unwrap_or(0);
    // Twice, as it is made here and then copied.
    let both = text.len().checked_mul(count).and_then(|len| len.checked_mul(2)).ok_or(Raise::NO_MEMORY)?;
    stack.need(both)?;
    let mut all = Vec::new();
    // Where a script may have all the memory there is, this is where an impossible length shows.
    all.try_reserve_exact(both / 2).map_err(|_| Raise::NO_MEMORY)?;
    all.extend_from_slice(if count == 0 { b"" } else { text });
    while all.len() < both / 2 {
        all.extend_from_within(..all.len().min(both / 2 - all.len()));
    }
    stack.push_string(&all)?;
    Ok(1)
}
