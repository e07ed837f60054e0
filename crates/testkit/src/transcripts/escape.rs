//! Bytes as readable text and back, with repetitions and captured names. Knows nothing of replies or commands.

use std::collections::HashMap;

/// What earlier replies of the same file were captured as.
pub type Captures = HashMap<String, Vec<u8>>;

/// Runs of one byte at least this long are written as `\{x*40}`.
const RUN_MIN: usize = 32;

/// A text whose captured names are not yet filled in.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Bytes(Vec<u8>),
    Captured(String),
}

impl Template {
    /// Exactly these bytes.
    pub fn plain(bytes: &[u8]) -> Template {
        Template { pieces: vec![Piece::Bytes(bytes.to_vec())] }
    }

    /// Reads text in which `\\`, `\"`, `\<`, `\n`, `\r`, `\t`, `\xHH`, `\{TEXT*COUNT}` and `\{$name}` stand for
    /// something else, and everything else for itself.
    ///
    /// # Errors
    /// Says which escape is not understood.
    pub fn parse(text: &str) -> Result<Template, String> {
        let mut pieces = Vec::new();
        let mut bytes = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('\\') {
            bytes.extend_from_slice(&rest.as_bytes()[..at]);
            rest = &rest[at + 1..];
            let mut chars = rest.chars();
            let letter = chars.next().ok_or("a backslash at the end")?;
            rest = chars.as_str();
            match letter {
                '\\' | '"' | '<' => bytes.push(letter as u8),
                'n' => bytes.push(b'\n'),
                'r' => bytes.push(b'\r'),
                't' => bytes.push(b'\t'),
                'x' => {
                    let digits = rest.get(..2).ok_or("\\x needs two hexadecimal digits")?;
                    let byte = u8::from_str_radix(digits, 16);
                    bytes.push(byte.map_err(|_| format!("'\\x{digits}' is no hexadecimal byte"))?);
                    rest = &rest[2..];
                }
                '{' => {
                    let (inside, after) = rest.split_once('}').ok_or("'\\{' without '}'")?;
                    rest = after;
                    if let Some(name) = inside.strip_prefix('$') {
                        if !is_name(name) {
                            return Err(format!("'{name}' is no name of a capture"));
                        }
                        pieces.push(Piece::Bytes(std::mem::take(&mut bytes)));
                        pieces.push(Piece::Captured(name.to_owned()));
                    } else {
                        bytes.extend(repeated(inside)?);
                    }
                }
                other => return Err(format!("'\\{other}' is no escape")),
            }
        }
        bytes.extend_from_slice(rest.as_bytes());
        pieces.push(Piece::Bytes(bytes));
        Ok(Template { pieces })
    }

    /// The bytes, with captures filled in.
    ///
    /// # Errors
    /// Names the capture that no earlier reply has filled.
    pub fn fill(&self, captures: &Captures) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Bytes(plain) => bytes.extend_from_slice(plain),
                Piece::Captured(name) => {
                    let captured = captures.get(name).ok_or_else(|| format!("nothing was captured as ${name}"))?;
                    bytes.extend_from_slice(captured);
                }
            }
        }
        Ok(bytes)
    }
}

/// Reads what stands between `\{` and `}`: `TEXT*COUNT`.
fn repeated(inside: &str) -> Result<Vec<u8>, String> {
    let (text, count) =
        inside.rsplit_once('*').ok_or_else(|| format!("'\\{{{inside}}}' is neither TEXT*COUNT nor $name"))?;
    let count: usize = count.parse().map_err(|_| format!("'{count}' is no count"))?;
    Ok(Template::parse(text)?.fill(&Captures::new())?.repeat(count))
}

/// Whether `text` can name a capture or a connection.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Writes bytes so that [`Template::parse`] reads them back, between quotes or at the end of a line.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut rest = bytes;
    while let Some(&byte) = rest.first() {
        let run = rest.iter().take_while(|&&other| other == byte).count();
        if run >= RUN_MIN && !matches!(byte, b'}' | b'*' | b'$') {
            text.push_str("\\{");
            push_escaped(byte, &mut text);
            text.push_str(&format!("*{run}}}"));
        } else {
            (0..run).for_each(|_| push_escaped(byte, &mut text));
        }
        rest = &rest[run..];
    }
    text
}

/// As [`escape`], and with no blank at either end, where it could not be seen or would be cut off.
pub fn escape_line(bytes: &[u8]) -> String {
    let mut text = escape(bytes);
    if text.ends_with(' ') {
        text.pop();
        text.push_str("\\x20");
    }
    if text.starts_with(' ') {
        text.replace_range(..1, "\\x20");
    }
    text
}

fn push_escaped(byte: u8, text: &mut String) {
    match byte {
        b'\\' | b'"' => text.extend(['\\', byte as char]),
        b'\n' => text.push_str("\\n"),
        b'\r' => text.push_str("\\r"),
        b'\t' => text.push_str("\\t"),
        b' '..=b'~' => text.push(byte as char),
        _ => text.push_str(&format!("\\x{byte:02x}")),
    }
}

/// Takes a quoted text off the front of `text`, and gives its inside and what follows the closing quote.
///
/// # Errors
/// When the quote is not closed.
pub fn split_quoted(text: &str) -> Result<(&str, &str), String> {
    let inside = text.strip_prefix('"').ok_or("a quote was expected")?;
    let mut escaped = false;
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Ok((&inside[..at], &inside[at + 1..])),
            _ => {}
        }
    }
    Err("a quote is not closed".to_owned())
}

/// Splits a command line into arguments: bare words, which stand for themselves, and quoted ones with escapes.
///
/// # Errors
/// When a quote is not closed, is followed by something other than a blank, or holds an unknown escape.
pub fn split_arguments(line: &str) -> Result<Vec<Template>, String> {
    let mut arguments = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        if rest.starts_with('"') {
            let (inside, after) = split_quoted(rest)?;
            if !(after.is_empty() || after.starts_with(' ')) {
                return Err(format!("a blank must follow the closing quote before '{after}'"));
            }
            arguments.push(Template::parse(inside)?);
            rest = after;
        } else {
            let (word, after) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
            if word.contains(['"', '\\']) {
                return Err(format!("'{word}' must be quoted: it holds a quote or a backslash"));
            }
            arguments.push(Template::plain(word.as_bytes()));
            rest = after;
        }
        rest = rest.trim_start();
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        Template::parse(text).expect("a template").fill(&Captures::new()).expect("no captures")
    }

    #[test]
    fn every_byte_comes_back() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(bytes(&escape(&all)), all);
        assert_eq!(bytes(&escape_line(b" a ")), b" a ");
        for byte in 0..=255 {
            let run = vec![byte; 40];
            assert_eq!(bytes(&escape(&run)), run);
            let text = escape(&run);
            let quoted = format!("\"{text}\"");
            assert_eq!(split_quoted(&quoted), Ok((text.as_str(), "")));
        }
    }

    #[test]
    fn long_runs_are_short() {
        assert_eq!(escape(&[b'k'; 251]), r"\{k*251}");
        assert_eq!(bytes(r"a\{ab*3}b\{\x00*2}"), b"aabababb\0\0");
    }

    #[test]
    fn captures_are_filled_in_or_missed() {
        let template = Template::parse(r"a\{$id}b").expect("a template");
        assert!(template.fill(&Captures::new()).is_err());
        assert_eq!(template.fill(&Captures::from([("id".to_owned(), b"7".to_vec())])), Ok(b"a7b".to_vec()));
    }

    #[test]
    fn arguments_are_split_at_blanks_outside_quotes() {
        let arguments = split_arguments(r#"SET  "a \"b" "" 'c'"#).expect("arguments");
        let filled: Vec<Vec<u8>> = arguments.iter().map(|a| a.fill(&Captures::new()).expect("plain")).collect();
        assert_eq!(filled, [&b"SET"[..], b"a \"b", b"", b"'c'"]);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in [r"\q", r"\x0", r"\xzz", r"\{k*}", r"\{k*3", r"\{k}", r"\{$K}", "\\"] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
        for line in [r#""a"#, r#""a"b"#, r#"a"b"#, r"a\b"] {
            assert!(split_arguments(line).is_err(), "{line}");
        }
    }
}
