//! Paths for people to read and type, who need not be where the server is.

use std::path::{self, Path, PathBuf};

/// The path from the root on, or as it was said where the working directory is not known.
pub(crate) fn whole_path(path: &Path) -> PathBuf {
    path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}
