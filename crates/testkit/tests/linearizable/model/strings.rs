//! Strings.

use super::state::{Answer, Data, Run, array, bulk, error, int, maybe, simple, wrong_type};
use tenon_client::Value;

impl Run<'_> {
    pub(super) fn text(&self, key: &str) -> Result<Option<String>, Value> {
        match self.get(key) {
            None => Ok(None),
            Some(Data::Text(text)) => Ok(Some(text.clone())),
            Some(_) => Err(wrong_type()),
        }
    }

    pub(super) fn set(&mut self, key: &str, text: &str) {
        self.replace(key, Data::Text(text.to_owned()));
    }
}

pub fn run(run: &mut Run<'_>, words: &[&str]) -> Option<Answer> {
    answer(run, words).transpose()
}

fn answer(run: &mut Run<'_>, words: &[&str]) -> Result<Option<Value>, Value> {
    Ok(Some(match *words {
        ["SET", key, value, ref options @ ..] => set(run, key, value, options)?,
        ["SETNX", key, value] => {
            let is_new = run.get(key).is_none();
            if is_new {
                run.set(key, value);
            }
            int(usize::from(is_new))
        }
        ["GETSET", key, value] => {
            let before = run.text(key)?;
            run.set(key, value);
            maybe(before.as_deref())
        }
        ["GET", key] => maybe(run.text(key)?.as_deref()),
        ["GETDEL", key] => {
            let before = run.text(key)?;
            run.remove(key);
            maybe(before.as_deref())
        }
        ["INCR", key] => add(run, key, 1)?,
        ["INCRBY", key, by] => add(run, key, by.parse().expect("a number"))?,
        ["APPEND", key, more] => {
            let text = run.text(key)?.unwrap_or_default() + more;
            let len = text.len();
            run.change(key, Data::Text(text));
            int(len)
        }
        ["STRLEN", key] => int(run.text(key)?.map_or(0, |text| text.len())),
        ["GETRANGE", key, "0", "1"] => {
            let text = run.text(key)?.unwrap_or_default();
            bulk(&text[..text.len().min(2)])
        }
        ["SETRANGE", key, "1", value] => {
            let mut bytes = run.text(key)?.unwrap_or_default().into_bytes();
            bytes.resize(bytes.len().max(1 + value.len()), 0);
            bytes[1..=value.len()].copy_from_slice(value.as_bytes());
            let len = bytes.len();
            run.change(key, Data::Text(String::from_utf8(bytes).expect("all is ASCII")));
            int(len)
        }
        ["MSET", ref pairs @ ..] => {
            pairs.chunks(2).for_each(|pair| run.set(pair[0], pair[1]));
            simple("OK")
        }
        ["MSETNX", ref pairs @ ..] => {
            let all_new = pairs.chunks(2).all(|pair| run.get(pair[0]).is_none());
            if all_new {
                pairs.chunks(2).for_each(|pair| run.set(pair[0], pair[1]));
            }
            int(usize::from(all_new))
        }
        ["MGET", ref keys @ ..] => {
            let texts = keys.iter().map(|key| maybe(run.text(key).unwrap_or_default().as_deref()));
            Value::Array(texts.collect())
        }
        // What a script does, that reads two keys and writes what it has read.
        ["SWAP", one, other] => {
            let (first, second) = (run.text(one)?, run.text(other)?);
            let (Some(first), Some(second)) = (first, second) else { return Ok(Some(Value::Int(0))) };
            run.set(one, &second);
            run.set(other, &first);
            array([first, second])
        }
        _ => return Ok(None),
    }))
}

fn set(run: &mut Run<'_>, key: &str, value: &str, options: &[&str]) -> Answer {
    let old = run.text(key);
    let done = match *options {
        ["NX"] => run.get(key).is_none(),
        ["XX"] => run.get(key).is_some(),
        ["IFEQ", wanted] => old.clone()?.as_deref() == Some(wanted),
        _ => true,
    };
    if options == ["GET"] {
        old.clone()?;
    }
    if done {
        run.set(key, value);
        if let ["PX", _ms] = *options {
            run.expire(key);
        }
    }
    Ok(match options {
        ["GET"] => maybe(old?.as_deref()),
        _ if done => simple("OK"),
        _ => Value::NullBulk,
    })
}

fn add(run: &mut Run<'_>, key: &str, by: i64) -> Answer {
    let text = run.text(key)?.unwrap_or_else(|| "0".to_owned());
    let number = text.parse::<i64>().ok().filter(|number| number.to_string() == text);
    let sum = number.and_then(|number| number.checked_add(by)).ok_or_else(|| error("ERR"))?;
    run.change(key, Data::Text(sum.to_string()));
    Ok(Value::Int(sum))
}
