//! Rewriting the log: when, and on which thread; a snapshot of one position takes the place of all records before it.
//! Knows no command.

use super::task::RewriteTask;
use crate::engine::Engine;
use crate::saving::{Synced, Syncing};
use crate::snapshot::{Begun, SnapshotOptions, yield_to_workers};
use crate::worker::Worker;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tenon_journal::log::NoHooks;
use tenon_persist::aof::growth::{Growth, Restraint, rest_s};
use tenon_persist::aof::names::BaseFormat;
use tenon_persist::aof::{AppendOnly, Rewrite};
use tenon_persist::rdb::file::{FileOptions, FileWriter, Form};
use tenon_wire::rdb::Compression;

/// How often a rewrite that waits for another snapshot to end looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How long after no thread could be had for one the next is tried.
const THREAD_RETRY: Duration = Duration::from_secs(5);
/// What is told of a rewrite that was stopped: by the server's end, or by CONFIG SET appendonly.
pub(super) const STOPPED: &str = "it was stopped";

/// The rewrites of this process.
#[derive(Debug, Default)]
pub(super) struct Rewrites {
    /// When the one that is under way began.
    pub(super) since: Option<Instant>,
    /// How many have begun since the start or since statistics were reset.
    pub(super) begun: u64,
    /// How long the last one took, and whether it succeeded.
    pub(super) last: Option<(Duration, bool)>,
    /// When the last one ended.
    ended: Option<Instant>,
    /// The one that is under way or was last, and its thread.
    pub(super) task: Arc<RewriteTask>,
    thread: Option<JoinHandle<()>>,
    restraint: Restraint,
    /// No thread could be had: no tick asks for one before this.
    not_before: Option<Instant>,
    /// In which second it was last looked whether the log's files are still there.
    looked_s: u64,
    is_ending: bool,
    /// How many have the log begin or end: no rewrite begins but the one that comes with it.
    pub(super) switching: u32,
}

impl Rewrites {
    /// Whether none may begin at the moment, but in the place of the one that is under way.
    fn is_taken(&self) -> bool {
        self.since.is_some() || self.is_ending || self.switching > 0
    }

    /// Has the next one not wait for anything that an earlier failure wants.
    fn need_not_rest(&mut self) {
        (self.ended, self.not_before) = (None, None);
    }
}

/// What happens to a rewrite that is under way when another one is to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Former {
    /// It goes on.
    Stays,
    /// It is stopped.
    MakesWay,
}

/// What became of the wish for a rewrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewriteStart {
    /// It began.
    Started,
    /// It begins when the snapshot that is under way is done.
    Scheduled,
    /// Another one is under way.
    UnderWay,
    /// No thread can be had.
    Failed,
}

/// A base of no data, and its form.
pub(super) fn empty_base(form: Form) -> (BaseFormat, Vec<u8>) {
    if form == Form::Commands {
        return (BaseFormat::Aof, Vec::new());
    }
    let options = FileOptions { form, compression: Compression::Off, has_checksum: true };
    let mut file = FileWriter::new(Vec::new(), options);
    file.auxiliary("redis-ver", crate::version::REDIS.as_bytes()).expect("a vector takes whatever is written");
    file.auxiliary("aof-base", b"1").expect("a vector takes whatever is written");
    (BaseFormat::Rdb, file.finish().expect("a vector takes whatever is written").0)
}

impl Engine {
    /// Begins a rewrite, or has one begin when it can (BGREWRITEAOF).
    pub fn rewrite_aof(&self) -> RewriteStart {
        if self.aof.rewrites.lock().is_taken() {
            return RewriteStart::UnderWay;
        }
        if self.snapshots.is_active() {
            self.aof.wanted.store(true, Ordering::Relaxed);
            // However often it has failed: who asks for one does not wait for its rest.
            self.aof.rewrites.lock().need_not_rest();
            return RewriteStart::Scheduled;
        }
        self.start_rewrite()
    }

    fn start_rewrite(&self) -> RewriteStart {
        let Some(engine) = self.shared() else { return RewriteStart::Failed };
        let work = move |engine: &Arc<Engine>, task: &RewriteTask| {
            let append_only = engine.append_only();
            // In this order: who begins a log stops this before that log is there, and it must not be taken for its own.
            if task.is_stopped() {
                return Err(STOPPED.to_owned());
            }
            match append_only {
                Some(append_only) => engine.rewrite(append_only, task),
                None => engine.rewrite_without_log(task),
            }
        };
        self.on_rewriter(engine, Former::Stays, work)
    }

    /// Does this on the rewriter's thread, of which one does anything at a time.
    pub(super) fn on_rewriter(
        &self,
        engine: Arc<Engine>,
        former: Former,
        work: impl FnOnce(&Arc<Engine>, &RewriteTask) -> Result<(), String> + Send + 'static,
    ) -> RewriteStart {
        let mut rewrites = self.aof.rewrites.lock();
        if rewrites.is_ending || rewrites.is_taken() && former == Former::Stays {
            return RewriteStart::UnderWay;
        }
        let before = rewrites.thread.take();
        if rewrites.since.is_some() {
            rewrites.task.stop();
        }
        let was_wanted = self.aof.wanted.swap(false, Ordering::Relaxed);
        let task = Arc::new(RewriteTask::default());
        let own = Arc::clone(&task);
        let run = move || {
            if let Some(before) = before {
                // Its files have the names that this one's are to have. Whether it panicked it has said itself.
                let _ = before.join();
            }
            let started = Instant::now();
            let result = if own.is_stopped() { Err(STOPPED.to_owned()) } else { work(&engine, &own) };
            engine.has_rewritten(&own, started, result);
        };
        match std::thread::Builder::new().name("aof-rewrite".to_owned()).spawn(run) {
            Ok(thread) => {
                rewrites.since = Some(Instant::now());
                rewrites.begun += 1;
                rewrites.task = task;
                rewrites.thread = Some(thread);
                RewriteStart::Started
            }
            Err(error) => {
                tracing::warn!("Can't rewrite append only file in background: {error}");
                (rewrites.last, rewrites.ended) = (Some((Duration::ZERO, false)), Some(Instant::now()));
                self.aof.wanted.fetch_or(was_wanted, Ordering::Relaxed);
                rewrites.not_before = Some(Instant::now() + THREAD_RETRY);
                RewriteStart::Failed
            }
        }
    }

    fn has_rewritten(&self, task: &Arc<RewriteTask>, started: Instant, result: Result<(), String>) {
        let took = started.elapsed();
        match &result {
            Ok(()) => tracing::info!("Background AOF rewrite finished successfully in {:.3} s", took.as_secs_f64()),
            Err(why) if task.is_stopped() => tracing::info!("Background AOF rewrite terminated: {why}"),
            Err(why) => tracing::warn!("Background AOF rewrite terminated: {why}"),
        }
        let mut rewrites = self.aof.rewrites.lock();
        // As in Redis one that was stopped has not failed.
        if !task.is_stopped() {
            rewrites.last = Some((took, result.is_ok()));
        }
        rewrites.ended = Some(Instant::now());
        // One that made way for another says nothing about that.
        if Arc::ptr_eq(&rewrites.task, task) {
            rewrites.since = None;
            // It knows the log whose files it wrote, and what it wrote: when that log ends its memory goes.
            rewrites.task = Arc::default();
        }
        drop(rewrites);
        self.look_at_log();
    }

    /// Puts a snapshot in the place of the records so far.
    pub(super) fn rewrite(&self, append_only: Arc<AppendOnly>, task: &RewriteTask) -> Result<(), String> {
        task.writes_files_of(&append_only);
        self.await_other_snapshot(task)?;
        let mut rewrite = append_only.begin_rewrite().map_err(|error| error.to_string())?;
        let mut worker = self.worker(self.workers());
        let mut was_doubted = false;
        let begun = self.begin_base(&mut worker, task, || {
            was_doubted = self.aof.is_doubted.swap(false, Ordering::Relaxed);
            append_only.cut(&mut rewrite);
        });
        self.finish_base(&append_only, rewrite, begun, task).inspect_err(|_| {
            self.aof.is_doubted.fetch_or(was_doubted, Ordering::Relaxed);
        })?;
        // Whoever ends the log stops the rewrite before, with this lock.
        let _rewrites = self.aof.rewrites.lock();
        if !task.is_stopped() {
            self.aof.is_whole.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Writes the data as the base of a log that nothing is added to: it has nothing to say of whether there is room for more.
    fn rewrite_without_log(&self, task: &RewriteTask) -> Result<(), String> {
        let directory = tenon_persist::aof::Directory::open(self.files(), self.aof_names());
        let begun =
            directory.and_then(|directory| directory.begin_with_rewrite(&self.log_settings(), Arc::new(NoHooks)));
        let (append_only, rewrite) = begun.map_err(|error| error.to_string())?;
        let append_only = Arc::new(append_only);
        task.writes_files_of(&append_only);
        let begun = self.await_other_snapshot(task).ok().and_then(|()| {
            let mut worker = self.worker(self.workers());
            self.begin_base(&mut worker, task, || {})
        });
        let finished = self.finish_base(&append_only, rewrite, begun, task);
        append_only.close().map_err(|error| error.to_string())?;
        finished
    }

    /// What the base is made of.
    pub(super) fn base_form(&self) -> Form {
        if self.config.aof_use_rdb_preamble() { Form::Rdb } else { Form::Commands }
    }

    /// One snapshot is written at a time, and none begins while the data is loaded anew.
    fn await_other_snapshot(&self, task: &RewriteTask) -> Result<(), String> {
        while (self.snapshots.is_active() || self.loading.is_partial()) && !task.is_stopped() {
            std::thread::sleep(LOOK_AGAIN);
        }
        if task.is_stopped() { Err(STOPPED.to_owned()) } else { Ok(()) }
    }

    fn begin_base(&self, worker: &mut Worker, task: &RewriteTask, mut at_moment: impl FnMut()) -> Option<Begun> {
        let file = FileOptions { form: self.base_form(), ..self.snapshot_file() };
        loop {
            let options = SnapshotOptions { file, is_log_base: true };
            if let Some(begun) = self.begin_snapshot(worker, options, |_| at_moment()) {
                task.writes(begun.snapshot());
                return Some(begun);
            }
            self.await_other_snapshot(task).ok()?;
        }
    }

    /// Writes the snapshot and makes it the base.
    fn finish_base(
        &self,
        append_only: &AppendOnly,
        rewrite: Rewrite,
        begun: Option<Begun>,
        task: &RewriteTask,
    ) -> Result<(), String> {
        let Some(begun) = begun else {
            append_only.abort_rewrite(rewrite);
            return Err(STOPPED.to_owned());
        };
        append_only.log().set_snapshotting(true);
        yield_to_workers();
        let format = match begun.form() {
            Form::Rdb => BaseFormat::Rdb,
            Form::Commands => BaseFormat::Aof,
        };
        let written = self.write_base(&rewrite, begun);
        append_only.log().set_snapshotting(false);
        match written {
            _ if task.is_stopped() => {
                append_only.abort_rewrite(rewrite);
                Err(STOPPED.to_owned())
            }
            Ok(bytes) => append_only.finish_rewrite(rewrite, (format, bytes)).map_err(|error| error.to_string()),
            Err(error) => {
                append_only.abort_rewrite(rewrite);
                Err(format!("Write error writing append only file on disk: {error}"))
            }
        }
    }

    fn write_base(&self, rewrite: &Rewrite, begun: Begun) -> io::Result<u64> {
        let file = match self.files().create(rewrite.base_path()) {
            Ok(file) => file,
            Err(error) => {
                begun.give_up(self);
                return Err(error);
            }
        };
        let syncing = Syncing::incremental_if(self.config.aof_rewrite_incremental_fsync());
        let (_, report) = begun.write_to(self, Synced::new(Arc::clone(&file), syncing))?;
        file.sync()?;
        Ok(report.bytes)
    }

    /// Begins a rewrite if one is due: it was asked for, the log needs it, or it has grown. Called now and then.
    pub(crate) fn rewrite_aof_if_due(&self, now_s: u64) {
        if self.snapshots.is_active() {
            return;
        }
        let append_only = self.append_only();
        {
            let mut rewrites = self.aof.rewrites.lock();
            if rewrites.is_taken() || rewrites.not_before.is_some_and(|time| Instant::now() < time) {
                return;
            }
            let is_whole = self.aof.is_whole.load(Ordering::Relaxed);
            let is_broken = append_only.as_ref().is_some_and(|append_only| append_only.log().needs_rewrite());
            let is_doubted = self.aof.is_doubted.load(Ordering::Relaxed);
            let needed = is_broken || append_only.is_some() && (!is_whole || is_doubted);
            let failures = append_only.as_ref().map_or(0, |append_only| append_only.statistics().failures);
            let rest = Duration::from_secs(rest_s(failures, is_broken));
            let rested = rewrites.ended.is_none_or(|ended| ended.elapsed() >= rest);
            if let Some(append_only) = append_only.as_ref().filter(|_| rested) {
                self.look_for_files(append_only, &mut rewrites.looked_s, now_s);
            }
            let asked = self.aof.wanted.load(Ordering::Relaxed) && !needed;
            if !(asked || needed && rested) {
                let Some(append_only) = append_only.filter(|_| !needed) else { return };
                let growth = Growth {
                    percentage: self.config.auto_aof_rewrite_percentage(),
                    size_min: self.config.auto_aof_rewrite_min_size(),
                };
                let figures = append_only.statistics();
                if !growth.wants_rewrite(figures.current_size, figures.base_size) {
                    return;
                }
                if let Some(minutes) = rewrites.restraint.holds_back(figures.failures, now_s) {
                    if minutes > 0 {
                        tracing::warn!(
                            "Background AOF rewrite has repeatedly failed and triggered the limit, will retry in {minutes} \
                             minutes"
                        );
                    }
                    return;
                }
                tracing::info!("Starting automatic rewriting of AOF: it has {} bytes", figures.current_size);
            }
        }
        self.start_rewrite();
    }

    /// Once a second: wants a rewrite if somebody has removed a file that a start would look for.
    fn look_for_files(&self, append_only: &AppendOnly, looked_s: &mut u64, now_s: u64) {
        if std::mem::replace(looked_s, now_s) == now_s {
            return;
        }
        if let Some(path) = append_only.lost_file() {
            tracing::warn!(
                "The append-only file {} was removed while the server runs: the log is written anew",
                path.display()
            );
            self.aof.wanted.store(true, Ordering::Relaxed);
        }
    }

    /// Waits until the log has its base, if it lacks that.
    ///
    /// # Errors
    /// When it could not be written, or `goes_on` does not want it any more.
    pub(crate) fn await_log_base(&self, goes_on: impl Fn() -> bool) -> io::Result<()> {
        let began = Instant::now();
        if !self.is_log_whole() {
            tracing::info!("Writing initial AOF, can't exit before it is there.");
            // However often it has failed: the next attempt does not rest.
            self.aof.rewrites.lock().need_not_rest();
        }
        while !self.is_log_whole() {
            if !goes_on() {
                return Err(io::Error::new(io::ErrorKind::Interrupted, "it was called off"));
            }
            let rewrites = self.aof.rewrites.lock();
            let has_ended = rewrites.since.is_none() && rewrites.ended.is_some_and(|ended| ended > began);
            if has_ended && rewrites.last.is_some_and(|(_, is_well)| !is_well) && !self.is_log_whole() {
                return Err(io::Error::other("the base of the append-only file could not be written"));
            }
            drop(rewrites);
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    /// Stops a rewrite that is under way.
    pub(crate) fn stop_rewrite(&self) {
        let rewrites = self.aof.rewrites.lock();
        if rewrites.since.is_some() {
            rewrites.task.stop();
        }
    }

    /// Ends a rewrite that is under way, and begins no other.
    pub(super) fn end_rewrite(&self) {
        let thread = {
            let mut rewrites = self.aof.rewrites.lock();
            rewrites.is_ending = true;
            rewrites.task.stop();
            rewrites.thread.take()
        };
        if let Some(thread) = thread {
            // Whether it panicked was logged by its thread.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Loader, Machine, Origin};

    #[test]
    fn a_log_that_is_doubted_is_rewritten_until_that_succeeds() {
        let directory = std::env::temp_dir().join(format!("tenon-doubted-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("it can be made");
        let mut loader = Loader::new(Machine { directory: directory.display().to_string(), ..Machine::detect() });
        let own = [("enable-debug-command", "yes"), ("auto-aof-rewrite-percentage", "0")];
        for (name, value) in own {
            loader.apply(name, &[value.to_owned()], &Origin::CommandLine).expect("it is a setting");
        }
        let engine = Engine::new(loader.finish().expect("they are settings"), &[], 1).share();
        let mut worker = engine.worker(0);
        let begun = Instant::now();
        let mut tick_until = |is_so: &dyn Fn() -> bool| {
            while !is_so() {
                assert!(begun.elapsed() < Duration::from_secs(60), "it did not come to that");
                engine.tick(&mut worker);
                std::thread::sleep(Duration::from_millis(2));
            }
        };
        engine.start_aof().expect("there is room");
        tick_until(&|| engine.is_log_whole());
        engine.plan_faults("write:enospc").expect("a plan");
        engine.after_panic(&mut engine.worker(1));
        tick_until(&|| !engine.aof_figures().last_rewrite_ok);
        engine.plan_faults("").expect("a plan");
        tick_until(&|| engine.aof_figures().last_rewrite_ok);
        engine.close_aof().expect("there is room");
        std::fs::remove_dir_all(&directory).expect("it is there");
    }
}
