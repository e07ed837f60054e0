//! How much output may wait for clients that send and do not read: a bound for each, and a share of the memory for all
//! of them together. Knows no socket and no reply.

use crate::clients::Client;
use crate::engine::Engine;
use crate::session::Roles;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a client may always leave unread, in bytes, and all that one may that is not authenticated.
pub const UNSENT_LEAST: usize = 1 << 20;
/// What one client may leave unread as long as all together are within their share, in bytes. Some clients write a
/// million requests before they read an answer: less would let them wait for the server and it for them, for ever.
const UNSENT_MOST: usize = 64 << 20;
/// All clients' unread output together is at most this part of the memory; beyond that each has the least.
const SHARE_OF_MEMORY: usize = 8;

/// The output that is unsent now.
#[derive(Debug, Default)]
pub struct Unsent {
    /// Bytes of all clients.
    total: AtomicUsize,
}

impl Unsent {
    /// Bytes of all clients.
    pub(crate) fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }
}

impl Engine {
    /// Notes how much of a client's output is unsent, in bytes. Told by the client's own worker.
    pub fn note_unsent(&self, client: &Client, bytes: usize) {
        let before = client.output_bytes.swap(bytes as u64, Ordering::Relaxed) as usize;
        if bytes >= before {
            self.unsent.total.fetch_add(bytes - before, Ordering::Relaxed);
        } else {
            self.unsent.total.fetch_sub(before - bytes, Ordering::Relaxed);
            if bytes == 0 && client.roles().has(Roles::WATCHER) {
                self.tell_left_out(client);
            }
        }
    }

    /// How much output an authenticated client may leave unread and still be answered, in bytes.
    pub fn unsent_max(&self) -> usize {
        let maxmemory = Some(self.config.maxmemory()).filter(|&bytes| bytes > 0);
        let memory = maxmemory.or(self.config.machine().memory_bytes).map(|bytes| bytes as usize);
        bound(self.unsent.total(), memory)
    }
}

/// What one client may leave unread when all together leave `total` bytes, of this much memory if that is known.
fn bound(total: usize, memory: Option<usize>) -> usize {
    let share = memory.map_or(UNSENT_MOST, |bytes| bytes / SHARE_OF_MEMORY);
    if total > share { UNSENT_LEAST } else { share.clamp(UNSENT_LEAST, UNSENT_MOST) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn together_they_have_their_share() {
        const GIB: usize = 1 << 30;
        assert_eq!(bound(0, Some(4 * GIB)), UNSENT_MOST);
        assert_eq!(bound(GIB / 2, Some(4 * GIB)), UNSENT_MOST);
        assert_eq!(bound(GIB / 2 + 1, Some(4 * GIB)), UNSENT_LEAST);
        assert_eq!(bound(0, Some(80 << 20)), 10 << 20, "one client alone does not take more than all may");
        assert_eq!(bound(0, Some(1)), UNSENT_LEAST);
        assert_eq!(bound(0, None), UNSENT_MOST);
        assert_eq!(bound(UNSENT_MOST + 1, None), UNSENT_LEAST);
    }
}
