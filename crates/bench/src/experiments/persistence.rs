//! `persistence`: what keeping data on disk costs.

use super::experiment::{Experiment, MEAN, OPS, P99, P999, Plot, Published, SERVER_CPU};
use super::plain::{OPERATION, PROTOCOL, Stock, speaks};
use crate::peers::{Persistence, Settings};
use crate::results::Case;
use crate::session::{Contender, Session};
use anyhow::Result;

const MODE: &str = "persistence";

/// None, RDB, AOF every second and always.
pub static PERSISTENCE: Experiment = Experiment {
    name: "persistence",
    title: "The price of keeping data",
    summary: "Fifty connections set values of 32 bytes while nothing is kept, while snapshots are taken, and while each \
              write is logged; servers that cannot keep data are left out.",
    study: "the memtier studies",
    databases: true,
    axes: &[PROTOCOL, MODE],
    figures: &[OPS, MEAN, P99, P999, SERVER_CPU],
    plots: &[Plot::Bars { title: "Throughput of SET", each: Some(PROTOCOL), y: OPS }],
    published: &[
        Published { what: "Redis without persistence", figure: "176,351 op/s" },
        Published { what: "Redis with RDB", figure: "176,008 op/s" },
        Published { what: "Redis with AOF always", figure: "28,021 op/s" },
    ],
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
    let mut cases = Vec::new();
    for protocol in session.all_protocols() {
        let case = Case::new().word(PROTOCOL, protocol.name()).word(OPERATION, "set");
        cases.extend(MODES.map(|mode| case.clone().word(MODE, mode.name())));
    }
    let started: Vec<Contender> =
        session.contenders.iter().filter(|contender| matches!(contender, Contender::Program(_))).cloned().collect();
    let applies = |session: &Session, contender: &Contender, case: &Case| {
        speaks(session, contender, case) && can(session, contender, mode(case))
    };
    session.grid(&started, &cases, applies, |session, contender, case, round| {
        let settings = Settings { persistence: mode(case), ..session.settings() };
        let server = session.start(contender, &settings)?;
        let stock = Stock::short(session.keys());
        stock.fill(session, &server)?;
        Ok(stock.measure(session, &server, case, &session.usual_shape(1), round)?.reading())
    })
}

/// Whether a server knows a mode at all.
pub fn can(session: &Session, contender: &Contender, persistence: Persistence) -> bool {
    match contender {
        Contender::Program(program) => program.can(&Settings { persistence, ..session.settings() }),
        Contender::External(_) => false,
    }
}
