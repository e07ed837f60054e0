//! A thread that frees what is too much for a worker to free between two commands. Knows no command.

use crate::snapshot::yield_to_workers;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tenon_store::entry::Entry;
use tenon_store::keyspace::Keyspace;

/// How long whoever waits sleeps between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// What takes long to free.
pub enum Garbage {
    /// All keys of a database in one shard.
    Keyspace(Keyspace),
    /// A key with a value of many allocations.
    Entry(Entry),
    /// Many allocations that a value consisted of which is still there.
    Part(Box<dyn Send>),
}

/// Frees in the background. Its thread starts with the first thing to free and ends after the reaper is dropped.
#[derive(Default)]
pub struct Reaper {
    thread: OnceLock<Option<Sender<Vec<Garbage>>>>,
    /// Things handed over and not freed yet.
    pending: Arc<AtomicUsize>,
}

impl Reaper {
    /// Frees these soon; at once where no thread could be started.
    pub fn free(&self, garbage: Vec<Garbage>) {
        let thread = self.thread.get_or_init(|| {
            let (sender, receiver) = channel::<Vec<Garbage>>();
            let pending = Arc::clone(&self.pending);
            let run = move || {
                // Nobody waits for it but who has no memory left, and then workers rest.
                yield_to_workers();
                for garbage in receiver {
                    for thing in garbage {
                        drop(thing);
                        pending.fetch_sub(1, Ordering::Release);
                    }
                    // Blocks of this thread's own heap that others freed meanwhile.
                    tenon_ds::slab::collect();
                }
            };
            std::thread::Builder::new().name("reaper".to_owned()).spawn(run).ok().map(|_| sender)
        });
        let count = garbage.len();
        self.pending.fetch_add(count, Ordering::Relaxed);
        if let Some(thread) = thread {
            thread.send(garbage).expect("the thread lives as long as the sender");
        } else {
            drop(garbage);
            self.pending.fetch_sub(count, Ordering::Release);
        }
    }

    /// Whether nothing is being freed.
    pub fn is_idle(&self) -> bool {
        self.pending.load(Ordering::Acquire) == 0
    }

    /// Waits until `enough` or until all is freed, at most this long; tells whether it is enough. Returns at once when
    /// nothing is being freed.
    pub fn wait_until(&self, enough: impl Fn() -> bool, at_most: Duration) -> bool {
        let started = Instant::now();
        loop {
            if enough() {
                return true;
            }
            if self.is_idle() {
                // What was freed last may have made it enough.
                return enough();
            }
            if started.elapsed() >= at_most {
                return false;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_store::entry::{Meta, NewValue};
    use tenon_store::hash::KeyHasher;
    use tenon_store::types::Object;

    #[test]
    fn frees_on_its_own_thread() {
        let hasher = KeyHasher::new(1);
        let bytes = bytes::Bytes::from(vec![0; 20_000]);
        let garbage: Vec<Garbage> = (0..3)
            .map(|_| {
                let mut keyspace = Keyspace::default();
                for number in 0..100u32 {
                    let key = number.to_le_bytes();
                    let value = NewValue::Object(Box::new(Object::Shared(bytes.clone())));
                    keyspace.insert(hasher.hash(&key), &key, value, &Meta::default(), 0);
                }
                Garbage::Keyspace(keyspace)
            })
            .collect();
        assert!(!bytes.is_unique());
        let reaper = Reaper::default();
        assert!(!reaper.wait_until(|| false, Duration::from_secs(600)), "there is nothing to wait for");
        reaper.free(garbage);
        assert!(reaper.wait_until(|| bytes.is_unique(), Duration::from_secs(600)));
    }
}
