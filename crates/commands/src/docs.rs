//! docs/commands.md, written from the tables of both front ends. Knows no command.

use crate::memcache::VERBS;
use crate::redis::ALL;
use std::fmt::Write;
use tenon_engine::command::{Command, Group};

/// The groups in the order of the page, each with its heading.
static GROUPS: &[(Group, &str)] = &[
    (Group::String, "Strings"),
    (Group::Bitmap, "Bitmaps"),
    (Group::HyperLogLog, "HyperLogLog"),
    (Group::List, "Lists"),
    (Group::Hash, "Hashes"),
    (Group::Set, "Sets"),
    (Group::SortedSet, "Sorted sets"),
    (Group::Geo, "Places"),
    (Group::Stream, "Streams"),
    (Group::Generic, "Keys of any type"),
    (Group::Transactions, "Transactions"),
    (Group::PubSub, "Channels"),
    (Group::Scripting, "Scripts and functions"),
    (Group::Connection, "Connection"),
    (Group::Server, "Server"),
    (Group::Cluster, "Clusters"),
];

/// The page.
pub fn docs() -> String {
    let mut page = String::from(
        "# Commands\n\n\
         Made from the tables of commands; to change a line, change the command's declaration and run\n\
         `TENON_BLESS=1 cargo test -p tenon-commands commands_doc_is_up_to_date`.\n\n\
         \"Since\" is the version of Redis that a command first came with; of DELIFEQ, COMMANDLOG, CLIENT CAPA and SCRIPT SHOW that of\n\
         Valkey, and 0.1.0 is Tenon's own. `COMMAND DOCS name` says the same.\n",
    );
    for &(group, title) in GROUPS {
        let mut commands: Vec<&Command> = ALL.iter().copied().filter(|command| command.group == group).collect();
        if commands.is_empty() {
            continue;
        }
        commands.sort_unstable_by_key(|command| command.name);
        let _ = write!(page, "\n## {title}\n\n");
        if group == Group::Cluster {
            page.push_str("There are none: all of these are refused, as by a server that is in no cluster.\n\n");
        }
        page.push_str("| command | what it does | complexity | since |\n| --- | --- | --- | --- |\n");
        for command in commands {
            row(&mut page, command);
            let mut subcommands = command.subcommands().to_vec();
            subcommands.sort_unstable_by_key(|command| command.name);
            subcommands.into_iter().for_each(|subcommand| row(&mut page, subcommand));
        }
    }
    page.push_str("\n## Memcached\n\nIn the text protocol.\n\n| verb | what it does |\n| --- | --- |\n");
    for verb in VERBS {
        let form = format!("{} {}", verb.name, verb.syntax);
        let _ = writeln!(page, "| `{}` | {} |", escaped(form.trim_end()), escaped(verb.summary));
    }
    page
}

fn row(page: &mut String, command: &Command) {
    let form = format!("{} {}", command.name, command.syntax);
    let _ = writeln!(
        page,
        "| `{}` | {} | {} | {} |",
        escaped(form.trim_end()),
        escaped(command.summary),
        escaped(command.complexity),
        command.since
    );
}

/// A bar ends a cell, even within code.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_doc_is_up_to_date() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
        if std::env::var_os("TENON_BLESS").is_some_and(|value| value == "1") {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, docs()).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == docs(), "docs/commands.md is out of date: run this test with TENON_BLESS=1");
    }

    #[test]
    fn every_command_is_on_the_page() {
        let page = docs();
        let all = ALL.iter().flat_map(|command| std::iter::once(*command).chain(command.subcommands().iter().copied()));
        for command in all {
            let found = page.lines().filter(|line| {
                line.strip_prefix("| `").and_then(|line| line.strip_prefix(command.name)).is_some_and(|behind| {
                    behind.starts_with("` |") || behind.starts_with(&format!(" {}", escaped(command.syntax)))
                })
            });
            assert!(found.count() >= 1, "{}", command.name);
        }
    }
}
