//! Threads that keep connections busy and count what comes back. Knows nothing of the requests' bytes.

use super::connection::{Connection, Progress, Traffic};
use super::requests::{Operation, Protocol};
use crate::bench::{measure, placement};
use anyhow::{Context, Result, anyhow, bail};
use hdrhistogram::Histogram;
use rustix::event::{Timespec, epoll};
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// When a load of random keys ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// After so many operations, shared out over the threads.
    Operations(u64),
    /// After so long; what is in flight then is waited for.
    Elapsed(Duration),
}

/// Which keys a load names, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Each of the first `keys` keys once, in ascending order on each thread.
    EachOnce {
        /// How many.
        keys: u64,
    },
    /// Keys drawn evenly.
    AtRandom {
        /// Out of so many.
        keys: u64,
        /// Other seeds draw other keys.
        seed: u64,
        /// How long.
        until: Until,
    },
}

/// A load on one server.
#[derive(Clone, Debug)]
pub struct Load<'a> {
    /// Where the server listens.
    pub address: SocketAddr,
    /// Its language there.
    pub protocol: Protocol,
    /// What each request does.
    pub operation: Operation,
    /// On which keys.
    pub plan: Plan,
    /// Connections over all threads.
    pub connections: usize,
    /// Threads of the client.
    pub threads: usize,
    /// Requests in flight on each connection.
    pub pipeline: usize,
    /// Cores the threads may use.
    pub cores: &'a [usize],
}

/// What came of a load. Every reply was checked.
#[derive(Debug)]
pub struct Outcome {
    /// Operations answered.
    pub operations: u64,
    /// From the first request to the last reply.
    pub elapsed: Duration,
    /// Nanoseconds from a batch's sending to its last reply, counted for each of its operations.
    pub latency: Histogram<u64>,
    /// CPU time of all client threads.
    pub client_cpu: Duration,
    /// The busiest client thread's CPU time over the elapsed time: near 1, the client is the limit.
    pub client_busy: f64,
    /// Operations answered in each [`INTERVAL`] from the start; the last one is not whole.
    pub intervals: Vec<u64>,
    /// CPU time of the watched process in each interval; the first thread notes it, at the first answer of the next one.
    pub server_cpu: Vec<Duration>,
}

/// The length of one of [`Outcome::intervals`].
pub const INTERVAL: Duration = Duration::from_millis(100);

/// A server that says nothing for so long has failed.
const SILENCE: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };

/// Latencies are recorded up to a minute, to three digits.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// Runs a load to its end; a wrong reply is an error.
pub fn run(load: &Load<'_>) -> Result<Outcome> {
    run_watching(load, None)
}

/// The same, and notes a process's CPU time for each interval.
pub fn run_watching(load: &Load<'_>, process: Option<u32>) -> Result<Outcome> {
    assert!(load.threads > 0 && load.connections >= load.threads && load.pipeline > 0, "a load has work to do");
    let ready = Barrier::new(load.threads);
    let outcomes: Vec<Result<Outcome>> = std::thread::scope(|scope| {
        let thread = |index| {
            let ready = &ready;
            let watched = process.filter(|_| index == 0);
            scope.spawn(move || drive(load, index, ready, watched))
        };
        let threads: Vec<_> = (0..load.threads).map(thread).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<Outcome>>| {
            thread.join().unwrap_or_else(|_| Err(anyhow!("a client thread panicked")))
        };
        threads.into_iter().map(join).collect()
    });
    outcomes.into_iter().reduce(|sum, next| Ok(sum?.and(next?))).context("a load has a thread")?
}

impl Outcome {
    /// Nothing yet.
    pub fn none() -> Result<Outcome> {
        let latency = Histogram::new_with_max(LATENCY_NS_MAX, 3).context("latency histogram")?;
        let (operations, elapsed, client_cpu) = (0, Duration::ZERO, Duration::ZERO);
        let (intervals, server_cpu) = (Vec::new(), Vec::new());
        Ok(Outcome { operations, elapsed, latency, client_cpu, client_busy: 0.0, intervals, server_cpu })
    }

    fn and(mut self, other: Outcome) -> Outcome {
        self.operations += other.operations;
        self.elapsed = self.elapsed.max(other.elapsed);
        self.latency += other.latency;
        self.client_cpu += other.client_cpu;
        self.client_busy = self.client_busy.max(other.client_busy);
        if self.intervals.len() < other.intervals.len() {
            self.intervals.resize(other.intervals.len(), 0);
        }
        self.intervals.iter_mut().zip(other.intervals).for_each(|(sum, more)| *sum += more);
        self.server_cpu.extend(other.server_cpu);
        self
    }

    /// This load and a later one as one.
    pub fn followed_by(mut self, later: Outcome) -> Outcome {
        let elapsed = self.elapsed + later.elapsed;
        // Where one ends and the next begins no interval is whole.
        let intervals = [std::mem::take(&mut self.intervals), later.intervals.clone()].concat();
        Outcome { elapsed, intervals, ..self.and(later) }
    }

    fn answered(&mut self, operations: u64, latency: Duration, since_start: Duration) {
        self.operations += operations;
        self.elapsed = since_start;
        self.latency.saturating_record_n(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX), operations);
        let interval = (since_start.as_nanos() / INTERVAL.as_nanos()) as usize;
        if self.intervals.len() <= interval {
            self.intervals.resize(interval + 1, 0);
        }
        self.intervals[interval] += operations;
    }
}

fn drive(load: &Load<'_>, thread: usize, ready: &Barrier, watched: Option<u32>) -> Result<Outcome> {
    let prepared = prepare(load, thread);
    // Whether or not it is prepared, the other threads must not wait for this one for ever.
    ready.wait();
    let (poll, mut connections) = prepared?;
    let mut outcome = Outcome::none()?;
    let cpu_before = measure::own_thread_cpu_time();
    let start = Instant::now();
    let mut keys = Keys::of(load, thread);
    let mut busy = 0;
    let mut meter = Meter::of(watched)?;
    for (index, connection) in connections.iter_mut().enumerate() {
        busy += usize::from(begin(&poll, index, connection, &mut keys, load, start, start)?);
    }
    let mut events = Vec::with_capacity(connections.len());
    while busy > 0 {
        events.clear();
        match epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), Some(&SILENCE)) {
            Ok(0) => bail!("the server has been silent for {} s", SILENCE.tv_sec),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error).context("epoll"),
        }
        for event in &events {
            let index = event.data.u64() as usize;
            let connection = &mut connections[index];
            let flags = event.flags;
            if flags.contains(epoll::EventFlags::OUT) && connection.send()? == Progress::Waiting {
                watch(&poll, index, connection, epoll::EventFlags::IN)?;
            }
            if !flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR) {
                continue;
            }
            if connection.receive()? == Progress::Answered {
                let now = Instant::now();
                outcome.answered(connection.operations(), now - connection.begun(), now - start);
                meter.note(&mut outcome)?;
                if !begin(&poll, index, connection, &mut keys, load, start, now)? {
                    busy -= 1;
                }
            }
        }
    }
    outcome.client_cpu = measure::own_thread_cpu_time() - cpu_before;
    outcome.client_busy = outcome.client_cpu.as_secs_f64() / outcome.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
    Ok(outcome)
}

/// Notes a process's CPU time once an interval.
struct Meter {
    process: Option<u32>,
    /// Its CPU time when the interval began.
    before: Duration,
}

impl Meter {
    fn of(process: Option<u32>) -> Result<Meter> {
        let before = process.map(measure::cpu_time).transpose()?.unwrap_or_default();
        Ok(Meter { process, before })
    }

    /// Notes what the intervals that have ended since the last call have taken.
    fn note(&mut self, outcome: &mut Outcome) -> Result<()> {
        let Some(process) = self.process else { return Ok(()) };
        let ended = outcome.intervals.len() - 1;
        if outcome.server_cpu.len() < ended {
            let now = measure::cpu_time(process)?;
            // In an interval without any answer nothing could be noted: what it took falls to the one before.
            outcome.server_cpu.push(now - self.before);
            outcome.server_cpu.resize(ended, Duration::ZERO);
            self.before = now;
        }
        Ok(())
    }
}

fn prepare(load: &Load<'_>, thread: usize) -> Result<(OwnedFd, Vec<Connection>)> {
    placement::pin_this_thread(load.cores)?;
    let traffic = Traffic { protocol: load.protocol, operation: load.operation };
    let mine = share(load.connections as u64, load.threads, thread);
    let connections: Vec<Connection> = mine.map(|_| Connection::open(load.address, traffic)).collect::<Result<_>>()?;
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC).context("epoll")?;
    for (index, connection) in connections.iter().enumerate() {
        let data = epoll::EventData::new_u64(index as u64);
        epoll::add(&poll, &connection.stream, data, epoll::EventFlags::IN).context("epoll")?;
    }
    Ok((poll, connections))
}

fn watch(poll: &OwnedFd, index: usize, connection: &Connection, flags: epoll::EventFlags) -> Result<()> {
    epoll::modify(poll, &connection.stream, epoll::EventData::new_u64(index as u64), flags).context("epoll")
}

/// Sends the next batch; false when the load has ended.
fn begin(
    poll: &OwnedFd,
    index: usize,
    connection: &mut Connection,
    keys: &mut Keys,
    load: &Load<'_>,
    start: Instant,
    now: Instant,
) -> Result<bool> {
    let batch = keys.batch(load.pipeline * load.operation.keys(), now - start);
    if batch == 0 {
        return Ok(false);
    }
    if connection.begin((0..batch).map(|_| keys.next()), now)? == Progress::Sending {
        watch(poll, index, connection, epoll::EventFlags::IN | epoll::EventFlags::OUT)?;
    }
    Ok(true)
}

/// The part of `total` that falls to one of several threads.
fn share(total: u64, threads: usize, thread: usize) -> Range<u64> {
    let (threads, thread) = (threads as u64, thread as u64);
    total * thread / threads..total * (thread + 1) / threads
}

/// One thread's keys.
enum Keys {
    Ascending { next: u64, end: u64 },
    Random { keys: u64, state: u64, operations_left: u64, until: Option<Duration> },
}

impl Keys {
    fn of(load: &Load<'_>, thread: usize) -> Keys {
        match load.plan {
            Plan::EachOnce { keys } => {
                let mine = share(keys, load.threads, thread);
                Keys::Ascending { next: mine.start, end: mine.end }
            }
            Plan::AtRandom { keys, seed, until } => {
                let state = seed.wrapping_mul(1 << 16).wrapping_add(thread as u64);
                let (operations_left, until) = match until {
                    Until::Operations(operations) => {
                        let mine = share(operations, load.threads, thread);
                        (mine.end - mine.start, None)
                    }
                    Until::Elapsed(duration) => (u64::MAX, Some(duration)),
                };
                Keys::Random { keys, state, operations_left, until }
            }
        }
    }

    /// How many of the `wanted` keys the next batch has.
    fn batch(&mut self, wanted: usize, elapsed: Duration) -> u64 {
        let wanted = wanted as u64;
        match self {
            Keys::Ascending { next, end } => wanted.min(*end - *next),
            Keys::Random { until: Some(until), .. } if elapsed >= *until => 0,
            Keys::Random { operations_left, .. } => {
                let batch = wanted.min(*operations_left);
                *operations_left -= batch;
                batch
            }
        }
    }

    fn next(&mut self) -> u64 {
        match self {
            Keys::Ascending { next, .. } => {
                *next += 1;
                *next - 1
            }
            Keys::Random { keys, state, .. } => {
                // SplitMix64 (Steele, Lea, Flood 2014); the product's upper half is an even draw from 0..keys.
                *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
                let mut mixed = *state;
                mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                mixed ^= mixed >> 31;
                ((u128::from(mixed) * u128::from(*keys)) >> 64) as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(plan: Plan) -> Load<'static> {
        let (protocol, operation) = (Protocol::Resp, Operation::Get { value_len: 8 });
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        Load { address, protocol, operation, plan, connections: 3, threads: 3, pipeline: 4, cores: &[] }
    }

    #[test]
    fn each_key_is_named_once_by_one_thread() {
        let load = load(Plan::EachOnce { keys: 100 });
        let mut named = Vec::new();
        for thread in 0..load.threads {
            let mut keys = Keys::of(&load, thread);
            loop {
                let batch = keys.batch(7, Duration::ZERO);
                if batch == 0 {
                    break;
                }
                named.extend((0..batch).map(|_| keys.next()));
            }
        }
        assert_eq!(named, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn random_keys_end_and_cover_the_range() {
        let until = Until::Operations(30_000);
        let load = load(Plan::AtRandom { keys: 100, seed: 1, until });
        let mut drawn = [0; 100];
        for thread in 0..load.threads {
            let mut keys = Keys::of(&load, thread);
            while keys.batch(10, Duration::ZERO) == 10 {
                (0..10).for_each(|_| drawn[keys.next() as usize] += 1);
            }
        }
        assert_eq!(drawn.iter().sum::<u32>(), 30_000);
        assert!(drawn.iter().all(|times| (200..400).contains(times)), "{drawn:?}");
    }

    #[test]
    fn a_timed_load_ends_with_its_time() {
        let until = Until::Elapsed(Duration::from_secs(1));
        let mut keys = Keys::of(&load(Plan::AtRandom { keys: 100, seed: 1, until }), 0);
        assert_eq!(keys.batch(10, Duration::from_millis(999)), 10);
        assert_eq!(keys.batch(10, Duration::from_secs(1)), 0);
    }
}
