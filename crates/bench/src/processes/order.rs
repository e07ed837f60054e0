//! What a process of the client is told and what it tells: one line of JSON each. Knows no pipe.

use crate::latency::Latency;
use crate::load::{Arrivals, Crew, Draw, Outcome, Pace, Until, share};
use crate::target::{Login, Protocol, Target};
use crate::workloads::ycsb::{KINDS, Layout, Mix, Part, Updates, Work};
use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// A load on a server, as all processes drive it together.
#[derive(Clone, Debug)]
pub struct Job {
    /// The server.
    pub target: Target,
    /// The form of the records.
    pub layout: Layout,
    /// What is done with them.
    pub work: Work,
    /// What an update stores.
    pub updates: Updates,
    /// Connections of all processes.
    pub connections: usize,
    /// Threads of all processes.
    pub threads: usize,
    /// Requests in flight on each connection.
    pub pipeline: usize,
    /// Whether operations wait for each other.
    pub pace: Pace,
    /// When it ends.
    pub until: Until,
    /// Cores of all threads; empty for all.
    pub cores: Vec<usize>,
}

/// What one process is to do, as it is written down.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Order {
    protocol: String,
    target: String,
    login: Option<(String, Option<String>, String)>,
    authority: Option<PathBuf>,
    fields: usize,
    field_bytes: usize,
    shrinking_updates: bool,
    /// The workload and its seed; without, records are inserted.
    workload: Option<(String, u64)>,
    records: u64,
    first_new: u64,
    expected_new: u64,
    process: u64,
    processes: u64,
    pub(super) connections: usize,
    /// Those of all processes.
    connections_of_all: usize,
    pub(super) threads: usize,
    /// Threads of the processes before and behind it.
    others: (usize, usize),
    pub(super) pipeline: usize,
    /// Operations a second of this process, and how they follow one another; without, a closed loop.
    open: Option<(f64, String)>,
    /// Operations of this process, or its time; without either, until there is nothing more to do.
    operations: Option<u64>,
    milliseconds: Option<u64>,
    pub(super) cores: Vec<usize>,
}

impl Job {
    /// The part of each of so many processes.
    ///
    /// # Errors
    /// When there are fewer connections than processes.
    pub fn orders(&self, processes: usize) -> Result<Vec<Order>> {
        if self.connections < processes {
            return Err(anyhow!("{} connections cannot be shared out to {processes} processes", self.connections));
        }
        let milliseconds = match self.until {
            Until::Elapsed(duration) => Some(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)),
            Until::Operations(_) | Until::Exhausted => None,
        };
        let share = |total: usize, part: Part| {
            let share = share(total as u64, processes, part.process as usize);
            (share.end - share.start) as usize
        };
        let parts = (0..processes as u64).map(|process| Part { process, processes: processes as u64 });
        let threads_of = |part: Part| share(self.threads, part).clamp(1, share(self.connections, part));
        let threads: Vec<usize> = parts.clone().map(threads_of).collect();
        let order = |part: Part| {
            let (before, rest) = threads.split_at(part.process as usize);
            let connections = share(self.connections, part);
            let (workload, records, first_new, expected_new) = match self.work {
                Work::Load { records } => (None, records, 0, 0),
                Work::Run { mix, records, first_new, expected_new, seed } => {
                    (Some((mix.name.to_owned(), seed)), records, first_new, expected_new)
                }
            };
            let operations = match self.until {
                Until::Operations(operations) => {
                    Some(Crew::of_process((self.connections, 1), processes, part.process as usize).share(operations))
                }
                Until::Elapsed(_) | Until::Exhausted => None,
            };
            let login = self.target.login.clone();
            Order {
                protocol: self.target.protocol.name().to_owned(),
                target: self.target.to_string(),
                login: login.map(|Login { user, password, database }| (user, password, database)),
                authority: self.target.authority.clone(),
                fields: self.layout.fields,
                field_bytes: self.layout.field_len,
                shrinking_updates: self.updates == Updates::Shrinking,
                workload,
                records,
                first_new,
                expected_new,
                process: part.process,
                processes: part.processes,
                connections,
                connections_of_all: self.connections,
                threads: rest[0],
                others: (before.iter().sum(), rest[1..].iter().sum()),
                pipeline: self.pipeline,
                open: match self.pace {
                    Pace::Closed => None,
                    Pace::Open { rate, arrivals } => {
                        Some((rate * connections as f64 / self.connections as f64, arrivals.to_string()))
                    }
                },
                operations: operations.map(|share| share.end - share.start),
                milliseconds,
                cores: self.cores.clone(),
            }
        };
        Ok(parts.map(order).collect())
    }
}

impl Order {
    pub(super) fn target(&self) -> Result<Target> {
        let target: Target = self.target.parse().map_err(|error: String| anyhow!(error))?;
        let protocol: Protocol = self.protocol.parse().map_err(|error: String| anyhow!(error))?;
        let login = self.login.clone();
        let login = login.map(|(user, password, database)| Login { user, password, database });
        Ok(Target { protocol, login, authority: self.authority.clone(), ..target })
    }

    pub(super) fn layout(&self) -> Layout {
        Layout::new(self.fields, self.field_bytes)
    }

    pub(super) fn updates(&self) -> Updates {
        if self.shrinking_updates { Updates::Shrinking } else { Updates::Whole }
    }

    pub(super) fn part(&self) -> Part {
        Part { process: self.process, processes: self.processes }
    }

    pub(super) fn crew(&self) -> Crew {
        Crew::of_process((self.connections_of_all, self.threads), self.processes as usize, self.process as usize)
    }

    pub(super) fn work(&self) -> Result<Work> {
        let Some((name, seed)) = &self.workload else { return Ok(Work::Load { records: self.records }) };
        let mix = Mix::of(name).with_context(|| format!("'{name}' is no workload"))?;
        let (records, first_new, expected_new) = (self.records, self.first_new, self.expected_new);
        Ok(Work::Run { mix, records, first_new, expected_new, seed: *seed })
    }

    pub(super) fn pace(&self) -> Result<Pace> {
        let Some((rate, arrivals)) = &self.open else { return Ok(Pace::Closed) };
        let arrivals: Arrivals = arrivals.parse().map_err(|error: String| anyhow!(error))?;
        Ok(Pace::Open { rate: *rate, arrivals })
    }

    pub(super) fn draw(&self) -> Draw {
        let (before, behind) = self.others;
        Draw { seed: self.workload.as_ref().map_or(0, |(_, seed)| *seed), before, behind }
    }

    pub(super) fn until(&self) -> Until {
        match (self.operations, self.milliseconds) {
            (Some(operations), _) => Until::Operations(operations),
            (None, Some(milliseconds)) => Until::Elapsed(Duration::from_millis(milliseconds)),
            (None, None) => Until::Exhausted,
        }
    }
}

/// What came of a process's part, as it is written down.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Told {
    operations: u64,
    elapsed_ns: u64,
    kinds: Vec<Vec<(u64, u64)>>,
    intervals: Vec<u64>,
    client_cpu_ns: u64,
    client_system_ns: Option<u64>,
    client_calls: Option<u64>,
    client_busy: f64,
    client_queued: f64,
    late: Vec<(u64, u64)>,
    unanswered: Vec<(u64, u64)>,
    unsent: u64,
}

impl Told {
    pub(super) fn of(outcome: &Outcome) -> Told {
        let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Told {
            operations: outcome.operations,
            elapsed_ns: ns(outcome.elapsed),
            kinds: outcome.kinds.iter().map(|(_, latency)| latency.counts()).collect(),
            intervals: outcome.intervals.clone(),
            client_cpu_ns: ns(outcome.client_cpu),
            client_system_ns: outcome.client_system.map(ns),
            client_calls: outcome.client_calls,
            client_busy: outcome.client_busy,
            client_queued: outcome.client_queued,
            late: outcome.late.counts(),
            unanswered: outcome.unanswered.counts(),
            unsent: outcome.unsent,
        }
    }

    pub(super) fn outcome(self) -> Outcome {
        let mut outcome = Outcome::new(KINDS);
        outcome.operations = self.operations;
        outcome.elapsed = Duration::from_nanos(self.elapsed_ns);
        for ((_, latency), counts) in outcome.kinds.iter_mut().zip(&self.kinds) {
            *latency = Latency::of(counts);
        }
        outcome.intervals = self.intervals;
        outcome.client_cpu = Duration::from_nanos(self.client_cpu_ns);
        outcome.client_system = self.client_system_ns.map(Duration::from_nanos);
        outcome.client_calls = self.client_calls;
        (outcome.client_busy, outcome.client_queued) = (self.client_busy, self.client_queued);
        outcome.late = Latency::of(&self.late);
        outcome.unanswered = Latency::of(&self.unanswered);
        outcome.unsent = self.unsent;
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Job {
        Job {
            target: "postgres://me:secret@127.0.0.1:5000/data".parse().expect("a target"),
            layout: Layout::new(3, 20),
            work: Work::Run {
                mix: Mix::of("WB").expect("known"),
                records: 100,
                first_new: 300,
                expected_new: 9,
                seed: 7,
            },
            updates: Updates::Shrinking,
            connections: 7,
            threads: 2,
            pipeline: 4,
            pace: Pace::Open { rate: 700.0, arrivals: Arrivals::Poisson },
            until: Until::Elapsed(Duration::from_millis(300)),
            cores: vec![1],
        }
    }

    #[test]
    fn an_order_says_all_of_a_job() {
        let redis = "rediss://me:secret@127.0.0.1:5000".parse().expect("a target");
        [job(), Job { target: redis, ..job() }].iter().for_each(all_is_said);
    }

    fn all_is_said(job: &Job) {
        let orders = job.orders(3).expect("it can be shared out");
        assert_eq!(orders.iter().map(|order| order.connections).sum::<usize>(), 7);
        assert!(orders.iter().all(|order| order.threads >= 1));
        let threads: Vec<usize> = orders.iter().map(|order| order.threads).collect();
        let mut rate = 0.0;
        for (process, order) in orders.iter().enumerate() {
            let written = serde_json::to_string(order).expect("it can be written");
            let read: Order = serde_json::from_str(&written).expect("it can be read");
            assert_eq!(&read, order);
            assert_eq!(read.target().expect("a target"), job.target);
            assert_eq!((read.work().expect("work"), read.updates(), read.until()), (job.work, job.updates, job.until));
            let (before, behind) = (threads[..process].iter().sum(), threads[process + 1..].iter().sum());
            assert_eq!(read.draw(), Draw { seed: 7, before, behind });
            assert_eq!(read.part(), Part { process: process as u64, processes: 3 });
            let Pace::Open { rate: mine, arrivals: Arrivals::Poisson } = read.pace().expect("a pace") else {
                panic!("another pace")
            };
            rate += mine;
        }
        assert!((rate - 700.0).abs() < 1e-9, "{rate}");
        assert!(job.orders(8).is_err());
    }

    #[test]
    fn a_number_of_operations_is_shared_out() {
        let orders = Job { until: Until::Operations(700), ..job() }.orders(3).expect("it can be shared out");
        let shares: Vec<Until> = orders.iter().map(Order::until).collect();
        // As much for each connection, of which they have two, two and three.
        assert_eq!(shares, [200, 200, 300].map(Until::Operations));
    }

    #[test]
    fn what_came_of_it_is_told_whole() {
        let mut outcome = Outcome::new(KINDS);
        for number in 1..2_000 {
            outcome.answered(number % KINDS.len(), 1, number as u64 * 977, number as u64 * 1_000_000);
        }
        outcome.elapsed = Duration::from_millis(2_000);
        outcome.client_cpu = Duration::from_millis(12);
        (outcome.client_busy, outcome.client_queued) = (0.75, 0.25);
        outcome.late.record(5_000, 3);
        outcome.unanswered.record(7_000_000, 6);
        outcome.unsent = 4;
        let written = serde_json::to_string(&Told::of(&outcome)).expect("it can be written");
        let told = serde_json::from_str::<Told>(&written).expect("it can be read").outcome();
        assert_eq!(told.latency().summary(), outcome.latency().summary());
        assert_eq!(told.late.summary(), outcome.late.summary());
        assert_eq!(told.unanswered.summary(), outcome.unanswered.summary());
        assert_eq!((told.client_busy, told.client_queued), (0.75, 0.25));
        assert_eq!(
            (told.operations, told.elapsed, &told.intervals, told.client_cpu, told.unsent),
            (outcome.operations, outcome.elapsed, &outcome.intervals, outcome.client_cpu, outcome.unsent)
        );
    }
}
