//! An append-only log that is open: its files, and how a new base takes the place of what was before, crash-safe at
//! each step. Knows no command and no snapshot, only the file that one was written to.
//!
//! ```text
//!               begin_rewrite              cut                 finish_rewrite
//!  base 1   --> base 1           -->  base 1        -->  base 2 (its snapshot is of the cut)
//!  incr 1  *    incr 1  *             incr 1             incr 2  *
//!               incr 2 (empty)        incr 2  *
//!  * is written to                                   what was before is history, and deleted
//! ```
//!
//! A list of files becomes valid by its renaming, with all it names on disk before. Wherever it ends in between, the
//! list that is valid holds every record: before the last step the old base and both increments, then the new base and
//! the second. What is not on the list is overwritten by the next rewrite.

use super::directory::{self, Directory, OpenError, tried};
use super::listing::{Listing, Unpublished};
use super::manifest::{Entry, Manifest};
use super::names::{BaseFormat, Names};
use super::words_of_error;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenon_journal::files::{File, Files, Hold, Want};
use tenon_journal::log::Event;
use tenon_journal::{Hooks, Log, Settings, log};

/// How long the switch to another file may take before the old ones are left to the next rewrite.
const SWITCH_MAX: Duration = Duration::from_secs(30);

/// An append-only log.
pub struct AppendOnly {
    files: Arc<dyn Files>,
    names: Names,
    /// No other server has its log in the directory as long as this one does.
    hold: Mutex<Option<Hold>>,
    log: Log,
    /// What is valid on disk. Held while files are synced.
    manifest: Mutex<Manifest>,
    /// Held for a moment only: INFO asks for them.
    figures: Mutex<Figures>,
    /// The number of the first increment that is this log's to withdraw: what was loaded with it, or it has begun itself.
    own_from: i64,
    /// Whether the files are somebody else's by now. Changes with the manifest's lock.
    is_retired: AtomicBool,
}

#[derive(Debug)]
struct Figures {
    /// Whether a rewrite is under way.
    rewriting: bool,
    /// Bytes of the files that are loaded, but for the one that is written to, or will be from this generation on.
    closed_size: u64,
    written_from: u64,
    /// Bytes there were when the log was last rewritten or loaded.
    base_size: u64,
    last_rewrite_ok: bool,
    failures: u64,
}

/// A rewrite that is under way. To drop it does not end it.
#[derive(Debug)]
#[must_use = "a rewrite is finished or aborted"]
pub struct Rewrite {
    base_path: PathBuf,
    generation: u64,
    cut: Option<u64>,
    /// The log was begun with it, and its increment has no name yet.
    is_first: bool,
}

impl Rewrite {
    /// Where the snapshot is to be written, and synced.
    pub fn base_path(&self) -> &Path {
        &self.base_path
    }

    /// The position that the snapshot is to be of, once it is known.
    pub fn position(&self) -> Option<u64> {
        self.cut
    }
}

/// Why a rewrite failed.
#[derive(Debug)]
pub enum RewriteError {
    /// Another one is under way.
    UnderWay,
    /// The log has ended, and the files belong to whoever has begun another.
    Retired,
    /// The directory could not be made, or another server has it.
    Directory(OpenError),
    /// A file could not be made, or the list could not be written.
    Io {
        /// What was tried, in words.
        what: String,
        /// What the system says.
        error: io::Error,
    },
}

impl std::fmt::Display for RewriteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RewriteError::UnderWay => f.write_str("Background append only file rewriting already in progress"),
            RewriteError::Retired => f.write_str("the log has ended"),
            RewriteError::Directory(error) => error.fmt(f),
            RewriteError::Io { what, error } => write!(f, "{what}: {}", words_of_error(error)),
        }
    }
}

impl std::error::Error for RewriteError {}

fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> RewriteError {
    let what = what.into();
    move |error| RewriteError::Io { what, error }
}

/// Figures for INFO.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// `aof_current_size`.
    pub current_size: u64,
    /// `aof_base_size`.
    pub base_size: u64,
    /// `aof_rewrites_consecutive_failures`.
    pub failures: u64,
    /// `aof_last_bgrewrite_status`.
    pub last_rewrite_ok: bool,
    /// `aof_rewrite_in_progress`.
    pub rewriting: bool,
    /// Those of the log itself.
    pub log: log::Statistics,
}

impl Directory {
    /// Opens the log behind what was loaded. If there was nothing, it begins with a base that holds `empty_base`: a
    /// snapshot of no data, or nothing for the format of commands.
    ///
    /// # Errors
    /// When files cannot be made or opened.
    pub fn append(
        mut self,
        empty_base: (BaseFormat, &[u8]),
        settings: &Settings,
        hooks: Arc<dyn Hooks>,
    ) -> Result<AppendOnly, OpenError> {
        self.make()?;
        let before = self.manifest.clone();
        let is_new = self.manifest.is_empty();
        if is_new {
            let (format, bytes) = empty_base;
            self.listing().stage(&self.manifest).map_err(tried("Can't write the AOF manifest file"))?;
            let names = &self.names;
            let base = self.manifest.replace_base(0, |seq| names.base(seq, format));
            let write = || {
                let file = self.files.create(&self.path(&base))?;
                file.write_all(bytes)?;
                file.sync()
            };
            write().map_err(tried("Can't create the first AOF base file"))?;
        }
        let names = &self.names;
        let listed = self.manifest.increments.last().cloned();
        let last = listed.clone().unwrap_or_else(|| self.manifest.add_increment(|seq| names.increment(seq)));
        let path = self.path(&last);
        let what = format!("Can't open the append-only file {}", path.display());
        // What lies there unlisted was never valid: a log that did not come to be has left it.
        let file = if listed.is_some() { self.files.append(&path) } else { self.files.create(&path) };
        let file = file.map_err(tried(what))?;
        if self.manifest != before {
            self.publish().map_err(tried("Can't write the AOF manifest file"))?;
        }
        let base_size = match &self.manifest.base {
            Some(base) => self.files.len(&self.path(base)).map_err(tried("stat"))?.unwrap_or(0),
            None => 0,
        };
        let log = self.start_log(file, settings, hooks)?;
        let total: u64 = self.parts()?.iter().map(|part| part.size).sum();
        let closed_size = total.saturating_sub(log.statistics().file_len);
        let own_from = self.manifest.first_lacking().unwrap_or(i64::MAX);
        let figures = Figures { closed_size, base_size, ..Figures::default() };
        let append_only = AppendOnly { own_from, ..self.with_log(log, figures) };
        append_only.clean_up();
        Ok(append_only)
    }

    /// Begins a log while the server runs, behind what is there: its first increment is on the list, so what is appended
    /// is found after a crash. It lacks what it stands on, until it is rewritten.
    ///
    /// # Errors
    /// When files cannot be made: then what was there is as it was.
    pub fn begin(mut self, settings: &Settings, hooks: Arc<dyn Hooks>) -> Result<AppendOnly, OpenError> {
        self.make()?;
        let names = &self.names;
        if self.manifest.lacks_every_base() {
            // It was not loaded: the new one's commands do not run on what it did.
            self.manifest.withdraw_lacking(i64::MIN);
        }
        // Before the list is another one: where a file is missing all is as it was.
        let closed_size = self.parts()?.iter().map(|part| part.size).sum();
        let increment = self.manifest.add_increment(|seq| names.increment(seq));
        self.manifest.increments.last_mut().expect("it was just added").lacks_base = true;
        // Under its temporary name the list comes first: a start that finds a file without a list knows it by that.
        self.listing().stage(&self.manifest).map_err(tried("Can't write the AOF manifest file"))?;
        let path = self.path(&increment);
        let begin = || {
            let what = format!("Can't open the append-only file {}", path.display());
            let file = self.files.create(&path).map_err(tried(what))?;
            let log = self.start_log(file, settings, hooks)?;
            let committed = self.listing().commit().map_err(io::Error::from);
            committed.map_err(tried("Can't write the AOF manifest file"))?;
            Ok(log)
        };
        let log = begin().inspect_err(|_: &OpenError| {
            let staged = names.path(names.temporary_manifest());
            // Where the list is valid by now, what it names must stay. Else a start could not tell the file from one of a
            // log whose list is lost.
            if matches!(self.files.len(&staged), Ok(Some(_))) && self.files.remove(&path).is_ok() {
                let _ = self.files.remove(&staged);
            }
        })?;
        let figures = Figures { closed_size, ..Figures::default() };
        Ok(AppendOnly { own_from: increment.seq, ..self.with_log(log, figures) })
    }

    /// Starts a log whose records survive this process, where that can be.
    fn start_log(&self, file: Arc<dyn File>, settings: &Settings, hooks: Arc<dyn Hooks>) -> Result<Log, OpenError> {
        let kept = self.files.kept_memory(&self.names.directory(), Log::memory_len(settings), Want::Room);
        let kept = kept.unwrap_or_else(|error| {
            hooks.event(&Event::EndsWithProcess(words_of_error(&error)));
            None
        });
        Log::start_in(kept, file, settings, hooks).map_err(tried("Can't start the append-only log"))
    }

    fn with_log(self, log: Log, figures: Figures) -> AppendOnly {
        AppendOnly {
            figures: Mutex::new(figures),
            manifest: Mutex::new(self.manifest),
            files: self.files,
            names: self.names,
            hold: Mutex::new(self.hold),
            log,
            own_from: i64::MAX,
            is_retired: AtomicBool::new(false),
        }
    }

    /// Begins a log that is made for its base alone, in the place of what is there: nothing of it is valid before the
    /// rewrite that comes with it is finished. Its position is known at once; the snapshot must be of the moment from
    /// which on records are appended.
    ///
    /// # Errors
    /// When files cannot be made.
    pub fn begin_with_rewrite(
        mut self,
        settings: &Settings,
        hooks: Arc<dyn Hooks>,
    ) -> Result<(AppendOnly, Rewrite), OpenError> {
        self.make()?;
        let path = self.names.path(self.names.temporary_increment());
        let what = format!("Can't open the append-only file {}", path.display());
        let file = self.files.create(&path).map_err(tried(what))?;
        let log = Log::start(file, settings, hooks).map_err(tried("Can't start the append-only log"))?;
        let rewrite = Rewrite {
            base_path: self.names.path(self.names.temporary_base()),
            generation: log.generation(),
            cut: Some(log.position()),
            is_first: true,
        };
        let figures = Figures { rewriting: true, ..Figures::default() };
        Ok((self.with_log(log, figures), rewrite))
    }
}

impl Default for Figures {
    fn default() -> Figures {
        Figures { rewriting: false, closed_size: 0, written_from: 0, base_size: 0, last_rewrite_ok: true, failures: 0 }
    }
}

impl AppendOnly {
    /// How its files are called.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The log, to append to.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Opens another increment and gets ready to go on in it. Slow: files are made and synced.
    ///
    /// # Errors
    /// When another rewrite is under way, or files cannot be made: everything is as before then.
    pub fn begin_rewrite(&self) -> Result<Rewrite, RewriteError> {
        if std::mem::replace(&mut self.figures().rewriting, true) {
            return Err(RewriteError::UnderWay);
        }
        let begun = self.prepare(&mut self.manifest());
        if begun.is_err() {
            self.figures().note_failure();
        }
        begun
    }

    fn prepare(&self, valid: &mut Manifest) -> Result<Rewrite, RewriteError> {
        self.refuse_if_retired()?;
        // One that was given up may have cut.
        if !self.log.wait_switched(SWITCH_MAX) {
            return Err(failed("Can't switch to another append-only file")(io::ErrorKind::TimedOut.into()));
        }
        let rewrite = Rewrite {
            base_path: self.names.path(self.names.temporary_base()),
            // Only a rewrite switches, and there is no other.
            generation: self.log.generation() + 1,
            cut: None,
            is_first: false,
        };
        // Somebody may have removed it.
        let hold = directory::make(&*self.files, &self.names).map_err(RewriteError::Directory)?;
        *self.hold.lock().unwrap_or_else(PoisonError::into_inner) = hold;
        self.log.follow_directory(&self.names.directory());
        let mut manifest = valid.clone();
        let increment = manifest.add_increment(|seq| self.names.increment(seq));
        let path = self.path(&increment);
        let file =
            self.files.create(&path).map_err(failed(format!("Can't open the append-only file {}", path.display())))?;
        match self.listing().publish(valid, manifest) {
            Ok(()) => {}
            Err(Unpublished::Not(error)) => {
                // An empty file that no list names; the next one of its number overwrites it.
                let _ = self.files.remove(&path);
                return Err(failed("Can't write the AOF manifest file")(error));
            }
            Err(Unpublished::NotForCertain(error)) => return Err(failed("Can't sync the AOF manifest file")(error)),
        }
        self.log.prepare_switch(file).map_err(failed("Can't switch to another append-only file"))?;
        Ok(rewrite)
    }

    /// The moment of the snapshot: what is appended from now on goes to the new increment. To be called while nobody
    /// can append. Waits for nothing.
    ///
    /// # Panics
    /// When it was called before for this rewrite.
    pub fn cut(&self, rewrite: &mut Rewrite) -> u64 {
        assert!(rewrite.cut.is_none(), "a rewrite has one position");
        let position = self.log.cut();
        rewrite.cut = Some(position);
        position
    }

    /// The snapshot is written, in this form and with so many bytes: it takes the place of everything before its position.
    ///
    /// # Errors
    /// When that could not be made certain, or the file is not there as it was written. Every record is still in the files
    /// that are valid.
    ///
    /// # Panics
    /// When the rewrite's position was never asked for.
    pub fn finish_rewrite(&self, rewrite: Rewrite, written: (BaseFormat, u64)) -> Result<(), RewriteError> {
        let position = rewrite.cut.expect("a snapshot has a position");
        let mut valid = self.manifest();
        if let Err(error) = self.replace(&mut valid, &rewrite, written) {
            // Nobody needs it any more.
            let _ = self.files.remove(&rewrite.base_path);
            self.count_closed(&valid, &rewrite);
            self.figures().note_failure();
            return Err(error);
        }
        self.log.drop_before_switch();
        let switched = self.log.wait_switched(SWITCH_MAX);
        self.log.trust_from(rewrite.generation, position);
        let base = valid.base.as_ref().expect("it was just put there");
        let base_len = self.files.len(&self.path(base)).ok().flatten().unwrap_or(0);
        *self.figures() = Figures {
            closed_size: base_len,
            base_size: base_len + self.log.statistics().file_len,
            ..Figures::default()
        };
        if switched {
            self.listing().delete_history(&mut valid);
        }
        Ok(())
    }

    fn replace(
        &self,
        valid: &mut Manifest,
        rewrite: &Rewrite,
        (format, written): (BaseFormat, u64),
    ) -> Result<(), RewriteError> {
        self.refuse_if_retired()?;
        let sync = || self.files.append(&rewrite.base_path)?.sync();
        sync().map_err(failed("Can't sync the new AOF base file"))?;
        // Somebody may have removed it or made it shorter: what it replaces is the only other copy.
        let found = self.files.len(&rewrite.base_path).map_err(failed("Can't look at the new AOF base file"))?;
        if found != Some(written) {
            let gone = format!("{} bytes were written, and {} are there", written, found.unwrap_or(0));
            return Err(failed("The new AOF base file is not what was written")(io::Error::other(gone)));
        }
        let mut manifest = valid.clone();
        let base = manifest.replace_base(if rewrite.is_first { 0 } else { 1 }, |seq| self.names.base(seq, format));
        let mut renames = vec![(rewrite.base_path.clone(), self.path(&base))];
        if rewrite.is_first {
            let increment = manifest.add_increment(|seq| self.names.increment(seq));
            renames.push((self.names.path(self.names.temporary_increment()), self.path(&increment)));
        }
        // The list is there under its temporary name before anything has its final one: a start that finds files
        // without a list knows by it that they are of no value.
        self.listing().stage(&manifest).map_err(failed("Can't write the AOF manifest file"))?;
        for (index, (from, to)) in renames.iter().enumerate() {
            if let Err(error) = self.files.rename(from, to) {
                self.undo(&renames[..index]);
                let what = format!("Error trying to rename {} into {}", from.display(), to.display());
                return Err(failed(what)(error));
            }
        }
        match self.listing().publish_staged(valid, manifest) {
            Ok(()) => Ok(()),
            Err(Unpublished::Not(error)) => {
                self.undo(&renames);
                Err(failed("Can't write the AOF manifest file")(error))
            }
            // Old and new files both stay: either list may be found.
            Err(Unpublished::NotForCertain(error)) => Err(failed("Can't sync the AOF manifest file")(error)),
        }
    }

    /// Gives files their temporary names back.
    fn undo(&self, renames: &[(PathBuf, PathBuf)]) {
        for (from, to) in renames {
            // If it fails, a file stays that no list names.
            let _ = self.files.rename(to, from);
        }
    }

    /// The snapshot failed, or is not wanted any more. What was appended stays where it is.
    pub fn abort_rewrite(&self, rewrite: Rewrite) {
        let mut valid = self.manifest();
        // It may never have been made.
        let _ = self.files.remove(&rewrite.base_path);
        if rewrite.is_first {
            let _ = self.files.remove(&self.names.path(self.names.temporary_increment()));
        } else if self.refuse_if_retired().is_err() {
            // The list is not this log's any more.
        } else if rewrite.cut.is_none() && self.log.cancel_switch() {
            let mut manifest = valid.clone();
            let unused = manifest.increments.pop().expect("it was added when the rewrite began");
            // Its number was used; if the list stays as it is, an empty file is on it.
            if self.listing().publish(&mut valid, manifest).is_ok() {
                let _ = self.files.remove(&self.path(&unused));
            }
        } else {
            self.count_closed(&valid, &rewrite);
        }
        self.figures().note_failure();
    }

    /// Counts the files anew that are loaded and not written to any more, behind a rewrite that has failed though it had cut: what was
    /// written to until then is one of them, or is about to be when the writer gets there.
    fn count_closed(&self, valid: &Manifest, rewrite: &Rewrite) {
        let unwritten = rewrite.cut.map_or(0, |cut| cut.saturating_sub(self.log.written()));
        let mut sizes: Vec<u64> =
            valid.to_load().map(|entry| self.files.len(&self.path(entry)).ok().flatten().unwrap_or(0)).collect();
        sizes.pop();
        let mut figures = self.figures();
        (figures.closed_size, figures.written_from) = (sizes.iter().sum::<u64>() + unwritten, rewrite.generation);
    }

    /// A file of the list whose name is gone: somebody has removed it, and a restart would not find it. Only a rewrite makes the
    /// log whole again, so it may be one that is written to no more since an earlier attempt at that. Waits for nobody.
    pub fn lost_file(&self) -> Option<PathBuf> {
        let manifest = self.manifest.try_lock().ok()?;
        let mut paths = manifest.to_load().map(|entry| self.path(entry));
        paths.find(|path| matches!(self.files.len(path), Ok(None)))
    }

    /// Keeps the list as it is, and the files on it: who reads them again must not find that a rewrite has deleted some.
    #[must_use = "the list may change when this goes"]
    pub fn hold_list(&self) -> impl Sized + '_ {
        self.manifest()
    }

    /// Leaves the list to whoever opens the files next: from now on no rewrite of this log changes it.
    pub fn retire(&self) {
        let _valid = self.manifest();
        self.is_retired.store(true, Ordering::Relaxed);
    }

    /// The log ends before it has its base: what it has would stand on whatever the next start finds beneath, a `dump.rdb` of
    /// later days above all. So it is taken off the list and deleted, and what was there before it began stays. No rewrite of this
    /// log changes the list any more. Tells whether there was anything.
    ///
    /// # Errors
    /// When the list cannot be written: then it may still have what it had.
    pub fn withdraw(&self) -> io::Result<bool> {
        let mut valid = self.manifest();
        self.is_retired.store(true, Ordering::Relaxed);
        self.listing().withdraw(&mut valid, self.own_from)
    }

    /// Asked with the manifest's lock.
    fn refuse_if_retired(&self) -> Result<(), RewriteError> {
        if self.is_retired.load(Ordering::Relaxed) { Err(RewriteError::Retired) } else { Ok(()) }
    }

    /// Figures for INFO.
    pub fn statistics(&self) -> Statistics {
        let figures = self.figures();
        let is_closed = self.log.generation() < figures.written_from;
        let log = self.log.statistics();
        Statistics {
            current_size: figures.closed_size + if is_closed { 0 } else { log.file_len },
            base_size: figures.base_size,
            failures: figures.failures,
            last_rewrite_ok: figures.last_rewrite_ok,
            rewriting: figures.rewriting,
            log,
        }
    }

    /// Writes and syncs everything; nothing may be appended any more.
    ///
    /// # Errors
    /// When something could not be written or synced.
    pub fn close(&self) -> io::Result<()> {
        self.log.close()
    }

    fn manifest(&self) -> MutexGuard<'_, Manifest> {
        self.manifest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn figures(&self) -> MutexGuard<'_, Figures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, entry: &Entry) -> PathBuf {
        self.names.path(OsStr::from_bytes(&entry.name))
    }

    fn listing(&self) -> Listing<'_> {
        Listing { files: &*self.files, names: &self.names }
    }

    /// Deletes what earlier rewrites left, and what those left that did not end.
    fn clean_up(&self) {
        self.listing().delete_history(&mut self.manifest());
        let listed = self.files.list(&self.names.directory()).ok().flatten().unwrap_or_default();
        for name in listed {
            let is_left = name
                .to_str()
                .is_some_and(|name| Names::is_temporary_base(name) || name == self.names.temporary_increment());
            if is_left {
                // It costs room, no more.
                let _ = self.files.remove(&self.names.path(name));
            }
        }
    }
}

impl Figures {
    /// A rewrite has ended, and not well.
    fn note_failure(&mut self) {
        self.rewriting = false;
        self.last_rewrite_ok = false;
        self.failures += 1;
    }
}
