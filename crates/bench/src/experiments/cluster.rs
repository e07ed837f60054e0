//! `cluster`: one node, and three that the keys are divided over.

use super::experiment::{CLIENT_BUSY, Experiment, MEAN, OPS, P95, P99, Plot, SERVER_CPU, Setting};
use super::plain::{Stock, case, mix, protocol, speaks};
use crate::generators::{Inserted, KeyChooser};
use crate::load::Until;
use crate::peers::{Family, Settings};
use crate::results::Case;
use crate::session::{Contender, Measured, Reading, Running, Session, Shape};
use crate::target::{Protocol, Target};
use crate::workloads::{Keys, Misses, Mix, Node, Spec};
use anyhow::{Context, Result, anyhow, bail};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenon_client::{Address, Resp, Value};

const NODES: &str = "nodes";

/// So many that each of three nodes has some: where one had none, its client would draw for ever.
const KEYS_MIN: u64 = 64;

/// One node and three.
pub static CLUSTER: Experiment = Experiment {
    name: "cluster",
    title: "One node and three",
    summary: "Many connections for each node get and set values of 32 bytes, on one server and on three. Redis's and \
              Valkey's form a cluster; which node has a key, the client knows from its slot. Servers of memcached's protocols \
              know nothing of each other: the client divides the keys over them in the same way. Each node has cores of its own where the machine \
              has enough; where it has not, all of them and the client share all, and only the cost of an operation is to be \
              compared.",
    study: "Waterloo",
    databases: false,
    depends_on: &[Setting::Keys, Setting::Seconds, Setting::Connections],
    axes: &["protocol", "operation", NODES],
    figures: &[OPS, MEAN, P95, P99, SERVER_CPU, CLIENT_BUSY],
    plots: &[Plot::Bars { title: "Throughput", each: Some("operation"), y: OPS }],
    published: &[],
    limits: &[],
    rivals: None,
    run,
};

fn run(session: &mut Session) -> Result<()> {
    session.measured_on("keys", keys(session));
    let started = session.started();
    for nodes in [1, 3] {
        let with_nodes =
            |protocol: Protocol| ["get", "set"].map(|verb| case(protocol, verb).number(NODES, nodes as f64));
        let cases: Vec<Case> = session.all_protocols().into_iter().flat_map(with_nodes).collect();
        session.place(nodes * session.server_threads())?;
        measured_with(session, &started, &cases, nodes)?;
    }
    Ok(())
}

fn measured_with(session: &mut Session, started: &[Contender], cases: &[Case], nodes: usize) -> Result<()> {
    session.measured_on("client threads", session.client_threads().div_ceil(nodes) * nodes);
    session.grid(started, cases, speaks, |session, contender, case, round| {
        let Contender::Program(program) = contender else { bail!("only servers that the bench starts form a cluster") };
        let cluster = match Together::of(program.family, protocol(case)?, nodes) {
            Together::Apart => false,
            Together::Cluster => true,
            Together::NotYet(why) => return Ok(Reading::default().note(why)),
        };
        let start = |node: usize| {
            let cores = session.placement.of_one(node, nodes, session.server_threads());
            session.start(contender, &Settings { cluster, cores, ..session.settings() })
        };
        let servers: Vec<Running> = (0..nodes).map(start).collect::<Result<_>>()?;
        let targets: Vec<Target> = servers
            .iter()
            .map(|server| server.target(protocol(case)?).context("the server speaks the case's language"))
            .collect::<Result<_>>()?;
        if cluster {
            let buses: Vec<u16> = servers.iter().filter_map(Running::bus_port).collect();
            form(session, &targets, &buses)?;
        }
        measured(session, &servers, case, round)
    })
}

/// What several nodes know of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Together {
    /// Nothing: the client divides the keys.
    Apart,
    /// Who has which slot.
    Cluster,
    /// There is no such thing, and why.
    NotYet(&'static str),
}

impl Together {
    fn of(family: Family, protocol: Protocol, nodes: usize) -> Together {
        match family {
            _ if nodes == 1 || protocol.is_memcache() => Together::Apart,
            Family::Redis => Together::Cluster,
            Family::Tenon => Together::NotYet("not there yet: Tenon has no cluster"),
            Family::Memcached | Family::Postgres => Together::Apart,
        }
    }
}

/// Gives each node its slots and makes them known to each other.
fn form(session: &Session, targets: &[Target], buses: &[u16]) -> Result<()> {
    let mut nodes: Vec<Resp> = targets
        .iter()
        .map(|target| Ok(Resp::over(target.connect(Some(Duration::from_secs(5)))?)))
        .collect::<Result<_>>()?;
    let count = nodes.len();
    for (index, node) in nodes.iter_mut().enumerate() {
        let slots = Node { index, count }.slots();
        let (first, last) = (slots.start.to_string(), (slots.end - 1).to_string());
        expect_ok(&node.call(&[b"CLUSTER", b"ADDSLOTSRANGE", first.as_bytes(), last.as_bytes()])?)?;
        expect_ok(&node.call(&[b"CLUSTER", b"SET-CONFIG-EPOCH", (index + 1).to_string().as_bytes()])?)?;
        let Address::Tcp { host, port } = &targets[0].address else { bail!("a cluster's nodes speak TCP") };
        let (port, bus) = (port.to_string(), buses.first().context("a node has a port for the others")?.to_string());
        if index > 0 {
            expect_ok(&node.call(&[b"CLUSTER", b"MEET", host.as_bytes(), port.as_bytes(), bus.as_bytes()])?)?;
        }
    }
    let begin = Instant::now();
    while !nodes.iter_mut().map(|node| is_whole(node, count)).collect::<Result<Vec<_>>>()?.into_iter().all(|is| is) {
        if begin.elapsed() > Duration::from_secs(30) {
            bail!("the nodes did not form a cluster within 30 s");
        }
        session.interrupt.sleep(Duration::from_millis(50))?;
    }
    Ok(())
}

/// Whether a node knows all others and all slots.
fn is_whole(node: &mut Resp, count: usize) -> Result<bool> {
    let Value::Bulk(info) = node.call(&[b"CLUSTER", b"INFO"])? else { bail!("CLUSTER INFO was answered otherwise") };
    let info = String::from_utf8_lossy(&info).into_owned();
    let has = |line: &str| info.lines().any(|own| own.trim_end() == line);
    Ok(has("cluster_state:ok") && has("cluster_slots_ok:16384") && has(&format!("cluster_known_nodes:{count}")))
}

fn expect_ok(reply: &Value) -> Result<()> {
    match reply {
        Value::Simple(ok) if ok == b"OK" => Ok(()),
        other => bail!("the server answered {other:?}"),
    }
}

/// How many keys all nodes have together.
fn keys(session: &Session) -> u64 {
    (session.keys() / 10).max(KEYS_MIN)
}

/// Loads all nodes at once, each with the keys that are its own.
fn measured(session: &Session, servers: &[Running], case: &Case, round: u64) -> Result<Reading> {
    let stock = Stock::short(keys(session));
    let shape = Shape { threads: session.client_threads().div_ceil(servers.len()), ..session.usual_shape(1) };
    let threads = shape.threads_taking_part();
    on_each(servers, |node, server| {
        let keys = |thread| Keys::part(stock.keys, threads, thread);
        let fill = Shape { until: Until::Exhausted, ..shape };
        load(session, server, case, &stock, Mix::SET, &fill, |thread| (Keys::of(keys(thread), node), thread as u64))
    })?;
    let chosen = KeyChooser::new(stock.distribution, &Arc::new(Inserted::new(stock.keys)), 0);
    let run = |mix, until, seed: u64| {
        let shape = Shape { until, ..shape };
        on_each(servers, |node, server| {
            let seed = (seed << 8 | node.index as u64) << 32;
            let keys = |thread| (Keys::of(Keys::Chosen(chosen.clone()), node), seed | thread as u64);
            load(session, server, case, &stock, mix, &shape, keys)
        })
    };
    let mix = mix(case);
    run(mix, Until::Elapsed(session.warm_up()), 2 * round)?;
    let mut all = run(mix, Until::Elapsed(session.measured_for()), 2 * round + 1)?.into_iter();
    // What is only stored is read back afterwards.
    if mix.get == 0.0 {
        run(Mix::GET, Until::Elapsed(session.warm_up()), 2 * round + 1)?;
    }
    let mut sum = all.next().context("there is a node")?;
    all.for_each(|measured| sum.add(&measured));
    Ok(sum.reading())
}

fn load(
    session: &Session,
    server: &Running,
    case: &Case,
    stock: &Stock,
    mix: Mix,
    shape: &Shape,
    keys: impl Fn(usize) -> (Keys, u64),
) -> Result<Measured> {
    let protocol: Protocol = protocol(case)?;
    let spec = |thread: usize| {
        let (keys, seed) = keys(thread);
        let (values, lengths) = (stock.values.clone(), stock.lengths);
        Spec { mix, keys, first: 0, values, lengths, expire_s: 0, keys_a_get: 1, misses: Misses::Fail, seed }
    };
    Ok(session.key_value(server, protocol, shape, spec)?.0)
}

/// Does the same with all nodes at the same time.
fn on_each(servers: &[Running], load: impl Fn(Node, &Running) -> Result<Measured> + Sync) -> Result<Vec<Measured>> {
    let count = servers.len();
    std::thread::scope(|scope| {
        let load = &load;
        let node = |(index, server)| scope.spawn(move || load(Node { index, count }, server));
        let handles: Vec<_> = servers.iter().enumerate().map(node).collect();
        let join = |handle: std::thread::ScopedJoinHandle<'_, Result<Measured>>| {
            handle.join().unwrap_or_else(|_| Err(anyhow!("a client thread panicked")))
        };
        // All are waited for before any failure is told.
        handles.into_iter().map(join).collect::<Vec<_>>().into_iter().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_has_some_of_the_fewest_keys() {
        assert!((0..3).all(|index| (0..KEYS_MIN).any(|key| Node { index, count: 3 }.has(key))));
    }

    #[test]
    fn clients_divide_the_keys_where_nodes_know_nothing_of_each_other() {
        for family in [Family::Tenon, Family::Memcached] {
            assert_eq!(Together::of(family, Protocol::Text, 3), Together::Apart);
        }
        assert_eq!(Together::of(Family::Redis, Protocol::Resp, 3), Together::Cluster);
        assert!(matches!(Together::of(Family::Tenon, Protocol::Resp, 3), Together::NotYet(_)));
        for family in [Family::Tenon, Family::Redis] {
            assert_eq!(Together::of(family, Protocol::Resp, 1), Together::Apart);
        }
    }
}
