//! The log that is open: who has it, its settings, and its figures. Knows no command.

use super::hooks::LogHooks;
use super::rewrite::Rewrites;
use crate::config::Fsync;
use crate::engine::Engine;
use crate::journal::Journal;
use parking_lot::{Mutex, RwLock};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tenon_journal::files::{Disk, Files};
use tenon_journal::{Policy, Settings};
use tenon_persist::aof::append_only::Statistics;
use tenon_persist::aof::{AppendOnly, Directory, Names, OpenError};

/// The append-only file.
#[derive(Default)]
pub struct Aof {
    /// What is written to, if anything is.
    current: RwLock<Option<Arc<AppendOnly>>>,
    /// Whether `current` is whole by itself: its first base is there.
    pub(super) is_whole: AtomicBool,
    pub(super) rewrites: Mutex<Rewrites>,
    /// A rewrite is to begin as soon as nothing stands against it.
    pub(super) wanted: AtomicBool,
    /// The file system, where it is not the machine's.
    files: OnceLock<Arc<dyn Files>>,
}

/// Figures for INFO.
#[derive(Clone, Debug)]
pub struct AofFigures {
    /// Whether records are written.
    pub enabled: bool,
    /// Whether a rewrite is under way, and since how many seconds.
    pub rewriting_for_s: Option<u64>,
    /// Whether one is to begin as soon as it can.
    pub scheduled: bool,
    /// How long the last one took.
    pub last_rewrite_s: Option<u64>,
    /// Whether the last one succeeded.
    pub last_rewrite_ok: bool,
    /// Those of the files, while there are any.
    pub files: Option<Statistics>,
}

/// The log, as commands see it.
pub(super) struct OpenLog(pub(super) Arc<AppendOnly>);

impl Journal for OpenLog {
    fn append(&self, record: &[u8]) -> u64 {
        self.0.log().append(record)
    }

    fn may_answer(&self, position: u64) -> bool {
        self.0.log().may_answer(position)
    }

    fn answerable(&self) -> u64 {
        let log = self.0.log();
        if log.policy() == Policy::Always { log.durable() } else { u64::MAX }
    }
}

fn policy_of(fsync: Fsync) -> Policy {
    match fsync {
        Fsync::Always => Policy::Always,
        Fsync::EverySecond => Policy::EverySecond,
        Fsync::No => Policy::No,
    }
}

impl Engine {
    /// The file system that the log lies on.
    pub fn files(&self) -> Arc<dyn Files> {
        Arc::clone(self.aof.files.get_or_init(|| Arc::new(Disk)))
    }

    /// Puts another file system in the place of the machine's: one that fails, for tests. Before anything is opened.
    ///
    /// # Panics
    /// When it is too late.
    pub fn set_files(&self, files: Arc<dyn Files>) {
        assert!(self.aof.files.set(files).is_ok(), "the file system is chosen before it is used");
    }

    /// How the log's files are called. The process works in `dir`.
    pub fn aof_names(&self) -> Names {
        Names {
            dir: PathBuf::from("."),
            appenddirname: self.config.appenddirname().to_string(),
            appendfilename: self.config.appendfilename().to_string(),
        }
    }

    pub(super) fn log_settings(&self) -> Settings {
        Settings {
            policy: policy_of(self.config.appendfsync()),
            no_sync_during_rewrite: self.config.no_appendfsync_on_rewrite(),
            timestamps: self.config.aof_timestamp_enabled(),
            ..Settings::default()
        }
    }

    pub(super) fn hooks(&self) -> Arc<LogHooks> {
        Arc::new(LogHooks::new(self.shared().as_ref().map(Arc::downgrade).unwrap_or_default()))
    }

    /// The files that are written to.
    pub(super) fn append_only(&self) -> Option<Arc<AppendOnly>> {
        self.aof.current.read().clone()
    }

    pub(super) fn set_append_only(&self, append_only: Option<Arc<AppendOnly>>) {
        self.aof.is_whole.store(false, Ordering::Relaxed);
        *self.aof.current.write() = append_only;
    }

    /// Opens the log behind what was loaded from it: from now on every write is in it. No client is served yet.
    ///
    /// # Errors
    /// When its files cannot be made or opened.
    pub fn open_aof(&self, directory: Directory) -> Result<(), OpenError> {
        let empty = super::rewrite::empty_base();
        let append_only = directory.append(empty_base_of(&empty), &self.log_settings(), self.hooks())?;
        let append_only = Arc::new(append_only);
        self.set_append_only(Some(Arc::clone(&append_only)));
        self.aof.is_whole.store(true, Ordering::Relaxed);
        self.attach_journal(Arc::new(OpenLog(append_only)));
        Ok(())
    }

    /// Has the log follow its settings.
    pub fn follow_aof_settings(&self) {
        if let Some(append_only) = self.append_only() {
            let log = append_only.log();
            log.set_policy(policy_of(self.config.appendfsync()));
            log.set_no_sync_during_rewrite(self.config.no_appendfsync_on_rewrite());
            log.set_timestamps(self.config.aof_timestamp_enabled());
        }
    }

    /// Has everything that is in the log written and synced, whatever its policy, and waits for it, so long at most; tells
    /// whether it was done in time.
    pub fn sync_aof(&self, at_most: Duration) -> bool {
        let Some(append_only) = self.append_only() else { return true };
        let log = append_only.log();
        log.wait_durable(log.position(), at_most)
    }

    /// Writes and syncs what is in the log, and ends it. Nobody is served any more.
    ///
    /// # Errors
    /// When something could not be written or synced.
    pub fn close_aof(&self) -> std::io::Result<()> {
        self.end_rewrite();
        self.detach_journal();
        let Some(append_only) = self.append_only() else { return Ok(()) };
        let closed = append_only.close();
        self.set_append_only(None);
        closed
    }

    /// Figures for INFO.
    pub fn aof_figures(&self) -> AofFigures {
        let files = self.append_only().map(|append_only| append_only.statistics());
        let rewrites = self.aof.rewrites.lock();
        AofFigures {
            enabled: self.is_journaling(),
            rewriting_for_s: rewrites.since.map(|since| since.elapsed().as_secs()),
            scheduled: self.aof.wanted.load(Ordering::Relaxed),
            last_rewrite_s: rewrites.last.map(|(took, _)| took.as_secs()),
            last_rewrite_ok: rewrites.last.is_none_or(|(_, ok)| ok),
            files,
        }
    }
}

fn empty_base_of(bytes: &[u8]) -> (tenon_persist::aof::names::BaseFormat, &[u8]) {
    (tenon_persist::aof::names::BaseFormat::Rdb, bytes)
}
