//! What must not be left in committed code: promises, debugging, and prints that nobody will see. Knows nothing of the
//! code around it.

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

/// How a test would say, where the test harness swallows it, that it left something out.
const SWALLOWED: &str = "println!(\"skipped";

/// No macro that marks unfinished work, no `skipped:` line that is lost.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.rust() {
        let blanked = code::blank(text);
        for (index, line) in text.lines().enumerate() {
            // The call must be code; in a text of this file it is not.
            let called = line
                .find(SWALLOWED)
                .filter(|at| blanked.lines().nth(index).is_some_and(|code| code[*at..].starts_with('p')));
            if called.is_some() {
                let message = "a test's `skipped:` line printed by a macro; use `writeln!(std::io::stderr(), ...)`, because \
                               the test harness keeps to itself what a test that succeeds prints";
                findings.push(Finding::line(path, index + 1, message));
            }
        }
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
    fn a_lost_skip_is_found() {
        let code = "fn f() { eprintln!(\"skipped: {x}\") }\nfn g() { writeln!(stderr(), \"skipped: {x}\") }\n";
        let tree = Tree::made_of(&[("a.rs", code)]);
        assert_eq!(check(&tree).into_iter().map(|found| found.line).collect::<Vec<_>>(), [1]);
    }

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
