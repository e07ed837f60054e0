//! One client of either protocol: it sends what it is told, and notes when it did and what it was answered.

use crate::history::{Call, Operation, Words, canonical};
use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};
use tenon_client::resp::encode_command;
use tenon_client::{Memcache, Resp, Value};
use tenon_testkit::patience;
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

/// Far longer than anything takes.
const PATIENCE: Option<Duration> = Some(patience::PATIENCE);

/// A script that calls what its arguments say and gives all replies; it reads and writes by turns where one is SWAP. The first
/// argument says how long it idles between.
const SCRIPT: &str = "
    local function idle() for _ = 1, tonumber(ARGV[1]) do end end
    local replies, at = {}, 2
    while at <= #ARGV do
        local count = tonumber(ARGV[at])
        if ARGV[at + 1] == 'SWAP' then
            local one, other = ARGV[at + 2], ARGV[at + 3]
            local first = redis.pcall('GET', one)
            idle()
            local second = redis.pcall('GET', other)
            if type(first) == 'table' then replies[#replies + 1] = first
            elseif type(second) == 'table' then replies[#replies + 1] = second
            elseif first and second then
                redis.call('SET', one, second)
                idle()
                redis.call('SET', other, first)
                replies[#replies + 1] = {first, second}
            else replies[#replies + 1] = 0 end
        else
            replies[#replies + 1] = redis.pcall(unpack(ARGV, at + 1, at + count))
        end
        at = at + count + 1
        idle()
    end
    return replies";

/// A token that no item has.
const NO_TOKEN: u64 = 1 << 60;

/// What a client sends in one piece, and how long it waits before.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Its commands.
    pub calls: Vec<Call>,
    /// The pause before it.
    pub pause: Duration,
}

/// The connection.
#[derive(Debug)]
enum Connection {
    Resp(Resp),
    Memcache(Memcache),
}

/// A client.
#[derive(Debug)]
pub struct Client {
    number: usize,
    connection: Connection,
    database: usize,
    tokens: HashMap<String, u64>,
    epoch: Instant,
}

impl Client {
    /// Connects; times are counted from `epoch`.
    pub fn connect(server: &Server, dialect: Dialect, number: usize, epoch: Instant) -> Client {
        let address = server.address(dialect).expect("it is spoken");
        let connection = match dialect {
            Dialect::Redis => Connection::Resp(Resp::connect_to(address, PATIENCE).expect("connected")),
            Dialect::Memcache => Connection::Memcache(Memcache::connect_to(address, PATIENCE).expect("connected")),
        };
        Client { number, connection, database: 0, tokens: HashMap::new(), epoch }
    }

    /// Begins a new round: in the first database, with nothing watched and no token known.
    pub fn begin(&mut self) {
        self.tokens.clear();
        if let Connection::Resp(resp) = &mut self.connection {
            let ok = Value::Simple(b"OK".to_vec());
            assert_eq!(resp.pipeline(&[&[b"SELECT", b"0"], &[b"UNWATCH"]]).expect("answers"), [ok.clone(), ok]);
        }
        self.database = 0;
    }

    fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Sends it and waits for all replies.
    pub fn play(&mut self, packet: &Packet) -> io::Result<Vec<Operation>> {
        if !packet.pause.is_zero() {
            std::thread::sleep(packet.pause);
        }
        let calls: Vec<Call> = packet.calls.iter().map(|call| self.with_token(call)).collect();
        let mut bytes = Vec::new();
        for call in &calls {
            match &self.connection {
                Connection::Resp(_) => encode_resp(call, &mut bytes),
                Connection::Memcache(_) => encode_item(call, &mut bytes),
            }
        }
        let invoked_ns = self.now_ns();
        match &mut self.connection {
            Connection::Resp(resp) => resp.send_raw(&bytes)?,
            Connection::Memcache(memcache) => memcache.send_raw(&bytes)?,
        }
        let mut operations = Vec::new();
        for call in calls {
            let replies = match &mut self.connection {
                Connection::Resp(resp) => vec![(call.clone(), receive_resp(resp, &call)?)],
                Connection::Memcache(memcache) => receive_item(memcache, &call)?,
            };
            let answered_ns = self.now_ns();
            for (call, reply) in replies {
                let (client, database) = (self.number, self.database);
                self.note(&call, &reply);
                operations.push(Operation { client, database, invoked_ns, answered_ns, call, reply });
            }
        }
        Ok(operations)
    }

    /// Puts the token last told into a request that compares one.
    fn with_token(&self, call: &Call) -> Call {
        match call {
            Call::Command(words) if words[0] == "cas" || words[0] == "msC" => {
                let token = self.tokens.get(&words[1]).copied().unwrap_or(NO_TOKEN);
                Call::Command(words.iter().cloned().chain([token.to_string()]).collect())
            }
            call => call.clone(),
        }
    }

    fn note(&mut self, call: &Call, reply: &Value) {
        let Call::Command(words) = call else { return };
        match (words[0].as_str(), reply) {
            ("SELECT", Value::Simple(_)) => self.database = words[1].parse().expect("a number"),
            ("gets" | "mgc", Value::Array(parts)) => {
                if let Some(Value::Int(token)) = parts.get(1) {
                    self.tokens.insert(words[1].clone(), *token as u64);
                }
            }
            _ => {}
        }
    }
}

fn encode_words(words: &[String], bytes: &mut Vec<u8>) {
    let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    encode_command(&words, bytes);
}

/// The keys that a script is to declare.
fn keys_of(calls: &[Words]) -> Vec<String> {
    let is_key = |word: &&String| word.strip_prefix('k').is_some_and(|number| number.parse::<u32>().is_ok());
    calls.iter().flat_map(|words| words[1..].iter().filter(is_key).cloned()).collect()
}

fn encode_resp(call: &Call, bytes: &mut Vec<u8>) {
    match call {
        Call::Command(words) => encode_words(words, bytes),
        Call::Exec(calls) => {
            encode_command(&[b"MULTI"], bytes);
            calls.iter().for_each(|words| encode_words(words, bytes));
            encode_command(&[b"EXEC"], bytes);
        }
        Call::Script { calls, declared, idles } => {
            let keys = if *declared { keys_of(calls) } else { Vec::new() };
            let mut words = vec!["EVAL".to_owned(), SCRIPT.to_owned(), keys.len().to_string()];
            words.extend(keys);
            words.push(idles.to_string());
            for call in calls {
                words.push(call.len().to_string());
                words.extend(call.iter().cloned());
            }
            encode_words(&words, bytes);
        }
    }
}

fn receive_resp(resp: &mut Resp, call: &Call) -> io::Result<Value> {
    if let Call::Exec(calls) = call {
        for _ in 0..=calls.len() {
            let queued = resp.receive()?;
            let refused = matches!(&queued, Value::Error(text) if text.starts_with(b"OOM"));
            assert!(refused || matches!(queued, Value::Simple(_)), "{queued:?} for {call}");
        }
    }
    Ok(canonical(call, resp.receive()?))
}

fn encode_item(call: &Call, bytes: &mut Vec<u8>) {
    let Call::Command(words) = call else { panic!("memcached has no {call}") };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let text = match *words.as_slice() {
        [verb @ ("get" | "gets" | "delete" | "md"), ..] => [verb, &words[1..].join(" ")].join(" "),
        [verb @ ("set" | "add" | "replace" | "append"), key, value] => {
            format!("{verb} {key} 0 0 {}\r\n{value}", value.len())
        }
        ["cas", key, value, token] => format!("cas {key} 0 0 {} {token}\r\n{value}", value.len()),
        ["incr", key, by] => format!("incr {key} {by}"),
        ["mg", key] => format!("mg {key} v"),
        ["mgc", key] => format!("mg {key} v c"),
        ["ms", key, value] => format!("ms {key} {}\r\n{value}", value.len()),
        ["msE", key, value] => format!("ms {key} {} ME\r\n{value}", value.len()),
        ["msA", key, value] => format!("ms {key} {} MA\r\n{value}", value.len()),
        ["msC", key, value, token] => format!("ms {key} {} C{token}\r\n{value}", value.len()),
        ["ma", key, by] => format!("ma {key} v D{by}"),
        _ => panic!("no request is {words:?}"),
    };
    bytes.extend_from_slice(text.as_bytes());
    bytes.extend_from_slice(b"\r\n");
}

/// The reply to each part: as in memcached a `get` of several keys is a read of one after another.
fn receive_item(memcache: &mut Memcache, call: &Call) -> io::Result<Vec<(Call, Value)>> {
    let Call::Command(words) = call else { panic!("memcached has no {call}") };
    match words[0].as_str() {
        "get" | "gets" => receive_get(memcache, words),
        "mg" | "mgc" | "ma" => {
            let line = receive_line(memcache)?;
            let value = match line.strip_prefix("VA ") {
                None if line == "EN" || line == "NF" => Value::NullBulk,
                None => status(&line),
                Some(rest) => {
                    let mut parts = rest.split(' ');
                    let len = parts.next().and_then(|len| len.parse().ok()).expect("a length");
                    let value = receive_value(memcache, len)?;
                    let token = parts.next().and_then(|token| token.strip_prefix('c'));
                    with_token(value, token)
                }
            };
            Ok(vec![(call.clone(), value)])
        }
        "incr" => {
            let line = receive_line(memcache)?;
            let is_number = line.bytes().all(|byte| byte.is_ascii_digit());
            let value = if is_number { Value::Bulk(line.into_bytes()) } else { status(&line) };
            Ok(vec![(call.clone(), value)])
        }
        _ => Ok(vec![(call.clone(), status(&receive_line(memcache)?))]),
    }
}

fn receive_get(memcache: &mut Memcache, words: &Words) -> io::Result<Vec<(Call, Value)>> {
    let mut found = HashMap::new();
    let mut end = Value::NullBulk;
    loop {
        let line = receive_line(memcache)?;
        let Some(rest) = line.strip_prefix("VALUE ") else {
            if line != "END" {
                end = status(&line);
            }
            break;
        };
        let parts: Vec<&str> = rest.split(' ').collect();
        let value = receive_value(memcache, parts[2].parse().expect("a length"))?;
        found.insert(parts[0].to_owned(), with_token(value, parts.get(3).copied()));
    }
    // An error is about one of the keys, and the answer is over with it.
    if matches!(end, Value::Error(_)) && words.len() > 2 {
        return Ok(Vec::new());
    }
    let each = words[1..].iter().map(|key| {
        let value = found.get(key).unwrap_or(&end).clone();
        (Call::Command(vec![words[0].clone(), key.clone()]), value)
    });
    Ok(each.collect())
}

fn receive_line(memcache: &mut Memcache) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&memcache.receive_line()?).into_owned())
}

fn receive_value(memcache: &mut Memcache, len: usize) -> io::Result<Value> {
    let mut value = memcache.receive_exact(len + 2)?;
    value.truncate(len);
    Ok(Value::Bulk(value))
}

fn with_token(value: Value, token: Option<&str>) -> Value {
    match token {
        None => value,
        Some(token) => Value::Array(vec![value, Value::Int(token.parse().expect("a number"))]),
    }
}

fn status(line: &str) -> Value {
    match line.split(' ').next() {
        Some(error @ ("SERVER_ERROR" | "CLIENT_ERROR" | "ERROR")) => Value::Error(error.as_bytes().to_vec()),
        _ => Value::Simple(line.as_bytes().to_vec()),
    }
}

/// Reads everything that a round may have left, one key after another.
pub fn read_all(client: &mut Client, keys: &[String], databases: usize) -> Vec<Operation> {
    let mut operations = Vec::new();
    let mut ask = |client: &mut Client, words: &[&str]| {
        let call = Call::Command(words.iter().map(|&word| word.to_owned()).collect());
        let packet = Packet { calls: vec![call], pause: Duration::ZERO };
        operations.extend(client.play(&packet).expect("answers"));
        operations.last().expect("an answer").reply.clone()
    };
    for database in 0..databases {
        ask(client, &["SELECT", &database.to_string()]);
        for key in keys {
            let Value::Simple(kind) = ask(client, &["TYPE", key]) else { panic!("TYPE is a word") };
            match kind.as_slice() {
                b"string" => ask(client, &["GET", key]),
                b"list" => ask(client, &["LRANGE", key, "0", "-1"]),
                b"hash" => ask(client, &["HGETALL", key]),
                b"set" => ask(client, &["SMEMBERS", key]),
                b"zset" => ask(client, &["ZRANGE", key, "0", "-1", "WITHSCORES"]),
                _ => Value::NullBulk,
            };
        }
    }
    ask(client, &["SELECT", "0"]);
    operations
}
