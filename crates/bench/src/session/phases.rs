//! Cases that one server goes through in their order, each on what those before it have left. Knows no experiment.

use super::grid::Session;
use super::measured::Reading;
use super::running::{Contender, Named, Running};
use crate::peers::Settings;
use crate::results::Case;
use anyhow::{Result, anyhow, bail};

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
        cases
            .iter()
            .filter(|case| !self.wants(case))
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|case| self.passed_over(case));
        let wanted: Vec<bool> = cases.iter().map(|case| self.wants(case)).collect();
        let missing = |(case, wanted): (&Case, &bool)| *wanted && !self.has(contender, case, round);
        let missing: Vec<bool> = cases.iter().zip(&wanted).map(missing).collect();
        // What nobody asked for behind the last missing one is not needed either.
        let Some(last) = missing.iter().rposition(|missing| *missing) else {
            // They were asked for, which is what an experiment without any case is told by.
            self.progress.add_steps(wanted.iter().filter(|wanted| **wanted).count());
            let mut there = cases.iter().zip(wanted).filter(|(_, wanted)| *wanted);
            return there.try_for_each(|(case, _)| self.one(contender, case, round, |_| bail!("it is there already")));
        };
        self.progress.add_steps(last + 1);
        self.progress.doing(&format!("starting {}", contender.name()));
        let mut server = self.start(contender, &settings(self)).map_err(|error| format!("{error:#}"));
        for (index, case) in cases[..=last].iter().enumerate() {
            let mut failure = None;
            let mut go_through = |session: &Session| {
                let reading = match &server {
                    Ok(server) => measure(session, server, case, index),
                    Err(why) => Err(anyhow!(why.clone())),
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
                server = Err(format!("a step before failed: {why}"));
            }
        }
        Ok(())
    }
}
