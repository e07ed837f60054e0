//! Every command of the table with wrong numbers of arguments and with arguments of every kind: each call answers
//! exactly one well-formed reply. Knows of commands only what the table says, and which ones must not be tried so.

use tenon_engine::Engine;
use tenon_engine::batch::Call;
use tenon_engine::blocking::Unblocking;
use tenon_engine::clients::{ClientInfo, ConnectionKey, Dialect};
use tenon_engine::command::{Arity, Command, Run};
use tenon_engine::config::{Loader, Machine, Origin};
use tenon_engine::execute::{BatchArgs, Stopped};
use tenon_engine::session::Session;
use tenon_engine::wire::resp::{Proto, Value, ValueDecoder, ValueLimits};
use tenon_engine::wire::{ArgSpans, OutBuf, Span};
use tenon_engine::worker::Worker;

/// Commands that answer nothing, or more than once, or not at once, or call on other machines: by design.
const LEFT_OUT: [&str; 6] = ["SHUTDOWN", "CLIENT REPLY", "CLIENT PAUSE", "DEBUG", "MIGRATE", "MONITOR"];

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

struct Server {
    engine: Engine,
    worker: Worker,
    session: Session,
}

impl Server {
    fn new(seed: u64) -> Server {
        let mut loader = Loader::new(Machine::detect());
        let settings = [
            ("workers", "1"),
            ("shards", "16"),
            ("enable-debug-command", "yes"),
            // What a random offset may allocate.
            ("proto-max-bulk-len", "1mb"),
        ];
        for (name, value) in settings {
            loader.apply(name, &[value.to_owned()], &Origin::CommandLine).unwrap();
        }
        let engine = Engine::new(loader.finish().unwrap(), tenon_commands::ALL, seed);
        let worker = engine.worker(0);
        let session = open(&engine, &worker);
        Server { engine, worker, session }
    }

    /// Runs one command and gives its reply.
    fn run(&mut self, words: &[Vec<u8>]) -> Value {
        let shown = || words.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>().join(" ");
        let mut args = ArgSpans::default();
        let mut input = Vec::new();
        for word in words {
            args.spans.push(Span::bytes(input.len(), word.len()));
            input.extend_from_slice(word);
        }
        let batch = BatchArgs { input: &input, spans: &args, bigs: &[] };
        let target = self.engine.resolve(&batch.of(0, words.len()));
        let mut calls = [Call { args_end: words.len(), input_end: input.len(), target }];
        let mut out = OutBuf::new();
        let (ran, stopped) = self.engine.run_batch(&mut self.worker, &mut self.session, batch, &mut calls, &mut out);
        let is_over = matches!(stopped, Stopped::No | Stopped::Closing | Stopped::Parked);
        assert!(ran == 1 && is_over, "{}: {ran} {stopped:?}", shown());
        if stopped == Stopped::Parked {
            // It waits for a key; somebody ends that.
            assert!(out.is_empty() && self.engine.unblock(&self.session.client, Unblocking::AsTimeout), "{}", shown());
            assert!(self.engine.finish_wait(&mut self.worker, &mut self.session, &mut out), "{}", shown());
        }
        if stopped == Stopped::Closing {
            self.engine.end_session(&mut self.session);
            self.session = open(&self.engine, &self.worker);
        }
        let bytes = all_of(&mut out);
        let mut rest = &bytes[..];
        loop {
            let decoded = ValueDecoder::new().next(rest, &ValueLimits::default());
            let Ok(Some((value, len))) = decoded else {
                panic!("{}: {decoded:?} in {}", shown(), bytes.escape_ascii());
            };
            rest = &rest[len..];
            // In RESP2 a subscription is confirmed channel by channel, in arrays where RESP3 has pushes.
            let is_confirmation = words[0].to_ascii_lowercase().ends_with(b"subscribe") && !rest.is_empty();
            if !matches!(value, Value::Push(_)) && !is_confirmation {
                assert!(rest.is_empty(), "{}: more than one reply: {}", shown(), bytes.escape_ascii());
                return value;
            }
        }
    }
}

fn open(engine: &Engine, worker: &Worker) -> Session {
    let info = ClientInfo {
        key: ConnectionKey { worker: 0, index: 0, generation: 0 },
        dialect: Dialect::Resp,
        remote: "127.0.0.1:40000".to_owned(),
        local: "127.0.0.1:6379".to_owned(),
        fd: 8,
        unix: false,
    };
    engine.open_session(engine.clients.add(info, worker.clock.now_ms))
}

fn all_of(out: &mut OutBuf) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !out.is_empty() {
        let mut slices = [std::io::IoSlice::new(&[]); 64];
        let filled = out.io_slices(&mut slices);
        let before = bytes.len();
        slices[..filled].iter().for_each(|slice| bytes.extend_from_slice(slice));
        let sent = bytes.len() - before;
        out.advance(sent);
    }
    bytes
}

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
    let mut server = Server::new(1);
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

/// xorshift64*, so that a failure can be repeated by its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % limit
    }

    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    fn argument(&mut self, options: &[&str]) -> Vec<u8> {
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
        match self.below(10) {
            0 => Vec::new(),
            1 => (0..self.below(40)).map(|_| self.below(256) as u8).collect(),
            2 => vec![b'v'; self.below(3_000)],
            3 | 4 => self.one_of(&NUMBERS).into(),
            5..=7 if !options.is_empty() => self.one_of(options).into(),
            _ => self.one_of(&["a", "b", "c", "*", "get", "set"]).into(),
        }
    }
}

#[test]
fn any_arguments_get_one_reply() {
    for seed in 1..=8 {
        let mut random = Random(seed);
        for round in 0..3 {
            let mut server = Server::new(seed);
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
                        call.push(random.argument(&options));
                    }
                    server.run(&call);
                }
                let mut call = vec![b"DEBUG".to_vec(), random.one_of(&DEBUG_WORDS).into()];
                call.extend((0..random.below(4)).map(|_| random.argument(&["string", "attrib", "push", "map"])));
                server.run(&call);
                server.session.proto = if random.below(2) == 0 { Proto::Resp2 } else { Proto::Resp3 };
                if in_multi && server.engine.commands.find(b"MULTI").is_some() && server.session.transaction.is_none() {
                    server.run(&[b"MULTI".to_vec()]);
                }
            }
        }
    }
}
