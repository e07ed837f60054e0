//! Hashes, sets and sorted sets.

use super::state::{Answer, Data, Run, array, bulk, int, maybe};
use std::collections::{BTreeMap, BTreeSet};
use tenon_client::Value;

type Hash = BTreeMap<String, String>;
type Set = BTreeSet<String>;
type Zset = BTreeMap<String, i64>;

impl Run<'_> {
    fn hash(&self, key: &str) -> Result<Hash, Value> {
        self.read(key, |data| if let Data::Hash(hash) = data { Some(hash) } else { None })
    }

    fn members(&self, key: &str) -> Result<Set, Value> {
        self.read(key, |data| if let Data::Set(set) = data { Some(set) } else { None })
    }

    fn zset(&self, key: &str) -> Result<Zset, Value> {
        self.read(key, |data| if let Data::Zset(zset) = data { Some(zset) } else { None })
    }
}

pub fn run(run: &mut Run<'_>, words: &[&str]) -> Option<Answer> {
    Some(match *words {
        ["HSET", key, ref pairs @ ..] => hash_set(run, key, pairs),
        ["HSETNX", key, field, value] => match run.hash(key) {
            Ok(hash) if hash.contains_key(field) => Ok(int(0)),
            _ => hash_set(run, key, &[field, value]),
        },
        ["HINCRBY", key, field, by] => hash_add(run, key, field, by),
        ["HDEL", key, field] => hash_delete(run, key, field),
        ["HGET", key, field] => run.hash(key).map(|hash| maybe(hash.get(field).map(String::as_str))),
        ["HMGET", key, ref fields @ ..] => run
            .hash(key)
            .map(|hash| Value::Array(fields.iter().map(|&field| maybe(hash.get(field).map(String::as_str))).collect())),
        ["HEXISTS", key, field] => run.hash(key).map(|hash| int(usize::from(hash.contains_key(field)))),
        ["HLEN", key] => run.hash(key).map(|hash| int(hash.len())),
        ["HGETALL", key] => run.hash(key).map(|hash| array(hash.into_iter().flat_map(|(field, value)| [field, value]))),
        ["SADD", key, ref members @ ..] => set_change(run, key, members, BTreeSet::insert),
        ["SREM", key, ref members @ ..] => set_change(run, key, members, |set, member| set.remove(&member)),
        ["SISMEMBER", key, member] => run.members(key).map(|set| int(usize::from(set.contains(member)))),
        ["SCARD", key] => run.members(key).map(|set| int(set.len())),
        ["SMEMBERS", key] => run.members(key).map(array),
        ["SMOVE", from, to, member] => set_move(run, from, to, member),
        ["SPOP", key] => set_pop(run, key),
        ["SINTER" | "SUNION" | "SDIFF", ref keys @ ..] => combined(run, words[0], keys).map(array),
        ["SINTERSTORE" | "SUNIONSTORE" | "SDIFFSTORE", to, ref keys @ ..] => {
            combined(run, words[0].trim_end_matches("STORE"), keys).map(|set| {
                let len = set.len();
                run.replace(to, Data::Set(set));
                int(len)
            })
        }
        ["ZADD", key, "GT", score, member] => zset_add(run, key, &[score, member], true),
        ["ZADD", key, ref pairs @ ..] => zset_add(run, key, pairs, false),
        ["ZINCRBY", key, by, member] => zset_increment(run, key, by, member),
        ["ZREM", key, member] => zset_remove(run, key, member),
        ["ZSCORE", key, member] => {
            run.zset(key).map(|zset| maybe(zset.get(member).map(|score| score.to_string()).as_deref()))
        }
        ["ZCARD", key] => run.zset(key).map(|zset| int(zset.len())),
        ["ZRANGE", key, "0", "-1", "WITHSCORES"] => run.zset(key).map(|zset| {
            array(ranked(&zset).into_iter().flat_map(|(score, member)| [member.to_owned(), score.to_string()]))
        }),
        ["ZPOPMIN", key] => zset_pop(run, key, false),
        ["ZPOPMAX", key] => zset_pop(run, key, true),
        ["BZPOPMIN", ref keys @ .., _timeout] => zset_pop_waiting(run, keys),
        ["ZUNIONSTORE", to, "2", one, other] => zset_union(run, to, one, other),
        _ => return None,
    })
}

fn hash_set(run: &mut Run<'_>, key: &str, pairs: &[&str]) -> Answer {
    let mut hash = run.hash(key)?;
    let before = hash.len();
    hash.extend(pairs.chunks(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())));
    let added = hash.len() - before;
    run.change(key, Data::Hash(hash));
    Ok(int(added))
}

fn hash_add(run: &mut Run<'_>, key: &str, field: &str, by: &str) -> Answer {
    let mut hash = run.hash(key)?;
    let value = hash.entry(field.to_owned()).or_insert_with(|| "0".to_owned());
    let sum = value.parse::<i64>().expect("fields are numbers") + by.parse::<i64>().expect("a number");
    *value = sum.to_string();
    run.change(key, Data::Hash(hash));
    Ok(Value::Int(sum))
}

fn hash_delete(run: &mut Run<'_>, key: &str, field: &str) -> Answer {
    let mut hash = run.hash(key)?;
    let removed = hash.remove(field).is_some();
    if removed {
        run.change(key, Data::Hash(hash));
    }
    Ok(int(usize::from(removed)))
}

fn set_change(run: &mut Run<'_>, key: &str, members: &[&str], change: fn(&mut Set, String) -> bool) -> Answer {
    let mut set = run.members(key)?;
    let changed = members.iter().filter(|&&member| change(&mut set, member.to_owned())).count();
    if changed > 0 {
        run.change(key, Data::Set(set));
    }
    Ok(int(changed))
}

fn set_move(run: &mut Run<'_>, from: &str, to: &str, member: &str) -> Answer {
    if run.get(from).is_none() {
        return Ok(int(0));
    }
    let (mut source, mut target) = (run.members(from)?, run.members(to)?);
    if !source.contains(member) || from == to {
        return Ok(int(usize::from(source.contains(member))));
    }
    source.remove(member);
    run.change(from, Data::Set(source));
    if target.insert(member.to_owned()) {
        run.change(to, Data::Set(target));
    }
    Ok(int(1))
}

/// Which member goes is the server's choice.
fn set_pop(run: &mut Run<'_>, key: &str) -> Answer {
    let mut set = run.members(key)?;
    let chosen = match run.actual {
        Value::Bulk(member) => String::from_utf8_lossy(member).into_owned(),
        _ => String::new(),
    };
    if !set.remove(&chosen) {
        return Ok(maybe(set.first().map(String::as_str)));
    }
    run.change(key, Data::Set(set));
    Ok(bulk(&chosen))
}

fn combined(run: &Run<'_>, how: &str, keys: &[&str]) -> Result<Set, Value> {
    let mut sets = keys.iter().map(|key| run.members(key)).collect::<Result<Vec<Set>, Value>>()?.into_iter();
    let first = sets.next().expect("a key");
    Ok(sets.fold(first, |all, set| match how {
        "SINTER" => &all & &set,
        "SUNION" => &all | &set,
        _ => &all - &set,
    }))
}

fn ranked(zset: &Zset) -> Vec<(i64, &str)> {
    let mut ranked: Vec<(i64, &str)> = zset.iter().map(|(member, &score)| (score, member.as_str())).collect();
    ranked.sort_unstable();
    ranked
}

fn zset_add(run: &mut Run<'_>, key: &str, pairs: &[&str], only_greater: bool) -> Answer {
    let mut zset = run.zset(key)?;
    let (len, mut changed) = (zset.len(), false);
    for pair in pairs.chunks(2) {
        let score = pair[0].parse().expect("a number");
        let before = zset.get(pair[1]).copied();
        if before.is_none_or(|before| if only_greater { score > before } else { score != before }) {
            zset.insert(pair[1].to_owned(), score);
            changed = true;
        }
    }
    let added = zset.len() - len;
    if changed {
        run.change(key, Data::Zset(zset));
    }
    Ok(int(added))
}

fn zset_increment(run: &mut Run<'_>, key: &str, by: &str, member: &str) -> Answer {
    let mut zset = run.zset(key)?;
    let score = zset.entry(member.to_owned()).or_default();
    *score += by.parse::<i64>().expect("a number");
    let score = score.to_string();
    run.change(key, Data::Zset(zset));
    Ok(bulk(&score))
}

fn zset_remove(run: &mut Run<'_>, key: &str, member: &str) -> Answer {
    let mut zset = run.zset(key)?;
    let removed = zset.remove(member).is_some();
    if removed {
        run.change(key, Data::Zset(zset));
    }
    Ok(int(usize::from(removed)))
}

fn zset_pop(run: &mut Run<'_>, key: &str, greatest: bool) -> Answer {
    let mut zset = run.zset(key)?;
    let ranked = ranked(&zset);
    let Some(&(score, member)) = (if greatest { ranked.last() } else { ranked.first() }) else {
        return Ok(Value::Array(Vec::new()));
    };
    let member = member.to_owned();
    zset.remove(&member);
    run.change(key, Data::Zset(zset));
    Ok(array([member, score.to_string()]))
}

fn zset_pop_waiting(run: &mut Run<'_>, keys: &[&str]) -> Answer {
    let keys: Vec<&str> = keys.iter().copied().filter(|key| run.may_serve(key, run.zset(key).is_ok())).collect();
    for key in keys {
        if !run.zset(key)?.is_empty() {
            let Value::Array(popped) = zset_pop(run, key, false)? else { unreachable!("it is not empty") };
            return Ok(Value::Array([vec![bulk(key)], popped].concat()));
        }
    }
    Ok(Value::NullBulk)
}

/// A set's members count as if each had a score of 1.
fn zset_union(run: &mut Run<'_>, to: &str, one: &str, other: &str) -> Answer {
    let scored = |key: &str| match run.get(key) {
        Some(Data::Set(set)) => Ok(set.iter().map(|member| (member.clone(), 1)).collect()),
        _ => run.zset(key),
    };
    let mut all = scored(one)?;
    for (member, score) in scored(other)? {
        *all.entry(member).or_default() += score;
    }
    let len = all.len();
    run.replace(to, Data::Zset(all));
    Ok(int(len))
}
