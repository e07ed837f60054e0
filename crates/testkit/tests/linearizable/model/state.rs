//! What the model remembers, and how it runs a call. Knows no command.

use super::{collections, keys, lists, memcache, strings};
use crate::check::Model;
use crate::history::{Call, Operation, Words};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use tenon_client::Value;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Data {
    /// A string.
    Text(String),
    /// A list.
    List(VecDeque<String>),
    /// A hash.
    Hash(BTreeMap<String, String>),
    /// A set.
    Set(BTreeSet<String>),
    /// A sorted set, whose scores are whole.
    Zset(BTreeMap<String, i64>),
}

impl Data {
    fn is_empty(&self) -> bool {
        match self {
            Data::Text(_) => false,
            Data::List(list) => list.is_empty(),
            Data::Hash(hash) => hash.is_empty(),
            Data::Set(set) => set.is_empty(),
            Data::Zset(zset) => zset.is_empty(),
        }
    }
}

/// A value that many states share, with its hash: a search compares and hashes more than it changes.
#[derive(Debug, Eq)]
struct Shared {
    data: Data,
    hash: u64,
}

impl PartialEq for Shared {
    fn eq(&self, other: &Shared) -> bool {
        std::ptr::eq(self, other) || self.hash == other.hash && self.data == other.data
    }
}

impl Hash for Shared {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// What a key holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    shared: Arc<Shared>,
    /// The CAS token, once it was told since the last change.
    pub token: Option<u64>,
    /// It has an expiry of some milliseconds. When that comes is left open: the server reads its clock before a turn's first
    /// command, and a turn may be long.
    pub expires: bool,
}

/// A key and its database.
pub type Place = (usize, String);

/// What a client watches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Watch {
    /// The keys.
    pub places: BTreeSet<Place>,
    /// Whether one of them has changed.
    pub is_broken: bool,
}

/// All keys, and who watches them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    pub(super) entries: BTreeMap<Place, Entry>,
    pub(super) watches: BTreeMap<usize, Watch>,
}

impl State {
    /// What a key holds.
    pub fn data(&self, database: usize, key: &str) -> Option<&Data> {
        self.entries.get(&(database, key.to_owned())).map(|entry| &entry.shared.data)
    }

    /// Notes that a key has changed.
    pub(super) fn touch(&mut self, place: &Place) {
        for watch in self.watches.values_mut() {
            watch.is_broken |= watch.places.contains(place);
        }
    }

    /// This state, and those in which some of the keys that expire have gone: when others go need not be told before somebody
    /// asks for them.
    fn expired(&self, operation: &Operation) -> Vec<State> {
        let calls = match &operation.call {
            Call::Command(words) => std::slice::from_ref(words),
            Call::Exec(calls) | Call::Script { calls, .. } => calls,
        };
        let watch = self.watches.get(&operation.client);
        let may_go = |place: &Place| {
            calls.iter().any(|words| words.contains(&place.1))
                || watch.is_some_and(|watch| watch.places.contains(place))
        };
        let mut states = vec![self.clone()];
        for (place, _) in self.entries.iter().filter(|(place, entry)| entry.expires && may_go(place)) {
            for mut without in states.clone() {
                without.entries.remove(place);
                without.touch(place);
                states.push(without);
            }
        }
        states
    }
}

impl Model for State {
    fn step(&self, operation: &Operation) -> Vec<State> {
        let mut states = self.expired(operation);
        states.retain_mut(|state| {
            let mut run = Run { state, operation, actual: &operation.reply };
            run.call() == operation.reply
        });
        states
    }

    fn is_read(operation: &Operation) -> bool {
        match (&operation.call, &operation.reply) {
            (Call::Command(words), reply) => keys::is_read(&words[0], reply),
            (Call::Exec(calls) | Call::Script { calls, .. }, Value::Array(replies)) => {
                calls.len() == replies.len()
                    && calls.iter().zip(replies).all(|(words, reply)| keys::is_read(&words[0], reply))
            }
            _ => false,
        }
    }
}

/// What a command makes of a state.
pub struct Run<'a> {
    pub(super) state: &'a mut State,
    pub(super) operation: &'a Operation,
    /// What the command was answered, which decides what is left to chance.
    pub(super) actual: &'a Value,
}

/// A reply, or one that says why nothing was done.
pub type Answer = Result<Value, Value>;

impl Run<'_> {
    fn call(&mut self) -> Value {
        match &self.operation.call {
            Call::Exec(calls) => {
                let watch = self.state.watches.remove(&self.operation.client);
                match self.actual {
                    Value::Error(text) if text == b"EXECABORT" => self.actual.clone(),
                    _ if watch.is_some_and(|watch| watch.is_broken) => Value::NullBulk,
                    _ => self.all(calls),
                }
            }
            Call::Script { .. } if is_refusal(self.actual) => self.actual.clone(),
            Call::Script { calls, .. } => self.all(calls),
            Call::Command(words) => self.command(words),
        }
    }

    fn all(&mut self, calls: &[Words]) -> Value {
        let Value::Array(actual) = &self.operation.reply else { return error("one reply for each call") };
        if actual.len() != calls.len() {
            return error("as many replies as calls");
        }
        let each = calls.iter().zip(actual).map(|(words, actual)| {
            let mut run = Run { state: self.state, operation: self.operation, actual };
            run.command(words)
        });
        Value::Array(each.collect())
    }

    fn command(&mut self, words: &Words) -> Value {
        if is_refusal(self.actual) {
            return self.actual.clone();
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let families = [strings::run, lists::run, collections::run, keys::run, memcache::run];
        let answer = families.iter().find_map(|family| family(self, &words));
        answer.unwrap_or_else(|| panic!("the model does not know {words:?}")).unwrap_or_else(|error| error)
    }

    /// Whether a key may be what serves or refuses a command that can wait. Who waits passes over keys of other types than the
    /// one that is wanted, and if a transaction has written several of its keys, is served from the one written first.
    pub(super) fn may_serve(&self, key: &str, is_wanted_type: bool) -> bool {
        match self.actual {
            Value::Error(_) => true,
            Value::Array(parts) => parts.first() == Some(&bulk(key)),
            _ => is_wanted_type,
        }
    }

    pub(super) fn place(&self, key: &str) -> Place {
        (self.operation.database, key.to_owned())
    }

    pub(super) fn entry(&mut self, key: &str) -> Option<&mut Entry> {
        let place = self.place(key);
        self.state.entries.get_mut(&place)
    }

    pub(super) fn get(&self, key: &str) -> Option<&Data> {
        self.state.data(self.operation.database, key)
    }

    /// A copy of what a key holds, which is nothing where there is no key; `of` gives it if it is of the right type.
    pub(super) fn read<T: Clone + Default>(&self, key: &str, of: fn(&Data) -> Option<&T>) -> Result<T, Value> {
        self.get(key).map_or_else(|| Ok(T::default()), |data| of(data).cloned().ok_or_else(wrong_type))
    }

    /// Writes a value where the key's expiry stays; an empty collection is none.
    pub(super) fn change(&mut self, key: &str, data: Data) {
        let place = self.place(key);
        self.state.touch(&place);
        if data.is_empty() {
            self.state.entries.remove(&place);
            return;
        }
        let expires = self.state.entries.get(&place).is_some_and(|entry| entry.expires);
        self.state.entries.insert(place, Entry { shared: shared(data), token: None, expires });
    }

    /// Writes a value in another's place; a key that was not there and gets nothing has not changed.
    pub(super) fn replace(&mut self, key: &str, data: Data) {
        if self.remove(key) || !data.is_empty() {
            self.change(key, data);
        }
    }

    pub(super) fn remove(&mut self, key: &str) -> bool {
        let place = self.place(key);
        let removed = self.state.entries.remove(&place).is_some();
        if removed {
            self.state.touch(&place);
        }
        removed
    }
}

fn shared(data: Data) -> Arc<Shared> {
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    Arc::new(Shared { data, hash: hasher.finish() })
}

/// Whether a server short of memory has refused a command, which has then done nothing.
fn is_refusal(reply: &Value) -> bool {
    matches!(reply, Value::Error(text) if text == b"OOM")
}

pub(super) fn error(text: &str) -> Value {
    Value::Error(text.as_bytes().to_vec())
}

pub(super) fn wrong_type() -> Value {
    error("WRONGTYPE")
}

pub(super) fn simple(text: &str) -> Value {
    Value::Simple(text.as_bytes().to_vec())
}

pub(super) fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

pub(super) fn maybe(text: Option<&str>) -> Value {
    text.map_or(Value::NullBulk, bulk)
}

pub(super) fn int(number: usize) -> Value {
    Value::Int(number as i64)
}

pub(super) fn array<T: AsRef<str>>(all: impl IntoIterator<Item = T>) -> Value {
    Value::Array(all.into_iter().map(|text| bulk(text.as_ref())).collect())
}
