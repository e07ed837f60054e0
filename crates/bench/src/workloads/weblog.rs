//! The records of a web server's log, one value each: stored, read, changed, searched, deleted. Knows no socket.

use crate::dialects::Dialect;
use crate::key::Key;
use crate::load::{Reply, Statement, Workload};
use anyhow::{Context, Result, bail};
use std::ops::Range;
use std::sync::Arc;

/// Lines of a log, each with the status and the number of bytes as its last two words, parted by tabs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    lines: Vec<String>,
}

/// What an update adds to a record's bytes.
const MORE_BYTES: u64 = 1_000;

impl Log {
    /// Reads lines behind a head. So many as are asked for: a shorter log begins again.
    pub fn read(text: &str, records: usize) -> Result<Log> {
        let known: Vec<&str> = text.lines().skip(1).filter(|line| !line.trim().is_empty()).collect();
        if known.is_empty() {
            bail!("the log holds no record");
        }
        for (index, line) in known.iter().enumerate() {
            fields(line).with_context(|| format!("line {} is no record: '{line}'", index + 2))?;
        }
        Ok(Log { lines: known.iter().cycle().take(records).map(|line| (*line).to_owned()).collect() })
    }

    /// Records in all.
    pub fn records(&self) -> u64 {
        self.lines.len() as u64
    }

    /// How many records the query finds.
    pub fn matches(&self) -> u64 {
        self.lines.iter().filter(|line| matches(line)).count() as u64
    }

    /// The same log after each record's update.
    pub fn updated(&self) -> Log {
        Log { lines: self.lines.iter().map(|line| updated(line)).collect() }
    }
}

/// Everything before the bytes, the status, the bytes.
fn fields(line: &str) -> Option<(&str, u16, u64)> {
    let (before, bytes) = line.rsplit_once('\t')?;
    let status = before.rsplit_once('\t')?.1;
    // A log has a dash where nothing was sent.
    let bytes = if bytes == "-" { 0 } else { bytes.parse().ok()? };
    Some((before, status.parse().ok()?, bytes))
}

/// `status = 200 and bytes > 5,000`.
fn matches(line: &str) -> bool {
    fields(line).is_some_and(|(_, status, bytes)| status == 200 && bytes > 5_000)
}

fn updated(line: &str) -> String {
    fields(line).map_or_else(|| line.to_owned(), |(before, _, bytes)| format!("{before}\t{}", bytes + MORE_BYTES))
}

/// What is done with every record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Stored.
    Insert,
    /// Read.
    Read,
    /// Read, changed and stored.
    Update,
    /// Read, and kept if it matches.
    Query,
    /// Deleted.
    Delete,
}

/// One thread's records.
#[derive(Debug)]
pub struct WebLog<D> {
    dialect: D,
    /// What is stored before the step.
    log: Arc<Log>,
    step: Step,
    numbers: Range<u64>,
    matches: u64,
}

/// An operation in flight: the record's number, and whether its new form has been sent.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    number: u64,
    changed: bool,
}

impl<D: Dialect> WebLog<D> {
    /// Does the step with the records of these numbers.
    pub fn new(dialect: D, log: Arc<Log>, step: Step, numbers: Range<u64>) -> WebLog<D> {
        WebLog { dialect, log, step, numbers, matches: 0 }
    }

    /// How many records matched.
    pub fn matches(&self) -> u64 {
        self.matches
    }
}

impl<D: Dialect> Workload for WebLog<D> {
    type Pending = Pending;

    const KINDS: &'static [&'static str] = &["record"];

    fn statements(&self) -> Vec<Statement> {
        self.dialect.statements()
    }

    fn begin(&mut self, out: &mut Vec<u8>) -> Option<Pending> {
        let number = self.numbers.next()?;
        let key = Key::plain(number);
        match self.step {
            Step::Insert => self.dialect.write_set(&key, self.log.lines[number as usize].as_bytes(), 0, out),
            Step::Read | Step::Update | Step::Query => self.dialect.write_get(&key, out),
            Step::Delete => self.dialect.write_delete(&key, out),
        }
        Some(Pending { number, changed: false })
    }

    fn reply(&mut self, pending: &mut Pending, input: &[u8], out: &mut Vec<u8>) -> Result<Reply> {
        let key = Key::plain(pending.number);
        let finished = |len| Reply::Finished { len, kind: 0, operations: 1 };
        if self.step == Step::Insert || pending.changed {
            return Ok(self.dialect.read_set(input)?.map_or(Reply::Incomplete, |((), len)| finished(len)));
        }
        if self.step == Step::Delete {
            return match self.dialect.read_delete(input)? {
                None => Ok(Reply::Incomplete),
                Some((true, len)) => Ok(finished(len)),
                Some((false, _)) => bail!("the server has lost '{}'", key.escape_ascii()),
            };
        }
        let Some((value, len)) = self.dialect.read_get(input, &key)? else { return Ok(Reply::Incomplete) };
        let value = value.with_context(|| format!("the server has lost '{}'", key.escape_ascii()))?;
        let line = &self.log.lines[pending.number as usize];
        if value != line.as_bytes() {
            bail!("the server has another value for '{}'", key.escape_ascii());
        }
        // What came is looked at, not what is known: that is the client's work in this study.
        let read = std::str::from_utf8(value)?;
        match self.step {
            Step::Query => self.matches += u64::from(matches(read)),
            Step::Update => {
                self.dialect.write_set(&key, updated(read).as_bytes(), 0, out);
                pending.changed = true;
                return Ok(Reply::Continued { len });
            }
            Step::Insert | Step::Read | Step::Delete => {}
        }
        Ok(finished(len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::Resp;

    const TEXT: &str = "epoch\thost\tmethod\turl\tstatus\tbytes\n1\ta\tGET\t/\t200\t6000\n2\tb\tGET\t/x y\t404\t-\n3\tc\tGET\t/z\t200\t4500\n";

    #[test]
    fn records_are_read_changed_and_found() {
        let log = Log::read(TEXT, 4).expect("it is a log");
        assert_eq!((log.records(), log.matches()), (4, 2));
        let updated = log.updated();
        assert_eq!(updated.lines[1], "2\tb\tGET\t/x y\t404\t1000");
        assert_eq!(updated.matches(), 3);
        assert!(Log::read("head\n", 1).is_err());
        assert!(format!("{:#}", Log::read("head\n1\ta\n", 1).unwrap_err()).contains("line 2"));
    }

    #[test]
    fn a_step_goes_through_every_record() {
        let log = Arc::new(Log::read(TEXT, 3).expect("it is a log"));
        let mut query = WebLog::new(Resp, Arc::clone(&log), Step::Query, 0..3);
        let mut out = Vec::new();
        for line in &log.lines {
            let mut pending = query.begin(&mut out).expect("a record");
            let reply = format!("${}\r\n{line}\r\n", line.len());
            assert!(matches!(query.reply(&mut pending, reply.as_bytes(), &mut out), Ok(Reply::Finished { .. })));
            assert!(query.reply(&mut pending, b"$-1\r\n", &mut out).is_err());
            assert!(query.reply(&mut pending, b"$1\r\nx\r\n", &mut out).is_err());
        }
        assert_eq!((query.begin(&mut out).is_none(), query.matches()), (true, 1));

        let mut update = WebLog::new(Resp, Arc::clone(&log), Step::Update, 0..1);
        out.clear();
        let mut pending = update.begin(&mut out).expect("a record");
        let reply = format!("${}\r\n{}\r\n", log.lines[0].len(), log.lines[0]);
        assert!(matches!(update.reply(&mut pending, reply.as_bytes(), &mut out), Ok(Reply::Continued { .. })));
        assert!(String::from_utf8_lossy(&out).ends_with("\t200\t7000\r\n"));
        assert!(matches!(update.reply(&mut pending, b"+OK\r\n", &mut out), Ok(Reply::Finished { .. })));
    }
}
