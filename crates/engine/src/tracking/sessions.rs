//! Beginning and ending a session's tracking, and what CLIENT CACHING says for its next command. Knows no key.

use super::trackers::{Mode, Tracker};
use crate::engine::Engine;
use crate::session::{Roles, Session};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tenon_ds::progress;

/// What a prefix takes beside its own bytes, which are there twice, as measured with 20,000.
const PREFIX: usize = 210;

/// About what a prefix takes, held against the client that has named it.
fn bytes_of(prefix: &[u8]) -> u64 {
    (2 * prefix.len() + PREFIX) as u64
}

/// Whether CLIENT CACHING was said just before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Caching {
    /// It was not.
    #[default]
    Unsaid,
    /// YES where reads are noted on demand only, NO where they are noted otherwise.
    Said,
}

/// A session's own part of its tracking.
#[derive(Debug)]
pub struct SessionTracking {
    /// How it is told.
    pub tracker: Arc<Tracker>,
    /// Whether CLIENT CACHING was said just before.
    pub caching: Caching,
    /// The prefixes of which all changes are told. The empty one joins whichever there are; else none is the beginning of another.
    pub prefixes: BTreeSet<Box<[u8]>>,
}

impl SessionTracking {
    /// Whether what the command that runs now reads is noted.
    pub(super) fn notes_reads(&self) -> bool {
        match self.tracker.mode {
            Mode::Default => true,
            Mode::OptIn => self.caching == Caching::Said,
            Mode::OptOut => self.caching == Caching::Unsaid,
            Mode::Broadcast => false,
        }
    }
}

impl Engine {
    /// Begins to tell a session of changes, or goes on in another way. With `Mode::Broadcast` the prefixes join those
    /// there are, of which none overlaps with them; none means every key.
    pub fn start_tracking<'a>(
        &self,
        session: &mut Session,
        tracker: Tracker,
        prefixes: impl Iterator<Item = &'a [u8]>,
    ) {
        let mode = tracker.mode;
        let tracker = Arc::new(tracker);
        self.tracking.set(&tracker);
        let client = session.client.id;
        let tracking = match &mut session.tracking {
            Some(tracking) => {
                tracking.tracker = tracker;
                tracking
            }
            None => session.tracking.insert(Box::new(SessionTracking {
                tracker,
                caching: Caching::Unsaid,
                prefixes: BTreeSet::new(),
            })),
        };
        if mode == Mode::Broadcast {
            let mut prefixes = prefixes.peekable();
            let every_key = prefixes.peek().is_none().then_some(&b""[..]);
            for prefix in prefixes.chain(every_key) {
                progress::count(1);
                self.tracking.prefixes.add(prefix, client);
                if tracking.prefixes.insert(prefix.into()) {
                    session.client.names_bytes.fetch_add(bytes_of(prefix), Ordering::Relaxed);
                }
            }
        }
        session.set_role(Roles::TRACKER, true);
    }

    /// Tells a session of changes no more.
    pub fn stop_tracking(&self, session: &mut Session) {
        let Some(tracking) = session.tracking.take() else { return };
        let client = session.client.id;
        self.tracking.remove(client);
        for prefix in &tracking.prefixes {
            progress::count(1);
            self.tracking.prefixes.remove(prefix, client);
        }
        let bytes = tracking.prefixes.iter().map(|prefix| bytes_of(prefix)).sum();
        session.client.names_bytes.fetch_sub(bytes, Ordering::Relaxed);
        session.set_role(Roles::TRACKER, false);
    }
}
