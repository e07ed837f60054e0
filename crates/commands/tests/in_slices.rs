//! Commands that look at everything run in slices: another client of the same worker is answered in between, and what comes
//! of them is as if they had run at once.

use std::collections::BTreeSet;
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

const KEYS: usize = 10_000;

struct Server {
    engine: Arc<Engine>,
    worker: Worker,
    /// How often the first client was told to go on.
    told: Arc<AtomicUsize>,
}

impl Server {
    fn new() -> Server {
        let mut loader = Loader::new(Machine::detect());
        for (name, value) in [("workers", "1"), ("shards", "16"), ("slowlog-log-slower-than", "0")] {
            loader.apply(name, &[value.to_owned()], &Origin::CommandLine).expect("a setting");
        }
        let engine = Arc::new(Engine::new(loader.finish().expect("settings"), tenon_commands::ALL, 7));
        let told = Arc::<AtomicUsize>::default();
        let post = Arc::clone(&told);
        engine.clients.set_post(Arc::new(move |to, message| {
            assert_eq!((to.index, message), (1, Message::Unblocked));
            post.fetch_add(1, Ordering::Relaxed);
        }));
        let worker = engine.worker(0);
        Server { engine, worker, told }
    }

    fn client(&self, index: u32) -> Session {
        let key = ConnectionKey { worker: 0, index, generation: 0 };
        let (remote, local) = (String::new(), String::new());
        let info = ClientInfo { key, dialect: Dialect::Resp, remote, local, fd: 0, unix: false };
        self.engine.open_session(self.engine.clients.add(info, 0))
    }

    fn run(&mut self, session: &mut Session, line: &str) -> (Stopped, String) {
        let args = OwnedArgs::new(line.split(' '));
        let mut out = OutBuf::new();
        let target = self.engine.resolve(&args.view());
        let stopped = self.engine.run_alone(&mut self.worker, session, target, &args.view(), &mut out);
        (stopped, text(&out))
    }

    /// Fills it with keys, and gives their names.
    fn fill(&mut self) -> BTreeSet<String> {
        let mut session = self.client(0);
        let names: BTreeSet<String> = (0..KEYS).map(|number| format!("key:{number}")).collect();
        names.iter().for_each(|name| assert_eq!(self.run(&mut session, &format!("SET {name} v")).1, "+OK\r\n"));
        names
    }
}

fn text(out: &OutBuf) -> String {
    let mut slices = [std::io::IoSlice::new(&[]); 256];
    let filled = out.io_slices(&mut slices);
    slices[..filled].iter().map(|slice| String::from_utf8_lossy(slice).into_owned()).collect()
}

/// The strings of an array of them, whose length is as announced.
fn strings(reply: &str) -> Vec<String> {
    let mut lines = reply.split("\r\n");
    let count: usize =
        lines.next().and_then(|head| head.strip_prefix('*')).expect("an array").parse().expect("a length");
    let strings: Vec<String> = lines.skip(1).step_by(2).map(str::to_owned).collect();
    assert_eq!(strings.len(), count);
    strings
}

#[test]
fn another_client_is_answered_between_two_slices_of_keys() {
    let mut server = Server::new();
    let names = server.fill();
    let (mut asks, mut other) = (server.client(1), server.client(2));
    let (stopped, reply) = server.run(&mut asks, "KEYS *");
    assert_eq!((stopped, &*reply), (Stopped::Parked, ""), "it is not done after a slice");
    let mut out = OutBuf::new();
    let mut turns = 1;
    loop {
        assert_eq!(server.told.load(Ordering::Relaxed), turns, "it is told to go on, once for each slice");
        // What stays is listed once, whatever others do meanwhile.
        let (stopped, reply) = server.run(&mut other, &format!("SET new:{turns} v"));
        assert_eq!((stopped, &*reply), (Stopped::No, "+OK\r\n"));
        if server.engine.finish_wait(&mut server.worker, &mut asks, &mut out) {
            break;
        }
        assert!(out.is_empty() && asks.is_parked() && asks.is_sure_of_answer());
        turns += 1;
    }
    assert!(turns > 5, "{turns} slices of some thousand keys");
    assert!(!asks.is_parked());
    let listed = strings(&text(&out));
    let old: Vec<&String> = listed.iter().filter(|name| name.starts_with("key:")).collect();
    assert_eq!(old.len(), KEYS);
    assert_eq!(old.into_iter().cloned().collect::<BTreeSet<_>>(), names);
    assert_eq!(server.run(&mut asks, "PING").1, "+PONG\r\n");
    let slow = server.engine.slowlog.last(KEYS);
    let shown = slow.iter().filter(|slow| slow.args == [b"KEYS".to_vec(), b"*".to_vec()]).count();
    assert_eq!(shown, 1, "the slow log has it once, when it is done");
}

#[test]
fn what_few_keys_match_is_as_if_it_had_run_at_once() {
    let mut server = Server::new();
    server.fill();
    let mut asks = server.client(1);
    assert_eq!(server.run(&mut asks, "KEYS key:77?7").0, Stopped::Parked);
    let mut out = OutBuf::new();
    while !server.engine.finish_wait(&mut server.worker, &mut asks, &mut out) {}
    let mut listed = strings(&text(&out));
    listed.sort_unstable();
    assert_eq!(listed, (0..10).map(|digit| format!("key:77{digit}7")).collect::<Vec<_>>());
    assert_eq!(server.run(&mut asks, "SELECT 3").1, "+OK\r\n");
    assert_eq!(server.run(&mut asks, "KEYS *"), (Stopped::No, "*0\r\n".to_owned()), "one slice is enough for nothing");
}

#[test]
fn within_a_transaction_and_a_script_nobody_comes_between() {
    let mut server = Server::new();
    server.fill();
    let mut asks = server.client(1);
    server.run(&mut asks, "MULTI");
    assert_eq!(server.run(&mut asks, "KEYS key:1234").1, "+QUEUED\r\n");
    let executed = server.run(&mut asks, "EXEC");
    assert_eq!(executed, (Stopped::No, "*1\r\n*1\r\n$8\r\nkey:1234\r\n".to_owned()));
    let (stopped, reply) = server.run(&mut asks, "EVAL return(#redis.call('KEYS','*')) 0");
    assert_eq!((stopped, reply), (Stopped::No, format!(":{KEYS}\r\n")));
    assert_eq!(server.told.load(Ordering::Relaxed), 0);
}

#[test]
fn a_client_that_leaves_in_the_middle_leaves_nothing() {
    let mut server = Server::new();
    server.fill();
    let mut asks = server.client(1);
    assert_eq!(server.run(&mut asks, "KEYS *").0, Stopped::Parked);
    server.engine.end_session(&mut asks);
    let mut out = OutBuf::new();
    assert!(
        !server.engine.finish_wait(&mut server.worker, &mut asks, &mut out),
        "a letter that comes late is for nobody"
    );
    assert!(out.is_empty());
}
