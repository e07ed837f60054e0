//! Records as hashes with an index of their names beside them, as YCSB's Redis binding keeps them. Knows no socket.

use super::core::{Core, DELETE, INSERT, KINDS, Operation, READ, READ_MODIFY_WRITE, SCAN, Spec, UPDATE};
use super::layout::{Layout, identity, identity_in, place};
use super::places::in_index;
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
    /// The names of so many records from the one of this identity on.
    Scan(u64, u64),
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

    /// Reads the names that a scan has found from the record of this identity on, and asks for each.
    fn read_names(
        &mut self,
        input: &[u8],
        (first, len): (u64, u64),
        out: &mut Vec<u8>,
    ) -> Result<Option<(usize, usize)>> {
        let Some((count, mut at)) = read_length(input, b'*')? else { return Ok(None) };
        let count = count.ok_or_else(|| refused(input))?;
        let mut identities = self.idle.last().map_or_else(Vec::new, |index| std::mem::take(&mut self.scans[*index]));
        identities.clear();
        let names = at;
        for _ in 0..count {
            let Some((name, len)) = read_word(&input[at..])? else { return Ok(None) };
            at += len;
            identities.push(identity_in(name).ok_or_else(|| anyhow!("'{}' is in the index", name.escape_ascii()))?);
        }
        let begin_place = in_index(first);
        if identities.first().is_some_and(|found| in_index(*found) != begin_place) {
            bail!("the index lacks the record user{first}, which a scan began at");
        }
        if !identities.is_sorted_by_key(|identity| in_index(*identity)) {
            bail!("a scan's records are not in the order of the index");
        }
        self.core.check_scan(begin_place, len, identities.len() as u64)?;
        // Only now that all names are here, something is sent.
        let mut name_at = names;
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
                Pending::Scan(identity(number), len)
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
            Pending::Scan(first, asked) => {
                let read = self.read_names(input, (first, asked), out)?;
                let Some((index, len)) = read else { return Ok(Reply::Incomplete) };
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

#[cfg(test)]
mod tests {
    use super::super::mix::Mix;
    use super::super::places::Places;
    use super::super::work::{Numbers, Part};
    use super::*;
    use crate::generators::{Inserted, KeyChooser};
    use std::sync::Arc;

    /// The reply to a scan.
    fn names(identities: &[u64]) -> Vec<u8> {
        let mut out = Vec::new();
        write_head(identities.len(), &mut out);
        identities.iter().for_each(|identity| write_bulk(format!("user{identity}").as_bytes(), &mut out));
        out
    }

    #[test]
    fn a_scan_that_lacks_a_record_is_found() {
        const RECORDS: u64 = 20;
        let mix = Mix::of("E").expect("known");
        let inserted = Arc::new(Inserted::new(RECORDS));
        let numbers = Numbers { part: Part::WHOLE, shared: RECORDS, first_new: RECORDS };
        let (keys, places) = (KeyChooser::new(mix.distribution, &inserted, 0), Some(Places::of(RECORDS, in_index)));
        let spec = Spec::Run { mix, keys, inserted, numbers, scan_max: 100, places, seed: 1 };
        let mut scans = Resp::new(Layout::new(1, 1), spec);
        let mut order: Vec<u64> = (0..RECORDS).map(identity).collect();
        order.sort_by_key(|identity| in_index(*identity));
        let mut read = |found: &[u64], from: usize, len: u64| {
            scans.read_names(&names(found), (order[from], len), &mut Vec::new()).map(|read| read.is_some())
        };
        assert!(read(&order[3..8], 3, 5).expect("they are all there"));
        assert!(read(&order[15..], 15, 9).expect("it came to the end"));
        // One of them was inserted since.
        let new = (RECORDS..).map(identity).find(|new| in_index(*new) > in_index(order[19])).expect("there is one");
        assert!(read(&[&order[15..], &[new]].concat(), 15, 9).expect("it is behind all others"));
        for (found, from, len) in [
            (&order[3..7], 3, 5),
            (&order[3..9], 3, 5),
            (&order[4..9], 3, 5),
            (&order[15..19], 15, 9),
            (&[], 19, 1),
            (&[order[3], order[5], order[4]], 3, 3),
        ] {
            let error = read(found, from, len).expect_err("it is wrong").to_string();
            assert!(error.contains("scan"), "{error}");
        }
    }
}
