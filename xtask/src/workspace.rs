//! Where the workspace, its build directory and its crates lie. Knows nothing of what they hold.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// The workspace this program was built from.
#[derive(Debug)]
pub struct Workspace {
    /// The directory of the root `Cargo.toml`.
    pub root: PathBuf,
    /// Cargo's build directory.
    pub target: PathBuf,
}

impl Workspace {
    /// Finds both from where cargo runs this program; no path is compiled in.
    pub fn find() -> Result<Workspace> {
        let manifest_dir = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let start = match manifest_dir {
            Some(dir) => dir,
            None => std::env::current_dir().context("the current directory cannot be read")?,
        };
        let root = start
            .ancestors()
            .find(|dir| is_workspace_root(dir))
            .with_context(|| format!("{} is not inside Tenon's workspace", start.display()))?
            .to_path_buf();
        // This program lies in TARGET/PROFILE/xtask.
        let program = std::env::current_exe().context("this program's own path cannot be read")?;
        let target =
            program.ancestors().nth(2).context("this program does not lie in a build directory")?.to_path_buf();
        Ok(Workspace { root, target })
    }

    /// The `tenon` binary that cargo builds in `profile`'s directory.
    pub fn tenon(&self, profile: &str) -> PathBuf {
        self.target.join(profile).join("tenon")
    }
}

fn is_workspace_root(dir: &Path) -> bool {
    std::fs::read_to_string(dir.join("Cargo.toml")).is_ok_and(|text| text.lines().any(|line| line == "[workspace]"))
}
