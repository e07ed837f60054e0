//! The command line of `cargo xtask`: which task, with which options. Knows nothing of how a task does its work.

use crate::workspace::Workspace;
use crate::{bench, ci, docs, fuzz, loom, miri, sanitize, test, tidy};
use anyhow::{Result, bail};

const USAGE: &str = "\
cargo xtask TASK

  test [--quick] [FILTER]   build the server, run the workspace's tests, say what was skipped
                            --quick: the unoptimised server, and 16 cases for each property test
  ci                        format, clippy, tidy, tests, documentation, loom, fuzz and Miri short runs
  tidy                      the checks a compiler does not make (crate edges, file heads, links, ...)
  docs                      rewrite the generated pages under docs/
  fuzz [SECONDS] [TARGET]   run the fuzz targets from their saved seeds (20 seconds each)
  loom                      try every order of the steps of ds's lock-free parts
  miri                      run the tests of ds and store under Miri
  sanitize [address|thread] [FILTER]
                            run the tests against a server built with AddressSanitizer (or ThreadSanitizer)
  bench [OPTIONS] [FILTER]  measure Tenon beside redis-server and memcached
      --quick               fewer keys, shorter runs, one round: shows that it works, not how fast
      --callgrind           user instructions an operation under valgrind, where perf may not count
      --cross-check         measure the RESP servers with redis-benchmark too
      FILTER                only measurements whose name contains it, such as `throughput/resp/get`,
                            `throughput/memcache`, `memory`, `workers`, `growth`
";

/// A task with its options.
#[derive(Debug, PartialEq, Eq)]
pub enum Task {
    /// Print how to call the program.
    Help,
    /// Run the tests.
    Test(test::Options),
    /// Run everything that a change must pass.
    Ci,
    /// Run the source checks.
    Tidy,
    /// Rewrite generated documents.
    Docs,
    /// Run fuzz targets for a while.
    Fuzz(fuzz::Options),
    /// Run what tries every order of threads' steps.
    Loom,
    /// Run the data crates under Miri.
    Miri,
    /// Run the tests against a server that watches itself.
    Sanitize(sanitize::Options),
    /// Measure.
    Bench(bench::Options),
}

impl Task {
    /// Does the task; an error has been explained on the terminal or says so itself.
    pub fn run(self) -> Result<()> {
        let workspace = Workspace::find()?;
        match self {
            Task::Help => {
                print!("{USAGE}");
                Ok(())
            }
            Task::Test(options) => test::run(&workspace, &options),
            Task::Ci => ci::run(&workspace),
            Task::Tidy => tidy::run(&workspace),
            Task::Docs => docs::rewrite(&workspace),
            Task::Fuzz(options) => ci::report("fuzz", fuzz::run(&workspace, &options)?),
            Task::Loom => ci::report("loom", loom::run(&workspace)?),
            Task::Miri => ci::report("miri", miri::run(&workspace)?),
            Task::Sanitize(options) => sanitize::run(&workspace, &options),
            Task::Bench(options) => bench::run(&workspace, &options),
        }
    }
}

/// Reads the words after `cargo xtask`.
pub fn parse(words: impl Iterator<Item = String>) -> Result<Task> {
    let mut words = words.peekable();
    let Some(name) = words.next() else { return Ok(Task::Help) };
    let (flags, operands): (Vec<String>, Vec<String>) = words.partition(|word| word.starts_with('-'));
    let (allowed_flags, operands_max): (&[&str], usize) = match name.as_str() {
        "help" | "-h" | "--help" => return Ok(Task::Help),
        "test" => (&["--quick"], 1),
        "ci" | "tidy" | "docs" | "loom" | "miri" => (&[], 0),
        "fuzz" | "sanitize" => (&[], 2),
        "bench" => (&["--quick", "--callgrind", "--cross-check"], 1),
        _ => bail!("unknown task '{name}'\n\n{USAGE}"),
    };
    if let Some(unknown) = flags.iter().find(|flag| !allowed_flags.contains(&flag.as_str())) {
        bail!("'{name}' knows no option '{unknown}'\n\n{USAGE}");
    }
    if let Some(extra) = operands.get(operands_max) {
        bail!("'{name}' does not know what to do with '{extra}'\n\n{USAGE}");
    }
    let has = |flag: &str| flags.iter().any(|given| given == flag);
    let first = operands.first().cloned();
    Ok(match name.as_str() {
        "test" => Task::Test(test::Options { quick: has("--quick"), filter: first }),
        "ci" => Task::Ci,
        "tidy" => Task::Tidy,
        "docs" => Task::Docs,
        "loom" => Task::Loom,
        "miri" => Task::Miri,
        "fuzz" => Task::Fuzz(fuzz_options(operands)?),
        "sanitize" => Task::Sanitize(sanitize_options(operands)?),
        _ => Task::Bench(bench::Options {
            quick: has("--quick"),
            callgrind: has("--callgrind"),
            cross_check: has("--cross-check"),
            filter: first.unwrap_or_default(),
        }),
    })
}

fn fuzz_options(operands: Vec<String>) -> Result<fuzz::Options> {
    let mut options = fuzz::Options::default();
    for operand in operands {
        match operand.parse() {
            Ok(seconds) => options.seconds = seconds,
            Err(_) if options.target.is_none() => options.target = Some(operand),
            Err(_) => bail!("'fuzz' takes one target, not '{operand}' too\n\n{USAGE}"),
        }
    }
    Ok(options)
}

fn sanitize_options(operands: Vec<String>) -> Result<sanitize::Options> {
    let mut options = sanitize::Options { sanitizer: sanitize::Sanitizer::Address, filter: None };
    for (index, operand) in operands.into_iter().enumerate() {
        match sanitize::Sanitizer::named(&operand) {
            Some(sanitizer) if index == 0 => options.sanitizer = sanitizer,
            _ if options.filter.is_none() => options.filter = Some(operand),
            _ => bail!("'sanitize' takes one filter, not '{operand}' too\n\n{USAGE}"),
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(line: &str) -> Result<Task> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_and_filters_are_read() {
        assert_eq!(task("").unwrap(), Task::Help);
        assert_eq!(
            task("test --quick expire").unwrap(),
            Task::Test(test::Options { quick: true, filter: Some("expire".into()) })
        );
        assert_eq!(
            task("bench memory --quick").unwrap(),
            Task::Bench(bench::Options { quick: true, callgrind: false, cross_check: false, filter: "memory".into() })
        );
        assert_eq!(
            task("fuzz 60 resp_command").unwrap(),
            Task::Fuzz(fuzz::Options { seconds: 60, target: Some("resp_command".into()) })
        );
    }

    #[test]
    fn a_sanitizer_may_be_named_before_the_filter() {
        use sanitize::{Options, Sanitizer};
        let of = |sanitizer, filter: Option<&str>| Options { sanitizer, filter: filter.map(str::to_owned) };
        assert_eq!(task("sanitize").unwrap(), Task::Sanitize(of(Sanitizer::Address, None)));
        assert_eq!(task("sanitize thread").unwrap(), Task::Sanitize(of(Sanitizer::Thread, None)));
        assert_eq!(task("sanitize thread tls").unwrap(), Task::Sanitize(of(Sanitizer::Thread, Some("tls"))));
        assert_eq!(task("sanitize tls").unwrap(), Task::Sanitize(of(Sanitizer::Address, Some("tls"))));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for line in ["bake", "ci --fast", "tidy src", "test a b", "bench --quik", "fuzz a b", "sanitize a b"] {
            let error = task(line).expect_err(line).to_string();
            assert!(error.contains("cargo xtask TASK"), "{line}: {error}");
        }
    }
}
