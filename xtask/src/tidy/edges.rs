//! Who may import whom: the layers of the design as a table, against every `Cargo.toml`. Knows no source file.

use super::finding::Finding;
use super::tree::Tree;
use toml::Value;

/// A crate and the crates of the workspace it may depend on.
struct Layer {
    name: &'static str,
    may_use: &'static [&'static str],
}

/// Lowest layer first, by folder name.
static LAYERS: [Layer; 18] = [
    Layer { name: "ds", may_use: &[] },
    Layer { name: "wire", may_use: &[] },
    Layer { name: "store", may_use: &["ds"] },
    Layer { name: "journal", may_use: &["ds", "wire"] },
    Layer { name: "client", may_use: &["wire"] },
    Layer { name: "persist", may_use: &["store", "ds", "journal", "wire"] },
    Layer { name: "script", may_use: &["ds", "wire"] },
    Layer { name: "analytics", may_use: &["store"] },
    Layer { name: "replication", may_use: &["persist", "journal", "wire"] },
    Layer { name: "cluster", may_use: &["persist", "journal", "wire"] },
    Layer { name: "engine", may_use: BELOW_ENGINE },
    Layer { name: "commands", may_use: &["engine", "client"] },
    Layer { name: "frontend", may_use: &["commands", "engine", "wire"] },
    Layer { name: "embed", may_use: &["commands", "engine"] },
    Layer { name: "server", may_use: BELOW_SERVER },
    Layer { name: "bench", may_use: &["client"] },
    Layer { name: "testkit", may_use: &["embed", "client"] },
    Layer { name: "xtask", may_use: &[] },
];

const BELOW_ENGINE: &[&str] =
    &["ds", "wire", "store", "journal", "persist", "script", "analytics", "replication", "cluster"];

/// The server wires the lower crates together.
const BELOW_SERVER: &[&str] = &[
    "frontend",
    "commands",
    "engine",
    "ds",
    "wire",
    "store",
    "journal",
    "persist",
    "script",
    "analytics",
    "replication",
    "cluster",
];

const APP: &[&str] = &["client", "embed"];

/// What any crate's tests may use besides.
const FOR_TESTS: &[&str] = &["testkit", "client"];

/// What testkit runs servers in process with until `embed` exists.
const TESTKIT_BEFORE_EMBED: &[&str] = &["frontend", "commands", "engine"];

const PREFIX: &str = "tenon-";

/// Every dependency on a crate of the workspace follows the table.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let manifests = tree.texts().filter(|(path, _)| {
        path.ends_with("/Cargo.toml") && ["crates/", "apps/", "xtask/"].iter().any(|folder| path.starts_with(folder))
    });
    manifests.flat_map(|(path, text)| manifest(tree, path, text)).collect()
}

fn manifest(tree: &Tree, path: &str, text: &str) -> Vec<Finding> {
    let table: toml::Table = match text.parse() {
        Ok(table) => table,
        Err(error) => return vec![Finding::file(path, format!("not a manifest cargo can read: {error}"))],
    };
    let folder = path.trim_end_matches("/Cargo.toml");
    let name = folder.rsplit('/').next().unwrap_or(folder);
    let Some(may_use) = may_use(tree, folder, name) else {
        let message = format!(
            "the crate '{name}' has no layer; give it one in {}, after section \"Overview\" of ARCHITECTURE.md, so that \
             its edges can be checked",
            file!()
        );
        return vec![Finding::file(path, message)];
    };
    let mut findings = Vec::new();
    for (section, dependency) in dependencies(&table) {
        let Some(other) = dependency.strip_prefix(PREFIX) else { continue };
        let for_tests = section == "dev-dependencies";
        if may_use.contains(&other) || for_tests && FOR_TESTS.contains(&other) {
            continue;
        }
        let allowed = if may_use.is_empty() { "nothing of the workspace".to_owned() } else { may_use.join(", ") };
        let message = format!(
            "[{section}] {name} -> {other} is no edge of the design: {name} may use {allowed}; move what is shared to a \
             layer below both, or pass it in, because a lower layer that knows a higher one cannot be tested or reused \
             without it"
        );
        findings.push(Finding::file(path, message));
    }
    findings
}

fn may_use(tree: &Tree, folder: &str, name: &str) -> Option<Vec<&'static str>> {
    if folder.starts_with("apps/") {
        return Some(APP.to_vec());
    }
    let mut allowed = LAYERS.iter().find(|layer| layer.name == name)?.may_use.to_vec();
    if name == "testkit" && !tree.has("crates/embed") {
        allowed.extend(TESTKIT_BEFORE_EMBED);
    }
    Some(allowed)
}

/// Every dependency of a manifest by its section and package name, those for one platform too.
fn dependencies(manifest: &toml::Table) -> Vec<(&'static str, String)> {
    let platforms = manifest.get("target").and_then(Value::as_table).into_iter().flat_map(|targets| targets.values());
    let tables = std::iter::once(manifest).chain(platforms.filter_map(Value::as_table));
    let mut found = Vec::new();
    for table in tables {
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(listed) = table.get(section).and_then(Value::as_table) else { continue };
            found.extend(listed.iter().map(|(key, value)| {
                let renamed = value.get("package").and_then(Value::as_str);
                (section, renamed.unwrap_or(key).to_owned())
            }));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, manifest: &str, others: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::made_of(&[&[(path, manifest)], others].concat());
        check(&tree).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn edges_of_the_design_pass() {
        let server =
            "[dependencies]\ntenon-frontend = { workspace = true }\ntenon-wire.workspace = true\nserde = \"1\"\n";
        assert!(findings("crates/server/Cargo.toml", server, &[]).is_empty());
        let store = "[dependencies]\ntenon-ds = { workspace = true }\n[dev-dependencies]\ntenon-testkit = \"0\"\n";
        assert!(findings("crates/store/Cargo.toml", store, &[]).is_empty());
    }

    #[test]
    fn an_edge_upwards_is_named() {
        let found = findings("crates/store/Cargo.toml", "[dependencies]\ntenon-engine = { workspace = true }\n", &[]);
        assert!(
            found.len() == 1 && found[0].contains("store -> engine") && found[0].contains("may use ds"),
            "{found:?}"
        );
    }

    #[test]
    fn renaming_and_platforms_hide_nothing() {
        let renamed = "[target.'cfg(unix)'.dependencies]\ne = { package = \"tenon-engine\", path = \"../engine\" }\n";
        assert_eq!(findings("crates/wire/Cargo.toml", renamed, &[]).len(), 1);
    }

    #[test]
    fn testkit_changes_over_to_embed() {
        let testkit = "[dependencies]\ntenon-engine = { workspace = true }\n";
        assert!(findings("crates/testkit/Cargo.toml", testkit, &[]).is_empty());
        let embed = [("crates/embed/Cargo.toml", "[dependencies]\n")];
        assert_eq!(findings("crates/testkit/Cargo.toml", testkit, &embed).len(), 1);
    }

    #[test]
    fn a_crate_without_a_layer_is_named() {
        assert!(findings("crates/extra/Cargo.toml", "", &[])[0].contains("'extra' has no layer"));
    }
}
