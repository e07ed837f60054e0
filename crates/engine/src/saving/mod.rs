//! The data in a file: SAVE, BGSAVE, save points, and what is said of them: an index.

mod end;
mod file;
mod run;
mod state;
mod synced;

pub use end::{Ending, OnFailure};
pub use file::saver_of;
pub use run::{NotBegun, Refusal};
pub use state::{CalledOff, Facts, Saving};
pub(crate) use synced::{Synced, Syncing};
