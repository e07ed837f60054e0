//! Why writes are refused: what they would change could not be kept on disk. Knows neither snapshot nor log.

use crate::engine::Engine;
use crate::errors::CmdError;
use crate::session::Session;
use parking_lot::Mutex;

/// Redis's reply while `stop-writes-on-bgsave-error` stops writes.
const SNAPSHOT_FAILED: &str = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to \
                               disk. Commands that may modify the data set are disabled, because this instance is \
                               configured to report errors during writes if RDB snapshotting fails \
                               (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the \
                               RDB error.";

/// What Redis's reply begins with while the log cannot be written; the system's words follow.
const LOG_FAILED: &str = "MISCONF Errors writing to the AOF file: ";

/// What stands against writes.
#[derive(Debug, Default)]
pub struct Refusals {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The last snapshot failed.
    snapshot: bool,
    /// The log cannot be written; why.
    log: Option<String>,
}

impl Engine {
    /// Refuses writes because the last snapshot failed, or no longer.
    pub fn refuse_writes_for_snapshot(&self, refuse: bool) {
        self.change_refusals(|state| state.snapshot = refuse);
    }

    /// Refuses writes because the log cannot be written, for a reason in the system's words, or no longer.
    pub fn refuse_writes_for_log(&self, why: Option<&str>) {
        self.change_refusals(|state| state.log = why.map(str::to_owned));
    }

    /// Does that for the reason that there is now, which may change before it is known here: whoever changes it comes behind.
    pub(crate) fn refuse_writes_as_is(&self, why: impl FnOnce() -> Option<String>) {
        self.change_refusals(|state| state.log = why());
    }

    fn change_refusals(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.refusals.state.lock();
        change(&mut state);
        // Under the lock, so that of two changes the later one's word stands.
        self.pause.refuse_writes(state.snapshot || state.log.is_some());
    }

    /// The error that a write is answered with now.
    pub fn refusal(&self) -> Option<CmdError> {
        if self.pause.refuses_writes() { self.reason() } else { None }
    }

    /// The error that a script's write is answered with. Within EXEC it is that of its begin, as what ran before the script
    /// cannot be taken back.
    pub(crate) fn refusal_in_script(&self, session: &Session) -> Option<CmdError> {
        session.in_exec.as_ref().map_or_else(|| self.refusal(), |at_exec| at_exec.refusal.clone())
    }

    /// The error of a script that may write, by its own flags.
    pub(crate) fn refusal_of_scripts(&self, session: &Session) -> Option<CmdError> {
        let error = self.refusal_in_script(session)?;
        let Some(why) = error.to_string().strip_prefix(LOG_FAILED).map(str::to_owned) else {
            return Some(CmdError::text(
                "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. \
                 Writable scripts are blocked. Use 'no-writes' flag for read only scripts.",
            ));
        };
        Some(CmdError::new(format!(
            "MISCONF Redis is configured to persist data to AOF, but it's currently unable to persist to disk. Writable \
             scripts are blocked. Use 'no-writes' flag for read only scripts.  AOF error: {why}"
        )))
    }

    #[cold]
    fn reason(&self) -> Option<CmdError> {
        let state = self.refusals.state.lock();
        match &state.log {
            // As in Redis the snapshot's error comes first.
            _ if state.snapshot => Some(CmdError::text(SNAPSHOT_FAILED)),
            Some(why) => Some(CmdError::new(format!("{LOG_FAILED}{why}"))),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Machine};

    #[test]
    fn writes_are_refused_as_long_as_anything_stands_against_them() {
        let engine = Engine::new(Config::new(Machine::detect()), &[], 1);
        let answered = || engine.refusal().map(|error| error.to_string());
        assert_eq!(answered(), None);
        engine.refuse_writes_for_log(Some("No space left on device"));
        assert_eq!(answered().unwrap(), "MISCONF Errors writing to the AOF file: No space left on device");
        engine.refuse_writes_for_snapshot(true);
        assert_eq!(answered().unwrap(), SNAPSHOT_FAILED);
        engine.refuse_writes_for_log(None);
        assert!(engine.pause.holds_up());
        engine.refuse_writes_for_snapshot(false);
        assert_eq!(answered(), None);
        assert!(!engine.pause.holds_up());
    }
}
