//! Clients who watch what others do (memcached's `watch`): lines on what happens, each told to those who asked for its
//! kind. Knows no verb, and nobody waits for it: what a watcher does not take in time is left out, and it is told how much.

use crate::clients::{Client, Message};
use crate::clock::now_us;
use crate::engine::Engine;
use bytes::Bytes;
use parking_lot::RwLock;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// Most watchers; memcached's number.
const WATCHERS_MAX: usize = 20;

/// What can be watched; a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watched(u8);

impl Watched {
    /// Nothing.
    pub const NONE: Watched = Watched(0);
    /// Items that are looked for.
    pub const FETCHERS: Watched = Watched(1);
    /// Items that are stored, or not.
    pub const MUTATIONS: Watched = Watched(1 << 1);
    /// Items that go because memory is used up.
    pub const EVICTIONS: Watched = Watched(1 << 2);
    /// Connections that begin and end.
    pub const CONNECTIONS: Watched = Watched(1 << 3);
    /// Items that clients remove.
    pub const DELETIONS: Watched = Watched(1 << 4);

    /// Both sets together.
    pub const fn or(self, other: Watched) -> Watched {
        Watched(self.0 | other.0)
    }

    const fn meets(self, other: Watched) -> bool {
        self.0 & other.0 != 0
    }
}

/// Those who watch.
#[derive(Debug, Default)]
pub struct Watchers {
    /// What any of them watches.
    all: AtomicU8,
    list: RwLock<Vec<Watcher>>,
    /// The number of the last line.
    last: AtomicU64,
    /// Lines that were sent.
    sent: AtomicU64,
    /// Lines that were left out.
    skipped: AtomicU64,
    /// How many they are.
    count: AtomicUsize,
}

#[derive(Debug)]
struct Watcher {
    client: Arc<Client>,
    what: Watched,
    /// Lines that were left out since the last one that was not.
    skipped: AtomicU64,
}

/// What the watchers were told, all together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatcherCounts {
    /// How many they are.
    pub watchers: usize,
    /// Lines that they were sent.
    pub sent: u64,
    /// Lines that were left out.
    pub skipped: u64,
}

impl Watchers {
    /// Whether anybody watches this.
    #[inline]
    pub fn want(&self, what: Watched) -> bool {
        Watched(self.all.load(Ordering::Relaxed)).meets(what)
    }

    /// What they were told.
    pub fn counts(&self) -> WatcherCounts {
        WatcherCounts {
            watchers: self.count.load(Ordering::Relaxed),
            sent: self.sent.load(Ordering::Relaxed),
            skipped: self.skipped.load(Ordering::Relaxed),
        }
    }

    /// Changes the list and notes what it comes to.
    fn change<R>(&self, change: impl FnOnce(&mut Vec<Watcher>) -> R) -> R {
        let mut list = self.list.write();
        let result = change(&mut list);
        let all = list.iter().fold(Watched::NONE, |all, watcher| all.or(watcher.what));
        self.all.store(all.0, Ordering::Relaxed);
        self.count.store(list.len(), Ordering::Relaxed);
        result
    }
}

impl Engine {
    /// Lets a client watch; `false` when too many do.
    pub fn start_watching(&self, client: &Arc<Client>, what: Watched) -> bool {
        self.watchers.change(|list| {
            let has_room = list.len() < WATCHERS_MAX;
            if has_room {
                list.push(Watcher { client: Arc::clone(client), what, skipped: AtomicU64::new(0) });
            }
            has_room
        })
    }

    /// Lets a client watch no more.
    pub fn stop_watching(&self, client: &Client) {
        self.watchers.change(|list| list.retain(|watcher| watcher.client.id != client.id));
    }

    /// Tells those who watch this a line, which `write` writes from its type on. Any thread may, whatever it holds.
    #[cold]
    pub fn tell_watchers(&self, what: Watched, write: impl FnOnce(&mut Vec<u8>)) {
        let number = self.watchers.last.fetch_add(1, Ordering::Relaxed) + 1;
        let now_us = now_us();
        let mut line = Vec::with_capacity(200);
        // Microseconds are not filled up with zeros: memcached's form.
        write!(line, "ts={}.{} gid={number} ", now_us / 1_000_000, now_us % 1_000_000).expect("a Vec takes everything");
        write(&mut line);
        line.push(b'\n');
        let line = Bytes::from(line);
        for watcher in self.watchers.list.read().iter().filter(|watcher| watcher.what.meets(what)) {
            self.tell_watcher(watcher, &line);
        }
    }

    fn tell_watcher(&self, watcher: &Watcher, line: &Bytes) {
        let client = &watcher.client;
        let unsent = client.output_bytes.load(Ordering::Relaxed);
        let room = self.config.memcached_watch_buffer().saturating_sub(unsent) as usize;
        // Taken by one of those who tell it at the same time.
        let skipped = watcher.skipped.swap(0, Ordering::Relaxed);
        let head = match skipped {
            0 => Bytes::new(),
            _ => Bytes::from(format!("skipped={skipped}\n")),
        };
        let Some(is_first) = client.outbox.offer([head, line.clone()], room) else {
            watcher.skipped.fetch_add(skipped + 1, Ordering::Relaxed);
            self.watchers.skipped.fetch_add(1, Ordering::Relaxed);
            return;
        };
        self.watchers.sent.fetch_add(1, Ordering::Relaxed);
        if is_first {
            self.clients.tell(client.info.key, Message::Output);
        }
    }

    /// Tells a watcher who has taken all lines how many were left out meanwhile: it need not wait for the next line.
    pub(crate) fn tell_left_out(&self, client: &Client) {
        let list = self.watchers.list.read();
        let Some(watcher) = list.iter().find(|watcher| watcher.client.id == client.id) else { return };
        let skipped = watcher.skipped.swap(0, Ordering::Relaxed);
        if skipped == 0 {
            return;
        }
        let line = Bytes::from(format!("skipped={skipped}\n"));
        match client.outbox.offer([line, Bytes::new()], self.config.memcached_watch_buffer() as usize) {
            None => _ = watcher.skipped.fetch_add(skipped, Ordering::Relaxed),
            Some(true) => self.clients.tell(client.info.key, Message::Output),
            Some(false) => {}
        }
    }
}

/// Writes a key with all but its unreserved bytes escaped (RFC 3986).
pub fn write_encoded(key: &[u8], out: &mut Vec<u8>) {
    for &byte in key {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte);
        } else {
            write!(out, "%{byte:02X}").expect("a Vec takes everything");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::{ClientInfo, ConnectionKey, Dialect};
    use crate::config::{Config, Machine};
    use crate::session::Roles;
    use tenon_wire::OutBuf;

    fn engine() -> Engine {
        let machine = Machine::of_cores(1);
        let config = Config::new(machine);
        config.set(&[(b"memcached-watch-buffer", b"1024")], crate::config::Caller::Local).unwrap();
        Engine::new(config, &[], 1)
    }

    fn client(engine: &Engine) -> Arc<Client> {
        let key = ConnectionKey { worker: 0, index: 0, generation: 0 };
        let (remote, local) = (String::new(), String::new());
        engine.clients.add(ClientInfo { key, dialect: Dialect::Memcached, remote, local, fd: 0, unix: false }, 0)
    }

    /// The lines that a client was sent, without what differs from one time to the next.
    fn taken(client: &Client) -> Vec<String> {
        let mut out = OutBuf::new();
        client.outbox.take(&mut out);
        let text = String::from_utf8(out.tail().clone()).expect("lines are text");
        text.lines().map(|line| line.split_once(" gid=").map_or(line, |(_, rest)| rest).to_owned()).collect()
    }

    #[test]
    fn each_is_told_what_it_asked_for() {
        let engine = engine();
        let (one, two) = (client(&engine), client(&engine));
        assert!(engine.start_watching(&one, Watched::FETCHERS));
        assert!(engine.start_watching(&two, Watched::FETCHERS.or(Watched::EVICTIONS)));
        assert!(engine.watchers.want(Watched::EVICTIONS) && !engine.watchers.want(Watched::MUTATIONS));
        engine.tell_watchers(Watched::FETCHERS, |line| line.extend_from_slice(b"type=a"));
        engine.tell_watchers(Watched::EVICTIONS, |line| line.extend_from_slice(b"type=b"));
        assert_eq!(taken(&one), ["1 type=a"]);
        assert_eq!(taken(&two), ["1 type=a", "2 type=b"]);
        engine.stop_watching(&two);
        assert!(engine.watchers.want(Watched::FETCHERS) && !engine.watchers.want(Watched::EVICTIONS));
        assert_eq!(engine.watchers.counts(), WatcherCounts { watchers: 1, sent: 3, skipped: 0 });
    }

    #[test]
    fn who_does_not_take_the_lines_is_told_how_many_are_left_out() {
        let engine = engine();
        let slow = client(&engine);
        engine.start_watching(&slow, Watched::FETCHERS);
        for _ in 0..5 {
            engine.tell_watchers(Watched::FETCHERS, |line| line.extend_from_slice(&[b'x'; 400]));
        }
        assert_eq!(taken(&slow).len(), 2);
        engine.tell_watchers(Watched::FETCHERS, |line| line.extend_from_slice(b"type=a"));
        assert_eq!(taken(&slow), ["skipped=3", "6 type=a"]);
    }

    #[test]
    fn who_has_taken_all_lines_is_told_at_once_how_many_were_left_out() {
        let engine = engine();
        let slow = client(&engine);
        slow.set_roles(slow.roles().with(Roles::WATCHER));
        engine.start_watching(&slow, Watched::FETCHERS);
        for _ in 0..5 {
            engine.tell_watchers(Watched::FETCHERS, |line| line.extend_from_slice(&[b'x'; 400]));
        }
        assert_eq!(taken(&slow).len(), 2);
        engine.note_unsent(&slow, 900, 900);
        engine.note_unsent(&slow, 10, 900);
        assert_eq!(taken(&slow), <[&str; 0]>::default());
        engine.note_unsent(&slow, 0, 0);
        assert_eq!(taken(&slow), ["skipped=3"]);
        engine.tell_watchers(Watched::FETCHERS, |line| line.extend_from_slice(b"type=a"));
        assert_eq!(taken(&slow), ["6 type=a"]);
    }

    #[test]
    fn there_are_no_more_than_memcached_has() {
        let engine = engine();
        for _ in 0..WATCHERS_MAX {
            assert!(engine.start_watching(&client(&engine), Watched::FETCHERS));
        }
        assert!(!engine.start_watching(&client(&engine), Watched::FETCHERS));
    }
}
