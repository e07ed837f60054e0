//! The tests of the crates that hold or lean on `unsafe` code, under Miri. Knows nothing of the tests.

use crate::ci::Outcome;
use crate::workspace::Workspace;
use crate::{fuzz, process};
use anyhow::Result;
use std::process::Command;

/// Runs the tests of ds and store under Miri, where the component can be had.
pub fn run(workspace: &Workspace) -> Result<Outcome> {
    if !fuzz::has_nightly() {
        if !process::in_ci() {
            return Ok(Outcome::Skipped("no nightly toolchain: `rustup toolchain install nightly`".into()));
        }
        fuzz::install_nightly()?;
    }
    if !has_components()? {
        if !process::in_ci() {
            let install = "`rustup +nightly component add miri rust-src`";
            return Ok(Outcome::Skipped(format!("the nightly toolchain lacks Miri: {install}")));
        }
        let mut add = Command::new("rustup");
        add.args(["component", "add", "--toolchain", "nightly", "miri", "rust-src"]);
        // Some nights' toolchains come without Miri; that says nothing about the change under test.
        if let Err(error) = process::run(&mut add) {
            return Ok(Outcome::Skipped(format!("Miri is not available for this nightly toolchain: {error:#}")));
        }
    }
    // Property tests read their seed file and the clock; a few cases are what Miri's speed allows.
    const FLAGS: &str = "-Zmiri-disable-isolation -Zmiri-strict-provenance";
    // An interpreter is one thread; two beside one another take half the time.
    let run = |&(tests, elsewhere): &(&'static [&'static str], &'static [&'static str])| {
        let skipped = SAFE.iter().chain(elsewhere).flat_map(|module| ["--skip", module]);
        miri(workspace, FLAGS, &tests.iter().copied().chain(skipped).collect::<Vec<_>>())
    };
    process::run_two_at_a_time(RUNS.iter().map(run).collect())?;
    // Each seed is another interleaving of the slab's threads, and other places for weak memory to show.
    let seeds = format!("{FLAGS} -Zmiri-many-seeds=1..{SEEDS_END}");
    process::run(&mut miri(workspace, &seeds, &["--package", "tenon-ds", "--test", "slab_threads"]))?;
    Ok(Outcome::Done)
}

/// The tests of the crates with unsafe code whose tests are many, in pieces, the longest first, with what of a piece is left
/// to another: what one interpreter has ended, it takes the next.
const RUNS: [(&[&str], &[&str]); 5] = [
    (&["--package", "tenon-store", "--test", "*", "--"], &[]),
    (&["--package", "tenon-ds", "--lib", "--"], &["hash_table::"]),
    (&["--package", "tenon-ds", "--lib", "--", "hash_table::"], &[]),
    (&["--package", "tenon-store", "--lib", "--"], &[]),
    (&["--package", "tenon-ds", "--test", "*", "--"], &[]),
];

/// Safe code that touches no unsafe code of its own, or none that other tests do not, whose tests take minutes under Miri.
const SAFE: [&str; 19] = [
    "algebra_agrees",
    "evict::hand::",
    "evict::sampled::",
    "evict::turnover::",
    "extents::runs::",
    "samples_are_members",
    "heavy_hitters::",
    "listpack::",
    "packed::",
    "quicklist::",
    "types::bitfield::",
    "types::bitmap::",
    "types::geo::",
    "types::hll::",
    "types::list::",
    "types::rope::",
    "types::set::int_set::",
    "types::stream::",
    "types::zset::gathered::",
];

/// Seeds up to here, exclusive, beside the usual 0.
const SEEDS_END: u32 = 9;

fn miri(workspace: &Workspace, flags: &str, tests: &[&str]) -> Command {
    let mut command = process::nightly(workspace, "cargo");
    command.env("MIRIFLAGS", flags).env("PROPTEST_CASES", "3");
    command.args(["miri", "test"]).args(tests);
    command
}

fn has_components() -> Result<bool> {
    let mut list = Command::new("rustup");
    list.args(["component", "list", "--installed", "--toolchain", "nightly"]);
    let installed = process::output(&mut list)?;
    let has = |name: &str| installed.lines().any(|line| line.starts_with(name));
    Ok(has("miri") && has("rust-src"))
}
