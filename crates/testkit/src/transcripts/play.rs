//! Plays one transcript against a target, and compares or records what comes. Knows no file and no report.

use super::escape::Captures;
use super::expect::{Came, Expected};
use super::script::{Action, Expectation, Script, Step};
use crate::target::{Dialect, Link, Received, Target};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tenon_client::resp::encode_command;
use tenon_client::{ValueDecoder, ValueLimits};

/// After what silence a server is taken to have said all it has to say.
const QUIET: Duration = Duration::from_millis(40);
/// How long blessing waits for what a step is expected to give.
const BLESSING_PATIENCE: Duration = Duration::from_secs(3);
/// Pause between two attempts of a step that is repeated.
const RETRY_PAUSE: Duration = Duration::from_millis(10);
/// Pause between two looks at a link that has nothing.
const LOOK_PAUSE: Duration = Duration::from_millis(1);
/// A file with this many failures is not played further.
const FAILURES_MAX: usize = 10;

/// What is done with what comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is compared with what is expected.
    Compare,
    /// It replaces what is expected and is something else.
    Bless,
}

/// A step that did not give what it should.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The line of the step, from 1; 0 for what concerns the whole file.
    pub line: usize,
    /// What was done, or what the failure is about.
    pub title: String,
    /// How the transcript writes what should come.
    pub expected: Vec<String>,
    /// How a transcript would write what came.
    pub came: Vec<String>,
}

/// What playing a file has given.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The steps played.
    pub steps: usize,
    /// What went wrong.
    pub failures: Vec<Failure>,
    /// For each step, its new expectations where the mode is to bless and they differ.
    pub replies: Vec<Option<Vec<String>>>,
}

/// Plays a transcript against a target that was prepared for it. Each reply is waited for so long at most.
pub fn play(script: &Script, target: &mut dyn Target, mode: Mode, patience: Duration) -> Outcome {
    let side = target.side();
    let mut player = Player { script, target, mode, patience, open: HashMap::new(), captures: Captures::new() };
    let mut outcome = Outcome { replies: vec![None; script.steps.len()], ..Outcome::default() };
    for (at, step) in script.steps.iter().enumerate() {
        if step.only.is_some_and(|only| only != side) {
            continue;
        }
        outcome.steps += 1;
        match player.step(step) {
            Ok(replies) => outcome.replies[at] = replies,
            Err(failure) => outcome.failures.push(*failure),
        }
        if outcome.failures.len() >= FAILURES_MAX {
            return outcome;
        }
    }
    outcome.failures.extend(player.leftovers());
    drop(player);
    if let Err(what) = target.finish() {
        let came = what.lines().map(|line| format!("# {line}")).collect();
        outcome.failures.push(Failure { line: 0, title: "at the end".to_owned(), expected: Vec::new(), came });
    }
    outcome
}

struct Player<'a> {
    script: &'a Script,
    target: &'a mut dyn Target,
    mode: Mode,
    patience: Duration,
    open: HashMap<String, Open>,
    captures: Captures,
}

/// An open connection and what it has said that no step has taken yet.
struct Open {
    link: Box<dyn Link>,
    dialect: Dialect,
    input: Vec<u8>,
    decoder: ValueDecoder,
    closed: bool,
}

impl Player<'_> {
    /// Plays a step; gives the new expectations when blessing has changed them.
    fn step(&mut self, step: &Step) -> Result<Option<Vec<String>>, Box<Failure>> {
        match &step.action {
            Action::Sleep(time) => {
                std::thread::sleep(*time);
                return Ok(None);
            }
            Action::Close => {
                self.open.remove(&step.connection);
                return Ok(None);
            }
            _ => {}
        }
        let fail = |what: String| Box::new(self.failure(step, vec![format!("# {what}")]));
        if step.expected.is_empty() && self.mode == Mode::Compare {
            return Err(fail("the transcript expects nothing here; bless it, or write <none>".to_owned()));
        }
        let bytes = self.bytes(&step.action).map_err(fail)?;
        let deadline = step.until.map(|time| Instant::now() + time);
        loop {
            let attempt = match self.mode {
                Mode::Compare => self.compare(step, &bytes),
                Mode::Bless => self.record(step, &bytes),
            };
            let again = deadline.is_some_and(|deadline| Instant::now() < deadline);
            match attempt {
                Ok(Verdict::AsExpected) => return Ok(None),
                Ok(_) | Err(_) if again && !step.expected.is_empty() => std::thread::sleep(RETRY_PAUSE),
                Ok(Verdict::Differs(replies)) => return Ok(Some(replies)),
                Err(came) => return Err(Box::new(self.failure(step, came))),
            }
        }
    }

    fn failure(&self, step: &Step, came: Vec<String>) -> Failure {
        let expected = step.expected.iter().flat_map(|one| one.text.lines().map(str::to_owned)).collect();
        let mut title = step.title(self.script).to_owned();
        if let Some(time) = step.until {
            title.push_str(&format!("   (repeated for {time:?})"));
        }
        Failure { line: step.line, title, expected, came }
    }

    fn bytes(&self, action: &Action) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        match action {
            Action::Command(arguments) => {
                let filled: Result<Vec<_>, _> =
                    arguments.iter().map(|argument| argument.fill(&self.captures)).collect();
                let filled = filled?;
                let borrowed: Vec<&[u8]> = filled.iter().map(Vec::as_slice).collect();
                encode_command(&borrowed, &mut bytes);
            }
            Action::Lines(lines) => {
                for line in lines {
                    bytes.extend(line.fill(&self.captures)?);
                    bytes.extend_from_slice(b"\r\n");
                }
            }
            Action::Raw(raw) => bytes = raw.fill(&self.captures)?,
            Action::Receive | Action::Close | Action::Sleep(_) => {}
        }
        Ok(bytes)
    }

    /// Sends `bytes` on a step's connection. What the server said unasked before is handed back as an error.
    fn send(&mut self, step: &Step, bytes: &[u8]) -> Result<&mut Open, Vec<String>> {
        let open = match self.open.entry(step.connection.clone()) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                let link =
                    self.target.connect(&step.connection).map_err(|error| vec![format!("# no connection: {error}")])?;
                let dialect = self.script.dialect;
                entry.insert(Open { link, dialect, input: Vec::new(), decoder: ValueDecoder::new(), closed: false })
            }
        };
        if matches!(step.action, Action::Receive) {
            return Ok(open);
        }
        let unasked = open.next(Duration::ZERO);
        if unasked != Came::Nothing {
            let mut came = vec!["# before this step, unasked:".to_owned()];
            came.extend(open.drain(unasked).iter().flat_map(to_lines));
            return Err(came);
        }
        // A connection that breaks here shows as closed when the reply is read, after all that came before.
        let _ = open.link.send(bytes);
        Ok(open)
    }

    fn compare(&mut self, step: &Step, bytes: &[u8]) -> Result<Verdict, Vec<String>> {
        let mut captures = std::mem::take(&mut self.captures);
        let patience = self.patience;
        let compared = self.send(step, bytes).and_then(|open| open.compare(&step.expected, &mut captures, patience));
        self.captures = captures;
        if matches!(compared, Ok(Came::Closed)) || self.open.get(&step.connection).is_some_and(|open| open.closed) {
            self.open.remove(&step.connection);
        }
        compared.map(|_| Verdict::AsExpected)
    }

    fn record(&mut self, step: &Step, bytes: &[u8]) -> Result<Verdict, Vec<String>> {
        let open = self.send(step, bytes)?;
        let came = open.record(step);
        if open.closed {
            self.open.remove(&step.connection);
        }
        let expected: Vec<&Expected> = step.expected.iter().map(|one| &one.what).collect();
        if matches_all(&expected, &came, &mut self.captures).map_err(|what| vec![format!("# {what}")])? {
            return Ok(Verdict::AsExpected);
        }
        // Matchers that hold are kept where replies and expectations pair up.
        let paired = step.expected.len() == came.len();
        let mut replies = Vec::new();
        for (at, one) in came.iter().enumerate() {
            let kept = step.expected.get(at).filter(|_| paired);
            match kept.filter(|kept| kept.what.accepts(one, &mut self.captures) == Ok(true)) {
                Some(kept) => replies.push(kept.text.clone()),
                None => replies.push(one.print()),
            }
        }
        Ok(Verdict::Differs(replies))
    }

    /// What connections still say when the file has ended, which no step has asked for.
    fn leftovers(&mut self) -> Vec<Failure> {
        let mut failures = Vec::new();
        for (name, open) in &mut self.open {
            let first = open.next(Duration::from_millis(5));
            if first != Came::Nothing {
                let came = open.drain(first).iter().flat_map(to_lines).collect();
                let title = if name.is_empty() { "the connection".to_owned() } else { format!("[{name}]") };
                let title = format!("{title} at the end of the file, unasked");
                failures.push(Failure { line: 0, title, expected: vec!["<none>".to_owned()], came });
            }
        }
        failures
    }
}

/// How an attempt to play a step has ended.
enum Verdict {
    AsExpected,
    /// Blessing found this instead.
    Differs(Vec<String>),
}

impl Open {
    /// The next reply, line, or the end; `Nothing` after `timeout`.
    fn next(&mut self, timeout: Duration) -> Came {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(came) = self.take() {
                return came;
            }
            if self.closed {
                return if self.input.is_empty() {
                    Came::Closed
                } else {
                    Came::Garbage(std::mem::take(&mut self.input), "the connection ends in the middle of".to_owned())
                };
            }
            match self.link.receive(&mut self.input, deadline.saturating_duration_since(Instant::now())) {
                Ok(Received::Bytes) => {}
                Ok(Received::Closed) => self.closed = true,
                // A link that can't wait, such as one within the process, says so at once.
                Ok(Received::Nothing) if Instant::now() < deadline => std::thread::sleep(LOOK_PAUSE),
                Ok(Received::Nothing) => return Came::Nothing,
                Err(error) => {
                    self.closed = true;
                    return Came::Garbage(
                        std::mem::take(&mut self.input),
                        format!("the connection broke ({error}) after"),
                    );
                }
            }
        }
    }

    /// Takes one whole reply or line off the input.
    fn take(&mut self) -> Option<Came> {
        match self.dialect {
            Dialect::Redis => match self.decoder.next(&self.input, &ValueLimits::default()) {
                Ok(None) => None,
                Ok(Some((value, len))) => {
                    self.input.drain(..len);
                    Some(Came::Reply(value))
                }
                Err(error) => Some(Came::Garbage(std::mem::take(&mut self.input), error.to_string())),
            },
            Dialect::Memcache => {
                // What watchers are told ends with LF alone.
                let line_end: &[u8] = if self.input.starts_with(b"ts=") { b"\n" } else { b"\r\n" };
                let end = self.input.windows(line_end.len()).position(|bytes| bytes == line_end)?;
                let line = self.input.drain(..end + line_end.len()).take(end).collect();
                Some(Came::Line(line))
            }
        }
    }

    /// `first` and all that follows it until the server is quiet.
    fn drain(&mut self, first: Came) -> Vec<Came> {
        let mut all = vec![first];
        while !matches!(all.last(), Some(Came::Nothing | Came::Closed)) {
            all.push(self.next(QUIET));
        }
        if all.len() > 1 && all.last() == Some(&Came::Nothing) {
            all.pop();
        }
        all
    }

    /// Waits for what is expected, and no longer than until something else comes. Gives the last that came.
    fn compare(
        &mut self,
        expected: &[Expectation],
        captures: &mut Captures,
        patience: Duration,
    ) -> Result<Came, Vec<String>> {
        let mut seen = Vec::new();
        let mut at = 0;
        while at < expected.len() {
            if matches!(expected[at].what, Expected::Nothing) {
                at += 1;
                continue;
            }
            let came = self.next(patience);
            // What ends a gap is looked for first.
            let gap = matches!(expected[at].what, Expected::AnyLines);
            let ends_gap =
                gap && expected.get(at + 1).is_some_and(|next| next.what.accepts(&came, captures) == Ok(true));
            let accepted = expected[at].what.accepts(&came, captures).map_err(|what| vec![format!("# {what}")])?;
            if ends_gap {
                at += 2;
            } else if !accepted {
                seen.extend(self.drain(came));
                return Err(seen.iter().flat_map(to_lines).collect());
            } else if !gap {
                at += 1;
            }
            seen.push(came);
        }
        Ok(seen.pop().unwrap_or(Came::Nothing))
    }

    /// Waits for all that a step gives.
    fn record(&mut self, step: &Step) -> Vec<Came> {
        let silent = matches!(step.expected.as_slice(), [Expectation { what: Expected::Nothing, .. }]);
        let first = match step.action {
            _ if silent => QUIET,
            Action::Raw(_) | Action::Lines(_) if step.expected.is_empty() => Duration::from_millis(200),
            _ => BLESSING_PATIENCE,
        };
        let first = self.next(first);
        let mut came = self.drain(first);
        while came.len() < step.expected.len() && !matches!(came.last(), Some(Came::Nothing | Came::Closed)) {
            let more = self.next(BLESSING_PATIENCE);
            came.extend(self.drain(more));
        }
        if came.len() > 1 {
            came.retain(|one| *one != Came::Nothing);
        }
        came
    }
}

/// Whether all that came is all that was expected.
fn matches_all(expected: &[&Expected], came: &[Came], captures: &mut Captures) -> Result<bool, String> {
    match (expected, came) {
        ([], []) => Ok(true),
        ([], _) | (_, []) => Ok(false),
        ([Expected::AnyLines, next, rest @ ..], [first, others @ ..]) => {
            if next.accepts(first, captures)? {
                matches_all(rest, others, captures)
            } else {
                Ok(matches!(first, Came::Line(_)) && matches_all(expected, others, captures)?)
            }
        }
        ([one, rest @ ..], [first, others @ ..]) => {
            Ok(one.accepts(first, captures)? && matches_all(rest, others, captures)?)
        }
    }
}

fn to_lines(came: &Came) -> Vec<String> {
    came.print().lines().map(str::to_owned).collect()
}
