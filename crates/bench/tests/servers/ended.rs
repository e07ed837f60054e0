//! Running a program of the bench to its end, for so long at most.

use std::process::{Command, Output};
use std::time::Duration;
use tenon_testkit::patience::run_within;

/// Far longer than any of these takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// What a program has written that has no input.
pub fn ended(mut command: Command) -> Output {
    run_within(PATIENCE, &mut command).expect("it runs")
}
