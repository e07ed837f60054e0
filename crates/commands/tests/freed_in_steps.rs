//! What is freed in the background is freed in counted steps: where that thread shares a core with a worker it lets it in at each
//! of them. Knows the commands, and nothing of how values are kept.

mod one_worker;

use one_worker::Server;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tenon_engine::ds::progress;

/// Elements of each value.
const LEN: usize = 20_000;

/// Steps from one call of who listens to the next, but where more are told of at once.
const STEPS: usize = 256;

/// How long a thing may take to be freed, on any machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// The most steps that may be told of at once.
const STEPS_MAX: usize = 4 * STEPS;

/// Steps that the thread has counted that frees, about.
static COUNTED: AtomicUsize = AtomicUsize::new(0);

fn listener(steps: usize) {
    if std::thread::current().name() == Some("reaper") {
        COUNTED.fetch_add(steps.clamp(STEPS, STEPS_MAX), Ordering::Relaxed);
    }
}

impl Server {
    fn ask(&mut self, line: &str) {
        self.run(&line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>());
    }
}

#[test]
fn every_kind_of_value_is_freed_in_counted_steps() {
    progress::listen(listener);
    // Nodes of one element, that few are many allocations.
    let limits = [("stream-node-max-entries", "1"), ("list-max-listpack-size", "1")];
    let mut server = Server::new(3, &limits);
    let server = &mut server;
    // Each by what makes one element of it, and how many steps one is at the least. Of what is counted in lots the listener is
    // told less: the count begins anew with each call.
    for (name, made_by, at_least) in [
        ("a set", &["SADD key member{}"][..], 0.9),
        ("a hash", &["HSET key field{} value"], 0.9),
        ("a sorted set", &["ZADD key {} member{}"], 0.9),
        ("a list", &["RPUSH key element{}"], 0.5),
        ("a stream", &["XADD key {}-1 field value"], 0.9),
        ("a group's consumers", &["XGROUP CREATECONSUMER key group consumer{}"], 0.9),
        // The entry, and that it waits in the group and for its consumer.
        ("a group", &["XADD key {}-1 field value", "XREADGROUP GROUP group one STREAMS key >"], 2.9),
        ("a database", &["SET key{} value"], 0.5),
    ] {
        server.ask("XGROUP CREATE key group 0 MKSTREAM");
        if !name.starts_with("a group") {
            server.ask("DEL key");
        }
        for number in 1..=LEN {
            made_by.iter().for_each(|line| server.ask(&line.replace("{}", &number.to_string())));
        }
        server.engine.reaper.wait_until(|| false, PATIENCE);
        let before = COUNTED.load(Ordering::Relaxed);
        server.ask(if name == "a database" { "FLUSHALL" } else { "DEL key" });
        server.engine.reaper.wait_until(|| false, PATIENCE);
        assert!(server.engine.reaper.is_idle(), "{name} is freed by now");
        let steps = COUNTED.load(Ordering::Relaxed) - before;
        assert!(steps as f64 >= at_least * LEN as f64, "{name}: {steps} steps");
    }
}
