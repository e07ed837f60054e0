//! Clients that write until the server is gone, over both protocols. Each writes keys of its own, in such a way that what
//! is there later tells which of its writes were kept. Knows nothing of the server's files.

use crate::tally::Tally;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tenon_client::memcache::Direction;
use tenon_client::{Address, Memcache, Resp, Value};
use tenon_testkit::patience;

/// Replies may take long on a busy machine, and a log on a slow disk.
pub const PATIENCE: Option<Duration> = Some(patience::PATIENCE);

/// What a RESP client writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `n` counts the writes.
    Count,
    /// `pushed` followed by `queue`, oldest first, are the numbers of all writes.
    Push,
    /// Moves one of `queue` to `pushed`: it changes which list a number is in, not which there are.
    Move,
    /// `hash` holds the last number of each of its fields.
    Field,
    /// A list, a set and a counter within MULTI.
    Transaction,
    /// A stream, a sorted set and a counter by a script.
    Script,
    /// `last` is overwritten, with an expiry far away.
    Overwrite,
    /// One key of many is there, its name has the number of the last write.
    Replace,
}

/// All of them.
pub const KINDS: [Kind; 8] =
    [Kind::Count, Kind::Push, Kind::Move, Kind::Field, Kind::Transaction, Kind::Script, Kind::Overwrite, Kind::Replace];

/// Fields of `hash`.
pub const FIELDS: u64 = 32;
/// A time that does not come during a test, in milliseconds from the present.
const FAR_MS: &str = "100000000";
/// What Kind::Script runs.
const SCRIPT: &str = "redis.call('INCR', KEYS[1]); redis.call('ZADD', KEYS[2], ARGV[1], ARGV[1]); \
                      return redis.call('XADD', KEYS[3], '*', 'number', ARGV[1])";

/// A small generator of numbers: which kinds follow one another is to differ, nothing else.
#[derive(Debug)]
pub struct Dice(pub u64);

impl Dice {
    /// A number below `bound`.
    pub fn roll(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// One client over RESP.
#[derive(Debug)]
pub struct RespWriter {
    pub name: String,
    /// Its database.
    pub database: u64,
    pub tallies: [Tally; KINDS.len()],
}

impl RespWriter {
    pub fn new(index: u64) -> Arc<RespWriter> {
        Arc::new(RespWriter { name: format!("r{index}"), database: index % 3, tallies: Default::default() })
    }

    pub fn key(&self, name: &str) -> String {
        format!("{}:{name}", self.name)
    }

    pub fn tally(&self, kind: Kind) -> &Tally {
        &self.tallies[kind as usize]
    }

    pub fn connect(&self, address: &Address) -> io::Result<Resp> {
        let mut resp = Resp::connect_to(address, PATIENCE)?;
        match resp.call(&[b"SELECT", self.database.to_string().as_bytes()])? {
            Value::Error(error) => Err(io::Error::other(String::from_utf8_lossy(&error).into_owned())),
            _ => Ok(resp),
        }
    }

    /// Writes until the connection ends.
    pub fn write(&self, address: &Address, mut dice: Dice) {
        let Ok(mut resp) = self.connect(address) else { return };
        loop {
            let batch: Vec<(Kind, u64, usize)> = (0..=dice.roll(8))
                .map(|_| {
                    let kind = KINDS[dice.roll(KINDS.len() as u64) as usize];
                    let number = self.tally(kind).send();
                    let commands = self.commands(kind, number);
                    let sent = commands.iter().all(|words| {
                        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
                        resp.send(&words).is_ok()
                    });
                    (kind, number, if sent { commands.len() } else { 0 })
                })
                .collect();
            for (kind, number, replies) in batch {
                if replies == 0 {
                    return;
                }
                let mut last = Value::NullBulk;
                for _ in 0..replies {
                    match resp.receive() {
                        Ok(reply) => last = reply,
                        Err(_) => return,
                    }
                }
                // What is refused (MISCONF) is not there, and everything behind it would be misnumbered: it is over.
                if is_refused(&last) {
                    return;
                }
                self.tally(kind).confirm(number);
            }
        }
    }

    /// The commands of one write; it is confirmed by the reply to the last.
    fn commands(&self, kind: Kind, number: u64) -> Vec<Vec<String>> {
        let number = number.to_string();
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        let key = |name: &str| self.key(name);
        match kind {
            Kind::Count => vec![words(&["INCR", &key("n")])],
            Kind::Push => vec![words(&["RPUSH", &key("queue"), &number])],
            Kind::Move => vec![words(&["LMOVE", &key("queue"), &key("pushed"), "LEFT", "RIGHT"])],
            Kind::Field => {
                let field = (number.parse::<u64>().expect("it is a number") % FIELDS).to_string();
                vec![words(&["HSET", &key("hash"), &field, &number])]
            }
            Kind::Transaction => vec![
                words(&["MULTI"]),
                words(&["INCR", &key("tn")]),
                words(&["RPUSH", &key("tl"), &number]),
                words(&["SADD", &key("ts"), &number]),
                words(&["EXEC"]),
            ],
            Kind::Script => {
                vec![words(&["EVAL", SCRIPT, "3", &key("sn"), &key("sz"), &key("sx"), &number])]
            }
            Kind::Overwrite => vec![words(&["SET", &key("last"), &number, "PX", FAR_MS])],
            Kind::Replace => {
                let before = (number.parse::<u64>().expect("it is a number") - 1).to_string();
                vec![
                    words(&["MULTI"]),
                    words(&["SET", &key(&format!("at:{number}")), &number]),
                    words(&["DEL", &key(&format!("at:{before}"))]),
                    words(&["EXEC"]),
                ]
            }
        }
    }
}

fn is_refused(reply: &Value) -> bool {
    match reply {
        Value::Error(_) => true,
        Value::Array(parts) => parts.iter().any(is_refused),
        _ => false,
    }
}

/// What a memcached client writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// A decimal that is counted up.
    Count,
    /// A value that grows by a byte.
    Append,
    /// A value that is stored anew, with flags that follow its number.
    Store,
}

/// All of them.
pub const ITEM_KINDS: [ItemKind; 3] = [ItemKind::Count, ItemKind::Append, ItemKind::Store];

/// One client over memcached's text protocol.
#[derive(Debug)]
pub struct MemcacheWriter {
    pub name: String,
    pub tallies: [Tally; ITEM_KINDS.len()],
}

impl MemcacheWriter {
    pub fn new(index: u64) -> Arc<MemcacheWriter> {
        Arc::new(MemcacheWriter { name: format!("m{index}"), tallies: Default::default() })
    }

    pub fn key(&self, kind: ItemKind) -> Vec<u8> {
        format!("{}:{kind:?}", self.name).into_bytes()
    }

    pub fn tally(&self, kind: ItemKind) -> &Tally {
        &self.tallies[kind as usize]
    }

    /// The flags of Kind::Store's item.
    pub fn flags(number: u64) -> u32 {
        (number % 7) as u32
    }

    /// Makes the items that only grow, if they are not there.
    pub fn prepare(&self, memcache: &mut Memcache) -> io::Result<()> {
        for (kind, value) in [(ItemKind::Count, b"0".as_slice()), (ItemKind::Append, b"")] {
            if memcache.get(&self.key(kind))?.is_none() {
                memcache.set(&self.key(kind), value, 0, 0)?;
            }
        }
        Ok(())
    }

    /// Writes until the connection ends.
    pub fn write(&self, address: &Address, mut dice: Dice) {
        let Ok(mut memcache) = Memcache::connect_to(address, PATIENCE) else { return };
        loop {
            let kind = ITEM_KINDS[dice.roll(ITEM_KINDS.len() as u64) as usize];
            let key = self.key(kind);
            let number = self.tally(kind).send();
            let done = match kind {
                ItemKind::Count => memcache.count(Direction::Up, &key, 1).is_ok_and(|value| value == Some(number)),
                ItemKind::Append => memcache.exchange_append(&key),
                ItemKind::Store => {
                    memcache.set(&key, number.to_string().as_bytes(), MemcacheWriter::flags(number), 0).is_ok()
                }
            };
            if !done {
                return;
            }
            self.tally(kind).confirm(number);
        }
    }
}

/// One byte at the end of an item.
trait Append {
    fn exchange_append(&mut self, key: &[u8]) -> bool;
}

impl Append for Memcache {
    fn exchange_append(&mut self, key: &[u8]) -> bool {
        let request = [b"append ", key, b" 0 0 1\r\n.\r\n"].concat();
        self.send_raw(&request).is_ok() && self.receive_line().is_ok_and(|line| line == b"STORED")
    }
}
