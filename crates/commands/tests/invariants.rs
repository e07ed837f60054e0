//! Random commands that mostly fit together, made from what COMMAND DOCS says of each, and then a look at every key by all
//! the ways there are: whatever a value's encoding is, they must tell the same. Knows of each type only how its commands
//! belong together, and no encoding.

mod one_worker;

use one_worker::{Random, Server};
use std::collections::{BTreeMap, BTreeSet};
use tenon_engine::wire::resp::{Proto, Value};

/// Groups whose commands change or read data.
const GROUPS: [&str; 10] =
    ["string", "bitmap", "hyperloglog", "list", "hash", "set", "sorted-set", "geo", "stream", "generic"];
/// Commands that would end or hold up the play, or need a second server.
const LEFT_OUT: [&str; 6] = ["migrate", "pfdebug", "pfselftest", "swapdb", "restore", "wait"];
/// Keys by what they are likely to hold, so that most commands find the type they want.
const KEYS: [(&str, [&str; 3]); 10] = [
    ("string", ["s1", "s2", "s3"]),
    ("bitmap", ["s1", "s2", "s3"]),
    ("hyperloglog", ["p1", "p2", "p3"]),
    ("list", ["l1", "l2", "l3"]),
    ("hash", ["h1", "h2", "h3"]),
    ("set", ["m1", "m2", "m3"]),
    ("sorted-set", ["z1", "z2", "z3"]),
    ("geo", ["g1", "g2", "z1"]),
    ("stream", ["x1", "x2", "x3"]),
    ("generic", ["s1", "l1", "x1"]),
];

fn bulk(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

fn text(value: &Value) -> String {
    match value {
        Value::Bulk(bytes) | Value::Simple(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => panic!("{other:?} is no text"),
    }
}

fn field<'a>(map: &'a Value, wanted: &str) -> Option<&'a Value> {
    items(map).chunks_exact(2).find(|pair| text(&pair[0]) == wanted).map(|pair| &pair[1])
}

fn items(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        other => panic!("{other:?} is no list"),
    }
}

/// One command as the documents describe it.
struct Described {
    name: String,
    group: String,
    arguments: Vec<Value>,
}

/// Every command on data, from COMMAND DOCS.
fn described(server: &mut Server) -> Vec<Described> {
    let docs = server.run(&[bulk("COMMAND"), bulk("DOCS")]);
    let mut all = Vec::new();
    for pair in items(&docs).chunks_exact(2) {
        let (name, docs) = (text(&pair[0]), &pair[1]);
        let group = text(field(docs, "group").expect("there is a group"));
        let arguments = field(docs, "arguments").map(|list| items(list).to_vec()).unwrap_or_default();
        let is_blocking = name.starts_with('b') && !name.starts_with("bit");
        let is_wanted = GROUPS.contains(&group.as_str()) && !LEFT_OUT.contains(&name.as_str()) && !arguments.is_empty();
        if is_wanted && !is_blocking {
            all.push(Described { name, group, arguments });
        }
    }
    all
}

/// Makes up calls.
struct Player {
    random: Random,
}

impl Player {
    fn element(&mut self) -> Vec<u8> {
        match self.random.below(12) {
            0 => Vec::new(),
            1 => vec![b'e'; self.random.below(200)],
            2 => (self.random.below(100_000) as i64 - 50_000).to_string().into_bytes(),
            3..6 => self.random.below(300).to_string().into_bytes(),
            _ => format!("element:{}", self.random.below(120)).into_bytes(),
        }
    }

    fn key(&mut self, group: &str) -> Vec<u8> {
        let (_, keys) = KEYS.iter().find(|(known, _)| *known == group).expect("the group is known");
        let (_, any) = KEYS[self.random.below(KEYS.len())];
        // Now and then of another type.
        let keys = if self.random.below(30) == 0 { &any } else { keys };
        bulk(self.random.one_of(keys))
    }

    fn leaf(&mut self, group: &str, argument: &Value) -> Vec<u8> {
        let name = text(field(argument, "name").expect("an argument has a name"));
        match text(field(argument, "type").expect("an argument has a type")).as_str() {
            "key" => self.key(group),
            "integer" => match name.as_str() {
                "numkeys" | "numfields" | "nummembers" | "numids" => bulk("2"),
                // Neither so many that a call takes long nor so far that a string takes much room.
                "offset" => self.random.below(5_000).to_string().into_bytes(),
                "cursor" | "destination-db" | "db" => bulk(self.random.one_of(&["0", "0", "1"])),
                "seconds" | "milliseconds" => (self.random.below(100_000) + 50_000).to_string().into_bytes(),
                _ => (self.random.below(60) as i64 - 20).to_string().into_bytes(),
            },
            "unix-time" => bulk("99999999999"),
            "double" => match self.random.below(6) {
                0 => bulk(self.random.one_of(&["inf", "-inf", "0", "-0", "1e10"])),
                _ => format!("{}.{}", self.random.below(80), self.random.below(100)).into_bytes(),
            },
            "pattern" => bulk(self.random.one_of(&["*", "e*", "*1*", "[a-e]*"])),
            _ => match name.as_str() {
                "encoding" => bulk(self.random.one_of(&["u8", "i16", "u1", "i64", "u63"])),
                "id" | "start" | "end" | "last-id" | "lastid" if group == "stream" => {
                    let id = format!("{}-{}", self.random.below(200), self.random.below(3));
                    match self.random.below(6) {
                        0 => bulk(self.random.one_of(&["-", "+", "$", ">", "0"])),
                        _ => id.into_bytes(),
                    }
                }
                "min-idle-time" => bulk("0"),
                "group" | "consumer" => bulk(self.random.one_of(&["one", "two"])),
                "min" | "max" | "start" | "stop" => {
                    bulk(self.random.one_of(&["-", "+", "(1", "[element:5", "0", "10", "-1", "(element:70", "-inf"]))
                }
                _ => self.element(),
            },
        }
    }

    fn push(&mut self, group: &str, argument: &Value, call: &mut Vec<Vec<u8>>) {
        let flags: BTreeSet<String> =
            field(argument, "flags").map(|flags| items(flags).iter().map(text).collect()).unwrap_or_default();
        if flags.contains("optional") && self.random.below(3) > 0 {
            return;
        }
        let kind = text(field(argument, "type").expect("an argument has a type"));
        let token = field(argument, "token").map(text);
        let name = text(field(argument, "name").expect("an argument has a name"));
        // As `numkeys` and its like say.
        let is_counted = kind == "key" && token.is_none() || ["field", "member", "id"].contains(&name.as_str());
        let times = match (flags.contains("multiple"), is_counted) {
            (true, true) => 2,
            (true, false) => self.random.below(4) + 1,
            (false, _) => 1,
        };
        for time in 0..times {
            if let Some(token) = token.as_ref().filter(|_| time == 0 || flags.contains("multiple_token")) {
                call.push(token.clone().into_bytes());
            }
            match kind.as_str() {
                "pure-token" => {}
                "oneof" => {
                    let choices = items(field(argument, "arguments").expect("there is something to choose"));
                    let choice = &choices[self.random.below(choices.len())];
                    self.push(group, choice, call);
                }
                "block" => {
                    let parts = items(field(argument, "arguments").expect("a block has parts"));
                    parts.iter().for_each(|part| self.push(group, part, call));
                }
                _ => call.push(self.leaf(group, argument)),
            }
        }
    }

    fn call(&mut self, command: &Described) -> Vec<Vec<u8>> {
        let mut call = vec![command.name.clone().into_bytes()];
        command.arguments.iter().for_each(|argument| self.push(&command.group, argument, &mut call));
        call
    }
}

/// Asks, and shows the question where the answer is an error.
fn ask(server: &mut Server, words: &[&[u8]]) -> Value {
    let call: Vec<Vec<u8>> = words.iter().map(|word| word.to_vec()).collect();
    let answer = server.run(&call);
    let shown = || words.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>().join(" ");
    assert!(!matches!(answer, Value::Error(_)), "{}: {answer:?}", shown());
    answer
}

fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::Bulk(bytes) => bytes.clone(),
        other => panic!("{other:?} is no bulk string"),
    }
}

fn list(server: &mut Server, words: &[&[u8]]) -> Vec<Vec<u8>> {
    items(&ask(server, words)).iter().map(bytes).collect()
}

/// All that a SCAN command gives, page by page.
fn scanned(server: &mut Server, words: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut cursor = bulk("0");
    loop {
        let mut call = words.to_vec();
        call.push(&cursor);
        let answer = ask(server, &call);
        let page = items(&answer);
        all.extend(items(&page[1]).iter().map(bytes));
        let next = bytes(&page[0]);
        if next == b"0" {
            return all;
        }
        cursor = next;
    }
}

fn number(value: &Value) -> i64 {
    match value {
        Value::Int(number) => *number,
        other => panic!("{other:?} is no number"),
    }
}

fn check_string(server: &mut Server, key: &[u8]) {
    let value = bytes(&ask(server, &[b"GET", key]));
    assert_eq!(number(&ask(server, &[b"STRLEN", key])) as usize, value.len());
    assert_eq!(bytes(&ask(server, &[b"GETRANGE", key, b"0", b"-1"])), value);
    let ones: u32 = value.iter().map(|byte| byte.count_ones()).sum();
    assert_eq!(number(&ask(server, &[b"BITCOUNT", key])), i64::from(ones));
    let encoding = text(&ask(server, &[b"OBJECT", b"ENCODING", key]));
    let is_number = std::str::from_utf8(&value).ok().and_then(|text| text.parse::<i64>().ok());
    if encoding == "int" {
        assert_eq!(is_number.map(|number| number.to_string().into_bytes()), Some(value));
    } else if encoding == "embstr" {
        assert!(value.len() <= 44, "{} bytes", value.len());
    }
}

fn check_list(server: &mut Server, key: &[u8]) {
    let all = list(server, &[b"LRANGE", key, b"0", b"-1"]);
    let len = number(&ask(server, &[b"LLEN", key]));
    assert!(len > 0 && len as usize == all.len(), "{len}");
    for (index, element) in all.iter().enumerate() {
        let (forth, back) = (index.to_string(), (index as i64 - len).to_string());
        assert_eq!(bytes(&ask(server, &[b"LINDEX", key, forth.as_bytes()])), *element);
        assert_eq!(bytes(&ask(server, &[b"LINDEX", key, back.as_bytes()])), *element);
    }
    let middle = (all.len() / 2).to_string();
    assert_eq!(list(server, &[b"LRANGE", key, middle.as_bytes(), b"-1"]), all[all.len() / 2..]);
    let found = number(&ask(server, &[b"LPOS", key, &all[0]]));
    assert_eq!(found, 0);
}

fn check_hash(server: &mut Server, key: &[u8]) {
    let all = list(server, &[b"HGETALL", key]);
    let pairs: BTreeMap<Vec<u8>, Vec<u8>> =
        all.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    let len = number(&ask(server, &[b"HLEN", key])) as usize;
    assert!(len > 0 && pairs.len() == len && all.len() == 2 * len, "{len}, {}", all.len());
    for (name, value) in &pairs {
        assert_eq!(bytes(&ask(server, &[b"HGET", key, name])), *value);
        assert_eq!(number(&ask(server, &[b"HSTRLEN", key, name])) as usize, value.len());
    }
    let page = scanned(server, &[b"HSCAN", key]);
    let again: BTreeMap<Vec<u8>, Vec<u8>> =
        page.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    assert!(again == pairs && page.len() == all.len());
    let names: BTreeSet<Vec<u8>> = list(server, &[b"HKEYS", key]).into_iter().collect();
    assert!(names.iter().eq(pairs.keys()));
    check_limits(server, key, "listpack", (len, 128), pairs.iter().flat_map(|(name, value)| [name, value]), 64);
}

/// Whether a value in its small encoding is as small as the settings say.
fn check_limits<'a>(
    server: &mut Server,
    key: &[u8],
    small: &str,
    (len, len_max): (usize, usize),
    mut elements: impl Iterator<Item = &'a Vec<u8>>,
    bytes_max: usize,
) {
    let encoding = text(&ask(server, &[b"OBJECT", b"ENCODING", key]));
    if encoding == small {
        assert!(len <= len_max && elements.all(|element| element.len() <= bytes_max), "{encoding} of {len}");
    }
}

fn check_set(server: &mut Server, key: &[u8]) {
    let all = list(server, &[b"SMEMBERS", key]);
    let members: BTreeSet<Vec<u8>> = all.iter().cloned().collect();
    let len = number(&ask(server, &[b"SCARD", key])) as usize;
    assert!(len > 0 && members.len() == len && all.len() == len, "{len}, {}", all.len());
    for member in &members {
        assert_eq!(number(&ask(server, &[b"SISMEMBER", key, member])), 1);
    }
    assert_eq!(number(&ask(server, &[b"SISMEMBER", key, b"no member at all"])), 0);
    let page = scanned(server, &[b"SSCAN", key]);
    assert!(page.len() == len && page.into_iter().collect::<BTreeSet<_>>() == members);
    check_limits(server, key, "listpack", (len, 128), members.iter(), 64);
    if text(&ask(server, &[b"OBJECT", b"ENCODING", key])) == "intset" {
        let number = |member: &Vec<u8>| std::str::from_utf8(member).ok()?.parse::<i64>().ok();
        assert!(len <= 512 && members.iter().all(|member| number(member).is_some()));
    }
}

fn check_zset(server: &mut Server, key: &[u8]) {
    let all = list(server, &[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"]);
    let score = |text: &[u8]| std::str::from_utf8(text).expect("a score is text").parse::<f64>().expect("a number");
    let pairs: Vec<(Vec<u8>, f64)> = all.chunks_exact(2).map(|pair| (pair[0].clone(), score(&pair[1]))).collect();
    let len = number(&ask(server, &[b"ZCARD", key])) as usize;
    assert!(len > 0 && pairs.len() == len, "{len}, {}", pairs.len());
    assert!(pairs.is_sorted_by(|(one, first), (other, second)| first < second || first == second && one < other));
    for (index, (member, wanted)) in pairs.iter().enumerate() {
        assert_eq!(score(&bytes(&ask(server, &[b"ZSCORE", key, member]))), *wanted);
        assert_eq!(number(&ask(server, &[b"ZRANK", key, member])) as usize, index);
        assert_eq!(number(&ask(server, &[b"ZREVRANK", key, member])) as usize, len - 1 - index);
    }
    assert_eq!(number(&ask(server, &[b"ZCOUNT", key, b"-inf", b"+inf"])) as usize, len);
    let mut back = list(server, &[b"ZREVRANGE", key, b"0", b"-1"]);
    back.reverse();
    assert!(back.iter().eq(pairs.iter().map(|(member, _)| member)));
    let page = scanned(server, &[b"ZSCAN", key]);
    let again: BTreeMap<Vec<u8>, String> =
        page.chunks_exact(2).map(|pair| (pair[0].clone(), score(&pair[1]).to_string())).collect();
    let once: BTreeMap<Vec<u8>, String> =
        pairs.iter().map(|(member, score)| (member.clone(), score.to_string())).collect();
    assert!(again == once && page.len() == 2 * len);
    check_limits(server, key, "listpack", (len, 128), once.keys(), 64);
}

fn check_stream(server: &mut Server, key: &[u8]) {
    let entries = |answer: &Value| -> Vec<(u64, u64, Value)> {
        let id = |entry: &Value| {
            let id = text(&items(entry)[0]);
            let (ms, seq) = id.split_once('-').expect("an id has two parts");
            (ms.parse().expect("a number"), seq.parse().expect("a number"), items(entry)[1].clone())
        };
        items(answer).iter().map(id).collect()
    };
    let all = entries(&ask(server, &[b"XRANGE", key, b"-", b"+"]));
    assert_eq!(number(&ask(server, &[b"XLEN", key])) as usize, all.len());
    assert!(all.is_sorted_by(|(ms, seq, _), (next_ms, next_seq, _)| (ms, seq) < (next_ms, next_seq)));
    let mut back = entries(&ask(server, &[b"XREVRANGE", key, b"+", b"-"]));
    back.reverse();
    assert_eq!(back, all);
    for (ms, seq, fields) in &all {
        let id = format!("{ms}-{seq}");
        let found = entries(&ask(server, &[b"XRANGE", key, id.as_bytes(), id.as_bytes()]));
        assert_eq!(found, [(*ms, *seq, fields.clone())]);
    }
    let info = ask(server, &[b"XINFO", b"STREAM", key]);
    assert_eq!(field(&info, "length").map(number), Some(all.len() as i64));
}

/// Looks at every key of the database by all ways.
fn check_all(server: &mut Server) -> usize {
    let keys: BTreeSet<Vec<u8>> = list(server, &[b"KEYS", b"*"]).into_iter().collect();
    assert_eq!(number(&ask(server, &[b"DBSIZE"])) as usize, keys.len());
    let page = scanned(server, &[b"SCAN"]);
    assert!(page.len() == keys.len() && page.into_iter().collect::<BTreeSet<_>>() == keys);
    for key in &keys {
        assert_eq!(number(&ask(server, &[b"EXISTS", key])), 1);
        match text(&ask(server, &[b"TYPE", key])).as_str() {
            "string" => check_string(server, key),
            "list" => check_list(server, key),
            "hash" => check_hash(server, key),
            "set" => check_set(server, key),
            "zset" => check_zset(server, key),
            "stream" => check_stream(server, key),
            other => panic!("{other} is no type"),
        }
        assert!(number(&ask(server, &[b"MEMORY", b"USAGE", key])) > 0);
        let digest = ask(server, &[b"DEBUG", b"DIGEST-VALUE", key]);
        ask(server, &[b"COPY", key, b"a copy", b"REPLACE"]);
        assert_eq!(ask(server, &[b"DEBUG", b"DIGEST-VALUE", b"a copy"]), digest);
        ask(server, &[b"DEL", b"a copy"]);
        let (ttl, expires) = (ask(server, &[b"PTTL", key]), ask(server, &[b"PEXPIRETIME", key]));
        assert_eq!(number(&ttl) > 0, number(&expires) > 0);
        assert!(number(&ttl) >= -1 && number(&expires) >= -1, "the key is there");
    }
    keys.len()
}

#[test]
fn random_commands_leave_every_value_in_order() {
    let settings: [&[(&str, &str)]; 2] = [
        &[],
        // So small that every collection changes its form over and over.
        &[
            ("list-max-listpack-size", "4"),
            ("hash-max-listpack-entries", "6"),
            ("set-max-listpack-entries", "6"),
            ("set-max-intset-entries", "6"),
            ("zset-max-listpack-entries", "6"),
        ],
    ];
    let mut ran: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut keys = 0;
    for (seed, settings) in (1..=6).zip(settings.into_iter().cycle()) {
        let mut server = Server::new(seed, settings);
        server.session.proto = Proto::Resp2;
        let commands = described(&mut server);
        assert!(commands.len() > 100, "only {} commands", commands.len());
        let mut player = Player { random: Random(seed) };
        for round in 0..40 {
            for (key, group) in ["x1", "x2", "x3"].into_iter().flat_map(|key| ["one", "two"].map(|group| (key, group)))
            {
                // Where the group is there already, or the key is no stream, all stays as it is.
                server.run(&["XGROUP", "CREATE", key, group, "0", "MKSTREAM"].map(bulk));
            }
            for _ in 0..200 {
                let command = &commands[player.random.below(commands.len())];
                // Nothing is emptied all at once, or nothing would grow.
                if command.name.starts_with("flush") || command.name == "move" && round % 4 != 0 {
                    continue;
                }
                let call = player.call(command);
                let answer = server.run(&call);
                let (calls, fine) = ran.entry(command.name.clone()).or_default();
                *calls += 1;
                *fine += usize::from(!matches!(answer, Value::Error(_)));
            }
            keys = keys.max(check_all(&mut server));
            server.engine.tick(&mut server.worker);
        }
    }
    assert!(keys > 12, "never more than {keys} keys");
    let never: Vec<&String> = ran.iter().filter(|(_, (_, fine))| *fine == 0).map(|(name, _)| name).collect();
    assert!(never.len() < 12, "these never ran without an error: {never:?}");
}
