//! Redis's append-only files: which there are, what stands in them, and how one takes another's place.

pub mod append_only;
pub(crate) mod base;
pub mod check;
pub mod directory;
pub mod growth;
mod left;
mod listing;
pub mod manifest;
pub mod names;
pub mod read;

pub use append_only::{AppendOnly, Rewrite, RewriteError};
pub use directory::{Directory, OpenError, Part};
pub use manifest::{Manifest, ManifestError};
pub use names::Names;
pub use read::{Command, ReadError, Reader, Record, is_rdb};

use tenon_journal::log::words as words_of_error;
