//! Gets, sets and deletes of plain values, in any dialect. Knows no socket.

use super::slots::Node;
use crate::dialects::Dialect;
use crate::generators::{Choice, KeyChooser, Random};
use crate::key::Key;
use crate::load::{Reply, Statement, Workload, share};
use crate::values::{Lengths, Values};
use anyhow::{Result, bail};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often each operation is drawn. The figures are weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// Reads.
    pub get: f64,
    /// Writes.
    pub set: f64,
    /// Deletions.
    pub delete: f64,
}

impl Mix {
    /// Reads only.
    pub const GET: Mix = Mix { get: 1.0, set: 0.0, delete: 0.0 };
    /// Writes only.
    pub const SET: Mix = Mix { get: 0.0, set: 1.0, delete: 0.0 };
}

/// Which keys are named.
#[derive(Clone, Debug)]
pub enum Keys {
    /// Drawn.
    Chosen(KeyChooser),
    /// Each once, in order.
    Each {
        /// The next one.
        next: u64,
        /// The one behind the last.
        end: u64,
    },
    /// Each once, in order, counted out to all threads as they come for them, so that all end together.
    CountedOut {
        /// The next one, of all clones together.
        next: Arc<AtomicU64>,
        /// The one behind the last.
        end: u64,
    },
    /// Of others, those that one node of a cluster has.
    OfNode {
        /// The others.
        keys: Box<Keys>,
        /// The node.
        node: Node,
    },
}

impl Keys {
    /// The part of the first `keys` keys that one of several threads names.
    pub fn part(keys: u64, threads: usize, thread: usize) -> Keys {
        let Range { start, end } = share(keys, threads, thread);
        Keys::Each { next: start, end }
    }

    /// The first `keys` keys for several threads, a clone for each. With a part for each, the faster threads' end would look
    /// like a slower server.
    pub fn counted_out(keys: u64) -> Keys {
        Keys::CountedOut { next: Arc::new(AtomicU64::new(0)), end: keys }
    }

    /// Those that one node of a cluster has.
    pub fn of(keys: Keys, node: Node) -> Keys {
        Keys::OfNode { keys: Box::new(keys), node }
    }

    #[inline]
    fn next(&mut self, random: &mut Random) -> Option<u64> {
        match self {
            Keys::Chosen(chooser) => Some(chooser.next(random)),
            Keys::Each { next, end } => {
                let key = *next;
                *next += 1;
                (key < *end).then_some(key)
            }
            Keys::CountedOut { next, end } => {
                let key = next.fetch_add(1, Ordering::Relaxed);
                (key < *end).then_some(key)
            }
            Keys::OfNode { keys, node } => loop {
                let number = keys.next(random)?;
                if node.has(number) {
                    return Some(number);
                }
            },
        }
    }
}

/// What a get that finds nothing means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misses {
    /// The server has lost what it was given: the run fails.
    Fail,
    /// It is counted.
    Count,
    /// It is counted, and the value is stored, as an application with a cache does.
    Fill,
}

/// What a [`KeyValue`] sends.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The operations.
    pub mix: Mix,
    /// The keys.
    pub keys: Keys,
    /// What is added to each key's number, for keys that none of another load is.
    pub first: u64,
    /// What the values hold.
    pub values: Values,
    /// How long they are.
    pub lengths: Lengths,
    /// Seconds until a stored value expires; 0 for never.
    pub expire_s: u32,
    /// Keys of each get.
    pub keys_a_get: usize,
    /// What a miss means.
    pub misses: Misses,
    /// Other seeds draw other keys.
    pub seed: u64,
}

/// What happened beside the latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Gets that found a value.
    pub hits: u64,
    /// Gets that found none.
    pub misses: u64,
    /// Fills that were refused for want of memory, as a full cache may.
    pub refused_fills: u64,
}

impl Tally {
    /// Both together.
    pub fn with(self, other: Tally) -> Tally {
        Tally {
            hits: self.hits + other.hits,
            misses: self.misses + other.misses,
            refused_fills: self.refused_fills + other.refused_fills,
        }
    }
}

/// The workload of one thread.
#[derive(Debug)]
pub struct KeyValue<D> {
    dialect: D,
    spec: Spec,
    choice: Choice<Verb>,
    random: Random,
    /// Keys of gets for several, by [`Pending::Many`]'s index.
    batches: Vec<Vec<Key>>,
    numbers: Vec<Vec<u64>>,
    idle: Vec<usize>,
    tally: Tally,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Get,
    Set,
    Delete,
}

/// An operation in flight.
#[derive(Clone, Copy, Debug)]
pub enum Pending {
    /// A get of the key of this number.
    Get(u64),
    /// A get of the batch of this index.
    Many(usize),
    /// A set.
    Set,
    /// A set of what a get has missed.
    Fill,
    /// A deletion.
    Delete,
}

impl<D: Dialect> KeyValue<D> {
    /// Speaks `dialect`.
    pub fn new(dialect: D, spec: Spec) -> KeyValue<D> {
        let Mix { get, set, delete } = spec.mix;
        KeyValue {
            dialect,
            choice: Choice::new([(get, Verb::Get), (set, Verb::Set), (delete, Verb::Delete)]),
            random: Random::new(spec.seed),
            spec,
            batches: Vec::new(),
            numbers: Vec::new(),
            idle: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// What happened beside the latencies.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    #[inline]
    fn next_key(&mut self) -> Option<u64> {
        let number = self.spec.keys.next(&mut self.random);
        number.map(|number| self.spec.first + number)
    }

    fn begin_many(&mut self, first: u64, out: &mut Vec<u8>) -> Pending {
        let index = self.idle.pop().unwrap_or_else(|| {
            self.batches.push(Vec::new());
            self.numbers.push(Vec::new());
            self.batches.len() - 1
        });
        let mut numbers = std::mem::take(&mut self.numbers[index]);
        numbers.clear();
        numbers.push(first);
        while numbers.len() < self.spec.keys_a_get
            && let Some(key) = self.next_key()
        {
            numbers.push(key);
        }
        let keys = &mut self.batches[index];
        keys.clear();
        keys.extend(numbers.iter().map(|number| Key::plain(*number)));
        self.dialect.write_get_many(keys, out);
        self.numbers[index] = numbers;
        Pending::Many(index)
    }

    fn write_set(&self, number: u64, out: &mut Vec<u8>) {
        let value = self.spec.values.of(number, self.spec.lengths.of(number));
        self.dialect.write_set(&Key::plain(number), value, self.spec.expire_s, out);
    }
}

/// Compares what was read with what must be there.
#[inline]
fn check(spec: &Spec, number: u64, value: &[u8]) -> Result<()> {
    if value != spec.values.of(number, spec.lengths.of(number)) {
        let key = Key::plain(number);
        bail!(
            "the server has another value for '{}': '{}', {} bytes",
            key.escape_ascii(),
            value[..value.len().min(40)].escape_ascii(),
            value.len()
        );
    }
    Ok(())
}

#[cold]
fn lost(number: u64) -> anyhow::Error {
    anyhow::anyhow!("the server has lost '{}'", Key::plain(number).escape_ascii())
}

const GET: usize = 0;
const SET: usize = 1;
const DELETE: usize = 2;
const FILL: usize = 3;

impl<D: Dialect> Workload for KeyValue<D> {
    type Pending = Pending;

    const KINDS: &'static [&'static str] = &["get", "set", "delete", "fill"];

    #[inline]
    fn statements(&self) -> Vec<Statement> {
        self.dialect.statements()
    }

    fn begin(&mut self, out: &mut Vec<u8>) -> Option<Pending> {
        let verb = self.choice.next(&mut self.random);
        let number = self.next_key()?;
        Some(match verb {
            Verb::Get if self.spec.keys_a_get == 1 => {
                self.dialect.write_get(&Key::plain(number), out);
                Pending::Get(number)
            }
            Verb::Get => self.begin_many(number, out),
            Verb::Set => {
                self.write_set(number, out);
                Pending::Set
            }
            Verb::Delete => {
                self.dialect.write_delete(&Key::plain(number), out);
                Pending::Delete
            }
        })
    }

    #[inline]
    fn reply(&mut self, pending: &mut Pending, input: &[u8], out: &mut Vec<u8>) -> Result<Reply> {
        match *pending {
            Pending::Get(number) => match self.dialect.read_get(input, &Key::plain(number))? {
                None => Ok(Reply::Incomplete),
                Some((Some(value), len)) => {
                    check(&self.spec, number, value)?;
                    self.tally.hits += 1;
                    Ok(Reply::Finished { len, kind: GET, operations: 1 })
                }
                Some((None, len)) => {
                    self.tally.misses += 1;
                    match self.spec.misses {
                        Misses::Fail => Err(lost(number)),
                        Misses::Count => Ok(Reply::Finished { len, kind: GET, operations: 1 }),
                        Misses::Fill => {
                            self.write_set(number, out);
                            *pending = Pending::Fill;
                            Ok(Reply::Continued { len })
                        }
                    }
                }
            },
            Pending::Many(index) => {
                let (spec, numbers) = (&self.spec, &self.numbers[index]);
                let mut tally = Tally::default();
                let read = self.dialect.read_get_many(input, &self.batches[index], &mut |at, value| match value {
                    Some(value) => {
                        tally.hits += 1;
                        check(spec, numbers[at], value)
                    }
                    None => {
                        tally.misses += 1;
                        if spec.misses == Misses::Fail { Err(lost(numbers[at])) } else { Ok(()) }
                    }
                })?;
                let Some(((), len)) = read else { return Ok(Reply::Incomplete) };
                self.tally.hits += tally.hits;
                self.tally.misses += tally.misses;
                let operations = numbers.len() as u64;
                self.idle.push(index);
                Ok(Reply::Finished { len, kind: GET, operations })
            }
            Pending::Set => {
                let read = self.dialect.read_set(input)?;
                Ok(read.map_or(Reply::Incomplete, |((), len)| Reply::Finished { len, kind: SET, operations: 1 }))
            }
            Pending::Fill => {
                let Some((stored, len)) = self.dialect.read_fill(input)? else { return Ok(Reply::Incomplete) };
                self.tally.refused_fills += u64::from(!stored);
                Ok(Reply::Finished { len, kind: FILL, operations: 1 })
            }
            Pending::Delete => {
                let read = self.dialect.read_delete(input)?;
                Ok(read.map_or(Reply::Incomplete, |(_, len)| Reply::Finished { len, kind: DELETE, operations: 1 }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_faster_takes_more_and_all_end_together() {
        let (mut random, mut slow) = (Random::new(1), Keys::counted_out(100));
        let mut fast = slow.clone();
        let mut taken = vec![slow.next(&mut random)];
        taken.extend((0..98).map(|_| fast.next(&mut random)));
        taken.push(slow.next(&mut random));
        assert_eq!(taken, (0..100).map(Some).collect::<Vec<_>>());
        assert_eq!((slow.next(&mut random), fast.next(&mut random)), (None, None));
    }
}
