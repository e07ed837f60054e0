//! Loads: threads with event loops that keep connections busy and count what comes back. Know no request's bytes.

mod connection;
mod crew;
mod drive;
pub mod opening;
mod outcome;
mod pace;
mod plan;
mod run;
mod workload;

pub use crew::{Crew, share};
pub use opening::Statement;
pub use outcome::{INTERVAL, Outcome, least_over_median};
pub use pace::{Arrivals, Draw, Pace};
pub use plan::{Observer, Plan, Until};
pub use run::run;
pub use workload::{Reply, Workload};
