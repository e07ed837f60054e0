//! The command line: a subcommand for each experiment, made from the experiments' table. Knows not what they measure.

use crate::experiments::{ALL, Experiment};
use crate::processes;
use crate::report;
use crate::results::Record;
use crate::session::{Ended, Interrupt, Options, Session};
use anyhow::{Context, Result, bail};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use std::path::PathBuf;

const SUITE: &str = "suite";
const REPORT: &str = "report";
const OUT: &str = "out";

/// The whole command line.
pub fn command() -> Command {
    let mut command = Command::new("tenon-bench")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Measures Tenon, Redis, Valkey, Memcached and PostgreSQL on the same work")
        .subcommand_required(true)
        .arg_required_else_help(true);
    for experiment in ALL {
        let about = format!("{}: {}", experiment.title, experiment.summary);
        // The options bring a text of their own, which must not stand.
        let subcommand = Options::augment_args(Command::new(experiment.name));
        command = command.subcommand(subcommand.about(experiment.title).long_about(about));
    }
    let suite = Options::augment_args(Command::new(SUITE)).about("Runs every experiment, then writes the report");
    let suite = suite.long_about(None);
    let report = Command::new(REPORT).about("Writes report.html and report.md from the results").arg(
        Arg::new(OUT).long(OUT).value_name("DIR").help("Where the results are").default_value("tenon-bench-results"),
    );
    // For the bench itself, which starts it.
    let drive = Command::new(processes::SUBCOMMAND).hide(true);
    command.subcommand(suite).subcommand(report).subcommand(drive)
}

/// Does what was asked for.
///
/// # Errors
/// When nothing can be measured, when it was interrupted, and when a run failed its own check.
pub fn run(matches: &ArgMatches) -> Result<()> {
    let (name, matches) = matches.subcommand().context("a subcommand is required")?;
    if name == processes::SUBCOMMAND {
        return processes::drive(&mut std::io::stdin().lock(), &mut std::io::stdout().lock());
    }
    if name == REPORT {
        let directory: &String = matches.get_one(OUT).context("the directory has a default")?;
        return write_report(&PathBuf::from(directory));
    }
    let options = Options::from_arg_matches(matches)?;
    let interrupt = Interrupt::listen()?;
    crate::machine::process::raise_open_files();
    if name != SUITE {
        let experiment = ALL.iter().find(|experiment| experiment.name == name).context("the experiment is known")?;
        let (records, ended) = measure(experiment, &options, &interrupt)?;
        print_document(&records, &options)?;
        return ended.check();
    }
    let mut all = Vec::new();
    let measured = measure_all(&ALL, &interrupt, |experiment| {
        let (records, ended) = measure(experiment, &options, &interrupt)?;
        all.extend(records);
        Ok(ended)
    });
    print_document(&all, &options)?;
    write_report(&options.out)?;
    measured
}

/// Measures one experiment after another: one that cannot be measured does not take the others with it.
fn measure_all(
    experiments: &[&'static Experiment],
    interrupt: &Interrupt,
    mut measure: impl FnMut(&'static Experiment) -> Result<Ended>,
) -> Result<()> {
    let mut all = Ended::default();
    let mut broken = Vec::new();
    for (index, &experiment) in experiments.iter().enumerate() {
        let measured = measure(experiment);
        if let Err(interrupted) = interrupt.check() {
            let left: Vec<&str> = experiments[index + 1..].iter().map(|experiment| experiment.name).collect();
            let left = if left.is_empty() { "none".to_owned() } else { left.join(", ") };
            let what = format!("ended in {}; not come to: {left}", experiment.name);
            return Err(measured.err().unwrap_or(interrupted).context(what));
        }
        match measured {
            Ok(ended) => {
                if let Some(why) = &ended.why {
                    eprintln!("{}: left out: {why}", experiment.name);
                }
                all = all.with(&ended);
            }
            Err(error) => {
                eprintln!("{}: not measured to the end: {error:#}", experiment.name);
                broken.push(experiment.name);
            }
        }
    }
    if !broken.is_empty() {
        let failed = all.failed().map(|failed| format!("; {failed}")).unwrap_or_default();
        bail!("not measured to the end: {}{failed}", broken.join(", "));
    }
    all.check()
}

/// Runs one experiment and prints its table, if tables are asked for.
fn measure(experiment: &'static Experiment, options: &Options, interrupt: &Interrupt) -> Result<(Vec<Record>, Ended)> {
    let mut session = Session::open(options.clone(), interrupt.clone(), experiment)?;
    let ran = (experiment.run)(&mut session).and_then(|()| session.end());
    let (records, coverage, ended) = session.finish();
    if let Err(error) = ran {
        return Err(match coverage.shortfall() {
            Some(missing) => error.context(missing),
            None => error,
        });
    }
    if !records.is_empty() && !options.json {
        println!("{}", report::section(experiment, &records, &coverage));
        report::lines(&records).iter().for_each(|line| println!("- {line}"));
    }
    Ok((records, ended))
}

/// Prints all that was measured as one document, if that is asked for.
fn print_document(records: &[Record], options: &Options) -> Result<()> {
    if options.json {
        println!("{}", serde_json::to_string_pretty(records)?);
    }
    Ok(())
}

fn write_report(directory: &std::path::Path) -> Result<()> {
    for path in report::write(directory)? {
        eprintln!("{}", path.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_that_breaks_does_not_take_the_others_with_it() {
        let mut measured = Vec::new();
        let error = measure_all(&ALL, &Interrupt::default(), |experiment| {
            measured.push(experiment.name);
            if experiment.name == ALL[1].name {
                bail!("no such file")
            } else {
                Ok(Ended { asked: 3, failures: 1, ..Ended::default() })
            }
        })
        .unwrap_err();
        assert_eq!(measured, ALL.iter().map(|experiment| experiment.name).collect::<Vec<_>>());
        let wanted = format!("to the end: {}; {} runs failed", ALL[1].name, ALL.len() - 1);
        assert!(error.to_string().contains(&wanted), "{error}");
    }

    #[test]
    fn an_interrupted_suite_names_what_it_has_not_come_to() {
        let interrupt = Interrupt::default();
        let error = measure_all(&ALL[..4], &interrupt, |experiment| {
            if experiment.name == ALL[1].name {
                interrupt.flag().store(true, std::sync::atomic::Ordering::Relaxed);
                bail!("1 of 49 measurements were made")
            }
            Ok(Ended { asked: 1, ..Ended::default() })
        })
        .unwrap_err();
        let (at, left) = (ALL[1].name, format!("{}, {}", ALL[2].name, ALL[3].name));
        let told = format!("ended in {at}; not come to: {left}: 1 of 49 measurements were made");
        assert_eq!(format!("{error:#}"), told);
    }

    #[test]
    fn an_experiment_without_a_case_fails_alone_and_not_among_others() {
        let all = |asked: fn(&str) -> usize| {
            measure_all(&ALL, &Interrupt::default(), |experiment| {
                Ok(Ended { asked: asked(experiment.name), failures: 0, unready: 0, why: Some("no trace".to_owned()) })
            })
        };
        assert!(all(|name| usize::from(name == "load")).is_ok());
        assert_eq!(all(|_| 0).unwrap_err().to_string(), "nothing was measured");
    }

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn options_are_read_and_wrong_ones_refused() {
        let read = |words: &[&str]| {
            let matches = command().try_get_matches_from([&["tenon-bench"], words].concat());
            matches.and_then(|matches| Options::from_arg_matches(matches.subcommand().expect("required").1))
        };
        let options =
            read(&["ycsb", "--quick", "--peers", "tenon,redis-server", "--workloads", "a,WC", "--server-cpus", "0-1"]);
        let options = options.expect("all are known");
        assert!(options.quick && options.peers.len() == 2 && options.workloads[1].name == "WC");
        assert_eq!(options.server_cpus.expect("given").0, [0, 1]);
        let threads = |words: &[&str]| read(words).expect("all are known").threads(8);
        assert_eq!(threads(&["latency"]), (4, 4));
        // What one side is told is nothing to the other.
        assert_eq!(threads(&["latency", "--client-threads", "8"]), (4, 8));
        assert_eq!(threads(&["latency", "--server-cpus", "0-1"]), (2, 4));
        assert_eq!(threads(&["latency", "--server-cpus", "0-1", "--server-threads", "1"]), (1, 4));
        for wrong in [
            &["latency", "--server-cpus", "0,0"][..],
            &["latency", "--rounds", "0"],
            &["latency", "--seconds", "0"],
            &["latency", "--seconds", "-1"],
            &["latency", "--target", "http://x"],
            &["latency", "--protocols", "smtp"],
            &["latency", "--connections", "0"],
            &["load", "--rates", "0"],
            &["load", "--rates", "1000000000000"],
            &["load", "--arrivals", "never"],
            &["ycsb", "--workloads", "G"],
            &["unknown"],
        ] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
