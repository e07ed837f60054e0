//! `ycsb`: loading YCSB's records, its core workloads on them, and the mixes of the Waterloo study.

use super::experiment::{
    CLIENT_BUSY, Experiment, Figure, Form, OPS, Ours, P95, P99, Plot, Published, SERVER_CPU, SERVER_SYSTEM, Setting,
};
use super::memory::{GROWN, settled};
use super::plain::{PROTOCOL, protocol, speaks};
use crate::load::{Pace, Until, Workload};
use crate::machine::process::resident_bytes;
use crate::peers::postgres::query;
use crate::processes::Job;
use crate::results::Case;
use crate::session::{Contender, Measured, Named, Reading, Running, Session, Shape};
use crate::target::{Protocol, Target};
use crate::workloads::ycsb::{Driver, Layout, Mix, Part, USERTABLE, Updates, Work, YCSB as CORE, table};
use anyhow::{Context, Result};

/// The axis of workloads.
pub const WORKLOAD: &str = "workload";
const CONNECTIONS: &str = "connections";

/// What stands among the workloads for inserting the records.
const LOAD: &str = "load";

const OVER_DATA: Figure = Figure { name: "over_data", heading: "over the fields' bytes" };

/// Connections of the Waterloo study's loads.
const CLIENTS: [usize; 5] = [1, 12, 24, 36, 48];
const CLIENTS_QUICK: [usize; 2] = [1, 48];

/// Numbers that each load has for what it inserts: more than it can. A server that runs already keeps what was inserted.
const NUMBERS_OF_A_LOAD: u64 = 1 << 40;

/// The mean latency of each kind of operation.
pub const READ: Figure = Figure { name: "read_mean_us", heading: "read mean µs" };
/// Of writes of one field.
pub const UPDATE: Figure = Figure { name: "update_mean_us", heading: "update mean µs" };
/// Of new records.
pub const INSERT: Figure = Figure { name: "insert_mean_us", heading: "insert mean µs" };
/// Of ends of records.
pub const DELETE: Figure = Figure { name: "delete_mean_us", heading: "delete mean µs" };
/// Of reads of several records.
pub const SCAN: Figure = Figure { name: "scan_mean_us", heading: "scan mean µs" };
/// Of reads with a write behind.
pub const READ_MODIFY_WRITE: Figure =
    Figure { name: "read_modify_write_mean_us", heading: "read-modify-write mean µs" };

/// Workloads A to F.
pub static YCSB: Experiment = Experiment {
    name: "ycsb",
    title: "YCSB",
    summary: "Records of some fields (ten of 100 bytes, unless told otherwise): hashes with an index over RESP, JSON in one value over memcached's \
              protocols (which have no scans, so no workload E), rows in PostgreSQL. They are loaded into a fresh server in one \
              language, and its resident memory is read; then the workloads run, each of as many operations as there are \
              records: those that insert none on servers that were loaded once in one language, those that do on one that was \
              started and loaded for the run. An update writes one field. The Waterloo study's workloads have records of \
              their own, of that study's form, and come from 1, 12, 24, 36 and 48 connections, as there.",
    study: "YCSB (Cooper et al. 2010); Waterloo; ULB",
    databases: true,
    depends_on: &[Setting::ClientProcesses, Setting::Updates],
    axes: &[PROTOCOL, WORKLOAD, CONNECTIONS],
    figures: &[
        OPS,
        READ,
        UPDATE,
        INSERT,
        DELETE,
        SCAN,
        READ_MODIFY_WRITE,
        P95,
        P99,
        SERVER_CPU,
        SERVER_SYSTEM,
        GROWN,
        OVER_DATA,
        CLIENT_BUSY,
    ],
    plots: &[
        Plot::Bars { title: "Throughput", each: Some(PROTOCOL), y: OPS },
        Plot::Bars { title: "The server's CPU time an operation", each: Some(PROTOCOL), y: SERVER_CPU },
        Plot::Bars { title: "Memory for the records, over their fields' bytes", each: Some(PROTOCOL), y: OVER_DATA },
    ],
    published: &[Published {
        what: "Waterloo, memory for 10.2 GB of records of 16 fields of 255 bytes",
        figure: "Memcached +6.6 %, Redis +44.5 %; here of the records that were loaded",
        ours: Some(Ours {
            figure: OVER_DATA,
            servers: &[],
            at: &[(WORKLOAD, Some(LOAD))],
            over: None,
            form: Form::Share,
        }),
    }],
    limits: &[],
    rivals: None,
    run,
};

fn run(session: &mut Session) -> Result<()> {
    let mixes: Vec<&'static Mix> =
        if session.options.workloads.is_empty() { CORE.iter().collect() } else { session.options.workloads.clone() };
    let mut cases_before = 0;
    of_each_study(&mixes).into_iter().try_for_each(|mixes| {
        cases_before += run_on_one_form(session, &mixes, cases_before)?;
        Ok(())
    })
}

/// Loads records, and runs workloads of one study on them; tells how many cases that were.
fn run_on_one_form(session: &mut Session, mixes: &[&'static Mix], cases_before: u64) -> Result<u64> {
    let records = session.options.keys.unwrap_or(session.scaled(10_000, 100_000));
    let layout = layout(session, mixes);
    let connections = connections(session, mixes);
    let mut cases = Vec::new();
    for protocol in session.all_protocols() {
        for mix in mixes {
            let case = Case::new().word(PROTOCOL, protocol.name()).word(WORKLOAD, mix.name);
            cases.extend(connections.iter().map(|connections| case.clone().number(CONNECTIONS, *connections as f64)));
        }
    }
    let stored = Stored { layout, records, cases_before };
    stored.tell(session);
    let operations = session.options.operations.unwrap_or(records);
    session.measured_on("operations", operations);
    loads(session, &stored)?;
    let measure = |session: &Session, server: &Running, case: &Case, round: u64| {
        let connections = case.quantity(CONNECTIONS).context("the case has its connections")? as usize;
        let shape = Shape { connections, until: Until::Operations(operations), ..session.usual_shape(1) };
        stored.measure(session, server, (case, &cases), &shape, round)
    };
    let (inserting, keeping): (Vec<Case>, Vec<Case>) = cases.iter().cloned().partition(inserts);
    // A server that runs already is loaded once, whatever is measured on it.
    let left = |session: &Session, contender: &Contender, case: &Case| {
        applies(session, contender, case) && !(contender.is_started() && inserts(case))
    };
    let mut loaded: Vec<String> = Vec::new();
    for protocol in session.all_protocols() {
        let fill = |session: &Session, server: &Running| stored.load(session, server, protocol);
        let servers = session.start_all(&of(protocol, &cases), left, Session::settings, fill)?;
        loaded.extend(servers.iter().map(Named::name));
        session.grid(&servers, &of(protocol, &keeping), applies, measure)?;
    }
    // What a run inserts must not be there for any other: with it, the store would be larger in each round and workload.
    // One that runs already and has refused the records has nothing that could be measured.
    let mut contenders = session.contenders.clone();
    contenders.retain(|contender| contender.is_started() || loaded.contains(&contender.name()));
    session.grid(&contenders, &inserting, applies, |session, contender, case, round| {
        let server = session.start(contender, &session.settings())?;
        if server.is_started() {
            stored.load(session, &server, protocol(case)?)?;
        }
        measure(session, &server, case, round)
    })?;
    Ok(cases.len() as u64)
}

/// Those cases that are in this language: records of one language are not those of another, and a server that speaks several
/// would hold them twice.
pub fn of(language: Protocol, cases: &[Case]) -> Vec<Case> {
    cases.iter().filter(|case| protocol(case).is_ok_and(|protocol| protocol == language)).cloned().collect()
}

/// Whether the case's workload makes new records.
fn inserts(case: &Case) -> bool {
    mix(case).is_ok_and(|mix| mix.insert > 0.0)
}

/// Whether a server is measured in the case's language, and that has what the workload needs.
pub fn applies(session: &Session, server: &impl Named, case: &Case) -> bool {
    speaks(session, server, case) && mix(case).is_ok_and(|mix| mix.scan == 0.0 || has_scans(case))
}

/// Loads a fresh server of each kind in each language.
fn loads(session: &mut Session, stored: &Stored) -> Result<()> {
    let connections = session.options.connections as f64;
    let load = |protocol: Protocol| Case::new().word(PROTOCOL, protocol.name()).word(WORKLOAD, LOAD);
    let cases: Vec<Case> =
        session.all_protocols().into_iter().map(|protocol| load(protocol).number(CONNECTIONS, connections)).collect();
    // Somebody else's server is not fresh.
    let started = session.started();
    session.grid(&started, &cases, speaks, |session, contender, case, round| {
        let server = session.start(contender, &session.settings())?;
        stored.measure_load(session, &server, protocol(case)?, round)
    })
}

/// The records in the servers.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Their form.
    pub layout: Layout,
    /// How many there are.
    pub records: u64,
    /// Cases that a server that runs already may have gone through before.
    pub cases_before: u64,
}

impl Stored {
    /// Has them kept beside the results.
    pub fn tell(&self, session: &mut Session) {
        session.measured_on("records", self.records);
        tell_layout(session, &self.layout);
    }

    /// Inserts them.
    pub fn load(&self, session: &Session, server: &Running, protocol: Protocol) -> Result<()> {
        load(session, server, protocol, &self.layout, self.records).map(drop)
    }

    /// Inserts them into a server that has none, and reads its memory.
    fn measure_load(&self, session: &Session, server: &Running, protocol: Protocol, round: u64) -> Result<Reading> {
        // What a database keeps on disk is not in its memory.
        let pid = server.pid().filter(|_| protocol != Protocol::Postgres);
        let empty = pid.map(resident_bytes).transpose()?;
        let reading = load(session, server, protocol, &self.layout, self.records)?.reading();
        let settled = pid.map(|pid| settled(session, pid)).transpose()?;
        // A record that is not there costs nothing.
        let mix = Mix::of("C").context("workload C is known")?;
        let shape = Shape { until: Until::Operations(self.records).warm(), ..session.usual_shape(1) };
        let work = Work::Run { mix, records: self.records, first_new: self.records, expected_new: 0, seed: round };
        transact(session, server, protocol, &self.layout, &shape, work)?;
        let Some((empty, settled)) = empty.zip(settled) else { return Ok(reading) };
        let (grown, data) = (settled - empty as f64, (self.records * self.layout.record_len() as u64) as f64);
        Ok(reading
            .figure(GROWN.name, grown / 1e6)
            .figure("empty_mb", empty as f64 / 1e6)
            .figure(OVER_DATA.name, grown / data - 1.0))
    }

    /// Warms a server up and measures one of these cases; all records are there.
    pub fn measure(
        &self,
        session: &Session,
        server: &Running,
        (case, cases): (&Case, &[Case]),
        shape: &Shape,
        round: u64,
    ) -> Result<Reading> {
        let (protocol, mix) = (protocol(case)?, mix(case)?);
        let place = cases.iter().position(|other| other == case).context("the case is one of them")? as u64;
        let measure = |until, seed| {
            let shape = Shape { until, ..*shape };
            // A server that runs already goes through all cases and rounds, and what one load has inserted must be new in the
            // next one, too.
            let loads_before = (self.cases_before + place) * 2 * session.rounds() + seed;
            let first_new = self.records + loads_before * NUMBERS_OF_A_LOAD;
            let expected_new = expected_new(mix, self.records, until);
            let work = Work::Run { mix, records: self.records, first_new, expected_new, seed };
            transact(session, server, protocol, &self.layout, &shape, work)
        };
        session.vacuum(server, protocol, USERTABLE)?;
        measure(shape.until.warm(), 2 * round)?;
        Ok(measure(shape.until, 2 * round + 1)?.reading())
    }
}

/// How many insertions YCSB would expect: twice their share of the operations. How many come in a time is not known before.
fn expected_new(mix: &Mix, records: u64, until: Until) -> u64 {
    match until {
        Until::Operations(operations) => (operations as f64 * mix.insert * 2.0) as u64,
        _ if mix.insert > 0.0 => records,
        _ => 0,
    }
}

fn mix(case: &Case) -> Result<&'static Mix> {
    let name = case.at(WORKLOAD).map(ToString::to_string).unwrap_or_default();
    Mix::of(&name).context("the case names a workload")
}

fn has_scans(case: &Case) -> bool {
    protocol(case).is_ok_and(|protocol| !protocol.is_memcache())
}

/// YCSB's workloads, then those of the Waterloo study, as far as there are any: the records of one have another form than the
/// other's.
pub fn of_each_study(mixes: &[&'static Mix]) -> Vec<Vec<&'static Mix>> {
    let (waterloos, cores): (Vec<_>, Vec<_>) = mixes.iter().copied().partition(|mix| is_waterloos(mix));
    [cores, waterloos].into_iter().filter(|mixes| !mixes.is_empty()).collect()
}

fn is_waterloos(mix: &Mix) -> bool {
    mix.name.starts_with('W')
}

fn are_waterloos(mixes: &[&Mix]) -> bool {
    mixes.iter().all(|mix| is_waterloos(mix))
}

/// How many connections the loads have, each number at least one for each process of the client.
fn connections(session: &Session, mixes: &[&Mix]) -> Vec<usize> {
    if !are_waterloos(mixes) {
        return vec![session.options.connections];
    }
    let clients = session.scaled(&CLIENTS_QUICK[..], &CLIENTS[..]);
    clients.iter().copied().filter(|connections| *connections >= session.options.client_processes).collect()
}

/// The form of the records: YCSB's, or for the Waterloo study's workloads that study's.
pub fn layout(session: &Session, mixes: &[&Mix]) -> Layout {
    let (fields, len) = if are_waterloos(mixes) { (16, 255) } else { (10, 100) };
    Layout::new(session.options.record_fields.unwrap_or(fields), session.options.field_bytes.unwrap_or(len))
}

/// Has the form of the records kept beside the results.
pub fn tell_layout(session: &mut Session, layout: &Layout) {
    session.measured_on("record fields", layout.fields);
    session.measured_on("field bytes", layout.field_len);
}

/// Inserts all records.
pub fn load(
    session: &Session,
    server: &Running,
    protocol: Protocol,
    layout: &Layout,
    records: u64,
) -> Result<Measured> {
    let shape = Shape { until: Until::Exhausted, pace: Pace::Closed, ..session.usual_shape(1) };
    if protocol == Protocol::Postgres {
        let target = server.target(protocol).context("the server speaks the case's language")?;
        query(&target, &table(layout))?;
    }
    let loaded = transact(session, server, protocol, layout, &shape, Work::Load { records })?;
    session.vacuum(server, protocol, USERTABLE)?;
    Ok(loaded)
}

/// Does a work on a server's records.
pub fn transact(
    session: &Session,
    server: &Running,
    protocol: Protocol,
    layout: &Layout,
    shape: &Shape,
    work: Work,
) -> Result<Measured> {
    let target = server.target(protocol).context("the server speaks the case's language")?;
    let updates = if session.options.shrinking_updates { Updates::Shrinking } else { Updates::Whole };
    if session.options.client_processes > 1 {
        let Shape { connections, threads, pipeline, pace, until, .. } = *shape;
        let (layout, cores) = (layout.clone(), session.placement.client.clone());
        let job = Job { target, layout, work, updates, connections, threads, pipeline, pace, until, cores };
        return session.load_from_processes(server, &job);
    }
    let crew = (Part::WHOLE, &shape.crew());
    let shape = &Shape { seed: work.seed(), ..*shape };
    work.drive(crew, protocol, layout, updates, Load { session, server, target: &target, shape })
}

/// Drives a load from the bench's own process.
struct Load<'a> {
    session: &'a Session,
    server: &'a Running,
    target: &'a Target,
    shape: &'a Shape,
}

impl Driver for Load<'_> {
    type Out = Measured;

    fn drive<W: Workload>(self, workloads: Vec<W>) -> Result<Measured> {
        Ok(self.session.load(self.server, self.target, self.shape, workloads)?.0)
    }
}
