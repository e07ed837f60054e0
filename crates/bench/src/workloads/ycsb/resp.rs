//! Records as hashes with an index of their names beside them, as YCSB's Redis binding keeps them. Knows no socket.

use super::core::{Core, DELETE, INSERT, KINDS, Operation, READ, READ_MODIFY_WRITE, SCAN, Spec, UPDATE};
use super::layout::{Layout, identity, identity_in, place};
use crate::dialects::{Read, read_length, refused, write_bulk, write_head};
use crate::key::Key;
use crate::load::{Reply, Workload};
use anyhow::{Result, anyhow, bail};

/// The index: a sorted set.
const INDEX: &[u8] = b"_indices";

/// One thread's operations.
#[derive(Debug)]
pub struct Resp {
    core: Core,
    /// Identities of the records that scans still wait for, the last first, by [`Pending::Scanned`]'s index.
    scans: Vec<Vec<u64>>,
    idle: Vec<usize>,
}

/// An operation in flight.
#[derive(Clone, Copy, Debug)]
pub enum Pending {
    /// A read of the record of this identity.
    Read(u64),
    /// A write of a field.
    Update,
    /// The fields of the new record of this number.
    Insert(u64),
    /// The name of the new record of this number, into the index.
    Index(u64),
    /// The names of some records.
    Scan,
    /// The records of a scan.
    Scanned(usize),
    /// A read of the record of this identity, before the write of this field.
    ReadModify(u64, u64, usize),
    /// That write.
    Write,
    /// The fields of the record of this number, which ends.
    Delete(u64),
    /// Its name, out of the index.
    DeleteIndex(u64),
}

impl Resp {
    /// Of one thread.
    pub fn new(layout: Layout, spec: Spec) -> Resp {
        Resp { core: Core::new(layout, spec), scans: Vec::new(), idle: Vec::new() }
    }

    fn write_field(&self, number: u64, field: usize, out: &mut Vec<u8>) {
        let layout = &self.core.layout;
        write_head(4, out);
        write_bulk(b"HMSET", out);
        write_bulk(&Key::record(number), out);
        write_bulk(layout.name(field).as_bytes(), out);
        write_bulk(layout.value(identity(number), field), out);
    }

    fn write_record(&self, number: u64, out: &mut Vec<u8>) {
        let layout = &self.core.layout;
        write_head(2 + 2 * layout.fields, out);
        write_bulk(b"HMSET", out);
        write_bulk(&Key::record(number), out);
        for field in 0..layout.fields {
            write_bulk(layout.name(field).as_bytes(), out);
            write_bulk(layout.value(identity(number), field), out);
        }
    }

    /// Reads a whole record and checks each of its fields.
    fn read_record(&self, input: &[u8], identity: u64) -> Read<()> {
        let layout = &self.core.layout;
        let Some((count, mut at)) = read_length(input, b'*')? else { return Ok(None) };
        if count != Some(2 * layout.fields) {
            bail!("the record user{identity} has {} fields, not {}", count.unwrap_or(0) / 2, layout.fields);
        }
        for _ in 0..layout.fields {
            let Some((name, len)) = read_word(&input[at..])? else { return Ok(None) };
            at += len;
            let Some((value, len)) = read_word(&input[at..])? else { return Ok(None) };
            at += len;
            if !layout.holds(identity, name, value) {
                bail!("the record user{identity} has another value in '{}'", name.escape_ascii());
            }
        }
        Ok(Some(((), at)))
    }

    /// Reads the names of some records and asks for each.
    fn read_names(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Option<(usize, usize)>> {
        let Some((count, mut at)) = read_length(input, b'*')? else { return Ok(None) };
        let count = count.ok_or_else(|| refused(input))?;
        let mut identities = self.idle.last().map_or_else(Vec::new, |index| std::mem::take(&mut self.scans[*index]));
        identities.clear();
        let begin = at;
        for _ in 0..count {
            let Some((name, len)) = read_word(&input[at..])? else { return Ok(None) };
            at += len;
            identities.push(identity_in(name).ok_or_else(|| anyhow!("'{}' is in the index", name.escape_ascii()))?);
        }
        // Only now that all names are here, something is sent.
        let mut name_at = begin;
        while name_at < at {
            let Some((name, len)) = read_word(&input[name_at..])? else { break };
            name_at += len;
            write_head(2, out);
            write_bulk(b"HGETALL", out);
            write_bulk(name, out);
        }
        identities.reverse();
        let index = self.idle.pop().unwrap_or_else(|| {
            self.scans.push(Vec::new());
            self.scans.len() - 1
        });
        self.scans[index] = identities;
        Ok(Some((index, at)))
    }
}

/// A bulk string that is there.
#[inline]
fn read_word(input: &[u8]) -> Read<&[u8]> {
    let Some((len, head)) = read_length(input, b'$')? else { return Ok(None) };
    let end = head + len.ok_or_else(|| refused(input))?;
    Ok((input.len() >= end + 2).then(|| (&input[head..end], end + 2)))
}

fn read_ok(input: &[u8]) -> Result<Option<usize>> {
    const OK: &[u8] = b"+OK\r\n";
    if input.starts_with(OK) {
        Ok(Some(OK.len()))
    } else if OK.starts_with(input) {
        Ok(None)
    } else {
        Err(refused(input))
    }
}

/// The reply to a deletion of what is there.
fn read_one(input: &[u8], number: u64) -> Result<Option<usize>> {
    match read_length(input, b':')? {
        Some((Some(1), len)) => Ok(Some(len)),
        Some(_) => bail!("the record of number {number} had gone before it was deleted"),
        None => Ok(None),
    }
}

impl Workload for Resp {
    type Pending = Pending;

    const KINDS: &'static [&'static str] = KINDS;

    fn begin(&mut self, out: &mut Vec<u8>) -> Option<Pending> {
        let read = |number: u64, out: &mut Vec<u8>| {
            write_head(2, out);
            write_bulk(b"HGETALL", out);
            write_bulk(&Key::record(number), out);
        };
        Some(match self.core.next()? {
            Operation::Read(number) => {
                read(number, out);
                Pending::Read(identity(number))
            }
            Operation::Update(number, field) => {
                self.write_field(number, field, out);
                Pending::Update
            }
            Operation::Insert(number) => {
                self.write_record(number, out);
                Pending::Insert(number)
            }
            Operation::Scan(number, len) => {
                write_head(7, out);
                write_bulk(b"ZRANGEBYSCORE", out);
                write_bulk(INDEX, out);
                write_bulk(place(&Key::record(number)).to_string().as_bytes(), out);
                write_bulk(b"+inf", out);
                write_bulk(b"LIMIT", out);
                write_bulk(b"0", out);
                write_bulk(len.to_string().as_bytes(), out);
                Pending::Scan
            }
            Operation::ReadModifyWrite(number, field) => {
                read(number, out);
                Pending::ReadModify(identity(number), number, field)
            }
            Operation::Delete(number) => {
                write_head(2, out);
                write_bulk(b"DEL", out);
                write_bulk(&Key::record(number), out);
                Pending::Delete(number)
            }
        })
    }

    fn reply(&mut self, pending: &mut Pending, input: &[u8], out: &mut Vec<u8>) -> Result<Reply> {
        let finished = |len: Option<usize>, kind: usize| match len {
            Some(len) => Reply::Finished { len, kind, operations: 1 },
            None => Reply::Incomplete,
        };
        match *pending {
            Pending::Read(identity) => Ok(finished(self.read_record(input, identity)?.map(|((), len)| len), READ)),
            Pending::Update => Ok(finished(read_ok(input)?, UPDATE)),
            Pending::Write => Ok(finished(read_ok(input)?, READ_MODIFY_WRITE)),
            Pending::Insert(number) => {
                let Some(len) = read_ok(input)? else { return Ok(Reply::Incomplete) };
                let name = Key::record(number);
                write_head(4, out);
                write_bulk(b"ZADD", out);
                write_bulk(INDEX, out);
                write_bulk(place(&name).to_string().as_bytes(), out);
                write_bulk(&name, out);
                *pending = Pending::Index(number);
                Ok(Reply::Continued { len })
            }
            Pending::Index(number) => {
                let read = read_length(input, b':')?;
                if read.is_some() {
                    self.core.inserted(number);
                }
                Ok(finished(read.map(|(_, len)| len), INSERT))
            }
            Pending::Delete(number) => {
                let Some(len) = read_one(input, number)? else { return Ok(Reply::Incomplete) };
                write_head(3, out);
                write_bulk(b"ZREM", out);
                write_bulk(INDEX, out);
                write_bulk(&Key::record(number), out);
                *pending = Pending::DeleteIndex(number);
                Ok(Reply::Continued { len })
            }
            Pending::DeleteIndex(number) => Ok(finished(read_one(input, number)?, DELETE)),
            Pending::Scan => {
                let Some((index, len)) = self.read_names(input, out)? else { return Ok(Reply::Incomplete) };
                if self.scans[index].is_empty() {
                    bail!("a scan found nothing: the index lacks the record that it began at");
                }
                *pending = Pending::Scanned(index);
                Ok(Reply::Continued { len })
            }
            Pending::Scanned(index) => {
                let identity = self.scans[index].last().copied().unwrap_or_default();
                let Some(((), len)) = self.read_record(input, identity)? else { return Ok(Reply::Incomplete) };
                self.scans[index].pop();
                if !self.scans[index].is_empty() {
                    return Ok(Reply::Partly { len });
                }
                self.idle.push(index);
                Ok(Reply::Finished { len, kind: SCAN, operations: 1 })
            }
            Pending::ReadModify(identity, number, field) => {
                let Some(((), len)) = self.read_record(input, identity)? else { return Ok(Reply::Incomplete) };
                self.write_field(number, field, out);
                *pending = Pending::Write;
                Ok(Reply::Continued { len })
            }
        }
    }
}
