//! A server of one worker without sockets, and randomness that can be repeated, for tests that run any command. Knows no
//! command.

use tenon_engine::Engine;
use tenon_engine::batch::Call;
use tenon_engine::blocking::Unblocking;
use tenon_engine::clients::{ClientInfo, ConnectionKey, Dialect};
use tenon_engine::config::{Loader, Machine, Origin};
use tenon_engine::execute::{BatchArgs, Stopped};
use tenon_engine::session::Session;
use tenon_engine::wire::resp::{Value, ValueDecoder, ValueLimits};
use tenon_engine::wire::{ArgSpans, OutBuf, Span};
use tenon_engine::worker::Worker;

/// The server, and its only client.
pub struct Server {
    /// The server.
    pub engine: Engine,
    /// Its worker.
    pub worker: Worker,
    /// The client's session.
    pub session: Session,
    /// What the client was sent beside replies.
    #[allow(dead_code, reason = "not every test program looks at it")]
    pub pushes: Vec<Vec<Value>>,
}

impl Server {
    /// A server with these settings beside those that every test wants.
    pub fn new(seed: u64, more: &[(&str, &str)]) -> Server {
        let mut loader = Loader::new(Machine::detect());
        let settings = [
            ("workers", "1"),
            ("shards", "16"),
            ("enable-debug-command", "yes"),
            // What a random offset may allocate.
            ("proto-max-bulk-len", "1mb"),
        ];
        for (name, value) in settings.iter().chain(more) {
            loader.apply(name, &[(*value).to_owned()], &Origin::CommandLine).unwrap();
        }
        let engine = Engine::new(loader.finish().unwrap(), tenon_commands::ALL, seed);
        let worker = engine.worker(0);
        let session = open(&engine, &worker);
        Server { engine, worker, session, pushes: Vec::new() }
    }

    /// Runs one command and gives its reply.
    pub fn run(&mut self, words: &[Vec<u8>]) -> Value {
        let shown = || words.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>().join(" ");
        let mut args = ArgSpans::default();
        let mut input = Vec::new();
        for word in words {
            args.spans.push(Span::bytes(input.len(), word.len()));
            input.extend_from_slice(word);
        }
        let batch = BatchArgs { input: &input, input_from: 0, spans: &args, bigs: &[] };
        let target = self.engine.resolve(&batch.of(0, words.len()));
        let mut calls = [Call::new(target, words.len(), input.len())];
        let mut out = OutBuf::new();
        let (ran, stopped) = self.engine.run_batch(&mut self.worker, &mut self.session, batch, &mut calls, &mut out);
        let is_over = matches!(stopped, Stopped::No | Stopped::Closing | Stopped::Parked);
        assert!(ran == 1 && is_over, "{}: {ran} {stopped:?}", shown());
        if stopped == Stopped::Parked {
            // It waits for a key; somebody ends that.
            assert!(
                out.is_empty() && self.engine.unblock(&self.worker, &self.session.client, Unblocking::AsTimeout),
                "{}",
                shown()
            );
            assert!(self.engine.finish_wait(&mut self.worker, &mut self.session, &mut out), "{}", shown());
        }
        if stopped == Stopped::Closing {
            self.engine.end_session(&mut self.session);
            self.session = open(&self.engine, &self.worker);
        }
        let bytes = out.take_joined();
        let mut rest = &bytes[..];
        let mut reply = None;
        while !rest.is_empty() || reply.is_none() {
            let decoded = ValueDecoder::new().next(rest, &ValueLimits::default());
            let Ok(Some((value, len))) = decoded else {
                panic!("{}: {decoded:?} in {}", shown(), bytes.escape_ascii());
            };
            rest = &rest[len..];
            // In RESP2 a subscription is confirmed channel by channel, in arrays where RESP3 has pushes.
            let is_confirmation = words[0].to_ascii_lowercase().ends_with(b"subscribe") && !rest.is_empty();
            match value {
                Value::Push(push) => self.pushes.push(push),
                _ if is_confirmation => {}
                value => {
                    let earlier = reply.replace(value);
                    assert!(earlier.is_none(), "{}: more than one reply: {}", shown(), bytes.escape_ascii());
                }
            }
        }
        reply.expect("the loop ends with one")
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

/// xorshift64*, so that a failure can be repeated by its seed.
#[allow(dead_code, reason = "not every test program draws")]
pub struct Random(pub u64);

#[allow(dead_code, reason = "not every test program draws")]
impl Random {
    /// A number below the limit.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % limit
    }

    /// One of the words.
    pub fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}
