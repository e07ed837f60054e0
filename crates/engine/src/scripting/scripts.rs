//! What the server knows of scripts and libraries, and which of them run.

use super::known::{KnownScripts, Sha};
use super::libraries::Libraries;
use super::running::Running;
use crate::session::WatchedKey;
use crate::watch::DirtyFlag;
use parking_lot::Mutex;
use sha1::{Digest, Sha1};
use std::sync::atomic::{AtomicU64, Ordering};
use tenon_ds::apart::Apart;

/// Scripts and libraries.
#[derive(Debug)]
pub struct Scripts {
    /// Scripts of EVAL.
    pub known: KnownScripts,
    /// Libraries of functions.
    pub libraries: Libraries,
    /// Which scripts run for too long.
    pub running: Running,
    /// Sessions' watched keys that could not be let go as a busy script may hold their shards.
    pub(crate) unwatched: Mutex<Vec<(Vec<WatchedKey>, DirtyFlag)>>,
    /// For each worker the bytes of its states of EVAL and of FUNCTION.
    memory: Box<[Apart<[AtomicU64; 2]>]>,
}

impl Scripts {
    /// No script; `workers` states of each kind at most.
    pub fn new(workers: usize) -> Scripts {
        Scripts {
            known: KnownScripts::default(),
            libraries: Libraries::default(),
            running: Running::default(),
            unwatched: Mutex::default(),
            memory: (0..workers).map(|_| Default::default()).collect(),
        }
    }

    /// Notes how much memory a worker's states take.
    pub(crate) fn note_memory(&self, worker: usize, eval: usize, functions: usize) {
        self.memory[worker][0].store(eval as u64, Ordering::Relaxed);
        self.memory[worker][1].store(functions as u64, Ordering::Relaxed);
    }

    /// Bytes that all Lua states of EVAL take.
    pub fn eval_memory(&self) -> u64 {
        self.memory.iter().map(|states| states[0].load(Ordering::Relaxed)).sum()
    }

    /// Bytes that all Lua states of FUNCTION take.
    pub fn function_memory(&self) -> u64 {
        self.memory.iter().map(|states| states[1].load(Ordering::Relaxed)).sum()
    }

    /// Bytes of what is kept beside the states: texts and tables.
    pub fn overhead(&self) -> u64 {
        (self.known.memory() + self.libraries.memory()) as u64
    }
}

/// A text's SHA1, in hexadecimal digits.
pub(crate) fn sha_of(source: &[u8]) -> Sha {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut sha = [0; 40];
    for (pair, byte) in sha.chunks_exact_mut(2).zip(Sha1::digest(source)) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 0xF)];
    }
    sha
}
