//! A small closed-loop load generator for both protocols. Knows a server by its address only.

mod connection;
mod drive;
mod fill;
mod replies;
mod requests;

pub use drive::{INTERVAL, Load, Outcome, Plan, Until, run, run_watching};
pub use fill::fill;
pub use requests::{KEY_LEN, Operation, Protocol, RANDOM};
