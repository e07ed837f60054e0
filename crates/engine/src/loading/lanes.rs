//! Who runs a log's commands again: one sorts them into lanes, the workers take lanes when they tick, each by one worker at
//! a time. Knows neither files nor commands.

use super::stretch::{LANES_MAX, Stretch};
use crate::engine::Engine;
use crate::replay::Player;
use crate::worker::Worker;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Stretches that wait at most, and their bytes: enough for nobody to wait for the file, and little memory. One of a long
/// record may be longer.
const WAITING_MAX: usize = 32;
const WAITING_BYTES_MAX: usize = 8 << 20;
/// Lanes for each worker: while one waits at a crossing there are others to go on with.
const LANES_EACH: usize = 4;
/// Units whose memory is asked for before the first of them runs; then the clock is read, too.
const AHEAD: usize = 16;

/// How long whoever sorts works at a time, where the workers do not come, and how long it waits where they have all lanes.
const OWN_TURN: Duration = Duration::from_millis(1);
const OTHERS_WAIT: Duration = Duration::from_millis(1);

/// A command that could not be run again.
#[derive(Debug)]
pub(super) enum Failure {
    /// Where in the file it stands, and why not.
    Command(u64, String),
    /// A bug made somebody panic.
    Panicked,
}

/// A stretch of which some lanes are not done.
struct Waiting {
    stretch: Arc<Stretch>,
    lanes_left: usize,
}

/// How far a lane is.
#[derive(Clone, Default)]
struct Lane {
    /// In which stretch, counted from the first of all.
    stretch: u64,
    /// How many of its units there are done, or begun.
    next: usize,
    /// Whether somebody is at it.
    is_taken: bool,
    /// The crossing of the stretch that has to be done before it goes on.
    waits_for: Option<u32>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    /// Which one is the first that waits.
    first: u64,
    bytes: usize,
    lanes: Vec<Lane>,
    failure: Option<Failure>,
}

impl State {
    fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX || self.bytes >= WAITING_BYTES_MAX
    }

    /// Whether there is nothing to be done any more.
    fn is_done(&self) -> bool {
        // Whoever has panicked has left a lane behind that nobody takes.
        self.waiting.is_empty() || matches!(self.failure, Some(Failure::Panicked))
    }

    fn stretch(&self, number: u64) -> Option<&Arc<Stretch>> {
        self.waiting.get((number - self.first) as usize).map(|waiting| &waiting.stretch)
    }

    /// Gives out a lane in which something can be done, `preferred` or the next one behind it.
    fn take(&mut self, preferred: usize) -> Option<Taken> {
        let count = self.lanes.len();
        for lane in (preferred..count).chain(0..preferred) {
            let Lane { stretch, next, is_taken, waits_for } = self.lanes[lane];
            if is_taken {
                continue;
            }
            let Some(found) = self.stretch(stretch) else { continue };
            if waits_for.is_some_and(|crossing| !found.crossing(crossing).is_done()) {
                continue;
            }
            let stretch = Arc::clone(found);
            self.lanes[lane].is_taken = true;
            self.lanes[lane].waits_for = None;
            return Some(Taken { lane, stretch, next });
        }
        None
    }

    /// Notes that a lane is through its stretch; gives the next one, if there is one.
    fn finish(&mut self, lane: usize) -> Option<Arc<Stretch>> {
        let number = self.lanes[lane].stretch;
        self.waiting[(number - self.first) as usize].lanes_left -= 1;
        while self.waiting.front().is_some_and(|waiting| waiting.lanes_left == 0) {
            let done = self.waiting.pop_front().expect("there is one");
            self.bytes -= done.stretch.len();
            self.first += 1;
        }
        self.lanes[lane].stretch = number + 1;
        self.lanes[lane].next = 0;
        self.stretch(number + 1).cloned()
    }
}

/// A lane that somebody is at.
struct Taken {
    lane: usize,
    stretch: Arc<Stretch>,
    next: usize,
}

/// Why somebody lets go of a lane.
enum Left {
    /// The time is over.
    Time,
    /// It waits for others at a crossing.
    Crossing(u32),
    /// There is nothing more in it.
    Done,
}

/// The commands of a log on their way.
pub(super) struct Lanes {
    count: usize,
    workers: usize,
    state: Mutex<State>,
    /// There is something to do that there was not.
    work: Condvar,
    /// Something was done.
    room: Condvar,
    /// Where the first command stands that could not be run again; what stands behind it is passed over.
    failed_at: AtomicU64,
    /// How many commands answered an error and were passed over.
    passed_over: AtomicU64,
}

/// Notes that somebody at a lane has panicked.
struct PanicNote<'a>(&'a Lanes);

impl Drop for PanicNote<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.state.lock().failure = Some(Failure::Panicked);
            self.0.room.notify_all();
        }
    }
}

impl Lanes {
    /// As many as are good for so many workers.
    pub(super) fn new(workers: usize, shards: usize) -> Lanes {
        let count = if workers == 1 { 1 } else { (workers * LANES_EACH).next_power_of_two() };
        let count = count.min(LANES_MAX).min(shards);
        Lanes {
            count,
            workers,
            state: Mutex::new(State { lanes: vec![Lane::default(); count], ..State::default() }),
            work: Condvar::new(),
            room: Condvar::new(),
            failed_at: AtomicU64::new(u64::MAX),
            passed_over: AtomicU64::new(0),
        }
    }

    /// How many there are, a power of two.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Puts a stretch behind the others; gives it back when there was no room for so long.
    pub(super) fn offer(&self, stretch: Arc<Stretch>, patience: Duration) -> Result<(), Arc<Stretch>> {
        let mut state = self.state.lock();
        let has_no_room = |state: &mut State| state.is_full() && !state.is_done();
        if self.room.wait_while_for(&mut state, has_no_room, patience).timed_out() {
            return Err(stretch);
        }
        state.bytes += stretch.len();
        state.waiting.push_back(Waiting { stretch, lanes_left: self.count });
        drop(state);
        self.work.notify_all();
        Ok(())
    }

    /// Works until some time, at what is there or comes within `patience`; tells whether there was something.
    pub(super) fn work(&self, engine: &Engine, worker: &mut Worker, patience: Duration, until: Instant) -> bool {
        let preferred = worker.index % self.workers * self.count / self.workers;
        let mut player = None;
        loop {
            let taken = {
                let mut state = self.state.lock();
                let mut taken = state.take(preferred);
                if taken.is_none() && !patience.is_zero() {
                    let is_nothing_there = |state: &mut State| {
                        taken = state.take(preferred);
                        taken.is_none()
                    };
                    self.work.wait_while_for(&mut state, is_nothing_there, patience);
                }
                taken
            };
            let Some(taken) = taken else { return player.is_some() };
            let player = player.get_or_insert_with(|| Player::new(engine));
            self.run(engine, player, worker, taken, until);
            if Instant::now() >= until {
                return true;
            }
        }
    }

    /// Goes along a lane.
    fn run(&self, engine: &Engine, player: &mut Player<'_>, worker: &mut Worker, taken: Taken, until: Instant) {
        let Taken { lane, mut stretch, mut next } = taken;
        let panic_note = PanicNote(self);
        loop {
            let left = self.run_stretch(engine, player, worker, &stretch, lane, &mut next, until);
            let mut state = self.state.lock();
            if matches!(left, Left::Done) {
                let following = state.finish(lane);
                // Others may have waited for memory to become free, or for the end.
                self.room.notify_one();
                if let Some(following) = following {
                    (stretch, next) = (following, 0);
                    continue;
                }
            }
            let state = &mut state.lanes[lane];
            state.is_taken = false;
            match left {
                Left::Done => {}
                Left::Time => state.next = next,
                Left::Crossing(crossing) => (state.next, state.waits_for) = (next, Some(crossing)),
            }
            break;
        }
        drop(panic_note);
    }

    #[expect(clippy::too_many_arguments, reason = "they are what one lane needs, and are kept by the caller")]
    fn run_stretch(
        &self,
        engine: &Engine,
        player: &mut Player<'_>,
        worker: &mut Worker,
        stretch: &Stretch,
        lane: usize,
        next: &mut usize,
        until: Instant,
    ) -> Left {
        let units = stretch.lane(lane);
        let mut prefetched = *next;
        while let Some(&index) = units.get(*next) {
            if *next == prefetched {
                if prefetched > 0 && Instant::now() >= until {
                    return Left::Time;
                }
                prefetched = (*next + AHEAD).min(units.len());
                stretch.prefetch(engine, &units[*next..], AHEAD);
            }
            *next += 1;
            let unit = stretch.unit(index);
            let crossing = unit.crossing.map(|number| (number, stretch.crossing(number)));
            if let Some((number, crossing)) = crossing
                && !crossing.arrive()
            {
                return Left::Crossing(number);
            }
            // Behind one that has failed nothing makes sense.
            if unit.at <= self.failed_at.load(Ordering::Relaxed)
                && let Err((at, error)) = stretch.run(player, worker, unit, &self.passed_over)
            {
                self.fail(at, error.to_string());
            }
            if let Some((_, crossing)) = crossing {
                // Under the lock, so that nobody goes to sleep who has just seen that it was not.
                let _state = self.state.lock();
                crossing.set_done();
                self.work.notify_all();
                self.room.notify_one();
            }
        }
        Left::Done
    }

    /// Notes that a command could not be run again. Of several the first in the file is told.
    pub(super) fn fail(&self, at: u64, why: String) {
        let mut state = self.state.lock();
        match &state.failure {
            Some(Failure::Command(earlier, _)) if *earlier <= at => {}
            Some(Failure::Panicked) => {}
            _ => {
                self.failed_at.fetch_min(at, Ordering::Relaxed);
                state.failure = Some(Failure::Command(at, why));
            }
        }
    }

    /// Waits until everything is done; takes part where nothing is done within this time.
    pub(super) fn finish(&self, engine: &Engine, worker: &mut Worker, patience: Duration) {
        loop {
            let mut state = self.state.lock();
            let is_idle = state.is_done() || patience.is_zero() || self.room.wait_for(&mut state, patience).timed_out();
            if state.is_done() {
                return;
            }
            drop(state);
            if is_idle && !self.work_some(engine, worker) {
                let mut state = self.state.lock();
                if !state.is_done() {
                    self.room.wait_for(&mut state, OTHERS_WAIT);
                }
            }
        }
    }

    /// Does a part of what there is to do, for whoever is no worker that ticks; tells whether there was any.
    pub(super) fn work_some(&self, engine: &Engine, worker: &mut Worker) -> bool {
        self.work(engine, worker, Duration::ZERO, Instant::now() + OWN_TURN)
    }

    /// How many commands were passed over.
    pub(super) fn passed_over(&self) -> u64 {
        self.passed_over.load(Ordering::Relaxed)
    }

    /// What went wrong, if anything did.
    pub(super) fn take_failure(&self) -> Option<Failure> {
        self.state.lock().failure.take()
    }

    /// Whether something went wrong.
    pub(super) fn has_failed(&self) -> bool {
        self.state.lock().failure.is_some()
    }
}
