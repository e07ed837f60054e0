//! Which scripts run for too long, and how they are killed. Knows no Lua.

use crate::errors::CmdError;
use crate::pause::Pause;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Instant;

/// What a busy script is; its clients are told which command kills it.
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

/// A script that has run for longer than `busy-reply-threshold`.
#[derive(Debug)]
pub struct Busy {
    /// What it is.
    pub kind: Kind,
    /// Its function's name, or its SHA1.
    pub name: String,
    /// The command that called it.
    pub command: Vec<Vec<u8>>,
    /// When it began.
    pub started: Instant,
    fate: AtomicU8,
}

impl Busy {
    /// A script that now counts as busy.
    pub(crate) fn new(kind: Kind, name: String, command: Vec<Vec<u8>>, started: Instant, wrote: bool) -> Busy {
        Busy { kind, name, command, started, fate: AtomicU8::new(if wrote { DIRTY } else { CLEAN }) }
    }

    /// Whether it was killed.
    pub(crate) fn is_killed(&self) -> bool {
        self.fate.load(Ordering::Acquire) == KILLED
    }

    /// Notes that it is about to write; `false`: it was killed before.
    pub(crate) fn may_write(&self) -> bool {
        self.fate.compare_exchange(CLEAN, DIRTY, Ordering::AcqRel, Ordering::Acquire) != Err(KILLED)
    }

    fn kill(&self) -> bool {
        self.fate.compare_exchange(CLEAN, KILLED, Ordering::AcqRel, Ordering::Acquire) != Err(DIRTY)
    }
}

/// The busy scripts.
#[derive(Debug, Default)]
pub struct Running {
    busy: Mutex<Vec<Arc<Busy>>>,
    /// Every script is to end: the server is.
    ending: AtomicBool,
}

impl Running {
    /// What the busy script is, if there is one.
    pub fn busy(&self) -> Option<Kind> {
        self.busy.lock().first().map(|busy| busy.kind)
    }

    /// The busy script that is busy for longest.
    pub fn longest(&self) -> Option<Arc<Busy>> {
        self.busy.lock().first().cloned()
    }

    /// Adds a busy script.
    pub(crate) fn begin(&self, busy: Busy, pause: &Pause) -> Arc<Busy> {
        let busy = Arc::new(busy);
        self.busy.lock().push(Arc::clone(&busy));
        pause.begin_busy();
        busy
    }

    /// Takes one away; tells whether it was the last.
    pub(crate) fn end(&self, ended: &Arc<Busy>, pause: &Pause) -> bool {
        pause.end_busy();
        let mut busy = self.busy.lock();
        busy.retain(|other| !Arc::ptr_eq(other, ended));
        busy.is_empty()
    }

    /// Ends every script soon, whatever it has written: the server ends.
    pub fn end_all(&self) {
        self.ending.store(true, Ordering::Release);
    }

    /// Whether every script is to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }

    /// SCRIPT KILL and FUNCTION KILL: ends the busy scripts of a kind.
    ///
    /// # Errors
    /// When there is none, all are of the other kind, or have written.
    pub fn kill(&self, kind: Kind) -> Result<(), CmdError> {
        let busy = self.busy.lock();
        let Some(first) = busy.first() else {
            return Err(CmdError::text("NOTBUSY No scripts in execution right now."));
        };
        let mut mine = busy.iter().filter(|busy| busy.kind == kind).peekable();
        if mine.peek().is_none() {
            return Err(CmdError::Busy(first.kind));
        }
        let killed = mine.filter(|busy| busy.kill()).count();
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

    fn begin(running: &Running, kind: Kind, wrote: bool) -> Arc<Busy> {
        running.begin(Busy::new(kind, "f".to_owned(), Vec::new(), Instant::now(), wrote), &Pause::default())
    }

    #[test]
    fn only_what_has_not_written_can_be_killed() {
        let running = Running::default();
        assert!(running.kill(Kind::Script).unwrap_err().to_string().starts_with("NOTBUSY "));
        let dirty = begin(&running, Kind::Script, true);
        assert!(running.kill(Kind::Script).unwrap_err().to_string().starts_with("UNKILLABLE "));
        assert!(running.kill(Kind::Function).unwrap_err().to_string().starts_with("BUSY "));
        let clean = begin(&running, Kind::Script, false);
        assert_eq!(running.kill(Kind::Script), Ok(()));
        assert!(clean.is_killed() && !dirty.is_killed() && !clean.may_write() && dirty.may_write());
    }

    #[test]
    fn a_write_that_comes_first_wins() {
        let running = Running::default();
        let busy = begin(&running, Kind::Function, false);
        assert!(busy.may_write() && busy.may_write());
        assert!(running.kill(Kind::Function).unwrap_err().to_string().starts_with("UNKILLABLE "));
        assert!(!busy.is_killed());
    }
}
