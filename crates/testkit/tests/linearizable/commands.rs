//! Random commands. Knows what they look like, not what they do.

use crate::history::{Call, Words};
use tenon_testkit::random::Random;

/// What the keys of a round are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Strings, of both protocols.
    Strings,
    /// Strings of which several are written and read together, by few kinds of commands.
    Together,
    /// Strings that expire soon.
    Expiring,
    /// Lists.
    Lists,
    /// Hashes.
    Hashes,
    /// Sets.
    Sets,
    /// Sorted sets.
    Zsets,
    /// All of them on the same keys.
    Mixed,
    /// Strings and lists in several databases that change places.
    Databases,
}

/// All of them.
pub const FAMILIES: [Family; 9] = [
    Family::Strings,
    Family::Together,
    Family::Expiring,
    Family::Lists,
    Family::Hashes,
    Family::Sets,
    Family::Zsets,
    Family::Mixed,
    Family::Databases,
];

/// Commands, divided by bars. `k` stands for a key, `n` for a digit, `v` for a number that is hardly met twice, `m` for an element, `d` for a database.
const STRINGS: &str = "SET k n|SET k v|GET k|GET k|INCR k|INCR k|INCRBY k n|APPEND k n|GETDEL k|GETSET k n|SET k n NX|\
    SET k n XX|SET k n GET|SET k n IFEQ n|SETNX k n|STRLEN k|GETRANGE k 0 1|SETRANGE k 1 n|MSET k v k v|MSET k v k v k v|\
    MGET k k|MGET k k k|MGET k k k|MSETNX k n k n";
const TOGETHER: &str = "MSET k v k v k v k v|MSET k v k v|MSETNX k v k v|MGET k k k k|MGET k k k|MGET k k|RENAME k k|\
    COPY k k REPLACE|DEL k k|EXISTS k k k|SET k v";
const EXPIRING: &str = "SET k n PX 3|SET k n PX 1|SET k n PX 8|PEXPIRE k 2|PEXPIRE k 6|PERSIST k|SET k n|GET k|MGET k k k|\
    INCR k|APPEND k n|GETSET k n|SET k n NX|SET k n XX|MSETNX k n k n|EXISTS k k|RENAME k k|COPY k k REPLACE|GETDEL k|DEL k";
const LISTS: &str = "LPUSH k m|RPUSH k m m|RPUSH k m|LPOP k|RPOP k|LPOP k 2|LLEN k|LRANGE k 0 -1|LRANGE k 0 -1|\
    LMOVE k k LEFT RIGHT|LMOVE k k RIGHT LEFT|LMOVE k k RIGHT RIGHT|RPOPLPUSH k k|LREM k 0 m|LTRIM k 0 2|LPUSHX k m|\
    RPUSHX k m|LINDEX k 0|LSET k 0 m|LMPOP 2 k k LEFT|LMPOP 2 k k RIGHT";
const WAITING: &str = "BLPOP k 0.004|BLPOP k k 0.004|BRPOP k 0.004|BRPOP k k 0.004|BLMOVE k k LEFT RIGHT 0.004|\
    BLMOVE k k RIGHT LEFT 0.004|BLMPOP 0.004 2 k k LEFT|BZPOPMIN k 0.004|BZPOPMIN k k 0.004";
const HASHES: &str = "HINCRBY k m n|HINCRBY k m n|HSET k m n|HSET k m n m n|HGET k m|HGETALL k|HGETALL k|HDEL k m|HLEN k|\
    HSETNX k m n|HMGET k m m|HEXISTS k m";
const SETS: &str = "SADD k m|SADD k m m|SREM k m|SMOVE k k m|SMOVE k k m|SINTERSTORE k k k|SUNIONSTORE k k k|\
    SDIFFSTORE k k k|SMEMBERS k|SMEMBERS k|SCARD k|SINTER k k|SUNION k k|SDIFF k k|SISMEMBER k m|SPOP k";
const ZSETS: &str = "ZADD k n m|ZADD k n m|ZADD k GT n m|ZINCRBY k n m|ZINCRBY k n m|ZPOPMIN k|ZPOPMAX k|\
    ZRANGE k 0 -1 WITHSCORES|ZRANGE k 0 -1 WITHSCORES|ZSCORE k m|ZREM k m|ZCARD k|ZUNIONSTORE k 2 k k";
const KEYS: &str = "DEL k|DEL k k|UNLINK k k|EXISTS k k|TYPE k|RENAME k k|RENAME k k|RENAMENX k k|COPY k k|\
    COPY k k REPLACE";
const DATABASES: &str = "SWAPDB d d|SWAPDB d d|FLUSHDB|FLUSHDB ASYNC|MOVE k d|COPY k k DB d REPLACE|MOVE k d";
const MEMCACHE: &str = "get k|get k k|get k k k|set k n|add k n|replace k n|append k n|incr k n|gets k|gets k|cas k n|cas k n|\
    delete k|mg k|mgc k|ms k n|msE k n|msA k n|msC k n|ma k n|md k";

/// What a round is played with.
#[derive(Clone, Debug)]
pub struct Grammar {
    commands: Vec<&'static str>,
    waiting: Vec<&'static str>,
    keys: Vec<String>,
    family: Family,
    undeclared: bool,
    /// Whether scripts write what they have read.
    pub swaps: bool,
    idles: u32,
}

/// Databases of rounds that have several.
pub const DATABASES_USED: usize = 3;

impl Grammar {
    /// Commands of a family on so many keys; `idles` is how many turns of a loop a slow script makes.
    pub fn new(family: Family, keys: usize, idles: u32) -> Grammar {
        let texts: &[&str] = match family {
            Family::Strings => &[STRINGS, STRINGS, KEYS],
            Family::Together => &[TOGETHER],
            Family::Expiring => &[EXPIRING],
            Family::Lists => &[LISTS, LISTS, KEYS],
            Family::Hashes => &[HASHES, HASHES, KEYS],
            Family::Sets => &[SETS, SETS, KEYS],
            Family::Zsets => &[ZSETS, ZSETS, KEYS],
            Family::Mixed => &[STRINGS, LISTS, HASHES, SETS, ZSETS, KEYS],
            Family::Databases => &[STRINGS, LISTS, KEYS, DATABASES, DATABASES],
        };
        let commands = texts.iter().flat_map(|text| text.split('|')).collect();
        let wanted = |command: &&str| match family {
            Family::Lists | Family::Databases => command.starts_with("BL") || command.starts_with("BR"),
            Family::Zsets => command.starts_with("BZ"),
            Family::Mixed => true,
            _ => false,
        };
        let waiting = WAITING.split('|').filter(wanted).collect();
        let keys = (0..keys).map(|number| format!("k{number}")).collect();
        Grammar { commands, waiting, keys, family, undeclared: false, swaps: true, idles }
    }

    /// Scripts need not declare their keys.
    pub fn undeclared(mut self) -> Grammar {
        self.undeclared = true;
        self
    }

    /// The keys.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// Databases that are used.
    pub fn databases(&self) -> usize {
        if self.family == Family::Databases { DATABASES_USED } else { 1 }
    }

    /// Whether memcached's clients have anything to do with it.
    pub fn has_items(&self) -> bool {
        matches!(self.family, Family::Strings | Family::Together | Family::Expiring | Family::Mixed)
    }

    fn filled(&self, random: &mut Random, template: &str) -> Words {
        let word = |word: &str, random: &mut Random| match word {
            "k" => self.keys[random.below(self.keys.len())].clone(),
            "n" => (1 + random.below(9)).to_string(),
            "m" => random.of(&["a", "b", "c", "e"]).to_owned(),
            "v" => (10 + random.below(9_990)).to_string(),
            "d" => random.below(DATABASES_USED).to_string(),
            word => word.to_owned(),
        };
        template.split(' ').map(|text| word(text, random)).collect()
    }

    /// One that does not wait.
    pub fn command(&self, random: &mut Random) -> Words {
        let template = random.of(&self.commands);
        self.filled(random, template)
    }

    /// One of memcached's, without the token that the client has to add.
    pub fn item_command(&self, random: &mut Random) -> Words {
        let templates: Vec<&str> = MEMCACHE.split('|').collect();
        let template = random.of(&templates);
        let mut words = self.filled(random, template);
        // Of a key that is asked for twice and found once the answer does not tell which time.
        if words[0] == "get" {
            words.sort_unstable();
            words.dedup();
        }
        words
    }

    /// Anything that a client of RESP may ask; it is in the same database then as before.
    pub fn call(&self, random: &mut Random) -> Call {
        let calls = |random: &mut Random| (0..2 + random.below(3)).map(|_| self.command(random)).collect();
        match random.below(12) {
            0 => Call::Exec(calls(random)),
            1 => self.script(random, calls),
            2 if !self.waiting.is_empty() => {
                let template = random.of(&self.waiting);
                Call::Command(self.filled(random, template))
            }
            _ => Call::Command(self.command(random)),
        }
    }

    /// WATCH, mostly a read, and what ends it.
    pub fn transaction(&self, random: &mut Random) -> Vec<Call> {
        let watch = random.of(&["WATCH k", "WATCH k k"]);
        let mut calls = vec![Call::Command(self.filled(random, watch))];
        if !random.one_in(3) {
            calls.push(Call::Command(self.command(random)));
        }
        if random.one_in(10) {
            calls.push(Call::Command(vec!["UNWATCH".to_owned()]));
        }
        calls.push(Call::Exec((0..1 + random.below(3)).map(|_| self.command(random)).collect()));
        calls
    }

    fn script(&self, random: &mut Random, calls: impl Fn(&mut Random) -> Vec<Words>) -> Call {
        let has_texts = matches!(self.family, Family::Strings | Family::Together | Family::Expiring);
        let mut calls = calls(random);
        if has_texts && self.swaps && random.one_in(2) {
            calls = vec![self.filled(random, "SWAP k k")];
        }
        let declared = !(self.undeclared && random.one_in(2));
        let idles = if random.one_in(3) { self.idles } else { 0 };
        Call::Script { calls, declared, idles }
    }

    /// Commands that give the keys something to begin with; as many elements as `fill` says.
    pub fn setup(&self, random: &mut Random, fill: usize) -> Vec<Words> {
        let mut commands = Vec::new();
        for key in &self.keys {
            if random.one_in(2) {
                continue;
            }
            let kind = match self.family {
                Family::Strings | Family::Together | Family::Expiring => 0,
                Family::Lists => 1,
                Family::Hashes => 2,
                Family::Sets => 3,
                Family::Zsets => 4,
                Family::Mixed => random.below(5),
                Family::Databases => random.below(2),
            };
            let mut words = vec![["SET", "RPUSH", "HSET", "SADD", "ZADD"][kind].to_owned(), key.clone()];
            for number in 0..if kind == 0 { 1 } else { fill.max(1 + random.below(3)) } {
                let element = if number < 4 { ["a", "b", "c", "e"][number].to_owned() } else { format!("e{number}") };
                match kind {
                    0 => words.push((1 + random.below(9)).to_string()),
                    1 | 3 => words.push(element),
                    2 => words.extend([element, "1".to_owned()]),
                    _ => words.extend([(1 + random.below(9)).to_string(), element]),
                }
            }
            commands.push(words);
        }
        commands
    }
}
