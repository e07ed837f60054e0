//! `latency`: one client that waits for each reply.

use super::experiment::{
    Base, CLIENT_BUSY, CLIENT_CPU, Experiment, Form, MAX, MEAN, Ours, P50, P95, P99, P999, Plot, Published, SERVER_CPU,
    Setting, Spot,
};
use super::plain::{OPERATION, PROTOCOL, Stock, case, speaks};
use crate::session::{Running, Session, Shape};
use anyhow::Result;

/// The mean latency of an operation, beside Memcached's.
const fn beside_memcached(at: &'static [Spot]) -> Option<Ours> {
    let over = Some(Base::Server { prefix: "memcached", at: &[], alike: &[OPERATION] });
    Some(Ours { figure: MEAN, servers: &[], at, over, form: Form::Above })
}

/// One connection, one request at a time.
pub static LATENCY: Experiment = Experiment {
    name: "latency",
    title: "Latency of one client",
    summary: "One connection gets and sets values of 32 bytes, one request at a time.",
    study: "the memtier studies",
    databases: true,
    depends_on: &[Setting::Keys, Setting::Seconds, Setting::ConnectionsOf(1), Setting::OneThread],
    axes: &[PROTOCOL, OPERATION],
    figures: &[MEAN, P50, P95, P99, P999, MAX, SERVER_CPU, CLIENT_CPU, CLIENT_BUSY],
    plots: &[Plot::Bars { title: "Mean latency, one connection", each: None, y: MEAN }],
    published: &[
        Published {
            what: "SET, one connection, 32 bytes",
            figure: "Redis 5.5 % slower than Memcached",
            ours: beside_memcached(&[(OPERATION, Some("set"))]),
        },
        Published {
            what: "GET, one connection, 32 bytes",
            figure: "Redis 6 % slower than Memcached",
            ours: beside_memcached(&[(OPERATION, Some("get"))]),
        },
    ],
    limits: &[],
    rivals: None,
    run,
};

fn run(session: &mut Session) -> Result<()> {
    let stock = Stock::short(session.keys());
    let protocols = session.all_protocols();
    let cases: Vec<_> =
        protocols.into_iter().flat_map(|protocol| ["get", "set"].map(|verb| case(protocol, verb))).collect();
    let fill = |session: &Session, server: &Running| stock.fill(session, server).map(drop);
    let servers = session.start_all(&cases, speaks, Session::settings, fill)?;
    session.grid(&servers, &cases, speaks, |session, server, case, round| {
        let shape = Shape { connections: 1, threads: 1, ..session.usual_shape(1) };
        Ok(stock.measure(session, server, case, &shape, round)?.reading())
    })
}
