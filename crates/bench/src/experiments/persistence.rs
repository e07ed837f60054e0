//! `persistence`: what keeping data on disk costs.

use super::experiment::{
    Base, CLIENT_BUSY, Experiment, Figure, Form, MEAN, OPS, Ours, P95, P99, P999, Plot, Published, SERVER_CPU, Setting,
    Spot,
};
use super::plain::{OPERATION, PROTOCOL, Stock, speaks};
use super::rewrites::Rewrites;
use super::snapshots::Snapshots;
use crate::machine::file_system::FileSystem;
use crate::peers::{Persistence, Settings};
use crate::results::Case;
use crate::session::{Contender, Measured, Reading, Running, Session};
use crate::target::Protocol;
use anyhow::{Context, Result, bail};

const MODE: &str = "persistence";

/// The throughput beside that without persistence.
const fn beside_none(at: &'static [Spot]) -> Option<Ours> {
    let over = Some(Base::Itself { at: &[(MODE, Some("none"))] });
    Some(Ours { figure: OPS, servers: &[], at, over, form: Form::Above })
}

/// None, RDB, AOF every second and always.
pub static PERSISTENCE: Experiment = Experiment {
    name: "persistence",
    title: "The price of keeping data",
    summary: "Many connections set values of 32 bytes while nothing is kept, while snapshots are taken one after another without a pause, \
              which is the most that they can cost, and while each write is logged, the log's first rewrite being over; servers that cannot keep data are left out.",
    study: "the memtier studies",
    databases: true,
    depends_on: &[Setting::Keys, Setting::Seconds, Setting::Connections],
    axes: &[PROTOCOL, MODE],
    figures: &[
        OPS,
        MEAN,
        P95,
        P99,
        P999,
        SERVER_CPU,
        Figure { name: "snapshots", heading: "snapshots" },
        Figure { name: "snapshot_share", heading: "of the time" },
        CLIENT_BUSY,
    ],
    plots: &[Plot::Bars { title: "Throughput of SET", each: Some(PROTOCOL), y: OPS }],
    published: &[
        Published { what: "Redis without persistence", figure: "176,351 op/s", ours: None },
        Published {
            what: "Redis with RDB at its own save points, which come minutes apart",
            figure: "176,008 op/s: 0.2 % less, and nothing here to set beside it: snapshots are taken without a pause",
            ours: None,
        },
        Published {
            what: "Redis with AOF always",
            figure: "28,021 op/s: 84.1 % less",
            ours: beside_none(&[(MODE, Some("aof always"))]),
        },
    ],
    limits: &[],
    rivals: None,
    run,
};

/// Every mode, by its name.
pub static MODES: [Persistence; 4] =
    [Persistence::Off, Persistence::Rdb, Persistence::AofEverysec, Persistence::AofAlways];

/// The case's mode.
pub fn mode(case: &Case) -> Persistence {
    let name = case.at(MODE).map(ToString::to_string).unwrap_or_default();
    MODES.into_iter().find(|mode| mode.name() == name).unwrap_or(Persistence::Off)
}

fn run(session: &mut Session) -> Result<()> {
    measured_on_disk(session)?;
    let mut cases = Vec::new();
    for protocol in session.all_protocols() {
        let case = Case::new().word(PROTOCOL, protocol.name()).word(OPERATION, "set");
        cases.extend(MODES.map(|mode| case.clone().word(MODE, mode.name())));
    }
    let started = session.started();
    let applies = |session: &Session, contender: &Contender, case: &Case| {
        speaks(session, contender, case) && can(session, contender, mode(case))
    };
    session.grid(&started, &cases, applies, |session, contender, case, round| {
        let settings = Settings { persistence: mode(case), ..session.settings() };
        let server = session.start(contender, &settings)?;
        let stock = Stock::short(session.keys());
        stock.fill(session, &server)?;
        measure(session, &server, &stock, case, round)
    })
}

fn measure(session: &Session, server: &Running, stock: &Stock, case: &Case, round: u64) -> Result<Reading> {
    let shape = session.usual_shape(1);
    let logs = matches!(mode(case), Persistence::AofEverysec | Persistence::AofAlways);
    let log_of = server.target(Protocol::Resp).filter(|_| logs);
    let rewrites = log_of.as_ref().map(Rewrites::wait_for_end).transpose()?;
    stock.warm_up(session, server, case, &shape, round)?;
    let load = || stock.measure_warm(session, server, case, &shape, round);
    let checked = |measured: Measured| stock.read_back(session, server, case).map(|()| measured.reading());
    match mode(case) {
        Persistence::Off => return checked(load()?),
        Persistence::AofEverysec | Persistence::AofAlways => {
            let reading = kept(session, checked(load()?)?)?;
            let is_rewritten = log_of.as_ref().map(Rewrites::now).transpose()? != rewrites;
            return Ok(if is_rewritten { reading.note("the log was rewritten meanwhile") } else { reading });
        }
        Persistence::Rdb => {}
    }
    let target = server.target(Protocol::Resp).context("a server that takes snapshots speaks RESP")?;
    let (measured, window, snapshots) = Snapshots::beside(&target, &session.placement.client, || {
        let measured = load()?;
        let lasted = measured.outcome.elapsed;
        Ok((measured, lasted))
    })?;
    let (taken, share) = snapshots.within(&window);
    if taken == 0 {
        bail!("no snapshot was taken while it was measured");
    }
    let reading = checked(measured)?.figure("snapshots", taken as f64).figure("snapshot_share", share);
    Ok(kept(session, reading)?.note("who takes snapshots has the server's cores"))
}

/// Keeps what kind of file system the servers' files are on: rounds in memory are none of those on a disk.
pub fn measured_on_disk(session: &mut Session) -> Result<()> {
    let kept_on = FileSystem::of(session.scratch())?;
    session.measured_on("files on", kept_on.kind());
    Ok(())
}

/// With a note on where the servers' files are: what waits for them waits for that.
pub fn kept(session: &Session, reading: Reading) -> Result<Reading> {
    Ok(reading.note(FileSystem::of(session.scratch())?.note()))
}

/// Whether a server knows a mode at all.
pub fn can(session: &Session, contender: &Contender, persistence: Persistence) -> bool {
    match contender {
        Contender::Program(program) => program.can(&Settings { persistence, ..session.settings() }),
        Contender::External(_) => false,
    }
}
