//! Commands on keys of any type, on databases, and WATCH.

use super::state::{Answer, Data, Entry, Run, error, int, simple};
use std::collections::BTreeSet;
use tenon_client::Value;

impl Run<'_> {
    pub(super) fn expire(&mut self, key: &str) {
        if let Some(entry) = self.entry(key) {
            entry.expires = true;
        }
    }

    /// Puts what another key held in a key's place, with its expiry.
    fn put_entry(&mut self, database: usize, key: &str, mut entry: Entry) {
        entry.token = None;
        let place = (database, key.to_owned());
        self.state.touch(&place);
        self.state.entries.insert(place, entry);
    }
}

pub fn run(run: &mut Run<'_>, words: &[&str]) -> Option<Answer> {
    let database = run.operation.database;
    Some(Ok(match *words {
        ["DEL" | "UNLINK", ref keys @ ..] => int(keys.iter().filter(|key| run.remove(key)).count()),
        ["EXISTS" | "TOUCH", ref keys @ ..] => int(keys.iter().filter(|key| run.get(key).is_some()).count()),
        ["TYPE", key] => simple(match run.get(key) {
            None => "none",
            Some(Data::Text(_)) => "string",
            Some(Data::List(_)) => "list",
            Some(Data::Hash(_)) => "hash",
            Some(Data::Set(_)) => "set",
            Some(Data::Zset(_)) => "zset",
        }),
        ["RENAME", from, to] => rename(run, from, to),
        ["RENAMENX", from, to] => match run.get(to).is_some() {
            true if run.get(from).is_some() => int(0),
            _ if rename(run, from, to) == simple("OK") => int(1),
            _ => error("ERR"),
        },
        ["COPY", from, to] => copy(run, from, (database, to), false),
        ["COPY", from, to, "REPLACE"] => copy(run, from, (database, to), true),
        ["COPY", from, to, "DB", number, "REPLACE"] => copy(run, from, (number.parse().expect("a number"), to), true),
        ["MOVE", key, number] => move_key(run, key, number.parse().expect("a number")),
        ["PEXPIRE", key, _ms] => {
            let is_there = run.get(key).is_some();
            if is_there {
                let place = run.place(key);
                run.state.touch(&place);
                run.expire(key);
            }
            int(usize::from(is_there))
        }
        ["PERSIST", key] => {
            let had = run.entry(key).is_some_and(|entry| std::mem::take(&mut entry.expires));
            if had {
                let place = run.place(key);
                run.state.touch(&place);
            }
            int(usize::from(had))
        }
        ["SELECT", _] => simple("OK"),
        ["FLUSHDB", ..] => {
            let places: Vec<_> = run.state.entries.keys().filter(|place| place.0 == database).cloned().collect();
            for place in places {
                run.state.entries.remove(&place);
                run.state.touch(&place);
            }
            simple("OK")
        }
        ["SWAPDB", one, other] => swap(run, one.parse().expect("a number"), other.parse().expect("a number")),
        ["WATCH", ref keys @ ..] => {
            let places: BTreeSet<_> = keys.iter().map(|key| run.place(key)).collect();
            run.state.watches.entry(run.operation.client).or_default().places.extend(places);
            simple("OK")
        }
        ["UNWATCH"] => {
            run.state.watches.remove(&run.operation.client);
            simple("OK")
        }
        _ => return None,
    }))
}

fn rename(run: &mut Run<'_>, from: &str, to: &str) -> Value {
    let Some(entry) = run.entry(from).map(|entry| entry.clone()) else { return error("ERR") };
    if from != to {
        run.remove(from);
        run.put_entry(run.operation.database, to, entry);
    }
    simple("OK")
}

fn copy(run: &mut Run<'_>, from: &str, to: (usize, &str), replace: bool) -> Value {
    if to == (run.operation.database, from) {
        return error("ERR");
    }
    let taken = run.state.data(to.0, to.1).is_some();
    match run.entry(from).map(|entry| entry.clone()) {
        Some(entry) if replace || !taken => {
            run.put_entry(to.0, to.1, entry);
            int(1)
        }
        _ => int(0),
    }
}

fn move_key(run: &mut Run<'_>, key: &str, database: usize) -> Value {
    if database == run.operation.database {
        return error("ERR");
    }
    let taken = run.state.data(database, key).is_some();
    match run.entry(key).map(|entry| entry.clone()) {
        Some(entry) if !taken => {
            run.remove(key);
            run.put_entry(database, key, entry);
            int(1)
        }
        _ => int(0),
    }
}

/// A watched key counts as changed if it is there in one of the databases.
fn swap(run: &mut Run<'_>, one: usize, other: usize) -> Value {
    let other_of = |database: usize| match database {
        _ if database == one => other,
        _ if database == other => one,
        same => same,
    };
    if one == other {
        return simple("OK");
    }
    let moved: Vec<_> = run.state.entries.keys().filter(|place| other_of(place.0) != place.0).cloned().collect();
    let entries = std::mem::take(&mut run.state.entries);
    run.state.entries = entries.into_iter().map(|((at, key), entry)| ((other_of(at), key), entry)).collect();
    for (at, key) in moved {
        run.state.touch(&(other_of(at), key.clone()));
        run.state.touch(&(at, key));
    }
    simple("OK")
}

/// Whether a command has changed nothing, whatever there was: one that only reads, or that says so.
pub fn is_read(name: &str, reply: &Value) -> bool {
    const READS: &str = "GET MGET STRLEN GETRANGE EXISTS TOUCH TYPE LLEN LRANGE LINDEX HGET HMGET HEXISTS HLEN HGETALL SISMEMBER \
        SCARD SMEMBERS SINTER SUNION SDIFF ZSCORE ZCARD ZRANGE SELECT get mg";
    const CHANGE_UNLESS_0: &str = "DEL UNLINK SETNX MSETNX RENAMENX COPY MOVE LREM HDEL SREM SADD SMOVE ZREM";
    const CHANGE_UNLESS_NULL: &str = "GETDEL LPOP RPOP LMOVE RPOPLPUSH LMPOP BLPOP BRPOP BLMPOP BLMOVE SPOP BZPOPMIN";
    let is_in = |names: &str| names.split_whitespace().any(|other| other == name);
    match reply {
        Value::Error(_) => true,
        Value::Int(0) if is_in(CHANGE_UNLESS_0) => true,
        Value::NullBulk if is_in(CHANGE_UNLESS_NULL) => true,
        _ => is_in(READS),
    }
}
