//! Files stay short enough to hold in the head. Knows only line counts.

use super::finding::Finding;
use super::tree::Tree;

/// Above this a file is listed.
const LINES_LISTED: usize = 600;
/// Above this tidy fails.
const LINES_MAX: usize = 700;

/// Files that are too long.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let long = tree.rust().filter(|(_, text)| text.lines().count() > LINES_MAX);
    long.map(|(path, text)| {
        let message = format!(
            "{} lines, more than {LINES_MAX}; split it into siblings in a folder of its name, each with one subject, \
             because nobody finds anything in long files",
            text.lines().count()
        );
        Finding::file(path, message)
    })
    .collect()
}

/// Files that are about to become too long, for information.
pub fn listed(tree: &Tree) -> Vec<String> {
    let lengths = tree.rust().map(|(path, text)| (path, text.lines().count()));
    let long = lengths.filter(|(_, lines)| (LINES_LISTED + 1..=LINES_MAX).contains(lines));
    long.map(|(path, lines)| format!("{path}: {lines} lines; at {LINES_MAX} it must be split")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_are_listed_then_refused() {
        let (fine, long, too_long) = ("x\n".repeat(600), "x\n".repeat(601), "x\n".repeat(701));
        let tree = Tree::made_of(&[("a.rs", &fine), ("b.rs", &long), ("c.rs", &too_long), ("d.txt", &too_long)]);
        assert_eq!(check(&tree).into_iter().map(|finding| finding.path).collect::<Vec<_>>(), ["c.rs"]);
        assert_eq!(listed(&tree), ["b.rs: 601 lines; at 700 it must be split"]);
    }
}
