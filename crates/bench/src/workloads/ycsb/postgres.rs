//! Records as rows of a table with a column for each field, as YCSB's JDBC binding keeps them. Knows no socket.

use super::core::{Core, DELETE, INSERT, KINDS, Operation, READ, READ_MODIFY_WRITE, SCAN, Spec, UPDATE};
use super::layout::{Layout, identity, identity_in};
use super::places::by_name;
use crate::dialects::postgres::{columns, read_execution, write_execution};
use crate::key::Key;
use crate::load::{Reply, Statement, Workload};
use anyhow::{Context, Result, bail};

/// One thread's operations.
#[derive(Debug)]
pub struct Postgres {
    core: Core,
}

/// An operation in flight.
#[derive(Clone, Copy, Debug)]
pub enum Pending {
    /// A read of the record of this identity.
    Read(u64),
    /// A write of a field.
    Update,
    /// The new record of this number.
    Insert(u64),
    /// So many records in the order of their names, from the one of this identity on.
    Scan(u64, u64),
    /// A read of the record of this identity and number, before the write of this field.
    ReadModify(u64, u64, usize),
    /// That write.
    Write,
    /// The end of a record.
    Delete,
}

/// Where records are.
pub const USERTABLE: &str = "usertable";

/// What makes the table.
pub fn table(layout: &Layout) -> String {
    let columns: Vec<String> = (0..layout.fields).map(|field| format!("{} text", layout.name(field))).collect();
    format!("CREATE UNLOGGED TABLE IF NOT EXISTS {USERTABLE} (ycsb_key text PRIMARY KEY, {})", columns.join(", "))
}

impl Postgres {
    /// Of one thread.
    pub fn new(layout: Layout, spec: Spec) -> Postgres {
        Postgres { core: Core::new(layout, spec) }
    }

    fn write_field(&self, number: u64, field: usize, out: &mut Vec<u8>) {
        let value = self.core.layout.value(identity(number), field);
        write_execution(&format!("update{field}"), &[&Key::record(number), value], out);
    }

    fn write_record(&self, number: u64, out: &mut Vec<u8>) {
        let key = Key::record(number);
        let layout = &self.core.layout;
        let mut parameters: Vec<&[u8]> = vec![&key];
        parameters.extend((0..layout.fields).map(|field| layout.value(identity(number), field)));
        write_execution("insert", &parameters, out);
    }

    /// Checks each field of a row.
    fn check<'a>(&self, identity: u64, mut fields: impl Iterator<Item = &'a [u8]>) -> Result<()> {
        for field in 0..self.core.layout.fields {
            let value = fields.next().with_context(|| format!("the record user{identity} lacks a field"))?;
            if value != self.core.layout.value(identity, field) {
                bail!("the record user{identity} has another value in 'field{field}'");
            }
        }
        Ok(())
    }

    fn read_record(&self, input: &[u8], identity: u64) -> Result<Option<usize>> {
        let read = read_execution(input, |row| self.check(identity, columns(row).skip(1)))?;
        match read {
            Some((1, len)) => Ok(Some(len)),
            Some((rows, _)) => bail!("there are {rows} records user{identity}"),
            None => Ok(None),
        }
    }

    fn read_scan(&self, input: &[u8], (first, asked): (u64, u64)) -> Result<Option<usize>> {
        let (mut found, mut last) = (0, None);
        let read = read_execution(input, |row| {
            let mut columns = columns(row);
            let name = columns.next().unwrap_or_default();
            let identity = identity_in(name).with_context(|| format!("'{}' is in the table", name.escape_ascii()))?;
            if last.is_none() && identity != first {
                bail!("the table lacks the record user{first}, which a scan began at");
            }
            if last.replace(by_name(identity)).is_some_and(|last| last >= by_name(identity)) {
                bail!("a scan's records are not in the order of their names");
            }
            found += 1;
            self.check(identity, columns)
        })?;
        let Some((rows, len)) = read else { return Ok(None) };
        if rows != found {
            bail!("a scan has {found} rows, and the server says {rows}");
        }
        self.core.check_scan(by_name(first), asked, found)?;
        Ok(Some(len))
    }
}

/// The reply to a write of one row.
fn read_written(input: &[u8]) -> Result<Option<usize>> {
    match read_execution(input, |_| bail!("a row answers a write"))? {
        Some((1, len)) => Ok(Some(len)),
        Some((rows, _)) => bail!("{rows} records were written, not one"),
        None => Ok(None),
    }
}

impl Workload for Postgres {
    type Pending = Pending;

    const KINDS: &'static [&'static str] = KINDS;

    fn statements(&self) -> Vec<Statement> {
        let layout = &self.core.layout;
        let all = |form: &dyn Fn(usize) -> String| (0..layout.fields).map(form).collect::<Vec<_>>().join(", ");
        let names = all(&|field| layout.name(field).to_owned());
        let mut statements = vec![
            ("read".to_owned(), format!("SELECT ycsb_key, {names} FROM usertable WHERE ycsb_key = $1")),
            (
                "scan".to_owned(),
                format!("SELECT ycsb_key, {names} FROM usertable WHERE ycsb_key >= $1 ORDER BY ycsb_key LIMIT $2"),
            ),
            (
                "insert".to_owned(),
                // A run that is repeated inserts the same records again.
                format!(
                    "INSERT INTO usertable (ycsb_key, {names}) VALUES ($1, {}) ON CONFLICT (ycsb_key) DO UPDATE SET {}",
                    all(&|field| format!("${}", field + 2)),
                    all(&|field| format!("{0} = excluded.{0}", layout.name(field)))
                ),
            ),
        ];
        statements.push(("delete".to_owned(), "DELETE FROM usertable WHERE ycsb_key = $1".to_owned()));
        statements.extend((0..layout.fields).map(|field| {
            let name = layout.name(field);
            (format!("update{field}"), format!("UPDATE usertable SET {name} = $2 WHERE ycsb_key = $1"))
        }));
        statements
    }

    fn begin(&mut self, out: &mut Vec<u8>) -> Option<Pending> {
        let read = |number: u64, out: &mut Vec<u8>| write_execution("read", &[&Key::record(number)], out);
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
                write_execution("scan", &[&Key::record(number), &len.to_be_bytes()], out);
                Pending::Scan(identity(number), len)
            }
            Operation::ReadModifyWrite(number, field) => {
                read(number, out);
                Pending::ReadModify(identity(number), number, field)
            }
            Operation::Delete(number) => {
                write_execution("delete", &[&Key::record(number)], out);
                Pending::Delete
            }
        })
    }

    fn reply(&mut self, pending: &mut Pending, input: &[u8], out: &mut Vec<u8>) -> Result<Reply> {
        let (len, kind) = match *pending {
            Pending::Read(identity) => (self.read_record(input, identity)?, READ),
            Pending::Scan(first, asked) => (self.read_scan(input, (first, asked))?, SCAN),
            Pending::Update => (read_written(input)?, UPDATE),
            Pending::Delete => (read_written(input)?, DELETE),
            Pending::Write => (read_written(input)?, READ_MODIFY_WRITE),
            Pending::Insert(number) => {
                let len = read_written(input)?;
                if len.is_some() {
                    self.core.inserted(number);
                }
                (len, INSERT)
            }
            Pending::ReadModify(identity, number, field) => {
                let Some(len) = self.read_record(input, identity)? else { return Ok(Reply::Incomplete) };
                self.write_field(number, field, out);
                *pending = Pending::Write;
                return Ok(Reply::Continued { len });
            }
        };
        Ok(len.map_or(Reply::Incomplete, |len| Reply::Finished { len, kind, operations: 1 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::postgres::tests::reply;

    #[test]
    fn a_record_is_a_row_and_every_field_is_checked() {
        let mut load = Postgres::new(Layout::new(2, 4), Spec::Load(0..1));
        assert!(table(&load.core.layout).ends_with("(ycsb_key text PRIMARY KEY, field0 text, field1 text)"));
        let mut out = Vec::new();
        let mut pending = load.begin(&mut out).expect("a record");
        let shown = String::from_utf8_lossy(&out);
        assert!(shown.contains("insert\0") && shown.contains("user6284781860667377211"), "{shown}");
        let done = load.reply(&mut pending, &reply(&[], "INSERT 0 1"), &mut out).expect("it is stored");
        assert!(matches!(done, Reply::Finished { kind: INSERT, .. }));
        assert!(load.reply(&mut pending, &reply(&[], "INSERT 0 0"), &mut out).is_err());

        let layout = load.core.layout.clone();
        let (one, two) = (layout.value(identity(0), 0), layout.value(identity(0), 1));
        let row = reply(&[&[b"user6284781860667377211", one, two]], "SELECT 1");
        assert_eq!(load.read_record(&row, identity(0)).expect("it is right"), Some(row.len()));
        assert_eq!(load.read_scan(&row, (identity(0), 1)).expect("it is right"), Some(row.len()));
        assert!(load.read_scan(&row, (identity(1), 1)).is_err(), "it began elsewhere");
        assert!(load.read_scan(&[row.clone(), row.clone()].concat(), (identity(0), 0)).is_err(), "none was asked for");
        for wrong in [
            reply(&[&[b"user6284781860667377211", two, one]], "SELECT 1"),
            reply(&[&[b"user6284781860667377211", one]], "SELECT 1"),
            reply(&[], "SELECT 0"),
        ] {
            assert!(
                load.read_record(&wrong, identity(0)).is_err() && load.read_scan(&wrong, (identity(0), 1)).is_err()
            );
        }
    }

    #[test]
    fn every_statement_names_every_field() {
        let load = Postgres::new(Layout::new(3, 1), Spec::Load(0..1));
        let statements = load.statements();
        assert_eq!(statements.len(), 7);
        assert!(
            statements[2].1.contains("VALUES ($1, $2, $3, $4)")
                && statements[2].1.ends_with("field2 = excluded.field2")
        );
    }
}
