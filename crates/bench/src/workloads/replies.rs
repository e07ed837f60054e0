//! Where a reply ends, whatever is in it: as much of RESP2 and of memcached's text protocol as that takes. Knows no command.

use crate::dialects::{digits, line, refused};
use anyhow::Result;

/// What a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// RESP2 (the Redis serialization protocol specification).
    Resp,
    /// memcached's text protocol and its meta commands (protocol.txt).
    Memcache,
}

/// How much of a reply has been passed over. A long one comes in many pieces, and none is looked at twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skimmed {
    /// Bytes that have been passed over.
    len: usize,
    /// Values that are still to come, of a reply that has begun.
    left: u64,
}

/// What a line begins, beside itself.
struct Behind {
    /// Bytes of data, with their end.
    bytes: usize,
    /// More of the reply: elements, or lines.
    more: u64,
}

impl Skimmed {
    /// Whether its first line has not come yet.
    pub fn is_new(&self) -> bool {
        self.len == 0
    }

    /// Goes on in what lies at the front; where all of it is there, it is so many bytes.
    ///
    /// # Errors
    /// When it is no reply in this language.
    pub fn skim(&mut self, language: Language, input: &[u8]) -> Result<Option<usize>> {
        if self.is_new() {
            self.left = 1;
        }
        while self.left > 0 {
            let rest = &input[self.len.min(input.len())..];
            let Some((text, begun)) = line(rest)? else { return Ok(None) };
            let behind = match language {
                Language::Resp => behind_resp(text),
                Language::Memcache => behind_memcache(text),
            };
            let Some(Behind { bytes, more }) = behind else { return Err(refused(rest)) };
            if rest.len() < begun + bytes {
                return Ok(None);
            }
            self.len += begun + bytes;
            self.left = self.left - 1 + more;
        }
        Ok(Some(self.len))
    }
}

fn behind_resp(line: &[u8]) -> Option<Behind> {
    const NOTHING: Behind = Behind { bytes: 0, more: 0 };
    let (kind, rest) = line.split_first()?;
    match kind {
        b'+' | b'-' | b':' => Some(NOTHING),
        b'$' | b'*' if rest == b"-1" => Some(NOTHING),
        b'$' => Some(Behind { bytes: digits(rest)? + 2, more: 0 }),
        b'*' => Some(Behind { bytes: 0, more: digits(rest)? as u64 }),
        _ => None,
    }
}

fn behind_memcache(line: &[u8]) -> Option<Behind> {
    let mut words = line.split(|byte| *byte == b' ');
    let (bytes, more) = match words.next()? {
        b"VALUE" => (digits(words.nth(2)?)? + 2, 1),
        b"VA" => (digits(words.next()?)? + 2, 0),
        b"STAT" => (0, 1),
        _ => (0, 0),
    };
    Some(Behind { bytes, more })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(language: Language, reply: &[u8]) {
        // However it is cut, its end is found, and what is behind it is left.
        let more = [reply, b"+more\r\n"].concat();
        for cut in 0..reply.len() {
            let mut skimmed = Skimmed::default();
            assert_eq!(skimmed.skim(language, &reply[..cut]).expect("it is one"), None, "{cut}");
            assert_eq!(skimmed.skim(language, &more).expect("it is one"), Some(reply.len()), "{cut}");
        }
    }

    #[test]
    fn replies_end_where_they_end() {
        for reply in ["+OK\r\n", "-ERR no\r\n", ":-3\r\n", "$5\r\na\r\nbc\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n"] {
            check(Language::Resp, reply.as_bytes());
        }
        check(Language::Resp, b"*3\r\n*2\r\n:1\r\n$0\r\n\r\n*0\r\n+x\r\n");
        for reply in ["STORED\r\n", "END\r\n", "12\r\n", "HD s3\r\n", "EN\r\n", "VA 4 f0\r\n\r\nEN\r\n", "ERROR\r\n"] {
            check(Language::Memcache, reply.as_bytes());
        }
        check(Language::Memcache, b"VALUE a 0 5\r\nEND\r\n\r\nVALUE b 7 0 12\r\n\r\nEND\r\n");
        check(Language::Memcache, b"STAT pid 1\r\nSTAT x a b\r\nEND\r\n");
    }

    #[test]
    fn what_is_no_reply_is_said() {
        for (language, input) in
            [(Language::Resp, "STORED\r\n"), (Language::Resp, "$x\r\n"), (Language::Memcache, "VALUE a 0\r\n")]
        {
            assert!(Skimmed::default().skim(language, input.as_bytes()).is_err(), "{input}");
        }
    }
}
