//! How much memcached's clients may have under way of long values that have not wholly come. Knows no protocol.
//!
//! What somebody began to send, and does not end, is kept for as long as the connection, and counts until it is stored.
//! Beyond half of the memory for all of them no further one is begun, and one that grows is let go: memcached refuses it,
//! too, where items would have to make room. One alone is never refused, however long it is.

use crate::engine::Engine;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// All together take at most this part of `maxmemory`.
const SHARE_OF_MEMORY: usize = 2;

/// The values that are under way.
#[derive(Debug, Default)]
pub struct Uploads {
    /// Bytes of memory that they take together.
    held: Arc<AtomicUsize>,
}

impl Uploads {
    /// Notes one that takes so many bytes of memory, until what this gives is dropped.
    pub fn begin(&self, memory: usize) -> Upload {
        self.held.fetch_add(memory, Ordering::Relaxed);
        Upload { all: Arc::clone(&self.held), memory }
    }
}

/// One that is under way.
#[derive(Debug)]
pub struct Upload {
    all: Arc<AtomicUsize>,
    memory: usize,
}

impl Upload {
    /// Notes how many bytes of memory it takes now; never fewer than before.
    #[inline]
    pub fn holds(&mut self, memory: usize) {
        if memory > self.memory {
            self.all.fetch_add(memory - self.memory, Ordering::Relaxed);
            self.memory = memory;
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.all.fetch_sub(self.memory, Ordering::Relaxed);
    }
}

impl Engine {
    /// Whether the beginning of a value may be kept until its rest comes.
    #[inline]
    pub fn takes_uploads(&self) -> bool {
        has_room(self.uploads.held.load(Ordering::Relaxed), 0, self.config.maxmemory() as usize)
    }

    /// Whether this one may go on.
    pub fn has_room_for(&self, upload: &Upload) -> bool {
        has_room(self.uploads.held.load(Ordering::Relaxed), upload.memory, self.config.maxmemory() as usize)
    }
}

/// Whether those that take `held` bytes together, one of them `own`, are within their share of so much memory.
fn has_room(held: usize, own: usize, maxmemory: usize) -> bool {
    held == own || maxmemory == 0 || held <= maxmemory / SHARE_OF_MEMORY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn together_they_have_half_of_the_memory() {
        assert!(has_room(5, 1, 10));
        assert!(!has_room(6, 1, 10));
        assert!(!has_room(6, 0, 10), "no further one begins");
        assert!(has_room(600, 600, 10), "one alone may be long");
        assert!(has_room(600, 1, 0), "there is no limit");
    }

    #[test]
    fn what_has_ended_counts_no_more() {
        let uploads = Uploads::default();
        let (mut first, second) = (uploads.begin(5), uploads.begin(7));
        first.holds(9);
        first.holds(9);
        assert_eq!(uploads.held.load(Ordering::Relaxed), 16);
        drop(first);
        assert_eq!(uploads.held.load(Ordering::Relaxed), 7);
        drop(second);
        assert_eq!(uploads.held.load(Ordering::Relaxed), 0);
    }
}
