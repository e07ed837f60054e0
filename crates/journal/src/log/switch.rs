//! From one file to the next, at a position that its caller chooses: for rewrites. Knows nothing of names.
//!
//! ```text
//!            prepare_switch          cut              the writer gets there
//!   one file ------------> prepared -----> switching ----------------------> one file, the next
//!       ^                     |                |
//!       +---- cancel_switch --+                +-- drop_before_switch: at once, what lies before is in a snapshot
//! ```

use super::Log;
use super::keep::Mapped;
use super::shared::NO_SWITCH;
use crate::files::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

impl Log {
    /// Gets another file ready to go on in, which must be empty.
    ///
    /// # Errors
    /// When a switch is under way.
    pub fn prepare_switch(&self, file: Arc<dyn File>) -> io::Result<()> {
        let mut control = self.shared.control();
        if control.next_file.is_some() {
            return Err(io::Error::other("a switch to another file is under way"));
        }
        // One that cannot be told from others is none, and what is for it is not found.
        control.next_identity = file.identity().unwrap_or_default();
        control.next_file = Some(file);
        Ok(())
    }

    /// Gives the file back, unless [`Log::cut`] was called meanwhile; tells whether it did.
    pub fn cancel_switch(&self) -> bool {
        let mut control = self.shared.control();
        let is_prepared = self.shared.switch_at.load(Ordering::Acquire) == NO_SWITCH;
        if is_prepared {
            control.next_file = None;
        }
        is_prepared
    }

    /// Everything before the position that this gives goes to the old file, everything behind it to the one that was
    /// prepared. To be called while nobody can append: the position is that of a snapshot. Waits for nothing.
    ///
    /// # Panics
    /// When no file was prepared.
    pub fn cut(&self) -> u64 {
        let control = self.shared.control();
        assert!(control.next_file.is_some(), "a file to go on in was prepared");
        let position = self.position();
        if let Some(keep) = &self.shared.keep {
            keep.begin_file(Mapped::new(control.next_identity, position, 0));
        }
        // Whoever appends behind it does so after this, and the writer reads it after what was appended.
        self.shared.switch_at.store(position, Ordering::SeqCst);
        drop(control);
        self.shared.ring.nudge_consumer();
        position
    }

    /// Number of the file that is written to, counted from 0.
    pub fn generation(&self) -> u64 {
        self.shared.control().generation
    }

    /// Waits for the switch, if one was cut; tells whether it was done in time.
    pub fn wait_switched(&self, at_most: Duration) -> bool {
        let end = Instant::now() + at_most;
        let mut control = self.shared.control();
        while self.shared.switch_at.load(Ordering::Acquire) != NO_SWITCH {
            let Some(rest) = end.checked_duration_since(Instant::now()) else { return false };
            control = self.shared.wait_for_progress(control, rest);
        }
        true
    }

    /// What lies before the cut is in a snapshot that survives crashes: the writer need not write it if it has not.
    pub fn drop_before_switch(&self) {
        let mut control = self.shared.control();
        control.drop_before_switch = self.shared.switch_at.load(Ordering::Acquire) != NO_SWITCH;
        drop(control);
        // The writer may wait for a sync.
        self.shared.made_progress();
        self.shared.ring.nudge_consumer();
    }

    /// A snapshot of `position`, where the file of this generation begins, has taken the place of all files before it:
    /// what was wrong with them does not matter any more, and everything before `position` is durable.
    pub fn trust_from(&self, generation: u64, position: u64) {
        let shared = &*self.shared;
        let mut control = shared.control();
        let mut trouble = shared.trouble();
        trouble.forget_before(generation);
        let is_whole = !trouble.has_untrusted_file();
        drop(trouble);
        let since = std::mem::take(&mut control.synced_since);
        drop(control);
        shared.set_failing();
        if is_whole {
            shared.raise_durable(position.max(since));
        } else {
            // A later file is bad: what it holds is not durable, what lies before it is.
            shared.raise_durable(position);
        }
    }
}
