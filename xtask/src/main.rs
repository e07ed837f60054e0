//! Development tasks of Tenon, reached as `cargo xtask TASK`. Knows no crate of the workspace: it builds and runs them.
#![forbid(unsafe_code)]

mod args;
mod bench;
mod ci;
mod docs;
mod fuzz;
mod loom;
mod miri;
mod process;
mod sanitize;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

fn main() -> ExitCode {
    let done = args::parse(std::env::args().skip(1)).and_then(args::Task::run);
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
