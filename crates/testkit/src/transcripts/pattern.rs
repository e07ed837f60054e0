//! The notation of an expected RESP reply, and its parser. Knows not how a reply is compared with it.

use super::escape::{Template, is_name, split_quoted};
use regex::bytes::Regex;

/// What a reply must be.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// `+OK`
    Simple(Template),
    /// `-ERR text`
    Error(Template),
    /// `:5`
    Int(i64),
    /// `"text"`
    Bulk(Template),
    /// `nil`: RESP2's null bulk string.
    Nil,
    /// `nil-array`: RESP2's null array.
    NilArray,
    /// `null`: RESP3's null.
    Null,
    /// `true` and `false`
    Bool(bool),
    /// `double 1.5`
    Double(f64),
    /// `big 12345`
    Big(String),
    /// `verbatim txt "text"`
    Verbatim(String, Template),
    /// `[...]`, or `unordered [...]` where the order may differ.
    Array(Order, Vec<Pattern>),
    /// `{key => value, ...}`, or `unordered {...}`.
    Map(Order, Vec<(Pattern, Pattern)>),
    /// `set [...]`, in any order: a set has none.
    Set(Vec<Pattern>),
    /// `push [...]`
    Push(Vec<Pattern>),
    /// `attribute {...}`, and the reply it is about.
    Attribute(Vec<(Pattern, Pattern)>, Box<Pattern>),
    /// `<...>`
    Matcher(Matcher),
}

/// Whether elements must come in the order written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// They must.
    AsWritten,
    /// They need not.
    Any,
}

/// A reply that cannot be known word for word: `<int 1..9 $name>`, `<bulk /regex/>`, `<any>`.
#[derive(Clone, Debug)]
pub struct Matcher {
    /// The type the reply must have.
    pub kind: Kind,
    /// For `int` and `double`: bounds, both included.
    pub range: Option<(f64, f64)>,
    /// For texts: what must be found in them.
    pub regex: Option<Regex>,
    /// The name under which later steps can use what came.
    pub name: Option<String>,
}

/// The type a matched reply must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any type.
    Any,
    /// An integer.
    Int,
    /// A RESP3 double.
    Double,
    /// A bulk string.
    Bulk,
    /// A simple string.
    Simple,
    /// An error.
    Error,
    /// A RESP3 verbatim string.
    Verbatim,
}

/// Reads one reply off the front of `text`, which may go over several lines, and gives what follows it.
///
/// # Errors
/// Says what was expected where.
pub fn parse_reply(text: &str) -> Result<(Pattern, &str), String> {
    let first = text.trim_start_matches(' ');
    // At the top level a simple string and an error have the line for themselves.
    if let Some(rest) = first.strip_prefix(['+', '-'])
        && !rest.starts_with('"')
    {
        let (line, after) = rest.split_at(rest.find('\n').unwrap_or(rest.len()));
        return Ok((line_pattern(first, Template::parse(line)?), after));
    }
    let mut parser = Parser { rest: first };
    let pattern = parser.value()?;
    Ok((pattern, parser.rest))
}

fn line_pattern(text: &str, template: Template) -> Pattern {
    if text.starts_with('+') { Pattern::Simple(template) } else { Pattern::Error(template) }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn value(&mut self) -> Result<Pattern, String> {
        self.skip_blanks();
        let text = self.rest;
        let first = text.chars().next().ok_or("a reply was expected at the end of the file")?;
        match first {
            '"' => Ok(Pattern::Bulk(self.quoted()?)),
            '+' | '-' => {
                self.rest = &text[1..];
                let template = if self.rest.starts_with('"') {
                    self.quoted()?
                } else {
                    let end = self.rest.find([',', ']', '}', '=', '\n']).unwrap_or(self.rest.len());
                    let (bare, after) = self.rest.split_at(end);
                    self.rest = after;
                    Template::parse(bare.trim_end())?
                };
                Ok(line_pattern(text, template))
            }
            ':' => {
                self.rest = &text[1..];
                let word = self.word();
                word.parse().map(Pattern::Int).map_err(|_| format!("':{word}' is no integer"))
            }
            '[' => Ok(Pattern::Array(Order::AsWritten, self.elements()?)),
            '{' => Ok(Pattern::Map(Order::AsWritten, self.pairs()?)),
            '<' => self.matcher().map(Pattern::Matcher),
            _ => self.keyword(),
        }
    }

    fn keyword(&mut self) -> Result<Pattern, String> {
        let word = self.word();
        // Only what has more to it goes on: behind `nil`, a line's end may be the reply's end.
        if !matches!(word, "nil" | "nil-array" | "null" | "true" | "false") {
            self.skip_blanks();
        }
        Ok(match word {
            "nil" => Pattern::Nil,
            "nil-array" => Pattern::NilArray,
            "null" => Pattern::Null,
            "true" => Pattern::Bool(true),
            "false" => Pattern::Bool(false),
            "double" => {
                let number = self.word();
                Pattern::Double(number.parse().map_err(|_| format!("'{number}' is no double"))?)
            }
            "big" => Pattern::Big(self.word().to_owned()),
            "verbatim" => {
                let format = self.word().to_owned();
                self.skip_blanks();
                Pattern::Verbatim(format, self.quoted()?)
            }
            "set" => Pattern::Set(self.elements()?),
            "attribute" => Pattern::Attribute(self.pairs()?, Box::new(self.value()?)),
            "push" => Pattern::Push(self.elements()?),
            "unordered" if self.rest.starts_with('{') => Pattern::Map(Order::Any, self.pairs()?),
            "unordered" => Pattern::Array(Order::Any, self.elements()?),
            _ => return Err(format!("a reply was expected, not '{}'", self.line_from(word))),
        })
    }

    fn elements(&mut self) -> Result<Vec<Pattern>, String> {
        self.expect("[")?;
        let mut elements = Vec::new();
        loop {
            self.skip_separators();
            if self.take("]") {
                return Ok(elements);
            }
            elements.push(self.value()?);
        }
    }

    fn pairs(&mut self) -> Result<Vec<(Pattern, Pattern)>, String> {
        self.expect("{")?;
        let mut pairs = Vec::new();
        loop {
            self.skip_separators();
            if self.take("}") {
                return Ok(pairs);
            }
            let key = self.value()?;
            self.skip_blanks();
            self.expect("=>")?;
            pairs.push((key, self.value()?));
        }
    }

    fn matcher(&mut self) -> Result<Matcher, String> {
        let (matcher, rest) = parse_matcher(self.rest)?;
        self.rest = rest;
        Ok(matcher)
    }

    fn quoted(&mut self) -> Result<Template, String> {
        let (inside, after) = split_quoted(self.rest)?;
        if inside.contains('\n') {
            return Err("a quote is not closed on its line".to_owned());
        }
        self.rest = after;
        Template::parse(inside)
    }

    fn word(&mut self) -> &'a str {
        let end = self.rest.find([' ', ',', ']', '}', '=', '\n', '[', '{', '"']).unwrap_or(self.rest.len());
        let (word, after) = self.rest.split_at(end);
        self.rest = after;
        word
    }

    fn take(&mut self, text: &str) -> bool {
        self.rest.strip_prefix(text).is_some_and(|rest| {
            self.rest = rest;
            true
        })
    }

    fn expect(&mut self, text: &str) -> Result<(), String> {
        if self.take(text) {
            Ok(())
        } else {
            Err(format!("'{text}' was expected, not '{}'", self.line_from(self.rest)))
        }
    }

    fn line_from<'b>(&self, text: &'b str) -> &'b str {
        text.lines().next().unwrap_or("the end of the file")
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\n']);
    }

    fn skip_separators(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\n', ',']);
    }
}

/// Reads a matcher off the front of `text`, from `<` to `>`, and gives what follows it.
///
/// # Errors
/// Says what is not understood.
pub fn parse_matcher(text: &str) -> Result<(Matcher, &str), String> {
    let wrong = |what: &str| format!("{what} in '{}'", text.lines().next().unwrap_or_default());
    let rest = text.strip_prefix('<').ok_or_else(|| wrong("'<' was expected"))?;
    let kind_end = rest.find([' ', '>', '/']).ok_or_else(|| wrong("'>' is missing"))?;
    let kind = match &rest[..kind_end] {
        "any" => Kind::Any,
        "int" => Kind::Int,
        "double" => Kind::Double,
        "bulk" => Kind::Bulk,
        "simple" => Kind::Simple,
        "error" => Kind::Error,
        "verbatim" => Kind::Verbatim,
        other => return Err(wrong(&format!("'{other}' is no type to match"))),
    };
    let mut matcher = Matcher { kind, range: None, regex: None, name: None };
    let mut rest = &rest[kind_end..];
    loop {
        rest = rest.trim_start_matches(' ');
        if let Some(after) = rest.strip_prefix('>') {
            return Ok((matcher, after));
        } else if let Some(inside) = rest.strip_prefix('/') {
            if matches!(kind, Kind::Any | Kind::Int | Kind::Double) {
                return Err(wrong("a regular expression needs a type of text"));
            }
            let end = closing_slash(inside).ok_or_else(|| wrong("the regular expression is not closed"))?;
            matcher.regex = Some(Regex::new(&inside[..end]).map_err(|error| wrong(&error.to_string()))?);
            rest = &inside[end + 1..];
        } else {
            let end = rest.find([' ', '>', '\n']).ok_or_else(|| wrong("'>' is missing"))?;
            let (word, after) = rest.split_at(end);
            rest = after;
            if let Some(name) = word.strip_prefix('$').filter(|name| is_name(name)) {
                matcher.name = Some(name.to_owned());
            } else if let (Some((low, high)), Kind::Int | Kind::Double) = (word.split_once(".."), kind) {
                let bound = |text: &str| text.parse().map_err(|_| wrong(&format!("'{text}' is no bound")));
                matcher.range = Some((bound(low)?, bound(high)?));
            } else {
                return Err(wrong(&format!("'{word}' is not understood")));
            }
        }
    }
}

fn closing_slash(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'\n' => return None,
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'/' => return Some(at),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_reply_is_refused() {
        for text in [
            "",
            "OK",
            ":x",
            ":",
            "\"a",
            "\"a\nb\"",
            "[:1",
            "{:1 :2}",
            "{:1 =>}",
            "double x",
            "set :1",
            "<what>",
            "<int",
            "<int 1>",
            "<int /1/>",
            "<bulk /(/>",
            "<bulk /a>",
            "<any $A>",
            "nul",
        ] {
            assert!(parse_reply(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_reply_ends_where_it_ends() {
        for (text, after) in [
            ("+OK, [really]\n> GET", "\n> GET"),
            ("[+OK, -ERR no such key, :1]\nx", "\nx"),
            ("[\n  +a\n  [:1]\n]\nx", "\nx"),
            ("{\"a\" => :1, +b => [nil nil-array]}\n", "\n"),
            ("<bulk /a\\/>b/ $it>\nx", "\nx"),
            ("unordered [true, false] rest", " rest"),
        ] {
            assert_eq!(parse_reply(text).map(|(_, after)| after), Ok(after), "{text}");
        }
    }
}
