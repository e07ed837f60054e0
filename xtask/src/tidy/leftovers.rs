//! What must not be left in committed code: promises and debugging. Knows nothing of the code around it.

use super::code;
use super::finding::Finding;
use super::tree::Tree;

struct Leftover {
    name: &'static str,
    instead: &'static str,
}

static LEFTOVERS: [Leftover; 3] = [
    Leftover { name: "todo", instead: "write it, or leave it out and say so in the issue" },
    Leftover { name: "unimplemented", instead: "answer with an error of the error table, which a client can read" },
    Leftover { name: "dbg", instead: "use `tracing`, which can be switched off" },
];

/// No macro that marks unfinished work.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.rust() {
        let blanked = code::blank(text);
        for leftover in &LEFTOVERS {
            let called = format!("{}!", leftover.name);
            let lines = code::lines_with_word(&blanked, leftover.name)
                .filter(|line| blanked.lines().nth(line - 1).is_some_and(|text| text.contains(&called)));
            findings.extend(lines.map(|line| {
                let message = format!("`{called}` left over; {}, because it stops a running server", leftover.instead);
                Finding::line(path, line, message)
            }));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_count() {
        let tree = Tree::made_of(&[
            ("a.rs", "fn f() { todo!() }\nfn g() { dbg!(1); }\n"),
            ("b.rs", "// todo!()\nlet todo = \"unimplemented!\";\n"),
        ]);
        let found: Vec<(String, usize)> = check(&tree).into_iter().map(|found| (found.path, found.line)).collect();
        assert_eq!(found, [("a.rs".to_owned(), 1), ("a.rs".to_owned(), 2)]);
    }
}
