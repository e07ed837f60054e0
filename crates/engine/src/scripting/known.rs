//! The scripts of EVAL that the server knows, by their SHA1. Knows no Lua.

use super::reaching::Reaching;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tenon_script::ScriptFlags;

/// A script's SHA1, in hexadecimal digits.
pub type Sha = [u8; 40];

/// Scripts that only EVAL has brought are forgotten when there are more than this, the one first that was not used for
/// longest: programs that write their arguments into the script make a new one for each call.
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
    /// How far it has reached.
    pub reaching: Reaching,
    /// What [`KnownScripts::clock`] was when it was used last.
    used: AtomicU64,
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
            reaching: Reaching::new(),
            used: AtomicU64::new(0),
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
    /// Those that only EVAL has brought, each behind when it was used last, as far as that is known here: it may have been
    /// used since.
    from_eval: BTreeSet<(u64, Sha)>,
    source_bytes: usize,
}

impl Shelf {
    /// Takes away the script of EVAL's that was not used for longest.
    fn pop_unused(&mut self) -> Option<Arc<Known>> {
        loop {
            let (noted, sha) = self.from_eval.pop_first()?;
            let used = self.all.get(&sha)?.used.load(Ordering::Relaxed);
            if used == noted {
                let gone = self.all.remove(&sha)?;
                self.source_bytes -= gone.source.len();
                return Some(gone);
            }
            self.from_eval.insert((used, sha));
        }
    }
}

/// The scripts that are known.
#[derive(Debug, Default)]
pub struct KnownScripts {
    shelf: Mutex<Shelf>,
    evicted: AtomicU64,
    flushes: AtomicU64,
    /// Goes up with each script of EVAL's that is new. Uses in between are equally old: so a script that is called often
    /// is written to no more often than scripts come.
    clock: AtomicU64,
}

impl KnownScripts {
    /// The script of a SHA1.
    pub fn get(&self, sha: &Sha) -> Option<Arc<Known>> {
        self.shelf.lock().all.get(sha).cloned()
    }

    /// Notes that a script is used now.
    #[inline]
    pub fn note_use(&self, script: &Known) {
        let now = self.clock.load(Ordering::Relaxed);
        if script.used.load(Ordering::Relaxed) != now {
            script.used.store(now, Ordering::Relaxed);
        }
    }

    /// Adds a script that compiles; gives the one that is known from now on.
    pub fn add(&self, script: Known, origin: Origin) -> Arc<Known> {
        let mut shelf = self.shelf.lock();
        let sha = script.sha;
        if let Some(known) = shelf.all.get(&sha).cloned() {
            if origin == Origin::Load {
                shelf.from_eval.retain(|(_, other)| *other != sha);
            }
            self.note_use(&known);
            return known;
        }
        if origin == Origin::Eval {
            if shelf.from_eval.len() >= FROM_EVAL_MAX
                && let Some(gone) = shelf.pop_unused()
            {
                gone.forgotten.store(true, Ordering::Release);
                self.evicted.fetch_add(1, Ordering::Relaxed);
            }
            // Between the uses before and those to come.
            let now = self.clock.fetch_add(2, Ordering::Relaxed) + 1;
            script.used.store(now, Ordering::Relaxed);
            shelf.from_eval.insert((now, sha));
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

    /// How many were forgotten for others since the statistics were reset.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    /// Forgets how many were forgotten (CONFIG RESETSTAT).
    pub(crate) fn reset_evicted(&self) {
        self.evicted.store(0, Ordering::Relaxed);
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
    fn evals_scripts_are_forgotten_by_their_last_use_and_loaded_ones_stay() {
        let known = KnownScripts::default();
        known.add(script(0), Origin::Load);
        for number in 1..=FROM_EVAL_MAX {
            known.add(script(number), Origin::Eval);
        }
        known.add(script(1), Origin::Load);
        let [second, third] = [2, 3].map(|number| known.get(&script(number).sha).expect("it is known"));
        known.note_use(&second);
        known.add(script(600), Origin::Eval);
        known.add(script(601), Origin::Eval);
        assert!(known.get(&script(0).sha).is_some() && known.get(&script(1).sha).is_some());
        assert!(third.is_forgotten() && known.get(&third.sha).is_none());
        assert!(!second.is_forgotten(), "it was used since");
        assert_eq!((known.count(), known.evicted()), (FROM_EVAL_MAX + 2, 1));
        // One that is used now and then outlives any number of others, and none but the others go.
        for number in 700..700 + 3 * FROM_EVAL_MAX {
            known.add(script(number), Origin::Eval);
            if number % 100 == 0 {
                known.note_use(&second);
            }
        }
        assert!(!second.is_forgotten());
        assert_eq!((known.count(), known.evicted()), (FROM_EVAL_MAX + 2, 1 + 3 * FROM_EVAL_MAX as u64));
        known.reset_evicted();
        assert_eq!(known.evicted(), 0);
        known.flush();
        assert_eq!(known.count(), 0);
    }
}
