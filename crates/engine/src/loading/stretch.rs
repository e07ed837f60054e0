//! A stretch of a log's commands, shared out among lanes: what is done to one key is all in one lane, in its order. Knows
//! neither files nor threads.
//!
//! ```text
//! log       SET a | SET b | MULTI SET a SET b EXEC | SET a | SET c
//! lane 0    SET a,          MULTI..EXEC,             SET a             a is of this lane
//! lane 1            SET b,  MULTI..EXEC,                     SET c     b and c are of that one
//! ```
//!
//! What several lanes have in common is a crossing: it is done once all of them have come to it, by the last, and none
//! goes on before. A command that does not say which keys it touches is a crossing of all lanes.

use crate::args::{Args, OwnedArgs};
use crate::batch::Target;
use crate::command::{Flags, Run};
use crate::engine::Engine;
use crate::record::WITHHELD_ANNOTATION;
use crate::replay::{Player, ReplayError, annotated_flags};
use crate::worker::Worker;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tenon_ds::hash_table::prefetch;
use tenon_persist::aof::{Command, Record};
use tenon_store::hash::KeyHash;
use tenon_wire::Span;
use tenon_wire::resp::number::parse_i64;

/// Most lanes that there are.
pub(super) const LANES_MAX: usize = 64;

/// What becomes of a command that answers an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnFailure {
    /// It is why the log cannot be loaded: it was written of data that are all there.
    Refuse,
    /// It is passed over and counted: some of the data that it ran on may be missing.
    PassOver,
}

/// Which lanes something is about, a bit for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LaneSet(u64);

impl LaneSet {
    const NONE: LaneSet = LaneSet(0);

    fn one(lane: usize) -> LaneSet {
        LaneSet(1 << lane)
    }

    fn all(count: usize) -> LaneSet {
        LaneSet(u64::MAX >> (LANES_MAX - count))
    }

    fn with(self, other: LaneSet) -> LaneSet {
        LaneSet(self.0 | other.0)
    }

    fn has_all(self, other: LaneSet) -> bool {
        other.0 & !self.0 == 0
    }

    fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    fn lanes(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let lane = left.trailing_zeros() as usize;
            // The lowest of its bits goes.
            left &= left.wrapping_sub(1);
            (lane < LANES_MAX).then_some(lane)
        })
    }
}

/// A command.
struct Call {
    /// Where its file has it.
    at: u64,
    target: Target,
    /// Client flags of the value that it stores.
    flags: u32,
    on_failure: OnFailure,
    words: Words,
}

/// Where a command's arguments are.
struct Words {
    /// Where its record begins in the stretch's bytes; they are counted from there.
    record: usize,
    /// Which they are among the stretch's: in `spans`, or in `places` when the record is too long for these.
    args: Range<u32>,
    is_long: bool,
}

/// What is done as a whole: a command, or a transaction, or several of them that all need the same lanes.
pub(super) struct Unit {
    /// Where its file has it.
    pub(super) at: u64,
    /// Where it stands among the crossings, if several lanes have it in common.
    pub(super) crossing: Option<u32>,
    /// The database at its start, and behind it.
    databases: (usize, usize),
    lanes: LaneSet,
    calls: Range<usize>,
}

/// Where lanes meet.
pub(super) struct Crossing {
    /// Lanes that have not come yet.
    missing: AtomicUsize,
    is_done: AtomicBool,
}

impl Crossing {
    /// A lane has come; tells whether it is the last.
    pub(super) fn arrive(&self) -> bool {
        // What other lanes did before is seen by whoever does what comes here.
        self.missing.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// What comes here was done.
    pub(super) fn set_done(&self) {
        self.is_done.store(true, Ordering::Release);
    }

    /// Whether it was.
    pub(super) fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }
}

/// Commands on their way to those who run them.
pub(super) struct Stretch {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    places: Vec<Range<usize>>,
    calls: Vec<Call>,
    units: Vec<Unit>,
    crossings: Vec<Crossing>,
    /// Which units each lane has, in order.
    lanes: Vec<Vec<u32>>,
}

impl Stretch {
    fn new(lanes: usize) -> Stretch {
        Stretch {
            bytes: Vec::new(),
            spans: Vec::new(),
            places: Vec::new(),
            calls: Vec::new(),
            units: Vec::new(),
            crossings: Vec::new(),
            lanes: vec![Vec::new(); lanes],
        }
    }

    /// An empty one with room for as much as this one has, and a bit more: one stretch is mostly like the next.
    fn another(&self) -> Stretch {
        fn room<T>(of: &[T]) -> Vec<T> {
            Vec::with_capacity(of.len() + of.len() / 8)
        }
        Stretch {
            bytes: room(&self.bytes),
            spans: room(&self.spans),
            places: room(&self.places),
            calls: room(&self.calls),
            units: room(&self.units),
            crossings: room(&self.crossings),
            lanes: self.lanes.iter().map(|lane| room(lane)).collect(),
        }
    }

    /// Bytes of records in it.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// How many commands it has.
    pub(super) fn commands(&self) -> usize {
        self.calls.len()
    }

    /// Which of its units a lane has, in their order.
    pub(super) fn lane(&self, lane: usize) -> &[u32] {
        &self.lanes[lane]
    }

    /// One of its units.
    pub(super) fn unit(&self, index: u32) -> &Unit {
        &self.units[index as usize]
    }

    /// One of its crossings.
    pub(super) fn crossing(&self, index: u32) -> &Crossing {
        &self.crossings[index as usize]
    }

    /// Calls `visit` with a command's arguments.
    fn with_args<R>(&self, words: &Words, visit: impl FnOnce(&Args<'_>) -> R) -> R {
        let Words { record, ref args, is_long } = *words;
        let (from, to) = (args.start as usize, args.end as usize);
        let record = &self.bytes[record..];
        if is_long {
            let words = self.places[from..to].iter().map(|place| &record[place.clone()]);
            return visit(&OwnedArgs::new(words).view());
        }
        visit(&Args::new(&self.spans[from..to], record, &[], &[]))
    }

    /// Asks for the memory that the first units of a lane will look at, all at once; `count` of them are about to be run.
    /// What says what they are lies in another core's cache, so that of those behind them is asked for, too.
    pub(super) fn prefetch(&self, engine: &Engine, lane: &[u32], count: usize) {
        let (units, behind) = lane.split_at(count.min(lane.len()));
        let (next, after) = behind.split_at(count.min(behind.len()));
        for &index in after.iter().take(count) {
            prefetch(std::ptr::from_ref(self.unit(index)).cast());
        }
        for &index in next {
            prefetch(std::ptr::from_ref(&self.calls[self.unit(index).calls.start]).cast());
        }
        for &index in units {
            let words = &self.calls[self.unit(index).calls.start].words;
            prefetch(self.bytes[words.record..].as_ptr());
            if !words.is_long {
                prefetch(self.spans[words.args.start as usize..].as_ptr().cast());
            }
        }
        let keys = |visit: &dyn Fn(usize, KeyHash)| {
            for &index in units {
                let unit = self.unit(index);
                if let (None, Target::Key(_, hash)) = (unit.crossing, &self.calls[unit.calls.start].target) {
                    visit(unit.databases.0, *hash);
                }
            }
        };
        keys(&|_, hash| engine.shards.prefetch(hash));
        keys(&|database, hash| _ = engine.shards.prefetch_entry(database, hash));
    }

    /// Does what a unit says; gives where in the file a command stands that cannot be run again, and why. Counts those
    /// that are passed over.
    pub(super) fn run(
        &self,
        player: &mut Player<'_>,
        worker: &mut Worker,
        unit: &Unit,
        passed_over: &AtomicU64,
    ) -> Result<(), (u64, ReplayError)> {
        player.go_to(unit.databases.0);
        for call in &self.calls[unit.calls.clone()] {
            let played = self.with_args(&call.words, |args| player.play(worker, &call.target, args, call.flags));
            match (played, call.on_failure) {
                (Err(ReplayError::Failed { .. }), OnFailure::PassOver) => {
                    _ = passed_over.fetch_add(1, Ordering::Relaxed)
                }
                (played, _) => played.map_err(|error| (call.at, error))?,
            }
        }
        Ok(())
    }
}

/// Makes stretches of a log's records.
pub(super) struct Sorter<'e> {
    engine: &'e Engine,
    lanes: usize,
    databases: usize,
    /// The database behind the last record.
    database: usize,
    /// What becomes of commands that fail from here on.
    on_failure: OnFailure,
    stretch: Stretch,
}

impl<'e> Sorter<'e> {
    /// At the start of a log, in database 0.
    pub(super) fn new(engine: &'e Engine, lanes: usize, on_failure: OnFailure) -> Sorter<'e> {
        assert!(lanes.is_power_of_two() && lanes <= LANES_MAX);
        let databases = engine.config.databases() as usize;
        Sorter { engine, lanes, databases, database: 0, on_failure, stretch: Stretch::new(lanes) }
    }

    /// What becomes of commands that fail behind what has come.
    pub(super) fn on_failure(&self) -> OnFailure {
        self.on_failure
    }

    /// Bytes of records that have come together.
    pub(super) fn len(&self) -> usize {
        self.stretch.len()
    }

    /// What has come together.
    pub(super) fn take(&mut self) -> Arc<Stretch> {
        let another = self.stretch.another();
        Arc::new(std::mem::replace(&mut self.stretch, another))
    }

    /// Adds a record.
    pub(super) fn push(&mut self, record: &Record<'_>) {
        let mut commands = record.commands();
        if !record.is_transaction
            && let Some(command) = commands.next()
            && let Some(database) = self.selected(&command)
        {
            self.database = database;
            command.annotations().for_each(|text| self.note_withheld(text));
            return;
        }
        let from = self.stretch.calls.len();
        let start = self.stretch.bytes.len();
        self.stretch.bytes.extend_from_slice(record.bytes());
        let before = self.database;
        let mut lanes = LaneSet::NONE;
        for command in record.commands() {
            let call = self.call(&command, start, record.bytes().len());
            lanes = lanes.with(match self.selected(&command) {
                Some(database) => {
                    self.database = database;
                    LaneSet::NONE
                }
                None => self.lanes_of(&call),
            });
            self.stretch.calls.push(call);
        }
        let calls = from..self.stretch.calls.len();
        if lanes == LaneSet::NONE {
            // There was nothing but SELECT.
            self.stretch.calls.truncate(from);
            return;
        }
        self.add_unit(record.at, (before, self.database), lanes, calls);
    }

    /// The database that a command chooses, if it is SELECT and there is one; one that is wrong is found when it runs.
    fn selected(&self, command: &Command<'_>) -> Option<usize> {
        let mut args = command.args();
        let (2, Some(name), Some(index)) = (command.places().len(), args.next(), args.next()) else { return None };
        if !name.eq_ignore_ascii_case(b"SELECT") {
            return None;
        }
        parse_i64(index).and_then(|index| usize::try_from(index).ok()).filter(|&index| index < self.databases)
    }

    /// Behind what was written and is missing, commands may fail.
    fn note_withheld(&mut self, annotation: &[u8]) {
        if annotation == WITHHELD_ANNOTATION {
            self.on_failure = OnFailure::PassOver;
        }
    }

    fn call(&mut self, command: &Command<'_>, record: usize, record_len: usize) -> Call {
        let mut flags = 0;
        for text in command.annotations() {
            flags = annotated_flags(text).unwrap_or(flags);
            self.note_withheld(text);
        }
        let places = command.places();
        let is_long = record_len > Span::REACH;
        let stretch = &mut self.stretch;
        let from = if is_long { stretch.places.len() } else { stretch.spans.len() };
        if is_long {
            stretch.places.extend_from_slice(places);
        } else {
            stretch.spans.extend(places.iter().map(|place| Span::bytes(place.start, place.len())));
        }
        let words = Words { record, args: from as u32..(from + places.len()) as u32, is_long };
        let seen =
            if is_long { None } else { self.engine.resolve_at_sight(&stretch.spans[from..], &stretch.bytes[record..]) };
        let target = match seen {
            Some((resolved, hash)) => Target::Key(*resolved, hash),
            None => stretch.with_args(&words, |args| self.engine.resolve_logged(args)),
        };
        Call { at: command.at, target, flags, on_failure: self.on_failure, words }
    }

    /// The lanes of what a command touches.
    fn lanes_of(&self, call: &Call) -> LaneSet {
        let lane = |hash: KeyHash| LaneSet::one(self.engine.shards.index(hash) & (self.lanes - 1));
        let all = LaneSet::all(self.lanes);
        match &call.target {
            Target::Key(_, hash) => lane(*hash),
            Target::Other(resolved)
                if matches!(resolved.command.run, Run::Keys(_) | Run::Each(_) | Run::Blocking(_))
                    && !resolved.command.flags.any(Flags::WHOLE_KEYSPACE) =>
            {
                let lanes = self.stretch.with_args(&call.words, |args| {
                    let keys = resolved.command.keys.indexes(args);
                    keys.map(|at| lane(self.engine.shards.hash(args.get(at)))).fold(LaneSet::NONE, LaneSet::with)
                });
                if lanes == LaneSet::NONE { all } else { lanes }
            }
            _ => all,
        }
    }

    fn add_unit(&mut self, at: u64, databases: (usize, usize), lanes: LaneSet, calls: Range<usize>) {
        let stretch = &mut self.stretch;
        let is_shared = lanes.len() > 1;
        // Where lanes meet more than once in a row they do so once.
        if is_shared
            && let Some(last) = stretch.units.last_mut()
            && last.crossing.is_some()
            && last.lanes.has_all(lanes)
            && last.databases.1 == databases.0
        {
            last.calls.end = calls.end;
            last.databases.1 = databases.1;
            return;
        }
        let crossing = is_shared.then(|| {
            let missing = AtomicUsize::new(lanes.len());
            stretch.crossings.push(Crossing { missing, is_done: AtomicBool::new(false) });
            stretch.crossings.len() as u32 - 1
        });
        let index = stretch.units.len() as u32;
        stretch.units.push(Unit { at, crossing, databases, lanes, calls });
        lanes.lanes().for_each(|lane| stretch.lanes[lane].push(index));
    }
}
