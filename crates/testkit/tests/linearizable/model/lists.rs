//! Lists, and commands that wait for an element.

use super::state::{Answer, Data, Run, array, bulk, error, int, maybe, simple};
use std::collections::VecDeque;
use tenon_client::Value;

type List = VecDeque<String>;

impl Run<'_> {
    fn list(&self, key: &str) -> Result<List, Value> {
        self.read(key, |data| if let Data::List(list) = data { Some(list) } else { None })
    }
}

pub fn run(run: &mut Run<'_>, words: &[&str]) -> Option<Answer> {
    Some(match *words {
        ["LPUSH" | "RPUSH" | "LPUSHX" | "RPUSHX", key, ref elements @ ..] => push(run, words[0], key, elements),
        ["LPOP", key] => pop(run, key, "LEFT"),
        ["RPOP", key] => pop(run, key, "RIGHT"),
        ["LPOP", key, count] => pop_many(run, key, "LEFT", count),
        ["LLEN", key] => run.list(key).map(|list| int(list.len())),
        ["LRANGE", key, "0", "-1"] => run.list(key).map(array),
        ["LINDEX", key, "0"] => run.list(key).map(|list| maybe(list.front().map(String::as_str))),
        ["LSET", key, "0", element] => set_first(run, key, element),
        ["LREM", key, "0", element] => remove(run, key, element),
        ["LTRIM", key, "0", last] => trim(run, key, last),
        ["LMOVE", from, to, from_end, to_end] => move_one(run, from, to, from_end, to_end),
        ["RPOPLPUSH", from, to] => move_one(run, from, to, "RIGHT", "LEFT"),
        ["LMPOP", "2", one, other, end] => pop_first_of(run, &[one, other], end, true),
        ["BLPOP", ref keys @ .., _timeout] => pop_waiting(run, keys, "LEFT", false),
        ["BRPOP", ref keys @ .., _timeout] => pop_waiting(run, keys, "RIGHT", false),
        ["BLMPOP", _timeout, "2", one, other, end] => pop_waiting(run, &[one, other], end, true),
        ["BLMOVE", from, to, from_end, to_end, _timeout] => move_waiting(run, from, to, from_end, to_end),
        _ => return None,
    })
}

fn put(list: &mut List, end: &str, element: String) {
    if end == "LEFT" { list.push_front(element) } else { list.push_back(element) }
}

fn take(list: &mut List, end: &str) -> Option<String> {
    if end == "LEFT" { list.pop_front() } else { list.pop_back() }
}

fn push(run: &mut Run<'_>, name: &str, key: &str, elements: &[&str]) -> Answer {
    let mut list = run.list(key)?;
    if name.ends_with('X') && list.is_empty() {
        return Ok(int(0));
    }
    let end = if name.starts_with('L') { "LEFT" } else { "RIGHT" };
    elements.iter().for_each(|&element| put(&mut list, end, element.to_owned()));
    let len = list.len();
    run.change(key, Data::List(list));
    Ok(int(len))
}

fn pop(run: &mut Run<'_>, key: &str, end: &str) -> Answer {
    let mut list = run.list(key)?;
    let Some(element) = take(&mut list, end) else { return Ok(Value::NullBulk) };
    run.change(key, Data::List(list));
    Ok(bulk(&element))
}

fn pop_many(run: &mut Run<'_>, key: &str, end: &str, count: &str) -> Answer {
    let mut list = run.list(key)?;
    if list.is_empty() {
        return Ok(Value::NullBulk);
    }
    let count = count.parse::<usize>().expect("a number").min(list.len());
    let taken: Vec<String> = (0..count).filter_map(|_| take(&mut list, end)).collect();
    run.change(key, Data::List(list));
    Ok(array(taken))
}

fn set_first(run: &mut Run<'_>, key: &str, element: &str) -> Answer {
    let mut list = run.list(key)?;
    let first = list.front_mut().ok_or_else(|| error("ERR"))?;
    element.clone_into(first);
    run.change(key, Data::List(list));
    Ok(simple("OK"))
}

fn remove(run: &mut Run<'_>, key: &str, element: &str) -> Answer {
    let mut list = run.list(key)?;
    let before = list.len();
    list.retain(|other| other != element);
    let removed = before - list.len();
    if removed > 0 {
        run.change(key, Data::List(list));
    }
    Ok(int(removed))
}

fn trim(run: &mut Run<'_>, key: &str, last: &str) -> Answer {
    let mut list = run.list(key)?;
    if !list.is_empty() {
        list.truncate(last.parse::<usize>().expect("a number") + 1);
        run.change(key, Data::List(list));
    }
    Ok(simple("OK"))
}

fn move_one(run: &mut Run<'_>, from: &str, to: &str, from_end: &str, to_end: &str) -> Answer {
    let mut source = run.list(from)?;
    let Some(element) = take(&mut source, from_end) else { return Ok(Value::NullBulk) };
    let mut target = if from == to { source.clone() } else { run.list(to)? };
    put(&mut target, to_end, element.clone());
    if from != to {
        run.change(from, Data::List(source));
    }
    run.change(to, Data::List(target));
    Ok(bulk(&element))
}

/// LMPOP of one element, or BLPOP as it is where it has something at once.
fn pop_first_of(run: &mut Run<'_>, keys: &[&str], end: &str, nested: bool) -> Answer {
    for key in keys {
        let mut list = run.list(key)?;
        if let Some(element) = take(&mut list, end) {
            run.change(key, Data::List(list));
            let element = if nested { array([element]) } else { bulk(&element) };
            return Ok(Value::Array(vec![bulk(key), element]));
        }
    }
    Ok(Value::NullBulk)
}

fn pop_waiting(run: &mut Run<'_>, keys: &[&str], end: &str, nested: bool) -> Answer {
    let keys: Vec<&str> = keys.iter().copied().filter(|key| run.may_serve(key, run.list(key).is_ok())).collect();
    pop_first_of(run, &keys, end, nested)
}

fn move_waiting(run: &mut Run<'_>, from: &str, to: &str, from_end: &str, to_end: &str) -> Answer {
    if *run.actual == Value::NullBulk && run.list(from).is_err() {
        return Ok(Value::NullBulk);
    }
    move_one(run, from, to, from_end, to_end)
}
