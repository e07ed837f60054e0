//! A server that takes part in an exchange, and what it tells of its keys.

use crate::values::commands;
use std::io::Write as _;
use std::time::Duration;
use tenon_client::{Resp, Value};
use tenon_testkit::oracle::oracle;
use tenon_testkit::patience;
use tenon_testkit::server::{Server, find_peer};
use tenon_testkit::target::Dialect;

pub const PATIENCE: Option<Duration> = Some(patience::PATIENCE);

/// A server and a connection to it.
pub struct Side {
    pub server: Server,
    pub client: Resp,
}

impl Side {
    pub fn new(server: Server) -> Side {
        let client =
            Resp::connect_to(server.address(Dialect::Redis).expect("a RESP port"), PATIENCE).expect("connected");
        Side { server, client }
    }

    pub fn tenon(settings: &[(&str, &str)]) -> Side {
        Side::new(Server::tenon(&[&[("enable-debug-command", "yes")], settings].concat()).expect("tenon starts"))
    }

    /// Nothing where it is not installed.
    pub fn redis() -> Option<Side> {
        Side::redis_with(&[("sanitize-dump-payload", "yes")])
    }

    /// The same with settings.
    pub fn redis_with(settings: &[(&str, &str)]) -> Option<Side> {
        oracle(Dialect::Redis, settings).map(Side::new)
    }

    /// Another connection to it.
    pub fn another(&self) -> Resp {
        Resp::connect_to(self.server.address(Dialect::Redis).expect("a RESP port"), PATIENCE).expect("connected")
    }

    pub fn call(&mut self, words: &[&[u8]]) -> Value {
        self.client.call(words).expect("an answer")
    }

    pub fn say(&mut self, line: &str) -> Value {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        self.call(&words)
    }

    pub fn fill(&mut self) -> Vec<String> {
        let commands = commands();
        for (name, words) in &commands {
            let words: Vec<&[u8]> =
                words.iter().map(|word| if word == b"{name}" { name.as_bytes() } else { &word[..] }).collect();
            let answer = self.call(&words);
            assert!(!matches!(answer, Value::Error(_)), "{name}: {answer:?}");
        }
        let mut names: Vec<String> = commands.into_iter().map(|(name, _)| name).collect();
        names.dedup();
        names
    }

    /// A digest of what a key holds, and what is no part of it.
    pub fn digest(&mut self, key: &str) -> Vec<Value> {
        let mut told = vec![self.say(&format!("DEBUG DIGEST-VALUE {key}"))];
        if self.say(&format!("TYPE {key}")) == Value::Simple(b"stream".to_vec()) {
            told.push(self.say(&format!("XLEN {key}")));
            told.push(self.say(&format!("XINFO GROUPS {key}")));
            // Of a group that is not there the error names the key.
            let pending = ["early", "g"].map(|group| self.say(&format!("XPENDING {key} {group}")));
            told.extend(pending.into_iter().filter(|answer| !matches!(answer, Value::Error(_))));
        }
        told
    }

    pub fn dump(&mut self, key: &str) -> Vec<u8> {
        match self.say(&format!("DUMP {key}")) {
            Value::Bulk(payload) => payload,
            other => panic!("{key}: {other:?}"),
        }
    }

    pub fn port(&self) -> String {
        let address = self.server.address(Dialect::Redis).expect("a RESP port").to_string();
        address.rsplit(':').next().expect("a port").to_owned()
    }

    /// One of the newer servers, where it is installed.
    pub fn peer(name: &str) -> Option<Side> {
        Side::peer_with(name, &[])
    }

    /// The same with settings.
    pub fn peer_with(name: &str, settings: &[(&str, &str)]) -> Option<Side> {
        let Some(program) = find_peer(name) else {
            let _ = writeln!(std::io::stderr(), "skipped: the exchange with {name}, which is not installed");
            return None;
        };
        Some(Side::new(Server::redis_program(&program, settings).expect("a server that is installed starts")))
    }

    /// The keys of the selected database, in order.
    pub fn keys(&mut self) -> Vec<Vec<u8>> {
        let Value::Array(keys) = self.say("KEYS *") else { panic!("KEYS gives an array") };
        let mut keys: Vec<Vec<u8>> = keys.into_iter().map(bulk).collect();
        keys.sort();
        keys
    }

    /// All that a client can see of a key, in words that are the same for every version of every server.
    pub fn content(&mut self, key: &[u8]) -> Vec<String> {
        let Value::Simple(of_type) = self.call(&[b"TYPE", key]) else { panic!("TYPE gives a word") };
        let number = |value: Value| match value {
            Value::Bulk(text) => format!("{:?}", String::from_utf8_lossy(&text).parse::<f64>().expect("a score")),
            other => panic!("{other:?} is no score"),
        };
        let mut told = vec![format!("{:?}", self.call(&[b"PEXPIRETIME", key]))];
        told.push(String::from_utf8_lossy(&of_type).into_owned());
        match &of_type[..] {
            b"string" => told.push(format!("{:?}", self.call(&[b"GET", key]))),
            b"list" => told.push(format!("{:?}", self.call(&[b"LRANGE", key, b"0", b"-1"]))),
            b"set" => {
                let mut members = array(self.call(&[b"SMEMBERS", key]));
                members.sort();
                told.push(format!("{members:?}"));
            }
            b"zset" => {
                let Value::Array(all) = self.call(&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"]) else {
                    panic!("ZRANGE gives an array")
                };
                for (index, value) in all.into_iter().enumerate() {
                    told.push(if index % 2 == 1 { number(value) } else { format!("{:?}", bulk(value)) });
                }
            }
            b"hash" => {
                let mut fields = array(self.call(&[b"HKEYS", key]));
                fields.sort();
                for field in fields {
                    let value = self.call(&[b"HGET", key, &field]);
                    // Only those that know deadlines of fields have any.
                    let due = match self.call(&[b"HPEXPIRETIME", key, b"FIELDS", b"1", &field]) {
                        Value::Error(_) => Value::Array(vec![Value::Int(-1)]),
                        due => due,
                    };
                    told.push(format!("{field:?} {value:?} {due:?}"));
                }
            }
            b"stream" => {
                told.push(format!("{:?}", self.call(&[b"XRANGE", key, b"-", b"+"])));
                told.push(format!("{:?}", self.call(&[b"XINFO", b"GROUPS", key])));
                for group in [&b"early"[..], b"late", b"g"] {
                    let pending = self.call(&[b"XPENDING", key, group]);
                    if !matches!(pending, Value::Error(_)) {
                        told.push(format!("{pending:?}"));
                    }
                }
            }
            other => panic!("{other:?} is no type"),
        }
        told
    }
}

fn bulk(value: Value) -> Vec<u8> {
    match value {
        Value::Bulk(text) => text,
        other => panic!("{other:?} is no text"),
    }
}

fn array(value: Value) -> Vec<Vec<u8>> {
    match value {
        Value::Array(all) | Value::Set(all) => all.into_iter().map(bulk).collect(),
        other => panic!("{other:?} is no array"),
    }
}
