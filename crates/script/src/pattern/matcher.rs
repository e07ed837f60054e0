//! Lua 5.1's patterns over bytes. Knows no Lua: whoever runs it says how to be interrupted.

use crate::host::Stop;
use std::cell::Cell;

const CAPTURES_MAX: usize = 32;
/// Items of a pattern that may be open at the same time; the recursion ends there.
const DEPTH_MAX: usize = 200;
/// Steps between two looks at whether to go on.
const STEPS: usize = 1 << 16;
/// Bytes of a long set, or of what was caught before, that take as long to look at as one step.
const BYTES_A_STEP: usize = 32;
/// Bytes that are looked at before they are counted as steps.
const BYTES_AT_ONCE: usize = 4096;

/// Why a match ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The pattern makes no sense; the text that Lua says.
    Pattern(&'static str),
    /// What is made of the matches does not fit into the memory.
    NoMemory,
    /// The script has to end.
    Stopped(Stop),
}

/// What a pair of parentheses has caught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capture {
    /// It is open.
    Open { from: usize },
    /// Bytes.
    Bytes { from: usize, to: usize },
    /// A position, from 0: `()`.
    Position(usize),
}

/// What the parentheses of one match have caught. They stay where they are from one match to the next: what is behind the
/// last is of former ones.
pub(crate) struct Captures {
    all: [Cell<Capture>; CAPTURES_MAX],
    count: Cell<usize>,
}

impl Default for Captures {
    fn default() -> Captures {
        Captures { all: [const { Cell::new(Capture::Position(0)) }; CAPTURES_MAX], count: Cell::new(0) }
    }
}

impl Captures {
    pub(crate) fn count(&self) -> usize {
        self.count.get()
    }

    fn get(&self, index: usize) -> Option<Capture> {
        if index < self.count.get() { self.all.get(index).map(Cell::get) } else { None }
    }

    fn set(&self, index: usize, capture: Capture) {
        self.all[index].set(capture);
    }

    /// Capture `index` of a match that is there, where 0 is the whole match if there are no parentheses.
    pub(crate) fn of(&self, (from, to): (usize, usize), index: usize) -> Result<Capture, Fault> {
        match self.get(index) {
            None if index == 0 => Ok(Capture::Bytes { from, to }),
            None => Err(Fault::Pattern("invalid capture index")),
            Some(Capture::Open { .. }) => Err(Fault::Pattern("unfinished capture")),
            Some(capture) => Ok(capture),
        }
    }
}

/// With what a match has to begin.
#[derive(Clone, Copy)]
enum Start {
    /// With this byte.
    Byte(u8),
    /// With a byte of the class between these places of the pattern.
    Class(usize, usize),
    /// That is not known.
    Anything,
}

/// One search of a pattern in a text.
pub(crate) struct Matcher<'a> {
    text: &'a [u8],
    pattern: &'a [u8],
    captures: &'a Captures,
    depth: usize,
    steps: &'a Cell<usize>,
    interrupt: &'a mut dyn FnMut() -> Result<(), Stop>,
}

type Matched = Result<Option<usize>, Fault>;

impl<'a> Matcher<'a> {
    /// A matcher; the pattern ends at its first NUL, as in Lua 5.1. `steps` are those since the last look at whether to go
    /// on, which the next search goes on with.
    pub(crate) fn new(
        text: &'a [u8],
        pattern: &'a [u8],
        captures: &'a Captures,
        steps: &'a Cell<usize>,
        interrupt: &'a mut dyn FnMut() -> Result<(), Stop>,
    ) -> Matcher<'a> {
        Matcher { text, pattern: until_nul(pattern), captures, depth: 0, steps, interrupt }
    }

    /// Whether the pattern holds at exactly this position; gives the end.
    pub(crate) fn at(&mut self, from: usize, pattern_from: usize) -> Matched {
        self.captures.count.set(0);
        self.depth = 0;
        self.run(from, pattern_from)
    }

    /// The first match from there on: where it begins and ends.
    pub(crate) fn find(&mut self, from: usize, pattern_from: usize) -> Result<Option<(usize, usize)>, Fault> {
        let start = self.start(pattern_from)?;
        let mut at = from;
        while let Some(place) = self.next_start(at, start)? {
            if let Some(end) = self.at(place, pattern_from)? {
                return Ok(Some((place, end)));
            }
            at = place + 1;
        }
        Ok(None)
    }

    /// With what a match of the pattern from this item on begins.
    fn start(&self, mut item: usize) -> Result<Start, Fault> {
        if self.item(item) == Some(b'(') && self.item(item + 1) != Some(b')') {
            item += 1;
        }
        let (start, end) = match self.item(item) {
            None | Some(b'.' | b'(' | b')' | b'$') => return Ok(Start::Anything),
            Some(b'%') => match self.item(item + 1) {
                None | Some(b'b' | b'f' | b'0'..=b'9') => return Ok(Start::Anything),
                Some(_) => (Start::Class(item, item + 2), item + 2),
            },
            Some(b'[') => {
                let end = self.class_end(item)?;
                (Start::Class(item, end), end)
            }
            Some(byte) => (Start::Byte(byte), item + 1),
        };
        // What need not be there tells nothing.
        Ok(if matches!(self.item(end), Some(b'*' | b'?' | b'-')) { Start::Anything } else { start })
    }

    /// The first place from `at` on where a match may begin.
    fn next_start(&mut self, at: usize, start: Start) -> Matched {
        let Some(rest) = self.text.get(at..) else { return Ok(None) };
        let next = match start {
            Start::Anything => return Ok(Some(at)),
            Start::Byte(byte) => memchr::memchr(byte, rest),
            Start::Class(item, end) => {
                let passed = self.run_of(at, item, end, false)?;
                (passed < rest.len()).then_some(passed)
            }
        };
        if let Start::Byte(_) = start {
            self.look_over(next.unwrap_or(rest.len()))?;
        }
        Ok(next.map(|next| at + next))
    }

    /// How many bytes from there on are in a class, or are not.
    fn run_of(&mut self, from: usize, item: usize, end: usize, are_in: bool) -> Result<usize, Fault> {
        let text = self.text;
        if end - item <= BYTES_A_STEP && text.get(from).is_none_or(|byte| self.single(*byte, item, end) != are_in) {
            return Ok(0);
        }
        let (mut at, cost) = (from, 1 + (end - item) / BYTES_A_STEP);
        // A long set is looked through for each byte.
        let at_once = (BYTES_AT_ONCE / cost).max(1);
        loop {
            let piece = &text[at..text.len().min(at + at_once)];
            let passed = match self.pattern[item] {
                b'.' => {
                    if are_in {
                        piece.len()
                    } else {
                        0
                    }
                }
                b'%' => {
                    let class = self.pattern[item + 1];
                    piece.iter().take_while(|byte| in_class(**byte, class) == are_in).count()
                }
                b'[' => piece.iter().take_while(|byte| self.in_set(**byte, item, end - 1) == are_in).count(),
                other => piece.iter().take_while(|byte| (**byte == other) == are_in).count(),
            };
            at += passed;
            self.count(passed.saturating_mul(cost))?;
            if passed < at_once {
                return Ok(at - from);
            }
        }
    }

    fn step(&mut self) -> Result<(), Fault> {
        self.count(1)
    }

    /// Counts a look at so many bytes beside the step that it is of.
    fn look_over(&mut self, bytes: usize) -> Result<(), Fault> {
        self.count(bytes / BYTES_A_STEP)
    }

    fn count(&mut self, steps: usize) -> Result<(), Fault> {
        let steps = self.steps.get().saturating_add(steps);
        self.steps.set(steps);
        if steps >= STEPS { self.ask() } else { Ok(()) }
    }

    #[cold]
    fn ask(&mut self) -> Result<(), Fault> {
        self.steps.set(0);
        (self.interrupt)().map_err(Fault::Stopped)
    }

    fn item(&self, at: usize) -> Option<u8> {
        self.pattern.get(at).copied()
    }

    fn run(&mut self, from: usize, item: usize) -> Matched {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Fault::Pattern("pattern too complex"));
        }
        let result = self.follow(from, item);
        self.depth -= 1;
        result
    }

    fn follow(&mut self, mut at: usize, mut item: usize) -> Matched {
        loop {
            self.step()?;
            match self.item(item) {
                None => return Ok(Some(at)),
                Some(b'(') if self.item(item + 1) == Some(b')') => {
                    return self.start_capture(at, item + 2, Capture::Position(at));
                }
                Some(b'(') => return self.start_capture(at, item + 1, Capture::Open { from: at }),
                Some(b')') => return self.end_capture(at, item + 1),
                Some(b'$') if item + 1 == self.pattern.len() => return Ok((at == self.text.len()).then_some(at)),
                Some(b'%') => match self.item(item + 1) {
                    Some(b'b') => match self.balanced(at, item + 2)? {
                        Some(end) => {
                            at = end;
                            item += 4;
                            continue;
                        }
                        None => return Ok(None),
                    },
                    Some(b'f') => {
                        item += 2;
                        if self.item(item) != Some(b'[') {
                            return Err(Fault::Pattern("missing '[' after '%f' in pattern"));
                        }
                        let end = self.class_end(item)?;
                        self.look_over(end - item)?;
                        let before = if at == 0 { 0 } else { self.text[at - 1] };
                        let here = self.text.get(at).copied().unwrap_or(0);
                        if self.in_set(before, item, end - 1) || !self.in_set(here, item, end - 1) {
                            return Ok(None);
                        }
                        item = end;
                        continue;
                    }
                    Some(digit @ b'0'..=b'9') => match self.back_reference(at, digit)? {
                        Some(end) => {
                            at = end;
                            item += 2;
                            continue;
                        }
                        None => return Ok(None),
                    },
                    _ => {}
                },
                Some(_) => {}
            }
            let end = self.class_end(item)?;
            self.look_over(end - item)?;
            let holds = at < self.text.len() && self.single(self.text[at], item, end);
            match self.item(end) {
                Some(b'?') => {
                    if holds && let Some(found) = self.run(at + 1, end + 1)? {
                        return Ok(Some(found));
                    }
                    item = end + 1;
                }
                Some(b'*') => return self.as_many(at, item, end, 0),
                Some(b'+') => return if holds { self.as_many(at, item, end, 1) } else { Ok(None) },
                Some(b'-') => return self.as_few(at, item, end),
                _ if holds => {
                    at += 1;
                    item = end;
                }
                _ => return Ok(None),
            }
        }
    }

    fn as_many(&mut self, at: usize, item: usize, end: usize, least: usize) -> Matched {
        let mut count = least + self.run_of(at + least, item, end, true)?;
        loop {
            if let Some(found) = self.run(at + count, end + 1)? {
                return Ok(Some(found));
            }
            if count == least {
                return Ok(None);
            }
            count -= 1;
        }
    }

    fn as_few(&mut self, mut at: usize, item: usize, end: usize) -> Matched {
        loop {
            if let Some(found) = self.run(at, end + 1)? {
                return Ok(Some(found));
            }
            if at >= self.text.len() || !self.single(self.text[at], item, end) {
                return Ok(None);
            }
            at += 1;
            self.look_over(end - item)?;
        }
    }

    fn start_capture(&mut self, at: usize, item: usize, capture: Capture) -> Matched {
        let count = self.captures.count();
        if count >= CAPTURES_MAX {
            return Err(Fault::Pattern("too many captures"));
        }
        self.captures.set(count, capture);
        self.captures.count.set(count + 1);
        let found = self.run(at, item)?;
        if found.is_none() {
            self.captures.count.set(count);
        }
        Ok(found)
    }

    fn end_capture(&mut self, at: usize, item: usize) -> Matched {
        let captures = self.captures;
        let open = |index: usize| match captures.get(index) {
            Some(Capture::Open { from }) => Some((index, from)),
            _ => None,
        };
        let Some((index, from)) = (0..captures.count()).rev().find_map(open) else {
            return Err(Fault::Pattern("invalid pattern capture"));
        };
        captures.set(index, Capture::Bytes { from, to: at });
        let found = self.run(at, item)?;
        if found.is_none() {
            captures.set(index, Capture::Open { from });
        }
        Ok(found)
    }

    fn balanced(&mut self, at: usize, item: usize) -> Matched {
        let (Some(open), Some(close)) = (self.item(item), self.item(item + 1)) else {
            return Err(Fault::Pattern("unbalanced pattern"));
        };
        if self.text.get(at) != Some(&open) {
            return Ok(None);
        }
        let mut inside = 1;
        for index in at + 1..self.text.len() {
            self.step()?;
            if self.text[index] == close {
                inside -= 1;
                if inside == 0 {
                    return Ok(Some(index + 1));
                }
            } else if self.text[index] == open {
                inside += 1;
            }
        }
        Ok(None)
    }

    fn back_reference(&mut self, at: usize, digit: u8) -> Matched {
        let index = usize::from(digit).wrapping_sub(usize::from(b'1'));
        match self.captures.get(index) {
            Some(Capture::Bytes { from, to }) => {
                self.look_over(to - from)?;
                let caught = &self.text[from..to];
                Ok(self.text[at..].starts_with(caught).then(|| at + caught.len()))
            }
            // A position is of no length that could be there: in C it is a huge one.
            Some(Capture::Position(_)) => Ok(None),
            Some(Capture::Open { .. }) | None => Err(Fault::Pattern("invalid capture index")),
        }
    }

    /// Where the class that starts at `item` ends.
    fn class_end(&self, item: usize) -> Result<usize, Fault> {
        let mut at = item + 1;
        match self.pattern[item] {
            b'%' => {
                if at >= self.pattern.len() {
                    return Err(Fault::Pattern("malformed pattern (ends with '%')"));
                }
                Ok(at + 1)
            }
            b'[' => {
                if self.item(at) == Some(b'^') {
                    at += 1;
                }
                loop {
                    // The first byte belongs to the set, a bracket too.
                    match self.item(at) {
                        None => return Err(Fault::Pattern("malformed pattern (missing ']')")),
                        Some(b'%') => at += if at + 1 < self.pattern.len() { 2 } else { 1 },
                        Some(_) => at += 1,
                    }
                    if self.item(at) == Some(b']') {
                        return Ok(at + 1);
                    }
                }
            }
            _ => Ok(at),
        }
    }

    fn single(&self, byte: u8, item: usize, end: usize) -> bool {
        match self.pattern[item] {
            b'.' => true,
            b'%' => in_class(byte, self.pattern[item + 1]),
            b'[' => self.in_set(byte, item, end - 1),
            other => other == byte,
        }
    }

    /// Whether a byte is in the set between the brackets at `open` and `close`.
    fn in_set(&self, byte: u8, open: usize, close: usize) -> bool {
        let mut at = open + 1;
        let mut found = true;
        if self.pattern[at] == b'^' {
            found = false;
            at += 1;
        }
        while at < close {
            if self.pattern[at] == b'%' {
                at += 1;
                if in_class(byte, self.pattern[at]) {
                    return found;
                }
                at += 1;
            } else if self.pattern[at + 1] == b'-' && at + 2 < close {
                if (self.pattern[at]..=self.pattern[at + 2]).contains(&byte) {
                    return found;
                }
                at += 3;
            } else {
                if self.pattern[at] == byte {
                    return found;
                }
                at += 1;
            }
        }
        !found
    }
}

/// What lies before the first NUL.
fn until_nul(pattern: &[u8]) -> &[u8] {
    memchr::memchr(0, pattern).map_or(pattern, |end| &pattern[..end])
}

fn in_class(byte: u8, class: u8) -> bool {
    match CLASSES[usize::from(class)] {
        0 => class == byte,
        bit => (MEMBERS[usize::from(byte)] & bit != 0) != class.is_ascii_uppercase(),
    }
}

/// The letters of the classes.
const LETTERS: [u8; 10] = *b"acdlpsuwxz";

/// The bit of the class that a letter, small or large, is; 0 for other bytes.
static CLASSES: [u16; 256] = {
    let mut bits = [0; 256];
    let mut index = 0;
    while index < LETTERS.len() {
        bits[LETTERS[index] as usize] = 1 << index;
        bits[LETTERS[index].to_ascii_uppercase() as usize] = 1 << index;
        index += 1;
    }
    bits
};

/// The bits of the classes that a byte is in.
static MEMBERS: [u16; 256] = {
    let mut members = [0; 256];
    let mut at = 0;
    while at < 256 {
        let byte = at as u8;
        let is_in = [
            byte.is_ascii_alphabetic(),
            byte.is_ascii_control(),
            byte.is_ascii_digit(),
            byte.is_ascii_lowercase(),
            byte.is_ascii_punctuation(),
            matches!(byte, b' ' | b'\t'..=b'\r'),
            byte.is_ascii_uppercase(),
            byte.is_ascii_alphanumeric(),
            byte.is_ascii_hexdigit(),
            byte == 0,
        ];
        let mut index = 0;
        while index < is_in.len() {
            members[at] |= (is_in[index] as u16) << index;
            index += 1;
        }
        at += 1;
    }
    members
};

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str, pattern: &str) -> Result<Option<(usize, usize)>, Fault> {
        let (captures, steps, mut interrupt) = (Captures::default(), Cell::new(0), || Ok(()));
        let mut matcher = Matcher::new(text.as_bytes(), pattern.as_bytes(), &captures, &steps, &mut interrupt);
        matcher.find(0, 0)
    }

    #[test]
    fn matches_as_lua_does() {
        let cases = [
            ("hello world", "o w", Some((4, 7))),
            ("hello", "l+", Some((2, 4))),
            ("hello", "l-o", Some((2, 5))),
            ("key = value", "(%w+)%s*=%s*(%w+)", Some((0, 11))),
            ("f(a(b)c)d", "%b()", Some((1, 8))),
            ("THE (quick) fox", "%f[%a]%a+%f[%A]", Some((0, 3))),
            ("abab", "(ab)%1", Some((0, 4))),
            ("a]b", "[]]", Some((1, 2))),
            ("a-b", "[a%-]+", Some((0, 2))),
            ("x^y", "[%^x]+", Some((0, 2))),
            ("abc", "^b", None),
            ("", ".*", Some((0, 0))),
            ("a.b", "%.", Some((1, 2))),
            ("aaa", "a?a?a?$", Some((0, 3))),
        ];
        for (text, pattern, expected) in cases {
            assert_eq!(find(text, pattern), Ok(expected), "{text} {pattern}");
        }
    }

    #[test]
    fn bad_patterns_say_why() {
        let cases = [
            ("%", "malformed pattern (ends with '%')"),
            ("[a", "malformed pattern (missing ']')"),
            ("(a", "unfinished capture"),
            ("a)", "invalid pattern capture"),
            ("%1", "invalid capture index"),
            ("%f", "missing '[' after '%f' in pattern"),
            ("%b", "unbalanced pattern"),
        ];
        for (pattern, expected) in cases {
            let (captures, steps, mut interrupt) = (Captures::default(), Cell::new(0), || Ok(()));
            let mut matcher = Matcher::new(b"aaa", pattern.as_bytes(), &captures, &steps, &mut interrupt);
            let found = matcher.at(0, 0).and_then(|end| captures.of((0, end.unwrap_or(0)), 0));
            assert_eq!(found, Err(Fault::Pattern(expected)), "{pattern}");
        }
        assert_eq!(find("", &"a?".repeat(1_000)), Ok(Some((0, 0))));
        assert_eq!(find(&"a".repeat(1_000), &"a?".repeat(1_000)), Err(Fault::Pattern("pattern too complex")));
    }

    #[test]
    fn backtracking_can_be_interrupted() {
        let text = vec![b'a'; 10_000];
        let mut looks = 0;
        let mut interrupt = || {
            looks += 1;
            if looks == 3 { Err(Stop::Killed) } else { Ok(()) }
        };
        let (captures, steps) = (Captures::default(), Cell::new(0));
        let mut matcher = Matcher::new(&text, b".-.-.-.-.-b", &captures, &steps, &mut interrupt);
        assert_eq!(matcher.at(0, 0), Err(Fault::Stopped(Stop::Killed)));
    }
}
