//! Relative links and anchors in Markdown lead somewhere, and so do paths of crates that stand there as code. Knows nothing
//! of the web: outside addresses are not tried.

use super::finding::Finding;
use super::tree::Tree;

/// Every relative link in every Markdown file names a committed file or folder, and its anchor a heading there; every path
/// that begins with `crates/` names a committed file or folder.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let pages = tree.texts().filter(|(path, _)| path.ends_with(".md"));
    pages.flat_map(|(path, text)| page(tree, path, text)).collect()
}

fn page(tree: &Tree, path: &str, text: &str) -> Vec<Finding> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut findings = Vec::new();
    for (line, named) in named_paths(text).filter(|(_, named)| !tree.has(named.trim_end_matches('/'))) {
        let message = format!("there is no '{named}'; name the file or folder that took its place");
        findings.push(Finding::line(path, line, message));
    }
    for (line, target) in links(text) {
        if target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
        let resolved = if file.is_empty() { Some(path.to_owned()) } else { resolve(folder, file) };
        let Some(resolved) = resolved.filter(|resolved| tree.has(resolved)) else {
            let message = format!(
                "the link to '{target}' is dead: no such committed file; name the file that took its place, or drop the \
                 sentence, because a dead link sends the reader nowhere"
            );
            findings.push(Finding::line(path, line, message));
            continue;
        };
        let headed = tree.text(&resolved).filter(|_| resolved.ends_with(".md") && !anchor.is_empty());
        if headed.is_some_and(|text| !headings(text).any(|heading| heading == anchor)) {
            let message =
                format!("the link to '{target}' is dead: {resolved} has no heading '#{anchor}'; name one it has");
            findings.push(Finding::line(path, line, message));
        }
    }
    findings
}

/// The path from the root; `None` when it leaves the repository.
fn resolve(folder: &str, link: &str) -> Option<String> {
    let (mut parts, link): (Vec<&str>, &str) = match link.strip_prefix('/') {
        Some(from_root) => (Vec::new(), from_root),
        None => (folder.split('/').filter(|part| !part.is_empty()).collect(), link),
    };
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Link targets with their lines, outside of code.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, text) in prose(text) {
        let text = without_code(text);
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split([')', ' ']).next().unwrap_or_default();
            found.push((line, target.trim_matches(['<', '>']).to_owned()));
        }
        // A reference: `[name]: target`.
        if let Some((_, target)) = text.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]: ")) {
            found.push((line, target.split(' ').next().unwrap_or_default().to_owned()));
        }
    }
    found
}

/// Paths of crates that stand as code within the text, with their lines; not those with a part left open, as `<family>`.
fn named_paths(text: &str) -> impl Iterator<Item = (usize, &str)> {
    prose(text).flat_map(|(line, text)| {
        let spans = text.split('`').skip(1).step_by(2);
        spans
            .filter(|span| span.starts_with("crates/") && !span.contains(['<', '*', ' ']))
            .map(move |span| (line, span))
    })
}

/// Lines outside of fenced blocks, counted from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((index + 1, line))
    })
}

fn without_code(line: &str) -> String {
    line.split('`').enumerate().map(|(index, part)| if index % 2 == 0 { part } else { "" }).collect()
}

/// The anchors of a page's headings, made as GitHub makes them: lower case, blanks to hyphens, punctuation dropped.
fn headings(text: &str) -> impl Iterator<Item = String> {
    prose(text).filter_map(|(_, line)| {
        let title = line.strip_prefix('#')?.trim_start_matches('#').strip_prefix(' ')?;
        let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        Some(kept.collect::<String>().to_lowercase().replace(' ', "-"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_links_are_found_and_others_are_not() {
        let tree = Tree::made_of(&[
            (
                "README.md",
                "[a](docs/a.md) [b](docs/none.md#x) [c](https://example.org/x) `[d](no.md)`\n[e](crates/ds)\n",
            ),
            ("docs/a.md", "# A title, here\n[up](../README.md) [h](#a-title-here) [i](#gone)\n```\n[j](no.md)\n```\n"),
            ("docs/b.md", "[out](../../elsewhere.md)\n\n[ref]: gone.md\n"),
            (
                "docs/c.md",
                "`crates/ds/` `crates/ds/Cargo.toml` `crates/ds/<any>` no code: crates/no\n`crates/ds/old.rs`\n",
            ),
            ("crates/ds/Cargo.toml", ""),
        ]);
        let found: Vec<(String, usize)> = check(&tree).into_iter().map(|found| (found.path, found.line)).collect();
        let expected = [("README.md", 1), ("docs/a.md", 2), ("docs/b.md", 1), ("docs/b.md", 3), ("docs/c.md", 2)];
        assert_eq!(found, expected.map(|(path, line)| (path.to_owned(), line)));
    }
}
