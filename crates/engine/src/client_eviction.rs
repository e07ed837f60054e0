//! `maxmemory-clients`: when all clients together take too much memory, those that take most are closed. Knows no
//! protocol, and not what the memory holds.

use crate::clients::Client;
use crate::clock::monotonic_ns;
use crate::engine::Engine;
use crate::worker::Worker;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How often the clients' memory is summed up, in milliseconds: there may be many.
const PERIOD_MS: u64 = 50;
/// Where keys are about to be evicted it is summed up anew when so many times as long has passed as the last sum took.
const REST_FACTOR: u64 = 8;

/// What was seen of the clients' memory.
#[derive(Debug, Default)]
pub(crate) struct ClientsSeen {
    at_ms: u64,
    /// Not before this is it looked at again because of keys.
    again_ns: u64,
    leaving: Leaving,
}

/// Bytes of clients that are being closed: they are on their way back, and no key has to go for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Leaving {
    /// Of output that is not sent.
    pub(crate) output: usize,
    /// Of all else.
    pub(crate) others: usize,
}

impl Leaving {
    fn add(&mut self, client: &Client) {
        let output = client.output_bytes.load(Ordering::Relaxed) as usize;
        self.output += output;
        self.others += (client.memory() as usize).saturating_sub(output);
    }

    pub(crate) fn all(self) -> usize {
        self.output + self.others
    }
}

impl Engine {
    /// Closes as many clients as it takes to come below `maxmemory-clients`, the largest first, none of those with
    /// CLIENT NO-EVICT. Called by one worker, now and then.
    pub(crate) fn evict_clients(&self, worker: &Worker) {
        if self.config.maxmemory_clients() == 0 {
            return;
        }
        let now_ms = worker.clock.now_ms;
        let mut seen = self.clients_seen.lock();
        if now_ms.abs_diff(seen.at_ms) >= PERIOD_MS {
            seen.at_ms = now_ms;
            seen.leaving = self.look_at_clients(worker);
        }
    }

    /// The same before keys are evicted, so that none goes for memory that clients beyond their limit take. Tells what those
    /// that are being closed take still.
    pub(crate) fn evict_clients_before_keys(&self, worker: &Worker) -> Leaving {
        if self.config.maxmemory_clients() == 0 {
            return Leaving::default();
        }
        // Whoever comes while another one looks waits for what that one finds.
        let mut seen = self.clients_seen.lock();
        let started_ns = monotonic_ns();
        if started_ns >= seen.again_ns {
            seen.leaving = self.look_at_clients(worker);
            let ended_ns = monotonic_ns();
            seen.again_ns = ended_ns + REST_FACTOR * (ended_ns - started_ns);
        }
        seen.leaving
    }

    /// What clients that are being closed took when somebody looked last.
    pub(crate) fn clients_leaving(&self) -> Leaving {
        if self.config.maxmemory_clients() == 0 { Leaving::default() } else { self.clients_seen.lock().leaving }
    }

    fn look_at_clients(&self, worker: &Worker) -> Leaving {
        let limit = limit_bytes(self.config.maxmemory_clients(), self.config.maxmemory());
        let (mut leaving, mut total) = (Leaving::default(), 0);
        if limit == 0 {
            return leaving;
        }
        // Those that are about to be closed count no more: what they take is on its way back.
        self.clients.each(|client| if client.is_gone() { leaving.add(client) } else { total += client.memory() });
        if total > limit {
            let mut clients = self.clients.list();
            clients.retain(|client| !client.is_gone());
            for client in largest_beyond(limit, clients) {
                tracing::warn!(client = client.id, bytes = client.memory(), "closed: maxmemory-clients is reached");
                worker.stats.all.clients_evicted.add(1);
                leaving.add(&client);
                self.clients.kill(&client);
            }
        }
        leaving
    }
}

/// The limit in bytes; a negative setting is a percentage of `maxmemory`, which may be without limit itself.
fn limit_bytes(setting: i64, maxmemory: u64) -> u64 {
    match u64::try_from(setting) {
        Ok(bytes) => bytes,
        Err(_) => (u128::from(maxmemory) * u128::from(setting.unsigned_abs()) / 100) as u64,
    }
}

/// The clients that have to go so that the others together are within the limit.
fn largest_beyond(limit: u64, clients: Vec<Arc<Client>>) -> Vec<Arc<Client>> {
    let mut sized: Vec<(u64, Arc<Client>)> = clients.into_iter().map(|client| (client.memory(), client)).collect();
    let mut total: u64 = sized.iter().map(|(bytes, _)| bytes).sum();
    if total <= limit {
        return Vec::new();
    }
    sized.retain(|(_, client)| !client.no_evict.load(Ordering::Relaxed));
    sized.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    let mut going = Vec::new();
    for (bytes, client) in sized {
        if total <= limit {
            break;
        }
        total -= bytes;
        going.push(client);
    }
    going
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::{ClientInfo, Clients, ConnectionKey, Dialect};

    #[test]
    fn percentages_are_of_maxmemory() {
        assert_eq!(limit_bytes(0, 1_000), 0);
        assert_eq!(limit_bytes(77, 1_000), 77);
        assert_eq!(limit_bytes(-5, 1_000), 50);
        assert_eq!(limit_bytes(-100, u64::MAX), u64::MAX);
        assert_eq!(limit_bytes(-5, 0), 0, "without maxmemory there is no limit");
    }

    #[test]
    fn the_largest_go_and_no_more_than_necessary() {
        let clients = Clients::default();
        let client = |input: u64| {
            let info = ClientInfo {
                key: ConnectionKey { worker: 0, index: 0, generation: 0 },
                dialect: Dialect::Resp,
                remote: String::new(),
                local: String::new(),
                fd: 0,
                unix: false,
            };
            let client = clients.add(info, 0);
            client.input_bytes.store(input, Ordering::Relaxed);
            client
        };
        let all = [client(0), client(1 << 20), client(3 << 20), client(2 << 20), client(8 << 20)];
        all[4].no_evict.store(true, Ordering::Relaxed);
        let total: u64 = all.iter().map(|client| client.memory()).sum();
        let going =
            |limit: u64| -> Vec<u64> { largest_beyond(limit, all.to_vec()).iter().map(|client| client.id).collect() };
        assert_eq!(going(total), []);
        assert_eq!(going(total - 1), [all[2].id]);
        assert_eq!(going(total - (3 << 20) - 10_000), [all[2].id, all[3].id]);
        // Whoever is not to be evicted stays, though that is not enough.
        assert_eq!(going(1), [all[2].id, all[3].id, all[1].id, all[0].id]);
    }
}
