//! A trace replayed as an application with a cache does it: a get, and after a miss a set. Knows no socket.

use crate::dialects::Dialect;
use crate::key::Key;
use crate::load::{Reply, Statement, Workload};
use crate::traces::{Hits, Trace};
use crate::values::Values;
use anyhow::{Result, bail};
use std::sync::Arc;

/// The requests of a trace.
#[derive(Debug)]
pub struct Replay<D> {
    dialect: D,
    trace: Arc<Trace>,
    values: Values,
    next: usize,
    hits: u64,
    hit_bytes: u64,
    all_bytes: u64,
}

/// A request in flight.
#[derive(Clone, Copy, Debug)]
pub enum Pending {
    /// A get of this object.
    Get(u32),
    /// A set of what was missed.
    Fill,
}

impl<D: Dialect> Replay<D> {
    /// From the first request on. `values` must be as long as the largest object.
    pub fn new(dialect: D, trace: Arc<Trace>, values: Values) -> Replay<D> {
        Replay { dialect, trace, values, next: 0, hits: 0, hit_bytes: 0, all_bytes: 0 }
    }

    /// How often requests found their object.
    pub fn hits(&self) -> Hits {
        Hits {
            requests: self.hits as f64 / self.next.max(1) as f64,
            bytes: self.hit_bytes as f64 / self.all_bytes.max(1) as f64,
        }
    }

    fn value(&self, object: u32) -> &[u8] {
        self.values.of(u64::from(object), self.trace.sizes[object as usize] as usize)
    }
}

impl<D: Dialect> Workload for Replay<D> {
    type Pending = Pending;

    const KINDS: &'static [&'static str] = &["get", "fill"];

    fn statements(&self) -> Vec<Statement> {
        self.dialect.statements()
    }

    fn begin(&mut self, out: &mut Vec<u8>) -> Option<Pending> {
        let object = *self.trace.requests.get(self.next)?;
        self.next += 1;
        self.all_bytes += u64::from(self.trace.sizes[object as usize]);
        self.dialect.write_get(&Key::plain(u64::from(object)), out);
        Some(Pending::Get(object))
    }

    fn reply(&mut self, pending: &mut Pending, input: &[u8], out: &mut Vec<u8>) -> Result<Reply> {
        match *pending {
            Pending::Get(object) => {
                let key = Key::plain(u64::from(object));
                let Some((value, len)) = self.dialect.read_get(input, &key)? else { return Ok(Reply::Incomplete) };
                match value {
                    Some(value) if value == self.value(object) => {
                        self.hits += 1;
                        self.hit_bytes += value.len() as u64;
                        Ok(Reply::Finished { len, kind: 0, operations: 1 })
                    }
                    Some(_) => bail!("the server has another value for '{}'", key.escape_ascii()),
                    None => {
                        self.dialect.write_set(&key, self.value(object), 0, out);
                        *pending = Pending::Fill;
                        Ok(Reply::Continued { len })
                    }
                }
            }
            Pending::Fill => {
                let read = self.dialect.read_set(input)?;
                Ok(read.map_or(Reply::Incomplete, |((), len)| Reply::Finished { len, kind: 1, operations: 1 }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::Text;

    #[test]
    fn misses_are_filled_and_hits_counted() {
        let trace = Arc::new(Trace { requests: vec![0, 1, 0], sizes: vec![4, 12] });
        let mut replay = Replay::new(Text, Arc::clone(&trace), Values::new(12));
        let mut out = Vec::new();
        let mut missed = replay.begin(&mut out).expect("a request");
        assert_eq!(out, b"get key:000000000000\r\n");
        out.clear();
        assert_eq!(replay.reply(&mut missed, b"END\r\n", &mut out).unwrap(), Reply::Continued { len: 5 });
        assert!(out.starts_with(b"set key:000000000000 0 0 4\r\n"));
        assert!(matches!(replay.reply(&mut missed, b"STORED\r\n", &mut out), Ok(Reply::Finished { kind: 1, .. })));
        let mut other = replay.begin(&mut out).expect("a request");
        let wrong = b"VALUE key:000000000001 0 1\r\nx\r\nEND\r\n";
        assert!(replay.reply(&mut other, wrong, &mut out).is_err());
        let mut hit = replay.begin(&mut out).expect("a request");
        let reply = [b"VALUE key:000000000000 0 4\r\n", replay.value(0), b"\r\nEND\r\n"].concat();
        assert!(matches!(replay.reply(&mut hit, &reply, &mut out), Ok(Reply::Finished { kind: 0, .. })));
        assert!(replay.begin(&mut out).is_none());
        assert_eq!(replay.hits(), Hits { requests: 1.0 / 3.0, bytes: 4.0 / 20.0 });
    }
}
