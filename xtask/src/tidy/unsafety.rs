//! Where `unsafe` may stand, and that every other crate forbids it. Knows nothing of what the unsafe code does.

use super::code;
use super::finding::Finding;
use super::tree::Tree;

/// The crate of data structures, the entry's memory layout, the ways of scripts on Lua's own stack, the memory that the
/// kernel reads and writes behind an io_uring, and the allocator's options.
static MAY_USE_UNSAFE: [&str; 5] = [
    "crates/ds/",
    "crates/store/src/entry",
    "crates/script/src/raw/",
    "crates/server/src/net/uring/ring.rs",
    "crates/server/src/allocator.rs",
];

/// Crates that hold some of it, and so cannot forbid it.
static CRATES_WITH_UNSAFE: [&str; 4] = ["crates/ds/", "crates/store/", "crates/script/", "crates/server/src/lib.rs"];

/// `unsafe` only where it may be, and forbidden at the root of every other crate.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.rust() {
        if !MAY_USE_UNSAFE.iter().any(|allowed| path.starts_with(allowed)) {
            findings.extend(code::lines_with_word(&code::blank(text), "unsafe").map(|line| {
                let message = format!(
                    "`unsafe` outside {}; use a safe crate, or put a data structure with a safe interface into crates/ds, \
                     where Miri and fuzzing watch it",
                    MAY_USE_UNSAFE.join(", ")
                );
                Finding::line(path, line, message)
            }));
        }
        let may_forbid = !CRATES_WITH_UNSAFE.iter().any(|with| path.starts_with(with));
        if is_crate_root(path) && may_forbid && !code::blank(text).contains("#![forbid(unsafe_code)]") {
            let message = "the crate's root lacks `#![forbid(unsafe_code)]`; add it below the opening sentence, so that \
                           the compiler, not a reviewer, keeps `unsafe` out";
            findings.push(Finding::file(path, message));
        }
    }
    findings
}

fn is_crate_root(path: &str) -> bool {
    let Some((package, file)) = path.rsplit_once("/src/") else { return false };
    let packages = ["crates/", "apps/"].iter().any(|folder| path.starts_with(folder)) || package == "xtask";
    packages && (file == "lib.rs" || file == "main.rs" || file.starts_with("bin/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_code_stays_where_it_may_be() {
        let tree = Tree::made_of(&[
            ("crates/ds/src/lib.rs", "//! x.\nunsafe fn f() {}\n"),
            ("crates/store/src/entry/view.rs", "//! x.\nunsafe { f() }\n"),
            ("crates/store/src/table.rs", "//! x.\n// not unsafe\nlet x = unsafe { f() };\n"),
            ("crates/wire/src/lib.rs", "//! x.\n#![forbid(unsafe_code)]\n"),
            ("crates/engine/src/lib.rs", "//! x. `#![forbid(unsafe_code)]` in words only.\n"),
            ("crates/server/src/main.rs", "//! x.\n"),
        ]);
        let found: Vec<(String, usize)> = check(&tree).into_iter().map(|found| (found.path, found.line)).collect();
        let expected =
            [("crates/engine/src/lib.rs", 0), ("crates/server/src/main.rs", 0), ("crates/store/src/table.rs", 3)];
        assert_eq!(found, expected.map(|(path, line)| (path.to_owned(), line)));
    }
}
