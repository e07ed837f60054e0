//! A snapshot is the data of one moment, whatever clients do while it is written: it is read back and held against a copy
//! that was made in the moment itself.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tenon_engine::Engine;
use tenon_engine::args::OwnedArgs;
use tenon_engine::clients::{ClientInfo, ConnectionKey, Dialect, Message};
use tenon_engine::config::{Loader, Machine, Origin};
use tenon_engine::ds::packed::Item;
use tenon_engine::execute::Stopped;
use tenon_engine::persist::rdb::file::{FileOptions, Form, OnModule};
use tenon_engine::persist::rdb::{Origin as ValueOrigin, Scene, Value, dump, load, read_value};
use tenon_engine::session::Session;
use tenon_engine::shards::Locked;
use tenon_engine::snapshot::{Begun, SnapshotOptions};
use tenon_engine::store::entry::{Entry, Meta};
use tenon_engine::store::types::Collection;
use tenon_engine::wire::OutBuf;
use tenon_engine::wire::rdb::{Compression, Reader, crc64};
use tenon_engine::worker::Worker;

const CLIENTS: usize = 4;
const DATABASES: usize = 3;
const EXPANSION_MAX: usize = 1 << 30;

/// What a key holds, in an order of its own.
#[derive(Debug, PartialEq)]
struct Content {
    value: Vec<Vec<u8>>,
    /// When members expire.
    deadlines: BTreeMap<Vec<u8>, u64>,
    deadline_ms: Option<u64>,
    flags: u32,
}

type Data = BTreeMap<(usize, Vec<u8>), Content>;

fn content(value: Value, deadline_ms: Option<u64>, flags: u32) -> Content {
    let mut parts = Vec::new();
    let mut deadlines = BTreeMap::new();
    match &value {
        Value::String(text) => parts.push(text.clone()),
        Value::Rope(rope) => parts.push(rope.to_vec()),
        Value::List(list) => parts.extend(list.view().iter_from(0).map(Item::to_vec)),
        Value::Hash(hash) => {
            hash.view().for_each(|field, value| parts.push([field.to_vec(), b"=".to_vec(), value.to_vec()].concat()));
            parts.sort();
        }
        Value::Set(set) => {
            set.view().for_each(|member| parts.push(member.to_vec()));
            parts.sort();
        }
        Value::Zset(zset) => {
            zset.view().for_each(|member, score| parts.push([member.to_vec(), score.to_string().into_bytes()].concat()))
        }
        Value::Stream(_) => {}
    }
    let of_members = match &value {
        Value::Hash(hash) => hash.deadlines(),
        Value::Set(set) => set.deadlines(),
        Value::Zset(zset) => zset.deadlines(),
        Value::String(_) | Value::Rope(_) | Value::List(_) | Value::Stream(_) => None,
    };
    if let Some(all) = of_members {
        all.for_each(|member, deadline_ms| _ = deadlines.insert(member.to_vec(), deadline_ms));
    }
    if let Value::Stream(_) = value {
        let entry = value.store(|value| Entry::new(b"", value, &Meta::default()));
        parts.push(dump(entry.view().value(), 0));
    }
    Content { value: parts, deadlines, deadline_ms, flags }
}

fn engine(settings: &[(&str, &str)]) -> Arc<Engine> {
    let mut loader = Loader::new(Machine::detect());
    let own = [("workers", CLIENTS.to_string()), ("shards", "16".to_owned()), ("databases", DATABASES.to_string())];
    let settings = settings.iter().map(|(name, value)| (*name, (*value).to_owned()));
    for (name, value) in own.into_iter().chain(settings) {
        loader.apply(name, &[value], &Origin::CommandLine).expect("a setting");
    }
    Arc::new(Engine::new(loader.finish().expect("settings"), tenon_commands::ALL, 0x5EED))
}

/// Which connections were told that they can go on.
#[derive(Default)]
struct Mail {
    told: Mutex<HashMap<ConnectionKey, usize>>,
    came: Condvar,
}

struct Client {
    engine: Arc<Engine>,
    mail: Arc<Mail>,
    worker: Worker,
    session: Session,
    /// How often it had to wait.
    waits: usize,
}

impl Client {
    fn new(engine: &Arc<Engine>, mail: &Arc<Mail>, index: usize) -> Client {
        let info = ClientInfo {
            key: ConnectionKey { worker: index as u32, index: 0, generation: 0 },
            dialect: Dialect::Resp,
            remote: String::new(),
            local: String::new(),
            fd: 0,
            unix: false,
        };
        let session = engine.open_session(engine.clients.add(info, 0));
        Client { engine: Arc::clone(engine), mail: Arc::clone(mail), worker: engine.worker(index), session, waits: 0 }
    }

    fn words(&mut self, words: &[&[u8]]) -> String {
        let args = OwnedArgs::new(words.iter());
        let mut out = OutBuf::new();
        loop {
            self.engine.read_clock(&mut self.worker);
            let target = self.engine.resolve(&args.view());
            match self.engine.run_alone(&mut self.worker, &mut self.session, target, &args.view(), &mut out) {
                Stopped::Paused => {
                    self.waits += 1;
                    let key = self.session.client.info.key;
                    let mut told = self.mail.told.lock().unwrap();
                    while told.get(&key).is_none_or(|count| *count == 0) {
                        let (guard, late) = self.mail.came.wait_timeout(told, Duration::from_secs(60)).unwrap();
                        assert!(!late.timed_out(), "{} is told when it can go on", String::from_utf8_lossy(words[0]));
                        told = guard;
                    }
                    told.insert(key, 0);
                }
                Stopped::Parked => {
                    self.engine.end_session(&mut self.session);
                    let info = self.session.client.info.clone();
                    self.session = self.engine.open_session(self.engine.clients.add(info, 0));
                    return String::new();
                }
                _ => break,
            }
        }
        out.contiguous().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
    }

    fn run(&mut self, command: &str) -> String {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        self.words(&words)
    }

    fn random(&mut self, limit: u32) -> u32 {
        self.worker.random() % limit
    }
}

fn with_mail(engine: &Arc<Engine>) -> Arc<Mail> {
    let mail = Arc::<Mail>::default();
    let post = Arc::clone(&mail);
    engine.clients.set_post(Arc::new(move |key, message| {
        if message == Message::Unpause {
            *post.told.lock().unwrap().entry(key).or_default() += 1;
            post.came.notify_all();
        }
    }));
    mail
}

/// All data, the shards being held.
fn copy_of(engine: &Engine, held: &mut dyn Locked) -> Vec<(usize, Vec<u8>, Vec<u8>, Meta)> {
    let mut all = Vec::new();
    held.each(&mut |_, state| {
        for (database, keyspace) in state.shard.databases() {
            keyspace.scan(0, usize::MAX, |entry| {
                all.push((database, entry.key().to_vec(), dump(entry.value(), entry.flags()), entry.meta()));
            });
        }
        true
    });
    let _ = engine;
    all
}

fn data_of(engine: &Engine, copy: Vec<(usize, Vec<u8>, Vec<u8>, Meta)>) -> Data {
    let content = |payload: &[u8], meta: &Meta| {
        let loaded = load(payload, engine.limits(), EXPANSION_MAX, OnModule::Refuse).expect("what was dumped loads");
        content(loaded.value, meta.deadline_ms, loaded.client_flags)
    };
    copy.into_iter().map(|(database, key, payload, meta)| ((database, key), content(&payload, &meta))).collect()
}

/// What a file holds.
fn read(engine: &Engine, file: &[u8]) -> Data {
    let (body, checksum) = file.split_at(file.len() - 8);
    assert_eq!(u64::from_le_bytes(checksum.try_into().unwrap()), crc64(0, body));
    let mut rest = body.strip_prefix(b"REDIS0010").expect("the version is Redis 7.0's");
    let mut reader = Reader::new(&mut rest, EXPANSION_MAX);
    let scene = Scene { limits: engine.limits(), origin: ValueOrigin::Redis };
    let mut data = Data::new();
    let (mut database, mut deadline_ms, mut last) = (usize::MAX, None, None);
    loop {
        match reader.byte().expect("a file ends with its mark") {
            0xFA => {
                let (name, text) = (reader.string().unwrap().into_owned(), reader.string().unwrap().into_owned());
                let last = || last.clone().expect("what is ours stands behind a key");
                match &*name {
                    b"tenon-client-flags" => {
                        data.get_mut(&last()).unwrap().flags = String::from_utf8(text).unwrap().parse().unwrap();
                    }
                    b"tenon-member-deadlines" => {
                        let mut text = &text[..];
                        let mut reader = Reader::new(&mut text, 0);
                        for _ in 0..reader.length().unwrap() {
                            let member = reader.string().unwrap().into_owned();
                            let due_ms = reader.word().unwrap();
                            data.get_mut(&last()).unwrap().deadlines.insert(member, due_ms);
                        }
                    }
                    _ => {}
                }
            }
            0xF8 => _ = reader.length().unwrap(),
            0xFB => _ = (reader.length().unwrap(), reader.length().unwrap()),
            0xFC => deadline_ms = Some(reader.word().unwrap()),
            0xFE => database = reader.length().unwrap() as usize,
            0xFF => break,
            kind => {
                let key = reader.string().unwrap().into_owned();
                let value = read_value(kind, &mut reader, &scene).expect("what is written is read");
                let place = (database, key);
                last = Some(place.clone());
                let twice = data.insert(place, content(value, deadline_ms.take(), 0));
                assert!(twice.is_none(), "a key is written once");
            }
        }
    }
    assert_eq!(reader.left(), 0);
    data
}

fn options() -> SnapshotOptions {
    SnapshotOptions {
        file: FileOptions { form: Form::Rdb, compression: Compression::On, has_checksum: true },
        is_log_base: false,
    }
}

fn check(engine: &Engine, begun: Begun, copy: Vec<(usize, Vec<u8>, Vec<u8>, Meta)>) {
    let (file, report) = begun.write_to(engine, Vec::new()).expect("memory takes all");
    assert_eq!(report.bytes, file.len() as u64);
    let (written, there) = (read(engine, &file), data_of(engine, copy));
    assert_eq!(written.len(), there.len());
    assert_eq!(report.keys, there.len() as u64);
    for (place, content) in there {
        let (database, key) = &place;
        assert!(written[&place] == content, "database {database}, key {}", String::from_utf8_lossy(key));
    }
    for index in 0..engine.shards.count() {
        assert!(!engine.shards.lock(index).shard.is_unfinished());
    }
}

/// Keys of every type and size, some with deadlines.
fn fill(client: &mut Client) {
    for database in 0..DATABASES {
        client.run(&format!("SELECT {database}"));
        for number in 0..300 {
            client.run(&format!("SET int{number} {number}"));
            client.run(&format!("SET string{number} {}", "some words ".replace(' ', "-").repeat(number % 40)));
            client.run(&format!("RPUSH list{number} a b {number} {}", "x".repeat(number)));
            client.run(&format!("HSET hash{number} f1 v1 f{number} {number}"));
            client.run(&format!("SADD set{number} a b c{number}"));
            client.run(&format!("SADD ints{number} 1 70000 {number}"));
            client.run(&format!("ZADD zset{number} 1 a 2.5 b {number} c"));
            if number % 7 == 0 {
                client.run(&format!("EXPIRE string{number} 1000"));
                client.run(&format!("PEXPIRE int{number} {}", 20 + number));
                client.run(&format!("HPEXPIRE hash{number} {} FIELDS 1 f1", 10 + number * 20));
                client.run(&format!("SEXPIRE set{number} 1000 MEMBERS 1 a"));
            }
        }
        for number in 0..4 {
            client.run(&format!("SETRANGE rope{number} {} end", 300_000 * number + 20_000));
            for part in 0..40 {
                let each = |what: &dyn Fn(u32) -> String| (0..100).map(|at| what(part * 100 + at)).collect::<String>();
                client.run(&format!("RPUSH biglist{number}{}", each(&|at| format!(" element-of-a-long-list-{at}"))));
                client.run(&format!("HSET bighash{number}{}", each(&|at| format!(" field{at} value-{at}"))));
                client.run(&format!("SADD bigset{number}{}", each(&|at| format!(" member-{at}"))));
                client.run(&format!("ZADD bigzset{number}{}", each(&|at| format!(" {at} member-{at}"))));
                client.run(&format!("XADD stream{number} * field {}", "v".repeat(3_000)));
            }
            client.run(&format!("XGROUP CREATE stream{number} group 0"));
            client.run(&format!("XREADGROUP GROUP group alice COUNT 5 STREAMS stream{number} >"));
            let members = |count: u32| (0..count).map(|at| format!(" member-{}", at * 2)).collect::<String>();
            client.run(&format!("SEXPIRE bigset{number} 1000 MEMBERS 1500{}", members(1_500)));
            client.run(&format!("HEXPIRE bighash{number} 1000 FIELDS 2 field1 field2"));
        }
    }
    client.run("SELECT 0");
}

/// One command that changes something somewhere.
fn change(client: &mut Client) {
    let number = client.random(300);
    let other = client.random(300);
    let big = client.random(4);
    let database = client.random(DATABASES as u32);
    let command = match client.random(58) {
        0 => format!("SET int{number} {other}"),
        1 => format!("INCR int{number}"),
        2 => format!("APPEND string{number} more"),
        3 => format!("SET string{number} {} EX 1000", "y".repeat(other as usize * 100)),
        4 => format!("DEL string{number} list{other}"),
        5 => format!("RPUSH list{number} {other}"),
        6 => format!("LPOP list{number}"),
        7 => format!("HSET hash{number} f{other} {other}"),
        8 => format!("HDEL hash{number} f1"),
        9 => format!("SADD set{number} {other}"),
        10 => format!("SPOP set{number}"),
        11 => format!("SADD ints{number} {other}"),
        12 => format!("ZADD zset{number} {other} b"),
        13 => format!("ZPOPMIN zset{number}"),
        14 => format!("RENAME string{number} string{other}"),
        15 => format!("COPY hash{number} hash{other} DB {database} REPLACE"),
        16 => format!("MOVE list{number} {database}"),
        17 => format!("EXPIRE zset{number} 100"),
        18 => format!("PEXPIRE set{number} {}", other % 5),
        19 => format!("PERSIST string{number}"),
        20 => format!("GETEX string{number} PX 3"),
        21 => format!("GETDEL int{number}"),
        22 => format!("MSET int{number} 1 int{other} 2"),
        23 => format!("SINTERSTORE set{number} set{other} bigset{big}"),
        24 => format!("SORT ints{number} STORE list{other}"),
        25 => format!("SETRANGE rope{big} {} changed", other * 1_000),
        26 => format!("APPEND rope{big} changed"),
        27 => format!("RPUSH biglist{big} {other}"),
        28 => format!("LSET biglist{big} {number} changed"),
        29 => format!("HSET bighash{big} field{number} changed"),
        30 => format!("HDEL bighash{big} field{number}"),
        31 => format!("SADD bigset{big} {other}"),
        32 => format!("SREM bigset{big} member-{number}"),
        33 => format!("ZADD bigzset{big} {other} member-{number}"),
        34 => format!("ZREM bigzset{big} member-{number}"),
        35 => format!("XADD stream{big} * field changed"),
        36 => format!("XREADGROUP GROUP group bob COUNT 1 STREAMS stream{big} >"),
        37 => format!("XTRIM stream{big} MAXLEN 30"),
        38 => format!("DEL bighash{big}"),
        39 => format!("RENAME bigset{big} bigset{}", other % 4),
        40 => format!("COPY bigzset{big} bigzset{} REPLACE", other % 4),
        41 => format!("PEXPIRE biglist{big} {}", other % 10),
        42 => format!("HPEXPIRE bighash{big} {} FIELDS 1 field{number}", other % 20),
        43 => format!("HPEXPIRE hash{number} {} FIELDS 1 f1", 1 + other % 20),
        44 => format!("SPEXPIRE bigset{big} {} MEMBERS 1 member-{number}", 1 + other % 20),
        45 => format!("SELECT {database}"),
        46 => format!("GET string{number}"),
        47 => format!("HGETALL bighash{big}"),
        48 => format!("PFADD string{number} {other}"),
        49 => format!("BITFIELD string{number} SET u8 0 {}", other % 256),
        50 => format!("LMOVE list{number} list{other} LEFT RIGHT"),
        51 if number < 8 => format!("SWAPDB {database} {}", other % DATABASES as u32),
        51 if number == 8 => "FLUSHDB".to_owned(),
        51 if number == 9 => "FLUSHALL".to_owned(),
        52 => {
            client.run("MULTI");
            client.run(&format!("HSET bighash{big} field{number} inside"));
            client.run(&format!("SET string{number} inside"));
            client.run(&format!("DEL list{other}"));
            "EXEC".to_owned()
        }
        53 => {
            // The second key is not declared: the script cannot wait for it.
            let script = b"redis.call('set', KEYS[1], 'script') redis.call('zadd', ARGV[1], 7, 'member-5')".as_slice();
            let (first, second) = (format!("string{number}"), format!("bigzset{big}"));
            client.words(&[b"EVAL", script, b"1", first.as_bytes(), second.as_bytes()]);
            return;
        }
        54 => format!("BLPOP list{number} 0.001"),
        55 => format!("ZRANGESTORE zset{number} bigzset{big} 0 {other}"),
        56 => format!("BLMPOP 1 1 list{number} LEFT"),
        _ => format!("SET string{number} {}", "z".repeat(other as usize)),
    };
    client.run(&command);
}

fn change_while_snapshots_are_taken(settings: &[(&str, &str)], rounds: usize) {
    let engine = engine(settings);
    let mail = with_mail(&engine);
    let done = Arc::new(AtomicBool::new(false));
    let waits = Arc::new(AtomicU64::new(0));
    fill(&mut Client::new(&engine, &mail, 0));
    let threads: Vec<_> = (0..CLIENTS)
        .map(|index| {
            let (engine, mail) = (Arc::clone(&engine), Arc::clone(&mail));
            let (done, waits) = (Arc::clone(&done), Arc::clone(&waits));
            thread::spawn(move || {
                let mut client = Client::new(&engine, &mail, index);
                while !done.load(Ordering::Relaxed) {
                    change(&mut client);
                    if client.random(20) == 0 {
                        client.engine.tick(&mut client.worker);
                    }
                    if client.random(20_000) == 0 {
                        fill(&mut client);
                    }
                }
                waits.fetch_add(client.waits as u64, Ordering::Relaxed);
            })
        })
        .collect();
    let mut worker = engine.worker(CLIENTS);
    for _ in 0..rounds {
        engine.read_clock(&mut worker);
        let mut copy = Vec::new();
        let begun = engine.begin_snapshot(&mut worker, options(), |held| copy = copy_of(&engine, held));
        let begun = begun.expect("there is one at a time");
        assert!(engine.begin_snapshot(&mut worker, options(), |_| panic!("not now")).is_none());
        check(&engine, begun, copy);
    }
    done.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().expect("no client fails"));
}

#[test]
fn is_the_data_of_its_moment() {
    change_while_snapshots_are_taken(&[], 12);
}

#[test]
fn is_the_data_of_its_moment_while_keys_are_evicted() {
    let settings = [("maxmemory", "12mb"), ("maxmemory-policy", "allkeys-lru")];
    change_while_snapshots_are_taken(&settings, 4);
}

#[test]
fn a_snapshot_that_is_given_up_leaves_no_trace() {
    let engine = engine(&[]);
    let mail = with_mail(&engine);
    let mut client = Client::new(&engine, &mail, 0);
    fill(&mut client);
    for round in 0..3 {
        let begun = engine.begin_snapshot(&mut client.worker, options(), |_| ()).expect("there is one at a time");
        client.run("SET int1 changed");
        if round == 1 {
            begun.snapshot().cancel();
            let error = begun.write_to(&engine, Vec::new()).map(|_| ()).expect_err("it was cancelled");
            assert_eq!(error.kind(), std::io::ErrorKind::Interrupted);
        } else {
            begun.give_up(&engine);
        }
        let mut copy = Vec::new();
        let begun = engine.begin_snapshot(&mut client.worker, options(), |held| copy = copy_of(&engine, held));
        check(&engine, begun.expect("the other one is over"), copy);
    }
}

/// A file that takes only so many bytes.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_fails_one_snapshot_and_not_the_next() {
    let engine = engine(&[]);
    let mail = with_mail(&engine);
    let mut client = Client::new(&engine, &mail, 0);
    fill(&mut client);
    let begun = engine.begin_snapshot(&mut client.worker, options(), |_| ()).expect("there is one at a time");
    let error = begun.write_to(&engine, Full(100_000)).map(|_| ()).expect_err("the disk is full");
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    let mut copy = Vec::new();
    let begun = engine.begin_snapshot(&mut client.worker, options(), |held| copy = copy_of(&engine, held));
    check(&engine, begun.expect("the other one is over"), copy);
}

/// What a bug has end in the middle of a write.
struct Broken(usize);

impl std::io::Write for Broken {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).expect("it is not written to so long");
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_bug_fails_one_snapshot_and_not_the_next() {
    let engine = engine(&[]);
    let mail = with_mail(&engine);
    let mut client = Client::new(&engine, &mail, 0);
    fill(&mut client);
    for written in [0, 1_000, 10_000, 100_000, 200_000] {
        let begun = engine.begin_snapshot(&mut client.worker, options(), |_| ()).expect("there is one at a time");
        client.run("SET int1 changed");
        assert!(begun.write_to(&engine, Broken(written)).is_err(), "{written}");
        let mut copy = Vec::new();
        let begun = engine.begin_snapshot(&mut client.worker, options(), |held| copy = copy_of(&engine, held));
        check(&engine, begun.expect("the other one is over"), copy);
    }
}

#[test]
fn whoever_wants_a_large_value_waits_for_it_and_no_longer() {
    let engine = engine(&[]);
    let mail = with_mail(&engine);
    let mut client = Client::new(&engine, &mail, 0);
    fill(&mut client);
    for command in [
        "HPEXPIRE bighash2 1 FIELDS 1 field9",
        "SPEXPIRE bigset2 1 MEMBERS 1 member-9",
        "ZPEXPIRE bigzset2 1 MEMBERS 1 member-9",
        "HPEXPIRE hash294 1 FIELDS 1 f294",
    ] {
        assert_eq!(client.run(command), "*1\r\n:1\r\n", "{command}");
    }
    thread::sleep(Duration::from_millis(5));
    let mut copy = Vec::new();
    let mut worker = engine.worker(1);
    let begun = engine.begin_snapshot(&mut worker, options(), |held| copy = copy_of(&engine, held)).unwrap();
    // Nobody writes yet. Who reads, or changes what is small, goes on; the others wait, as does who reads a value of
    // which members are due.
    assert_eq!(client.run("HGET bighash1 field7"), "$7\r\nvalue-7\r\n");
    assert_eq!(client.run("HSET hash1 f1 changed"), ":0\r\n");
    assert_eq!(client.run("HGET hash294 f294"), "$-1\r\n");
    let commands = [
        ("HSET bighash1 field7 changed", ":0\r\n"),
        ("DEL bigset1 int1", ":2\r\n"),
        ("HGET bighash2 field9", "$-1\r\n"),
        ("SINTERCARD 2 bigset2 bigset3", ":3999\r\n"),
        ("WATCH bigzset2", "+OK\r\n"),
    ];
    let waiting: Vec<_> = commands
        .into_iter()
        .enumerate()
        .map(|(index, (command, _))| {
            let (engine, mail) = (Arc::clone(&engine), Arc::clone(&mail));
            thread::spawn(move || {
                let mut client = Client::new(&engine, &mail, index);
                (client.run(command), client.waits)
            })
        })
        .collect();
    let is_waiting = |wanted: usize| {
        engine.clients.list().iter().filter(|client| client.paused.load(Ordering::Relaxed)).count() == wanted
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_waiting(commands.len()) {
        assert!(Instant::now() < deadline, "not all of them wait");
        assert!(!waiting.iter().any(thread::JoinHandle::is_finished), "nobody goes on yet");
        thread::yield_now();
    }
    // What has to stay keeps nobody busy. A tick may want another one soon for other reasons: it was slow, or a thread has
    // freed blocks of this one's.
    assert!((0..1_000).any(|_| !engine.tick(&mut client.worker).is_zero()));
    check(&engine, begun, copy);
    let outcomes: Vec<_> = waiting.into_iter().map(|thread| thread.join().expect("nobody waits for ever")).collect();
    assert_eq!(outcomes, commands.map(|(_, reply)| (reply.to_owned(), 1)));
}
