//! Commands that are given with what answers them, over and over or once. Knows no socket, and not what they are for.

use super::replies::{Language, Skimmed};
use crate::load::{Reply, Workload};
use anyhow::{Result, anyhow};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A command as it is sent, and the first line of what must answer it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The request.
    pub request: Vec<u8>,
    /// The reply's first line, or its beginning and a `*`; a `*` alone for all that is no error.
    pub answer: Arc<str>,
}

/// How errors begin, in either language; no data does that is the first line of a reply.
const ERRORS: [&str; 4] = ["-", "ERROR", "CLIENT_ERROR ", "SERVER_ERROR "];

impl Command {
    /// Whether a reply that begins with this line is the one.
    fn is_answered_by(&self, line: &[u8]) -> bool {
        match self.answer.strip_suffix('*') {
            Some("") => !ERRORS.iter().any(|error| line.starts_with(error.as_bytes())),
            Some(beginning) => line.starts_with(beginning.as_bytes()),
            None => line == self.answer.as_bytes(),
        }
    }
}

/// Some commands, one behind another so that sending them is no work.
#[derive(Clone, Debug)]
pub struct Cycle {
    language: Language,
    commands: Arc<[Command]>,
    next: usize,
    repeats: bool,
}

/// What must be remembered of a command until its reply has come.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    command: usize,
    skimmed: Skimmed,
}

/// A command was answered by something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unexpected {
    /// The command, shortened.
    pub command: String,
    /// The first line that answered it.
    pub line: Vec<u8>,
    /// What was to.
    pub expected: Arc<str>,
}

impl Unexpected {
    /// Whether the server has no such command, or not in this form.
    pub fn is_unknown(&self) -> bool {
        ["-ERR unknown ", "-ERR syntax error", "-ERR wrong number of arguments"]
            .iter()
            .any(|beginning| self.line.starts_with(beginning.as_bytes()))
            || self.line == b"ERROR"
    }
}

impl fmt::Display for Unexpected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.line[..self.line.len().min(120)].escape_ascii();
        write!(f, "'{}' was answered by '{line}' and not by '{}'", self.command, self.expected)
    }
}

impl std::error::Error for Unexpected {}

impl Cycle {
    /// All of them once.
    pub fn once(language: Language, commands: Arc<[Command]>) -> Cycle {
        Cycle { language, commands, next: 0, repeats: false }
    }

    /// All of them over and over.
    pub fn over_and_over(language: Language, commands: Arc<[Command]>) -> Cycle {
        Cycle { repeats: true, ..Cycle::once(language, commands) }
    }

    fn unexpected(&self, command: &Command, line: &[u8]) -> anyhow::Error {
        let shown: Range<usize> = 0..command.request.len().min(80);
        anyhow!(Unexpected {
            command: command.request[shown].escape_ascii().to_string(),
            line: line.to_vec(),
            expected: Arc::clone(&command.answer),
        })
    }
}

impl Workload for Cycle {
    type Pending = Sent;

    const KINDS: &'static [&'static str] = &["command"];

    #[inline]
    fn begin(&mut self, out: &mut Vec<u8>) -> Option<Sent> {
        if self.next == self.commands.len() {
            if !self.repeats {
                return None;
            }
            self.next = 0;
        }
        let command = self.next;
        out.extend_from_slice(&self.commands.get(command)?.request);
        self.next += 1;
        Some(Sent { command, skimmed: Skimmed::default() })
    }

    fn reply(&mut self, pending: &mut Sent, input: &[u8], _: &mut Vec<u8>) -> Result<Reply> {
        let is_new = pending.skimmed.is_new();
        let len = pending.skimmed.skim(self.language, input)?;
        if is_new && !pending.skimmed.is_new() {
            let line = input.split(|byte| *byte == b'\r').next().unwrap_or_default();
            let command = &self.commands[pending.command];
            if !command.is_answered_by(line) {
                return Err(self.unexpected(command, line));
            }
        }
        Ok(match len {
            Some(len) => Reply::Finished { len, kind: 0, operations: 1 },
            None => Reply::Incomplete,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(request: &str, answer: &str) -> Command {
        Command { request: request.as_bytes().to_vec(), answer: answer.into() }
    }

    #[test]
    fn commands_come_in_turn_and_their_answers_are_looked_at() {
        let commands: Arc<[Command]> = [command("a\r\n", "+OK"), command("b\r\n", "*2"), command("c\r\n", ":*")].into();
        let any = command("d\r\n", "*");
        assert!(any.is_answered_by(b":1") && any.is_answered_by(b"*-1") && any.is_answered_by(b"99"));
        assert!(!any.is_answered_by(b"-OOM") && !any.is_answered_by(b"SERVER_ERROR out of memory"));
        let mut cycle = Cycle::over_and_over(Language::Resp, Arc::clone(&commands));
        let mut out = Vec::new();
        let mut sent: Vec<Sent> = (0..4).map(|_| cycle.begin(&mut out).expect("there is one")).collect();
        assert_eq!(out, b"a\r\nb\r\nc\r\na\r\n");
        let mut answer = |sent: &mut Sent, input: &[u8]| cycle.reply(sent, input, &mut Vec::new());
        let finished = |len| Reply::Finished { len, kind: 0, operations: 1 };
        assert_eq!(answer(&mut sent[0], b"+OK\r\n*2\r\n").expect("it is right"), finished(5));
        assert_eq!(answer(&mut sent[1], b"*2\r\n:1\r\n$2").expect("it is right"), Reply::Incomplete);
        assert_eq!(answer(&mut sent[1], b"*2\r\n:1\r\n$2\r\nab\r\n:7").expect("it is right"), finished(16));
        assert_eq!(answer(&mut sent[2], b":71\r\n").expect("it is right"), finished(5));
        let wrong = answer(&mut sent[3], b"-ERR unknown command 'a'\r\n").expect_err("it is wrong");
        let wrong = wrong.downcast_ref::<Unexpected>().expect("it says what came");
        assert!(wrong.is_unknown() && wrong.to_string().contains("by '-ERR unknown command \\'a\\''"), "{wrong}");

        let mut once = Cycle::once(Language::Resp, commands);
        assert_eq!(std::iter::from_fn(|| once.begin(&mut out)).count(), 3);
    }
}
