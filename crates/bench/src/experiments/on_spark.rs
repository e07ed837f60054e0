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
    let spark = match Spark::find() {
        Ok(spark) => spark,
        // It need not be said more than once.
        Err(why) => {
            let rdd = Rdd { version: "none".to_owned(), build: Build::default() };
            return session.cannot(&rdd, case, &format!("not measured: {why}"));
        }
    };
    let rdd = Rdd { version: spark.version.clone(), build: spark.build.clone() };
    session.plan_rounds(&rdd, case)?;
    for round in 0..session.rounds() {
        session.one(&rdd, case, round, |session| measure(session, &spark))?;
    }
    Ok(())
}
