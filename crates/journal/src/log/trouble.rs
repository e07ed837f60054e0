//! What is wrong with the log at the moment. Knows no file and no thread.

use std::io;
use std::time::SystemTime;

/// Why writes are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The system's words.
    pub error: String,
    /// The system's number, if it gave one.
    pub errno: Option<i32>,
    /// Since when.
    pub since: SystemTime,
}

impl Reason {
    fn new(error: &io::Error) -> Reason {
        Reason { error: words(error), errno: error.raw_os_error(), since: SystemTime::now() }
    }
}

/// The reply to a write, as Redis words it.
impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MISCONF Errors writing to the AOF file: {}", self.error)
    }
}

/// An error as the C library words it, without Rust's addition.
pub fn words(error: &io::Error) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(errno) => text.strip_suffix(&format!(" (os error {errno})")).unwrap_or(&text).to_owned(),
        None => text,
    }
}

/// Notes what is wrong, since it began to be; tells whether that is new.
fn note(place: &mut Option<Reason>, error: &io::Error) -> bool {
    let reason = Reason::new(error);
    let before = place.take();
    let is_new = before.as_ref().is_none_or(|before| before.error != reason.error);
    *place = Some(Reason { since: before.map_or(reason.since, |before| before.since), ..reason });
    is_new
}

/// What is wrong, and with what.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// The last write failed.
    write: Option<Reason>,
    /// The disk keeps no more room for the file.
    room: Option<Reason>,
    /// The latest file of which a sync failed, by its generation.
    untrusted: Option<(u64, Reason)>,
    /// Files before this generation are of no importance any more.
    needed_from: u64,
}

impl Trouble {
    pub(super) fn reason(&self) -> Option<Reason> {
        let untrusted = self.untrusted.as_ref().map(|(_, reason)| reason);
        self.write.as_ref().or(self.room.as_ref()).or(untrusted).cloned()
    }

    pub(super) fn is_any(&self) -> bool {
        self.holds_up_writer() || self.room.is_some()
    }

    /// Whether what is wrong keeps the writer from coming on.
    pub(super) fn holds_up_writer(&self) -> bool {
        self.write.is_some() || self.untrusted.is_some()
    }

    pub(super) fn has_untrusted_file(&self) -> bool {
        self.untrusted.is_some()
    }

    pub(super) fn is_trusted(&self, generation: u64) -> bool {
        self.untrusted.as_ref().is_none_or(|(untrusted, _)| *untrusted != generation)
    }

    /// Notes a failed write; tells whether that is new.
    pub(super) fn write_failed(&mut self, error: &io::Error) -> bool {
        note(&mut self.write, error)
    }

    /// Notes that there is no more room; tells whether that is new.
    pub(super) fn has_no_room(&mut self, error: &io::Error) -> bool {
        note(&mut self.room, error)
    }

    /// Notes that there is room; tells whether that is new, and writes succeed, too.
    pub(super) fn has_room(&mut self) -> bool {
        self.room.take().is_some() && self.write.is_none()
    }

    /// Notes that writes succeed; tells whether that is new, and there is room, too.
    pub(super) fn writes_again(&mut self) -> bool {
        self.write.take().is_some() && self.room.is_none()
    }

    /// Notes a failed sync of the file of a generation; tells whether anybody needs that file.
    pub(super) fn sync_failed(&mut self, generation: u64, error: &io::Error) -> bool {
        let is_needed = generation >= self.needed_from;
        if is_needed {
            self.untrusted = Some((generation, Reason::new(error)));
        }
        is_needed
    }

    /// Files before this generation are of no importance any more.
    pub(super) fn forget_before(&mut self, generation: u64) {
        self.needed_from = generation;
        self.untrusted.take_if(|(untrusted, _)| *untrusted < generation);
    }
}
