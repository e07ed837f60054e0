//! CLIENT PAUSE, the end of the process, which has writes wait while the data is saved, and a log that does not keep up: which
//! commands wait, until when, and who waits; and the one word that says that anything, a pause, a busy script, a disk that is
//! full or data that is being loaded, holds commands up.

use crate::clients::ConnectionKey;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// The bits of a pause, of refused writes, of loading, of a log with little room and of a process that is to end, and what each
/// busy script adds.
const PAUSED: u32 = 1;
const REFUSING: u32 = 2;
const LOADING: u32 = 4;
const BEHIND: u32 = 8;
const ENDING: u32 = 16;
const BUSY: u32 = 32;

/// Which commands wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PauseMode {
    /// Those that may write.
    Write,
    /// All.
    All,
}

/// A client's pause that is not answered yet: calls go on that were under way. Its time runs from their end.
#[derive(Debug)]
struct Beginning {
    number: u64,
    timeout_ms: u64,
    mode: PauseMode,
    client: ConnectionKey,
}

#[derive(Debug, Default)]
struct State {
    /// Clients' pause: until when, in milliseconds since the UNIX epoch, and which commands.
    until: Option<(u64, PauseMode)>,
    /// Those that begin.
    beginning: Vec<Beginning>,
    /// How many have begun.
    begun: u64,
    /// Whether writes wait since the process is to end, whatever clients say of their pause.
    is_for_end: bool,
    /// Logs that have little room left: writes wait. This is no pause, in which data stands still.
    logs_behind: u32,
    waiting: Vec<ConnectionKey>,
}

impl State {
    /// What waits now, and until when; for the end there is no time set.
    fn running(&self, now_ms: u64) -> Option<(u64, PauseMode)> {
        let clients = self.until.filter(|(until, _)| *until > now_ms);
        let beginning = self.beginning.iter().map(|one| (now_ms.saturating_add(one.timeout_ms), one.mode));
        let for_end = self.is_for_end.then_some((u64::MAX, PauseMode::Write));
        clients.into_iter().chain(beginning).chain(for_end).reduce(both)
    }

    /// Pauses until at least `until_ms`.
    fn start(&mut self, until_ms: u64, mode: PauseMode, now_ms: u64) {
        let running = self.until.filter(|(until, _)| *until > now_ms);
        let new = (until_ms, mode);
        self.until = Some(running.map_or(new, |running| both(running, new)));
    }

    fn is_one(&self) -> bool {
        self.until.is_some() || self.is_for_end || !self.beginning.is_empty()
    }
}

/// Of two pauses the later end and the stricter mode hold.
fn both((until, mode): (u64, PauseMode), (other_until, other_mode): (u64, PauseMode)) -> (u64, PauseMode) {
    (until.max(other_until), mode.max(other_mode))
}

/// The pause.
#[derive(Debug, Default)]
pub struct Pause {
    /// What every batch looks at: `PAUSED` while there may be a pause, `REFUSING` while writes are refused, `LOADING` while
    /// data is loaded, `BEHIND` while writes wait for the log, `ENDING` while the process saves for its end, and a busy script's worth for
    /// each of those.
    holds_up: AtomicU32,
    state: Mutex<State>,
}

impl Pause {
    /// Whether there may be a pause.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.holds_up.load(Ordering::Relaxed) & PAUSED != 0
    }

    /// Whether commands must be looked at one by one: there may be a pause, a script is busy, writes are refused or wait for the
    /// log, or data is being loaded.
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
        state.start(until_ms, mode, now_ms);
        // Under the lock, so that who ends it meanwhile takes the bit away.
        self.holds_up.fetch_or(PAUSED, Ordering::AcqRel);
        drop(state);
    }

    /// Begins a client's pause, which lasts until it is [`Pause::settle`]d and this long from then on; gives its number.
    pub(crate) fn begin(&self, timeout_ms: u64, mode: PauseMode, client: ConnectionKey) -> u64 {
        let mut state = self.state.lock();
        state.begun += 1;
        let number = state.begun;
        state.beginning.push(Beginning { number, timeout_ms, mode, client });
        self.holds_up.fetch_or(PAUSED, Ordering::AcqRel);
        number
    }

    /// What was under way when a pause began has ended; gives the client that is to be answered. `None`: somebody has ended the
    /// pause before.
    #[must_use = "who waits is to be told"]
    pub(crate) fn settle(&self, number: u64, now_ms: u64) -> Option<ConnectionKey> {
        let mut state = self.state.lock();
        let at = state.beginning.iter().position(|one| one.number == number)?;
        let Beginning { timeout_ms, mode, client, .. } = state.beginning.swap_remove(at);
        // Of no time at all, too: it may still make a pause that runs already stricter.
        state.start(now_ms.saturating_add(timeout_ms), mode, now_ms);
        Some(client)
    }

    /// Whether any pause is not answered yet.
    pub(crate) fn begins(&self) -> bool {
        !self.state.lock().beginning.is_empty()
    }

    /// The connections that wait: they are to look again, whether the pause has ended or not.
    #[must_use = "who waits is to be told"]
    pub(crate) fn take_waiting(&self) -> Vec<ConnectionKey> {
        std::mem::take(&mut self.state.lock().waiting)
    }

    /// Whether the pause of this number is not answered yet.
    pub(crate) fn is_beginning(&self, number: u64) -> bool {
        self.state.lock().beginning.iter().any(|one| one.number == number)
    }

    /// Has writes wait since the process is to end; where it `saves` before, data stands still.
    pub(crate) fn begin_end(&self, saves: bool) {
        let mut state = self.state.lock();
        state.is_for_end = true;
        self.holds_up.fetch_or(if saves { PAUSED | ENDING } else { PAUSED }, Ordering::AcqRel);
        drop(state);
    }

    /// It does not end: a pause of clients' goes on. Gives the connections that have waited, for either.
    #[must_use = "who waits is to be told"]
    pub(crate) fn call_off_end(&self) -> Vec<ConnectionKey> {
        let mut state = self.state.lock();
        state.is_for_end = false;
        self.holds_up.fetch_and(!ENDING, Ordering::AcqRel);
        self.let_go(&mut state)
    }

    /// Has writes wait since a log has little room left.
    pub fn begin_for_log(&self) {
        let mut state = self.state.lock();
        state.logs_behind += 1;
        self.holds_up.fetch_or(BEHIND, Ordering::AcqRel);
        drop(state);
    }

    /// It has room again. Gives the connections that have waited, for this or for anything else.
    #[must_use = "who waits is to be told"]
    pub fn end_for_log(&self) -> Vec<ConnectionKey> {
        let mut state = self.state.lock();
        state.logs_behind -= 1;
        if state.logs_behind == 0 {
            self.holds_up.fetch_and(!BEHIND, Ordering::AcqRel);
        }
        std::mem::take(&mut state.waiting)
    }

    /// Whether writes wait since a log has little room left.
    #[inline]
    pub fn waits_for_log(&self) -> bool {
        self.holds_up.load(Ordering::Relaxed) & BEHIND != 0
    }

    /// Whether who reads leaves members that are due where they are, and sees them: while the process is to end. In clients' pause
    /// they go, as else who reads would still see them; keys that are due stay, and are gone for who reads.
    #[inline]
    pub fn keeps_members(&self) -> bool {
        self.holds_up.load(Ordering::Relaxed) & ENDING != 0
    }

    /// Whether who reads leaves what is due where it is.
    #[inline]
    pub fn keeps_what_is_due(&self) -> bool {
        self.holds_up.load(Ordering::Relaxed) & (PAUSED | BEHIND) != 0
    }

    /// Which commands wait now, in a pause or for the log.
    #[inline]
    pub fn holds_back(&self, now_ms: u64) -> Option<PauseMode> {
        self.mode(now_ms).max(self.waits_for_log().then_some(PauseMode::Write))
    }

    /// What waits now in a pause.
    pub fn mode(&self, now_ms: u64) -> Option<PauseMode> {
        if !self.is_active() {
            return None;
        }
        self.state.lock().running(now_ms).map(|(_, mode)| mode)
    }

    /// What waits now, and for how many milliseconds more.
    pub fn rest(&self, now_ms: u64) -> Option<(PauseMode, u64)> {
        self.state.lock().running(now_ms).map(|(until, mode)| (mode, until - now_ms))
    }

    /// Notes that a connection waits for the end, or for the log; `false` when that was a moment ago, on another thread: nobody
    /// would wake it then. A datagram is not remembered.
    #[must_use = "whoever waits although there is no pause is never woken"]
    pub fn wait(&self, key: ConnectionKey) -> bool {
        let mut state = self.state.lock();
        let paused = state.is_one() || state.logs_behind > 0;
        if paused && key.is_connection() {
            state.waiting.push(key);
        }
        paused
    }

    /// Whether nothing but clients' pause keeps this connection waiting.
    pub fn alone_holds(&self, key: ConnectionKey) -> bool {
        if !self.is_active() {
            return false;
        }
        let state = self.state.lock();
        let is_clients = state.until.is_some() || !state.beginning.is_empty();
        is_clients && !state.is_for_end && state.logs_behind == 0 && state.waiting.contains(&key)
    }

    /// Forgets a connection that ends while it waits.
    pub fn forget(&self, key: ConnectionKey) {
        self.state.lock().waiting.retain(|waiting| *waiting != key);
    }

    /// Ends clients' pause if its time has come and none begins; gives the connections that have waited.
    pub fn end_if_due(&self, now_ms: u64) -> Vec<ConnectionKey> {
        if !self.is_active() {
            return Vec::new();
        }
        let mut state = self.state.lock();
        if state.until.is_none_or(|(until, _)| until > now_ms) || !state.beginning.is_empty() {
            return Vec::new();
        }
        state.until = None;
        self.let_go(&mut state)
    }

    /// Ends clients' pause; gives the connections that have waited.
    pub fn end(&self) -> Vec<ConnectionKey> {
        let mut state = self.state.lock();
        state.until = None;
        self.let_go(&mut state)
    }

    /// Ends clients' pauses that are not answered yet; gives those who are to be answered now.
    #[must_use = "who waits is to be told"]
    pub(crate) fn end_beginning(&self) -> Vec<ConnectionKey> {
        self.state.lock().beginning.drain(..).map(|one| one.client).collect()
    }

    /// Whoever has waited looks anew what holds it up.
    fn let_go(&self, state: &mut State) -> Vec<ConnectionKey> {
        if !state.is_one() {
            self.holds_up.fetch_and(!PAUSED, Ordering::AcqRel);
        }
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
        assert!(!pause.alone_holds(key) && pause.wait(key) && pause.alone_holds(key));
        pause.begin_for_log();
        assert!(!pause.alone_holds(key));
        assert_eq!(pause.end_for_log(), [key], "who waits looks anew");
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
    fn the_time_of_a_pause_runs_from_when_it_is_answered() {
        let pause = Pause::default();
        let [one, other] = [1, 2].map(|index| ConnectionKey { worker: 0, index, generation: 0 });
        let first = pause.begin(100, PauseMode::Write, one);
        let second = pause.begin(0, PauseMode::All, other);
        assert_eq!((pause.rest(0), pause.rest(900)), (Some((PauseMode::All, 100)), Some((PauseMode::All, 100))));
        pause.start(50, PauseMode::Write, 0);
        assert!(pause.wait(one) && pause.end_if_due(900).is_empty(), "it goes on as long as one begins");
        assert!(pause.alone_holds(one) && !pause.alone_holds(other));
        assert_eq!(pause.settle(second, 1_000), Some(other));
        assert!(pause.is_beginning(first) && !pause.is_beginning(second));
        assert_eq!(pause.mode(1_000), Some(PauseMode::Write), "that of no time is over");
        assert_eq!(pause.settle(first, 2_000), Some(one));
        assert_eq!(pause.rest(2_000), Some((PauseMode::Write, 100)));
        assert_eq!(pause.end_if_due(2_100), [one]);
        assert!(!pause.is_active());
        let third = pause.begin(100, PauseMode::All, one);
        assert_eq!(pause.end_beginning(), [one]);
        assert!(pause.end().is_empty() && !pause.is_active());
        assert_eq!(pause.settle(third, 3_000), None, "it was ended");
        assert_eq!(pause.mode(3_000), None);
    }

    #[test]
    fn writes_wait_for_every_log_and_data_does_not_stand_still() {
        let pause = Pause::default();
        let [one, other] = [1, 2].map(|index| ConnectionKey { worker: 0, index, generation: 0 });
        pause.begin_for_log();
        assert!(pause.holds_up() && !pause.is_active() && !pause.is_busy());
        assert_eq!((pause.mode(0), pause.holds_back(0)), (None, Some(PauseMode::Write)));
        assert!(pause.wait(one));
        pause.begin_for_log();
        assert_eq!(pause.end_for_log(), [one], "it looks anew");
        assert!(pause.waits_for_log() && pause.wait(one));
        pause.start(100, PauseMode::All, 0);
        assert_eq!(pause.holds_back(0), Some(PauseMode::All));
        assert!(pause.wait(other));
        assert_eq!(pause.end_for_log(), [one, other]);
        assert!(pause.wait(other));
        assert_eq!((pause.end_if_due(100), pause.holds_up()), (vec![other], false));
        assert!(!pause.wait(one));
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

    #[test]
    fn clients_end_their_own_pause_and_not_the_one_for_the_end_of_the_process() {
        let pause = Pause::default();
        let key = ConnectionKey { worker: 0, index: 1, generation: 2 };
        pause.start(100, PauseMode::All, 0);
        pause.begin_end(true);
        assert_eq!(pause.rest(40), Some((PauseMode::All, u64::MAX - 40)));
        assert!(pause.wait(key));
        assert_eq!(pause.end(), [key], "what waits for clients' pause alone goes on");
        assert_eq!((pause.mode(40), pause.is_active()), (Some(PauseMode::Write), true));
        assert!(pause.wait(key));
        assert!(pause.end_if_due(200).is_empty());
        pause.start(300, PauseMode::All, 200);
        assert_eq!(pause.call_off_end(), [key]);
        assert_eq!(pause.rest(250), Some((PauseMode::All, 50)), "clients' pause goes on");
        pause.begin_end(true);
        assert!(pause.end_if_due(300).is_empty());
        assert_eq!(pause.mode(300), Some(PauseMode::Write));
        assert!(pause.call_off_end().is_empty());
        assert!(!pause.is_active());
    }
}
