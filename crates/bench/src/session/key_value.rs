//! Loads of plain values in whichever language is asked for. Knows no experiment.

use super::grid::Session;
use super::measured::{Measured, Watch};
use super::running::{Named, Running};
use crate::dialects::postgres::TABLE;
use crate::dialects::{Binary, Dialect, Meta, Postgres, Resp, Text};
use crate::generators::{Distribution, Inserted, KeyChooser};
use crate::load::{Crew, Draw, Observer, Outcome, Pace, Plan, Until, Workload, run};
use crate::peers::postgres;
use crate::processes::{self, Job};
use crate::target::{Protocol, Target};
use crate::values::{Lengths, Values};
use crate::workloads::{KeyValue, Keys, Misses, Mix, Spec, Tally};
use anyhow::{Context, Result};
use std::ops::Range;
use std::sync::Arc;

/// The outer form of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Connections over all threads.
    pub connections: usize,
    /// Threads of the client.
    pub threads: usize,
    /// Requests in flight on each connection.
    pub pipeline: usize,
    /// Whether operations wait for each other.
    pub pace: Pace,
    /// When it ends.
    pub until: Until,
    /// Other seeds have operations of an open loop due at other times.
    pub seed: u64,
}

impl Shape {
    /// How many threads take part: one without a connection would have nothing to do, and what is its part would be nobody's.
    pub fn threads_taking_part(&self) -> usize {
        self.threads.min(self.connections)
    }

    /// Those threads and their connections.
    pub fn crew(&self) -> Crew {
        Crew::alone(self.connections, self.threads_taking_part())
    }
}

/// A thread's part of naming the first `keys` keys once.
fn naming(mix: Mix, keys: u64, (threads, thread): (usize, usize), values: &Values, lengths: Lengths) -> Spec {
    Spec {
        mix,
        keys: Keys::part(keys, threads, thread),
        first: 0,
        values: values.clone(),
        lengths,
        expire_s: 0,
        keys_a_get: 1,
        misses: Misses::Fail,
        seed: thread as u64,
    }
}

/// Kills a process at a load's end.
struct Kill(rustix::process::Pid);

impl Observer for Kill {
    fn begins(&mut self) -> Result<()> {
        Ok(())
    }

    fn ended(&mut self) -> Result<()> {
        rustix::process::kill_process(self.0, rustix::process::Signal::KILL).context("the server cannot be killed")
    }
}

impl Session {
    /// A closed loop of the usual connections and threads for the usual time.
    pub fn usual_shape(&self, pipeline: usize) -> Shape {
        Shape {
            connections: self.options.connections,
            threads: self.client_threads(),
            pipeline,
            pace: Pace::Closed,
            until: Until::Elapsed(self.measured_for()),
            seed: 0,
        }
    }

    /// Runs a load and looks at the server before and after it.
    pub fn load<W: Workload>(
        &self,
        server: &Running,
        target: &Target,
        shape: &Shape,
        workloads: Vec<W>,
    ) -> Result<(Measured, Vec<W>)> {
        let mut watch = self.watch(server);
        let (outcome, workloads) = self.observed(target, shape, workloads, &mut watch)?;
        Ok((watch.measured(outcome), workloads))
    }

    /// Runs a load for somebody who looks on.
    fn observed<W: Workload>(
        &self,
        target: &Target,
        shape: &Shape,
        workloads: Vec<W>,
        observer: &mut dyn Observer,
    ) -> Result<(Outcome, Vec<W>)> {
        let tls = target.tls()?;
        let plan = Plan {
            target,
            tls: tls.as_ref(),
            connections: shape.connections,
            pipeline: shape.pipeline,
            pace: shape.pace,
            draw: Draw { seed: shape.seed, ..Draw::default() },
            until: shape.until,
            cores: &self.placement.client,
            progress: self.progress.operations(),
            stop: self.interrupt.flag(),
        };
        run(&plan, workloads, observer)
    }

    /// Runs a load from as many processes as are asked for, and looks at the server before and after it.
    pub fn load_from_processes(&self, server: &Running, job: &Job) -> Result<Measured> {
        let program = std::env::current_exe().context("the bench's own program")?;
        let orders = job.orders(self.options.client_processes)?;
        let mut watch = self.watch(server);
        let outcome = processes::run(&program, &orders, &mut watch, self.interrupt.flag())?;
        Ok(watch.measured(outcome))
    }

    fn watch(&self, server: &Running) -> Watch {
        let watch = Watch::on(server.pid(), &self.placement.client).noting(server.note());
        let watch = if self.counting { watch.counting(self.scratch()) } else { watch };
        if self.sampling { watch.sampling(self.progress.operations()) } else { watch }
    }

    /// Runs a load of plain values; `spec` makes each thread's part from its index.
    pub fn key_value(
        &self,
        server: &Running,
        protocol: Protocol,
        shape: &Shape,
        spec: impl Fn(usize) -> Spec,
    ) -> Result<(Measured, Tally)> {
        let target = server.target(protocol).with_context(|| format!("it does not speak {}", protocol.name()))?;
        let specs: Vec<Spec> = (0..shape.threads_taking_part()).map(spec).collect();
        match protocol {
            Protocol::Resp | Protocol::RespTls => self.in_dialect(Resp, server, &target, shape, specs),
            Protocol::Text => self.in_dialect(Text, server, &target, shape, specs),
            Protocol::Meta => self.in_dialect(Meta, server, &target, shape, specs),
            Protocol::Binary => self.in_dialect(Binary, server, &target, shape, specs),
            Protocol::Postgres => self.in_dialect(Postgres, server, &target, shape, specs),
        }
    }

    fn in_dialect<D: Dialect>(
        &self,
        dialect: D,
        server: &Running,
        target: &Target,
        shape: &Shape,
        specs: Vec<Spec>,
    ) -> Result<(Measured, Tally)> {
        let workloads = specs.into_iter().map(|spec| KeyValue::new(dialect, spec)).collect();
        let (measured, workloads) = self.load(server, target, shape, workloads)?;
        Ok((measured, workloads.iter().map(KeyValue::tally).fold(Tally::default(), Tally::with)))
    }

    /// Reads the first `keys` keys, or so many drawn of them, which must have what was stored: a load of sets alone is answered
    /// by a server that has lost them, too.
    pub fn read_back(
        &self,
        server: &Running,
        protocol: Protocol,
        (keys, most): (u64, u64),
        values: &Values,
        lengths: Lengths,
    ) -> Result<()> {
        let shape = self.filling(lengths);
        let drawn = KeyChooser::new(Distribution::Uniform, &Arc::new(Inserted::new(keys)), 0);
        let (until, all) = if keys > most { (Until::Operations(most), None) } else { (shape.until, Some(keys)) };
        let named = |thread| all.map_or(Keys::Chosen(drawn.clone()), |keys| Keys::part(keys, shape.threads, thread));
        let read = self.key_value(server, protocol, &Shape { until, ..shape }, |thread| Spec {
            keys: named(thread),
            ..naming(Mix::GET, keys, (shape.threads, thread), values, lengths)
        });
        read.map(drop).context("what was stored was read back")
    }

    /// Looks for each of these keys once, and counts those that are there; they must have what was stored.
    pub fn look_for(
        &self,
        server: &Running,
        protocol: Protocol,
        keys: Range<u64>,
        values: &Values,
        lengths: Lengths,
    ) -> Result<Tally> {
        let shape = self.filling(lengths);
        let looked = self.key_value(server, protocol, &shape, |thread| Spec {
            first: keys.start,
            misses: Misses::Count,
            ..naming(Mix::GET, keys.end - keys.start, (shape.threads, thread), values, lengths)
        });
        Ok(looked.context("what was stored was looked for")?.1)
    }

    /// A load that names each key once.
    fn filling(&self, lengths: Lengths) -> Shape {
        let threads = self.client_threads();
        // Few requests of large values in flight: what is in flight is memory on both sides.
        let pipeline = (1_000_000 / lengths.max.max(1)).clamp(1, 32);
        Shape { connections: threads * 8, threads, until: Until::Exhausted, ..self.usual_shape(pipeline) }
    }

    /// Stores each of the first `keys` keys once.
    pub fn fill(
        &self,
        server: &Running,
        keys: u64,
        values: &Values,
        lengths: Lengths,
        expire_s: u32,
    ) -> Result<Measured> {
        // What is stored can be read in every language.
        let protocol = *server.protocols().first().context("a server speaks something")?;
        self.fill_in(server, protocol, keys, values, lengths, expire_s)
    }

    /// Stores each of the first `keys` keys once, in this language.
    pub fn fill_in(
        &self,
        server: &Running,
        protocol: Protocol,
        keys: u64,
        values: &Values,
        lengths: Lengths,
        expire_s: u32,
    ) -> Result<Measured> {
        let shape = self.filling(lengths);
        let spec = |thread| Spec { expire_s, ..naming(Mix::SET, keys, (shape.threads, thread), values, lengths) };
        let (measured, _) = self.key_value(server, protocol, &shape, spec)?;
        self.vacuum(server, protocol, TABLE)?;
        Ok(measured)
    }

    /// Stores each of the first `keys` keys once over RESP, and kills the server's process when the last reply has come, before
    /// anything else is done.
    pub fn fill_and_kill(&self, server: &Running, keys: u64, values: &Values, lengths: Lengths) -> Result<()> {
        let target = server.target(Protocol::Resp).context("the server speaks RESP")?;
        let pid = server.pid().context("the server's process is known")?;
        let pid = rustix::process::Pid::from_raw(pid.cast_signed()).context("a process has a number")?;
        let shape = self.filling(lengths);
        let spec = |thread| naming(Mix::SET, keys, (shape.threads, thread), values, lengths);
        let workloads = (0..shape.threads_taking_part()).map(|thread| KeyValue::new(Resp, spec(thread))).collect();
        self.observed(&target, &shape, workloads, &mut Kill(pid)).map(drop)
    }

    /// Has a database tend a table before it is measured; others keep themselves in order.
    pub fn vacuum(&self, server: &Running, protocol: Protocol, table: &str) -> Result<()> {
        match server.target(protocol) {
            Some(target) if protocol == Protocol::Postgres => postgres::vacuum(&target, table),
            _ => Ok(()),
        }
    }
}
