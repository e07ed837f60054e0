//! What goes on beside the clients and must change nothing of what they see. Knows no history.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tenon_client::{Resp, Value};
use tenon_testkit::patience::PATIENCE;
use tenon_testkit::random::Random;
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

/// One thing that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// BGSAVE and BGREWRITEAOF, again and again.
    Saving,
    /// `maxmemory` comes and goes, and at times is so small that writes are refused.
    Memory,
    /// CLIENT PAUSE WRITE of some milliseconds.
    Pauses,
    /// Scripts of several milliseconds on other keys, mostly declared.
    Scripts,
    /// Large keys come and go, and commands that go through all of the keyspace.
    Keyspace,
}

/// What goes on now.
pub struct Disturbed {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Disturbed {
    /// Ends it.
    pub fn end(self) {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().expect("it has not failed");
    }
}

/// What a script idles that takes some milliseconds.
const LONG: &str = "redis.call('INCR', KEYS[1]) for _ = 1, 300000 do end return redis.call('INCR', KEYS[2])";

impl Disturbance {
    /// Begins it, on a connection of its own.
    pub fn begin(self, server: &Server, seed: u64) -> Disturbed {
        let address = server.address(Dialect::Redis).expect("it is spoken");
        let mut resp = Resp::connect_to(address, Some(PATIENCE)).expect("connected");
        let ends = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&ends);
        let mut random = Random(seed | 1);
        let thread = thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                self.once(&mut resp, &mut random);
                thread::sleep(Duration::from_micros(random.below(4_000) as u64));
            }
            call(&mut resp, "CONFIG SET maxmemory 0");
        });
        Disturbed { ends, thread }
    }

    fn once(self, resp: &mut Resp, random: &mut Random) {
        match self {
            // Whether one is under way is not asked.
            Disturbance::Saving => drop(call(resp, random.of(&["BGSAVE", "BGREWRITEAOF", "BGREWRITEAOF"]))),
            Disturbance::Memory => {
                let limit = random.of(&["0", "0", "1gb", "2gb", "1", "1"]);
                call(resp, &format!("CONFIG SET maxmemory {limit}"));
            }
            Disturbance::Pauses => {
                let ms = random.below(4);
                call(resp, &format!("CLIENT PAUSE {ms} WRITE"));
                if random.one_in(2) {
                    call(resp, "CLIENT UNPAUSE");
                }
                thread::sleep(Duration::from_millis(3));
            }
            Disturbance::Scripts => {
                let keys =
                    ["2".to_owned(), format!("other{}", random.below(500)), format!("other{}", random.below(500))];
                let words: Vec<&[u8]> =
                    [&b"EVAL"[..], LONG.as_bytes()].into_iter().chain(keys.iter().map(String::as_bytes)).collect();
                let _ = resp.call(&words).expect("an answer");
            }
            Disturbance::Keyspace => {
                let command = random.of(&["KEYS *", "DBSIZE", "SCAN 0 COUNT 1000", "RANDOMKEY", "INFO", "SAVE"]);
                call(resp, command);
            }
        }
    }
}

fn call(resp: &mut Resp, command: &str) -> Value {
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    resp.call(&words).expect("an answer")
}
