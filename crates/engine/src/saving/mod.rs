//! The data in a file: SAVE, BGSAVE, save points, and what is said of them: an index.

mod file;
mod run;
mod state;
mod synced;

pub use run::{Ending, OnFailure, Refusal};
pub use state::{CalledOff, Facts, Saving};
pub(crate) use synced::{Synced, Syncing};
