//! Saving: in the foreground, in the background, at save points. Knows no command.
//!
//! The moment of a save is taken by the worker that begins it. A thread of its own writes the file, so that clients go on;
//! who waits in the foreground is a client, which gets its reply then, never a worker.

use super::file::{Temporary, temporary_name};
use super::state::{Kind, Outcome};
use super::synced::Syncing;
use crate::context::SessionCx;
use crate::engine::Engine;
use crate::errand::{Finish, Work};
use crate::errors::CmdError;
use crate::meanwhile;
use crate::snapshot::{Begun, Snapshot, SnapshotOptions, yield_to_workers};
use crate::worker::Worker;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tenon_persist::rdb::file::{FileOptions, Form};
use tenon_wire::rdb::Compression;
use tenon_wire::resp::Reply;

/// Why no save begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// One is under way.
    Saving,
    /// Another snapshot is, for the log, or the log waits for its first: until that is there a start finds what the log's
    /// commands ran on in the file, which must have none of them.
    OtherSnapshot,
}

/// Why no save begins in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotBegun {
    /// None may.
    Refused(Refusal),
    /// No thread can be had.
    NoThread,
}

impl From<Refusal> for NotBegun {
    fn from(refusal: Refusal) -> NotBegun {
        NotBegun::Refused(refusal)
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A save whose moment was, and where its file goes: where the settings said then, though they may say something else
/// before it is written.
pub(super) struct BegunSave {
    begun: Begun,
    directory: PathBuf,
    name: String,
}

impl BegunSave {
    pub(super) fn snapshot(&self) -> &Arc<Snapshot> {
        self.begun.snapshot()
    }
}

/// A save that has begun: it is written, or else given up.
struct Started {
    engine: Arc<Engine>,
    save: Option<BegunSave>,
}

impl Started {
    fn write(mut self) -> io::Result<()> {
        let save = self.save.take().expect("it is written once");
        self.engine.write_save(save)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(save) = self.save.take() {
            save.begun.give_up(&self.engine);
            self.engine.save_ended(Outcome::Failed);
        }
    }
}

/// A save that is being written: whatever becomes of its thread, it ends, or nobody could save nor end the process any more.
struct Writing<'e> {
    engine: Option<&'e Engine>,
}

impl Writing<'_> {
    fn end(mut self, outcome: Outcome) -> Duration {
        self.engine.take().expect("it ends once").save_ended(outcome)
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if let Some(engine) = self.engine {
            tracing::error!("the data could not be saved: a bug has ended that in its middle");
            engine.save_ended(Outcome::Failed);
        }
    }
}

/// Answers a client that has waited for a save.
struct Answer(io::Result<()>);

impl Finish for Answer {
    fn finish(self: Box<Self>, _: &mut SessionCx<'_>, reply: &mut Reply<'_>) -> Result<Option<Work>, CmdError> {
        match self.0 {
            Ok(()) => reply.simple("OK"),
            // Redis says no more, and logs why.
            Err(_) => return Err(CmdError::text("ERR")),
        }
        Ok(None)
    }
}

impl Engine {
    /// How a file is written by the settings.
    pub fn snapshot_file(&self) -> FileOptions {
        let compression = if self.config.rdbcompression() { Compression::On } else { Compression::Off };
        FileOptions { form: Form::Rdb, compression, has_checksum: self.config.rdbchecksum() }
    }

    /// What keeps a save from beginning, but for a snapshot.
    fn save_refusal(&self) -> Option<Refusal> {
        if self.saving.is_running() {
            return Some(Refusal::Saving);
        }
        (!self.is_log_whole()).then_some(Refusal::OtherSnapshot)
    }

    pub(super) fn begin_save(&self, worker: &mut Worker, kind: Kind) -> Result<BegunSave, Refusal> {
        if let Some(refusal) = self.save_refusal() {
            return Err(refusal);
        }
        let options = SnapshotOptions { file: self.snapshot_file(), is_log_base: false };
        let mut refusal = None;
        let begun = self.begin_snapshot(worker, options, |_| {
            refusal = self.save_refusal();
            if refusal.is_none() {
                // This is the one. What is scheduled behind its moment is another.
                self.saving.take_scheduled();
            }
        });
        let begun = begun.ok_or(if self.saving.is_running() { Refusal::Saving } else { Refusal::OtherSnapshot })?;
        if let Some(refusal) = refusal {
            // Another has begun since: its snapshot may be over while its file is not in place.
            begun.give_up(self);
            return Err(refusal);
        }
        let moment_ms = begun.moment.as_millis() as u64;
        let threshold_ms = self.config.latency_monitor_threshold();
        self.latency.note("snapshot-moment", moment_ms, threshold_ms, worker.clock.now_ms);
        self.saving.began(begun.snapshot(), kind, begun.changes, now_s());
        let directory = PathBuf::from(&*self.config.dir());
        Ok(BegunSave { begun, directory, name: self.config.dbfilename().to_string() })
    }

    /// Writes a save that has begun to its file.
    pub(super) fn write_save(&self, save: BegunSave) -> io::Result<()> {
        let (snapshot, moment) = (Arc::clone(save.snapshot()), save.begun.moment);
        let writing = Writing { engine: Some(self) };
        let path = save.directory.join(&save.name);
        let result = self.write_save_file(save);
        let outcome = match &result {
            Ok(_) => Outcome::Saved,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Outcome::CalledOff,
            Err(_) => Outcome::Failed,
        };
        let took = writing.end(outcome);
        let progress = snapshot.progress();
        match &result {
            Ok(bytes) => tracing::info!(
                keys = progress.keys,
                bytes,
                took_ms = took.as_millis() as u64,
                moment_us = moment.as_micros() as u64,
                queued_peak = progress.queued_peak,
                "DB saved on disk"
            ),
            Err(_) if outcome == Outcome::CalledOff => tracing::info!("saving was called off"),
            Err(error) => {
                let path = std::path::absolute(&path).unwrap_or(path);
                tracing::error!("the data could not be saved to '{}': {error}", path.display());
            }
        }
        result.map(|_| ())
    }

    fn write_save_file(&self, save: BegunSave) -> io::Result<u64> {
        let BegunSave { begun, directory, name } = save;
        let syncing = Syncing::incremental_if(self.config.rdb_save_incremental_fsync());
        let temporary = temporary_name(std::process::id());
        let file = match Temporary::create(self.files(), &directory, &temporary, syncing) {
            Ok(file) => file,
            Err(error) => {
                begun.give_up(self);
                return Err(error);
            }
        };
        *self.saving.unfinished.lock() = Some(directory.join(temporary));
        let written = begun.write_to(self, file).and_then(|(file, report)| {
            file.publish(&name, || self.withdraw_log_without_base(&directory, &name)).map(|()| report.bytes)
        });
        *self.saving.unfinished.lock() = None;
        written
    }

    /// The process ends although a save may be under way: of that nothing stays.
    pub fn drop_unfinished_save(&self) {
        self.saving.cancel(None);
        if let Some(path) = self.saving.unfinished.lock().take() {
            // It may be whole by now, or removed by who wrote it.
            let _ = self.files().remove(&path);
        }
    }

    /// Saves while a client waits for it; the worker goes on.
    ///
    /// # Errors
    /// When one is under way.
    pub fn save(&self, cx: &mut SessionCx<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
        let save = match self.begin_save(cx.worker, Kind::Foreground) {
            Ok(save) => save,
            Err(Refusal::Saving) => return Err(CmdError::text("ERR Background save already in progress")),
            Err(Refusal::OtherSnapshot) => {
                return Err(CmdError::text("ERR Background append only file rewriting in progress"));
            }
        };
        let Some(engine) = self.shared() else {
            return Box::new(Answer(self.write_save(save))).finish(cx, reply).map(|_| ());
        };
        let started = Started { engine, save: Some(save) };
        self.send_out(cx, Box::new(move || Box::new(Answer(started.write()))), reply)
    }

    /// Saves in the background.
    ///
    /// # Errors
    /// When a snapshot is under way, or no thread can be had.
    pub fn save_in_background(&self, worker: &mut Worker) -> Result<(), NotBegun> {
        let Some(engine) = self.shared() else {
            // Nobody shares the engine: there is nobody to go on meanwhile.
            let save = self.begin_save(worker, Kind::Background)?;
            let _logged = self.write_save(save);
            return Ok(());
        };
        if let Some(refusal) = self.save_refusal() {
            return Err(refusal.into());
        }
        // The thread comes first: a snapshot that nobody writes would have to be given up, which is a walk through all keys.
        let (begin, begun) = channel::<Started>();
        let run = move || {
            if let Ok(started) = begun.recv() {
                yield_to_workers();
                let _logged = started.write();
            }
        };
        if !self.spawn_saver(now_s(), run) {
            return Err(NotBegun::NoThread);
        }
        let save = self.begin_save(worker, Kind::Background)?;
        tracing::info!(moment_us = save.begun.moment.as_micros() as u64, "Background saving started");
        begin.send(Started { engine, save: Some(save) }).expect("the thread waits for it");
        Ok(())
    }

    /// Has a save begin in the background as soon as it can.
    pub fn schedule_save(&self) {
        self.saving.schedule();
    }

    /// What a tick does: begins a save whose time has come. A thread of its own does that: a tick must not wait for shards,
    /// which a script may hold for long.
    pub(crate) fn save_if_due(&self, worker: &mut Worker) {
        let now_s = worker.clock.now_ms / 1_000;
        if self.snapshots.is_active()
            || !self.is_log_whole()
            || !self.saving.is_due(|| self.config.save(), self.changes(), now_s)
        {
            return;
        }
        let Some(engine) = self.shared() else {
            // When another snapshot was quicker it is due again.
            let _ = self.save_in_background(worker);
            return;
        };
        if self.saving.starting.swap(true, Ordering::AcqRel) {
            return;
        }
        let run = move || {
            let save = engine.begin_save(&mut engine.worker(engine.workers()), Kind::Background);
            engine.saving.starting.store(false, Ordering::Release);
            if let Ok(save) = save {
                yield_to_workers();
                let _logged = engine.write_save(save);
            }
        };
        if !self.spawn_saver(now_s, run) {
            self.saving.starting.store(false, Ordering::Release);
        }
    }

    /// Starts a thread that saves; where none can be had a save has failed at this time.
    fn spawn_saver(&self, now_s: u64, run: impl FnOnce() + Send + 'static) -> bool {
        let started = std::thread::Builder::new().name("save".to_owned()).spawn(run);
        if let Err(error) = &started {
            tracing::error!("no thread could be started for saving: {error}");
            self.saving.could_not_begin(now_s);
            self.follow_saving();
        }
        started.is_ok()
    }

    /// What it entails that all data is gone: what is being saved is of no use any more, and at save points the empty
    /// data is saved soon, so that the old does not come back.
    pub(crate) fn all_is_flushed(&self) {
        // Whoever waits for one gets what was there when it began.
        let is_called_off = self.saving.cancel(Some(Kind::Background));
        if is_called_off || !self.config.save().is_empty() {
            self.saving.schedule();
        }
    }

    /// Refuses writes, or no longer: as long as the last save in the background has failed, where the settings want that.
    pub(crate) fn follow_saving(&self) {
        self.saving.follow(|has_failed| self.refuse_writes_where_saves_fail(has_failed));
    }

    /// Notes how the save that is under way has ended; gives how long it took.
    fn save_ended(&self, outcome: Outcome) -> Duration {
        self.saving.ended(outcome, now_s(), |has_failed| self.refuse_writes_where_saves_fail(has_failed))
    }

    fn refuse_writes_where_saves_fail(&self, has_failed: bool) {
        let stops = self.config.stop_writes_on_bgsave_error() && !self.config.save().is_empty();
        self.refuse_writes_for_snapshot(has_failed && stops);
    }

    /// Saves while nothing else is done by this worker (DEBUG RELOAD). No shard is held.
    ///
    /// # Errors
    /// When the data could not be saved.
    pub fn save_now(&self, worker: &mut Worker) -> io::Result<()> {
        loop {
            self.saving.call_off();
            match self.begin_save(worker, Kind::Foreground) {
                Ok(save) => return self.write_save(save),
                // It may be this worker that would begin the rewrite.
                Err(Refusal::OtherSnapshot) if !self.snapshots.is_active() && !self.is_log_whole() => {
                    return Err(io::Error::other("the append-only file lacks its base"));
                }
                // The save that was called off has not ended, or it is the log's snapshot, which is not for this to call off. Either may
                // wait for a script that a client of this worker is to end.
                Err(Refusal::Saving | Refusal::OtherSnapshot) => {
                    meanwhile::lend();
                    if self.scripts.running.busy().is_some() {
                        meanwhile::serve(self, worker);
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Machine};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use tenon_store::entry::{Meta, NewValue};

    #[test]
    fn a_save_that_a_bug_ends_is_over() {
        let directory = std::env::temp_dir().join(format!("tenon-bug-in-save-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("it can be made");
        let machine = Machine { directory: directory.display().to_string(), ..Machine::detect() };
        let engine = Engine::new(Config::new(machine), &[], 1);
        let mut worker = engine.worker(0);
        let hash = engine.shards.hash(b"key");
        let lock = || engine.shards.lock(engine.shards.index(hash));
        lock().shard.database_mut(0).insert(hash, b"key", NewValue::Bytes(b"value"), &Meta::default(), 0);
        let save = engine.begin_save(&mut worker, Kind::Background).expect("nothing is under way");
        // Nobody hands the key over: the scanner finds in the end that it has not written all of them.
        {
            let mut state = lock();
            let keyspace = state.shard.database_mut(0);
            let slot = keyspace.find(hash, b"key").expect("it is there");
            drop(keyspace.remove(slot));
        }
        let written = catch_unwind(AssertUnwindSafe(|| engine.write_save(save)));
        assert!(!matches!(written, Ok(Ok(()))));
        assert!(!engine.saving.is_running() && !engine.saving.facts(0).is_well);
        engine.save_in_background(&mut worker).expect("the other one is over");
        assert!(engine.saving.facts(0).is_well && directory.join("dump.rdb").is_file());
        std::fs::remove_dir_all(&directory).expect("it is there");
    }
}
