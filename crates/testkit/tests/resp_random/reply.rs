//! Replies as they are spelled: a double is the bytes that were sent. Knows no command.

use std::fmt;
use std::io::{self, BufRead};

/// A reply of RESP2 or RESP3.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reply {
    /// What is one line, with the byte that says its type.
    Line(Vec<u8>),
    /// What has a length, by the byte that says its type.
    Text(u8, Vec<u8>),
    /// Other replies, by the byte that says their type; a map's are its keys and values in turn.
    Many(u8, Vec<Reply>),
    /// The connection ended instead.
    Closed,
}

impl Reply {
    /// Reads the next reply, pushed ones as well.
    pub fn read(from: &mut impl BufRead) -> io::Result<Reply> {
        let mut line = Vec::new();
        from.read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(Reply::Closed);
        }
        assert!(line.ends_with(b"\r\n"), "no line of RESP: {}", line.escape_ascii());
        line.truncate(line.len() - 2);
        let number = || std::str::from_utf8(&line[1..]).ok().and_then(|text| text.parse::<usize>().ok());
        match (line[0], number()) {
            (b'$' | b'=' | b'!', Some(len)) => {
                let mut text = vec![0; len + 2];
                from.read_exact(&mut text)?;
                assert!(text.ends_with(b"\r\n"), "no end behind {}", text.escape_ascii());
                text.truncate(len);
                Ok(Reply::Text(line[0], text))
            }
            (kind @ (b'*' | b'~' | b'>' | b'%'), Some(count)) => {
                let count = if kind == b'%' { count * 2 } else { count };
                let all = (0..count).map(|_| Reply::read(from)).collect::<io::Result<_>>()?;
                Ok(Reply::Many(kind, all))
            }
            _ => Ok(Reply::Line(line)),
        }
    }

    /// Whether it came by itself rather than as an answer.
    pub fn is_push(&self) -> bool {
        matches!(self, Reply::Many(b'>', _))
    }

    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        matches!(self, Reply::Line(line) if line[0] == b'-')
    }

    /// The integer that it is.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Reply::Line(line) if line[0] == b':' => std::str::from_utf8(&line[1..]).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// The string that it is.
    pub fn text(&self) -> Option<&[u8]> {
        match self {
            Reply::Text(_, text) => Some(text),
            Reply::Line(line) if line[0] == b'+' => Some(&line[1..]),
            _ => None,
        }
    }

    /// What it consists of; nothing where it is one value.
    pub fn elements(&self) -> &[Reply] {
        match self {
            Reply::Many(_, all) => all,
            _ => &[],
        }
    }

    /// The integer of this value.
    pub fn of_integer(number: i64) -> Reply {
        Reply::Line(format!(":{number}").into_bytes())
    }

    /// With its elements in one order, `width` of them (a field and its value) being one.
    pub fn sorted(self, width: usize) -> Reply {
        match self {
            Reply::Many(kind, all) => {
                let mut groups: Vec<&[Reply]> = all.chunks(width).collect();
                groups.sort();
                Reply::Many(kind, groups.concat())
            }
            other => other,
        }
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Line(line) => write!(f, "{}", line.escape_ascii()),
            Reply::Text(b'$', text) => write!(f, "\"{}\"", text.escape_ascii()),
            Reply::Text(kind, text) => write!(f, "{}\"{}\"", char::from(*kind), text.escape_ascii()),
            Reply::Many(kind, all) => {
                write!(f, "{}", char::from(*kind))?;
                f.debug_list().entries(all).finish()
            }
            Reply::Closed => f.write_str("(closed)"),
        }
    }
}
