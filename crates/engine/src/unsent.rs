//! How much output may wait for clients that send and do not read: a bound for each, and a share of the memory for all
//! of them together. And how much is still to become output, in calls that go on for long. Knows no socket and no reply.

use crate::clients::Client;
use crate::clock::now_us;
use crate::engine::Engine;
use crate::session::Roles;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Output of one call at which its batch stops until there is room for more, in bytes, as long as all together are within
/// their share.
const OUTPUT_PAUSE: usize = 1 << 20;
/// Both, the pause and the bound, for a client that still has to say who it is, in bytes: what it is told are errors,
/// and it has no right to memory for them. And the least that both are for anybody.
pub const OUTPUT_OF_STRANGER: usize = 64 << 10;
/// What a client may leave unread that has said who it is, in bytes, as long as there are not so many that the share is less
/// for each.
const UNSENT_LEAST: usize = 1 << 20;
/// What one client may leave unread as long as all together are within their share, in bytes. Some clients write a
/// million requests before they read an answer: less would let them wait for the server and it for them, for ever.
const UNSENT_MOST: usize = 64 << 20;
/// All clients' unread output together is at most this part of the memory; beyond that each has an equal
/// part of it.
const SHARE_OF_MEMORY: usize = 8;

/// The output that is unsent now.
#[derive(Debug, Default)]
pub struct Unsent {
    /// Bytes of all clients.
    total: AtomicUsize,
    /// What they take: a long answer's memory is freed when the last of it has left.
    memory: AtomicUsize,
    /// Bytes that long calls have taken so far, which are mostly their answers, and answers of such calls that are not yet
    /// known to be output.
    on_its_way: Arc<AtomicUsize>,
}

/// Bytes that somebody has taken for a while, which are no data: nobody makes room for them. They are given back when it goes.
#[derive(Debug, Default)]
pub struct OnItsWay {
    sum: Arc<AtomicUsize>,
    bytes: usize,
}

impl OnItsWay {
    /// They are so many now.
    pub fn set(&mut self, bytes: usize) {
        change(&self.sum, self.bytes, bytes);
        self.bytes = bytes;
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl Unsent {
    /// Bytes of all clients.
    pub(crate) fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        self.memory.load(Ordering::Relaxed)
    }

    /// Bytes that are on their way.
    pub(crate) fn on_its_way(&self) -> usize {
        self.on_its_way.load(Ordering::Relaxed)
    }

    /// Bytes that are freed without anybody making room: all clients' and those on their way.
    pub(crate) fn freed_soon(&self) -> usize {
        self.memory() + self.on_its_way()
    }
}

impl Engine {
    /// Notes how much of a client's output is unsent and what it takes, in bytes. Told by the client's own worker.
    pub fn note_unsent(&self, client: &Client, bytes: usize, memory: usize) {
        let before = client.output_bytes.swap(bytes as u64, Ordering::Relaxed) as usize;
        let memory_before = client.output_memory.swap(memory as u64, Ordering::Relaxed) as usize;
        change(&self.unsent.total, before, bytes);
        change(&self.unsent.memory, memory_before, memory);
        if bytes > 0 {
            self.recent_output.note(now_us() / 1_000, bytes as u64);
        }
        if bytes == 0 && before > 0 && client.roles().has(Roles::WATCHER) {
            self.tell_left_out(client);
        }
    }

    /// What somebody notes who takes memory for a while, beside or without a call that goes on; nothing yet.
    pub fn on_its_way(&self) -> OnItsWay {
        OnItsWay { sum: Arc::clone(&self.unsent.on_its_way), bytes: 0 }
    }

    /// Notes that so many bytes are on their way that were `before`; the last note of a call is that there are none.
    pub fn note_on_its_way(&self, before: usize, bytes: usize) {
        change(&self.unsent.on_its_way, before, bytes);
    }

    /// How much output an authenticated client may leave unread and still be answered, in bytes.
    pub fn unsent_max(&self) -> usize {
        let maxmemory = Some(self.config.maxmemory()).filter(|&bytes| bytes > 0);
        let memory = maxmemory.or(self.config.machine().memory_bytes).map(|bytes| bytes as usize);
        bound(self.unsent.total(), memory, || self.clients.count())
    }

    /// Whether a call that has so many bytes of output goes on only when there is room for more.
    #[inline]
    pub fn is_much_output(&self, bytes: usize) -> bool {
        bytes > OUTPUT_OF_STRANGER && bytes > self.unsent_max().min(OUTPUT_PAUSE)
    }
}

/// Brings a sum up to date in which one part was `before` and is `now`.
fn change(sum: &AtomicUsize, before: usize, now: usize) {
    // The sum of all parts is right also where the difference is below zero.
    sum.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
}

/// What one of so many clients may leave unread when all together leave `total` bytes, of this much memory if that is known.
fn bound(total: usize, memory: Option<usize>, clients: impl Fn() -> usize) -> usize {
    let share = memory.map_or(UNSENT_MOST, |bytes| bytes / SHARE_OF_MEMORY);
    if total > share {
        (share / clients().max(1)).clamp(OUTPUT_OF_STRANGER, UNSENT_LEAST)
    } else {
        share.clamp(UNSENT_LEAST, UNSENT_MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_follows_its_parts() {
        let sum = AtomicUsize::new(0);
        change(&sum, 0, 900);
        change(&sum, 0, 50);
        change(&sum, 900, 10);
        assert_eq!(sum.load(Ordering::Relaxed), 60);
        change(&sum, 50, 0);
        change(&sum, 10, 0);
        assert_eq!(sum.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn together_they_have_their_share() {
        const GIB: usize = 1 << 30;
        let bound = |total, memory, clients| super::bound(total, memory, || clients);
        assert_eq!(bound(0, Some(4 * GIB), 1), UNSENT_MOST);
        assert_eq!(bound(GIB / 2, Some(4 * GIB), 1), UNSENT_MOST);
        assert_eq!(bound(GIB / 2 + 1, Some(4 * GIB), 1), UNSENT_LEAST);
        assert_eq!(bound(0, Some(80 << 20), 1), 10 << 20, "one client alone does not take more than all may");
        assert_eq!(bound(0, Some(1), 1), UNSENT_LEAST);
        assert_eq!(bound(0, None, 1), UNSENT_MOST);
        assert_eq!(bound(UNSENT_MOST + 1, None, 1), UNSENT_LEAST);
        assert_eq!(bound(GIB / 2 + 1, Some(4 * GIB), 2_000), GIB / 4_000, "as much as there is for each of many");
        assert_eq!(bound(8 << 20, Some(1), 1_000), OUTPUT_OF_STRANGER);
    }
}
