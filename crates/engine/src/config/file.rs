//! Reading configuration files in the form of redis.conf: one directive a line, comments, quotes, includes. It knows
//! `include`; every other directive goes to the loader.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use tenon_ds::glob::{Case, glob};

use super::args;
use super::error::{LoadError, LoadProblem, ValueError};
use super::loader::{Loader, Origin};
use super::rewrite::USER;

/// How deep files may include files: more than anybody needs, and an end for those that include themselves.
const INCLUDE_DEPTH_MAX: usize = 16;

impl Loader {
    /// Obeys a file. It is the one that CONFIG REWRITE writes.
    pub fn file(&mut self, path: &Path) -> Result<(), LoadError> {
        let unreadable = |error| LoadError {
            origin: Origin::CommandLine,
            problem: LoadProblem::Read { path: path.to_owned(), error },
        };
        let text = fs::read(path).map_err(unreadable)?;
        // In full and without links, since the working directory may change, and a link must survive a rewrite.
        match fs::canonicalize(path) {
            Ok(file) if file.is_file() => self.set_file(file),
            // A pipe (`<(...)`) is not rewritten, nor is a file that has no name any more (a here-document).
            Ok(_) | Err(_) => self.has_read(path.display().to_string()),
        }
        self.text(&text, &path.display().to_string())
    }

    /// Obeys the text of a file; `name` is what errors call it.
    pub fn text(&mut self, text: &[u8], name: &str) -> Result<(), LoadError> {
        self.nested_text(text, name, 0)
    }

    fn nested_text(&mut self, text: &[u8], name: &str, depth: usize) -> Result<(), LoadError> {
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let origin = Origin::Line { file: name.to_owned(), line: index + 1 };
            let fail = |problem| LoadError { origin: origin.clone(), problem };
            let words = directive(line).map_err(fail)?;
            let Some((directive, rules)) = words.split_first() else { continue };
            // Passwords and patterns of users may be any bytes.
            if directive.eq_ignore_ascii_case(USER.as_bytes()) {
                self.user(rules, &origin)?;
                continue;
            }
            let words = words.iter().map(|word| String::from_utf8(word.clone()).map_err(|_| LoadProblem::NotUtf8));
            let words = words.collect::<Result<Vec<String>, _>>().map_err(fail)?;
            let Some((directive, words)) = words.split_first() else { continue };
            self.obey(directive, words, &origin, depth)?;
        }
        Ok(())
    }

    /// Obeys a directive, which may be to read another file; `depth` is in how many files that were included it stands.
    pub(super) fn obey(
        &mut self,
        directive: &str,
        words: &[String],
        origin: &Origin,
        depth: usize,
    ) -> Result<(), LoadError> {
        if !directive.eq_ignore_ascii_case("include") {
            return self.apply(directive, words, origin);
        }
        if let [path] = words {
            return self.include(path, origin, depth);
        }
        let (name, value) = (directive.to_owned(), Some(words.join(" ")));
        let problem = LoadProblem::Value { name, value, error: ValueError::WrongNumberOfArguments };
        Err(LoadError { origin: origin.clone(), problem })
    }

    fn include(&mut self, path: &str, origin: &Origin, depth: usize) -> Result<(), LoadError> {
        let fail = |problem| LoadError { origin: origin.clone(), problem };
        if depth == INCLUDE_DEPTH_MAX {
            return Err(fail(LoadProblem::IncludeTooDeep));
        }
        for path in included_files(Path::new(self.directory()), path) {
            let text = fs::read(&path);
            let text = text.map_err(|error| fail(LoadProblem::Read { path: path.clone(), error }))?;
            self.nested_text(&text, &path.display().to_string(), depth + 1)?;
        }
        Ok(())
    }
}

/// The words of a line: none for a comment.
pub(super) fn directive(line: &[u8]) -> Result<Vec<Vec<u8>>, LoadProblem> {
    let line = line.trim_ascii();
    if line.starts_with(b"#") {
        return Ok(Vec::new());
    }
    args::split(line).map_err(|args::Unbalanced| LoadProblem::UnbalancedQuotes)
}

/// The files an `include` names: the path itself, or what its wildcards match, in order; they may match nothing. A relative
/// path starts from this directory, in which the server was started, wherever that works meanwhile.
fn included_files(directory: &Path, path: &str) -> Vec<PathBuf> {
    if !path.contains(['*', '?', '[']) {
        return vec![directory.join(path)];
    }
    let mut found = vec![directory.to_owned()];
    for component in Path::new(path).components() {
        match component {
            Component::Normal(pattern) => {
                found = found.iter().flat_map(|directory| matching(directory, pattern)).collect();
            }
            other => found.iter_mut().for_each(|directory| directory.push(other)),
        }
    }
    found
}

/// The entries of a directory whose names match; hidden ones only if the pattern starts with a dot, as in the shell.
fn matching(directory: &Path, pattern: &OsStr) -> Vec<PathBuf> {
    let bytes = pattern.as_encoded_bytes();
    if !bytes.iter().any(|byte| b"*?[".contains(byte)) {
        let path = directory.join(pattern);
        return if path.exists() { vec![path] } else { Vec::new() };
    }
    let shown = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let entries = fs::read_dir(shown).into_iter().flatten().filter_map(io::Result::ok);
    let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
    names.retain(|name| {
        let name = name.as_encoded_bytes();
        (bytes.starts_with(b".") || !name.starts_with(b".")) && glob(bytes, name, Case::Sensitive)
    });
    names.sort();
    names.into_iter().map(|name| directory.join(name)).collect()
}
