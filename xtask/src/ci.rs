//! Everything a change must pass, step by step, each with its time. Knows the steps' order, not their work.

use crate::workspace::Workspace;
use crate::{docs, fuzz, loom, miri, process, test, tidy};
use anyhow::{Result, bail};
use std::time::{Duration, Instant};

/// How a step ended that did not fail.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// It could not be done here, for the reason given.
    Skipped(String),
}

/// Says how a step that was called by itself ended.
pub fn report(name: &str, outcome: Outcome) -> Result<()> {
    match outcome {
        Outcome::Done => println!("{name}: done"),
        Outcome::Skipped(reason) => println!("{name}: skipped: {reason}"),
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Runs whatever happened before: a contributor wants to see all that is wrong at once.
    Nothing,
    /// A long run over code whose tests fail shows nothing new.
    Tests,
}

struct Step {
    name: &'static str,
    needs: Needs,
    run: fn(&Workspace) -> Result<Outcome>,
}

static STEPS: [Step; 8] = [
    Step { name: "format", needs: Needs::Nothing, run: format },
    Step { name: "clippy", needs: Needs::Nothing, run: clippy },
    Step { name: "tidy", needs: Needs::Nothing, run: |workspace| tidy::run(workspace).map(|()| Outcome::Done) },
    Step { name: TESTS, needs: Needs::Nothing, run: tests },
    Step { name: "docs", needs: Needs::Nothing, run: |workspace| docs::build(workspace).map(|()| Outcome::Done) },
    Step { name: "fuzz", needs: Needs::Tests, run: |workspace| fuzz::run(workspace, &fuzz::Options::default()) },
    Step { name: "loom", needs: Needs::Tests, run: loom::run },
    Step { name: "miri", needs: Needs::Tests, run: miri::run },
];

const TESTS: &str = "test";

/// Runs every step, then says how each ended; fails if one failed.
pub fn run(workspace: &Workspace) -> Result<()> {
    let ended = run_steps(&STEPS, workspace);
    println!("\n{}", summary(&ended));
    let failed: Vec<&str> = ended.iter().filter(|step| step.outcome.is_err()).map(|step| step.name).collect();
    if !failed.is_empty() {
        bail!("ci failed in: {}", failed.join(", "));
    }
    Ok(())
}

struct Ended {
    name: &'static str,
    took: Duration,
    outcome: Result<Outcome>,
}

fn run_steps(steps: &[Step], workspace: &Workspace) -> Vec<Ended> {
    let mut ended: Vec<Ended> = Vec::new();
    for step in steps {
        println!("\n==== {} ====", step.name);
        let tests_failed = ended.iter().any(|before| before.name == TESTS && before.outcome.is_err());
        let begin = Instant::now();
        let outcome = if step.needs == Needs::Tests && tests_failed {
            Ok(Outcome::Skipped("the tests failed".into()))
        } else {
            (step.run)(workspace)
        };
        let took = begin.elapsed();
        if let Err(error) = &outcome {
            println!("{} failed: {error:#}", step.name);
        }
        println!("==== {}: {:.1} s ====", step.name, took.as_secs_f64());
        ended.push(Ended { name: step.name, took, outcome });
    }
    ended
}

fn summary(ended: &[Ended]) -> String {
    let mut text = String::new();
    for step in ended {
        let outcome = match &step.outcome {
            Ok(Outcome::Done) => "ok".to_owned(),
            Ok(Outcome::Skipped(reason)) => format!("skipped: {reason}"),
            Err(error) => format!("FAILED: {error:#}"),
        };
        text += &format!("{:<8}{:>8.1} s  {outcome}\n", step.name, step.took.as_secs_f64());
    }
    text
}

fn format(workspace: &Workspace) -> Result<Outcome> {
    process::run(process::cargo(workspace).args(["fmt", "--all", "--", "--check"]))?;
    if workspace.root.join(fuzz::MANIFEST).exists() {
        process::run(process::cargo(workspace).args(["fmt", "--manifest-path", fuzz::MANIFEST, "--", "--check"]))?;
    }
    Ok(Outcome::Done)
}

fn clippy(workspace: &Workspace) -> Result<Outcome> {
    process::run(process::cargo(workspace).args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    Ok(Outcome::Done)
}

fn tests(workspace: &Workspace) -> Result<Outcome> {
    test::run(workspace, &test::Options { quick: false, filter: None })?;
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(_: &Workspace) -> Result<Outcome> {
        bail!("it broke")
    }

    fn succeeds(_: &Workspace) -> Result<Outcome> {
        Ok(Outcome::Done)
    }

    #[test]
    fn a_failed_step_stops_only_what_needs_it() {
        let workspace = Workspace { root: ".".into(), target: "target".into() };
        let steps = [
            Step { name: TESTS, needs: Needs::Nothing, run: fails },
            Step { name: "docs", needs: Needs::Nothing, run: succeeds },
            Step { name: "fuzz", needs: Needs::Tests, run: succeeds },
        ];
        let ended = run_steps(&steps, &workspace);
        assert!(ended[0].outcome.is_err());
        assert_eq!(*ended[1].outcome.as_ref().unwrap(), Outcome::Done);
        assert_eq!(*ended[2].outcome.as_ref().unwrap(), Outcome::Skipped("the tests failed".into()));
        let text = summary(&ended);
        assert!(text.contains("FAILED: it broke") && text.contains("skipped: the tests failed"), "{text}");
    }
}
