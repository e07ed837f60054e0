//! Every command of the table with wrong numbers of arguments and with arguments of every kind: each call answers
//! exactly one well-formed reply. Knows of commands only what the table says, and which ones must not be tried so.

mod one_worker;

use one_worker::{Random, Server};
use tenon_engine::command::{Arity, Command, Run};
use tenon_engine::wire::resp::{Proto, Value};

/// Commands that answer nothing, or more than once, or not at once, or call on other machines, or write files: by design.
const LEFT_OUT: [&str; 8] =
    ["SHUTDOWN", "CLIENT REPLY", "CLIENT PAUSE", "DEBUG", "MIGRATE", "MONITOR", "SAVE", "BGSAVE"];

/// What follows DEBUG, without SLEEP and POPULATE, which would do what a random number says.
const DEBUG_WORDS: [&str; 11] = [
    "DIGEST",
    "DIGEST-VALUE",
    "ERROR",
    "HTSTATS",
    "HTSTATS-KEY",
    "LOG",
    "OBJECT",
    "PROTOCOL",
    "SET-ACTIVE-EXPIRE",
    "STRINGMATCH-LEN",
    "HELP",
];

fn words(command: &Command) -> Vec<Vec<u8>> {
    command.name.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// Every command and subcommand.
fn all() -> impl Iterator<Item = &'static Command> {
    tenon_commands::ALL
        .iter()
        .flat_map(|command| std::iter::once(*command).chain(command.subcommands().iter().copied()))
}

fn error(text: &str) -> Value {
    Value::Error(text.as_bytes().to_vec())
}

#[test]
fn wrong_numbers_of_arguments_are_refused_in_redis_words() {
    let mut server = Server::new(1, &[]);
    for command in all() {
        let name = words(command);
        if let Run::Container(_) = command.run {
            let text = format!("ERR wrong number of arguments for '{}' command", command.full_name());
            assert_eq!(server.run(&name), error(&text));
            let text = format!("ERR unknown subcommand 'No'. Try {} HELP.", command.name);
            assert_eq!(server.run(&[&name[..], &[b"No".to_vec()]].concat()), error(&text));
            continue;
        }
        let counts: Vec<usize> = match command.arity {
            Arity::Exactly(count) => (name.len()..count).chain([count + 1, count + 2]).collect(),
            Arity::AtLeast(least) => (name.len()..least).collect(),
        };
        // With a word behind it such a command is a subcommand.
        if let Run::Alone(..) = command.run {
            assert_eq!(counts, [0; 0], "{}", command.name);
        }
        for count in counts {
            let mut call = name.clone();
            call.resize(count, b"x".to_vec());
            let wrong = format!("wrong number of arguments for '{}' command", command.full_name());
            let text = match command.name {
                // A refused EXEC is the end of its transaction, whether there is one or not.
                "EXEC" => format!("EXECABORT Transaction discarded because of: {wrong}"),
                _ => format!("ERR {wrong}"),
            };
            assert_eq!(server.run(&call), error(&text), "{count} arguments");
        }
    }
}

fn argument(random: &mut Random, options: &[&str]) -> Vec<u8> {
    const NUMBERS: [&str; 20] = [
        "0",
        "1",
        "-1",
        "2",
        "10",
        "100",
        "-0",
        "+5",
        " 5",
        "0x5",
        "1e3",
        "1.5",
        "inf",
        "nan",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "18446744073709551616",
        "4294967296",
        "1700000000",
    ];
    match random.below(10) {
        0 => Vec::new(),
        1 => (0..random.below(40)).map(|_| random.below(256) as u8).collect(),
        2 => vec![b'v'; random.below(3_000)],
        3 | 4 => random.one_of(&NUMBERS).into(),
        5..=7 if !options.is_empty() => random.one_of(options).into(),
        _ => random.one_of(&["a", "b", "c", "*", "get", "set"]).into(),
    }
}

#[test]
fn any_arguments_get_one_reply() {
    for seed in 1..=8 {
        let mut random = Random(seed);
        for round in 0..3 {
            let mut server = Server::new(seed, &[]);
            // Everything in MULTI's queue, too.
            let in_multi = round == 2;
            for _ in 0..40 {
                for command in all().filter(|command| !LEFT_OUT.contains(&command.name)) {
                    let options: Vec<&str> = command
                        .syntax
                        .split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_')
                        .filter(|word| word.chars().any(|c| c.is_ascii_uppercase()))
                        .collect();
                    let name = words(command);
                    let most = name.len() + random.below(7);
                    let least = match command.arity {
                        Arity::Exactly(count) | Arity::AtLeast(count) => count,
                    };
                    let count = if random.below(4) == 0 { most } else { most.max(least) };
                    let mut call = name;
                    while call.len() < count {
                        call.push(argument(&mut random, &options));
                    }
                    server.run(&call);
                }
                let mut call = vec![b"DEBUG".to_vec(), random.one_of(&DEBUG_WORDS).into()];
                call.extend((0..random.below(4)).map(|_| argument(&mut random, &["string", "attrib", "push", "map"])));
                server.run(&call);
                server.session.proto = if random.below(2) == 0 { Proto::Resp2 } else { Proto::Resp3 };
                if in_multi && server.engine.commands.find(b"MULTI").is_some() && server.session.transaction.is_none() {
                    server.run(&[b"MULTI".to_vec()]);
                }
            }
        }
    }
}
