//! Which scripts run for long, which of them are busy, and how those are killed. Knows no Lua.
//!
//! ```text
//!   a script ---- long: `begin` ---- busy: `become_busy` ---- its end: `end`
//!                    ^                   |                       |
//!   SCRIPT KILL -----+ `waits`           +-----------------------+--> a letter to each that waits: it tries again
//! ```
//!
//! In Redis nobody is heard while a script runs, before it counts as busy: SCRIPT KILL is answered when it does, or when the
//! script has ended. Here others are served meanwhile, but such a call waits all the same: it means the script that runs.

use crate::clients::ConnectionKey;
use crate::errors::CmdError;
use crate::pause::Pause;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Instant;

/// What a script is; its clients are told which command kills it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of EVAL.
    Script,
    /// Of FCALL.
    Function,
}

/// What may become of a busy script.
///
/// ```text
///   CLEAN ---- its first write --> DIRTY
///   CLEAN ---- SCRIPT KILL ------> KILLED
/// ```
const CLEAN: u8 = 0;
const DIRTY: u8 = 1;
const KILLED: u8 = 2;

/// A script that has run for long enough to be told of. It is busy when that is longer than `busy-reply-threshold`.
#[derive(Debug)]
pub struct LongScript {
    /// What it is.
    pub kind: Kind,
    /// Its function's name, or its SHA1.
    pub name: String,
    /// The command that called it.
    pub command: Vec<Vec<u8>>,
    /// When it began.
    pub started: Instant,
    is_busy: AtomicBool,
    /// Whether it was, before it started anew. It is not in anybody's way then, and can be killed all the same.
    was_busy: AtomicBool,
    fate: AtomicU8,
    /// Whether it runs within EXEC, of which it is a part.
    is_in_exec: bool,
}

impl LongScript {
    /// A script that is not busy yet.
    pub(crate) fn new(
        kind: Kind,
        name: String,
        command: Vec<Vec<u8>>,
        started: Instant,
        wrote: bool,
        is_in_exec: bool,
    ) -> LongScript {
        let fate = AtomicU8::new(if wrote { DIRTY } else { CLEAN });
        let (is_busy, was_busy) = (AtomicBool::new(false), AtomicBool::new(false));
        LongScript { kind, name, command, started, is_busy, was_busy, fate, is_in_exec }
    }

    /// Whether it counts as busy.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::Acquire)
    }

    /// Whether it was killed.
    pub(crate) fn is_killed(&self) -> bool {
        self.fate.load(Ordering::Acquire) == KILLED
    }

    /// Notes that it is about to write; `false`: it was killed before.
    pub(crate) fn may_write(&self) -> bool {
        self.fate.compare_exchange(CLEAN, DIRTY, Ordering::AcqRel, Ordering::Acquire) != Err(KILLED)
    }

    fn has_written(&self) -> bool {
        self.fate.load(Ordering::Acquire) == DIRTY
    }

    /// Whether it must come to its end when the server ends, or nothing of it may be kept.
    fn must_end_whole(&self) -> bool {
        self.is_in_exec || self.has_written()
    }

    fn kill(&self) -> bool {
        self.fate.compare_exchange(CLEAN, KILLED, Ordering::AcqRel, Ordering::Acquire) != Err(DIRTY)
    }
}

/// The long scripts.
#[derive(Debug, Default)]
pub struct Running {
    state: Mutex<State>,
    /// Scripts are to end: the server is.
    ending: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// In the order in which they became long, each with its number.
    long: Vec<(u64, Arc<LongScript>)>,
    /// How many there have been.
    begun: u64,
    /// Clients that want to kill one, each with how many there had been when it came: it waits for none that is younger.
    waiting: Vec<(ConnectionKey, u64)>,
}

impl State {
    fn busy(&self) -> impl Iterator<Item = &Arc<LongScript>> {
        self.long.iter().map(|(_, script)| script).filter(|script| script.is_busy())
    }

    /// Those that SCRIPT KILL finds.
    fn killable(&self) -> impl Iterator<Item = &Arc<LongScript>> {
        let is_killable = |script: &&Arc<LongScript>| script.is_busy() || script.was_busy.load(Ordering::Acquire);
        self.long.iter().map(|(_, script)| script).filter(is_killable)
    }

    fn waiting(&self) -> Vec<ConnectionKey> {
        self.waiting.iter().map(|(client, _)| *client).collect()
    }
}

impl Running {
    /// What the busy script is, if there is one.
    pub fn busy(&self) -> Option<Kind> {
        self.state.lock().busy().next().map(|script| script.kind)
    }

    /// Whether any script is long.
    pub(crate) fn are_there(&self) -> bool {
        !self.state.lock().long.is_empty()
    }

    /// The function that runs for longest of the long ones.
    pub fn longest_function(&self) -> Option<Arc<LongScript>> {
        let state = self.state.lock();
        let mut functions = state.long.iter().filter(|(_, script)| script.kind == Kind::Function);
        functions.next().map(|(_, script)| Arc::clone(script))
    }

    /// Adds a long script.
    pub(crate) fn begin(&self, script: LongScript) -> Arc<LongScript> {
        let script = Arc::new(script);
        let mut state = self.state.lock();
        let number = state.begun;
        state.begun += 1;
        state.long.push((number, Arc::clone(&script)));
        script
    }

    /// A long script counts as busy from now on; gives the clients that wait to kill one, which are to try again.
    #[must_use = "who waits is to be told"]
    pub(crate) fn become_busy(&self, script: &LongScript, pause: &Pause) -> Vec<ConnectionKey> {
        let state = self.state.lock();
        script.is_busy.store(true, Ordering::Release);
        pause.begin_busy();
        state.waiting()
    }

    /// A long script starts anew, and is not busy before it has taken long once more; `false`: it was killed before.
    pub(crate) fn begin_anew(&self, script: &LongScript, pause: &Pause) -> bool {
        // Under the lock, so that nobody kills it in between who has found it busy.
        let _state = self.state.lock();
        if script.is_busy.swap(false, Ordering::AcqRel) {
            script.was_busy.store(true, Ordering::Release);
            pause.end_busy();
        }
        !script.is_killed()
    }

    /// Takes one away; gives the clients that wait to kill one, which are to try again.
    #[must_use = "who waits is to be told"]
    pub(crate) fn end(&self, ended: &Arc<LongScript>, pause: &Pause) -> Vec<ConnectionKey> {
        let mut state = self.state.lock();
        if ended.is_busy() {
            pause.end_busy();
        }
        state.long.retain(|(_, other)| !Arc::ptr_eq(other, ended));
        let waiting = state.waiting();
        if state.long.is_empty() {
            // Nobody waits any longer; some may be gone without having asked again.
            state.waiting.clear();
        }
        waiting
    }

    /// Ends every script soon that has written nothing and is no part of a transaction: the server ends. Half of what others do
    /// would be kept.
    pub fn end_all(&self) {
        self.ending.store(true, Ordering::Release);
    }

    /// The server does not end.
    pub(crate) fn go_on_after_all(&self) {
        self.ending.store(false, Ordering::Release);
    }

    /// Whether scripts are to end that may.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }

    /// The long scripts that must come to their ends.
    pub(crate) fn to_end_whole(&self) -> Vec<Arc<LongScript>> {
        let state = self.state.lock();
        state.long.iter().map(|(_, script)| script).filter(|script| script.must_end_whole()).cloned().collect()
    }

    /// Whether a client that wants to kill a script has to wait: none is busy, but one runs that may become it. Then the
    /// client is told when it is to ask again.
    pub(crate) fn waits(&self, client: ConnectionKey) -> bool {
        let mut state = self.state.lock();
        let begun = state.begun;
        let known = state.waiting.iter().position(|(waiting, _)| *waiting == client);
        let came_at = known.map_or(begun, |at| state.waiting[at].1);
        let waits = state.killable().next().is_none() && state.long.iter().any(|(number, _)| *number < came_at);
        match known {
            Some(at) if !waits => _ = state.waiting.swap_remove(at),
            None if waits => state.waiting.push((client, begun)),
            Some(_) | None => {}
        }
        waits
    }

    /// SCRIPT KILL and FUNCTION KILL: ends the busy scripts of a kind.
    ///
    /// # Errors
    /// When there is none, all have written, or are of the other kind.
    pub fn kill(&self, kind: Kind) -> Result<(), CmdError> {
        let state = self.state.lock();
        let Some(first) = state.killable().next() else {
            return Err(CmdError::text("NOTBUSY No scripts in execution right now."));
        };
        let mut mine = state.killable().filter(|script| script.kind == kind).peekable();
        // As in Redis it is asked first whether a script can be killed at all.
        if mine.peek().is_none() && !state.killable().all(|script| script.has_written()) {
            return Err(CmdError::Busy(first.kind));
        }
        let killed = mine.filter(|script| script.kill()).count();
        if killed == 0 {
            return Err(CmdError::text(
                "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either \
                 wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(running: &Running, kind: Kind, wrote: bool) -> Arc<LongScript> {
        running.begin(LongScript::new(kind, "f".to_owned(), Vec::new(), Instant::now(), wrote, false))
    }

    fn begin_busy(running: &Running, kind: Kind, wrote: bool) -> Arc<LongScript> {
        let script = begin(running, kind, wrote);
        assert_eq!(running.become_busy(&script, &Pause::default()), []);
        script
    }

    fn client(index: u32) -> ConnectionKey {
        ConnectionKey { worker: 0, index, generation: 0 }
    }

    #[test]
    fn only_what_has_not_written_can_be_killed() {
        let running = Running::default();
        assert!(running.kill(Kind::Script).unwrap_err().to_string().starts_with("NOTBUSY "));
        let dirty = begin_busy(&running, Kind::Script, true);
        assert!(running.kill(Kind::Script).unwrap_err().to_string().starts_with("UNKILLABLE "));
        assert!(running.kill(Kind::Function).unwrap_err().to_string().starts_with("UNKILLABLE "), "of whatever kind");
        let (clean, quick) = (begin_busy(&running, Kind::Script, false), begin(&running, Kind::Script, false));
        assert_eq!(running.kill(Kind::Script), Ok(()));
        assert!(clean.is_killed() && !dirty.is_killed() && !clean.may_write() && dirty.may_write());
        assert!(!quick.is_killed(), "it is not busy");
        let _function = begin_busy(&running, Kind::Function, true);
        let _clean = begin_busy(&running, Kind::Script, false);
        assert_eq!(running.kill(Kind::Script), Ok(()));
        let running = Running::default();
        let _clean = begin_busy(&running, Kind::Script, false);
        assert!(running.kill(Kind::Function).unwrap_err().to_string().starts_with("BUSY "));
    }

    #[test]
    fn who_has_written_or_is_within_exec_must_come_to_its_end() {
        let running = Running::default();
        let clean = begin(&running, Kind::Script, false);
        assert!(running.to_end_whole().is_empty());
        assert!(clean.may_write());
        let in_exec = LongScript::new(Kind::Function, "g".to_owned(), Vec::new(), Instant::now(), false, true);
        running.begin(in_exec);
        let names: Vec<_> = running.to_end_whole().iter().map(|script| script.name.clone()).collect();
        assert_eq!(names, ["f", "g"]);
        assert!(running.end(&clean, &Pause::default()).is_empty());
        assert_eq!(running.to_end_whole().len(), 1);
    }

    #[test]
    fn a_write_that_comes_first_wins() {
        let running = Running::default();
        let busy = begin_busy(&running, Kind::Function, false);
        assert!(busy.may_write() && busy.may_write());
        assert!(running.kill(Kind::Function).unwrap_err().to_string().starts_with("UNKILLABLE "));
        assert!(!busy.is_killed());
    }

    #[test]
    fn who_wants_to_kill_waits_for_what_ran_before() {
        let (running, pause) = (Running::default(), Pause::default());
        let (one, other) = (client(1), client(2));
        assert!(!running.waits(one), "nothing runs");
        let first = begin(&running, Kind::Script, false);
        assert!(running.waits(one) && running.waits(one));
        let second = begin(&running, Kind::Function, false);
        assert!(running.waits(other));
        assert_eq!(running.end(&first, &pause), [one, other]);
        assert!(!running.waits(one), "the second came later than it");
        assert!(running.waits(other));
        assert_eq!(running.become_busy(&second, &pause), [other]);
        assert!(!running.waits(other), "there is something to kill");
        assert!(running.end(&second, &pause).is_empty());
    }

    #[test]
    fn who_starts_anew_is_waited_for_and_stays_killed() {
        let (running, pause) = (Running::default(), Pause::default());
        let script = begin(&running, Kind::Script, false);
        assert!(running.waits(client(1)));
        assert!(running.begin_anew(&script, &pause));
        assert!(running.waits(client(1)), "it goes on");
        assert_eq!(running.become_busy(&script, &pause), [client(1)]);
        assert!(!running.waits(client(1)));
        // Between that look and the kill it starts anew once more.
        assert!(running.begin_anew(&script, &pause) && running.busy().is_none());
        assert!(!running.waits(client(1)) && running.kill(Kind::Script).is_ok());
        assert!(!running.begin_anew(&script, &pause) && running.busy().is_none());
        assert!(running.end(&script, &pause).is_empty());
    }

    #[test]
    fn who_is_gone_is_forgotten() {
        let (running, pause) = (Running::default(), Pause::default());
        let script = begin(&running, Kind::Script, false);
        assert!(running.waits(client(1)));
        assert_eq!(running.end(&script, &pause), [client(1)]);
        let script = begin(&running, Kind::Script, false);
        assert!(running.end(&script, &pause).is_empty());
    }
}
