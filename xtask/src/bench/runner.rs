//! Builds the server, runs the experiments that were asked for and prints one report. Knows their order, not their work.

use super::context::{Context, Options, Scale};
use super::measure::Perf;
use super::placement::{self, Placement};
use super::reach::{self, Results};
use super::report::Table;
use super::{
    callgrind, collections, cross_check, growth, memcached, memory, persistence, servers, throughput, workers,
};
use crate::process;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result, bail};

/// Measures, prints the report, and keeps it as `bench/report.md` in the build directory.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    if process::find("taskset").is_none() {
        bail!("measuring needs taskset: install the package `util-linux`");
    }
    // A binary named by the caller is measured as it is.
    if std::env::var_os("TENON_BIN").is_none() {
        process::run(process::cargo(workspace).args(["build", "--release", "--package", "tenon-server"]))?;
    }
    let scratch = workspace.target.join("bench");
    std::fs::create_dir_all(&scratch).with_context(|| scratch.display().to_string())?;
    let (programs, skipped) = servers::find(workspace, &scratch);
    skipped.iter().for_each(|line| eprintln!("{line}"));
    if programs.is_empty() {
        bail!("there is no server to measure");
    }
    let options = Options { filter: options.filter.clone(), ..*options };
    let scale = if options.quick { Scale::QUICK } else { Scale::FULL };
    let mut context = Context { options, scale, programs, perf: Perf::available(), scratch, failures: Vec::new() };

    let mut report = heading(&context, &skipped)?;
    let mut results = Results { throughput: throughput::run(&mut context)?, ..Results::default() };
    section(&mut report, "Throughput, latency, cost of an operation", &throughput::table(&results.throughput));
    if context.options.callgrind {
        results.callgrind = callgrind::run(&mut context)?;
        section(&mut report, "User instructions under valgrind", &callgrind::table(&results.callgrind));
    }
    if context.options.cross_check {
        section(&mut report, "Cross-check with redis-benchmark", &cross_check::run(&mut context)?);
    }
    results.memory = memory::run(&mut context)?;
    section(&mut report, "Memory", &memory::table(&results.memory));
    results.workers = workers::run(&mut context)?;
    section(&mut report, "Two workers, two client threads", &workers::table(&results.workers));
    results.growth = growth::run(&mut context)?;
    section(&mut report, "Growth of the keyspace", &growth::table(&results.growth));
    results.memcached = memcached::run(&mut context)?;
    section(&mut report, "memcached's requests", &memcached::table(&results.memcached));
    results.collections = collections::run(&mut context)?;
    section(&mut report, "Collections and scripts", &collections::table(&results.collections));
    results.collections_memory = collections::run_memory(&mut context)?;
    section(&mut report, "Memory of collections", &collections::memory_table(&results.collections_memory));
    results.log = persistence::run(&mut context)?;
    section(&mut report, "The log", &persistence::table(&results.log));
    results.snapshot = persistence::run_snapshot(&mut context)?;
    section(&mut report, "A snapshot, and loading it", &persistence::snapshot_table(&results.snapshot));
    section(&mut report, "Reach", &reach::table(&results));
    failures(&mut report, &context.failures);

    print!("{report}");
    let file = context.scratch.join("report.md");
    std::fs::write(&file, &report).with_context(|| file.display().to_string())?;
    eprintln!("\nkept in {}", file.display());
    if !context.failures.is_empty() {
        bail!("{} runs failed their own check", context.failures.len());
    }
    Ok(())
}

fn heading(context: &Context, skipped: &[String]) -> Result<String> {
    let placement = Placement::for_threads(1, 1)?;
    let mut text = "# cargo xtask bench\n\n".to_owned();
    for program in &context.programs {
        text += &format!("- {} {}\n", program.name, program.version);
    }
    skipped.iter().for_each(|line| text += &format!("- {line}\n"));
    let scale = &context.scale;
    text += &format!(
        "\n{} keys, 50 connections, medians of {} interleaved rounds of {:?}; server on core {}, client on core {}{}.\n",
        scale.keys,
        scale.rounds,
        scale.measured,
        placement::list(&placement.server),
        placement::list(&placement.client),
        if placement.shared() { " (too few cores to keep them apart)" } else { "" },
    );
    if context.options.quick {
        text += "\n**Quick run: it shows that the measurements work; its figures are not to be compared.**\n";
    }
    if !context.perf {
        let instead = if context.options.callgrind { "" } else { "; `--callgrind` counts user instructions instead" };
        text += &format!("\nperf may not count instructions here{instead}.\n");
    }
    Ok(text)
}

fn section(report: &mut String, title: &str, table: &Table) {
    if !table.is_empty() {
        *report += &format!("\n## {title}\n\n{}", table.markdown());
    }
}

fn failures(report: &mut String, failures: &[String]) {
    if failures.is_empty() {
        return;
    }
    *report += "\n## Failed\n\n";
    failures.iter().for_each(|failure| *report += &format!("- {failure}\n"));
}
