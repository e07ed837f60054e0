//! CLIENT PAUSE: which commands wait, until when, and who waits; and the one word that says that anything, a pause, a
//! busy script, a disk that is full or data that is being loaded, holds commands up.

use crate::clients::ConnectionKey;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// The bits of a pause, of refused writes and of loading, and what each busy script adds.
const PAUSED: u32 = 1;
const REFUSING: u32 = 2;
const LOADING: u32 = 4;
const BUSY: u32 = 8;

/// Which commands wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseMode {
    /// Those that may write.
    Write,
    /// All.
    All,
}

#[derive(Debug, Default)]
struct State {
    /// Until when, in milliseconds since the UNIX epoch, and which commands.
    until: Option<(u64, PauseMode)>,
    waiting: Vec<ConnectionKey>,
}

/// The pause.
#[derive(Debug, Default)]
pub struct Pause {
    /// What every batch looks at: `PAUSED` while there may be a pause, `REFUSING` while writes are refused, `LOADING` while
    /// data is loaded, and a busy script's worth for each of those.
    holds_up: AtomicU32,
    state: Mutex<State>,
}

impl Pause {
    /// Whether there may be a pause.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.holds_up.load(Ordering::Relaxed) & PAUSED != 0
    }

    /// Whether commands must be looked at one by one: there may be a pause, a script is busy, writes are refused, or data
    /// is being loaded.
    #[inline]
    pub fn holds_up(&self) -> bool {
        self.holds_up.load(Ordering::Relaxed) != 0
    }

    /// Whether a script is busy.
    pub(crate) fn is_busy(&self) -> bool {
        self.holds_up.load(Ordering::Relaxed) >= BUSY
    }

    /// Whether writes are refused.
    pub(crate) fn refuses_writes(&self) -> bool {
        self.holds_up.load(Ordering::Relaxed) & REFUSING != 0
    }

    /// Says whether writes are refused.
    pub(crate) fn refuse_writes(&self, refuse: bool) {
        if refuse {
            self.holds_up.fetch_or(REFUSING, Ordering::AcqRel);
        } else {
            self.holds_up.fetch_and(!REFUSING, Ordering::AcqRel);
        }
    }

    /// Whether data is being loaded.
    #[inline]
    pub(crate) fn is_loading(&self) -> bool {
        self.holds_up.load(Ordering::Acquire) & LOADING != 0
    }

    /// Notes that data is being loaded; tells whether it was not before.
    pub(crate) fn begin_loading(&self) -> bool {
        self.holds_up.fetch_or(LOADING, Ordering::AcqRel) & LOADING == 0
    }

    /// Notes that it no longer is.
    pub(crate) fn end_loading(&self) {
        self.holds_up.fetch_and(!LOADING, Ordering::AcqRel);
    }

    /// Notes that one more script is busy.
    pub(crate) fn begin_busy(&self) {
        self.holds_up.fetch_add(BUSY, Ordering::AcqRel);
    }

    /// Notes that one less is.
    pub(crate) fn end_busy(&self) {
        self.holds_up.fetch_sub(BUSY, Ordering::AcqRel);
    }

    /// Pauses until at least `until_ms`. Of two pauses the later end and the stricter mode hold.
    pub fn start(&self, until_ms: u64, mode: PauseMode, now_ms: u64) {
        let mut state = self.state.lock();
        let running = state.until.filter(|(until, _)| *until > now_ms);
        state.until = Some(match running {
            Some((until, before)) => {
                (until.max(until_ms), if before == PauseMode::All { PauseMode::All } else { mode })
            }
            None => (until_ms, mode),
        });
        self.holds_up.fetch_or(PAUSED, Ordering::AcqRel);
    }

    /// What waits now.
    pub fn mode(&self, now_ms: u64) -> Option<PauseMode> {
        if !self.is_active() {
            return None;
        }
        self.state.lock().until.filter(|(until, _)| *until > now_ms).map(|(_, mode)| mode)
    }

    /// What waits now, and for how many milliseconds more.
    pub fn rest(&self, now_ms: u64) -> Option<(PauseMode, u64)> {
        let running = self.state.lock().until.filter(|(until, _)| *until > now_ms);
        running.map(|(until, mode)| (mode, until - now_ms))
    }

    /// Notes that a connection waits for the end; `false` when the end was a moment ago, on another thread: nobody
    /// would wake it then. A datagram is not remembered.
    #[must_use = "whoever waits although there is no pause is never woken"]
    pub fn wait(&self, key: ConnectionKey) -> bool {
        let mut state = self.state.lock();
        let paused = state.until.is_some();
        if paused && key.is_connection() {
            state.waiting.push(key);
        }
        paused
    }

    /// Forgets a connection that ends while it waits.
    pub fn forget(&self, key: ConnectionKey) {
        self.state.lock().waiting.retain(|waiting| *waiting != key);
    }

    /// Ends the pause if its time has come; gives the connections that have waited.
    pub fn end_if_due(&self, now_ms: u64) -> Vec<ConnectionKey> {
        if !self.is_active() {
            return Vec::new();
        }
        let mut state = self.state.lock();
        if state.until.is_some_and(|(until, _)| until > now_ms) {
            return Vec::new();
        }
        self.finish(&mut state)
    }

    /// Ends the pause; gives the connections that have waited.
    pub fn end(&self) -> Vec<ConnectionKey> {
        self.finish(&mut self.state.lock())
    }

    fn finish(&self, state: &mut State) -> Vec<ConnectionKey> {
        state.until = None;
        self.holds_up.fetch_and(!PAUSED, Ordering::AcqRel);
        std::mem::take(&mut state.waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_end_and_the_stricter_mode_hold() {
        let pause = Pause::default();
        assert_eq!(pause.mode(0), None);
        pause.start(100, PauseMode::All, 0);
        pause.start(50, PauseMode::Write, 10);
        assert_eq!(pause.mode(99), Some(PauseMode::All));
        assert_eq!(pause.rest(40), Some((PauseMode::All, 60)));
        assert_eq!(pause.rest(100), None);
        let key = ConnectionKey { worker: 0, index: 1, generation: 2 };
        assert!(pause.wait(key));
        assert!(pause.end_if_due(99).is_empty());
        assert_eq!(pause.end_if_due(100), [key]);
        assert!(!pause.is_active());
        assert!(!pause.wait(key), "a connection that comes too late is not left waiting");
        pause.start(200, PauseMode::Write, 150);
        assert_eq!(pause.mode(151), Some(PauseMode::Write));
        assert!(pause.end().is_empty());
    }

    #[test]
    fn nobody_is_remembered_who_cannot_be_told() {
        let pause = Pause::default();
        pause.start(100, PauseMode::All, 0);
        assert!(pause.wait(ConnectionKey::of_datagram(0)), "it is held up all the same");
        let keys = [1, 2, 3].map(|index| ConnectionKey { worker: 0, index, generation: 1 });
        assert!(keys.iter().all(|key| pause.wait(*key)));
        pause.forget(keys[1]);
        assert_eq!(pause.end(), [keys[0], keys[2]]);
    }
}
