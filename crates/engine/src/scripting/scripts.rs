//! What the server knows of scripts and libraries, and which of them run.

use super::known::{KnownScripts, Sha};
use super::libraries::Libraries;
use super::running::Running;
use crate::session::WatchedKey;
use crate::watch::DirtyFlag;
use parking_lot::Mutex;
use sha1::{Digest, Sha1};

/// Scripts and libraries.
#[derive(Debug, Default)]
pub struct Scripts {
    /// Scripts of EVAL.
    pub known: KnownScripts,
    /// Libraries of functions.
    pub libraries: Libraries,
    /// Which scripts run for too long.
    pub running: Running,
    /// Sessions' watched keys that could not be let go at once, as somebody holds their shards; a tick does.
    pub(crate) unwatched: Mutex<Vec<(Vec<WatchedKey>, DirtyFlag)>>,
}

impl Scripts {
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
