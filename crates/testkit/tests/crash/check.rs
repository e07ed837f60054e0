//! What a server holds after a restart, and whether that is what its clients were promised. Knows no files.

use crate::load::{FIELDS, ITEM_KINDS, ItemKind, KINDS, Kind, MemcacheWriter, RespWriter};
use crate::tally::Tally;
use std::time::Instant;
use tenon_client::{Memcache, Resp, Value};

/// Asserts that as many writes are there as were confirmed before `promised`, and no more than were sent; the tally then
/// goes on from there.
fn settle(tally: &Tally, found: u64, promised: Instant, what: &str) {
    let (confirmed, sent) = (tally.confirmed_until(promised), tally.sent());
    assert!(found >= confirmed, "{what}: {confirmed} were confirmed, {found} are there ({sent} were sent)");
    assert!(found <= sent, "{what}: {sent} were sent, {found} are there");
    tally.found(found, Instant::now());
}

fn call(resp: &mut Resp, words: &[&str]) -> Value {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    match resp.call(&words).expect("the server answers after its restart") {
        Value::Error(error) => panic!("{words:?}: {}", String::from_utf8_lossy(&error)),
        value => value,
    }
}

fn number(value: &Value) -> u64 {
    match value {
        Value::Int(number) => u64::try_from(*number).expect("counts are not negative"),
        Value::Bulk(digits) => std::str::from_utf8(digits).unwrap().parse().expect("a number was written"),
        Value::NullBulk => 0,
        other => panic!("{other:?} is no number"),
    }
}

fn numbers(value: Value) -> Vec<u64> {
    let Value::Array(parts) = value else { panic!("{value:?} is no array") };
    parts.iter().map(number).collect()
}

/// Asserts that these are the numbers from 1 on; gives how many.
fn count_up(found: &[u64], what: &str) -> u64 {
    for (index, number) in found.iter().enumerate() {
        assert_eq!(*number, index as u64 + 1, "{what}: the numbers are not whole: {found:?}");
    }
    found.len() as u64
}

/// Compares one RESP client's keys with what it was promised.
pub fn check_resp(writer: &RespWriter, resp: &mut Resp, promised: Instant) {
    for kind in KINDS {
        let what = format!("{} {kind:?}", writer.name);
        let mut ask = |command: &str, key: &str, rest: &[&str]| {
            let key = writer.key(key);
            let words: Vec<&str> = [command, &key].into_iter().chain(rest.iter().copied()).collect();
            call(resp, &words)
        };
        let found = match kind {
            Kind::Count => number(&ask("GET", "n", &[])),
            Kind::Push => {
                let mut all = numbers(ask("LRANGE", "pushed", &["0", "-1"]));
                all.extend(numbers(ask("LRANGE", "queue", &["0", "-1"])));
                count_up(&all, &what)
            }
            // A move of an empty queue is confirmed and moves nothing: the lists as a whole are looked at above.
            Kind::Move => writer.tally(kind).sent(),
            Kind::Field => {
                let fields = numbers(ask("HVALS", "hash", &[]));
                let last = fields.iter().copied().max().unwrap_or(0);
                for earlier in (last + 1).saturating_sub(FIELDS).max(1)..=last {
                    assert!(fields.contains(&earlier), "{what}: {earlier} of {last} is missing: {fields:?}");
                }
                last
            }
            Kind::Transaction => {
                let counted = number(&ask("GET", "tn", &[]));
                assert_eq!(count_up(&numbers(ask("LRANGE", "tl", &["0", "-1"])), &what), counted, "{what}: the list");
                assert_eq!(number(&ask("SCARD", "ts", &[])), counted, "{what}: the set");
                counted
            }
            Kind::Script => {
                let counted = number(&ask("GET", "sn", &[]));
                assert_eq!(count_up(&numbers(ask("ZRANGE", "sz", &["0", "-1"])), &what), counted, "{what}: the zset");
                assert_eq!(number(&ask("XLEN", "sx", &[])), counted, "{what}: the stream");
                counted
            }
            Kind::Overwrite => {
                let last = number(&ask("GET", "last", &[]));
                let expires = matches!(ask("PTTL", "last", &[]), Value::Int(ms) if ms > 0);
                assert!(last == 0 || expires, "{what}: its expiry is lost");
                last
            }
            Kind::Replace => {
                let pattern = writer.key("at:*");
                let Value::Array(keys) = call(resp, &["KEYS", &pattern]) else { panic!("KEYS answers an array") };
                assert!(keys.len() <= 1, "{what}: {keys:?}");
                keys.first().map_or(0, |key| {
                    let Value::Bulk(name) = key else { panic!("{key:?} is no key") };
                    let name = std::str::from_utf8(name).unwrap();
                    number(&call(resp, &["GET", name]))
                })
            }
        };
        settle(writer.tally(kind), found, promised, &what);
    }
}

/// Compares one memcached client's items with what it was promised.
pub fn check_memcache(writer: &MemcacheWriter, memcache: &mut Memcache, promised: Instant) {
    for kind in ITEM_KINDS {
        let what = format!("{} {kind:?}", writer.name);
        let item = memcache.get(&writer.key(kind)).expect("the server answers after its restart");
        let digits = |data: &[u8]| std::str::from_utf8(data).unwrap().trim().parse::<u64>().unwrap();
        let found = item.map_or(0, |item| match kind {
            ItemKind::Count => digits(&item.value),
            ItemKind::Append => item.value.len() as u64,
            ItemKind::Store => {
                let number = digits(&item.value);
                assert_eq!(item.flags, MemcacheWriter::flags(number), "{what}: the flags");
                number
            }
        });
        settle(writer.tally(kind), found, promised, &what);
    }
}
