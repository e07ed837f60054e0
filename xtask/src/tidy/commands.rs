//! Every declared command has a transcript, and the pages made from tables exist. Knows only the form of a declaration:
//! a `static` with `name: "..."` lines, nested ones for subcommands.

use super::code;
use super::finding::Finding;
use super::tree::Tree;

const SOURCES: &str = "crates/commands/src/";
const MEMCACHE_SOURCES: &str = "crates/commands/src/memcache/";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrontEnd {
    Redis,
    Memcache,
}

#[derive(Debug, PartialEq, Eq)]
struct Declaration {
    front_end: FrontEnd,
    name: String,
    path: String,
    line: usize,
}

struct Page {
    path: &'static str,
    made_from: &'static str,
}

/// Pages that tests make from tables, and the sources whose presence asks for them.
static PAGES: [Page; 3] = [
    Page { path: "docs/commands.md", made_from: "crates/commands/src/redis" },
    Page { path: "docs/configuration.md", made_from: "crates/engine/src/config" },
    Page { path: "docs/experiments.md", made_from: "crates/bench/src/experiments" },
];

/// A transcript for each command, a page for each table.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let declared: Vec<Declaration> = tree
        .rust()
        .filter(|(path, _)| path.starts_with(SOURCES))
        .flat_map(|(path, text)| declarations(path, text))
        .collect();
    let mut findings: Vec<Finding> =
        declared.iter().filter_map(|declaration| without_transcript(tree, declaration, &declared)).collect();
    for page in &PAGES {
        if tree.has(page.made_from) && !tree.has(page.path) {
            let message = format!("missing; write it from {} with `cargo xtask docs`", page.made_from);
            findings.push(Finding::file(page.path, message));
        }
    }
    findings
}

fn declarations(path: &str, text: &str) -> Vec<Declaration> {
    let front_end = if path.starts_with(MEMCACHE_SOURCES) { FrontEnd::Memcache } else { FrontEnd::Redis };
    // Comments and literals are blanked to find the statics; the names themselves are read from the text, whose lines
    // and columns are the same.
    let blanked = code::blank(text);
    let lines = code::without_tests(&blanked).lines().zip(text.lines()).enumerate();
    let mut in_static = false;
    let mut found = Vec::new();
    for (index, (code, line)) in lines {
        in_static |= code.contains("static ") && code.contains("Command");
        if in_static && let Some(name) = declared_name(code, line) {
            found.push(Declaration { front_end, name: name.to_owned(), path: path.to_owned(), line: index + 1 });
        }
        if code.starts_with("};") || code.starts_with("];") || code.contains("static ") && code.ends_with("};") {
            in_static = false;
        }
    }
    found
}

fn declared_name<'a>(code: &str, line: &'a str) -> Option<&'a str> {
    let at = code
        .match_indices("name:")
        .map(|(at, _)| at)
        .find(|at| !code[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))?;
    line[at + "name:".len()..].trim_start().strip_prefix('"')?.split('"').next()
}

fn without_transcript(tree: &Tree, declaration: &Declaration, all: &[Declaration]) -> Option<Finding> {
    let file = format!("{}.txt", declaration.name.to_lowercase().replace([' ', '|'], "-"));
    let folder = match declaration.front_end {
        FrontEnd::Redis => "tests/transcripts/redis/",
        FrontEnd::Memcache => "tests/transcripts/memcache/",
    };
    let suffix = format!("/{file}");
    if tree.paths().any(|path| path.starts_with(folder) && path.ends_with(&suffix)) {
        return None;
    }
    // A container does nothing of its own: the transcripts of its subcommands show it.
    let prefix = format!("{} ", declaration.name);
    if all.iter().any(|other| other.front_end == declaration.front_end && other.name.starts_with(&prefix)) {
        return None;
    }
    let message = format!(
        "'{}' has no transcript; write its commands into {folder}<family>/{file} and let `TENON_BLESS=oracle` fill in the \
         answers, because what no transcript shows is not known to match the original",
        declaration.name
    );
    Some(Finding::line(&declaration.path, declaration.line, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: &str = "//! x.\npub static CLIENT: Command = Command {\n    name: \"CLIENT\",\n    subcommands: &[\n        \
                          Command { name: \"CLIENT ID\", run: x },\n        Command { name: \"CLIENT KILL\" },\n    ],\n};\n\n\
                          fn other() { Other { name: \"not a command\" }; }\n\n\
                          #[cfg(test)]\nmod tests {\n    static TOY: Command = Command { name: \"TOY\" };\n}\n";

    #[test]
    fn declarations_are_read_with_their_subcommands() {
        let found = declarations("crates/commands/src/redis/connection/client.rs", CLIENT);
        let names: Vec<(&str, usize)> = found.iter().map(|found| (found.name.as_str(), found.line)).collect();
        assert_eq!(names, [("CLIENT", 3), ("CLIENT ID", 5), ("CLIENT KILL", 6)]);
    }

    #[test]
    fn a_command_without_a_transcript_is_named() {
        let tree = Tree::made_of(&[
            ("crates/commands/src/redis/connection/client.rs", CLIENT),
            (
                "crates/commands/src/memcache/get.rs",
                "//! x.\nstatic GET: Command = Command {\n    name: \"get\",\n};\n",
            ),
            ("tests/transcripts/redis/connection/client-id.txt", ""),
            ("tests/transcripts/redis/string/get.txt", ""),
            ("docs/commands.md", ""),
        ]);
        let found: Vec<Finding> = check(&tree);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].message.contains("memcache/<family>/get.txt"), "{found:?}");
        assert!(
            found[1].message.contains("'CLIENT KILL'") && found[1].message.contains("client-kill.txt"),
            "{found:?}"
        );
    }

    #[test]
    fn a_table_asks_for_its_page() {
        let tree = Tree::made_of(&[("crates/engine/src/config/mod.rs", "//! x.\n")]);
        assert_eq!(check(&tree).into_iter().map(|found| found.path).collect::<Vec<_>>(), ["docs/configuration.md"]);
    }
}
