//! File names that say nothing, and index files that say too much. Knows nothing of the code but where functions begin.

use super::code;
use super::finding::Finding;
use super::tree::Tree;

static EMPTY_NAMES: [&str; 6] = ["utils.rs", "util.rs", "imp.rs", "common.rs", "helpers.rs", "misc.rs"];

/// No file is named after nothing, and `mod.rs` and `lib.rs` hold no functions.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.rust() {
        let name = path.rsplit('/').next().unwrap_or(path);
        if EMPTY_NAMES.contains(&name) {
            let message = format!(
                "'{name}' names no subject; name the file after the noun or verb it holds, because everything ends up \
                 in a file that could hold anything"
            );
            findings.push(Finding::file(path, message));
        }
        if (name == "mod.rs" && !is_shared_by_tests(path)) || name == "lib.rs" {
            findings.extend(functions(text).map(|line| {
                let message = format!(
                    "a function in '{name}', which is an index; move it to a file named after what it does, because an \
                     index is read to find things"
                );
                Finding::line(path, line, message)
            }));
        }
    }
    findings
}

/// Whether it is `tests/<name>/mod.rs`: what several test programs share has no other place, because cargo would make
/// `tests/<name>.rs` a test program of its own.
fn is_shared_by_tests(path: &str) -> bool {
    path.trim_end_matches("/mod.rs").rsplit('/').nth(1) == Some("tests")
}

/// Lines that begin a function outside of the unit tests.
fn functions(text: &str) -> impl Iterator<Item = usize> {
    let blanked = code::blank(text);
    let lines: Vec<usize> = code::lines_with_word(code::without_tests(&blanked), "fn")
        .filter(|line| {
            // `fn(u8)` is a type; `fn name` begins a function.
            let line = blanked.lines().nth(line - 1).unwrap_or_default();
            line.split("fn").skip(1).any(|rest| rest.starts_with(' ') && !rest.trim_start().starts_with('('))
        })
        .collect();
    lines.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_a_subject_and_logic_in_an_index_are_found() {
        let tree = Tree::made_of(&[
            ("crates/a/src/utils.rs", "//! x.\n"),
            ("crates/a/src/lib.rs", "//! fn in a comment.\npub mod b;\npub type F = fn(u8);\n"),
            ("crates/a/src/b/mod.rs", "//! x.\nmod c;\n\npub fn logic() {}\n"),
            ("crates/a/src/b/c.rs", "//! x.\npub fn logic() {}\n"),
            ("crates/a/tests/feed/mod.rs", "//! x.\npub fn feed() {}\n"),
            ("crates/a/src/d/mod.rs", "//! x.\n#[cfg(test)]\nmod tests {\n    fn check() {}\n}\n"),
        ]);
        let found: Vec<(String, usize)> = check(&tree).into_iter().map(|found| (found.path, found.line)).collect();
        assert_eq!(found, [("crates/a/src/b/mod.rs".to_owned(), 4), ("crates/a/src/utils.rs".to_owned(), 0)]);
    }
}
