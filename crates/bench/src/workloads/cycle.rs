//! Commands that are given with what answers them, over and over or once. Knows no socket, and not what they are for.

use super::replies::{Language, Skimmed};
use super::requests::Request;
use crate::generators::Random;
use crate::load::{Reply, Workload};
use anyhow::{Result, anyhow};
use std::fmt;
use std::sync::Arc;

/// A command that is sent some times, and what must answer it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// What it is called where it was answered by something else.
    pub name: String,
    /// The request.
    pub request: Request,
    /// How often it is sent before the next one.
    pub times: u64,
    /// The reply's first line, or its beginning and a `*`; a `*` alone for all that is no error. What is nothing (`$-1`) has
    /// to be said.
    pub answer: Arc<str>,
}

/// How errors begin, in either language; no data does that is the first line of a reply.
const ERRORS: [&str; 4] = ["-", "ERROR", "CLIENT_ERROR ", "SERVER_ERROR "];

impl Command {
    /// Whether a reply that begins with this line is the one.
    fn is_answered_by(&self, line: &[u8]) -> bool {
        match self.answer.strip_suffix('*') {
            Some("") => !ERRORS.iter().any(|error| line.starts_with(error.as_bytes())),
            Some(beginning @ ("$" | "*")) => line.starts_with(beginning.as_bytes()) && !line[1..].starts_with(b"-"),
            Some(beginning) => line.starts_with(beginning.as_bytes()),
            None => line == self.answer.as_bytes(),
        }
    }
}

/// Some commands, each with what is filled in anew whenever it is sent.
#[derive(Clone, Debug)]
pub struct Cycle {
    language: Language,
    commands: Arc<[Command]>,
    random: Random,
    /// The next command, and how often it was sent.
    next: (usize, u64),
    repeats: bool,
    word: Vec<u8>,
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
    /// The command.
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
    /// All of them in their order; what is drawn goes by `seed`.
    pub fn once(language: Language, commands: Arc<[Command]>, seed: u64) -> Cycle {
        Cycle { language, commands, random: Random::new(seed), next: (0, 0), repeats: false, word: Vec::new() }
    }

    /// All of them over and over.
    pub fn over_and_over(language: Language, commands: Arc<[Command]>, seed: u64) -> Cycle {
        Cycle { repeats: true, ..Cycle::once(language, commands, seed) }
    }
}

impl Workload for Cycle {
    type Pending = Sent;

    const KINDS: &'static [&'static str] = &["command"];

    #[inline]
    fn begin(&mut self, out: &mut Vec<u8>) -> Option<Sent> {
        if self.next.0 == self.commands.len() {
            if !self.repeats {
                return None;
            }
            self.next = (0, 0);
        }
        let (number, times) = self.next;
        let command = self.commands.get(number)?;
        command.request.write(times, &mut self.random, &mut self.word, out);
        self.next = if times + 1 == command.times { (number + 1, 0) } else { (number, times + 1) };
        Some(Sent { command: number, skimmed: Skimmed::default() })
    }

    fn reply(&mut self, pending: &mut Sent, input: &[u8], _: &mut Vec<u8>) -> Result<Reply> {
        let is_new = pending.skimmed.is_new();
        let len = pending.skimmed.skim(self.language, input)?;
        if is_new && !pending.skimmed.is_new() {
            let line = input.split(|byte| *byte == b'\r').next().unwrap_or_default();
            let command = &self.commands[pending.command];
            if !command.is_answered_by(line) {
                return Err(anyhow!(Unexpected {
                    command: command.name.clone(),
                    line: line.to_vec(),
                    expected: Arc::clone(&command.answer),
                }));
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
    use super::super::requests::Piece;
    use super::*;

    fn command(name: &str, times: u64, answer: &str) -> Command {
        let request =
            Request::plain(vec![Piece::Text(format!("{name} ")), Piece::Index(0), Piece::Text("\r\n".to_owned())]);
        Command { name: name.to_owned(), request, times, answer: answer.into() }
    }

    #[test]
    fn commands_come_in_turn_and_their_answers_are_looked_at() {
        let commands: Arc<[Command]> = [command("a", 2, "+OK"), command("b", 1, "*2"), command("c", 1, ":*")].into();
        let mut cycle = Cycle::over_and_over(Language::Resp, Arc::clone(&commands), 1);
        let mut out = Vec::new();
        let mut sent: Vec<Sent> = (0..5).map(|_| cycle.begin(&mut out).expect("there is one")).collect();
        assert_eq!(out, b"a 0\r\na 1\r\nb 0\r\nc 0\r\na 0\r\n");
        let mut answer = |sent: &mut Sent, input: &[u8]| cycle.reply(sent, input, &mut Vec::new());
        let finished = |len| Reply::Finished { len, kind: 0, operations: 1 };
        assert_eq!(answer(&mut sent[1], b"+OK\r\n*2\r\n").expect("it is right"), finished(5));
        assert_eq!(answer(&mut sent[2], b"*2\r\n:1\r\n$2").expect("it is right"), Reply::Incomplete);
        assert_eq!(answer(&mut sent[2], b"*2\r\n:1\r\n$2\r\nab\r\n:7").expect("it is right"), finished(16));
        assert_eq!(answer(&mut sent[3], b":71\r\n").expect("it is right"), finished(5));
        let wrong = answer(&mut sent[4], b"-ERR unknown command 'a'\r\n").expect_err("it is wrong");
        let wrong = wrong.downcast_ref::<Unexpected>().expect("it says what came");
        assert!(wrong.is_unknown() && wrong.to_string().contains("by '-ERR unknown command \\'a\\''"), "{wrong}");

        let mut once = Cycle::once(Language::Resp, commands, 1);
        assert_eq!(std::iter::from_fn(|| once.begin(&mut out)).count(), 4);
    }

    #[test]
    fn what_is_there_is_no_nothing_and_no_error() {
        let is = |answer: &str, line: &[u8]| command("a", 1, answer).is_answered_by(line);
        assert!(is("*", b":1") && is("*", b"*-1") && is("*", b"99") && !is("*", b"-OOM"));
        assert!(!is("*", b"SERVER_ERROR out of memory") && is("$*", b"$0") && !is("$*", b"$-1"));
        assert!(is("**", b"*0") && !is("**", b"*-1") && is(":*", b":-1") && is("$-1", b"$-1"));
    }
}
