//! Very many members of a collection that are due at once go in slices, between which its client is put off: what comes
//! of commands is as if they had all gone before.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tenon_engine::Engine;
use tenon_engine::args::OwnedArgs;
use tenon_engine::clients::{ClientInfo, ConnectionKey, Dialect, Message};
use tenon_engine::config::{Loader, Machine, Origin};
use tenon_engine::execute::Stopped;
use tenon_engine::session::Session;
use tenon_engine::wire::OutBuf;
use tenon_engine::worker::Worker;

/// Members that are due, several slices of them, and members that are not.
const DUE: u32 = 5_000;
const LEFT: u32 = 10;

struct Client {
    engine: Arc<Engine>,
    worker: Worker,
    session: Session,
    /// How often it was told to go on.
    told: Arc<AtomicUsize>,
    /// How often a command was put off.
    put_off: usize,
}

impl Client {
    fn new() -> Client {
        let mut loader = Loader::new(Machine::detect());
        for (name, value) in [("workers", "1"), ("shards", "16")] {
            loader.apply(name, &[value.to_owned()], &Origin::CommandLine).expect("a setting");
        }
        let engine = Arc::new(Engine::new(loader.finish().expect("settings"), tenon_commands::ALL, 7));
        let told = Arc::<AtomicUsize>::default();
        let post = Arc::clone(&told);
        engine.clients.set_post(Arc::new(move |_, message| {
            assert_eq!(message, Message::Unpause);
            post.fetch_add(1, Ordering::Relaxed);
        }));
        let info = ClientInfo {
            key: ConnectionKey { worker: 0, index: 0, generation: 0 },
            dialect: Dialect::Resp,
            remote: String::new(),
            local: String::new(),
            fd: 0,
            unix: false,
        };
        let session = engine.open_session(engine.clients.add(info, 0));
        let worker = engine.worker(0);
        Client { engine, worker, session, told, put_off: 0 }
    }

    fn run(&mut self, words: &[&str]) -> String {
        let args = OwnedArgs::new(words.iter().map(|word| word.as_bytes()));
        let mut out = OutBuf::new();
        loop {
            self.engine.read_clock(&mut self.worker);
            let target = self.engine.resolve(&args.view());
            match self.engine.run_alone(&mut self.worker, &mut self.session, target, &args.view(), &mut out) {
                Stopped::Paused => {
                    self.put_off += 1;
                    assert_eq!(self.told.load(Ordering::Relaxed), self.put_off, "it is told to go on each time");
                    assert!(out.is_empty(), "what is put off has answered nothing");
                }
                _ => break,
            }
        }
        out.contiguous().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
    }

    /// Fills a key and gives most of its members deadlines that have passed when this returns.
    fn fill(&mut self, key: &str) {
        let (add, expire, deadline) = match &key[..1] {
            "h" => ("HSET", "HPEXPIREAT", "FIELDS"),
            "s" => ("SADD", "SPEXPIREAT", "MEMBERS"),
            _ => ("ZADD", "ZPEXPIREAT", "MEMBERS"),
        };
        let names: Vec<String> = (0..DUE + LEFT).map(|number| format!("m{number:05}")).collect();
        let mut words = vec![add, key];
        for name in &names {
            match &key[..1] {
                "h" => words.extend([&name[..], "v"]),
                "s" => words.push(name),
                _ => words.extend(["1", &name[..]]),
            }
        }
        let count = DUE.to_string();
        let mut due_ms = 0;
        let all_get_it = (0..20).any(|_| {
            // Where this thread had no core for so long they go at once.
            self.run(&["DEL", key]);
            self.run(&words);
            self.engine.read_clock(&mut self.worker);
            due_ms = self.worker.clock.now_ms + 300;
            let due = due_ms.to_string();
            let mut words = vec![expire, key, &due, deadline, &count];
            words.extend(names[..DUE as usize].iter().map(|name| &name[..]));
            self.run(&words).matches(":1\r\n").count() == DUE as usize
        });
        assert!(all_get_it, "all of them get their deadline");
        while self.worker.clock.now_ms <= due_ms {
            std::thread::yield_now();
            self.engine.read_clock(&mut self.worker);
        }
    }

    #[track_caller]
    fn check(&mut self, words: &[&str], answer: &str, is_put_off: bool) {
        let before = self.put_off;
        assert_eq!(self.run(words), answer, "{words:?}");
        let times = self.put_off - before;
        // The last slice goes with the command.
        let expected = if is_put_off { (DUE as usize).div_ceil(1_024) - 1 } else { 0 };
        assert_eq!(times, expected, "{words:?}");
    }
}

#[test]
fn commands_are_put_off_until_few_are_left_that_are_due() {
    let mut client = Client::new();
    client.fill("h");
    client.check(&["HLEN", "h"], ":10\r\n", true);
    client.check(&["HLEN", "h"], ":10\r\n", false);
    client.fill("s");
    client.check(&["SADD", "s", "more"], ":1\r\n", true);
    client.fill("z");
    client.check(&["ZRANGE", "z", "0", "0"], "*1\r\n$6\r\nm05000\r\n", true);
    assert_eq!(client.worker.stats.all.expired_members.get(), 3 * u64::from(DUE));
}

#[test]
fn so_are_commands_on_several_keys_transactions_and_scripts() {
    let mut client = Client::new();
    client.fill("s1");
    client.check(&["SUNIONSTORE", "to", "s1", "none"], ":10\r\n", true);
    client.fill("h1");
    client.run(&["MULTI"]);
    client.check(&["HLEN", "h1"], "+QUEUED\r\n", false);
    client.check(&["EXEC"], "*1\r\n:10\r\n", true);
    client.fill("z1");
    client.check(&["EVAL", "return redis.call('ZCARD', KEYS[1])", "1", "z1"], ":10\r\n", true);
}

#[test]
fn a_key_of_which_all_is_due_goes_at_once_and_one_in_another_database_is_seen() {
    let mut client = Client::new();
    client.run(&["SELECT", "3"]);
    client.fill("h2");
    client.check(&["HLEN", "h2"], ":10\r\n", true);
    client.fill("h3");
    let mut words = vec!["HDEL".to_owned(), "h3".to_owned()];
    words.extend((DUE..DUE + LEFT).map(|number| format!("m{number:05}")));
    // What was left goes first: the key consists of what is due, and then of nothing.
    client.run(&["SWAPDB", "0", "3"]);
    client.run(&["SELECT", "0"]);
    client.check(&["HLEN", "h3"], ":10\r\n", true);
}
