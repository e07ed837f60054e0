//! Requests of memcached's clients, whose names are in lower case. What `gets` tells of a token is noted, so that it is known
//! until the item changes.

use super::state::{Answer, Data, Run, bulk, error, maybe, simple};
use tenon_client::Value;

pub fn run(run: &mut Run<'_>, words: &[&str]) -> Option<Answer> {
    let key = words.get(1).copied().unwrap_or_default();
    let is_verb = words[0].starts_with(|first: char| first.is_ascii_lowercase());
    if !is_verb {
        return None;
    }
    let Ok(old) = run.text(key) else { return Some(Ok(error("SERVER_ERROR"))) };
    Some(Ok(match *words {
        ["get" | "mg", _] => maybe(old.as_deref()),
        ["gets" | "mgc", _] => with_token(run, key, old),
        ["set", _, value] => store(run, key, Some(value.to_owned()), ["STORED", ""]),
        ["ms", _, value] => store(run, key, Some(value.to_owned()), ["HD", ""]),
        ["add", _, value] => store(run, key, old.is_none().then(|| value.to_owned()), ["STORED", "NOT_STORED"]),
        ["msE", _, value] => store(run, key, old.is_none().then(|| value.to_owned()), ["HD", "NS"]),
        ["replace", _, value] => store(run, key, old.map(|_| value.to_owned()), ["STORED", "NOT_STORED"]),
        ["append", _, value] => grow(run, key, old.map(|old| old + value), ["STORED", "NOT_STORED"]),
        ["msA", _, value] => grow(run, key, old.map(|old| old + value), ["HD", "NS"]),
        ["cas", _, value, token] => compare(run, key, value, token, ["STORED", "EXISTS", "NOT_FOUND"]),
        ["msC", _, value, token] => compare(run, key, value, token, ["HD", "EX", "NF"]),
        ["incr", _, by] => match old {
            None => simple("NOT_FOUND"),
            Some(old) => count(run, key, &old, by),
        },
        ["ma", _, by] => match old {
            None => Value::NullBulk,
            Some(old) => count(run, key, &old, by),
        },
        ["delete", _] => simple(if run.remove(key) { "DELETED" } else { "NOT_FOUND" }),
        ["md", _] => simple(if run.remove(key) { "HD" } else { "NF" }),
        _ => return None,
    }))
}

fn store(run: &mut Run<'_>, key: &str, value: Option<String>, [done, not]: [&str; 2]) -> Value {
    let Some(value) = value else { return simple(not) };
    run.set(key, &value);
    simple(done)
}

/// An item that grows keeps its expiry.
fn grow(run: &mut Run<'_>, key: &str, value: Option<String>, [done, not]: [&str; 2]) -> Value {
    let Some(value) = value else { return simple(not) };
    run.change(key, Data::Text(value));
    simple(done)
}

fn compare(run: &mut Run<'_>, key: &str, value: &str, token: &str, [done, changed, gone]: [&str; 3]) -> Value {
    let token: u64 = token.parse().expect("a number");
    let Some(entry) = run.entry(key) else { return simple(gone) };
    // A token that nobody was told since the last change is nobody's.
    if entry.token != Some(token) {
        return simple(changed);
    }
    run.set(key, value);
    simple(done)
}

fn count(run: &mut Run<'_>, key: &str, old: &str, by: &str) -> Value {
    let Ok(number) = old.parse::<u64>() else { return error("CLIENT_ERROR") };
    let sum = number.wrapping_add(by.parse().expect("a number")).to_string();
    run.change(key, Data::Text(format!("{sum:width$}", width = old.len())));
    bulk(&sum)
}

fn with_token(run: &mut Run<'_>, key: &str, old: Option<String>) -> Value {
    let Some(old) = old else { return Value::NullBulk };
    let told = match run.actual {
        Value::Array(parts) => parts.get(1).cloned(),
        _ => None,
    };
    let Some(Value::Int(told)) = told else { return error("a token") };
    let token = *run.entry(key).expect("it is there").token.get_or_insert(told as u64);
    Value::Array(vec![bulk(&old), Value::Int(token as i64)])
}
