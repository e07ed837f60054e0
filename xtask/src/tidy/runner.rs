//! Runs every check over the repository and prints what they found. Knows the checks' names, not their rules.

use super::finding::Finding;
use super::tree::Tree;
use super::{commands, edges, heads, leftovers, links, machine, names, sizes, unsafety};
use crate::workspace::Workspace;
use anyhow::{Result, bail};

static CHECKS: [fn(&Tree) -> Vec<Finding>; 9] = [
    edges::check,
    heads::check,
    sizes::check,
    names::check,
    unsafety::check,
    links::check,
    commands::check,
    machine::check,
    leftovers::check,
];

/// Checks all that git does not ignore.
pub fn run(workspace: &Workspace) -> Result<()> {
    let tree = Tree::of(workspace)?;
    let mut findings: Vec<Finding> = CHECKS.iter().flat_map(|check| check(&tree)).collect();
    findings.sort();
    for near in sizes::listed(&tree) {
        println!("note: {near}");
    }
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        bail!("tidy: {} to put right", findings.len());
    }
    println!("tidy: {} files in order", tree.paths().count());
    Ok(())
}
