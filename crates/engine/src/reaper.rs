//! A thread that frees what is too much for a worker to free between two commands. Knows no command.

use crate::meanwhile;
use crate::snapshot::yield_to_workers;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use tenon_store::entry::Entry;
use tenon_store::keyspace::Keyspace;

/// How long whoever waits sleeps between two looks, and the reaper for what is still read.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// What takes long to free.
pub enum Garbage {
    /// All keys of a database in one shard.
    Keyspace(Keyspace),
    /// A key with a value of many allocations.
    Entry(Entry),
    /// Many allocations that a value consisted of which is still there, and about how many bytes they take.
    Part(Box<dyn Send>, usize),
}

impl Garbage {
    /// Whether it is a value that somebody still reads: it takes its memory until then.
    fn is_read(&self) -> bool {
        matches!(self, Garbage::Entry(entry) if entry.view().is_read())
    }
}

/// What is to be freed next, nothing where `waits` for what is still read and it is time to look at that, `None` at the end.
fn next(garbage: &Receiver<Weighed>, waits: bool) -> Option<Weighed> {
    if !waits {
        return garbage.recv().ok();
    }
    match garbage.recv_timeout(LOOK_AGAIN) {
        Ok(garbage) => Some(garbage),
        Err(RecvTimeoutError::Timeout) => Some(Weighed::new()),
        Err(RecvTimeoutError::Disconnected) => None,
    }
}

/// Frees in the background. Its thread starts with the first thing to free and ends after the reaper is dropped.
#[derive(Default)]
pub struct Reaper {
    thread: Mutex<Option<Sender<Weighed>>>,
    pending: Arc<Pending>,
    /// Things that were ever handed over, and how many of them were freed when statistics began anew.
    freed: AtomicUsize,
    forgotten: AtomicUsize,
}

/// What was handed over and not freed yet.
#[derive(Default)]
struct Pending {
    things: AtomicUsize,
    /// About how many bytes they take.
    bytes: AtomicUsize,
}

impl Pending {
    fn is_freed(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.things.fetch_sub(1, Ordering::Release);
    }
}

/// Keys of which one's memory is looked at in a keyspace, and keyspaces of which that is done.
const KEYS_WEIGHED: usize = 4;
const KEYSPACES_WEIGHED: usize = 16;

/// What is to be freed, with about how many bytes it takes.
type Weighed = Vec<(Garbage, usize)>;

/// About how many bytes a keyspace takes, without a look at all of it.
pub(crate) fn weight_of(keyspace: &Keyspace) -> usize {
    weight(keyspace, mean_of_keys([keyspace]))
}

fn weight(keyspace: &Keyspace, mean_of_keys: usize) -> usize {
    keyspace.overhead() + keyspace.len() * mean_of_keys
}

/// About how many bytes a key of these takes.
fn mean_of_keys<'a>(keyspaces: impl IntoIterator<Item = &'a Keyspace>) -> usize {
    let (mut keys, mut bytes) = (0, 0);
    for keyspace in keyspaces.into_iter().filter(|keyspace| !keyspace.is_empty()).take(KEYSPACES_WEIGHED) {
        keyspace.scan(0, KEYS_WEIGHED, |entry| {
            keys += 1;
            bytes += entry.rough_memory();
        });
    }
    bytes / keys.max(1)
}

/// About how many bytes each takes, without a look at all of it.
fn weighed(garbage: Vec<Garbage>) -> Weighed {
    let mean = mean_of_keys(garbage.iter().filter_map(|thing| match thing {
        Garbage::Keyspace(keyspace) => Some(keyspace),
        Garbage::Entry(_) | Garbage::Part(..) => None,
    }));
    let weigh = |thing: &Garbage| match thing {
        Garbage::Keyspace(keyspace) => weight(keyspace, mean),
        Garbage::Entry(entry) => entry.view().rough_memory(),
        Garbage::Part(_, bytes) => *bytes,
    };
    garbage.into_iter().map(|thing| (weigh(&thing), thing)).map(|(bytes, thing)| (thing, bytes)).collect()
}

/// Starts the thread, if one can be had.
fn start(pending: &Arc<Pending>) -> Option<Sender<Weighed>> {
    let (sender, receiver) = channel::<Weighed>();
    let pending = Arc::clone(pending);
    let run = move || {
        // Nobody waits for it but who has no memory left, and then workers rest.
        yield_to_workers();
        meanwhile::stay_in_background();
        let mut read = Weighed::new();
        while let Some(garbage) = next(&receiver, !read.is_empty()) {
            for (thing, bytes) in std::mem::take(&mut read).into_iter().chain(garbage) {
                if thing.is_read() {
                    read.push((thing, bytes));
                } else {
                    drop(thing);
                    pending.is_freed(bytes);
                }
            }
            // Blocks of this thread's own heap that others freed meanwhile.
            tenon_ds::slab::collect();
        }
    };
    std::thread::Builder::new().name("reaper".to_owned()).spawn(run).ok().map(|_| sender)
}

impl Reaper {
    /// Frees these soon; at once where no thread can be had.
    pub fn free(&self, garbage: Vec<Garbage>) {
        let garbage = weighed(garbage);
        self.pending.things.fetch_add(garbage.len(), Ordering::Relaxed);
        self.pending.bytes.fetch_add(garbage.iter().map(|(_, bytes)| bytes).sum(), Ordering::Relaxed);
        self.freed.fetch_add(garbage.len(), Ordering::Relaxed);
        let mut thread = self.thread.lock();
        if thread.is_none() {
            *thread = start(&self.pending);
        }
        if let Some(thread) = &*thread {
            thread.send(garbage).expect("the thread lives as long as the sender");
        } else {
            drop(thread);
            garbage.into_iter().for_each(|(thing, bytes)| {
                drop(thing);
                self.pending.is_freed(bytes);
            });
        }
    }

    /// Whether nothing is being freed.
    pub fn is_idle(&self) -> bool {
        self.pending() == 0
    }

    /// How many things are to be freed.
    pub fn pending(&self) -> usize {
        self.pending.things.load(Ordering::Acquire)
    }

    /// About how many bytes they take, which are in use until then.
    pub fn pending_bytes(&self) -> usize {
        self.pending.bytes.load(Ordering::Relaxed)
    }

    /// How many things were freed since the start or CONFIG RESETSTAT.
    pub fn freed(&self) -> usize {
        self.ever_freed().saturating_sub(self.forgotten.load(Ordering::Relaxed))
    }

    fn ever_freed(&self) -> usize {
        self.freed.load(Ordering::Relaxed).saturating_sub(self.pending())
    }

    /// Begins to count those that are freed anew.
    pub(crate) fn reset_freed(&self) {
        self.forgotten.store(self.ever_freed(), Ordering::Relaxed);
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
    #[test]
    fn what_is_read_is_pending_until_its_readers_have_ended() {
        const PATIENCE: Duration = Duration::from_secs(600);
        let bytes = bytes::Bytes::from(vec![0; 20_000]);
        let entry_of = || {
            let value = NewValue::Object(Box::new(Object::Shared(bytes.clone())));
            Entry::new(b"key", value, &Meta::default())
        };
        let mut read = entry_of();
        let lent = read.view_mut().lend().expect("nobody waits");
        let reaper = Reaper::default();
        reaper.free(vec![Garbage::Entry(read)]);
        reaper.free(vec![Garbage::Entry(entry_of())]);
        // The other one does not wait for it.
        reaper.wait_until(|| reaper.pending() < 2, PATIENCE);
        assert_eq!(reaper.pending(), 1);
        assert!(reaper.pending_bytes() > 0 && !bytes.is_unique());
        drop(lent);
        assert!(reaper.wait_until(|| bytes.is_unique(), PATIENCE));
        reaper.wait_until(|| false, PATIENCE);
        assert_eq!((reaper.pending(), reaper.pending_bytes()), (0, 0));
    }
}
