//! Loading an append-only file: its base on every core, the commands behind it in their order. Knows no client.

use super::figures::LoadingGuard;
use super::rdb::IDLE_MAX;
use super::{Hands, LoadError, OnDuplicate, Past, Progress, RdbOptions};
use crate::engine::Engine;
use crate::replay::Replayer;
use crate::worker::Worker;
use parking_lot::Mutex;
use std::io::{self, Read};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::Duration;
use tenon_persist::aof::directory::LoadTruncated;
use tenon_persist::aof::{Command, Directory, Part, Reader};
use tenon_wire::resp::number::parse_i64;

/// Bytes of commands that are handed over together.
const BATCH_BYTES: usize = 64 * 1024;
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

/// Where a command stands in a batch.
struct Span {
    /// Where it begins in the file.
    at: u64,
    annotations: Range<usize>,
    args: Range<usize>,
}

/// Commands on their way to the worker that runs them.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// Annotations and arguments.
    pieces: Vec<Range<usize>>,
    commands: Vec<Span>,
    /// The database at its start.
    database: i64,
}

impl Batch {
    fn push(&mut self, command: &Command<'_>) {
        let annotations = self.push_pieces(command.annotations());
        let args = self.push_pieces(command.args());
        self.commands.push(Span { at: command.at, annotations, args });
    }

    fn push_pieces<'a>(&mut self, pieces: impl Iterator<Item = &'a [u8]>) -> Range<usize> {
        let from = self.pieces.len();
        for piece in pieces {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(piece);
            self.pieces.push(start..self.bytes.len());
        }
        from..self.pieces.len()
    }

    fn pieces(&self, range: &Range<usize>) -> impl Iterator<Item = &[u8]> {
        self.pieces[range.clone()].iter().map(|piece| &self.bytes[piece.clone()])
    }

    /// Runs the commands again.
    fn run(&self, engine: &Engine, worker: &mut Worker) -> Result<(), (u64, String)> {
        let mut replayer = Replayer::new(engine);
        let mut digits = itoa::Buffer::new();
        if self.database != 0 {
            let select = [&b"SELECT"[..], digits.format(self.database).as_bytes()];
            replayer.command(worker, &select).map_err(|error| (0, error.to_string()))?;
        }
        let mut words = Vec::new();
        for command in &self.commands {
            self.pieces(&command.annotations).for_each(|line| replayer.annotation(line));
            words.clear();
            words.extend(self.pieces(&command.args));
            replayer.command(worker, &words).map_err(|error| (command.at, error.to_string()))?;
        }
        Ok(())
    }
}

/// The database that a command chooses, if it does.
fn selected(command: &Command<'_>) -> Option<i64> {
    let mut args = command.args();
    match (args.next(), args.next()) {
        (Some(name), Some(index)) if name.eq_ignore_ascii_case(b"SELECT") => parse_i64(index),
        _ => None,
    }
}

/// What goes on while a log is loaded.
struct Run<'a, 'e> {
    engine: &'e Engine,
    loading: &'a LoadingGuard<'e>,
    worker: &'a mut Worker,
    hands: Hands,
    progress: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
    report: LogReport,
    /// The first command that could not be run again.
    failure: Arc<Mutex<Option<(u64, String)>>>,
}

impl Engine {
    /// Loads what a log has. A torn end of its last file is cut off, if `aof-load-truncated` wants that.
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
        let failure = Arc::default();
        let mut run = Run { engine: self, loading, worker, hands, progress, report: LogReport::default(), failure };
        for part in directory.parts().map_err(LoadError::Open)? {
            if part.size > 0 {
                run.load_part(directory, &part)?;
            }
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
        let (report, (rest, source)) =
            self.engine.load_rdb(self.loading, self.worker, source, &options, &mut progress)?;
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
        let mut batch = Batch::default();
        let mut database = 0;
        let mut position = reader.valid_up_to();
        let torn = loop {
            match reader.next() {
                Ok(Some(record)) => {
                    for command in record.commands() {
                        batch.push(&command);
                        database = selected(&command).unwrap_or(database);
                    }
                    if batch.bytes.len() < BATCH_BYTES {
                        continue;
                    }
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
            let end = reader.valid_up_to();
            self.hand_over(part, std::mem::take(&mut batch), end - std::mem::replace(&mut position, end))?;
            batch.database = database;
        };
        self.hand_over(part, batch, reader.valid_up_to() - position)?;
        self.engine.loading.turns.finish(self.engine, self.worker, self.patience());
        self.look_at_failure(part)?;
        if let Some(error) = torn {
            let may_cut =
                if self.engine.config.aof_load_truncated() { LoadTruncated::Cut } else { LoadTruncated::Refuse };
            let cut = directory.cut_torn_tail(part, error, may_cut).map_err(LoadError::Torn)?;
            cut.notes.iter().for_each(|note| tracing::warn!("{note}"));
        }
        Ok(())
    }

    fn patience(&self) -> Duration {
        if self.hands == Hands::Workers { IDLE_MAX } else { Duration::ZERO }
    }

    /// Has these commands run, so many bytes of the file.
    fn hand_over(&mut self, part: &Part, batch: Batch, bytes: u64) -> Result<(), LoadError> {
        self.look_at_failure(part)?;
        self.report.bytes += bytes;
        self.report.commands += batch.commands.len() as u64;
        self.engine.loading.add_loaded_bytes(bytes);
        let failure = Arc::clone(&self.failure);
        let turns = &self.engine.loading.turns;
        let mut turn: super::turns::Turn = Box::new(move |engine, worker| {
            // Behind one that has failed nothing makes sense.
            if failure.lock().is_some() {
                return;
            }
            if let Err(error) = batch.run(engine, worker) {
                *failure.lock() = Some(error);
            }
        });
        while let Err(back) = turns.offer(turn, self.patience()) {
            turn = back;
            turns.do_next(self.engine, self.worker, Duration::ZERO);
        }
        if (self.progress)(Progress { bytes: self.report.bytes, keys: self.report.keys }).is_break() {
            turns.finish(self.engine, self.worker, self.patience());
            return Err(LoadError::Cancelled);
        }
        Ok(())
    }

    fn look_at_failure(&self, part: &Part) -> Result<(), LoadError> {
        match self.failure.lock().take() {
            None => Ok(()),
            Some((at, why)) => Err(LoadError::Log { name: part.name.clone(), at, why }),
        }
    }
}
