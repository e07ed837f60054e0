//! `commands`: what each of many commands costs the server. The commands are [examples](crate::examples); none is known here.

use super::experiment::{CLIENT_BUSY, Experiment, OPS, P50, P95, P99, SERVER_CPU, Setting};
use super::plain::{PROTOCOL, protocol};
use crate::examples::{Example, FAMILIES, Step, template};
use crate::load::Until;
use crate::results::Case;
use crate::session::{Contender, Measured, Named, Reading, Running, Session, Shape};
use crate::target::{Protocol, Target};
use crate::workloads::{Command, Cycle, Language, Unexpected};
use anyhow::{Context, Result, anyhow};
use std::sync::Arc;
use std::time::Duration;

const COMMAND: &str = "command";
const ON: &str = "on";

/// Commands of what is stored that are sent before the first is answered.
const STORING_IN_FLIGHT: usize = 32;

/// What each command costs.
pub static COMMANDS: Experiment = Experiment {
    name: "commands",
    title: "One command after another",
    summary: "Each of some 200 commands, and of memcached's verbs, is sent over and over on one connection, most of them with 64 in \
              flight, for a tenth of the usual time. What they work on, what is sent and what must answer stands in \
              docs/examples.md. Behind the figures stands each server's cost over the least of the others'. memcached's meta \
              commands are among them, unless --protocols asks for others.",
    study: "what the studies wished for",
    databases: false,
    depends_on: &[Setting::Seconds, Setting::ConnectionsOf(1), Setting::OneThread],
    axes: &[PROTOCOL, COMMAND, ON],
    figures: &[SERVER_CPU, OPS, P50, P95, P99, CLIENT_BUSY],
    plots: &[],
    published: &[],
    limits: &[],
    rivals: Some(SERVER_CPU),
    run,
};

fn run(session: &mut Session) -> Result<()> {
    let examples: Vec<&Example> = FAMILIES.iter().flat_map(|(_, examples)| *examples).collect();
    let cases: Vec<Case> = examples.iter().map(|example| case(example)).collect();
    // What somebody else's server holds is not to be thrown away.
    let started = session.started();
    if started.is_empty() {
        return Ok(());
    }
    session.contenders = started;
    let servers = session.start_all(&cases, speaks::<Contender>, Session::settings, |_, _| Ok(()))?;
    session.grid(&servers, &cases, speaks::<Running>, |session, server, case, round| {
        let example = examples.iter().find(|example| self::case(example) == *case).context("the case is an example")?;
        measure(session, server, example, round)
    })
}

fn case(example: &Example) -> Case {
    Case::new().word(PROTOCOL, example.protocol.name()).word(COMMAND, example.command).word(ON, example.on)
}

/// Whether a server is measured in the case's language: memcached's meta commands are, too, if none is asked for.
fn speaks<S: Named>(session: &Session, server: &S, case: &Case) -> bool {
    let asked = &session.options.protocols;
    protocol(case).is_ok_and(|one| server.protocols().contains(&one) && (asked.is_empty() || asked.contains(&one)))
}

fn measure(session: &Session, server: &Running, example: &Example, round: u64) -> Result<Reading> {
    let place = Place { session, server, example, target: &target(server, example.protocol)? };
    let stock = example.stock.iter().map(|template| (*template, "*"));
    let stock = commands(&stock.collect::<Vec<Step>>(), example.protocol)?;
    let turn = commands(example.turn, example.protocol)?;
    place.empty()?;
    let warm_up = || {
        let cycle = Cycle::over_and_over(place.language(), turn, round);
        place.over_and_over(cycle, session.warm_up() / 10)
    };
    let cycle = match place.once(stock, STORING_IN_FLIGHT, round).and_then(|()| warm_up()) {
        Ok((_, cycle)) => cycle,
        // Of an older server, say, which has none of that name.
        Err(error) => {
            return match error.downcast_ref::<Unexpected>().filter(|unexpected| unexpected.is_unknown()) {
                Some(unexpected) => Ok(Reading::default().note(format!("unknown to it: {unexpected}"))),
                None => Err(error),
            };
        }
    };
    // It goes on where the other ended: what one command of a turn stores another takes away.
    Ok(place.over_and_over(cycle, session.measured_for() / 10)?.0.reading())
}

fn target(server: &Running, protocol: Protocol) -> Result<Target> {
    server.target(protocol).with_context(|| format!("it does not speak {}", protocol.name()))
}

fn language(protocol: Protocol) -> Language {
    if protocol.is_memcache() { Language::Memcache } else { Language::Resp }
}

/// The commands that some templates stand for.
fn commands(steps: &[Step], protocol: Protocol) -> Result<Arc<[Command]>> {
    let command = |(template, answer): &Step| {
        let (times, one) = template::repeated(template);
        let request =
            template::request(one, language(protocol)).map_err(|bad| anyhow!("'{}' is no template", bad.0))?;
        Ok(Command { name: one.to_owned(), request, times, answer: (*answer).into() })
    };
    steps.iter().map(command).collect::<Result<Vec<Command>>>().map(Into::into)
}

/// Where an example is measured.
struct Place<'a> {
    session: &'a Session,
    server: &'a Running,
    example: &'a Example,
    target: &'a Target,
}

impl Place<'_> {
    fn language(&self) -> Language {
        language(self.example.protocol)
    }

    fn shape(&self, in_flight: usize, until: Until) -> Shape {
        Shape { connections: 1, threads: 1, until, ..self.session.usual_shape(in_flight) }
    }

    /// Whatever the last example has left is thrown away.
    fn empty(&self) -> Result<()> {
        let emptying = if self.language() == Language::Resp { ("FLUSHALL", "+OK") } else { ("flush_all", "OK") };
        self.once(commands(&[emptying], self.example.protocol)?, 1, 0).context("emptying the server")
    }

    fn once(&self, commands: Arc<[Command]>, in_flight: usize, seed: u64) -> Result<()> {
        let (shape, cycle) = (self.shape(in_flight, Until::Exhausted), Cycle::once(self.language(), commands, seed));
        self.session.load(self.server, self.target, &shape, vec![cycle]).map(drop)
    }

    fn over_and_over(&self, cycle: Cycle, lasts: Duration) -> Result<(Measured, Cycle)> {
        let shape = self.shape(self.example.in_flight, Until::Elapsed(lasts));
        let (measured, cycles) = self.session.load(self.server, self.target, &shape, vec![cycle])?;
        Ok((measured, cycles.into_iter().next().context("the thread's commands")?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_read_and_is_another() {
        let mut cases: Vec<String> = Vec::new();
        for example in FAMILIES.iter().flat_map(|(_, examples)| *examples) {
            assert!(!commands(example.turn, example.protocol).expect("its templates").is_empty(), "{example:?}");
            let stock: Vec<Step> = example.stock.iter().map(|template| (*template, "*")).collect();
            commands(&stock, example.protocol).expect("its templates");
            cases.push(case(example).shown(COMMANDS.axes));
        }
        let all = cases.len();
        cases.sort_unstable();
        cases.dedup();
        assert_eq!((cases.len(), all > 200), (all, true));
    }
}
