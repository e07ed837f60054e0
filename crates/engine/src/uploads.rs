//! How much memcached's clients may have under way of values that have not wholly come. Knows no protocol.
//!
//! What somebody began to send, and does not end, is kept for as long as the connection, and counts until it is stored.
//! Long values (which are taken out of the stream) and short ones have a part of the memory each. Beyond it no further one
//! is begun, and one that grows is let go: memcached refuses it, too, where items would have to make room. One alone is
//! never refused, however long it is.
//!
//! Those of which nothing has come for some seconds give way to the others: beyond a smaller part of the memory the
//! connections that have waited longest are closed.

use crate::clients::{Awaited, Client, Dialect};
use crate::engine::Engine;
use crate::worker::Worker;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// All long ones together take at most this part of `maxmemory`.
const SHARE_OF_LONG: usize = 2;
/// All short ones together.
const SHARE_OF_SHORT: usize = 4;
/// All those together that have stalled.
const SHARE_OF_STALLED: usize = 8;
/// One has stalled when nothing has come of it for so many milliseconds: longer than clients usually wait for an answer.
const STALLED_AFTER_MS: u64 = 5_000;
/// How often a worker looks for such, in milliseconds: there may be many clients.
const LOOK_EVERY_MS: u64 = 1_000;
/// A worker that has not looked for so many milliseconds was busy, and has not read what may have come meanwhile.
const LATE_MS: u64 = 3_000;

/// The values that are under way.
#[derive(Debug, Default)]
pub struct Uploads {
    /// Bytes of memory that the long ones take together.
    long: Arc<AtomicUsize>,
    /// And the short ones.
    short: Arc<AtomicUsize>,
}

impl Uploads {
    /// Notes a long one that takes so many bytes of memory, until what this gives is dropped.
    pub fn begin(&self, memory: usize) -> Upload {
        Upload::new(&self.long, memory)
    }

    /// The same for a short one.
    pub fn begin_short(&self, memory: usize) -> Upload {
        Upload::new(&self.short, memory)
    }

    fn all(&self) -> usize {
        self.long.load(Ordering::Relaxed) + self.short.load(Ordering::Relaxed)
    }
}

/// One that is under way.
#[derive(Debug)]
pub struct Upload {
    all: Arc<AtomicUsize>,
    memory: usize,
}

impl Upload {
    fn new(all: &Arc<AtomicUsize>, memory: usize) -> Upload {
        all.fetch_add(memory, Ordering::Relaxed);
        Upload { all: Arc::clone(all), memory }
    }

    /// Bytes of memory that it was noted to take.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// Notes how many bytes of memory it takes now.
    #[inline]
    pub fn holds(&mut self, memory: usize) {
        if memory > self.memory {
            self.all.fetch_add(memory - self.memory, Ordering::Relaxed);
        } else if memory < self.memory {
            self.all.fetch_sub(self.memory - memory, Ordering::Relaxed);
        }
        self.memory = memory;
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.all.fetch_sub(self.memory, Ordering::Relaxed);
    }
}

impl Engine {
    /// Whether the beginning of a long value may be kept until its rest comes.
    #[inline]
    pub fn takes_uploads(&self) -> bool {
        has_room(self.uploads.long.load(Ordering::Relaxed), 0, self.config.maxmemory() as usize / SHARE_OF_LONG)
    }

    /// Whether this long one may go on.
    pub fn has_room_for(&self, upload: &Upload) -> bool {
        let share = self.config.maxmemory() as usize / SHARE_OF_LONG;
        has_room(self.uploads.long.load(Ordering::Relaxed), upload.memory, share)
    }

    /// Whether the beginning of a short value may be kept, or kept on where this is of one already.
    #[inline]
    pub fn takes_short_uploads(&self, own: Option<&Upload>) -> bool {
        let own = own.map_or(0, Upload::memory);
        let share = self.config.maxmemory() as usize / SHARE_OF_SHORT;
        has_room(self.uploads.short.load(Ordering::Relaxed), own, share)
    }

    /// Closes those of this worker's clients that have stalled in the middle of a value, if all such take too much. Each
    /// worker looks after its own: it knows whether it has read what they have sent.
    pub(crate) fn close_stalled_uploads(&self, worker: &mut Worker) {
        let now_ms = worker.clock.monotonic_ms();
        let since_ms = now_ms.saturating_sub(worker.looked_for_stalled_ms);
        if since_ms < LOOK_EVERY_MS {
            return;
        }
        worker.looked_for_stalled_ms = now_ms;
        let share = self.config.maxmemory() as usize / SHARE_OF_STALLED;
        if share == 0 || self.uploads.all() <= share || since_ms >= LATE_MS {
            return;
        }
        let mut stalled = self.clients.list();
        stalled.retain(|client| client.info.key.worker as usize == worker.index && has_stalled(client, now_ms));
        let going = longest_beyond(share / self.workers(), stalled);
        let bytes: u64 = going.iter().map(|client| client.input_bytes.load(Ordering::Relaxed)).sum();
        if !going.is_empty() {
            let clients = going.len();
            tracing::warn!(clients, bytes, "closed: they stalled in the middle of values, which take too much memory");
        }
        for client in going {
            self.clients.kill(&client);
        }
    }
}

/// Whether those that take `held` bytes together, one of them `own`, are within their share of the memory; 0: it has no limit.
fn has_room(held: usize, own: usize, share: usize) -> bool {
    held == own || share == 0 || held <= share
}

/// Whether nothing has come for long of a value that a client has begun.
fn has_stalled(client: &Client, now_ms: u64) -> bool {
    client.info.dialect == Dialect::Memcached
        && client.awaited() == Awaited::Data
        && now_ms.saturating_sub(client.input_ms.load(Ordering::Relaxed)) >= STALLED_AFTER_MS
        && !client.paused.load(Ordering::Relaxed)
        && !client.killed.load(Ordering::Relaxed)
}

/// Of clients that have stalled those that have to go so that the others together are within so many bytes: who has been
/// silent for longest goes first.
fn longest_beyond(share: usize, mut stalled: Vec<Arc<Client>>) -> Vec<Arc<Client>> {
    let bytes = |client: &Arc<Client>| client.input_bytes.load(Ordering::Relaxed) as usize;
    let mut left: usize = stalled.iter().map(bytes).sum();
    stalled.sort_by_key(|client| client.input_ms.load(Ordering::Relaxed));
    let goes = |client: &Arc<Client>| {
        let goes = left > share;
        left -= if goes { bytes(client).min(left) } else { 0 };
        goes
    };
    stalled.into_iter().take_while(goes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::{ClientInfo, Clients, ConnectionKey};
    use crate::config::{Caller, Config, Machine};

    #[test]
    fn together_they_have_their_share_of_the_memory() {
        assert!(has_room(5, 1, 5));
        assert!(!has_room(6, 1, 5));
        assert!(!has_room(6, 0, 5), "no further one begins");
        assert!(has_room(600, 600, 5), "one alone may be long");
        assert!(has_room(600, 1, 0), "there is no limit");
    }

    #[test]
    fn what_has_ended_counts_no_more() {
        let uploads = Uploads::default();
        let (mut first, second, mut short) = (uploads.begin(5), uploads.begin(7), uploads.begin_short(100));
        first.holds(9);
        first.holds(9);
        short.holds(3);
        assert_eq!((uploads.long.load(Ordering::Relaxed), uploads.all()), (16, 19));
        drop(first);
        assert_eq!(uploads.all(), 10);
        drop((second, short));
        assert_eq!(uploads.all(), 0);
    }

    /// A client of which 10 bytes are kept, the last of which have come at this time.
    fn client(clients: &Clients, input_ms: u64, awaited: Awaited, dialect: Dialect) -> Arc<Client> {
        let info = ClientInfo {
            key: ConnectionKey { worker: 0, index: 0, generation: 0 },
            dialect,
            remote: String::new(),
            local: String::new(),
            fd: 0,
            unix: false,
        };
        let client = clients.add(info, 0);
        client.input_bytes.store(10, Ordering::Relaxed);
        client.input_ms.store(input_ms, Ordering::Relaxed);
        client.set_awaited(awaited);
        client
    }

    #[test]
    fn who_has_been_silent_for_longest_goes() {
        let clients = Clients::default();
        let all = [
            client(&clients, 3_000, Awaited::Data, Dialect::Memcached),
            client(&clients, 1_000, Awaited::Data, Dialect::Memcached),
            client(&clients, 0, Awaited::Request, Dialect::Memcached),
            client(&clients, 0, Awaited::Data, Dialect::Resp),
            client(&clients, 6_000, Awaited::Data, Dialect::Memcached),
        ];
        let mut stalled = all.to_vec();
        stalled.retain(|client| has_stalled(client, 8_000));
        let ids = |clients: &[Arc<Client>]| -> Vec<u64> { clients.iter().map(|client| client.id).collect() };
        assert_eq!(ids(&stalled), [all[0].id, all[1].id]);
        assert_eq!(ids(&longest_beyond(20, stalled.clone())), []);
        assert_eq!(ids(&longest_beyond(19, stalled.clone())), [all[1].id]);
        assert_eq!(ids(&longest_beyond(10, stalled.clone())), [all[1].id]);
        assert_eq!(ids(&longest_beyond(9, stalled)), [all[1].id, all[0].id]);
    }

    #[test]
    fn those_that_have_stalled_give_way_when_they_take_much() {
        const MIB: usize = 1 << 20;
        let config = Config::new(Machine { cores: 1, memory_bytes: None, directory: "/".into() });
        config.set(&[(b"maxmemory", b"80mb")], Caller::Local).expect("a setting");
        let engine = Engine::new(config, &[], 1);
        let mut worker = engine.worker(0);
        let start_ms = worker.clock.monotonic_ms();
        let slow = client(&engine.clients, start_ms, Awaited::Data, Dialect::Memcached);
        slow.input_bytes.store(9 * MIB as u64, Ordering::Relaxed);
        let steady = client(&engine.clients, start_ms + 10_000, Awaited::Data, Dialect::Memcached);
        steady.input_bytes.store(9 * MIB as u64, Ordering::Relaxed);
        let mut first = engine.uploads.begin(9 * MIB);
        let mut is_closed = |at_ms: u64| {
            worker.clock.now_ns = (start_ms + at_ms) * 1_000_000;
            // Whatever time somebody has set meanwhile.
            worker.clock.now_ms = 1_000;
            engine.close_stalled_uploads(&mut worker);
            slow.killed.load(Ordering::Relaxed)
        };
        // The first look comes late; then it has not been silent for long.
        assert!(!is_closed(0) && !is_closed(2_000) && !is_closed(4_000));
        // A worker that was busy has not read what may have come.
        assert!(!is_closed(9_000));
        first.holds(10 * MIB);
        assert!(!is_closed(10_000), "all of them together take little");
        let _second = engine.uploads.begin_short(9 * MIB);
        // It takes no more than its share by itself.
        assert!(!is_closed(11_000));
        slow.input_bytes.store(11 * MIB as u64, Ordering::Relaxed);
        assert!(!is_closed(11_500), "not so often");
        assert!(is_closed(12_000));
        assert!(!steady.killed.load(Ordering::Relaxed));
    }
}
