//! The files of the repository with their bytes, as the checks see them. Knows no rule.

use crate::process;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::process::Command;

/// Files by their path from the root, with `/` between folders.
#[derive(Debug, Default)]
pub struct Tree {
    files: BTreeMap<String, Vec<u8>>,
}

impl Tree {
    /// What is committed or would be: all that git does not ignore.
    pub fn of(workspace: &Workspace) -> Result<Tree> {
        let mut list = Command::new("git");
        list.current_dir(&workspace.root);
        let listed = process::output(list.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]))?;
        let mut tree = Tree::default();
        for path in listed.split('\0').filter(|path| !path.is_empty()) {
            let file = workspace.root.join(path);
            // A file deleted but not yet committed as such is still listed.
            if file.is_file() {
                tree.files.insert(path.to_owned(), std::fs::read(&file).with_context(|| path.to_owned())?);
            }
        }
        Ok(tree)
    }

    /// A made-up tree.
    #[cfg(test)]
    pub fn made_of(files: &[(&str, &str)]) -> Tree {
        Tree { files: files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect() }
    }

    /// Every file that is UTF-8, in the order of its path.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|(path, bytes)| Some((path.as_str(), std::str::from_utf8(bytes).ok()?)))
    }

    /// Every Rust source.
    pub fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts().filter(|(path, _)| path.ends_with(".rs"))
    }

    /// The text of one file.
    pub fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(self.files.get(path)?).ok()
    }

    /// Whether `path` is a file, or a folder that holds one; the root is `""`.
    pub fn has(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty() || self.files.contains_key(path) || self.paths().any(|file| file.starts_with(&folder))
    }

    /// Every path.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }
}
