//! One thread of a load and its event loop. Knows nothing of the requests' bytes.

use super::connection::{Connection, Done, INPUT_LEN};
use super::crew::Crew;
use super::outcome::Outcome;
use super::pace::Due;
use super::plan::{Plan, Until};
use super::workload::Workload;
use crate::machine::{cpu, placement};
use anyhow::{Context, Result, bail};
use rustix::event::{Timespec, epoll};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a waiting thread looks whether it is to stop.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// A server that says nothing for so long has failed.
const SILENCE: Duration = Duration::from_secs(30);

/// What is due within this time is waited for awake: a timer would wake the thread later than that.
const AWAKE_NS: u64 = 60_000;

/// The patience of a thread that waits awake.
const AWAKE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The timer's mark among the connections' indexes.
const TIMER: u64 = u64::MAX;

/// A thread that is ready to begin.
#[derive(Debug)]
pub struct Thread<'a, W: Workload> {
    plan: &'a Plan<'a>,
    workload: W,
    poll: OwnedFd,
    timer: OwnedFd,
    connections: Vec<Connection<W::Pending>>,
    /// Connections with room for a request, once for each; of an open loop only.
    free: VecDeque<usize>,
    due: Option<Due>,
    /// Connections without a request, as all that are left wait for replies; of a closed loop only.
    idle: Vec<usize>,
    operations_left: u64,
    end_ns: u64,
    in_flight: usize,
    /// Whether nothing more is to be begun.
    ended: bool,
    start: Instant,
    /// Whether operations of an open loop are due that no connection has room for.
    starved: bool,
    /// When the last wait ended; of an open loop only.
    woke_ns: u64,
    /// How long it has waited awake, which is no work.
    awake_ns: u64,
    /// How often it has asked for events.
    waits: u64,
    outcome: Outcome,
}

/// What a thread leaves. The connections stay open until the server has been looked at.
#[derive(Debug)]
pub enum Driven<W: Workload> {
    /// It did all it was to do.
    Whole {
        /// What came of it.
        outcome: Box<Outcome>,
        /// What it sent.
        workload: W,
        /// Its connections.
        connections: Vec<Connection<W::Pending>>,
    },
    /// It was stopped from outside.
    GaveUp,
}

/// Opens a thread's connections.
pub fn prepare<'a, W: Workload>(
    plan: &'a Plan<'a>,
    workload: W,
    index: usize,
    threads: usize,
) -> Result<Thread<'a, W>> {
    if !plan.cores.is_empty() {
        placement::pin_this_thread(plan.cores)?;
    }
    let crew = Crew::alone(plan.connections, threads);
    let statements = workload.statements();
    let connections: Vec<Connection<W::Pending>> =
        (0..crew.connections_of(index)).map(|_| Connection::open(plan, &statements)).collect::<Result<_>>()?;
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC).context("epoll")?;
    for (index, connection) in connections.iter().enumerate() {
        let data = epoll::EventData::new_u64(index as u64);
        epoll::add(&poll, connection, data, epoll::EventFlags::IN).context("epoll")?;
    }
    let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)
        .context("timer")?;
    let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
    epoll::add(&poll, &timer, epoll::EventData::new_u64(TIMER), flags).context("epoll")?;
    let (operations_left, end_ns) = match plan.until {
        Until::Operations(operations) => {
            let mine = crew.share_of(operations, index);
            (mine.end - mine.start, u64::MAX)
        }
        Until::Elapsed(duration) => (u64::MAX, u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)),
        Until::Exhausted => (u64::MAX, u64::MAX),
    };
    let due = plan.pace.due(plan.draw, (index, threads), end_ns);
    let free = match due {
        Some(_) => (0..plan.pipeline).flat_map(|_| 0..connections.len()).collect(),
        None => VecDeque::new(),
    };
    let outcome = Outcome::new(W::KINDS);
    let (in_flight, ended) = (0, false);
    Ok(Thread {
        plan,
        workload,
        poll,
        timer,
        connections,
        free,
        due,
        idle: Vec::new(),
        operations_left,
        end_ns,
        in_flight,
        ended,
        start: Instant::now(),
        starved: false,
        woke_ns: 0,
        awake_ns: 0,
        waits: 0,
        outcome,
    })
}

impl<W: Workload> Thread<'_, W> {
    /// Runs to the end. `failed` says that another thread has failed.
    pub fn drive(mut self, failed: &AtomicBool) -> Result<Driven<W>> {
        let (cpu_before, queued_before) = (cpu::own_thread(), cpu::own_thread_queued());
        let system_before = cpu::own_thread_system();
        self.start = Instant::now();
        let mut input = Vec::with_capacity(INPUT_LEN);
        let mut events = Vec::with_capacity(self.connections.len().clamp(16, 512));
        let (mut now, mut last_reply) = (0, 0);
        if self.due.is_none() {
            (0..self.connections.len()).try_for_each(|index| self.fill(index, 0))?;
        }
        loop {
            if self.due.is_some() {
                now = self.now_ns();
                self.begin_due(now)?;
                // A hopeless backlog is not waited for longer than the load itself took.
                if self.ended_late(now) {
                    self.give_up_backlog(now);
                    // All of that time the server was waited for.
                    last_reply = now;
                    break;
                }
            }
            if self.in_flight == 0 && (self.ended || self.due.as_ref().is_some_and(|due| due.next_ns().is_none())) {
                break;
            }
            if self.plan.stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed) {
                return Ok(Driven::GaveUp);
            }
            let patience = self.patience(now)?;
            self.wait(&patience, &mut events)?;
            let answered_before = self.outcome.operations;
            for event in &events {
                let data = event.data.u64();
                if data == TIMER {
                    continue;
                }
                let (index, flags) = (data as usize, event.flags);
                if flags.contains(epoll::EventFlags::OUT) {
                    self.send(index)?;
                }
                if flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR) {
                    now = self.now_ns();
                    last_reply = now;
                    self.receive(index, &mut input, now)?;
                }
            }
            if events.is_empty() {
                now = self.now_ns();
                if self.in_flight > 0 && now.saturating_sub(last_reply) > SILENCE.as_nanos() as u64 {
                    bail!("the server has been silent for {} s", SILENCE.as_secs());
                }
                if self.in_flight == 0 {
                    last_reply = now;
                }
            }
            self.plan.progress.fetch_add(self.outcome.operations - answered_before, Ordering::Relaxed);
        }
        self.outcome.elapsed = Duration::from_nanos(last_reply.max(1));
        let cpu = cpu::own_thread().saturating_sub(cpu_before);
        let queued = cpu::own_thread_queued().saturating_sub(queued_before);
        // What an open loop waits awake is made of calls that are no work.
        let closed = self.due.is_none();
        let system = system_before.zip(cpu::own_thread_system()).map(|(before, now)| now.saturating_sub(before));
        self.outcome.client_system = system.filter(|_| closed);
        let calls = self.connections.iter().map(|connection| connection.calls).sum::<u64>() + self.waits;
        self.outcome.client_calls = Some(calls).filter(|_| closed && self.plan.tls.is_none());
        let all = self.start.elapsed().as_secs_f64();
        // What it waited awake is partly time on its core and partly in the queue for it: both are in the sum.
        let awake = Duration::from_nanos(self.awake_ns);
        self.outcome.client_cpu = cpu.saturating_sub(awake);
        self.outcome.client_busy = (cpu + queued).saturating_sub(awake).as_secs_f64() / all;
        self.outcome.client_queued = queued.as_secs_f64() / all;
        Ok(Driven::Whole { outcome: Box::new(self.outcome), workload: self.workload, connections: self.connections })
    }

    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Waits for an event, at most so long.
    fn wait(&mut self, patience: &Timespec, events: &mut Vec<epoll::Event>) -> Result<()> {
        let awake_since = (*patience == AWAKE).then(|| self.now_ns());
        events.clear();
        self.waits += 1;
        match epoll::wait(&self.poll, rustix::buffer::spare_capacity(events), Some(patience)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("epoll"),
        }
        if self.due.is_some() {
            self.woke_ns = self.now_ns();
        }
        if let Some(since) = awake_since.filter(|_| events.is_empty()) {
            self.awake_ns += self.woke_ns - since;
        }
        Ok(())
    }

    /// Sends a connection's next batch in a closed loop.
    fn fill(&mut self, index: usize, now: u64) -> Result<()> {
        if now >= self.end_ns {
            self.ended = true;
        }
        let connection = &mut self.connections[index];
        while connection.in_flight() < self.plan.pipeline && !self.ended {
            if self.operations_left > 0 && connection.begin(&mut self.workload, now) {
                self.operations_left -= 1;
                self.in_flight += 1;
            } else if self.operations_left > 0 && self.workload.waits() {
                if connection.in_flight() == 0 {
                    self.idle.push(index);
                }
                break;
            } else {
                self.ended = true;
            }
        }
        self.send(index)
    }

    /// Begins what is due in an open loop, as far as connections have room.
    fn begin_due(&mut self, now: u64) -> Result<()> {
        let Some(due) = &mut self.due else { return Ok(()) };
        while let Some(intended) = due.next_ns().filter(|next| *next <= now) {
            let Some(index) = self.free.pop_front() else {
                self.starved = true;
                return Ok(());
            };
            if self.operations_left == 0 || !self.connections[index].begin(&mut self.workload, intended) {
                self.ended = true;
                due.end();
                return Ok(());
            }
            // What waited for a connection was the client's to send when it knew of the reply that made room.
            let possible = if self.starved { intended.max(self.woke_ns) } else { intended };
            let late = (self.start.elapsed().as_nanos() as u64).saturating_sub(possible);
            self.outcome.late.record(late, 1);
            due.advance();
            self.operations_left -= 1;
            self.in_flight += 1;
            let sent = self.connections[index].send()?;
            Self::watch(&self.poll, &mut self.connections[index], index, !sent)?;
        }
        self.starved = false;
        Ok(())
    }

    /// Whether the backlog of an open loop is still there twice as long after the start as operations were due.
    fn ended_late(&self, now: u64) -> bool {
        self.end_ns != u64::MAX && now > self.end_ns.saturating_mul(2).max(self.end_ns + 2_000_000_000)
    }

    /// Records the latencies that operations have had so far that were never answered.
    fn give_up_backlog(&mut self, now: u64) {
        let unanswered: Vec<u64> = self.connections.iter().flat_map(Connection::since_ns).collect();
        let mut waiting = |since: u64| self.outcome.unanswered.record(now.saturating_sub(since), 1);
        unanswered.into_iter().for_each(&mut waiting);
        while let Some(due) = &mut self.due
            && let Some(intended) = due.next_ns()
        {
            waiting(intended);
            due.advance();
            self.outcome.unsent += 1;
        }
    }

    /// How long the thread may wait for an event. In an open loop a timer ends the wait when an operation is due.
    fn patience(&self, now: u64) -> Result<Timespec> {
        let Some(next) = self.due.as_ref().and_then(Due::next_ns).filter(|_| !self.starved) else { return Ok(LOOK) };
        let left = next.saturating_sub(now);
        if left < AWAKE_NS {
            return Ok(AWAKE);
        }
        let nanoseconds = left - AWAKE_NS / 2;
        let at =
            Timespec { tv_sec: (nanoseconds / 1_000_000_000) as i64, tv_nsec: (nanoseconds % 1_000_000_000) as i64 };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: at };
        rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once).context("timer")?;
        Ok(LOOK)
    }

    fn send(&mut self, index: usize) -> Result<()> {
        let connection = &mut self.connections[index];
        let sent = connection.send()?;
        Self::watch(&self.poll, connection, index, !sent)
    }

    /// Asks to be told when a socket takes more, or no longer to be told.
    #[inline]
    fn watch(poll: &OwnedFd, connection: &mut Connection<W::Pending>, index: usize, to_send: bool) -> Result<()> {
        if connection.waits_to_send == to_send {
            return Ok(());
        }
        connection.waits_to_send = to_send;
        connection.calls += 1;
        let flags = if to_send { epoll::EventFlags::IN | epoll::EventFlags::OUT } else { epoll::EventFlags::IN };
        epoll::modify(poll, connection, epoll::EventData::new_u64(index as u64), flags).context("epoll")
    }

    fn receive(&mut self, index: usize, input: &mut Vec<u8>, now: u64) -> Result<()> {
        let connection = &mut self.connections[index];
        let (outcome, free, open) = (&mut self.outcome, &mut self.free, self.due.is_some());
        let mut finished = 0;
        let follow_up = connection.receive(&mut self.workload, input, |done: Done| {
            outcome.answered(done.kind, done.operations, now.saturating_sub(done.since_ns), now);
            finished += 1;
            if open {
                free.push_back(index);
            }
        })?;
        self.in_flight -= finished;
        if !open && connection.in_flight() == 0 {
            // What was received has been looked at meanwhile.
            let now = self.now_ns();
            self.fill(index, now)?;
            if !self.idle.is_empty() {
                std::mem::take(&mut self.idle).into_iter().try_for_each(|idle| self.fill(idle, now))?;
            }
            return Ok(());
        }
        if follow_up { self.send(index) } else { Ok(()) }
    }
}
