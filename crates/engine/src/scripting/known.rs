//! The scripts of EVAL that the server knows, by their SHA1. Knows no Lua.

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tenon_script::ScriptFlags;

/// A script's SHA1, in hexadecimal digits.
pub type Sha = [u8; 40];

/// Scripts that only EVAL has brought are forgotten, oldest first, when there are more than this: programs that write
/// their arguments into the script make a new one for each call.
const FROM_EVAL_MAX: usize = 500;

/// A script.
#[derive(Debug)]
pub struct Known {
    /// Its SHA1.
    pub sha: Sha,
    /// Its text.
    pub source: Box<[u8]>,
    /// What its first line says.
    pub flags: ScriptFlags,
    /// Where its body begins.
    pub body: usize,
    /// Whether it has called a command on the whole keyspace: next time it begins with all shards.
    pub needs_everything: AtomicBool,
    /// Whether SCRIPT FLUSH or younger scripts have made the server forget it.
    forgotten: AtomicBool,
}

impl Known {
    /// A script.
    pub fn new(sha: Sha, source: &[u8], flags: ScriptFlags, body: usize) -> Known {
        Known {
            sha,
            source: source.into(),
            flags,
            body,
            needs_everything: AtomicBool::new(false),
            forgotten: AtomicBool::new(false),
        }
    }

    /// Whether it is no longer known.
    pub fn is_forgotten(&self) -> bool {
        self.forgotten.load(Ordering::Acquire)
    }

    /// Its SHA1 as text.
    pub fn sha_text(&self) -> &str {
        std::str::from_utf8(&self.sha).expect("hexadecimal digits are ASCII")
    }
}

/// Who has brought a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// EVAL: it may be forgotten.
    Eval,
    /// SCRIPT LOAD: it stays.
    Load,
}

#[derive(Debug, Default)]
struct Shelf {
    all: HashMap<Sha, Arc<Known>>,
    /// Those that only EVAL has brought, oldest first.
    from_eval: VecDeque<Sha>,
    source_bytes: usize,
}

/// The scripts that are known.
#[derive(Debug, Default)]
pub struct KnownScripts {
    shelf: Mutex<Shelf>,
    evicted: AtomicU64,
    flushes: AtomicU64,
}

impl KnownScripts {
    /// The script of a SHA1.
    pub fn get(&self, sha: &Sha) -> Option<Arc<Known>> {
        self.shelf.lock().all.get(sha).cloned()
    }

    /// Adds a script that compiles; gives the one that is known from now on.
    pub fn add(&self, script: Known, origin: Origin) -> Arc<Known> {
        let mut shelf = self.shelf.lock();
        let sha = script.sha;
        if let Some(known) = shelf.all.get(&sha).cloned() {
            if origin == Origin::Load {
                shelf.from_eval.retain(|other| *other != sha);
            }
            return known;
        }
        if origin == Origin::Eval {
            if shelf.from_eval.len() >= FROM_EVAL_MAX
                && let Some(oldest) = shelf.from_eval.pop_front()
                && let Some(gone) = shelf.all.remove(&oldest)
            {
                gone.forgotten.store(true, Ordering::Release);
                shelf.source_bytes -= gone.source.len();
                self.evicted.fetch_add(1, Ordering::Relaxed);
            }
            shelf.from_eval.push_back(sha);
        }
        shelf.source_bytes += script.source.len();
        let script = Arc::new(script);
        shelf.all.insert(sha, Arc::clone(&script));
        script
    }

    /// Forgets all scripts (SCRIPT FLUSH).
    pub fn flush(&self) {
        let shelf = std::mem::take(&mut *self.shelf.lock());
        shelf.all.values().for_each(|script| script.forgotten.store(true, Ordering::Release));
        self.flushes.fetch_add(1, Ordering::Release);
    }

    /// How many times all were forgotten.
    pub fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::Acquire)
    }

    /// How many are known.
    pub fn count(&self) -> usize {
        self.shelf.lock().all.len()
    }

    /// How many were forgotten for younger ones.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    /// Bytes of memory that their texts take.
    pub fn memory(&self) -> usize {
        let shelf = self.shelf.lock();
        shelf.source_bytes + shelf.all.len() * (size_of::<Known>() + size_of::<Sha>() + size_of::<usize>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(number: usize) -> Known {
        let mut sha = [b'0'; 40];
        sha[..8].copy_from_slice(format!("{number:08}").as_bytes());
        Known::new(sha, b"return 1", ScriptFlags::UNSAID, 0)
    }

    #[test]
    fn evals_scripts_are_forgotten_oldest_first_and_loaded_ones_stay() {
        let known = KnownScripts::default();
        known.add(script(0), Origin::Load);
        for number in 1..=FROM_EVAL_MAX {
            known.add(script(number), Origin::Eval);
        }
        known.add(script(1), Origin::Load);
        let second = known.get(&script(2).sha).expect("it is known");
        known.add(script(600), Origin::Eval);
        known.add(script(601), Origin::Eval);
        assert!(known.get(&script(0).sha).is_some() && known.get(&script(1).sha).is_some());
        assert!(second.is_forgotten() && known.get(&second.sha).is_none());
        assert_eq!((known.count(), known.evicted()), (FROM_EVAL_MAX + 2, 1));
        known.flush();
        assert_eq!(known.count(), 0);
    }
}
