//! A server under a mixed load is killed at random moments and started again: what it confirmed is there, and nothing is
//! half there. Knows nothing of its files.
//!
//! `TENON_CRASH_ROUNDS` says how often (20 by default; 200 and more for a long run).

mod check;
mod faults;
mod load;
mod tally;

use crate::load::{Dice, MemcacheWriter, PATIENCE, RespWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tenon_client::{Memcache, Resp};
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

/// Clients of each protocol.
const WRITERS: u64 = 4;
/// What `appendfsync no` may, where the writer is held up.
const NO_LOSS: Duration = Duration::from_secs(2);
/// What `appendfsync everysec` may lose, with the second that the disk may be slow for.
const EVERYSEC_LOSS: Duration = Duration::from_secs(2);

fn rounds() -> u64 {
    std::env::var("TENON_CRASH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(20)
}

/// The folder of a test's data, which is deleted when the test has passed.
struct Data(PathBuf);

impl Data {
    fn new(name: &str) -> Data {
        let path = std::env::temp_dir().join(format!("tenon-crash-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder can be made");
        Data(path)
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        if !thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

fn start(data: &Path, settings: &[(&str, &str)]) -> Server {
    let dir = data.to_str().expect("a path of our own");
    let base = [("appendonly", "yes"), ("dir", dir), ("workers", "2")];
    let all: Vec<(&str, &str)> = base.into_iter().chain(settings.iter().copied()).collect();
    // It answers when it has loaded.
    Server::tenon(&all).unwrap_or_else(|error| panic!("no start on {}: {error}", data.display()))
}

/// Kills the server again and again; `lasts_ms` is how long a round lasts, at least and at most, `loss` is what may be
/// missing that was confirmed so shortly before the kill, unless the server says that nothing is.
fn kill_again_and_again(name: &str, settings: &[(&str, &str)], rounds: u64, lasts_ms: (u64, u64), loss: Duration) {
    let mut loss = loss;
    let data = Data::new(name);
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ u64::from(std::process::id()));
    let writers: Vec<Arc<RespWriter>> = (0..WRITERS).map(RespWriter::new).collect();
    let item_writers: Vec<Arc<MemcacheWriter>> = (0..WRITERS).map(MemcacheWriter::new).collect();
    let mut promised = Instant::now();
    for round in 0..=rounds {
        let server = start(&data.0, settings);
        let resp = server.address(Dialect::Redis).unwrap().clone();
        let memcache = server.address(Dialect::Memcache).unwrap().clone();
        for writer in &writers {
            check::check_resp(writer, &mut writer.connect(&resp).expect("connected"), promised);
        }
        let mut items = Memcache::connect_to(&memcache, PATIENCE).expect("connected");
        for writer in &item_writers {
            check::check_memcache(writer, &mut items, promised);
            writer.prepare(&mut items).expect("the items are made");
        }
        if round == rounds {
            break;
        }
        let mut threads = Vec::new();
        for writer in &writers {
            let (writer, resp, dice) = (Arc::clone(writer), resp.clone(), Dice(dice.roll(u64::MAX) | 1));
            threads.push(thread::spawn(move || writer.write(&resp, dice)));
        }
        for writer in &item_writers {
            let (writer, memcache, dice) = (Arc::clone(writer), memcache.clone(), Dice(dice.roll(u64::MAX) | 1));
            threads.push(thread::spawn(move || writer.write(&memcache, dice)));
        }
        let lasts = Duration::from_millis(lasts_ms.0 + dice.roll(lasts_ms.1 - lasts_ms.0));
        let until = Instant::now() + lasts;
        let mut admin = Resp::connect_to(&resp, PATIENCE).expect("connected");
        if tenon_testkit::info::field(&mut admin, "persistence", "aof_buffer_outlives_process") == "1" {
            loss = Duration::ZERO;
        }
        while Instant::now() < until {
            // Whether it is done or one is under way is not asked: the kill is to come anywhere in it.
            let command: &[u8] = if dice.roll(3) == 0 { b"BGSAVE" } else { b"BGREWRITEAOF" };
            admin.call(&[command]).expect("an answer");
            thread::sleep(Duration::from_millis(1 + dice.roll(lasts_ms.0)));
        }
        let of_items = item_writers.iter().flat_map(|writer| &writer.tallies);
        let tallies = writers.iter().flat_map(|writer| &writer.tallies).chain(of_items);
        // A log whose writer the disk holds up keeps replies back, so that what is lost stays as little: where any may be, time
        // goes on with the last confirmation.
        let last = tallies.filter_map(tally::Tally::last_confirmed).max().filter(|_| !loss.is_zero());
        promised = last.unwrap_or_else(Instant::now).checked_sub(loss).unwrap_or_else(Instant::now);
        // SIGKILL: what the process had not given to the kernel is gone.
        drop(server);
        threads.into_iter().for_each(|thread| thread.join().expect("a writer ends with its connection"));
    }
    let sent: u64 = writers.iter().flat_map(|writer| &writer.tallies).map(tally::Tally::sent).sum();
    // How many there are depends on the disk and on how busy the machine is.
    assert!(sent > rounds * 20, "{sent} writes in {rounds} rounds show little");
}

#[test]
fn what_is_confirmed_with_always_is_there() {
    kill_again_and_again("always", &[("appendfsync", "always")], rounds() * 3 / 4, (20, 400), Duration::ZERO);
}

#[test]
fn what_is_older_than_two_seconds_is_there_with_everysec() {
    kill_again_and_again("everysec", &[("appendfsync", "everysec")], rounds() / 4, (2_500, 4_000), EVERYSEC_LOSS);
}

#[test]
fn what_is_confirmed_with_no_is_there_where_memory_outlives_the_server() {
    kill_again_and_again("no", &[("appendfsync", "no")], rounds() / 2, (20, 400), NO_LOSS);
}
