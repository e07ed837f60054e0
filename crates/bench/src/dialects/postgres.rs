//! PostgreSQL's extended queries on a table of keys and values: bytes out, rows in. Knows no workload.

use super::{Dialect, Each, Read};
use crate::key::Key;
use crate::load::Statement;
use anyhow::{Result, anyhow, bail};

/// PostgreSQL's protocol, version 3, on the table [`TABLE`].
#[derive(Clone, Copy, Debug)]
pub struct Postgres;

/// Where plain values are.
pub const TABLE: &str = "tenon_bench";

/// What each connection prepares for [`Postgres`], by name.
const STATEMENTS: [(&str, &str); 4] = [
    ("get", "SELECT value FROM tenon_bench WHERE key = $1"),
    (
        "set",
        "INSERT INTO tenon_bench (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    ),
    ("get_many", "SELECT key, value FROM tenon_bench WHERE key = ANY($1)"),
    ("delete", "DELETE FROM tenon_bench WHERE key = $1"),
];

/// Appends a message: its tag, its length, its body.
fn message(tag: u8, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    let begin = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let len = (out.len() - begin) as u32;
    out[begin..begin + 4].copy_from_slice(&len.to_be_bytes());
}

/// Appends the execution of a prepared statement, all in binary form, and asks for the end of its transaction.
pub fn write_execution(statement: &str, parameters: &[&[u8]], out: &mut Vec<u8>) {
    message(b'B', out, |out| {
        // The nameless portal.
        out.push(0);
        out.extend_from_slice(statement.as_bytes());
        out.push(0);
        // One format for all parameters: binary.
        out.extend_from_slice(&[0, 1, 0, 1]);
        out.extend_from_slice(&(parameters.len() as u16).to_be_bytes());
        for parameter in parameters {
            out.extend_from_slice(&(parameter.len() as u32).to_be_bytes());
            out.extend_from_slice(parameter);
        }
        // And for all columns.
        out.extend_from_slice(&[0, 1, 0, 1]);
    });
    // Of the nameless portal all rows.
    message(b'E', out, |out| out.extend_from_slice(&[0; 5]));
    message(b'S', out, |_| {});
}

/// An array of texts, in binary form.
fn texts(keys: &[Key]) -> Vec<u8> {
    const TEXT: u32 = 25;
    // One dimension, nothing null, the elements' type; how many they are, counted from 1.
    let head = [1, 0, TEXT, keys.len() as u32, 1];
    let mut array: Vec<u8> = head.iter().flat_map(|number| number.to_be_bytes()).collect();
    for key in keys {
        array.extend_from_slice(&(key.len() as u32).to_be_bytes());
        array.extend_from_slice(key);
    }
    array
}

/// A message's tag, its body, and the bytes of both; `None` while some are missing.
pub fn read_message(input: &[u8]) -> Read<(u8, &[u8])> {
    let Some((head, rest)) = input.split_first_chunk::<5>() else { return Ok(None) };
    let len = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    let Some(body_len) = len.checked_sub(4) else { bail!("a message of PostgreSQL has the length {len}") };
    Ok(rest.get(..body_len).map(|body| ((head[0], body), 5 + body_len)))
}

/// The whole reply to an execution: shows each row, and gives how many the server says there were.
pub fn read_execution<'a>(input: &'a [u8], mut row: impl FnMut(&'a [u8]) -> Result<()>) -> Read<u64> {
    let (mut at, mut rows) = (0, 0);
    loop {
        let Some(((tag, body), len)) = read_message(&input[at..])? else { return Ok(None) };
        at += len;
        match tag {
            b'D' => row(body)?,
            b'C' => rows = rows_in(body),
            b'Z' => return Ok(Some((rows, at))),
            b'E' => return Err(said(body)),
            // The parameters are bound; nothing is to be shown; a notice; a setting has changed.
            b'2' | b'n' | b'N' | b'S' => {}
            other => bail!("the server answered with a message '{}'", other.escape_ascii()),
        }
    }
}

/// The columns of a row; null ones are empty.
pub fn columns(row: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = row.get(2..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (len, after) = rest.split_first_chunk::<4>()?;
        let len = usize::try_from(i32::from_be_bytes(*len)).unwrap_or(0);
        let column = after.get(..len)?;
        rest = &after[len..];
        Some(column)
    })
}

/// The last number of `INSERT 0 1`, `SELECT 5` and the like.
fn rows_in(tag: &[u8]) -> u64 {
    let text = tag.strip_suffix(&[0]).unwrap_or(tag);
    let last = text.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    std::str::from_utf8(last).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// What an error says.
pub fn said(body: &[u8]) -> anyhow::Error {
    let field = |kind: u8| {
        let fields = body.split(|byte| *byte == 0).filter_map(|field| field.split_first());
        let text = fields.into_iter().find(|(first, _)| **first == kind).map(|(_, text)| text).unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    };
    anyhow!("the server answered '{}: {}'", field(b'S'), field(b'M'))
}

impl Dialect for Postgres {
    fn statements(self) -> Vec<Statement> {
        STATEMENTS.map(|(name, statement)| (name.to_owned(), statement.to_owned())).to_vec()
    }

    fn write_get(self, key: &[u8], out: &mut Vec<u8>) {
        write_execution("get", &[key], out);
    }

    fn write_get_many(self, keys: &[Key], out: &mut Vec<u8>) {
        write_execution("get_many", &[&texts(keys)], out);
    }

    fn write_set(self, key: &[u8], value: &[u8], expire_s: u32, out: &mut Vec<u8>) {
        assert_eq!(expire_s, 0, "a table's rows do not expire");
        write_execution("set", &[key, value], out);
    }

    fn write_delete(self, key: &[u8], out: &mut Vec<u8>) {
        write_execution("delete", &[key], out);
    }

    fn read_get<'a>(self, input: &'a [u8], _key: &[u8]) -> Read<Option<&'a [u8]>> {
        let mut value = None;
        let read = read_execution(input, |row| {
            value = Some(columns(row).next().ok_or_else(|| anyhow!("a row has no column"))?);
            Ok(())
        })?;
        Ok(read.map(|(_, len)| (value, len)))
    }

    fn read_get_many(self, input: &[u8], keys: &[Key], each: Each<'_>) -> Read<()> {
        // Rows come in any order, and one for a key that is asked for twice.
        let mut rows: Vec<(&[u8], &[u8])> = Vec::with_capacity(keys.len());
        let read = read_execution(input, |row| {
            let mut columns = columns(row);
            let pair = columns.next().zip(columns.next()).ok_or_else(|| anyhow!("a row has not two columns"))?;
            if !keys.iter().any(|key| **key == *pair.0) {
                bail!("'{}' was not asked for", pair.0.escape_ascii());
            }
            rows.push(pair);
            Ok(())
        })?;
        let Some((_, len)) = read else { return Ok(None) };
        for (index, key) in keys.iter().enumerate() {
            each(index, rows.iter().find(|(found, _)| **key == **found).map(|(_, value)| *value))?;
        }
        Ok(Some(((), len)))
    }

    fn read_set(self, input: &[u8]) -> Read<()> {
        match read_execution(input, |_| bail!("a row answers a write"))? {
            Some((1, len)) => Ok(Some(((), len))),
            Some((rows, _)) => bail!("{rows} rows were written, not one"),
            None => Ok(None),
        }
    }

    fn out_of_memory(self, _input: &[u8]) -> Option<usize> {
        // Its tables are on disk.
        None
    }

    fn read_delete(self, input: &[u8]) -> Read<bool> {
        let read = read_execution(input, |_| bail!("a row answers a deletion"))?;
        Ok(read.map(|(rows, len)| (rows > 0, len)))
    }
}

/// Replies for the tests of others.
#[cfg(test)]
pub mod tests {
    use super::*;

    /// A reply of these rows and this command's word.
    pub fn reply(rows: &[&[&[u8]]], word: &str) -> Vec<u8> {
        let mut out = Vec::new();
        message(b'2', &mut out, |_| {});
        for row in rows {
            message(b'D', &mut out, |out| {
                out.extend_from_slice(&(row.len() as u16).to_be_bytes());
                for column in *row {
                    out.extend_from_slice(&(column.len() as u32).to_be_bytes());
                    out.extend_from_slice(column);
                }
            });
        }
        message(b'C', &mut out, |out| out.extend_from_slice(format!("{word}\0").as_bytes()));
        message(b'Z', &mut out, |out| out.push(b'I'));
        out
    }

    #[test]
    fn executions_are_written_as_the_protocol_has_them() {
        let mut out = Vec::new();
        Postgres.write_delete(b"k", &mut out);
        let bind = b"B\0\0\0\x1b\0delete\0\0\x01\0\x01\0\x01\0\0\0\x01k\0\x01\0\x01";
        assert_eq!(out, [&bind[..], b"E\0\0\0\x09\0\0\0\0\0", b"S\0\0\0\x04"].concat());
    }

    #[test]
    fn replies_are_read_whole_or_not_at_all() {
        let found = reply(&[&[b"value"]], "SELECT 1");
        assert_eq!(Postgres.read_get(&found, b"k").unwrap(), Some((Some(&b"value"[..]), found.len())));
        for len in 0..found.len() {
            assert_eq!(Postgres.read_get(&found[..len], b"k").unwrap(), None);
        }
        let missed = reply(&[], "SELECT 0");
        assert_eq!(Postgres.read_get(&missed, b"k").unwrap(), Some((None, missed.len())));
        let empty = reply(&[&[b""]], "SELECT 1");
        assert_eq!(Postgres.read_get(&empty, b"k").unwrap(), Some((Some(&b""[..]), empty.len())));
        let stored = reply(&[], "INSERT 0 1");
        assert_eq!(Postgres.read_set(&stored).unwrap(), Some(((), stored.len())));
        assert!(Postgres.read_set(&reply(&[], "INSERT 0 0")).is_err() && Postgres.read_set(&found).is_err());
        assert_eq!(Postgres.read_delete(&reply(&[], "DELETE 0")).unwrap().map(|read| read.0), Some(false));
    }

    #[test]
    fn several_keys_are_asked_for_at_once() {
        let mut out = Vec::new();
        Postgres.write_get_many(&[Key::of(b"a"), Key::of(b"bc")], &mut out);
        let array = b"\0\0\0\x01\0\0\0\0\0\0\0\x19\0\0\0\x02\0\0\0\x01\0\0\0\x01a\0\0\0\x02bc";
        assert!(out.windows(array.len()).any(|part| part == array), "{}", out.escape_ascii());
        let keys = [Key::of(b"a"), Key::of(b"b"), Key::of(b"c"), Key::of(b"a")];
        let read = |input: &[u8]| {
            let mut shown = Vec::new();
            let read = Postgres.read_get_many(input, &keys, &mut |index, value| {
                shown.push((index, value.map(<[u8]>::len)));
                Ok(())
            });
            read.map(|read| (read.map(|((), len)| len), shown))
        };
        let rows = reply(&[&[b"c", b"value"], &[b"a", b""]], "SELECT 2");
        let shown = vec![(0, Some(0)), (1, None), (2, Some(5)), (3, Some(0))];
        assert_eq!(read(&rows).unwrap(), (Some(rows.len()), shown));
        for len in 0..rows.len() {
            assert_eq!(read(&rows[..len]).unwrap(), (None, Vec::new()));
        }
        assert!(read(&reply(&[&[b"x", b"value"]], "SELECT 1")).is_err(), "nobody asked for it");
        assert!(read(&reply(&[&[b"a"]], "SELECT 1")).is_err(), "it has no value");
    }

    #[test]
    fn errors_are_told_in_the_servers_words() {
        let mut out = Vec::new();
        message(b'E', &mut out, |out| out.extend_from_slice(b"SERROR\0VERROR\0C42P01\0Mrelation is missing\0\0"));
        let error = Postgres.read_get(&out, b"k").unwrap_err().to_string();
        assert_eq!(error, "the server answered 'ERROR: relation is missing'");
        assert!(Postgres.read_get(b"D\0\0\0\x01", b"k").is_err());
        assert!(Postgres.read_get(b"X\0\0\0\x04", b"k").is_err());
    }
}
