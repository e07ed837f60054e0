//! Records as one value each that holds all fields as JSON, as YCSB's memcached binding keeps them. Knows no socket.

use super::core::{Core, DELETE, INSERT, KINDS, Operation, READ, READ_MODIFY_WRITE, Spec, UPDATE};
use super::layout::{Layout, identity};
use crate::dialects::Dialect;
use crate::load::{Reply, Workload};
use anyhow::{Result, bail};

/// What an update stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Updates {
    /// The whole record with its new field: what an application must do that keeps its records whole.
    Whole,
    /// The new field alone, so that the record has no others from then on: what YCSB's own binding does.
    Shrinking,
}

/// One thread's operations.
#[derive(Debug)]
pub struct Memcache<D> {
    dialect: D,
    core: Core,
    updates: Updates,
    value: Vec<u8>,
}

/// An operation in flight.
#[derive(Clone, Copy, Debug)]
pub enum Pending {
    /// A read of the record of this number.
    Read(u64),
    /// A write of a record that was there.
    Update,
    /// The new record of this number.
    Insert(u64),
    /// A read of the record of this number, before the write of this field.
    ReadModify(u64, usize),
    /// That write.
    Write,
    /// The end of the record of this number.
    Delete(u64),
}

/// The longest name of a record: `usertable-user` and 19 digits.
type Name = ([u8; 40], usize);

fn name(number: u64) -> Name {
    const TABLE: &[u8] = b"usertable-";
    let record = crate::key::Key::record(number);
    let (mut text, len) = ([0; 40], TABLE.len() + record.len());
    text[..TABLE.len()].copy_from_slice(TABLE);
    text[TABLE.len()..len].copy_from_slice(&record);
    (text, len)
}

impl<D: Dialect> Memcache<D> {
    /// Of one thread.
    pub fn new(dialect: D, layout: Layout, spec: Spec, updates: Updates) -> Memcache<D> {
        Memcache { dialect, core: Core::new(layout, spec), updates, value: Vec::new() }
    }

    fn write(&mut self, number: u64, field: Option<usize>, out: &mut Vec<u8>) {
        let layout = &self.core.layout;
        let fields = match (field, self.updates) {
            (Some(field), Updates::Shrinking) => field..field + 1,
            _ => 0..layout.fields,
        };
        self.value.clear();
        let mut before: &[u8] = b"{\"";
        for field in fields {
            self.value.extend_from_slice(before);
            self.value.extend_from_slice(layout.name(field).as_bytes());
            self.value.extend_from_slice(b"\":\"");
            self.value.extend_from_slice(layout.value(identity(number), field));
            before = b"\",\"";
        }
        self.value.extend_from_slice(b"\"}");
        let (name, len) = name(number);
        self.dialect.write_set(&name[..len], &self.value, 0, out);
    }

    fn write_get(&self, number: u64, out: &mut Vec<u8>) {
        let (name, len) = name(number);
        self.dialect.write_get(&name[..len], out);
    }

    /// Reads a record and checks its fields.
    fn read_record(&self, input: &[u8], number: u64) -> Result<Option<usize>> {
        let (name, len) = name(number);
        let Some((value, end)) = self.dialect.read_get(input, &name[..len])? else { return Ok(None) };
        let Some(value) = value else { bail!("the server has lost '{}'", name[..len].escape_ascii()) };
        let fields = self.fields_held(value, identity(number));
        let enough =
            fields.is_some_and(|fields| fields == self.core.layout.fields || self.updates == Updates::Shrinking);
        if !enough {
            bail!("the record '{}' is not as it was stored", name[..len].escape_ascii());
        }
        Ok(Some(end))
    }

    /// How many fields a record has, all of which hold what they must.
    fn fields_held(&self, value: &[u8], identity: u64) -> Option<usize> {
        let layout = &self.core.layout;
        let mut rest = value.strip_prefix(b"{")?;
        for count in 1.. {
            rest = rest.strip_prefix(b"\"")?;
            let name_len = rest.iter().position(|byte| *byte == b'"')?;
            let name = &rest[..name_len];
            rest = rest[name_len..].strip_prefix(b"\":\"")?;
            if rest.len() < layout.field_len || !layout.holds(identity, name, &rest[..layout.field_len]) {
                return None;
            }
            rest = rest[layout.field_len..].strip_prefix(b"\"")?;
            if rest == b"}" {
                return Some(count);
            }
            rest = rest.strip_prefix(b",")?;
        }
        None
    }
}

impl<D: Dialect> Workload for Memcache<D> {
    type Pending = Pending;

    const KINDS: &'static [&'static str] = KINDS;

    fn begin(&mut self, out: &mut Vec<u8>) -> Option<Pending> {
        Some(match self.core.next()? {
            Operation::Read(number) => {
                self.write_get(number, out);
                Pending::Read(number)
            }
            Operation::Update(number, field) => {
                self.write(number, Some(field), out);
                Pending::Update
            }
            Operation::Insert(number) => {
                self.write(number, None, out);
                Pending::Insert(number)
            }
            Operation::ReadModifyWrite(number, field) => {
                self.write_get(number, out);
                Pending::ReadModify(number, field)
            }
            Operation::Delete(number) => {
                let (name, len) = name(number);
                self.dialect.write_delete(&name[..len], out);
                Pending::Delete(number)
            }
            // Who asks for scans is told before that memcached has none.
            Operation::Scan(..) => return None,
        })
    }

    fn reply(&mut self, pending: &mut Pending, input: &[u8], out: &mut Vec<u8>) -> Result<Reply> {
        let finished = |len: Option<usize>, kind: usize| match len {
            Some(len) => Reply::Finished { len, kind, operations: 1 },
            None => Reply::Incomplete,
        };
        match *pending {
            Pending::Read(number) => Ok(finished(self.read_record(input, number)?, READ)),
            Pending::ReadModify(number, field) => {
                let Some(len) = self.read_record(input, number)? else { return Ok(Reply::Incomplete) };
                self.write(number, Some(field), out);
                *pending = Pending::Write;
                Ok(Reply::Continued { len })
            }
            Pending::Delete(number) => match self.dialect.read_delete(input)? {
                Some((false, _)) => bail!("the record of number {number} had gone before it was deleted"),
                deleted => Ok(finished(deleted.map(|(_, len)| len), DELETE)),
            },
            Pending::Update | Pending::Write | Pending::Insert(_) => {
                let Some(((), len)) = self.dialect.read_set(input)? else { return Ok(Reply::Incomplete) };
                let kind = match *pending {
                    Pending::Insert(number) => {
                        self.core.inserted(number);
                        INSERT
                    }
                    Pending::Write => READ_MODIFY_WRITE,
                    _ => UPDATE,
                };
                Ok(Reply::Finished { len, kind, operations: 1 })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::Text;

    #[test]
    fn a_record_is_the_json_of_ycsbs_binding() {
        let mut load = Memcache::new(Text, Layout::new(2, 4), Spec::Load(0..1), Updates::Whole);
        let mut out = Vec::new();
        let mut pending = load.begin(&mut out).expect("a record");
        let text = String::from_utf8(out.clone()).unwrap();
        let begin = "set usertable-user6284781860667377211 0 0 33\r\n{\"field0\":\"";
        assert!(text.starts_with(begin) && text.ends_with("\"}\r\n"), "{text}");
        assert!(load.begin(&mut out).is_none());
        assert!(matches!(load.reply(&mut pending, b"STORED\r\n", &mut out), Ok(Reply::Finished { len: 8, .. })));

        let value = text.lines().nth(1).unwrap();
        let reply = |value: &str| {
            format!("VALUE usertable-user6284781860667377211 0 {}\r\n{value}\r\nEND\r\n", value.len()).into_bytes()
        };
        assert_eq!(load.read_record(&reply(value), 0).unwrap(), Some(reply(value).len()));
        assert!(load.read_record(&reply(&value.replace("field0", "field1")), 0).is_err());
        assert!(load.read_record(&reply("{}"), 0).is_err());
        assert!(load.read_record(b"END\r\n", 0).unwrap_err().to_string().contains("has lost"));

        let one = &format!("{{\"field1\":\"{}\"}}", value[value.len() - 6..].trim_end_matches("\"}"));
        assert!(load.read_record(&reply(one), 0).is_err());
        load.updates = Updates::Shrinking;
        assert!(load.read_record(&reply(one), 0).is_ok());
        out.clear();
        load.write(0, Some(1), &mut out);
        assert_eq!(String::from_utf8(out).unwrap().lines().nth(1), Some(one.as_str()));
    }
}
