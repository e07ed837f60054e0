//! The ordered log: records that many threads append, one writer that brings them to a file, and how far they are on
//! disk. Knows no record's meaning, and of files only that the next one is given to it.
//!
//! ```text
//!  workers --append--> ring --writer thread--> file --sync--> disk
//!                       |                       |              |
//!                   position()              written()      durable()
//! ```
//!
//! **Writing.** The writer writes whole records, as many as are there. With `everysec` and `no` it then rests for two
//! milliseconds, so that a stream of small writes does not wake it for each. Only a record that the ring cannot hold is
//! written in parts.
//!
//! **Syncing.** `always`: after each write, and `durable()` follows; what comes meanwhile goes with the next one
//! (group commit). Since the clients that were just answered come back a little later than the next sync would begin,
//! it waits for them a little, as long as that has brought them. `everysec`: on a thread of its own,
//! a second after the last one began. `no`: when the file changes and at the end.
//!
//! **Before the ring is full** it is said that writes are to wait ([`Hooks::room_is_short`]), until there is room again.
//!
//! **A failed write** leaves its records in the ring. The file is cut to what it was before, or if that fails, the
//! writer goes on where it ends. It tries again, and says meanwhile that writes are to be refused. What is appended all
//! the same (keys that expire) and finds no room is put aside, and follows in its order.
//!
//! **A full disk** is met before it is full: the writer has the file system keep room for all that the ring can hold, which
//! is what may be confirmed before anybody hears that there is no more. When it keeps none, writes are refused, and what
//! was confirmed is written all the same.
//!
//! **A failed sync** cannot be repaired by another one: the system may have given up what it could not write, and
//! answer well the next time. So the file is never trusted again, `durable()` stays where it was, and writes are
//! refused until a rewrite has put a snapshot in the place of that file: [`Log::trust_from`].

mod append;
mod backpressure;
mod event;
mod group_commit;
mod keep;
mod left;
mod retry;
mod room;
mod shared;
mod switch;
mod syncer;
#[cfg(test)]
mod tests;
mod trouble;
mod writer;

pub use event::{Event, Hooks, NoHooks};
pub use left::{Left, NotBrought, Unlisted, bring_left, is_left};
pub use shared::Statistics;
pub use trouble::{Reason, words};

use crate::files::{File, Kept};
use keep::{Keep, blocks_for, holds_anything, mapped, memory_len};
use shared::Shared;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tenon_ds::region::Region;
use tenon_ds::ring::ring_in;

/// Bytes of a block of the ring.
const BLOCK_LEN: usize = 4096;

/// When what was written is synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// When the system likes to.
    No,
    /// Once a second.
    EverySecond,
    /// Before a reply is sent.
    Always,
}

/// How a log works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// When what was written is synced.
    pub policy: Policy,
    /// Whether nothing is synced while a snapshot is written.
    pub no_sync_during_rewrite: bool,
    /// Whether each second's first record is preceded by its time.
    pub timestamps: bool,
    /// Bytes of the ring, a power of two. Nobody waits while the writer is behind by less: the default holds what 50
    /// MB of records a second make in 160 ms, which is more than all but the slowest syncs take.
    pub ring_bytes: usize,
    /// Whether every thread that appends calls [`Log::turn_ended`] when it has appended what it can for the moment: the
    /// writer that syncs everything is then woken once for all that came of one turn of an event loop.
    pub hears_of_turns: bool,
    /// The first position, at least; it goes on behind that of an earlier log.
    pub start: u64,
    /// Seconds since 1970.
    pub clock: fn() -> u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            policy: Policy::EverySecond,
            no_sync_during_rewrite: false,
            timestamps: false,
            ring_bytes: 8 << 20,
            hears_of_turns: false,
            start: 0,
            clock: seconds_since_1970,
        }
    }
}

fn seconds_since_1970() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// A log with its threads, which end with it.
pub struct Log {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Log {
    /// Begins a log that goes on behind the end of `file`.
    ///
    /// # Errors
    /// When the file does not tell its length, or threads cannot be started.
    pub fn start(file: Arc<dyn File>, settings: &Settings, hooks: Arc<dyn Hooks>) -> io::Result<Log> {
        Log::start_in(None, file, settings, hooks)
    }

    /// Bytes of the memory for [`Log::start_in`].
    pub fn memory_len(settings: &Settings) -> usize {
        memory_len(settings.ring_bytes)
    }

    /// Likewise; what is appended and not yet written lies in memory that outlives the process, where [`bring_left`] finds it. What
    /// was in that memory before is gone. If the file cannot be told from others it is done without.
    ///
    /// # Errors
    /// As of [`Log::start`].
    pub fn start_in(
        kept: Option<Kept>,
        file: Arc<dyn File>,
        settings: &Settings,
        hooks: Arc<dyn Hooks>,
    ) -> io::Result<Log> {
        let blocks = blocks_for(settings.ring_bytes);
        let start = settings.start.next_multiple_of(BLOCK_LEN as u64);
        let file_len = file.size()?;
        let mapped = mapped(&*file, start)?;
        let kept = match kept {
            Some(kept) if mapped.is_none() => {
                kept.remove();
                hooks.event(&Event::EndsWithProcess("the file system does not tell when a file was made".to_owned()));
                None
            }
            kept => kept,
        };
        let (keep, (ring, consumer)) = match (kept, mapped) {
            (Some(kept), Some(file)) => {
                kept.sweep(holds_anything);
                let keep = Keep::begin(kept, blocks);
                let ring = ring_in(keep.region(), BLOCK_LEN, blocks, start);
                keep.begin_file(file);
                keep.set_valid();
                (Some(keep), ring)
            }
            _ => {
                let region = Arc::new(Region::private(memory_len(settings.ring_bytes)));
                (None, ring_in(&region, BLOCK_LEN, blocks, start))
            }
        };
        let shared = Arc::new(Shared::new(ring, keep, settings, hooks, file_len));
        let (of_writer, of_syncer) = (Arc::clone(&shared), Arc::clone(&shared));
        let log = Log { shared, threads: Mutex::new(Vec::new()) };
        // Should the second one fail to start, the log's end stops the first.
        log.spawn("aof-writer", move || writer::Writer::new(of_writer, consumer, file, file_len).run())?;
        log.spawn("aof-fsync", move || syncer::run(&of_syncer))?;
        Ok(log)
    }

    fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run)?;
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        Ok(())
    }

    /// Position behind the last record that was appended.
    pub fn position(&self) -> u64 {
        self.shared.ring.head()
    }

    /// Everything before it was given to the system.
    pub fn written(&self) -> u64 {
        self.shared.written.load(Ordering::Acquire)
    }

    /// Everything before it survives a crash of the machine: it was synced, or is in a snapshot that was.
    pub fn durable(&self) -> u64 {
        self.shared.durable.load(Ordering::Acquire)
    }

    /// Whether a reply may be sent whose records end at `position`.
    pub fn may_answer(&self, position: u64) -> bool {
        self.answerable() >= position
    }

    /// Up to which position replies may be sent: with `always` what is synced, or written while the settings have nothing synced,
    /// else everything, unless the writer has been
    /// held up for a second; then what is written. So what a killed process takes along was confirmed in its last seconds.
    pub fn answerable(&self) -> u64 {
        self.shared.answerable()
    }

    /// Looks whether the writer comes on. To be called several times a second.
    pub fn watch(&self) {
        self.shared.watch(Instant::now());
    }

    /// When what was written is synced.
    pub fn policy(&self) -> Policy {
        self.shared.policy()
    }

    /// Goes on in a directory that may have been made anew: what is appended is to be found from there.
    pub fn follow_directory(&self, directory: &Path) {
        if let Some(keep) = &self.shared.keep
            && let Err(error) = keep.follow(directory)
        {
            self.shared.keep_is_lost(&words(&error));
        }
    }

    /// Changes when what was written is synced.
    pub fn set_policy(&self, policy: Policy) {
        self.shared.set_policy(policy);
    }

    /// Changes whether each second's first record is preceded by its time.
    pub fn set_timestamps(&self, timestamps: bool) {
        self.shared.set_timestamps(timestamps);
    }

    /// Changes whether nothing is synced while a snapshot is written.
    pub fn set_no_sync_during_rewrite(&self, no_sync: bool) {
        self.shared.no_sync_during_rewrite.store(no_sync, Ordering::Relaxed);
        self.shared.ring.nudge_consumer();
    }

    /// Says whether a snapshot is being written.
    pub fn set_snapshotting(&self, snapshotting: bool) {
        self.shared.snapshotting.store(snapshotting, Ordering::Relaxed);
        self.shared.ring.nudge_consumer();
    }

    /// Why writes are to be refused, if they are.
    #[inline]
    pub fn refuses_writes(&self) -> Option<Reason> {
        if self.shared.failing.load(Ordering::Relaxed) { self.shared.trouble().reason() } else { None }
    }

    /// Why what was appended may not come into the file, if that is so. Where writes are refused because there is no room for more,
    /// it does.
    pub fn is_held_up(&self) -> Option<Reason> {
        if !self.shared.failing.load(Ordering::Relaxed) {
            return None;
        }
        let trouble = self.shared.trouble();
        if trouble.holds_up_writer() { trouble.reason() } else { None }
    }

    /// Whether only a rewrite makes the log whole again.
    pub fn needs_rewrite(&self) -> bool {
        self.shared.failing.load(Ordering::Relaxed) && self.shared.trouble().has_untrusted_file()
    }

    /// Has everything before `position` synced, whatever the policy, and waits for it; tells whether it was done in time.
    pub fn wait_durable(&self, position: u64, at_most: Duration) -> bool {
        let end = Instant::now() + at_most;
        let mut control = self.shared.control();
        control.sync_wanted = control.sync_wanted.max(position);
        self.shared.ring.nudge_consumer();
        while self.durable() < position {
            let Some(rest) = end.checked_duration_since(Instant::now()) else { return false };
            control = self.shared.wait_for_progress(control, rest);
        }
        true
    }

    /// Writes and syncs everything, and ends the threads. Nothing may be appended any more.
    ///
    /// # Errors
    /// When something could not be written or synced; it is tried once.
    pub fn close(&self) -> io::Result<()> {
        self.shared.control().stop = true;
        self.shared.ring.nudge_consumer();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            thread.join().map_err(|_| io::Error::other("a thread of the log had panicked"))?;
        }
        let end = self.shared.control().end.take().unwrap_or(Ok(()));
        match &self.shared.keep {
            Some(keep) if end.is_ok() => keep.end(),
            Some(keep) => keep.leave(),
            None => {}
        }
        end
    }

    /// Figures for INFO.
    pub fn statistics(&self) -> Statistics {
        self.shared.statistics()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // Whoever wants to know calls it before.
        let _ = self.close();
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log")
            .field("statistics", &self.statistics())
            .field("durable", &self.durable())
            .finish_non_exhaustive()
    }
}
