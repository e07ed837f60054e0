//! Loading an RDB file on every core: one cuts it, the workers put its keys into the store when they tick, between which
//! they serve their clients. Knows no path.

use super::LoadError;
use super::crew::{Failure, Job};
use super::figures::LoadingGuard;
use super::insert::{OnDuplicate, Past, Plan, Room};
use crate::engine::Engine;
use crate::scripting::OnExisting;
use crate::worker::Worker;
use std::io::Read;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tenon_persist::rdb::Scene;
use tenon_persist::rdb::file::{Cause, Cut, Cutter, Doing, Ending, FileError, Note, OnModule, Options};
use tenon_wire::resp::number::parse_i64;

/// How long a worker loads before it looks after its clients.
const TURN: Duration = Duration::from_millis(10);
/// How long a worker waits for a batch.
const BATCH_WAIT: Duration = Duration::from_millis(1);
/// How long the workers may leave batches alone until whoever has cut them puts them in itself.
pub(super) const IDLE_MAX: Duration = Duration::from_millis(50);

/// Bytes of a record for which a table's slot is set aside ahead, if the file says that so many keys come. There may be
/// shorter ones, for which tables grow as ever; a file that lies gets no more than its own length.
const RECORD_BYTES: u64 = 16;

/// Who puts keys into the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hands {
    /// The workers: what they allocate they also keep in order later.
    Workers,
    /// Whoever loads, and the workers as they come.
    Own,
}

/// How a file is loaded.
#[derive(Clone, Copy, Debug)]
pub struct RdbOptions {
    /// How many bytes it has, if that is known.
    pub total_bytes: Option<u64>,
    /// What becomes of keys past their deadlines.
    pub past: Past,
    /// What becomes of keys that are there already.
    pub on_duplicate: OnDuplicate,
    /// Who does it.
    pub hands: Hands,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the file that were read.
    pub bytes: u64,
    /// Keys that were loaded.
    pub keys: u64,
}

/// What was in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadReport {
    /// Its version.
    pub version: u16,
    /// How many bytes it has.
    pub bytes: u64,
    /// Keys that were loaded.
    pub keys: u64,
    /// Keys that were past their deadlines.
    pub expired: u64,
    /// Keys that had no elements.
    pub empty: u64,
    /// Libraries of functions.
    pub libraries: usize,
    /// What was passed over because it belongs to modules.
    pub of_modules: u64,
    /// Whether a checksum stood at its end, and was right.
    pub is_checked: bool,
}

/// What stands in a file beside its keys.
#[derive(Default)]
struct Beside {
    /// Texts of libraries, each behind so many bytes of the file.
    libraries: Vec<(u64, Vec<u8>)>,
    of_modules: u64,
}

impl Engine {
    /// What is done about what belongs to modules.
    pub fn on_module(&self) -> OnModule {
        if self.config.rdb_skip_modules() { OnModule::Skip } else { OnModule::Refuse }
    }

    /// Loads a file; what follows behind its end is given back: bytes that were read already, and the source.
    ///
    /// # Errors
    /// When the file is not as it has to be, or `progress` says so. What was loaded until then is there.
    pub fn load_rdb<R: Read>(
        &self,
        _loading: &LoadingGuard<'_>,
        worker: &mut Worker,
        source: R,
        options: &RdbOptions,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<(LoadReport, (Vec<u8>, R)), LoadError> {
        let on_module = self.on_module();
        let databases = self.config.databases() as usize;
        let mut cutter = Cutter::new(source, Options { total_bytes: options.total_bytes, databases, on_module })?;
        self.read_clock(worker);
        let job = Arc::new(Job::new(Plan {
            scene: Scene { limits: self.limits(), origin: cutter.header().origin },
            past: options.past,
            on_duplicate: options.on_duplicate,
            now_ms: worker.clock.now_ms,
            room: Room::new(options.total_bytes.unwrap_or(0) / RECORD_BYTES),
        }));
        *self.loading.job.lock() = Some(Arc::clone(&job));
        let mut beside = Beside::default();
        let cut = self.cut_and_insert(worker, &mut cutter, &job, options.hands, &mut beside, progress);
        // Those who have begun come to their end, whatever went wrong.
        let patience = if options.hands == Hands::Workers { IDLE_MAX } else { Duration::ZERO };
        while !job.is_done_within(patience) {
            let has_worked = job.work_at_next(Duration::ZERO, |plan, batch| self.insert_batch(worker, plan, batch));
            if !has_worked {
                job.is_done_within(IDLE_MAX);
            }
        }
        *self.loading.job.lock() = None;
        let counts = job.counts();
        let earlier = job.take_failure();
        let ending = match (cut, earlier) {
            // What was wrong with a key stands before what the cutter has found.
            (_, Some(Failure::File(error))) => return Err(error.into()),
            (_, Some(Failure::Panicked)) => return Err(LoadError::Panicked),
            (cut, None) => cut?,
        };
        // Items of before have had tokens that their clients may still hold.
        self.raise_cas(crate::clock::now_us());
        let libraries = beside.libraries.len();
        self.load_libraries(worker, beside.libraries, options.on_duplicate)?;
        let loading = &self.loading;
        loading.keys_loaded.fetch_add(counts.loaded, Ordering::Relaxed);
        loading.keys_expired.fetch_add(counts.expired, Ordering::Relaxed);
        let report = LoadReport {
            version: cutter.header().version,
            bytes: ending.bytes,
            keys: counts.loaded,
            expired: counts.expired,
            empty: counts.empty,
            libraries,
            of_modules: beside.of_modules,
            is_checked: ending.is_checked,
        };
        Ok((report, cutter.into_rest()))
    }

    fn cut_and_insert<R: Read>(
        &self,
        worker: &mut Worker,
        cutter: &mut Cutter<R>,
        job: &Job,
        hands: Hands,
        beside: &mut Beside,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Ending, LoadError> {
        let patience = if hands == Hands::Workers { IDLE_MAX } else { Duration::ZERO };
        let mut position = cutter.position();
        self.loading.add_loaded_bytes(position);
        loop {
            let batch = match cutter.next_batch()? {
                Cut::Batch(batch) => batch,
                Cut::End(ending) => return Ok(ending),
            };
            let cut = cutter.position();
            self.loading.add_loaded_bytes(cut - std::mem::replace(&mut position, cut));
            for (at, note) in &batch.notes {
                self.take_note(beside, *at, note);
            }
            let is_news = |(_, note): &(u64, Note)| matches!(note, Note::Keys { .. });
            if (!batch.entries.is_empty() || batch.notes.iter().any(is_news))
                && let Err(batch) = job.offer(batch, patience)
            {
                job.work_at(&batch, |plan, batch| self.insert_batch(worker, plan, batch));
            }
            if job.has_failed() || progress(Progress { bytes: position, keys: job.counts().loaded }).is_break() {
                return Err(LoadError::Cancelled);
            }
        }
    }

    fn take_note(&self, beside: &mut Beside, at: u64, note: &Note) {
        match note {
            Note::Auxiliary { name, text } => self.take_auxiliary(name, text),
            // Whoever puts keys in looks at their number.
            Note::Database(_) | Note::Keys { .. } => {}
            Note::Function(code) => beside.libraries.push((at, code.clone())),
            Note::SkippedModule(module) => {
                beside.of_modules += 1;
                tracing::warn!("passed over what the module type '{module}' keeps beside the keys");
            }
            Note::SkippedKey { key, module } => {
                beside.of_modules += 1;
                tracing::warn!("passed over key '{}': it is of the module type '{module}'", key.escape_ascii());
            }
            Note::SkippedMetadata { key, classes } => {
                beside.of_modules += 1;
                let (key, classes) = (key.escape_ascii(), classes.join("', '"));
                tracing::warn!("passed over what modules keep of key '{key}': metadata of the classes '{classes}'");
            }
        }
    }

    fn take_auxiliary(&self, name: &[u8], text: &[u8]) {
        match name {
            b"redis-ver" | b"valkey-ver" | b"tenon-ver" => {
                let who = String::from_utf8_lossy(name.strip_suffix(b"-ver").unwrap_or(name));
                tracing::info!("the file was written by {who} {}", text.escape_ascii());
            }
            b"ctime" => {
                let age = parse_i64(text).map(|seconds| (crate::clock::now_us() / 1_000_000) as i64 - seconds);
                tracing::info!("the file is {} seconds old", age.unwrap_or(0).max(0));
            }
            b"used-mem" => {
                let bytes = parse_i64(text).and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
                self.loading.set_writer_memory(bytes);
                tracing::info!("{:.2} MB of memory were in use when it was written", bytes as f64 / f64::from(1 << 20));
            }
            _ if name.starts_with(b"%") => {
                tracing::info!("the file says of '{}': {}", name.escape_ascii(), text.escape_ascii());
            }
            _ => tracing::debug!("passed over the auxiliary field '{}'", name.escape_ascii()),
        }
    }

    /// Makes the libraries of a file known, each of which stands before so many bytes of it.
    fn load_libraries(
        &self,
        worker: &mut Worker,
        libraries: Vec<(u64, Vec<u8>)>,
        on_duplicate: OnDuplicate,
    ) -> Result<(), FileError> {
        let on_existing = match on_duplicate {
            OnDuplicate::Refuse => OnExisting::Refuse,
            OnDuplicate::Replace => OnExisting::Replace,
        };
        for (offset, code) in libraries {
            self.add_library(worker, &code, on_existing).map_err(|error| {
                let cause = Cause::Function(error.to_string());
                FileError { offset, doing: Doing::Functions, key: None, database: 0, cause }
            })?;
        }
        Ok(())
    }

    /// What a worker does while data is loaded: takes part for a while. Gives the time until it wants to be called again.
    pub(crate) fn load_tick(&self, worker: &mut Worker) -> Duration {
        let job = self.loading.job.lock().clone();
        let until = Instant::now() + TURN;
        if let Some(job) = job {
            while Instant::now() < until {
                if !job.work_at_next(BATCH_WAIT, |plan, batch| self.insert_batch(worker, plan, batch)) {
                    return BATCH_WAIT;
                }
            }
            return Duration::ZERO;
        }
        let lanes = self.loading.lanes.lock().clone();
        match lanes {
            Some(lanes) if lanes.work(self, worker, BATCH_WAIT, until) => Duration::ZERO,
            _ => BATCH_WAIT,
        }
    }
}
