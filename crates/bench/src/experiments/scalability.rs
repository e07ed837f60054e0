//! `scalability`: more clients, and more threads to serve them.

use super::experiment::{
    Base, CLIENT_BUSY, Experiment, Form, MEAN, OPS, Ours, P95, P99, Plot, Published, SERVER_CPU, Scale, Setting,
};
use super::plain::{MIXED, OPERATION, PROTOCOL, Stock, case, speaks};
use crate::machine::placement::own_cores;
use crate::peers::Settings;
use crate::results::Case;
use crate::session::{Named, Session, Shape};
use anyhow::Result;

const THREADS: &str = "server threads";
const CONNECTIONS: &str = "connections";
const CLIENT_THREADS: &str = "client threads (50 connections each)";

/// Connections of each of the client's threads, where those are varied.
const CONNECTIONS_A_THREAD: usize = 50;

/// Connections and server threads.
pub static SCALABILITY: Experiment = Experiment {
    name: "scalability",
    title: "More clients, more threads",
    summary: "Ten gets to a set, values of 32 bytes, on servers of one thread and of more: from more and more connections of the \
              client's usual threads, and from more and more threads of fifty connections each, which have a core each as long \
              as the servers leave them enough.",
    study: "the memtier studies; Waterloo",
    databases: false,
    depends_on: &[Setting::Keys, Setting::Seconds],
    axes: &[PROTOCOL, OPERATION, THREADS, CONNECTIONS, CLIENT_THREADS],
    figures: &[OPS, MEAN, P95, P99, SERVER_CPU, CLIENT_BUSY],
    plots: &[
        Plot::Lines { title: "Throughput", x: CONNECTIONS, x_scale: Scale::Log, y: OPS, y_scale: Scale::Linear },
        Plot::Lines { title: "Mean latency", x: CONNECTIONS, x_scale: Scale::Log, y: MEAN, y_scale: Scale::Log },
        Plot::Lines { title: "Throughput", x: CLIENT_THREADS, x_scale: Scale::Linear, y: OPS, y_scale: Scale::Linear },
        Plot::Lines {
            title: "Mean latency",
            x: CLIENT_THREADS,
            x_scale: Scale::Linear,
            y: MEAN,
            y_scale: Scale::Linear,
        },
    ],
    published: &[Published {
        what: "Average latency, 1 to 8 client threads of 50 connections",
        figure: "Redis 48.3 % above Memcached",
        ours: Some(Ours {
            figure: MEAN,
            servers: &[],
            at: &[(CLIENT_THREADS, None)],
            over: Some(Base::Server { prefix: "memcached", at: &[], alike: &[OPERATION, THREADS, CLIENT_THREADS] }),
            form: Form::Above,
        }),
    }],
    limits: &[],
    rivals: None,
    run,
};

fn run(session: &mut Session) -> Result<()> {
    let stock = Stock::short(session.keys());
    let cores = own_cores()?.len();
    let all_threads: Vec<usize> = (0..).map(|power| 1 << power).take_while(|threads| *threads <= cores).collect();
    let connections = session.scaled(&[1.0, 10.0, 100.0][..], &[1.0, 10.0, 50.0, 100.0, 200.0, 400.0, 1_000.0][..]);
    let client_threads = session.scaled(&[1, 4][..], &[1, 2, 4, 8][..]);
    for threads in all_threads {
        session.place(threads)?;
        session.measured_on("server threads", threads);
        session.measured_on("client threads", session.client_threads());
        let of_connections = cases(session, threads, CONNECTIONS, connections);
        let clients: Vec<f64> = client_threads.iter().map(|clients| *clients as f64).collect();
        let of_clients = cases(session, threads, CLIENT_THREADS, &clients);
        let servers = session.start_all(
            &[&of_connections[..], &of_clients].concat(),
            scales,
            |session| Settings { threads, ..session.settings() },
            |session, server| stock.fill(session, server).map(drop),
        )?;
        session.grid(&servers, &of_connections, scales, |session, server, case, round| {
            let connections = case.quantity(CONNECTIONS).unwrap_or(1.0) as usize;
            let shape = Shape { connections, ..session.usual_shape(1) };
            Ok(stock.measure(session, server, case, &shape, round)?.reading())
        })?;
        for clients in client_threads.iter().copied() {
            let of_clients = cases(session, threads, CLIENT_THREADS, &[clients as f64]);
            session.place_client(clients)?;
            session.measured_on("client threads", clients);
            let connections = clients * CONNECTIONS_A_THREAD;
            let shape = Shape { threads: clients, connections, ..session.usual_shape(1) };
            session.grid(&servers, &of_clients, scales, |session, server, case, round| {
                Ok(stock.measure(session, server, case, &shape, round)?.reading())
            })?;
        }
    }
    Ok(())
}

/// Whether a server is measured: of one that somebody else has started the threads are not known, nor are they others for asking.
fn scales<S: Named>(session: &Session, server: &S, case: &Case) -> bool {
    server.is_started() && speaks(session, server, case)
}

/// In each language, at each of these places on one axis.
fn cases(session: &Session, threads: usize, axis: &str, places: &[f64]) -> Vec<Case> {
    let mut cases = Vec::new();
    for protocol in session.all_protocols() {
        let case = case(protocol, MIXED).number(THREADS, threads as f64);
        cases.extend(places.iter().map(|place| case.clone().number(axis, *place)));
    }
    cases
}
