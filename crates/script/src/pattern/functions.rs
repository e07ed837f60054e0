//! What `string.find`, `match`, `gmatch`, `gsub` and `rep` do with bytes. Knows nothing of Lua's stack: raw/strings.rs does.

use super::matcher::{Capture, Captures, Fault, Matcher};
use crate::host::{HOST, Stop};
use crate::interpreter::State;
use mlua::Lua;
use std::cell::Cell;

/// What searches leave for each other.
#[derive(Default)]
pub(crate) struct Patterns {
    /// What the last match has caught.
    pub(crate) captures: Captures,
    /// Steps since the host was last asked whether to go on.
    steps: Cell<usize>,
}

/// What a caret at the beginning of a pattern is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caret {
    /// It binds the match to where the search begins.
    Binds,
    /// A byte as others.
    Byte,
}

fn interrupt() -> Result<(), Stop> {
    if HOST.is_set() { HOST.with(|host| host.interrupt()) } else { Ok(()) }
}

pub(crate) fn is_bound(pattern: &[u8]) -> bool {
    pattern.first() == Some(&b'^')
}

/// The first match of a pattern from there on: where it begins and ends. What it has caught is in the state.
pub(crate) fn search(
    state: &State,
    text: &[u8],
    pattern: &[u8],
    from: usize,
    caret: Caret,
) -> Result<Option<(usize, usize)>, Fault> {
    let Patterns { captures, steps } = &state.patterns;
    let mut interrupt = interrupt;
    let mut matcher = Matcher::new(text, pattern, captures, steps, &mut interrupt);
    if caret == Caret::Binds && is_bound(pattern) {
        return Ok(matcher.at(from, 1)?.map(|to| (from, to)));
    }
    matcher.find(from, 0)
}

/// Whether a pattern is more than the text that it is.
pub(crate) fn has_specials(pattern: &[u8]) -> bool {
    pattern
        .iter()
        .take_while(|byte| **byte != 0)
        .any(|byte| matches!(byte, b'^' | b'$' | b'*' | b'+' | b'?' | b'.' | b'(' | b'[' | b'%' | b'-'))
}

/// Where a text has another one first.
pub(crate) fn find_plain(text: &[u8], wanted: &[u8]) -> Option<usize> {
    /// Places where no more than the first byte was right, until it pays to prepare for the search.
    const TRIES: usize = 8;
    let Some((first, others)) = wanted.split_first() else { return Some(0) };
    let mut at = 0;
    for _ in 0..TRIES {
        at += memchr::memchr(*first, text.get(at..)?)?;
        if text[at + 1..].starts_with(others) {
            return Some(at);
        }
        at += 1;
    }
    memchr::memmem::find(&text[at..], wanted).map(|place| at + place)
}

/// A text that grows, beside Lua's memory.
struct Output<'a> {
    state: &'a State,
    bytes: Vec<u8>,
    /// So long it may be before it is looked at how much memory there is.
    known: usize,
}

impl Output<'_> {
    /// Bytes after which it is looked at again.
    const PIECE: usize = 64 * 1024;

    fn add(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let len = self.bytes.len() + bytes.len();
        if len > self.known {
            self.look(len)?;
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    #[cold]
    fn look(&mut self, len: usize) -> Result<(), Fault> {
        let lua: Lua = self.state.lua.upgrade();
        if !self.state.has_room(&lua, len) {
            return Err(Fault::NoMemory);
        }
        self.known = len + Self::PIECE;
        Ok(())
    }

    /// Adds what takes a match's place.
    fn add_replacement(&mut self, text: &[u8], mut by: &[u8], found: (usize, usize)) -> Result<(), Fault> {
        while let Some(sign) = memchr::memchr(b'%', by) {
            self.add(&by[..sign])?;
            match by.get(sign + 1) {
                Some(b'0') => self.add(&text[found.0..found.1])?,
                Some(digit @ b'1'..=b'9') => {
                    let index = usize::from(digit - b'1');
                    match self.state.patterns.captures.of(found, index)? {
                        Capture::Bytes { from, to } => self.add(&text[from..to])?,
                        Capture::Position(at) => self.add((at + 1).to_string().as_bytes())?,
                        Capture::Open { .. } => unreachable!("an open capture is a fault"),
                    }
                }
                // The NUL behind a C string's end, where the sign is the last.
                other => self.add(&[other.copied().unwrap_or(0)])?,
            }
            by = by.get(sign + 2..).unwrap_or_default();
        }
        self.add(by)
    }
}

/// Puts a text, in which `%` and a digit stand for what was caught, in the place of the first `most` matches. Gives how
/// many there were: if any, the result is in [`State::text`].
pub(crate) fn replace(state: &State, text: &[u8], pattern: &[u8], by: &[u8], most: i64) -> Result<i64, Fault> {
    let Patterns { captures, steps } = &state.patterns;
    let mut interrupt = interrupt;
    let mut matcher = Matcher::new(text, pattern, captures, steps, &mut interrupt);
    let is_bound = is_bound(pattern);
    let mut out = Output { state, bytes: state.text.take(), known: Output::PIECE };
    out.bytes.clear();
    let (mut at, mut count) = (0, 0);
    while count < most {
        let found = if is_bound { matcher.at(at, 1)?.map(|to| (at, to)) } else { matcher.find(at, 0)? };
        let Some((from, to)) = found else { break };
        count += 1;
        out.add(&text[at..from])?;
        out.add_replacement(text, by, (from, to))?;
        at = to;
        if to == from {
            let Some(byte) = text.get(from) else { break };
            out.add(&[*byte])?;
            at = from + 1;
        }
        if is_bound {
            break;
        }
    }
    if count > 0 {
        out.add(&text[at..])?;
    }
    state.text.replace(out.bytes);
    Ok(count)
}

/// Puts a text so many times as gives this length into [`State::text`].
pub(crate) fn repeat(state: &State, text: &[u8], len: usize) -> Result<(), Fault> {
    let mut all = state.text.take();
    all.clear();
    // Where a script may have all the memory there is, this is where an impossible length shows.
    all.try_reserve(len).map_err(|_| Fault::NoMemory)?;
    if len > 0 {
        all.extend_from_slice(text);
    }
    while all.len() < len {
        all.extend_from_within(..all.len().min(len - all.len()));
    }
    state.text.replace(all);
    Ok(())
}
