//! User instructions an operation, counted by valgrind: the difference between two run lengths. Knows nothing of cycles
//! or the kernel, which valgrind does not see.

use super::case::{self, Case};
use super::context::{CONNECTIONS, Context};
use super::load::{self, Load, Plan, Until};
use super::placement::Placement;
use super::report::{Table, figure};
use super::servers::{Program, Start};
use super::throughput::fill;
use crate::process;
use anyhow::{Context as _, Result, bail};
use std::path::Path;
use std::time::Duration;

/// Few keys: what a table's size does to the count is small, and every one is stored under valgrind.
const KEYS: u64 = 10_000;

/// A server's count in one case.
#[derive(Debug)]
pub struct Row {
    /// The case.
    pub case: Case,
    /// The server's name.
    pub server: &'static str,
    /// User instructions an operation.
    pub user_instructions: f64,
}

/// Counts every case on every server.
pub fn run(context: &mut Context) -> Result<Vec<Row>> {
    if process::find("valgrind").is_none() {
        bail!("--callgrind needs valgrind: install the package `valgrind`");
    }
    let placement = Placement::for_threads(1, 1)?;
    let mut rows = Vec::new();
    for case in case::all() {
        let name = format!("callgrind/{}", case.name());
        if !context.wants_beside("callgrind", &case) {
            continue;
        }
        eprintln!("{name}");
        for program in context.programs.clone() {
            if !program.family.protocols().contains(&case.protocol) {
                continue;
            }
            match counted(context, &program, &case, &placement) {
                Ok(user_instructions) => rows.push(Row { case, server: program.name, user_instructions }),
                Err(error) => context.failed(&name, program.name, &error),
            }
        }
    }
    Ok(rows)
}

/// Start, loading and end cost the same in both runs; the difference is the operations'.
fn counted(context: &Context, program: &Program, case: &Case, placement: &Placement) -> Result<f64> {
    let short = context.scale.operations_callgrind;
    let long = 3 * short;
    let of_short = total(context, program, case, placement, short)?;
    let of_long = total(context, program, case, placement, long)?;
    Ok((of_long as f64 - of_short as f64) / (long - short) as f64)
}

fn total(context: &Context, program: &Program, case: &Case, placement: &Placement, operations: u64) -> Result<u64> {
    let counts = context.scratch.join("callgrind.out");
    let under =
        ["valgrind".to_owned(), "--tool=callgrind".to_owned(), format!("--callgrind-out-file={}", counts.display())];
    let patience = Duration::from_secs(60);
    let start = Start { under: &under, patience, ..Start::new(1, &placement.server, &context.scratch) };
    let mut server = program.start(&start)?;
    fill(&server, KEYS, placement)?;
    let load = Load {
        address: server.address(case.protocol).context("the case's protocol is spoken")?,
        protocol: case.protocol,
        operation: case.operation,
        plan: Plan::AtRandom { keys: KEYS, seed: 1, until: Until::Operations(operations) },
        connections: CONNECTIONS,
        threads: 1,
        pipeline: case.pipeline,
        cores: &placement.client,
    };
    load::run(&load)?;
    server.stop()?;
    read_total(&counts)
}

fn read_total(counts: &Path) -> Result<u64> {
    let text = std::fs::read(counts).with_context(|| counts.display().to_string())?;
    let text = String::from_utf8_lossy(&text);
    totals(&text).with_context(|| format!("{} has no totals", counts.display()))
}

/// The cost line of the callgrind format.
fn totals(text: &str) -> Option<u64> {
    let line =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok());
    line("totals:").or_else(|| line("summary:"))
}

/// The rows as a table.
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&["case", "server", "user instr/op (callgrind)"]);
    for row in rows {
        table.row([row.case.name(), row.server.to_owned(), figure(row.user_instructions)]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_totals_are_read() {
        assert_eq!(totals("events: Ir\nfn=(1) main\n1 20\nsummary: 7\n\ntotals: 1234\n"), Some(1234));
        assert_eq!(totals("summary: 55\n"), Some(55));
        assert_eq!(totals("nothing"), None);
    }
}
