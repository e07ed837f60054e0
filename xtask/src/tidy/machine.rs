//! What ties a file to one machine, and texts that must be there. Knows no rule about code.

use super::finding::Finding;
use super::tree::Tree;

/// Paths that exist on one machine only. Written in two parts, or this file would break its own rule.
static MACHINE_PATHS: [[&str; 2]; 2] = [["/wo", "rk/"], ["/ro", "ot/"]];

/// Hosts that packages come from. Every user has their own mirror set in their tools.
static REGISTRY_HOSTS: [[&str; 2]; 9] = [
    ["index.crates", ".io"],
    ["static.crates", ".io"],
    ["pypi", ".org"],
    ["pythonhosted", ".org"],
    ["registry.npmjs", ".org"],
    ["deb.debian", ".org"],
    ["archive.ubuntu", ".com"],
    ["static.rust-lang", ".org"],
    ["proxy.golang", ".org"],
];

struct Text {
    path: &'static str,
    holds: &'static str,
}

/// The licence texts the manifests promise.
static LICENCES: [Text; 2] = [
    Text { path: "LICENSE-MIT", holds: "Permission is hereby granted, free of charge" },
    Text { path: "LICENSE-APACHE", holds: "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION" },
];

/// No machine's paths or hosts, and the licences in full.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        // Cargo writes the name of its index into the lock file.
        if path.ends_with("Cargo.lock") {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            findings.extend(breach(line).map(|message| Finding::line(path, index + 1, message)));
        }
    }
    for licence in &LICENCES {
        if !tree.text(licence.path).is_some_and(|text| text.contains(licence.holds)) {
            let message = "the licence's full text is missing; put it back, because the manifests offer it to the user";
            findings.push(Finding::file(licence.path, message));
        }
    }
    findings
}

fn breach(line: &str) -> Option<String> {
    for parts in &MACHINE_PATHS {
        let path = parts.concat();
        let absolute = line.match_indices(&path).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}' | ')' | '~'))
        });
        if absolute {
            return Some(format!(
                "'{path}' is a path of one machine; write it from the workspace's root, or take it from an environment \
                 variable, because a clone lies elsewhere"
            ));
        }
    }
    let host = REGISTRY_HOSTS.iter().map(|parts| parts.concat()).find(|host| line.contains(host.as_str()))?;
    Some(format!("'{host}' is a registry's host; name the package and its tool, because users have their own mirrors"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITH_LICENCES: [(&str, &str); 2] = [
        ("LICENSE-MIT", "Permission is hereby granted, free of charge, ..."),
        ("LICENSE-APACHE", "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION ..."),
    ];

    #[test]
    fn machine_paths_and_hosts_are_found() {
        let path = MACHINE_PATHS[0].concat();
        let host = REGISTRY_HOSTS[2].concat();
        let lines = format!("cd {path}x\nsrc{path}x\n\nhttps://{host}/simple\ntwo words\n");
        let tree =
            Tree::made_of(&[&[("a.sh", lines.as_str()), ("Cargo.lock", lines.as_str())], &WITH_LICENCES[..]].concat());
        let found: Vec<(String, usize)> = check(&tree).into_iter().map(|found| (found.path, found.line)).collect();
        assert_eq!(found, [("a.sh".to_owned(), 1), ("a.sh".to_owned(), 4)]);
    }

    #[test]
    fn a_licence_must_be_there_in_full() {
        let tree = Tree::made_of(&[("LICENSE-MIT", "see elsewhere"), WITH_LICENCES[1]]);
        assert_eq!(check(&tree).into_iter().map(|found| found.path).collect::<Vec<_>>(), ["LICENSE-MIT"]);
    }
}
