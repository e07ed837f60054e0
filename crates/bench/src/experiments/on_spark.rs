//! Spark among the servers. Knows not what it is asked for.

use crate::peers::Spark;
use crate::results::{Build, Case};
use crate::session::{Named, Reading, Session};
use crate::target::Protocol;
use anyhow::Result;

/// What results are kept under.
struct Rdd {
    version: String,
    build: Build,
}

impl Named for Rdd {
    fn name(&self) -> String {
        "spark".to_owned()
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn build(&self) -> &Build {
        &self.build
    }

    fn protocols(&self) -> Vec<Protocol> {
        Vec::new()
    }
}

/// Measures a case on Spark as often as there are rounds; where there is none, the result says so.
pub fn on_spark(
    session: &mut Session,
    case: &Case,
    mut measure: impl FnMut(&Session, &Spark) -> Result<Reading>,
) -> Result<()> {
    session.pass_over(std::slice::from_ref(case), |_, _| true);
    if !session.wants(case) {
        return Ok(());
    }
    let found = Spark::find();
    let (version, build) = match &found {
        Ok(spark) => (spark.version.clone(), spark.build.clone()),
        Err(_) => ("none".to_owned(), Build::default()),
    };
    let rdd = Rdd { version, build };
    // Where there is none, it need not be said more than once.
    let rounds = if found.is_ok() { session.rounds() } else { 1 };
    session.progress.add_steps(rounds as usize);
    for round in 0..rounds {
        session.one(&rdd, case, round, |session| match &found {
            Ok(spark) => measure(session, spark),
            Err(why) => Ok(Reading::default().note(format!("not measured: {why}"))),
        })?;
    }
    Ok(())
}
