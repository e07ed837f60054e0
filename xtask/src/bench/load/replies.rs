//! Finding the end of a reply and checking it. Knows no socket.

use super::requests::{self, Operation, Protocol};
use anyhow::{Result, bail};

/// What lies at the front of the received bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Front {
    /// A whole reply of so many bytes, which is the right one.
    Reply(usize),
    /// The beginning of one.
    Incomplete,
}

/// Looks for the reply to one request for `keys`; a miss, an error or another value is an error.
pub fn front(input: &[u8], protocol: Protocol, operation: Operation, keys: &[u64]) -> Result<Front> {
    match (protocol, operation) {
        (_, Operation::Command { .. }) => Ok(resp_end(input, 0)?.map_or(Front::Incomplete, Front::Reply)),
        (Protocol::Resp, Operation::Get { value_len }) => resp_value(input, keys[0], value_len),
        (Protocol::Resp, Operation::MultiGet { value_len, .. }) => resp_values(input, keys, value_len),
        (Protocol::Resp, Operation::Set { .. }) => exactly(input, b"+OK\r\n"),
        (Protocol::Memcache, Operation::Set { .. }) => exactly(input, b"STORED\r\n"),
        (Protocol::Memcache, Operation::Get { value_len } | Operation::MultiGet { value_len, .. }) => {
            memcache_values(input, keys, value_len)
        }
        (Protocol::Meta, Operation::Set { .. }) => exactly(input, b"HD\r\n"),
        (Protocol::Meta, Operation::Get { value_len } | Operation::MultiGet { value_len, .. }) => {
            meta_values(input, keys, value_len)
        }
    }
}

fn exactly(input: &[u8], expected: &'static [u8]) -> Result<Front> {
    if input.starts_with(expected) {
        Ok(Front::Reply(expected.len()))
    } else if expected.starts_with(input) {
        Ok(Front::Incomplete)
    } else {
        bail!("the server answered {}", shown(input))
    }
}

/// Where the RESP2 value that begins at `at` ends; `None` when that has not come yet. An error is an error here, too.
fn resp_end(input: &[u8], at: usize) -> Result<Option<usize>> {
    let Some(kind) = input.get(at) else { return Ok(None) };
    if matches!(kind, b'+' | b'-' | b':') {
        let Some(line) = input[at..].iter().position(|byte| *byte == b'\n') else { return Ok(None) };
        if *kind == b'-' {
            bail!("the server answered {}", shown(&input[at..]));
        }
        return Ok(Some(at + line + 1));
    }
    let Some((number, body)) = number_line(&input[at..], 1)? else { return Ok(None) };
    let body = at + body;
    match (kind, number) {
        (b'$' | b'*', None) => Ok(Some(body)),
        (b'$', Some(len)) => Ok(Some(body + len + 2).filter(|end| *end <= input.len())),
        (b'*', Some(count)) => {
            let mut end = body;
            for _ in 0..count {
                let Some(next) = resp_end(input, end)? else { return Ok(None) };
                end = next;
            }
            Ok(Some(end))
        }
        _ => bail!("the server answered {}", shown(&input[at..])),
    }
}

fn resp_value(input: &[u8], key: u64, value_len: usize) -> Result<Front> {
    let Some(&kind) = input.first() else { return Ok(Front::Incomplete) };
    if kind != b'$' {
        bail!("the server answered {}", shown(input));
    }
    let Some((len, body)) = number_line(input, 1)? else { return Ok(Front::Incomplete) };
    let Some(len) = len else { bail!("the server has no {}", shown(&requests::key(key))) };
    if input.len() < body + len + 2 {
        return Ok(Front::Incomplete);
    }
    if !requests::is_value_of(&input[body..body + len], key, value_len) {
        bail!("the server has another value for {}: {}", shown(&requests::key(key)), shown(&input[body..body + len]));
    }
    Ok(Front::Reply(body + len + 2))
}

fn resp_values(input: &[u8], keys: &[u64], value_len: usize) -> Result<Front> {
    if !input.is_empty() && input[0] != b'*' {
        bail!("the server answered {}", shown(input));
    }
    let Some((count, mut at)) = number_line(input, 1)? else { return Ok(Front::Incomplete) };
    if count != Some(keys.len()) {
        bail!("the server answered {} to a request for {} keys", shown(input), keys.len());
    }
    for key in keys {
        match resp_value(&input[at..], *key, value_len)? {
            Front::Reply(len) => at += len,
            Front::Incomplete => return Ok(Front::Incomplete),
        }
    }
    Ok(Front::Reply(at))
}

/// `VALUE <key> <flags> <bytes>\r\n<data>\r\n` for each key, then `END\r\n`.
fn memcache_values(input: &[u8], keys: &[u64], value_len: usize) -> Result<Front> {
    let mut at = 0;
    for number in keys {
        let key = requests::key(*number);
        let rest = &input[at..];
        if b"END\r\n".starts_with(&rest[..rest.len().min(5)]) && !rest.is_empty() {
            bail!("the server has no {}", shown(&key));
        }
        let Some(line) = rest.iter().position(|byte| *byte == b'\n') else { return Ok(Front::Incomplete) };
        let Some(tail) = rest[..line].strip_prefix(b"VALUE ").and_then(|tail| tail.strip_prefix(&key[..])) else {
            bail!("the server answered {}", shown(rest));
        };
        // ` <flags> <bytes>\r`
        let len = tail
            .iter()
            .rposition(|byte| *byte == b' ')
            .and_then(|blank| digits(tail[blank + 1..].strip_suffix(b"\r")?));
        let Some(len) = len else { bail!("the server answered {}", shown(rest)) };
        let body = line + 1;
        if rest.len() < body + len + 2 {
            return Ok(Front::Incomplete);
        }
        if !requests::is_value_of(&rest[body..body + len], *number, value_len) {
            bail!("the server has another value for {}: {}", shown(&key), shown(&rest[body..body + len]));
        }
        at += body + len + 2;
    }
    Ok(match exactly(&input[at..], b"END\r\n")? {
        Front::Reply(end) => Front::Reply(at + end),
        Front::Incomplete => Front::Incomplete,
    })
}

/// `VA <bytes>\r\n<data>\r\n` for each key.
fn meta_values(input: &[u8], keys: &[u64], value_len: usize) -> Result<Front> {
    let mut at = 0;
    for number in keys {
        let rest = &input[at..];
        if !rest.starts_with(&b"VA "[..rest.len().min(3)]) {
            bail!("the server has no {}: {}", shown(&requests::key(*number)), shown(rest));
        }
        let Some((len, body)) = number_line(rest, 3)? else { return Ok(Front::Incomplete) };
        let Some(len) = len else { bail!("the server answered {}", shown(rest)) };
        if rest.len() < body + len + 2 {
            return Ok(Front::Incomplete);
        }
        let value = &rest[body..body + len];
        if !requests::is_value_of(value, *number, value_len) {
            bail!("the server has another value for {}: {}", shown(&requests::key(*number)), shown(value));
        }
        at += body + len + 2;
    }
    Ok(Front::Reply(at))
}

/// The number from `at` to the end of the line (`None` for -1) and where the next line begins; `None` for half a line.
fn number_line(input: &[u8], at: usize) -> Result<Option<(Option<usize>, usize)>> {
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
    let Some(text) = input.get(at..end).and_then(|text| text.strip_suffix(b"\r")) else {
        bail!("the server answered {}", shown(input));
    };
    if text == b"-1" {
        return Ok(Some((None, end + 1)));
    }
    let Some(number) = digits(text) else { bail!("the server answered {}", shown(input)) };
    Ok(Some((Some(number), end + 1)))
}

fn digits(text: &[u8]) -> Option<usize> {
    if text.is_empty() || text.len() > 10 {
        return None;
    }
    text.iter().try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + usize::from(byte - b'0')))
}

/// The first line, to be read by a person.
fn shown(bytes: &[u8]) -> String {
    let line = bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
    format!("'{}'", line[..line.len().min(80)].escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "key:000000000003xx";

    /// Every part of the reply is incomplete, and the whole, with more behind it, is one reply.
    fn assert_reply(text: &str, protocol: Protocol, operation: Operation, keys: &[u64]) {
        for cut in 0..text.len() {
            let found = front(&text.as_bytes()[..cut], protocol, operation, keys);
            assert_eq!(found.unwrap(), Front::Incomplete, "{text:?} cut at {cut}");
        }
        let more = format!("{text}+OK\r\n");
        assert_eq!(front(more.as_bytes(), protocol, operation, keys).unwrap(), Front::Reply(text.len()));
    }

    #[test]
    fn whole_replies_are_found() {
        let get = Operation::Get { value_len: 18 };
        assert_reply(&format!("$18\r\n{VALUE}\r\n"), Protocol::Resp, get, &[3]);
        let found = format!("VA 18\r\n{VALUE}\r\n");
        assert_reply(&found, Protocol::Meta, get, &[3]);
        assert_reply(
            &format!("{found}{found}"),
            Protocol::Meta,
            Operation::MultiGet { keys: 2, value_len: 18 },
            &[3, 3],
        );
        let found = format!("VALUE key:000000000003 0 18\r\n{VALUE}\r\n");
        assert_reply(&format!("{found}END\r\n"), Protocol::Memcache, get, &[3]);
        let multi = Operation::MultiGet { keys: 2, value_len: 18 };
        assert_reply(&format!("{found}{found}END\r\n"), Protocol::Memcache, multi, &[3, 3]);
        assert_reply(&format!("*2\r\n$18\r\n{VALUE}\r\n$18\r\n{VALUE}\r\n"), Protocol::Resp, multi, &[3, 3]);
        let set = Operation::Set { value_len: 18, expire: false };
        assert_reply("+OK\r\n", Protocol::Resp, set, &[3]);
        assert_reply("STORED\r\n", Protocol::Memcache, set, &[3]);
        assert_reply("HD\r\n", Protocol::Meta, set, &[3]);
        let command = Operation::Command { words: &["LRANGE"], below: 1 };
        for text in ["+OK\r\n", ":12\r\n", "$-1\r\n", "$2\r\n-1\r\n", "*0\r\n", "*2\r\n$1\r\nx\r\n*1\r\n:-3\r\n"] {
            assert_reply(text, Protocol::Resp, command, &[3]);
        }
    }

    #[test]
    fn misses_errors_and_wrong_values_are_no_figures() {
        let get = Operation::Get { value_len: 18 };
        let set = Operation::Set { value_len: 18, expire: false };
        for (text, protocol, operation, expected) in [
            ("$-1\r\n", Protocol::Resp, get, "has no 'key:000000000003'"),
            ("-ERR x\r\n", Protocol::Resp, get, "answered '-ERR x'"),
            ("$2\r\nab\r\n", Protocol::Resp, get, "another value"),
            ("-OOM x\r\n", Protocol::Resp, set, "answered '-OOM x'"),
            (
                "*1\r\n-WRONGTYPE x\r\n",
                Protocol::Resp,
                Operation::Command { words: &[], below: 1 },
                "answered '-WRONGTYPE x'",
            ),
            ("END\r\n", Protocol::Memcache, get, "has no"),
            ("SERVER_ERROR x\r\n", Protocol::Memcache, get, "answered 'SERVER_ERROR x'"),
            ("VALUE key:000000000003 0 2\r\nab\r\nEND\r\n", Protocol::Memcache, get, "another value"),
            ("NOT_STORED\r\n", Protocol::Memcache, set, "answered 'NOT_STORED'"),
            ("EN\r\n", Protocol::Meta, get, "has no"),
            ("VA 2\r\nab\r\n", Protocol::Meta, get, "another value"),
            ("NS\r\n", Protocol::Meta, set, "answered 'NS'"),
        ] {
            let error = front(text.as_bytes(), protocol, operation, &[3]).expect_err(text).to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }
}
