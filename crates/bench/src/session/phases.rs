//! Cases that one server goes through in their order, each on what those before it have left. Knows no experiment.

use super::grid::{Session, Unready};
use super::measured::Reading;
use super::running::{Contender, Named, Running};
use crate::peers::Settings;
use crate::results::Case;
use anyhow::{Error, Result, anyhow, bail};

impl Session {
    /// Has a fresh server go through all cases, and keeps the results of those that were asked for and are not there yet. If
    /// all of them are there, nothing is done; if any is missing, all are gone through, since each needs those before it.
    ///
    /// `measure` is given the case's index, too. A server that cannot be started, and a case that fails, fail what comes
    /// after them, and nothing else.
    pub fn phases(
        &mut self,
        contender: &Contender,
        cases: &[Case],
        round: u64,
        settings: impl Fn(&Session) -> Settings<'_>,
        mut measure: impl FnMut(&Session, &Running, &Case, usize) -> Result<Reading>,
    ) -> Result<()> {
        self.pass_over(cases, |_, _| true);
        let wanted: Vec<bool> = cases.iter().map(|case| self.wants(case)).collect();
        let missing = |(case, wanted): (&Case, &bool)| *wanted && !self.has(contender, case, round);
        let missing: Vec<bool> = cases.iter().zip(&wanted).map(missing).collect();
        let count = |those: &[bool]| those.iter().filter(|those| **those).count();
        self.plan(count(&wanted), count(&wanted) - count(&missing))?;
        // What nobody asked for behind the last missing one is not needed either.
        let Some(last) = missing.iter().rposition(|missing| *missing) else {
            // They were asked for, which is what an experiment without any case is told by.
            self.progress.add_steps(count(&wanted));
            let mut there = cases.iter().zip(wanted).filter(|(_, wanted)| *wanted);
            return there.try_for_each(|(case, _)| self.one(contender, case, round, |_| bail!("it is there already")));
        };
        self.progress.add_steps(last + 1);
        self.progress.doing(&format!("starting {}", contender.name()));
        let mut server = self.start(contender, &settings(self));
        for (index, case) in cases[..=last].iter().enumerate() {
            let mut failure = None;
            let mut go_through = |session: &Session| {
                let reading = match &server {
                    Ok(server) => measure(session, server, case, index),
                    Err(error) => Err(once_more(error)),
                };
                failure = reading.as_ref().err().map(|error| format!("{error:#}"));
                reading
            };
            if missing[index] {
                self.one(contender, case, round, &mut go_through)?;
            } else {
                // An interrupt shows in the next one, or in the end.
                let _unasked = go_through(self);
                self.interrupt.check()?;
                self.progress.step();
            }
            // The server is gone with the first failure: what is left of it is nothing to measure.
            if let (Some(why), Ok(_)) = (failure, &server) {
                server = Err(anyhow!("a step before failed: {why}"));
            }
        }
        Ok(())
    }
}

/// The same error for the next one whom it stops.
fn once_more(error: &Error) -> Error {
    match error.downcast_ref::<Unready>() {
        Some(unready) => {
            let cause: Vec<String> = error.chain().skip(1).map(ToString::to_string).collect();
            anyhow!(cause.join(": ")).context(*unready)
        }
        None => anyhow!("{error:#}"),
    }
}
