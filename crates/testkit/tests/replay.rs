//! Commands of both protocols with arguments made from the table's syntax, in several databases, in transactions and
//! scripts: the log of what they did leads another server to the same data. Knows of commands what the table says, and
//! what values make sense for the names in it.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tenon_commands::redis::server::command_syntax::{Argument, Kind, arguments};
use tenon_engine::command::{Command, Flags, Group, Run};
use tenon_testkit::in_process::InProcess;
use tenon_testkit::journal::{Part, parts};
use tenon_testkit::oracle::oracle;
use tenon_testkit::patience::PATIENCE;
use tenon_testkit::target::{Demand, Dialect, Link, Received, Setting, Target, Version};

/// Writes that call on other machines.
const LEFT_OUT: [&str; 1] = ["MIGRATE"];
/// Commands that write nothing, and yet may make something happen: what is past its deadline goes.
const READS: [&str; 7] = ["GET", "HGETALL", "SMEMBERS", "ZCARD", "LLEN", "PFCOUNT", "SCAN"];
/// Commands that no record may have, as they would do something else when they are run again.
const NEVER_LOGGED: [&str; 33] = [
    "SETEX",
    "PSETEX",
    "GETEX",
    "GETDEL",
    "EXPIRE",
    "PEXPIRE",
    "EXPIREAT",
    "HEXPIRE",
    "HPEXPIRE",
    "HEXPIREAT",
    "HSETEX",
    "HGETEX",
    "SEXPIRE",
    "SPEXPIRE",
    "ZEXPIRE",
    "ZPEXPIRE",
    "SPOP",
    "XREADGROUP",
    "XAUTOCLAIM",
    "INCRBYFLOAT",
    "INCREX",
    "HINCRBYFLOAT",
    "MSETEX",
    "DELEX",
    "DELIFEQ",
    "BLPOP",
    "BRPOP",
    "BLMOVE",
    "BRPOPLPUSH",
    "BZPOPMIN",
    "BZPOPMAX",
    "EVAL",
    "FCALL",
];

/// Options of old commands that came after Redis 7.0.
const NEW_WORDS: [&[u8]; 5] = [b"KEEPREF", b"DELREF", b"ACKED", b"IDMP", b"IDMPAUTO"];

/// xorshift64*, so that a failure can be repeated by its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % limit
    }

    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_millis() as u64
}

/// Every command and subcommand.
fn all() -> impl Iterator<Item = &'static Command> {
    let subcommands = |command: &&'static Command| command.subcommands().iter().copied();
    tenon_commands::ALL.iter().flat_map(move |command| std::iter::once(*command).chain(subcommands(command)))
}

fn writes() -> Vec<&'static Command> {
    let is_write = |command: &&Command| {
        command.flags.any(Flags::WRITE)
            && !matches!(command.run, Run::Container(_))
            && !LEFT_OUT.contains(&command.name)
    };
    all().filter(is_write).collect()
}

/// Makes calls of a command out of its syntax.
struct Caller<'a> {
    random: &'a mut Random,
    command: &'static Command,
    payloads: &'a [Vec<u8>],
    words: Vec<Vec<u8>>,
    /// The word that says how many of what comes next there are.
    count_at: Option<usize>,
}

impl Caller<'_> {
    fn call(mut self) -> Vec<Vec<u8>> {
        self.words = self.command.name.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        self.row(&arguments(self.command.name, self.command.syntax));
        self.words
    }

    fn row(&mut self, row: &[Argument]) {
        for argument in row {
            if argument.is_optional && self.random.below(3) > 0 {
                continue;
            }
            // As many ids as keys.
            let is_paired = self.command.name == "XREADGROUP";
            let times = if argument.is_multiple && !is_paired { 1 + self.random.below(3) } else { 1 };
            if argument.is_multiple
                && let Some(at) = self.count_at.take()
            {
                self.words[at] = times.to_string().into_bytes();
            }
            for time in 0..times {
                if let Some(token) = argument.token.as_ref().filter(|_| time == 0 || argument.repeats_token) {
                    self.words.push(token.clone().into_bytes());
                }
                self.one(argument);
            }
        }
    }

    fn one(&mut self, argument: &Argument) {
        match argument.kind {
            Kind::PureToken => {}
            Kind::OneOf => {
                let one = self.random.below(argument.arguments.len());
                let mut chosen = argument.arguments[one].clone();
                chosen.is_optional = false;
                self.row(&[chosen]);
            }
            Kind::Block => self.row(&argument.arguments),
            Kind::Key => {
                let key = self.key();
                self.words.push(key);
            }
            kind => {
                let name = argument.name.rsplit(':').next().unwrap_or_default();
                let word = self.value(kind, name);
                if name.starts_with("num") {
                    self.count_at = Some(self.words.len());
                }
                self.words.push(word);
            }
        }
    }

    /// Mostly a key that holds what the command is for.
    fn key(&mut self) -> Vec<u8> {
        let letter = match self.command.group {
            Group::String => "s",
            Group::Bitmap => "b",
            Group::HyperLogLog => "y",
            Group::List => "l",
            Group::Hash => "h",
            Group::Set => "t",
            Group::SortedSet | Group::Geo => "z",
            Group::Stream => "x",
            _ => self.random.one_of(&["s", "l", "h", "t", "z", "x"]),
        };
        let letter = if self.random.below(12) == 0 { self.random.one_of(&["s", "l", "t", "z"]) } else { letter };
        format!("{letter}{}", self.random.below(3)).into_bytes()
    }

    fn value(&mut self, kind: Kind, name: &str) -> Vec<u8> {
        let random = &mut *self.random;
        match name {
            "serialized-value" => {
                let payloads = self.payloads;
                return if payloads.is_empty() { Vec::new() } else { payloads[random.below(payloads.len())].clone() };
            }
            "function-code" => {
                let number = random.below(3);
                let code = "redis.register_function('f";
                let body = "', function(keys, args) return redis.call('INCR', 's0') end)";
                return format!("#!lua name=lib{number}\n{code}{number}{body}").into_bytes();
            }
            "library-name" => return format!("lib{}", random.below(3)).into_bytes(),
            "script" => return script(random).into(),
            "function" => return format!("f{}", random.below(3)).into_bytes(),
            "subcommand" => return random.one_of(&["GETREG", "TODENSE", "DECODE"]).into(),
            "min-idle-time" => return b"0".to_vec(),
            "group" => return random.one_of(&["g", "g", "g", "h"]).into(),
            "consumer" => return random.one_of(&["c", "d"]).into(),
            "min" | "max" if kind == Kind::String => {
                return random.one_of(&["-inf", "+inf", "(1", "2", "[a", "-", "+", "(b"]).into();
            }
            "longitude" | "latitude" => return random.one_of(&["1", "2.5", "-3", "80"]).into(),
            "radius" | "width" | "height" => return random.one_of(&["100", "5000"]).into(),
            "encoding" => return random.one_of(&["u8", "i5", "u16", "i64"]).into(),
            "timeout" => return random.one_of(&["0.001", "1"]).into(),
            "score" => return random.one_of(&["0", "1", "1.5", "-2", "inf", "0.1"]).into(),
            "milliseconds" | "ttl" if kind != Kind::UnixTime => return (1 + random.below(40)).to_string().into(),
            "seconds" if kind != Kind::UnixTime => return random.one_of(&["1", "100", "0", "-1"]).into(),
            "db" | "destination-db" | "index1" | "index2" => return random.below(3).to_string().into(),
            "pattern" => return random.one_of(&["*", "s*", "h0->a"]).into(),
            "offset" if matches!(self.command.group, Group::Bitmap | Group::String) => {
                return random.one_of(&["0", "3", "17", "100"]).into();
            }
            _ => {}
        }
        let is_id =
            self.command.group == Group::Stream && (name.contains("id") || name == "threshold" || name == "start");
        if is_id {
            let ids = ["*", "0", "$", ">", "5-*", "-", "+", "2", "100"];
            // One stream has few ids, so that those who name some find them.
            let has_few_ids = self.words.iter().take(3).any(|word| word == b"x2");
            return match random.below(8) {
                4.. if has_few_ids && name != "threshold" && self.command.name != "XREADGROUP" => {
                    format!("{}-1", 1 + random.below(7)).into_bytes()
                }
                0 => format!("{}-{}", now_ms(), random.below(2)).into_bytes(),
                _ if self.command.name == "XADD" && name != "threshold" => b"*".to_vec(),
                1..4 if self.command.name.starts_with("XGROUP") => b"0".to_vec(),
                _ if self.command.name == "XREADGROUP" => random.one_of(&[">", ">", "0"]).into(),
                _ => random.one_of(&ids).into(),
            };
        }
        match kind {
            Kind::UnixTime if name.contains("milli") => (now_ms() - 10 + random.below(100) as u64).to_string().into(),
            Kind::UnixTime => (now_ms() / 1_000 + random.below(100) as u64).to_string().into(),
            Kind::Integer => random.one_of(&["0", "1", "2", "3", "-1", "5", "10"]).into(),
            Kind::Double => random.one_of(&["0.5", "1", "-2.25", "1e3", "10"]).into(),
            _ => match random.below(10) {
                0 => vec![b'v'; random.below(300)],
                1 => (0..random.below(20)).map(|_| random.below(256) as u8).collect(),
                2 | 3 => random.below(100).to_string().into(),
                _ => random.one_of(&["a", "b", "c", "d", "e"]).into(),
            },
        }
    }
}

fn script(random: &mut Random) -> &'static str {
    const SCRIPTS: [&str; 4] = [
        "redis.call('SET', 's0', 'x', 'PX', 20) return redis.call('INCRBYFLOAT', 's1', '0.1')",
        "redis.call('SADD', 't0', 'a', 'b') return redis.call('SPOP', 't0')",
        "redis.call('XADD', 'x0', '*', 'f', 'v') error('stops here')",
        "redis.pcall('LPUSH', 's0', 'x') return redis.call('HSET', 'h0', 'f', 'v')",
    ];
    SCRIPTS[random.below(SCRIPTS.len())]
}

/// A request of memcached's text protocol.
fn memcached(random: &mut Random) -> Vec<u8> {
    let key = format!("s{}", random.below(3));
    let value = random.one_of(&["1", "20", "value", "", "18446744073709551615"]);
    let exptime = random.one_of(&["0", "0", "1", "100", "-1"]);
    let (flags, len) = (random.below(3), value.len());
    let marks = random.one_of(&["", "T1", "T-1", "I", "q", "c", "F7", "MA", "MP N0", "ME", "MR"]);
    match random.below(16) {
        0..4 => {
            let verb = random.one_of(&["set", "add", "replace", "append", "prepend"]);
            format!("{verb} {key} {flags} {exptime} {len}\r\n{value}\r\n")
        }
        4 => format!("cas {key} {flags} {exptime} {len} {}\r\n{value}\r\n", random.below(50)),
        5 | 6 => format!("{} {key} {}\r\n", random.one_of(&["incr", "decr"]), random.below(100)),
        7 => format!("touch {key} {exptime}\r\n"),
        8 => format!("gat {exptime} {key}\r\n"),
        9 => format!("delete {key}\r\n"),
        10 | 11 => format!("ms {key} {len} {marks}\r\n{value}\r\n"),
        12 => format!("mg {key} v t {}\r\n", random.one_of(&["", "N30", "T1", "R10", "N30 T2"])),
        13 => format!("md {key} {}\r\n", random.one_of(&["", "I", "x", "I T1", "x T5 F3"])),
        14 => format!("ma {key} {}\r\n", random.one_of(&["", "MD", "N0 J5", "D7", "T1"])),
        _ if random.below(20) == 0 => "flush_all\r\n".to_owned(),
        _ => format!("gets {key}\r\n"),
    }
    .into_bytes()
}

/// Clients of one server, of which the first never waits.
struct Clients {
    /// Wakes the others, and does nothing else.
    waker: Box<dyn Link>,
    links: Vec<Box<dyn Link>>,
    ids: Vec<String>,
}

impl Clients {
    fn open(server: &mut InProcess) -> Clients {
        let mut links: Vec<_> = (0..4).map(|_| server.open(Dialect::Redis)).collect();
        let id = |link: &mut Box<dyn Link>| {
            let reply = say(link.as_mut(), &request(&["CLIENT".into(), "ID".into()]));
            String::from_utf8_lossy(&reply).trim_start_matches(':').trim_end().to_owned()
        };
        let ids = links.iter_mut().map(id).collect();
        links.push(server.open(Dialect::Memcache));
        Clients { waker: server.open(Dialect::Redis), links, ids }
    }

    /// Makes what many commands need to find before they change anything, as far as chance has not left it.
    fn lay_out(&mut self, writes: &[&'static Command]) {
        const DATA: [&str; 9] = [
            "HSET h0 a 1 b 2 c 3",
            "HEXPIRE h0 100 FIELDS 2 a b",
            "SADD t0 a b c d",
            "SEXPIRE t0 100 MEMBERS 2 a b",
            "ZADD z0 1 a 2 b 3 c",
            "ZEXPIRE z0 100 MEMBERS 2 a b",
            "XADD x2 7-1 f v",
            "XGROUP CREATE x2 g 0",
            "XREADGROUP GROUP g c STREAMS x2 >",
        ];
        for line in DATA {
            let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            let is_known = |command: &&Command| line.starts_with(&format!("{} ", command.name));
            if writes.iter().any(is_known) {
                say(self.waker.as_mut(), &request(&words));
            }
        }
    }

    /// Ends all waits.
    fn wake(&mut self) {
        for id in &self.ids[1..] {
            say(self.waker.as_mut(), &request(&["CLIENT".into(), "UNBLOCK".into(), id.clone().into_bytes()]));
        }
        self.links.iter_mut().for_each(|link| _ = say(link.as_mut(), b""));
    }
}

fn say(link: &mut dyn Link, bytes: &[u8]) -> Vec<u8> {
    let mut reply = Vec::new();
    link.send(bytes).expect("the connection stays open");
    while link.receive(&mut reply, Duration::ZERO).expect("it does not break") == Received::Bytes {}
    reply
}

fn request(words: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// The bulk string that a reply is.
fn bulk(reply: &[u8]) -> Option<Vec<u8>> {
    let end = reply.windows(2).position(|two| two == b"\r\n")?;
    let len: usize = std::str::from_utf8(reply.strip_prefix(b"$")?.get(..end - 1)?).ok()?.parse().ok()?;
    reply.get(end + 2..end + 2 + len).map(<[u8]>::to_vec)
}

fn check_records(records: &[Vec<u8>]) {
    for record in records {
        for part in parts(record) {
            let Part::Command(words) = part else { continue };
            let name = String::from_utf8_lossy(words[0]).to_ascii_uppercase();
            let has = |word: &str| words[1..].iter().any(|other| other.eq_ignore_ascii_case(word.as_bytes()));
            let shown = tenon_testkit::journal::text(record);
            assert!(!NEVER_LOGGED.contains(&name.as_str()), "{shown}");
            assert!(name != "SET" || words.len() == 3 || words[3] == b"PXAT" || has("NX"), "{shown}");
            assert!(name != "RESTORE" || words[2] == b"0" || has("ABSTTL"), "{shown}");
            assert!(name != "XADD" || !words.contains(&&b"~"[..]), "{shown}");
        }
    }
}

/// The data is the same when it was written as commands, but for what no command says: that an entry which is gone waits
/// to be acknowledged, and what is counted of producers.
fn check_commands(seed: u64, server: &mut InProcess) {
    let pending = regex::Regex::new(r#"(\{[^}]*?\] )\[[^\]]*\] \[[^\]]*\]\}"#).expect("it is one");
    let counts = regex::Regex::new(r"( producers 100 s 100 ids <[^>]*> \[\])|(<added [^>]*>)").expect("it is one");
    let differences = match server.write_as_commands() {
        Ok(differences) => differences,
        Err(why) => panic!("seed {seed}, as commands: {why}"),
    };
    for difference in differences {
        let shown = pending.replace_all(&difference, "$1}");
        let shown = counts.replace_all(&shown, "");
        let (key, values) = shown.split_once(": ").expect("a key and what it holds");
        let (live, written) = values.split_once("; replayed: ").expect("two of them");
        assert_eq!(live, written, "seed {seed}, as commands: {key}");
    }
}

/// What random commands have left.
struct Played {
    server: InProcess,
    /// The names of the commands that a record followed.
    covered: BTreeSet<&'static str>,
}

/// Plays random ones of these commands, and replays the log.
fn play(seed: u64, steps: usize, writes: &[&'static Command]) -> Played {
    let mut random = Random(seed);
    let mut server = InProcess::default();
    let debug = Setting { name: "enable-debug-command".to_owned(), value: "yes".to_owned(), side: None };
    server.prepare(&Demand { dialect: Dialect::Redis, settings: &[debug], fresh: true }).expect("it needs nothing");
    let records = server.records();
    let mut clients = Clients::open(&mut server);
    let reads: Vec<_> = all().filter(|command| READS.contains(&command.name)).collect();
    let mut covered = BTreeSet::new();
    let is_partial = writes.len() < self::writes().len();
    // Most of a round is about one family, so that its commands find what others of them have left.
    let groups: Vec<Group> = writes.iter().map(|command| command.group).fold(Vec::new(), |mut groups, group| {
        if !groups.contains(&group) {
            groups.push(group);
        }
        groups
    });
    let group = groups[seed as usize % groups.len()];
    let focus: Vec<_> = writes.iter().copied().filter(|command| command.group == group).collect();
    let (mut payloads, mut libraries) = (Vec::new(), Vec::new());
    let mut seen = 0;
    for step in 0..steps {
        let which = random.below(clients.links.len());
        let is_memcached = which == 4;
        let (command, bytes) = match random.below(200) {
            _ if is_memcached => (None, memcached(&mut random)),
            0..4 => (None, request(&["SELECT".into(), random.below(3).to_string().into_bytes()])),
            4 | 5 => (None, request(&["MULTI".into()])),
            6..25 => (None, request(&["EXEC".into()])),
            25 => (None, request(&["DISCARD".into()])),
            26..30 => (None, request(&["EVAL".into(), script(&mut random).into(), "0".into()])),
            at => {
                let among = if at < 50 {
                    &reads
                } else if at < 150 {
                    &focus
                } else {
                    writes
                };
                let command = among[random.below(among.len())];
                // Emptying everything all the time would leave nothing to change.
                if command.flags.any(Flags::WHOLE_KEYSPACE) && random.below(8) > 0
                    || which == 0 && command.flags.any(Flags::BLOCKING)
                {
                    continue;
                }
                let payloads = if command.group == Group::Scripting { &libraries } else { &payloads };
                let caller = Caller { random: &mut random, command, payloads, words: Vec::new(), count_at: None };
                let words = caller.call();
                // Words that only newer servers know.
                if is_partial && words.iter().any(|word| NEW_WORDS.contains(&&word[..])) {
                    continue;
                }
                (Some(command.name), request(&words))
            }
        };
        let reply = say(clients.links[which].as_mut(), &bytes);
        let now = records.len();
        if now > seen
            && reply.first().is_some_and(|first| *first != b'-')
            && let Some(name) = command
        {
            covered.insert(name);
        }
        seen = now;
        if step % 10 == 0 {
            clients.wake();
        }
        if step % 200 == 0 {
            clients.lay_out(writes);
        }
        if step % 25 == 0 {
            let key = format!("{}{}", random.one_of(&["l", "h", "t", "z", "x", "s"]), random.below(3));
            payloads.extend(bulk(&say(clients.waker.as_mut(), &request(&["DUMP".into(), key.into_bytes()]))));
            payloads.truncate(40);
            libraries.extend(bulk(&say(clients.waker.as_mut(), &request(&["FUNCTION".into(), "DUMP".into()]))));
            libraries.truncate(5);
        }
    }
    clients.wake();
    check_records(&records.all());
    if let Err(what) = server.finish() {
        panic!("seed {seed}: {what}");
    }
    check_commands(seed, &mut server);
    for workers in [1, 4] {
        if let Err(what) = server.load_elsewhere(workers) {
            panic!("seed {seed}, loaded by {workers} workers: {what}");
        }
    }
    Played { server, covered }
}

#[test]
fn the_log_of_every_write_leads_to_the_same_data() {
    const ROUNDS_MIN: u64 = 3;
    const ROUNDS_MAX: u64 = 80;
    let mut left: BTreeSet<&str> = writes().iter().map(|command| command.name).collect();
    for seed in 1..=ROUNDS_MAX {
        let Played { covered, .. } = play(seed, 1_500, &writes());
        left.retain(|name| !covered.contains(name));
        if left.is_empty() && seed >= ROUNDS_MIN {
            return;
        }
    }
    assert!(left.is_empty(), "no record followed {left:?}");
}

/// The highest numbers that clients of both protocols may give, what is counted up from them, and what else is not easily read
/// back.
const HIGHEST: [&str; 19] = [
    "SET t x PXAT 9223372036854775807",
    "PEXPIREAT n 9223372036854775807",
    "HPEXPIREAT h 70368744177663 FIELDS 1 f",
    "ZADD z 1.7976931348623157e308 m -inf n",
    "RESTORE r 9223372036854775807 DUMPED ABSTTL",
    "XADD s 1-1 f v",
    "XADD s 9223372036854775809-1 f v",
    "XADD s 18446744073709551614-18446744073709551615 f v",
    "XSETID s 18446744073709551615-0 ENTRIESADDED 9223372036854775807",
    "XGROUP CREATE s g 0 ENTRIESREAD 9223372036854775807",
    "XCLAIM s g c 0 1-1 RETRYCOUNT 9223372036854775807 TIME 9223372036854775807 FORCE JUSTID",
    "XCLAIM s g c 0 1-1",
    "XREADGROUP GROUP g c STREAMS s 0",
    "XADD s 18446744073709551615-1 f v",
    "XREADGROUP GROUP g c STREAMS s >",
    "XREADGROUP GROUP g d COUNT 1 STREAMS s >",
    // A long text's last piece, which the answer ends with, is no error.
    "SETRANGE k 523712 -",
    "GETSET k x",
    // A set has another order elsewhere.
    "SORT many BY nokey_* ALPHA DESC LIMIT 3 50 STORE sorted",
];

#[test]
fn high_numbers_and_odd_answers_are_read_back() {
    let mut server = InProcess::default();
    server.prepare(&Demand { dialect: Dialect::Redis, settings: &[], fresh: true }).expect("it needs nothing");
    let mut redis = server.open(Dialect::Redis);
    let mut memcache = server.open(Dialect::Memcache);
    let command = |line: &str| line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
    for line in ["SET n 1", "HSET h f v", "SET r x"] {
        say(redis.as_mut(), &request(&command(line)));
    }
    let dumped = bulk(&say(redis.as_mut(), &request(&command("DUMP r")))).expect("it is there");
    say(redis.as_mut(), &request(&command("DEL r")));
    let many: String = (0..1_000).map(|number| format!(" member-{number}")).collect();
    say(redis.as_mut(), &request(&command(&format!("SADD many{many}"))));
    for line in HIGHEST {
        let words: Vec<Vec<u8>> =
            command(line).into_iter().map(|word| if word == b"DUMPED" { dumped.clone() } else { word }).collect();
        let reply = say(redis.as_mut(), &request(&words));
        assert_ne!(reply.first(), Some(&b'-'), "{line}: {}", String::from_utf8_lossy(&reply));
    }
    for line in ["set m 0 9223372036854775807 1\r\nx\r\n", "ms a 1 T9223372036854775807\r\nx\r\n"] {
        let reply = say(memcache.as_mut(), line.as_bytes());
        assert!(reply.starts_with(b"STORED") || reply.starts_with(b"HD"), "{}", String::from_utf8_lossy(&reply));
    }
    server.finish().expect("the log leads to the same data");
    check_commands(0, &mut server);
    for workers in [1, 4] {
        server.load_elsewhere(workers).expect("it can be loaded");
    }
}

/// The answer to a command, as it came.
fn ask(link: &mut dyn Link, words: &[Vec<u8>]) -> Vec<u8> {
    link.send(&request(words)).expect("the connection stays open");
    let mut reply = Vec::new();
    // The only array is one of a single line.
    while !reply.ends_with(b"\r\n") || reply == b"*1\r\n" {
        assert_ne!(link.receive(&mut reply, PATIENCE).expect("it does not break"), Received::Closed);
    }
    reply
}

#[test]
fn redis_server_loads_the_log_of_the_commands_that_it_knows() {
    // What came later than the oldest server that is an oracle stays out.
    let is_known = |command: &&&Command| {
        let is_redis = command.since != tenon_engine::version::TENON;
        is_redis && Version::parse(command.since) <= Version::parse("7.0.15")
    };
    let all = writes();
    let known: Vec<&'static Command> = all.iter().filter(is_known).copied().collect();
    let folder = std::env::temp_dir().join(format!("tenon-replay-{}", std::process::id()));
    for seed in 1..=5 {
        let mut server = play(seed, 1_500, &known).server;
        let files = folder.join("appendonlydir");
        std::fs::create_dir_all(&files).expect("a folder can be made");
        let name = "appendonly.aof.1.incr.aof";
        std::fs::write(files.join("appendonly.aof.manifest"), format!("file {name} seq 1 type i\n"))
            .expect("it can be");
        std::fs::write(files.join(name), server.records().all().concat()).expect("it can be");
        let dir = folder.to_str().expect("it is UTF-8");
        let settings = [("dir", dir), ("appendonly", "yes"), ("enable-debug-command", "yes")];
        let Some(redis) = oracle(Dialect::Redis, &settings) else { return };
        let address = redis.address(Dialect::Redis).expect("it listens");
        let mut theirs = tenon_client::Stream::connect(address, Some(PATIENCE)).expect("it listens");
        // While it still loads it answers some commands.
        let has_loaded = || ask(&mut theirs, &["PING".into()]) == b"+PONG\r\n";
        tenon_testkit::patience::wait_until("the end of loading", has_loaded);
        let mut ours = server.open(Dialect::Redis);
        let mut compared = 0;
        for ((database, key), shown) in server.state() {
            // What expires may have gone there or here by now.
            if shown.contains("until ") {
                continue;
            }
            compared += 1;
            let select = ["SELECT".into(), database.to_string().into_bytes()];
            let digest = ["DEBUG".into(), "DIGEST-VALUE".into(), key.clone()];
            assert_eq!(ask(&mut theirs, &select), ask(ours.as_mut(), &select));
            let digests = (ask(&mut theirs, &digest), ask(ours.as_mut(), &digest));
            let history = || {
                let all = server.records().all();
                let about = all.into_iter().filter(|record| record.windows(key.len()).any(|window| window == key));
                about.map(|record| tenon_testkit::journal::text(&record)).collect::<Vec<_>>().join("\n")
            };
            let key_text = key.escape_ascii();
            assert!(
                digests.0 == digests.1,
                "seed {seed}: {database} {key_text}: {shown}; theirs differs\n{}",
                history()
            );
        }
        assert!(compared > 0, "seed {seed}: something is left");
        drop((theirs, redis));
        std::fs::remove_dir_all(&folder).expect("it is ours");
    }
}
