//! What the log tells those who run it. Knows not what they do with it.

use std::time::Duration;

/// Something an operator wants to read, in Redis's words where it has some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Records could not be written; they are kept.
    WriteFailed(String),
    /// Part of what was written could not be cut off again, it will be gone on with.
    NotCut(String),
    /// The disk keeps no more room; what was confirmed is written.
    NoRoom(String),
    /// All that was kept is written.
    WritesAgain,
    /// Records could not be synced.
    SyncFailed(String),
    /// A sync takes more than two seconds while others wait.
    SyncIsSlow,
    /// What was appended has not been written for a second.
    HeldUp,
    /// No memory can be had that outlives the process.
    EndsWithProcess(String),
}

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Event::WriteFailed(error) => write!(f, "Error writing to the AOF file: {error}"),
            Event::NotCut(error) => write!(
                f,
                "Could not remove short write from the append-only file; what is left is written behind it: {error}"
            ),
            Event::NoRoom(error) => write!(f, "No room for the AOF file to grow: {error}; writes are refused"),
            Event::WritesAgain => f.write_str("AOF write error looks solved, writes are accepted again."),
            Event::SyncFailed(error) => {
                write!(f, "Fail to fsync the AOF file: {error}; writes are refused until it has been rewritten")
            }
            Event::SyncIsSlow => f.write_str(
                "Asynchronous AOF fsync is taking too long (disk is busy?). Writing the AOF buffer without waiting for \
                 fsync to complete.",
            ),
            Event::EndsWithProcess(error) => write!(
                f,
                "Should this process be killed, what it confirms in the last 2 ms before is lost, as it is not written yet, unless \
                 appendfsync is always: there is no memory that outlives it: {error}"
            ),
            Event::HeldUp => f.write_str(
                "The append-only file could not be written to for a second (disk is busy?). Replies to writes wait for it.",
            ),
        }
    }
}

/// Who wants to know what happens. Called by the log's threads, which wait meanwhile, and by who appends: nothing here may wait
/// for the log, nor for anything that whoever appends may hold.
pub trait Hooks: Send + Sync {
    /// Replies may be sent whose records end at `position`; with another policy than `always`, all may.
    fn may_answer(&self, position: u64) {
        let _ = position;
    }

    /// The file is not to be trusted any more: a rewrite is needed.
    fn needs_rewrite(&self) {}

    /// There is little room for records left, and who begins a write now should wait; or there is room again. One such call
    /// follows the other, and the log's last one says that there is.
    fn room_is_short(&self, is_short: bool) {
        let _ = is_short;
    }

    /// The thread that calls this is about to wait for room for what it appends, perhaps for long.
    fn waits_for_room(&self) {}

    /// For the log that people read.
    fn event(&self, event: &Event) {
        let _ = event;
    }

    /// How long something took, under the name that LATENCY knows it by.
    fn took(&self, name: &'static str, time: Duration) {
        let _ = (name, time);
    }
}

/// Nobody wants to know.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {}
