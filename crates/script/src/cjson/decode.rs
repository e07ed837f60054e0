//! JSON to Lua values.

use super::settings::Values;
use crate::arguments::string;
use crate::interpreter::State;
use crate::number::read_double;
use crate::raise::{bad_argument, failure};
use mlua::{Lua, MultiValue, Value};

/// Containers in containers, whatever `decode_max_depth` says.
const NESTING_MAX: usize = 1_000;

/// `cjson.decode`.
pub(super) fn decode(lua: &Lua, state: &State, values: &Values, args: &MultiValue) -> mlua::Result<Value> {
    if args.len() != 1 {
        return Err(bad_argument(lua, 1, "expected 1 argument"));
    }
    let text = string(lua, args, 1)?;
    let text = text.as_bytes();
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        return Err(failure(lua, "JSON parser does not support UTF-16 or UTF-32"));
    }
    let mut decoder = Decoder { lua, state, values, text: &text, at: 0, depth: 0 };
    let first = decoder.token();
    let value = decoder.value(first)?;
    match decoder.token() {
        Token { kind: Kind::End, .. } => Ok(value),
        other => Err(decoder.unexpected("the end", &other)),
    }
}

enum Kind {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    String(Vec<u8>),
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
            Kind::String(_) => "T_STRING",
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
    lua: &'a Lua,
    state: &'a State,
    values: &'a Values,
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl Decoder<'_> {
    /// The byte at a position; the end reads as NUL, as C's strings end.
    fn byte(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }

    fn unexpected(&self, expected: &str, found: &Token) -> mlua::Error {
        let text = format!("Expected {expected} but found {} at character {}", found.name(), found.at + 1);
        failure(self.lua, text)
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
        self.at += 1;
        let mut text = Vec::new();
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
        Token { kind: Kind::String(text), at: start }
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

    fn descend(&mut self) -> mlua::Result<()> {
        self.depth += 1;
        if self.depth > self.values.decode_depth_max.min(NESTING_MAX) {
            let text = format!("Found too many nested data structures ({}) at character {}", self.depth, self.at);
            return Err(failure(self.lua, text));
        }
        Ok(())
    }

    fn value(&mut self, token: Token) -> mlua::Result<Value> {
        self.state.worked(self.lua, 0)?;
        match token.kind {
            Kind::String(text) => Ok(Value::String(self.lua.create_string(text)?)),
            Kind::Number(number) => Ok(Value::Number(number)),
            Kind::Boolean(truth) => Ok(Value::Boolean(truth)),
            Kind::Null => Ok(Value::NULL),
            Kind::ObjectBegin => self.object(),
            Kind::ArrayBegin => self.array(),
            _ => Err(self.unexpected("value", &token)),
        }
    }

    fn object(&mut self) -> mlua::Result<Value> {
        self.descend()?;
        let table = self.lua.create_table()?;
        let mut token = self.token();
        if !matches!(token.kind, Kind::ObjectEnd) {
            loop {
                let Kind::String(key) = token.kind else {
                    return Err(self.unexpected("object key string", &token));
                };
                let colon = self.token();
                if !matches!(colon.kind, Kind::Colon) {
                    return Err(self.unexpected("colon", &colon));
                }
                let next = self.token();
                let value = self.value(next)?;
                table.raw_set(self.lua.create_string(key)?, value)?;
                token = self.token();
                match token.kind {
                    Kind::ObjectEnd => break,
                    Kind::Comma => token = self.token(),
                    _ => return Err(self.unexpected("comma or object end", &token)),
                }
            }
        }
        self.depth -= 1;
        Ok(Value::Table(table))
    }

    fn array(&mut self) -> mlua::Result<Value> {
        self.descend()?;
        let table = self.lua.create_table()?;
        let mut token = self.token();
        if !matches!(token.kind, Kind::ArrayEnd) {
            for index in 1.. {
                let value = self.value(token)?;
                table.raw_set(index, value)?;
                token = self.token();
                match token.kind {
                    Kind::ArrayEnd => break,
                    Kind::Comma => token = self.token(),
                    _ => return Err(self.unexpected("comma or array end", &token)),
                }
            }
        }
        self.depth -= 1;
        Ok(Value::Table(table))
    }
}
