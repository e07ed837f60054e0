//! One run of one experiment. Knows no experiment by name.

use super::interrupt::Interrupt;
use super::measured::Reading;
use super::options::{Cores, Options};
use super::progress::Progress;
use super::running::{Contender, Named, Running};
use super::unmeasured::Unmeasured;
use crate::experiments::{Experiment, Setting};
use crate::machine::facts;
use crate::machine::placement::{self, Placement};
use crate::machine::topology::Topology;
use crate::peers::{External, Guard, Server, Settings, find, identity};
use crate::results::{Case, Coverage, Earlier, Plan, Record, Store, median, moment};
use crate::target::{Protocol, Target};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What an experiment is given.
#[derive(Debug)]
pub struct Session {
    /// What was asked for.
    pub options: Options,
    /// Who takes part.
    pub contenders: Vec<Contender>,
    /// Which cores are whose.
    pub placement: Placement,
    server_threads: usize,
    client_threads: usize,
    /// Whether to end.
    pub interrupt: Interrupt,
    /// How far it is.
    pub progress: Progress,
    /// Whether the servers' system calls are counted while a load runs.
    pub counting: bool,
    /// Whether the servers' CPU time is sampled while a load runs.
    pub sampling: bool,
    /// How each server was last started, and what it then said of its build, by its name.
    started: Mutex<BTreeMap<String, Began>>,
    experiment: &'static str,
    pub(super) depends_on: &'static [Setting],
    /// Sizes that the experiment has chosen itself, by name.
    pub(super) sizes: BTreeMap<&'static str, String>,
    machine: Vec<String>,
    axes: &'static [&'static str],
    store: Store,
    scratch: PathBuf,
    scratch_guard: Guard,
    ended: Ended,
    unmeasured: Unmeasured,
}

/// What is known of a server once it runs.
#[derive(Clone, Debug, Default)]
struct Began {
    command: String,
    said: BTreeMap<String, String>,
}

/// Why there was no server to run something on; the cause stands behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unready {
    /// It did not come up.
    Started,
    /// It did not take what it was to hold.
    Filled,
}

impl fmt::Display for Unready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unready::Started => "the server could not be started",
            Unready::Filled => "the server could not be filled",
        })
    }
}

/// What came of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Measurements that were asked for, those that need not be made again among them.
    pub asked: usize,
    /// Runs that failed their own check.
    pub failures: usize,
    /// Runs that never began, for want of a server that was ready.
    pub unready: usize,
    /// Why nothing was there to be measured, of one experiment of which nothing was.
    pub why: Option<String>,
}

impl Ended {
    /// An error where runs failed, and where nothing was there to be measured.
    pub fn check(&self) -> Result<()> {
        if let Some(failed) = self.failed() {
            bail!(failed);
        }
        match self {
            Ended { asked: 0, why: Some(why), .. } => bail!("nothing was measured: {why}"),
            Ended { asked: 0, why: None, .. } => bail!("nothing was measured"),
            Ended { .. } => Ok(()),
        }
    }

    /// What went wrong, if anything did.
    pub fn failed(&self) -> Option<String> {
        let told = [
            (self.failures, "failed their own check"),
            (self.unready, "had no server: it could not be started, or not be filled"),
        ];
        let told = told.into_iter().filter(|(runs, _)| *runs > 0).map(|(runs, what)| format!("{runs} runs {what}"));
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    /// Of several; each has its own reason.
    pub fn with(self, other: &Ended) -> Ended {
        Ended {
            asked: self.asked + other.asked,
            failures: self.failures + other.failures,
            unready: self.unready + other.unready,
            why: None,
        }
    }
}

impl Session {
    /// Finds the servers and opens the results.
    pub fn open(options: Options, interrupt: Interrupt, experiment: &'static Experiment) -> Result<Session> {
        let &Experiment { databases, axes, depends_on, name: experiment, .. } = experiment;
        if let Some(directory) = options.data_dir.as_ref().filter(|directory| !directory.is_dir()) {
            bail!("--data-dir {}: there is no such directory", directory.display());
        }
        let (server_threads, client_threads) = options.threads(placement::own_cores()?.len());
        let placement = placed(&options, server_threads, client_threads)?;
        let progress = Progress::new(experiment);
        let contenders = contenders(&options, databases, &progress)?;
        let earlier = if options.r#continue { Earlier::Continue } else { Earlier::Discard };
        let store = Store::open(&options.out, experiment, earlier)?;
        let data = std::path::absolute(options.data_dir.clone().unwrap_or_else(std::env::temp_dir))?;
        let scratch = data.join(format!("tenon-bench-{}", std::process::id()));
        std::fs::create_dir_all(&scratch).with_context(|| scratch.display().to_string())?;
        let scratch_guard = Guard::over_files(&scratch).context("sh")?;
        let session = Session {
            options,
            contenders,
            placement,
            server_threads,
            client_threads,
            interrupt,
            progress,
            counting: false,
            sampling: false,
            started: Mutex::default(),
            experiment,
            depends_on,
            sizes: BTreeMap::new(),
            machine: facts::lines(),
            axes,
            store,
            scratch,
            scratch_guard,
            ended: Ended::default(),
            unmeasured: Unmeasured::default(),
        };
        session.tell_of_other_builds();
        Ok(session)
    }

    /// Says of which servers another build was measured earlier, whose results are none of this one's.
    fn tell_of_other_builds(&self) {
        let case = Case::new();
        for contender in &self.contenders {
            let own = self.record(contender, &case, 0);
            let earlier = self.store.records().iter().filter(|earlier| earlier.server == own.server);
            let Some(other) = earlier.clone().find(|earlier| !earlier.is_of_the_same_build(&own)) else { continue };
            let [other, own] = [other, &own].map(|record| format!("{}, {}", record.version, record.build.short()));
            let server = contender.name();
            self.progress
                .say(&format!("{server}: earlier results are of {other}; this is {own}, and is measured anew"));
        }
    }

    /// Threads that a started server serves clients with.
    pub fn server_threads(&self) -> usize {
        self.server_threads
    }

    /// Threads of a load.
    pub fn client_threads(&self) -> usize {
        self.client_threads
    }

    /// Gives servers of so many threads in all, and the client, their cores; those that were asked for stay.
    pub fn place(&mut self, server_threads: usize) -> Result<()> {
        self.placement = placed(&self.options, server_threads, self.client_threads)?;
        Ok(())
    }

    /// Gives a load of so many threads its cores beside servers that have theirs.
    pub fn place_client(&mut self, client_threads: usize) -> Result<()> {
        if self.options.client_cpus.is_none() {
            self.placement =
                self.placement.with_client_threads(&Topology::of(&placement::own_cores()?), client_threads);
        }
        Ok(())
    }

    /// How often each case is measured.
    pub fn rounds(&self) -> u64 {
        self.options.rounds.unwrap_or(if self.options.quick { 1 } else { 3 })
    }

    /// How long each load runs.
    pub fn measured_for(&self) -> Duration {
        self.options.seconds.unwrap_or(Duration::from_millis(if self.options.quick { 300 } else { 3_000 }))
    }

    /// How long the same load runs before it is measured.
    pub fn warm_up(&self) -> Duration {
        self.measured_for() / 6
    }

    /// Keys in the servers.
    pub fn keys(&self) -> u64 {
        self.options.keys.unwrap_or(if self.options.quick { 100_000 } else { 1_000_000 })
    }

    /// One of two sizes.
    pub fn scaled<T>(&self, quick: T, full: T) -> T {
        if self.options.quick { quick } else { full }
    }

    /// The languages to measure, of those that a server speaks.
    pub fn protocols(&self, server: &impl Named) -> Vec<Protocol> {
        let asked = &self.options.protocols;
        let spoken = server.protocols();
        // A server with one language is measured in it; of memcached's, text stands for all unless they are asked for.
        let usual = |protocol: &Protocol| spoken.len() == 1 || matches!(protocol, Protocol::Resp | Protocol::Text);
        let wanted = |protocol: &Protocol| if asked.is_empty() { usual(protocol) } else { asked.contains(protocol) };
        spoken.iter().copied().filter(wanted).collect()
    }

    /// The languages that any contender is measured in.
    pub fn all_protocols(&self) -> Vec<Protocol> {
        let spoken: Vec<Protocol> = self.contenders.iter().flat_map(|contender| self.protocols(contender)).collect();
        Protocol::ALL.into_iter().filter(|protocol| spoken.contains(protocol)).collect()
    }

    /// Those that the bench starts, for an experiment that needs a fresh server, or one that nobody else uses.
    pub fn started(&mut self) -> Vec<Contender> {
        self.unmeasured.needs_started = true;
        self.contenders.iter().filter(|contender| contender.is_started()).cloned().collect()
    }

    /// Remembers what an experiment that ends without a case would have to be given.
    pub fn lacks(&mut self, what: &str) {
        self.unmeasured.lacks = Some(what.to_owned());
    }

    /// Remembers those cases that a server has and nobody asked for.
    pub fn pass_over(&mut self, cases: &[Case], has: impl Fn(&Session, &Case) -> bool) {
        for case in cases {
            if !self.wants(case) && has(self, case) {
                self.unmeasured.pass_over(case.shown(self.axes));
            }
        }
    }

    /// How servers are started when nothing else is asked for.
    pub fn settings(&self) -> Settings<'_> {
        Settings {
            tls: self.options.protocols.contains(&Protocol::RespTls),
            interrupt: self.interrupt.clone(),
            ..Settings::new(self.server_threads(), &self.placement.server, &self.scratch)
        }
    }

    /// Where files may be put until the experiment's end.
    pub fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// Starts a server, or takes one that runs.
    pub fn start(&self, contender: &Contender, settings: &Settings<'_>) -> Result<Running> {
        self.interrupt.check()?;
        Ok(match contender {
            Contender::Program(program) => {
                let server = program.start(settings).context(Unready::Started)?;
                self.began(contender, &server)?;
                Running::Started(Box::new(server))
            }
            // It was asked when it was found.
            Contender::External(external) => Running::External(Box::new(external.clone())),
        })
    }

    /// Keeps what is known of a server that runs. One that says another thing of its build than it did when it was measured
    /// earlier is refused, though its file be the same: that may start a program that was changed.
    fn began(&self, contender: &Contender, server: &Server) -> Result<()> {
        let target = server.program.family.protocols().first().and_then(|protocol| server.target(*protocol));
        let (command, said) = (server.command(), target.as_ref().map(identity::said_by).unwrap_or_default());
        let own = self.record(contender, &Case::new(), 0);
        let earlier = self.store.records().iter().filter(|earlier| earlier.is_of_the_same_build(&own));
        let another = |earlier: &&Record| !earlier.said.is_empty() && !said.is_empty() && earlier.said != said;
        if let Some(earlier) = earlier.into_iter().find(another) {
            bail!(
                "{} is another build than was measured earlier: it says '{}' and not '{}'; measure again without --continue",
                contender.name(),
                identity::in_a_line(&said),
                identity::in_a_line(&earlier.said)
            );
        }
        self.last_starts().insert(contender.name(), Began { command, said });
        Ok(())
    }

    fn last_starts(&self) -> MutexGuard<'_, BTreeMap<String, Began>> {
        // Whoever panicked meanwhile has left whole lines.
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts every server that one of these cases is left for, and prepares it; one that fails is left out, and the
    /// experiment has failed.
    pub fn start_all(
        &mut self,
        cases: &[Case],
        applies: impl Fn(&Session, &Contender, &Case) -> bool,
        settings: impl Fn(&Session) -> Settings<'_>,
        prepare: impl Fn(&Session, &Running) -> Result<()>,
    ) -> Result<Vec<Running>> {
        self.unmeasured.takes_any = true;
        let mut servers = Vec::new();
        for contender in self.contenders.clone() {
            self.pass_over(cases, |session, case| applies(session, &contender, case));
            let applies = |case: &&Case| self.wants(case) && applies(self, &contender, case);
            let wanted: Vec<&Case> = cases.iter().filter(applies).collect();
            if wanted.iter().all(|case| (0..self.rounds()).all(|round| self.has(&contender, case, round))) {
                // They were asked for, which is what an experiment without any case is told by.
                self.ended.asked += wanted.len() * self.rounds() as usize;
                continue;
            }
            self.progress.doing(&format!("starting {}", contender.name()));
            let started = self.start(&contender, &settings(self)).and_then(|server| {
                prepare(self, &server).context(Unready::Filled)?;
                Ok(server)
            });
            match started {
                Ok(server) => servers.push(server),
                Err(error) => {
                    self.interrupt.check()?;
                    // What was to run on it cannot; told once, of what all that has in common.
                    self.failed(&contender, &Case::shared_by(&wanted), 0, &error)?;
                }
            }
        }
        Ok(servers)
    }

    /// Measures every case on every server that it applies to, the servers in turn, and keeps the results.
    ///
    /// A round goes through all cases before the next one begins: of rounds that follow at once, all would have had the same
    /// minute, and none would show what the machine did in another. Another server is the first in each.
    pub fn grid<S: Named>(
        &mut self,
        servers: &[S],
        cases: &[Case],
        applies: impl Fn(&Session, &S, &Case) -> bool,
        measure: impl Fn(&Session, &S, &Case, u64) -> Result<Reading>,
    ) -> Result<()> {
        self.unmeasured.takes_any |= servers.iter().any(|server| !server.is_started());
        self.pass_over(cases, |session, case| servers.iter().any(|server| applies(session, server, case)));
        let mut steps: Vec<(&Case, u64, &S)> = Vec::new();
        for round in 0..self.rounds() {
            for case in cases.iter().filter(|case| self.wants(case)) {
                let those: Vec<&S> = servers.iter().filter(|server| applies(self, server, case)).collect();
                steps.extend(in_turn(&those, round).map(|server| (case, round, *server)));
            }
        }
        let there = steps.iter().filter(|(case, round, server)| self.has(*server, case, *round)).count();
        self.plan(steps.len(), there)?;
        self.progress.add_steps(steps.len());
        steps.into_iter().try_for_each(|(case, round, server)| {
            self.one(server, case, round, |session| measure(session, server, case, round))
        })
    }

    /// Keeps how many measurements are to come, and how many of them need not be made, being there.
    pub(super) fn plan(&mut self, measurements: usize, there: usize) -> Result<()> {
        let servers = self.contenders.iter().map(Named::name).collect();
        if measurements > 0 { self.store.plan(Plan { measurements, there, servers }) } else { Ok(()) }
    }

    /// Keeps that a case is to be measured in all rounds.
    pub fn plan_rounds(&mut self, server: &impl Named, case: &Case) -> Result<()> {
        let there = (0..self.rounds()).filter(|round| self.has(server, case, *round)).count();
        self.progress.add_steps(self.rounds() as usize);
        self.plan(self.rounds() as usize, there)
    }

    /// Keeps that all was come to.
    pub fn end(&mut self) -> Result<()> {
        self.store.end()
    }

    /// Whether the case was asked for.
    pub fn wants(&self, case: &Case) -> bool {
        case.shown(self.axes).contains(&self.options.filter)
    }

    /// Whether the case has been measured in this round.
    pub fn has(&self, server: &impl Named, case: &Case, round: u64) -> bool {
        self.store.has(&self.record(server, case, round))
    }

    /// The median of a figure over the rounds in which the case has been measured.
    pub fn median(&self, server: &impl Named, case: &Case, figure: &str) -> Option<f64> {
        let like = self.record(server, case, 0);
        let rounds = self.store.records().iter().filter(|made| made.failure.is_none() && made.is_like(&like));
        median(rounds.filter_map(|made| made.figures.get(figure).copied()))
    }

    /// Measures one case on one server once, unless that has been done, and keeps the result.
    pub fn one(
        &mut self,
        server: &impl Named,
        case: &Case,
        round: u64,
        measure: impl FnOnce(&Session) -> Result<Reading>,
    ) -> Result<()> {
        self.interrupt.check()?;
        self.ended.asked += 1;
        let mut record = Record { at: moment::now(), ..self.record(server, case, round) };
        if !self.store.has(&record) {
            self.progress.doing(&format!("{}, {}", case.shown(self.axes), server.name()));
            match measure(self) {
                Ok(reading) => {
                    reading.fill(&mut record);
                    Began { command: record.command, said: record.said } = self.last_start(server);
                    self.store.push(record)?;
                }
                Err(error) => {
                    // What an interrupt has cut off has not failed.
                    self.interrupt.check()?;
                    self.failed(server, case, round, &error)?;
                }
            }
        }
        self.progress.step();
        Ok(())
    }

    /// Keeps that a case is not measured, and why: a row that says so, and no measurement that was asked for.
    pub fn cannot(&mut self, server: &impl Named, case: &Case, why: &str) -> Result<()> {
        self.interrupt.check()?;
        self.unmeasured.cannot = Some(why.to_owned());
        let record = Record { at: moment::now(), notes: vec![why.to_owned()], ..self.record(server, case, 0) };
        let is_there = self.store.has(&record);
        self.plan(1, usize::from(is_there))?;
        if is_there { Ok(()) } else { self.store.push(record) }
    }

    fn last_start(&self, server: &impl Named) -> Began {
        self.last_starts().get(&server.name()).cloned().unwrap_or_default()
    }

    fn record(&self, server: &impl Named, case: &Case, round: u64) -> Record {
        Record {
            experiment: self.experiment.to_owned(),
            server: server.name(),
            version: server.version().to_owned(),
            build: server.build().clone(),
            said: BTreeMap::new(),
            at: String::new(),
            case: case.clone(),
            round,
            rounds: self.rounds(),
            quick: self.options.quick,
            setup: self.setup(server.is_started()),
            command: String::new(),
            machine: self.machine.clone(),
            figures: BTreeMap::new(),
            series: BTreeMap::new(),
            notes: Vec::new(),
            failure: None,
        }
    }

    fn failed(&mut self, server: &impl Named, case: &Case, round: u64, error: &anyhow::Error) -> Result<()> {
        let failure = format!("{error:#}");
        self.progress.say(&format!("failed: {}: {failure}", self.record(server, case, round).shown(self.axes)));
        match error.downcast_ref::<Unready>() {
            Some(_) => self.ended.unready += 1,
            None => self.ended.failures += 1,
        }
        let (Began { command, said }, at) = (self.last_start(server), moment::now());
        let record = Record { failure: Some(failure), command, said, at, ..self.record(server, case, round) };
        self.store.push(record)
    }

    /// What was measured.
    pub fn records(&self) -> &[Record] {
        self.store.records()
    }

    /// Ends the experiment.
    pub fn finish(self) -> (Vec<Record>, Coverage, Ended) {
        self.progress.finish();
        let mut ended = self.ended.clone();
        if ended.asked == 0 {
            let are_started = self.contenders.iter().any(Named::is_started);
            ended.why = Some(self.unmeasured.why(&self.options, are_started, &self.all_protocols()));
        }
        (self.store.records().to_vec(), self.store.coverage().clone(), ended)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // What is left in the temporary directory harms nobody.
        let _ = std::fs::remove_dir_all(&self.scratch);
        self.scratch_guard.dismiss();
    }
}

/// All of them, another one first in each round.
pub fn in_turn<T>(all: &[T], round: u64) -> impl Iterator<Item = &T> {
    let (last, first) = all.split_at(round as usize % all.len().max(1));
    first.iter().chain(last)
}

fn placed(options: &Options, server_threads: usize, client_threads: usize) -> Result<Placement> {
    fn named(cores: &Option<Cores>) -> Option<&[usize]> {
        cores.as_ref().map(|cores| &cores.0[..])
    }
    Placement::new(server_threads, client_threads, named(&options.server_cpus), named(&options.client_cpus))
}

fn contenders(options: &Options, databases: bool, progress: &Progress) -> Result<Vec<Contender>> {
    let mut contenders = Vec::new();
    if !options.peers.is_empty() || options.target.is_empty() {
        let found = find(&options.peers)?;
        found.missing.iter().for_each(|line| progress.say(line));
        contenders.extend(found.programs.into_iter().map(Contender::Program));
    }
    for target in &options.target {
        let target = Target { authority: options.cacert.clone(), ..target.clone() };
        contenders.push(Contender::External(External::ask(&target)?));
    }
    if !databases {
        let speaks = |contender: &Contender| contender.protocols() == [Protocol::Postgres];
        contenders.iter().filter(|contender| speaks(contender)).for_each(|contender| {
            progress.say(&format!("{}: not measured: this experiment is for stores in memory", contender.name()));
        });
        let were_some = !contenders.is_empty();
        contenders.retain(|contender| !speaks(contender));
        if were_some && contenders.is_empty() {
            bail!("this experiment is for stores in memory, and no other server takes part");
        }
    }
    apart(&contenders)?;
    if contenders.is_empty() {
        bail!("there is no server to measure: install one, or name it with --peers or --target");
    }
    Ok(contenders)
}

/// Results are kept under names, so two contenders of one name would be one.
fn apart(contenders: &[Contender]) -> Result<()> {
    let mut names: Vec<String> = contenders.iter().map(Named::name).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        bail!("two servers are called {0}: name each once, two builds of a program as NAME=FILE", pair[0]);
    }
    Ok(())
}
