//! Each Rust file opens with one `//!` sentence. Knows nothing of what the sentence says.

use super::finding::Finding;
use super::tree::Tree;

/// The first line is a `//!` line, and the sentence it begins ends.
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().filter_map(|(path, text)| head(text).map(|message| Finding::line(path, 1, message))).collect()
}

fn head(text: &str) -> Option<String> {
    const INSTEAD: &str = "open the file with a `//!` sentence that says what it is and what it deliberately does not \
                           know, because a reader decides by it whether to read on";
    let head: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
    let paragraph = head.split(|line| line.is_empty()).next().unwrap_or_default().join(" ");
    if paragraph.is_empty() {
        return Some(format!("no sentence at the top; {INSTEAD}"));
    }
    let ends = paragraph.contains(". ") || paragraph.ends_with(['.', ':', '!', '?', ')', '`']);
    (!ends).then(|| format!("the opening is no whole sentence; {INSTEAD}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_sentence_is_a_head() {
        let tree = Tree::made_of(&[
            ("a.rs", "//! What it is. Knows no socket.\nuse x;\n"),
            ("b.rs", "//! One sentence over\n//! two lines.\n\nuse x;\n"),
            ("c.rs", "use x;\n//! Too late.\n"),
            ("d.rs", "//! Half a\nuse x;\n"),
            ("e.rs", ""),
            ("f.md", "no Rust"),
        ]);
        let found: Vec<String> = check(&tree).into_iter().map(|finding| finding.path).collect();
        assert_eq!(found, ["c.rs", "d.rs", "e.rs"]);
    }
}
