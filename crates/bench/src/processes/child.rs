//! One process's side: takes its order from the standard input, says how far it is and what came of it on the standard
//! output. Knows not who asks.

use super::order::{Order, Told};
use crate::load::{Observer, Outcome, Plan, Workload, run};
use crate::workloads::ycsb::Driver;
use anyhow::{Context, Result, bail};
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, AtomicU64};

/// All connections are open; the answer says to begin.
pub(super) const READY: &str = "ready";
/// All replies have come, and the connections are open still; the answer says that nobody needs them.
pub(super) const ENDED: &str = "ended";
/// In front of why there is no outcome.
pub(super) const FAILED: &str = "failed: ";

/// Does what the standard input says.
///
/// # Errors
/// When whoever asked is gone.
pub fn drive(input: &mut dyn BufRead, output: &mut dyn Write) -> Result<()> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    let order: Order = serde_json::from_str(&line).context("an order is a line of JSON")?;
    let answer = match follow(&order, &mut Steps { input, output }) {
        Ok(outcome) => serde_json::to_string(&Told::of(&outcome))?,
        Err(error) => format!("{FAILED}{}", format!("{error:#}").replace('\n', " ")),
    };
    say(output, &answer)
}

fn follow(order: &Order, steps: &mut Steps<'_>) -> Result<Outcome> {
    crate::machine::process::raise_open_files();
    let target = order.target()?;
    let tls = target.tls()?;
    let (progress, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let plan = Plan {
        target: &target,
        tls: tls.as_ref(),
        connections: order.connections,
        pipeline: order.pipeline,
        pace: order.pace()?,
        draw: order.draw(),
        until: order.until(),
        cores: &order.cores,
        progress: &progress,
        stop: &stop,
    };
    let crew = (order.part(), &order.crew());
    order.work()?.drive(crew, target.protocol, &order.layout(), order.updates(), Load { plan: &plan, steps })
}

/// Runs the load.
struct Load<'a, 's> {
    plan: &'a Plan<'a>,
    steps: &'a mut Steps<'s>,
}

impl Driver for Load<'_, '_> {
    type Out = Outcome;

    fn drive<W: Workload>(self, workloads: Vec<W>) -> Result<Outcome> {
        Ok(run(self.plan, workloads, self.steps)?.0)
    }
}

/// Keeps step with the other processes.
struct Steps<'a> {
    input: &'a mut dyn BufRead,
    output: &'a mut dyn Write,
}

impl Steps<'_> {
    fn ask(&mut self, word: &str) -> Result<()> {
        say(self.output, word)?;
        if self.input.read_line(&mut String::new())? == 0 {
            bail!("the bench is gone");
        }
        Ok(())
    }
}

impl Observer for Steps<'_> {
    fn begins(&mut self) -> Result<()> {
        self.ask(READY)
    }

    fn ended(&mut self) -> Result<()> {
        self.ask(ENDED)
    }
}

fn say(output: &mut dyn Write, line: &str) -> Result<()> {
    writeln!(output, "{line}")?;
    Ok(output.flush()?)
}
