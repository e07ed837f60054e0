//! A trace replayed as an application with a cache does it: a get, and after a miss a set, and nobody asks for what is
//! being fetched already. Knows no socket.

use crate::dialects::Dialect;
use crate::key::Key;
use crate::load::{Reply, Statement, Workload};
use crate::traces::{Hits, Trace};
use crate::values::Values;
use anyhow::{Result, bail};
use std::collections::VecDeque;
use std::sync::Arc;

/// Requests that wait at most: none further behind them goes ahead, so that the trace keeps its order but for so many.
const WAITING_MAX: usize = 64;

/// The requests of a trace.
#[derive(Debug)]
pub struct Replay<D> {
    dialect: D,
    trace: Arc<Trace>,
    values: Values,
    next: usize,
    /// The objects of the requests in flight.
    in_flight: Vec<u32>,
    /// Requests that wait for another one of the same object, in their order.
    waiting: VecDeque<u32>,
    hits: u64,
    hit_bytes: u64,
    all_bytes: u64,
    refused_fills: u64,
}

/// A request in flight.
#[derive(Clone, Copy, Debug)]
pub enum Pending {
    /// A get of this object.
    Get(u32),
    /// A set of this one, which was missed.
    Fill(u32),
}

impl<D: Dialect> Replay<D> {
    /// From the first request on. `values` must be as long as the largest object.
    pub fn new(dialect: D, trace: Arc<Trace>, values: Values) -> Replay<D> {
        Replay {
            dialect,
            trace,
            values,
            next: 0,
            in_flight: Vec::new(),
            waiting: VecDeque::new(),
            hits: 0,
            hit_bytes: 0,
            all_bytes: 0,
            refused_fills: 0,
        }
    }

    /// How often requests found their object.
    pub fn hits(&self) -> Hits {
        Hits {
            requests: self.hits as f64 / self.next.max(1) as f64,
            bytes: self.hit_bytes as f64 / self.all_bytes.max(1) as f64,
        }
    }

    /// How many sets the server has refused for want of memory: a full cache may do so, and its client goes on without.
    pub fn refused_fills(&self) -> u64 {
        self.refused_fills
    }

    /// The requests that were not sent.
    pub fn left(&self) -> usize {
        self.trace.requests.len() - self.next + self.waiting.len()
    }

    /// The next request: the first that waits for none in flight.
    fn next_object(&mut self) -> Option<u32> {
        if let Some(place) = self.waiting.iter().position(|object| !self.in_flight.contains(object)) {
            return self.waiting.remove(place);
        }
        while self.waiting.len() < WAITING_MAX {
            let object = *self.trace.requests.get(self.next)?;
            self.next += 1;
            if !self.in_flight.contains(&object) {
                return Some(object);
            }
            self.waiting.push_back(object);
        }
        None
    }

    fn ended(&mut self, object: u32) {
        if let Some(place) = self.in_flight.iter().position(|other| *other == object) {
            self.in_flight.swap_remove(place);
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
        let object = self.next_object()?;
        self.in_flight.push(object);
        self.all_bytes += u64::from(self.trace.sizes[object as usize]);
        self.dialect.write_get(&Key::plain(u64::from(object)), out);
        Some(Pending::Get(object))
    }

    fn waits(&self) -> bool {
        self.left() > 0
    }

    fn reply(&mut self, pending: &mut Pending, input: &[u8], out: &mut Vec<u8>) -> Result<Reply> {
        match *pending {
            Pending::Get(object) => {
                let key = Key::plain(u64::from(object));
                let Some((value, len)) = self.dialect.read_get(input, &key)? else { return Ok(Reply::Incomplete) };
                match value {
                    Some(value) if value == self.value(object) => {
                        self.ended(object);
                        self.hits += 1;
                        self.hit_bytes += value.len() as u64;
                        Ok(Reply::Finished { len, kind: 0, operations: 1 })
                    }
                    Some(_) => bail!("the server has another value for '{}'", key.escape_ascii()),
                    None => {
                        self.dialect.write_set(&key, self.value(object), 0, out);
                        *pending = Pending::Fill(object);
                        Ok(Reply::Continued { len })
                    }
                }
            }
            Pending::Fill(object) => {
                let Some((stored, len)) = self.dialect.read_fill(input)? else { return Ok(Reply::Incomplete) };
                self.ended(object);
                self.refused_fills += u64::from(!stored);
                Ok(Reply::Finished { len, kind: 1, operations: 1 })
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

    #[test]
    fn a_fill_that_is_refused_for_want_of_memory_stays_a_miss() {
        let trace = Arc::new(Trace { requests: vec![0, 0, 0], sizes: vec![4] });
        let mut replay = Replay::new(Text, Arc::clone(&trace), Values::new(4));
        let mut out = Vec::new();
        let mut fill = |replay: &mut Replay<Text>, said: &[u8]| {
            let mut missed = replay.begin(&mut out).expect("a request");
            replay.reply(&mut missed, b"END\r\n", &mut out).expect("a miss");
            replay.reply(&mut missed, said, &mut out)
        };
        let refusal = b"SERVER_ERROR out of memory storing object\r\n";
        let refused = fill(&mut replay, refusal).expect("the trace goes on");
        assert_eq!(refused, Reply::Finished { len: refusal.len(), kind: 1, operations: 1 });
        fill(&mut replay, b"STORED\r\n").expect("there is room again");
        assert_eq!((replay.refused_fills(), replay.hits()), (1, Hits::default()));
        assert!(fill(&mut replay, b"SERVER_ERROR object too large for cache\r\n").is_err());
    }

    #[test]
    fn what_is_being_fetched_is_waited_for() {
        let trace = Arc::new(Trace { requests: vec![0, 0, 1, 0], sizes: vec![4, 4] });
        let mut replay = Replay::new(Text, Arc::clone(&trace), Values::new(4));
        let mut out = Vec::new();
        let mut first = replay.begin(&mut out).expect("a request");
        let mut other = replay.begin(&mut out).expect("a request");
        assert!(matches!((first, other), (Pending::Get(0), Pending::Get(1))));
        // The rest waits for the first.
        assert!(replay.begin(&mut out).is_none());
        assert!(matches!(replay.reply(&mut other, b"END\r\n", &mut out), Ok(Reply::Continued { .. })));
        assert!(matches!(replay.reply(&mut other, b"STORED\r\n", &mut out), Ok(Reply::Finished { .. })));
        assert!(replay.begin(&mut out).is_none());
        let reply = [b"VALUE key:000000000000 0 4\r\n", replay.value(0), b"\r\nEND\r\n"].concat();
        for _ in 0..2 {
            assert!(matches!(replay.reply(&mut first, &reply, &mut out), Ok(Reply::Finished { .. })));
            first = replay.begin(&mut out).expect("a request");
            assert!(matches!(first, Pending::Get(0)));
        }
        assert!(matches!(replay.reply(&mut first, &reply, &mut out), Ok(Reply::Finished { .. })));
        assert!(replay.begin(&mut out).is_none());
        assert_eq!(replay.hits().requests, 3.0 / 4.0);
    }
}
