//! The program `tenon-bench`. Knows nothing but its command line.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = tenon_bench::cli::command().get_matches();
    match tenon_bench::cli::run(&matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tenon-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
