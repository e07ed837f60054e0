//! The log that is open: who has it, its settings, and its figures. Knows no command.

use super::hooks::LogHooks;
use super::rewrite::{Rewrites, empty_base};
use crate::config::{Access, Fsync};
use crate::engine::Engine;
use crate::journal::Journal;
use parking_lot::{Mutex, RwLock};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tenon_journal::files::fault::Plan;
use tenon_journal::files::{Disk, Faulty, Files};
use tenon_journal::{Policy, Settings};
use tenon_persist::aof::append_only::Statistics;
use tenon_persist::aof::{AppendOnly, Directory, Names, OpenError};

/// The command that chooses database 0.
const SELECT_FIRST: &[u8] = b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n";

/// How long a start waits for the end of a process that has the log: what a killed one had in memory is given back first.
const DYING_MAX: Duration = Duration::from_secs(5);
const DYING_PERIOD: Duration = Duration::from_millis(5);

/// How long the end of the process waits for a disk when it comes in the middle of calls.
const LEFT_MAX: Duration = Duration::from_secs(5);

/// The append-only file.
#[derive(Default)]
pub struct Aof {
    /// What is written to, if anything is.
    current: RwLock<Option<Arc<AppendOnly>>>,
    /// Whether `current` is whole by itself: its base is there.
    pub(super) is_whole: AtomicBool,
    /// Position behind the last log: the next one's begin there, so that whoever waits for one of the former's has it.
    pub(super) end: AtomicU64,
    pub(super) rewrites: Mutex<Rewrites>,
    /// A rewrite is to begin as soon as nothing stands against it.
    pub(super) wanted: AtomicBool,
    /// The log may lack something that is in memory: one is to begin until one succeeds.
    pub(super) is_doubted: AtomicBool,
    /// The file system.
    files: OnceLock<Arc<dyn Files>>,
    /// The same, where it is one that can be made to fail.
    faulty: OnceLock<Faulty<Disk>>,
}

/// Figures for INFO.
#[derive(Clone, Debug)]
pub struct AofFigures {
    /// Whether records are written.
    pub enabled: bool,
    /// Whether a rewrite is under way, and since how many seconds.
    pub rewriting_for_s: Option<u64>,
    /// How many have begun since the start or since statistics were reset.
    pub begun: u64,
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

    fn turn_ended(&self) {
        self.0.log().turn_ended();
    }

    fn has_room_for_ticks(&self) -> bool {
        self.0.log().has_room_for_ticks()
    }

    fn answerable(&self) -> u64 {
        self.0.log().answerable()
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
    /// The file system that the log lies on. Where DEBUG may be used it can be made to fail.
    pub fn files(&self) -> Arc<dyn Files> {
        let choose = || -> Arc<dyn Files> {
            if self.config.enable_debug_command() == Access::No {
                return Arc::new(Disk);
            }
            Arc::new(self.aof.faulty.get_or_init(|| Faulty::new(Disk, Plan::default())).clone())
        };
        Arc::clone(self.aof.files.get_or_init(choose))
    }

    /// Has calls to the log's file system fail as this plan says, in the words of `tenon_journal::files::fault`.
    ///
    /// # Errors
    /// When it is no plan, or DEBUG may not be used.
    pub fn plan_faults(&self, plan: &str) -> Result<(), String> {
        let plan = plan.parse()?;
        // It is chosen when it is first used.
        self.files();
        let faulty = self.aof.faulty.get().ok_or("the file system cannot be made to fail")?;
        faulty.set(plan);
        Ok(())
    }

    /// Whether the log is on disk up to a position, and says by itself what the data is; `None` where there is none.
    pub(crate) fn is_log_on_disk(&self, position: u64) -> Option<bool> {
        let append_only = self.append_only()?;
        let log = append_only.log();
        // Nobody is to wait for what nothing syncs, but now and then a change of files.
        let durable = if log.policy() == Policy::No { 0 } else { log.durable() };
        // A position of a log that is closed by now says no more than that something was written.
        Some(self.aof.is_whole.load(Ordering::Relaxed) && durable >= position.min(log.position()))
    }

    /// Whether the log, where there is one, has its base: with what is in `dump.rdb` it is not read then.
    pub(crate) fn is_log_whole(&self) -> bool {
        self.append_only().is_none() || self.aof.is_whole.load(Ordering::Relaxed)
    }

    /// Has the log, where there is one, written anew as soon as that can be, as often as that fails: it may lack something.
    pub(crate) fn doubt_log(&self) {
        if self.append_only().is_some() {
            self.aof.is_doubted.store(true, Ordering::Relaxed);
        }
    }

    /// Why what is confirmed may not be in the log's files, if that is so: they cannot be written, or are not trusted any more.
    pub(crate) fn log_is_behind(&self) -> Option<std::io::Error> {
        self.append_only()?.log().is_held_up().map(|reason| std::io::Error::other(reason.to_string()))
    }

    /// How the files of a log are called that begins now. By its whole path: `dir` may be set to another one later, and a
    /// directory that was removed is made again where it was.
    pub fn aof_names(&self) -> Names {
        Names {
            dir: PathBuf::from(&*self.config.dir()),
            appenddirname: self.config.appenddirname().to_string(),
            appendfilename: self.config.appendfilename().to_string(),
        }
    }

    /// How those are called of the log that is written to, or else of one that begins now.
    pub(crate) fn current_aof_names(&self) -> Names {
        self.append_only().map_or_else(|| self.aof_names(), |append_only| append_only.names().clone())
    }

    /// Tells an operator who has just set `dir` that the log stays where it is.
    pub(crate) fn say_where_log_stays(&self) {
        let names = self.current_aof_names();
        if names.dir != self.aof_names().dir {
            tracing::warn!(
                "The append-only file stays in {}: 'CONFIG SET appendonly no' and then 'yes' begins one in the new dir",
                names.directory().display()
            );
        }
    }

    pub(super) fn log_settings(&self) -> Settings {
        Settings {
            policy: policy_of(self.config.appendfsync()),
            no_sync_during_rewrite: self.config.no_appendfsync_on_rewrite(),
            timestamps: self.config.aof_timestamp_enabled(),
            hears_of_turns: self.has_event_loops(),
            start: self.aof.end.load(Ordering::SeqCst),
            ..Settings::default()
        }
    }

    pub(super) fn hooks(&self) -> Arc<LogHooks> {
        Arc::new(LogHooks::new(self.shared().as_ref().map(Arc::downgrade).unwrap_or_default()))
    }

    /// The files that are written to.
    pub(crate) fn append_only(&self) -> Option<Arc<AppendOnly>> {
        self.aof.current.read().clone()
    }

    pub(super) fn set_append_only(&self, append_only: Option<Arc<AppendOnly>>) {
        self.aof.is_whole.store(false, Ordering::Relaxed);
        self.aof.is_doubted.store(false, Ordering::Relaxed);
        *self.aof.current.write() = append_only;
    }

    /// Looks what there is of a log that is to be loaded, and tells of it, with what a killed server had confirmed and not written
    /// put behind it. While another process has it that may be ending this waits a moment.
    ///
    /// # Errors
    /// When it must not be loaded, nor begun anew.
    pub fn open_log_to_load(&self) -> Result<Directory, OpenError> {
        let until = Instant::now() + DYING_MAX;
        let mut waits = false;
        let directory = loop {
            match Directory::open(self.files(), self.aof_names()) {
                Err(OpenError::InUse { directory }) if Instant::now() < until => {
                    if !waits {
                        tracing::info!(
                            "{directory} is in use by another server: waiting at most {DYING_MAX:?} for its end"
                        );
                    }
                    waits = true;
                    std::thread::sleep(DYING_PERIOD);
                }
                opened => break opened?,
            }
        };
        // A file that is missing and will be put back must find what belongs to it.
        directory.parts()?;
        self.bring_left_log(directory)
    }

    /// Has what a killed server had confirmed and not written be in a log's files, and tells of it.
    ///
    /// # Errors
    /// When that is not possible.
    pub(super) fn bring_left_log(&self, mut directory: Directory) -> Result<Directory, OpenError> {
        directory.bring_left(&self.log_settings())?;
        directory.notes.iter().for_each(|note| tracing::info!("{note}"));
        directory.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        Ok(directory)
    }

    /// Opens the log behind what was loaded from it: from now on every write is in it. Clients are told meanwhile that data is
    /// loaded.
    ///
    /// # Errors
    /// When its files cannot be made or opened.
    pub fn open_aof(&self, directory: Directory) -> Result<(), OpenError> {
        let (format, empty) = empty_base(self.base_form());
        let is_gone_on_with = !directory.is_empty();
        let lacks_base = directory.lacks_base();
        let append_only = directory.append((format, &empty), &self.log_settings(), self.hooks())?;
        if is_gone_on_with {
            // Records begin in database 0. Redis leaves its log in whichever it has written to last.
            append_only.log().append(SELECT_FIRST);
            append_only.log().turn_ended();
        }
        let append_only = Arc::new(append_only);
        self.set_append_only(Some(Arc::clone(&append_only)));
        // They may be others than those it was opened with: files were made and synced meanwhile.
        self.follow_aof_settings();
        // If it is not, a tick soon begins the rewrite that makes it whole.
        self.aof.is_whole.store(!lacks_base, Ordering::Relaxed);
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

    /// Has replies wait for the log while its writer is held up. Called several times a second.
    pub(crate) fn watch_aof(&self) {
        if let Some(append_only) = self.append_only() {
            append_only.log().watch();
        }
    }

    /// Writes and syncs what is in the log when the process ends in the middle of calls, which may still append to it: from here on
    /// replies wait for their records, whatever the settings say, so nothing is confirmed that this does not find.
    ///
    /// # Errors
    /// When it could not be done, or takes too long.
    pub fn leave_aof(&self) -> std::io::Result<()> {
        let Some(append_only) = self.append_only() else { return Ok(()) };
        append_only.log().set_policy(Policy::Always);
        // Before the position is looked at: who has not seen it yet has appended what that counts.
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.sync_aof(LEFT_MAX) {
            return Ok(());
        }
        Err(self.log_is_behind().unwrap_or_else(|| std::io::ErrorKind::TimedOut.into()))
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
        self.journal_has_ended();
        closed
    }

    /// No rewrite has begun, as far as INFO says.
    pub(crate) fn forget_rewrites(&self) {
        self.aof.rewrites.lock().begun = 0;
    }

    /// Figures for INFO.
    pub fn aof_figures(&self) -> AofFigures {
        let files = self.append_only().map(|append_only| append_only.statistics());
        let rewrites = self.aof.rewrites.lock();
        AofFigures {
            enabled: files.is_some(),
            rewriting_for_s: rewrites.since.map(|since| since.elapsed().as_secs()),
            begun: rewrites.begun,
            scheduled: self.aof.wanted.load(Ordering::Relaxed),
            last_rewrite_s: rewrites.last.map(|(took, _)| took.as_secs()),
            last_rewrite_ok: rewrites.last.is_none_or(|(_, ok)| ok),
            files,
        }
    }
}
