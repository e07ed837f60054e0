//! Inline commands: one line split as Redis's `sdssplitargs` does, and words as its `sdscatrepr` quotes them for that. Does
//! not know where the line came from.

use super::error::ProtocolError;
use crate::span::{ArgSpans, Place, Span};

/// What C's `isspace` takes: only at the edges of an argument.
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// What ends an unquoted argument: a vertical tab or a form feed does not.
const fn ends_argument(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// Appends the arguments of `line`, which lies at `start` of the input buffer.
pub(super) fn split(line: &[u8], start: usize, args: &mut ArgSpans) -> Result<(), ProtocolError> {
    let mut at = 0;
    loop {
        at += line[at..].iter().take_while(|&&byte| is_space(byte)).count();
        if at == line.len() {
            return Ok(());
        }
        let rest = &line[at..];
        let plain = rest.iter().take_while(|&&byte| !ends_argument(byte) && !matches!(byte, b'"' | b'\'')).count();
        if rest.get(plain).is_none_or(|&byte| ends_argument(byte)) {
            args.spans.push(Span::bytes(start + at, plain));
            at += plain;
            continue;
        }
        let scratch_start = args.scratch.len();
        at += unquote(rest, &mut args.scratch)?;
        args.spans.push(Span::scratch(scratch_start, args.scratch.len() - scratch_start));
    }
}

/// The words of a line, without their quotes.
///
/// # Errors
/// When quotes are not closed, or a word follows one at once.
pub fn words_of(line: &[u8]) -> Result<Vec<Vec<u8>>, ProtocolError> {
    let mut args = ArgSpans::new();
    split(line, 0, &mut args)?;
    let word = |index| match args.get(index, line) {
        Place::Bytes(word) => word.to_vec(),
        Place::Big(_) => unreachable!("a line holds all of its words"),
    };
    Ok((0..args.spans.len()).map(word).collect())
}

/// Appends a word within quotes: what is no printable ASCII becomes an escape.
pub fn append_quoted(word: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = word;
    while let Some((plain, &byte, behind)) = up_to_escape(rest) {
        out.extend_from_slice(plain);
        rest = behind;
        match byte {
            b'\\' | b'"' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x07 => out.extend_from_slice(b"\\a"),
            0x08 => out.extend_from_slice(b"\\b"),
            _ => {
                let digits = b"0123456789abcdef";
                let digit = |nibble: u8| digits[usize::from(nibble)];
                out.extend_from_slice(&[b'\\', b'x', digit(byte >> 4), digit(byte & 0x0F)]);
            }
        }
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// What comes before the first byte that becomes an escape, that byte, and what comes behind it.
fn up_to_escape(word: &[u8]) -> Option<(&[u8], &u8, &[u8])> {
    let at = word.iter().position(|&byte| !matches!(byte, b' '..=b'~') || matches!(byte, b'\\' | b'"'))?;
    let (plain, rest) = word.split_at(at);
    let (byte, behind) = rest.split_first()?;
    Some((plain, byte, behind))
}

/// Appends one argument with quotes in it, and tells how many bytes of `text` it took.
fn unquote(text: &[u8], scratch: &mut Vec<u8>) -> Result<usize, ProtocolError> {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let quoted = match byte {
            b'"' => double_quoted(&text[at + 1..], scratch),
            b'\'' => single_quoted(&text[at + 1..], scratch),
            byte if ends_argument(byte) => break,
            byte => {
                scratch.push(byte);
                at += 1;
                continue;
            }
        };
        // A closing quote ends the argument: a blank must follow, or nothing.
        at += 1 + quoted.ok_or(ProtocolError::UnbalancedQuotes)?;
        return match text.get(at) {
            Some(&next) if !is_space(next) => Err(ProtocolError::UnbalancedQuotes),
            _ => Ok(at),
        };
    }
    Ok(at)
}

/// What follows a `"`: the number of bytes up to and with the closing one, if there is one.
fn double_quoted(text: &[u8], scratch: &mut Vec<u8>) -> Option<usize> {
    let mut at = 0;
    loop {
        let (byte, len) = match &text[at..] {
            [] => return None,
            [b'"', ..] => return Some(at + 1),
            [b'\\', b'x', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                (hex(*high) << 4 | hex(*low), 4)
            }
            [b'\\', escaped, ..] => (unescape(*escaped), 2),
            [byte, ..] => (*byte, 1),
        };
        scratch.push(byte);
        at += len;
    }
}

/// What follows a `'`: the number of bytes up to and with the closing one, if there is one.
fn single_quoted(text: &[u8], scratch: &mut Vec<u8>) -> Option<usize> {
    let mut at = 0;
    loop {
        let (byte, len) = match &text[at..] {
            [] => return None,
            [b'\'', ..] => return Some(at + 1),
            [b'\\', b'\'', ..] => (b'\'', 2),
            [byte, ..] => (*byte, 1),
        };
        scratch.push(byte);
        at += len;
    }
}

const fn unescape(escaped: u8) -> u8 {
    match escaped {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

const fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Place;

    #[track_caller]
    fn check(line: &str, expected: Option<&[&[u8]]>) {
        let mut args = ArgSpans::new();
        let input = format!("##{line}");
        let result = split(line.as_bytes(), 2, &mut args);
        let got: Vec<&[u8]> = (0..args.spans.len())
            .map(|i| match args.get(i, input.as_bytes()) {
                Place::Bytes(bytes) => bytes,
                Place::Big(_) => panic!("no argument of a line is big"),
            })
            .collect();
        match expected {
            Some(expected) => {
                assert_eq!(result, Ok(()), "{line:?}");
                assert_eq!(got, expected, "{line:?}");
            }
            None => assert_eq!(result, Err(ProtocolError::UnbalancedQuotes), "{line:?}"),
        }
    }

    #[test]
    fn what_is_quoted_splits_to_itself() {
        let all: Vec<u8> = (0..=255).collect();
        let mut line = Vec::new();
        append_quoted(&all, &mut line);
        assert!(line.is_ascii() && !line.iter().any(u8::is_ascii_control));
        assert_eq!(words_of(&line), Ok(vec![all]));
    }

    /// Every line was put to redis-server 7.0.15 as `PING <line>` or `ECHO <line>`.
    #[test]
    fn splits_as_redis_does() {
        check("", Some(&[]));
        check(" \t\r ", Some(&[]));
        check("a  bc", Some(&[b"a", b"bc"]));
        check("a\rb", Some(&[b"a", b"b"]));
        check("\x0bPING\x0ba", Some(&[b"PING\x0ba"]));
        check("\"a\"\x0b", Some(&[b"a"]));
        check("a\"b\"", Some(&[b"ab"]));
        check("\"\" ''", Some(&[b"", b""]));
        check(r#""\x41\n\r\t\b\a\q\\""#, Some(&[b"A\n\r\t\x08\x07q\\"]));
        check(r#""\xfF\x4""#, Some(&[b"\xffx4"]));
        check(r"'a\'b\n'", Some(&[br"a'b\n"]));
        check(r#"\n \"a" "#, Some(&[br"\n", br"\a"]));
        check("\"a", None);
        check("'a", None);
        check("\"a\"b", None);
        check("'a'b", None);
        check("\"\\\"", None);
    }
}
