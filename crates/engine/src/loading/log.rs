//! Loading an append-only file on every core: its base, and the commands behind it, of which those on one key keep their
//! order. Knows no client.

use super::figures::LoadingGuard;
use super::lanes::{Failure, Lanes};
use super::rdb::IDLE_MAX;
use super::stretch::{OnFailure, Sorter, Stretch};
use super::{Hands, LoadError, OnDuplicate, Past, Progress, RdbOptions};
use crate::engine::Engine;
use crate::worker::Worker;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use tenon_persist::aof::directory::LoadTruncated;
use tenon_persist::aof::{Directory, Part, ReadError, Reader};

/// Bytes of commands that are handed over together: so many that each lane has a few hundred of them.
const STRETCH_BYTES: usize = 256 * 1024;
/// With what snapshots begin.
const SNAPSHOTS: [&[u8]; 2] = [b"REDIS", b"VALKEY"];

/// What was in a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogReport {
    /// How many bytes its files have.
    pub bytes: u64,
    /// Keys of its base.
    pub keys: u64,
    /// Commands that were run again.
    pub commands: u64,
}

/// What goes on while a log is loaded.
struct Run<'a, 'e> {
    engine: &'e Engine,
    loading: &'a LoadingGuard<'e>,
    worker: &'a mut Worker,
    hands: Hands,
    progress: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
    report: LogReport,
    /// What becomes of commands that fail from here on.
    on_failure: OnFailure,
}

impl Engine {
    /// Loads what a log has. A torn end of its last file is cut off, if `aof-load-truncated` wants that and nobody writes to it.
    ///
    /// # Errors
    /// When a file is not as it has to be, or `progress` says so. What was loaded until then is there.
    pub fn load_log(
        &self,
        loading: &LoadingGuard<'_>,
        worker: &mut Worker,
        directory: &Directory,
        hands: Hands,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<LogReport, LoadError> {
        self.read_clock(worker);
        let (report, on_failure) = (LogReport::default(), OnFailure::Refuse);
        let mut run = Run { engine: self, loading, worker, hands, progress, report, on_failure };
        let parts = directory.parts().map_err(LoadError::Open)?;
        if let Some(first) = parts.iter().find(|part| part.lacks_base) {
            tracing::warn!(
                "The append-only file {} began while a server ran that ended before the base was written: it is loaded over an \
                 older log or snapshot, and what changed between that and its beginning is missing",
                first.name
            );
        }
        for part in parts {
            // Also one of no length: a pipe has none, and an empty file is read as quickly as it is passed over.
            run.load_part(directory, &part)?;
        }
        // Items of before have had tokens that their clients may still hold.
        self.raise_cas(crate::clock::now_us());
        Ok(run.report)
    }
}

impl Run<'_, '_> {
    fn load_part(&mut self, directory: &Directory, part: &Part) -> Result<(), LoadError> {
        let cannot_read = |error: io::Error| LoadError::Log { name: part.name.clone(), at: 0, why: error.to_string() };
        let mut source = directory.files().read(&part.path).map_err(cannot_read)?;
        tracing::info!("loading '{}', {} bytes", part.name, part.size);
        let mut start = Vec::new();
        (&mut source).take(SNAPSHOTS[1].len() as u64).read_to_end(&mut start).map_err(cannot_read)?;
        let is_snapshot = part.is_base && SNAPSHOTS.iter().any(|magic| start.starts_with(magic));
        let source = io::Cursor::new(start).chain(source);
        if !is_snapshot {
            return self.run_commands(directory, part, Reader::new(source));
        }
        let options = RdbOptions {
            total_bytes: Some(part.size),
            past: Past::Keep,
            on_duplicate: OnDuplicate::Refuse,
            hands: self.hands,
        };
        let before = self.report;
        let mut progress =
            |it: Progress| (self.progress)(Progress { bytes: before.bytes + it.bytes, keys: before.keys + it.keys });
        let loaded = self.engine.load_rdb(self.loading, self.worker, source, &options, &mut progress);
        let (report, (rest, source)) = loaded.map_err(|error| match error {
            LoadError::File(error) => LoadError::Base { name: part.name.clone(), error },
            error => error,
        })?;
        self.report.keys += report.keys;
        self.report.bytes += report.bytes;
        self.run_commands(directory, part, Reader::starting_at(io::Cursor::new(rest).chain(source), report.bytes))
    }

    fn run_commands<R: Read>(
        &mut self,
        directory: &Directory,
        part: &Part,
        mut reader: Reader<R>,
    ) -> Result<(), LoadError> {
        if part.lacks_base {
            self.on_failure = OnFailure::PassOver;
        }
        let lanes = Arc::new(Lanes::new(self.engine.workers(), self.engine.shards.count()));
        *self.engine.loading.lanes.lock() = Some(Arc::clone(&lanes));
        let sorted = self.sort(&lanes, &mut reader);
        // Those who have begun come to their end, whatever went wrong.
        lanes.finish(self.engine, self.worker, self.patience());
        *self.engine.loading.lanes.lock() = None;
        match lanes.take_failure() {
            None => {}
            Some(Failure::Command(at, why)) => return Err(LoadError::Log { name: part.name.clone(), at, why }),
            Some(Failure::Panicked) => return Err(LoadError::Panicked),
        }
        if lanes.passed_over() > 0 {
            let why = if part.lacks_base {
                "it began while the server ran, and its base was never written"
            } else {
                "scripts have withheld writes from the log, or other data was loaded in its place (DEBUG RELOAD)"
            };
            tracing::warn!(
                "{} of the commands in the append-only file {} did not find what they ran on and were passed over: {why}",
                lanes.passed_over(),
                part.name,
            );
        }
        if let Some(error) = sorted? {
            // The end of a log that is open is its writer's: behind a cut that would go on in the middle of a record.
            let is_over = self.engine.append_only().is_none();
            let may_cut = if is_over && self.engine.config.aof_load_truncated() {
                LoadTruncated::Cut
            } else {
                LoadTruncated::Refuse
            };
            let cut = directory.cut_torn_tail(part, error, may_cut).map_err(LoadError::Torn)?;
            cut.notes.iter().for_each(|note| tracing::warn!("{note}"));
        }
        Ok(())
    }

    /// Sorts all records into lanes; gives what is wrong with the file behind the last whole one, if anything is.
    fn sort<R: Read>(&mut self, lanes: &Lanes, reader: &mut Reader<R>) -> Result<Option<ReadError>, LoadError> {
        let mut sorter = Sorter::new(self.engine, lanes.count(), self.on_failure);
        let mut position = reader.valid_up_to();
        loop {
            let ended = match reader.next() {
                Ok(Some(record)) => {
                    sorter.push(&record);
                    if sorter.len() < STRETCH_BYTES {
                        continue;
                    }
                    None
                }
                Ok(None) => Some(None),
                Err(error) => Some(Some(error)),
            };
            let end = reader.valid_up_to();
            self.hand_over(lanes, sorter.take(), end - std::mem::replace(&mut position, end))?;
            if let Some(ended) = ended {
                self.on_failure = sorter.on_failure();
                return Ok(ended);
            }
        }
    }

    fn patience(&self) -> Duration {
        if self.hands == Hands::Workers { IDLE_MAX } else { Duration::ZERO }
    }

    /// Has these commands run, so many bytes of the file.
    fn hand_over(&mut self, lanes: &Lanes, mut stretch: Arc<Stretch>, bytes: u64) -> Result<(), LoadError> {
        self.report.bytes += bytes;
        self.report.commands += stretch.commands() as u64;
        self.engine.loading.add_loaded_bytes(bytes);
        while let Err(back) = lanes.offer(stretch, self.patience()) {
            stretch = back;
            lanes.work_some(self.engine, self.worker);
        }
        let is_to_stop = (self.progress)(Progress { bytes: self.report.bytes, keys: self.report.keys }).is_break();
        if is_to_stop || lanes.has_failed() { Err(LoadError::Cancelled) } else { Ok(()) }
    }
}
