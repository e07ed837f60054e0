//! The keys of a batch of requests, loaded ahead and visited one after another. Knows no verb.

use super::BATCH_MAX;
use tenon_commands::memcache::admin::DATABASE;
use tenon_engine::Engine;
use tenon_engine::context::KeyCx;
use tenon_engine::store::hash::KeyHash;
use tenon_engine::wire::{Place, Span};
use tenon_engine::worker::Worker;

/// The keys of a batch, visited in order. The memory of the next `BATCH_MAX` is loaded before the first of them is.
pub(super) struct Keys<'a> {
    pub(super) engine: &'a Engine,
    hashes: &'a [KeyHash],
    /// The next key to visit.
    next: usize,
    /// Keys before this one are loaded, those from `loaded_from` on together.
    loaded: usize,
    loaded_from: usize,
    /// Whether what is due stays where it is.
    keeps_what_is_due: bool,
}

impl<'a> Keys<'a> {
    /// The keys of a batch, whose first is next.
    pub(super) fn new(engine: &'a Engine, hashes: &'a [KeyHash]) -> Keys<'a> {
        Keys { engine, hashes, next: 0, loaded: 0, loaded_from: 0, keeps_what_is_due: false }
    }

    /// Says whether writes wait, so that from here on all requests only read: they leave what is due where it is.
    pub(super) fn are_only_read(&mut self, only_read: bool) {
        self.keeps_what_is_due = only_read;
    }

    /// How many keys are visited or left out.
    pub(super) fn passed(&self) -> usize {
        self.next
    }

    /// Visits the next key.
    #[inline]
    pub(super) fn visit<R>(&mut self, worker: &mut Worker, key: &[u8], visit: impl FnOnce(&mut KeyCx<'_>) -> R) -> R {
        if self.next == self.loaded {
            self.load(worker);
        }
        let hash = self.hashes[self.next];
        worker.look_near(self.next.wrapping_sub(self.loaded_from));
        self.next += 1;
        let keeps_what_is_due = self.keeps_what_is_due;
        let result = self.engine.with_key(worker, DATABASE, hash, key, |key| {
            if keeps_what_is_due { key.keeping_what_is_due(visit) } else { visit(key) }
        });
        worker.look_anywhere();
        result
    }

    /// Leaves the keys before this one out.
    #[inline]
    pub(super) fn skip_to(&mut self, next: usize) {
        self.next = next;
        self.loaded = self.loaded.max(next);
    }

    #[inline]
    fn load(&mut self, worker: &mut Worker) {
        let until = self.hashes.len().min(self.next + BATCH_MAX);
        self.engine.prefetch_keys(worker, DATABASE, &self.hashes[self.next..until]);
        (self.loaded_from, self.loaded) = (self.next, until);
    }
}

/// A key or word: in the buffer, or in the scratch of the batch when it had to be decoded.
#[inline]
pub(super) fn bytes_of<'a>(span: Span, buf: &'a [u8], scratch: &'a [u8]) -> &'a [u8] {
    match span.resolve(buf, scratch) {
        Place::Bytes(bytes) => bytes,
        Place::Big(_) => unreachable!("only data blocks are taken out of the stream"),
    }
}
