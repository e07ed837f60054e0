//! `pagerank`: the same ranking with the graph in a key-value store, inside it, and in Spark's memory.

use super::experiment::{Base, Experiment, Figure, Form, Ours, Plot, Published, Setting, Spot};
use super::on_spark::on_spark;
use crate::dialects::{Binary, Dialect, Meta, Postgres, Resp, Text};
use crate::graphs::{DAMPING, Graph, ranks, step};
use crate::load::Until;
use crate::machine::cpu::Used;
use crate::packed::names;
use crate::peers::{Family, Spark};
use crate::results::Case;
use crate::session::{Contender, Measured, Reading, Running, Session, Shape};
use crate::target::{Protocol, Target};
use crate::workloads::{Ranking, Task};
use anyhow::{Context, Result, bail};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenon_client::Value;

const GRAPH: &str = "graph";
const METHOD: &str = "method";
/// The endings that lists of edges have; none tells how the list is to be read.
const FORMS: [&str; 5] = [".txt", ".csv", ".tsv", ".edges", ".el"];
const ITERATION: Figure = Figure { name: "iteration_s", heading: "s an iteration" };

/// How much longer an iteration takes than Spark's.
const fn beside_spark(method: &'static [Spot]) -> Option<Ours> {
    let over = Some(Base::Server { prefix: "spark", at: &[(METHOD, Some(RDD))], alike: &[GRAPH] });
    Some(Ours { figure: ITERATION, servers: &[], at: method, over, form: Form::Times })
}

/// What ranks where.
pub static PAGERANK: Experiment = Experiment {
    name: "pagerank",
    title: "PageRank",
    summary: "A few iterations (ten; three with --quick) over the graphs that --graphs names, or over one that is drawn at random. Neighbours and rank \
              of each node are an object each. The client reads all of them and writes the new ranks; or a script does, \
              inside the server; or Spark does, on an RDD in its own memory (functions in Python), where pyspark is \
              installed; its CPU time is that of all its processes. All ranks are compared with those of a plain program: the differences add up to 1e-9 at most.",
    study: "in-memory data management",
    databases: false,
    depends_on: &[Setting::Connections],
    axes: &[GRAPH, METHOD],
    figures: &[
        ITERATION,
        Figure { name: "store_s", heading: "graph stored in s" },
        Figure { name: "server_cpu_s", heading: "server CPU s an iteration" },
        Figure { name: "server_system_share", heading: "share of it in the kernel" },
        Figure { name: "client_cpu_s", heading: "client CPU s an iteration" },
    ],
    plots: &[Plot::Bars { title: "Seconds an iteration", each: Some(GRAPH), y: ITERATION }],
    published: &[
        Published {
            what: "Spark's RDD against Memcached",
            figure: "1.3 to 14 times faster",
            ours: beside_spark(&[(METHOD, Some("client, text"))]),
        },
        Published {
            what: "Spark's RDD against Redis, ranked by the client",
            figure: "1.4 to 12 times faster",
            ours: beside_spark(&[(METHOD, Some("client, resp"))]),
        },
        Published {
            what: "Spark's RDD against Redis, ranked by Lua inside",
            figure: "more than 400 times faster",
            ours: beside_spark(&[(METHOD, Some(LUA))]),
        },
    ],
    limits: &[],
    rivals: None,
    run,
};

const LUA: &str = "Lua inside";
const RDD: &str = "RDD";
const IN_PLACE: &str = "in place";

const SCRIPT: &str = include_str!("pagerank.lua");

/// Requests in flight on each connection.
const PIPELINE: usize = 16;

/// How much all ranks together may differ from the plain program's: the order of additions is another.
const DIFFERENCE_MAX: f64 = 1e-9;

/// A graph with its name and what must come out.
struct Known {
    name: String,
    graph: Arc<Graph>,
    iterations: usize,
    ranks: Vec<f64>,
}

fn run(session: &mut Session) -> Result<()> {
    let iterations = session.scaled(3, 10);
    let known = |name: String, graph: Graph| {
        let ranks = ranks(&graph, iterations);
        Known { name, graph: Arc::new(graph), iterations, ranks }
    };
    let mut graphs = Vec::new();
    let paths = &session.options.graphs;
    for (path, name) in paths.iter().zip(names(paths, &FORMS)?) {
        graphs.push((Some(path.clone()), known(name, Graph::read(path)?)));
    }
    if graphs.is_empty() {
        let nodes = session.scaled(2_000, 20_000);
        graphs.push((None, known(format!("drawn, {nodes} nodes"), Graph::drawn(nodes))));
    }
    let started = session.started();
    for (path, known) in &graphs {
        if let Some(path) = path {
            session.measured_on_file("graph", path)?;
        }
        let case = |method: &str| Case::new().word(GRAPH, &known.name).word(METHOD, method);
        let clients = session.all_protocols().into_iter().map(|protocol| case(&by_client(protocol)));
        let cases: Vec<Case> = clients.chain([LUA, IN_PLACE].map(case)).collect();
        session
            .grid(&started, &cases, applies, |session, contender, case, _| measure(session, contender, case, known))?;
        on_spark(session, &case(RDD), |session, spark| measured_on_spark(session, spark, known))?;
    }
    Ok(())
}

fn by_client(protocol: Protocol) -> String {
    format!("client, {}", protocol.name())
}

fn method(case: &Case) -> String {
    case.at(METHOD).map(ToString::to_string).unwrap_or_default()
}

/// The language in which the client speaks to the server.
fn language(case: &Case) -> Protocol {
    Protocol::ALL.into_iter().find(|protocol| by_client(*protocol) == method(case)).unwrap_or(Protocol::Resp)
}

fn applies(session: &Session, contender: &Contender, case: &Case) -> bool {
    let Contender::Program(program) = contender else { return false };
    match method(case).as_str() {
        IN_PLACE => program.family == Family::Tenon,
        _ => session.protocols(contender).contains(&language(case)),
    }
}

fn measure(session: &Session, contender: &Contender, case: &Case, known: &Known) -> Result<Reading> {
    if method(case) == IN_PLACE {
        return Ok(Reading::default().note("not there yet: Tenon computes nothing over its data by itself"));
    }
    let server = session.start(contender, &session.settings())?;
    let protocol = language(case);
    let target = server.target(protocol).context("the server speaks the case's language")?;
    let place = Place { session, server: &server, target: &target };
    let script = method(case) == LUA;
    match protocol {
        Protocol::Resp | Protocol::RespTls => place.rank(Resp, known, script),
        Protocol::Text => place.rank(Text, known, script),
        Protocol::Meta => place.rank(Meta, known, script),
        Protocol::Binary => place.rank(Binary, known, script),
        Protocol::Postgres => place.rank(Postgres, known, script),
    }
}

/// What an iteration has cost, and all before it.
#[derive(Default)]
struct Cost {
    iterations: Vec<Duration>,
    client: Duration,
    server: Used,
}

impl Cost {
    fn add(&mut self, measured: &Measured) {
        self.client += measured.outcome.client_cpu;
        self.add_server(measured.used.unwrap_or_default());
    }

    fn add_server(&mut self, used: Used) {
        self.server = self.server.with(used);
    }

    fn reading(&self) -> Reading {
        let count = self.iterations.len().max(1) as f64;
        let mean = |sum: Duration| sum.as_secs_f64() / count;
        let clocked = (self.server.user + self.server.system).as_secs_f64();
        let reading = Reading::default()
            .figure("iteration_s", mean(self.iterations.iter().sum()))
            .figure("server_cpu_s", mean(self.server.total));
        // A script leaves the client nothing to do.
        let reading = if self.client.is_zero() { reading } else { reading.figure("client_cpu_s", mean(self.client)) };
        // The kernel's clock ticks a hundred times a second: of a few ticks, a share says nothing.
        if clocked < 0.2 {
            return reading;
        }
        reading.figure("server_system_share", self.server.system.as_secs_f64() / clocked)
    }
}

/// Where the graph is kept.
struct Place<'a> {
    session: &'a Session,
    server: &'a Running,
    target: &'a Target,
}

impl Place<'_> {
    fn rank<D: Dialect>(&self, dialect: D, known: &Known, script: bool) -> Result<Reading> {
        let nodes = known.graph.nodes();
        let targets = self.load(dialect, known, &Task::StoreTargets)?.0;
        let first = Arc::new(vec![1.0 / nodes as f64; nodes]);
        let ranks = self.load(dialect, known, &Task::StoreRanks(first))?.0;
        let store_s = (targets.outcome.elapsed + ranks.outcome.elapsed).as_secs_f64();
        let mut cost = Cost::default();
        for _ in 0..known.iterations {
            self.session.interrupt.check()?;
            if script {
                self.by_script(nodes, &mut cost)?
            } else {
                self.by_client(dialect, known, &mut cost)?
            };
        }
        let read = combined(self.load(dialect, known, &Task::ReadRanks)?.1.as_slice()).0;
        check(&read, known)?;
        Ok(cost.reading().figure("store_s", store_s))
    }

    fn load<D: Dialect>(&self, dialect: D, known: &Known, task: &Task) -> Result<(Measured, Vec<Ranking<D>>)> {
        let shape = Shape { until: Until::Exhausted, ..self.session.usual_shape(PIPELINE) };
        let (nodes, crew) = (known.graph.nodes(), shape.crew());
        let part = |thread: usize| {
            let part = crew.share_of(nodes as u64, thread);
            part.start as usize..part.end as usize
        };
        let ranking = |thread| Ranking::new(dialect, Arc::clone(&known.graph), task.clone(), part(thread));
        self.session.load(self.server, self.target, &shape, (0..crew.threads).map(ranking).collect())
    }

    /// All objects are read and each rank divided; then what has come to each node is added up, and its rank stored.
    fn by_client<D: Dialect>(&self, dialect: D, known: &Known, cost: &mut Cost) -> Result<()> {
        let (divided, parts) = self.load(dialect, known, &Task::Divide)?;
        let begin = Instant::now();
        let (sums, nowhere) = combined(&parts);
        let ranks = Arc::new(step(sums, nowhere));
        let combining = begin.elapsed();
        let stored = self.load(dialect, known, &Task::StoreRanks(ranks))?.0;
        cost.add(&divided);
        cost.add(&stored);
        cost.iterations.push(divided.outcome.elapsed + combining + stored.outcome.elapsed);
        Ok(())
    }

    fn by_script(&self, nodes: usize, cost: &mut Cost) -> Result<()> {
        // A large graph takes a script long.
        let mut resp = tenon_client::Resp::over(self.target.connect(Some(Duration::from_secs(1_800)))?);
        let used = |pid: Option<u32>| pid.map(Used::of).transpose();
        let before = used(self.server.pid())?;
        let begin = Instant::now();
        let (nodes_word, damping) = (nodes.to_string(), DAMPING.to_string());
        let reply = resp.call(&[b"EVAL", SCRIPT.as_bytes(), b"0", nodes_word.as_bytes(), damping.as_bytes()])?;
        cost.iterations.push(begin.elapsed());
        if let (Some(before), Some(after)) = (before, used(self.server.pid())?) {
            cost.add_server(after.since(before));
        }
        match reply {
            Value::Int(ranked) if usize::try_from(ranked) == Ok(nodes) => Ok(()),
            other => bail!("the script was answered by {other:?}"),
        }
    }
}

/// What the threads have found, added up.
fn combined<D: Dialect>(parts: &[Ranking<D>]) -> (Vec<f64>, f64) {
    let mut sums = parts.first().map(|part| part.sums().to_vec()).unwrap_or_default();
    for part in parts.iter().skip(1) {
        sums.iter_mut().zip(part.sums()).for_each(|(sum, more)| *sum += more);
    }
    (sums, parts.iter().map(Ranking::nowhere).sum())
}

fn check(ranks: &[f64], known: &Known) -> Result<()> {
    let difference: f64 = ranks.iter().zip(&known.ranks).map(|(rank, known)| (rank - known).abs()).sum();
    if ranks.len() != known.ranks.len() || difference.is_nan() || difference > DIFFERENCE_MAX {
        bail!("the ranks are not those of the plain program: the differences add up to {difference:e}");
    }
    Ok(())
}

/// Spark's part.
fn measured_on_spark(session: &Session, spark: &Spark, known: &Known) -> Result<Reading> {
    let threads = session.server_threads() + session.client_threads();
    let ranked = spark.pagerank(&known.graph, known.iterations, threads, session.scratch(), &session.interrupt)?;
    check(&ranked.ranks, known)?;
    let cost = Cost {
        iterations: ranked.iterations_s.iter().copied().map(Duration::from_secs_f64).collect(),
        client: Duration::ZERO,
        server: ranked.used,
    };
    Ok(cost.reading().figure("store_s", ranked.load_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_ranks_are_found() {
        let graph = Arc::new(Graph::drawn(20));
        let known = Known { name: "drawn".into(), ranks: ranks(&graph, 3), graph, iterations: 3 };
        assert!(check(&known.ranks, &known).is_ok());
        assert!(check(&known.ranks[1..], &known).is_err());
        for wrong in [2e-9, f64::NAN] {
            let mut ranks = known.ranks.clone();
            ranks[7] += wrong;
            assert!(check(&ranks, &known).is_err(), "{wrong}");
        }
    }

    #[test]
    fn methods_name_their_language() {
        for protocol in Protocol::ALL {
            assert_eq!(language(&Case::new().word(METHOD, &by_client(protocol))), protocol);
        }
        assert_eq!(language(&Case::new().word(METHOD, LUA)), Protocol::Resp);
    }
}
