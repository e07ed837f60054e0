//! Room that the file system keeps for what is confirmed before it is written: should the disk get full, writes are refused
//! while there is still room for all of that. Knows no record.

use super::retry::Retry;
use crate::files::File;
use std::io;

/// How far room is kept, and when it is asked for again.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// The file can grow to this length.
    kept_to: u64,
    retry: Retry,
}

impl Room {
    /// Sees to it that the file can grow from its length by `least` bytes; asks for as many as `ahead` more, not to ask with each
    /// write. Nothing if there is no need to ask, or no sense in it yet.
    pub(super) fn keep(&mut self, file: &dyn File, file_len: u64, least: u64, ahead: u64) -> Option<io::Result<()>> {
        if self.kept_to >= file_len + least && !self.retry.is_pending() || !self.retry.is_due() {
            return None;
        }
        let from = self.kept_to.max(file_len);
        let to = from.max(file_len + least + ahead);
        let kept = file.keep_room(from, to - from);
        if kept.is_ok() {
            self.kept_to = to;
            self.retry.has_succeeded();
        } else {
            self.retry.has_failed();
        }
        Some(kept)
    }

    /// The file was cut, and its room with it.
    pub(super) fn is_gone(&mut self) {
        self.kept_to = 0;
    }

    /// Gives back what is left, also of what a process before this one had kept, as nothing follows in this file.
    pub(super) fn give_back(&mut self, file: &dyn File, file_len: u64) {
        // A file that somebody else has cut must not be filled up with zeros.
        if file.size().is_ok_and(|len| len == file_len) {
            let _ = file.truncate(file_len);
        }
        *self = Room::default();
    }

    pub(super) fn retry(&self) -> &Retry {
        &self.retry
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{Faulty, Files, Memory};
    use std::path::Path;
    use std::time::Duration;

    #[test]
    fn who_needs_less_than_there_was_no_room_for_is_told_that_there_is() {
        // On a slow machine it may be time for another attempt before it was looked whether it is too early.
        assert!((0..100).any(|_| is_too_early_before_that()), "it is never too early");
    }

    fn is_too_early_before_that() -> bool {
        let files = Faulty::new(Memory::new(), "room:enospc@2".parse().expect("a plan"));
        let file = files.create(Path::new("f")).expect("nothing is planned");
        let mut room = Room::default();
        assert!(room.keep(&*file, 0, 100, 50).is_some_and(|kept| kept.is_ok()));
        assert!(room.keep(&*file, 50, 100, 50).is_none(), "there is room for that");
        assert!(room.keep(&*file, 0, 200, 50).is_some_and(|kept| kept.is_err()));
        if room.keep(&*file, 0, 100, 50).is_some() {
            return false;
        }
        std::thread::sleep(room.retry().pause().expect("it failed") + Duration::from_millis(1));
        assert!(room.keep(&*file, 0, 100, 50).is_some_and(|kept| kept.is_ok()));
        assert!(room.keep(&*file, 0, 100, 50).is_none());
        true
    }
}
