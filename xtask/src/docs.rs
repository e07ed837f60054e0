//! Building the crates' documentation and rewriting the generated pages. Knows not what the pages say: tests in the
//! crates that own the tables compare them, and write them when `TENON_BLESS=1`.

use crate::process;
use crate::workspace::Workspace;
use anyhow::Result;

/// Part of the name of each test that compares a generated page with its table.
const PAGE_TESTS: &str = "up_to_date";

/// Rewrites the generated pages under `docs/`.
pub fn rewrite(workspace: &Workspace) -> Result<()> {
    process::run(process::cargo(workspace).env("TENON_BLESS", "1").args(["test", "--workspace", PAGE_TESTS]))?;
    process::run(std::process::Command::new("git").current_dir(&workspace.root).args(["status", "--short", "docs"]))
}

/// Builds the documentation of every crate; a warning is an error.
pub fn build(workspace: &Workspace) -> Result<()> {
    let mut command = process::cargo(workspace);
    command.env("RUSTDOCFLAGS", "-D warnings").args(["doc", "--workspace", "--no-deps", "--document-private-items"]);
    process::run(&mut command)
}
