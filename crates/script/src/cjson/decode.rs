//! JSON to Lua values.

use super::settings::Values;
use crate::number::read_double;
use crate::raw::stack::{Fault, Stack};
use std::ops::Range;

/// Containers in containers, whatever `decode_max_depth` says.
const NESTING_MAX: usize = 1_000;

/// `cjson.decode`.
pub(super) fn decode(stack: &mut Stack<'_>) -> Result<usize, Fault> {
    if stack.args() != 1 {
        return Err(Fault::argument(1, "expected 1 argument"));
    }
    let text = stack.text(1)?;
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        return Err(Fault::failed("JSON parser does not support UTF-16 or UTF-32"));
    }
    let mut decoder = Decoder { values: stack.settings().get(), text, at: 0, depth: 0, unescaped: Vec::new() };
    let first = decoder.token();
    decoder.value(stack, &first)?;
    match decoder.token() {
        Token { kind: Kind::End, .. } => Ok(1),
        other => Err(decoder.unexpected("the end", &other)),
    }
}

enum Kind {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    /// One that stands there as it is.
    String(Range<usize>),
    /// One that lies in `unescaped`.
    Unescaped,
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Bad(&'static str),
}

struct Token {
    kind: Kind,
    /// Where it begins.
    at: usize,
}

impl Token {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::ObjectBegin => "T_OBJ_BEGIN",
            Kind::ObjectEnd => "T_OBJ_END",
            Kind::ArrayBegin => "T_ARR_BEGIN",
            Kind::ArrayEnd => "T_ARR_END",
            Kind::String(_) | Kind::Unescaped => "T_STRING",
            Kind::Number(_) => "T_NUMBER",
            Kind::Boolean(_) => "T_BOOLEAN",
            Kind::Null => "T_NULL",
            Kind::Colon => "T_COLON",
            Kind::Comma => "T_COMMA",
            Kind::End => "T_END",
            Kind::Bad(text) => text,
        }
    }
}

struct Decoder<'a> {
    values: Values,
    text: &'a [u8],
    at: usize,
    depth: usize,
    /// The last string that had escapes.
    unescaped: Vec<u8>,
}

impl Decoder<'_> {
    /// The byte at a position; the end reads as NUL, as C's strings end.
    fn byte(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }

    fn unexpected(&self, expected: &str, found: &Token) -> Fault {
        let text = format!("Expected {expected} but found {} at character {}", found.name(), found.at + 1);
        Fault::failed(text)
    }

    fn token(&mut self) -> Token {
        while matches!(self.byte(self.at), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        let at = self.at;
        let single = |kind| (kind, 1);
        let (kind, len) = match self.byte(at) {
            0 => (Kind::End, 0),
            b'{' => single(Kind::ObjectBegin),
            b'}' => single(Kind::ObjectEnd),
            b'[' => single(Kind::ArrayBegin),
            b']' => single(Kind::ArrayEnd),
            b',' => single(Kind::Comma),
            b':' => single(Kind::Colon),
            b'"' => return self.string_token(),
            b'-' | b'0'..=b'9' => {
                if !self.values.decode_invalid && self.is_invalid_number() {
                    (Kind::Bad("invalid number"), 0)
                } else {
                    self.number()
                }
            }
            b't' if self.text[at..].starts_with(b"true") => (Kind::Boolean(true), 4),
            b'f' if self.text[at..].starts_with(b"false") => (Kind::Boolean(false), 5),
            b'n' if self.text[at..].starts_with(b"null") => (Kind::Null, 4),
            b'f' | b'i' | b'I' | b'n' | b'N' | b't' | b'+'
                if self.values.decode_invalid && self.is_invalid_number() =>
            {
                self.number()
            }
            _ => (Kind::Bad("invalid token"), 0),
        };
        self.at += len;
        Token { kind, at }
    }

    fn number(&self) -> (Kind, usize) {
        match read_double(&self.text[self.at..]) {
            Some((value, len)) => (Kind::Number(value), len),
            None => (Kind::Bad("invalid number"), 0),
        }
    }

    /// Whether what comes is a number that C reads and JSON does not have.
    fn is_invalid_number(&self) -> bool {
        let mut at = self.at;
        if self.byte(at) == b'+' {
            return true;
        }
        if self.byte(at) == b'-' {
            at += 1;
        }
        if self.byte(at) == b'0' {
            let next = self.byte(at + 1);
            return next | 0x20 == b'x' || next.is_ascii_digit();
        }
        if self.byte(at) <= b'9' {
            return false;
        }
        let word = self.text.get(at..at + 3).unwrap_or_default();
        word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"nan")
    }

    fn string_token(&mut self) -> Token {
        let start = self.at;
        let ends = |byte: &u8| matches!(byte, b'"' | b'\\' | 0);
        let plain = self.text[start + 1..].iter().position(ends).unwrap_or(self.text.len() - start - 1);
        self.at += 1 + plain;
        if self.byte(self.at) == b'"' {
            self.at += 1;
            return Token { kind: Kind::String(start + 1..self.at - 1), at: start };
        }
        let mut text = std::mem::take(&mut self.unescaped);
        text.clear();
        text.extend_from_slice(&self.text[start + 1..self.at]);
        loop {
            let bad = |text| Kind::Bad(text);
            match self.byte(self.at) {
                b'"' => break,
                0 => return Token { kind: bad("unexpected end of string"), at: self.at },
                b'\\' => {
                    let escaped = match self.byte(self.at + 1) {
                        byte @ (b'"' | b'\\' | b'/') => byte,
                        b'b' => 0x08,
                        b't' => 0x09,
                        b'n' => 0x0A,
                        b'f' => 0x0C,
                        b'r' => 0x0D,
                        b'u' => match self.unicode_escape() {
                            Some((character, len)) => {
                                text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                                self.at += len;
                                continue;
                            }
                            None => return Token { kind: bad("invalid unicode escape code"), at: self.at },
                        },
                        _ => return Token { kind: bad("invalid escape code"), at: self.at },
                    };
                    text.push(escaped);
                    self.at += 2;
                }
                byte => {
                    text.push(byte);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        self.unescaped = text;
        Token { kind: Kind::Unescaped, at: start }
    }

    /// The character of `\uXXXX`, or of two that are a surrogate pair, and how many bytes that takes.
    fn unicode_escape(&self) -> Option<(char, usize)> {
        let first = self.hex(self.at + 2)?;
        if let Some(character) = char::from_u32(first) {
            return Some((character, 6));
        }
        if first & 0x400 != 0 || self.byte(self.at + 6) != b'\\' || self.byte(self.at + 7) != b'u' {
            return None;
        }
        let second = self.hex(self.at + 8)?;
        if second & 0xFC00 != 0xDC00 {
            return None;
        }
        let character = char::from_u32(((first & 0x3FF) << 10 | second & 0x3FF) + 0x1_0000)?;
        Some((character, 12))
    }

    fn hex(&self, at: usize) -> Option<u32> {
        let digits = self.text.get(at..at + 4)?;
        digits.iter().try_fold(0, |sum, digit| Some(sum << 4 | (*digit as char).to_digit(16)?))
    }

    fn descend(&mut self) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > self.values.decode_depth_max.min(NESTING_MAX) {
            let text = format!("Found too many nested data structures ({}) at character {}", self.depth, self.at);
            return Err(Fault::failed(text));
        }
        Ok(())
    }

    /// Pushes a string; `false`: the token is none.
    fn string(&self, stack: &mut Stack<'_>, token: &Token) -> Result<bool, Fault> {
        match &token.kind {
            Kind::String(place) => stack.push_string(&self.text[place.clone()])?,
            Kind::Unescaped => stack.push_string(&self.unescaped)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Pushes the value that begins with a token.
    fn value(&mut self, stack: &mut Stack<'_>, token: &Token) -> Result<(), Fault> {
        stack.worked(0)?;
        match token.kind {
            Kind::String(_) | Kind::Unescaped => self.string(stack, token).map(|_| ()),
            Kind::Number(number) => stack.push_number(number),
            Kind::Boolean(truth) => stack.push_boolean(truth),
            Kind::Null => stack.push_null(),
            Kind::ObjectBegin => self.object(stack),
            Kind::ArrayBegin => self.array(stack),
            _ => Err(self.unexpected("value", token)),
        }
    }

    fn object(&mut self, stack: &mut Stack<'_>) -> Result<(), Fault> {
        self.descend()?;
        stack.push_table(0)?;
        let mut token = self.token();
        if !matches!(token.kind, Kind::ObjectEnd) {
            loop {
                if !self.string(stack, &token)? {
                    return Err(self.unexpected("object key string", &token));
                }
                let colon = self.token();
                if !matches!(colon.kind, Kind::Colon) {
                    return Err(self.unexpected("colon", &colon));
                }
                let next = self.token();
                self.value(stack, &next)?;
                stack.set_field()?;
                token = self.token();
                match token.kind {
                    Kind::ObjectEnd => break,
                    Kind::Comma => token = self.token(),
                    _ => return Err(self.unexpected("comma or object end", &token)),
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn array(&mut self, stack: &mut Stack<'_>) -> Result<(), Fault> {
        self.descend()?;
        stack.push_table(0)?;
        let mut token = self.token();
        if !matches!(token.kind, Kind::ArrayEnd) {
            for index in 1.. {
                self.value(stack, &token)?;
                stack.set_element(index)?;
                token = self.token();
                match token.kind {
                    Kind::ArrayEnd => break,
                    Kind::Comma => token = self.token(),
                    _ => return Err(self.unexpected("comma or array end", &token)),
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }
}
