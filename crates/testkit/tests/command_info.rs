//! What COMMAND says of each command in the table, beside what redis-server says of those that it knows. Knows of
//! commands only where the two differ on purpose.

use std::collections::BTreeSet;
use tenon_client::{Resp, Value};
use tenon_engine::command::Command;
use tenon_testkit::oracle::oracle;
use tenon_testkit::patience::PATIENCE;
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

/// What differs on purpose: the command, the part of its description, and why.
const DIFFERS: &[(&str, Part, &str)] = &[
    ("zrank", Part::Arity, "Redis 7.2 added WITHSCORE"),
    ("zrevrank", Part::Arity, "Redis 7.2 added WITHSCORE"),
    ("wait", Part::Flags, "Redis 7.2 says that it blocks"),
    ("wait", Part::Categories, "Redis 7.2 says that it blocks"),
    ("migrate", Part::Flags, "no shard is held while keys are on their way, as a transaction or script would"),
];

/// A part of a command's description, by its place in COMMAND INFO's answer. The subcommands, which are commands of their
/// own here, are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Name = 0,
    Arity = 1,
    Flags = 2,
    FirstKey = 3,
    LastKey = 4,
    Step = 5,
    Categories = 6,
    Tips = 7,
    KeySpecs = 8,
}

const PARTS: [Part; 9] = [
    Part::Name,
    Part::Arity,
    Part::Flags,
    Part::FirstKey,
    Part::LastKey,
    Part::Step,
    Part::Categories,
    Part::Tips,
    Part::KeySpecs,
];

fn all() -> impl Iterator<Item = &'static Command> {
    let with_subcommands =
        |command: &&'static Command| std::iter::once(*command).chain(command.subcommands().iter().copied());
    tenon_commands::ALL.iter().flat_map(with_subcommands)
}

/// The same value with lists of words, which have no order, in alphabetical order.
fn ordered(value: Value) -> Value {
    match value {
        Value::Array(items) | Value::Set(items) => {
            let mut items: Vec<Value> = items.into_iter().map(ordered).collect();
            if items.iter().all(|item| matches!(item, Value::Simple(_) | Value::Bulk(_))) {
                items.sort_by_key(|item| format!("{item:?}"));
            }
            Value::Array(items)
        }
        other => other,
    }
}

/// What COMMAND LIST names.
fn list(client: &mut Resp) -> BTreeSet<String> {
    let answer = client.call(&[b"COMMAND", b"LIST"]).expect("an answer");
    let Value::Array(names) = answer else { panic!("COMMAND LIST gives an array") };
    let text = |name| match name {
        Value::Bulk(text) => String::from_utf8(text.to_vec()).expect("names are text"),
        other => panic!("{other:?} is no name"),
    };
    names.into_iter().map(text).collect()
}

fn describe(client: &mut Resp, name: &str) -> Option<Vec<Value>> {
    let answer = client.call(&[b"COMMAND", b"INFO", name.as_bytes()]).expect("an answer");
    let Value::Array(mut described) = answer else { panic!("COMMAND INFO gives an array") };
    match described.pop() {
        Some(Value::Array(parts)) => Some(parts),
        _ => None,
    }
}

#[test]
fn commands_are_described_as_redis_describes_them() {
    let Some(redis) = oracle(Dialect::Redis, &[]) else { return };
    let tenon = Server::tenon(&[]).expect("tenon starts");
    let client = |server: &Server| {
        Resp::connect_to(server.address(Dialect::Redis).expect("a RESP port"), Some(PATIENCE)).expect("connected")
    };
    let (mut redis_client, mut tenon_client) = (client(&redis), client(&tenon));
    let (their_list, our_list) = (list(&mut redis_client), list(&mut tenon_client));
    let mut problems = Vec::new();
    let mut compared = 0;
    for command in all() {
        let name = command.full_name();
        let Some(theirs) = describe(&mut redis_client, &name) else { continue };
        let ours = describe(&mut tenon_client, &name).expect("Tenon knows its commands");
        compared += 1;
        if their_list.contains(&name) != our_list.contains(&name) {
            problems.push(format!("{name}: COMMAND LIST names it only in one of them"));
        }
        for part in PARTS {
            let [theirs, ours] = [&theirs, &ours].map(|parts| ordered(parts[part as usize].clone()));
            let is_meant = DIFFERS.iter().any(|(known, differs, _)| *known == name && *differs == part);
            if (theirs == ours) == is_meant {
                problems.push(format!("{name}: {part:?}: redis-server {theirs:?}, Tenon {ours:?}"));
            }
        }
    }
    assert!(compared > 50, "only {compared} commands are known to both");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
