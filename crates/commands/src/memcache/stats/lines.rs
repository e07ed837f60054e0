//! Statistics on their way to the client: names and values, as either protocol writes them. Knows no statistic.

use std::fmt::{Display, Write};
use tenon_engine::wire::memcache::binary::{AnswerFront, BinaryHead, Status, write_head};

/// Where statistics are written.
pub(super) struct Lines<'a> {
    out: &'a mut Vec<u8>,
    /// In the binary protocol: the request that is answered.
    head: Option<&'a BinaryHead>,
    name: String,
    value: String,
}

impl<'a> Lines<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>, head: Option<&'a BinaryHead>) -> Lines<'a> {
        Lines { out, head, name: String::new(), value: String::new() }
    }

    /// Writes a statistic.
    pub(super) fn stat(&mut self, name: impl Display, value: impl Display) {
        self.name.clear();
        self.value.clear();
        write!(self.name, "{name}").and_then(|()| write!(self.value, "{value}")).expect("a String takes everything");
        match self.head {
            None => {
                self.out.extend_from_slice(b"STAT ");
                self.out.extend_from_slice(self.name.as_bytes());
                self.out.push(b' ');
                self.out.extend_from_slice(self.value.as_bytes());
                self.out.extend_from_slice(b"\r\n");
            }
            Some(head) => {
                let front = AnswerFront { extras: b"", key: self.name.as_bytes() };
                write_head(self.out, head, Status::Done, 0, front, self.value.len());
                self.out.extend_from_slice(self.value.as_bytes());
            }
        }
    }

    /// Writes that there are no more.
    pub(super) fn end(self) {
        match self.head {
            None => self.out.extend_from_slice(b"END\r\n"),
            Some(head) => write_head(self.out, head, Status::Done, 0, AnswerFront::default(), 0),
        }
    }
}
