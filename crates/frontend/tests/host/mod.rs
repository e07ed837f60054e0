//! An engine with one worker and connections of both protocols, in process. Knows no command.

use std::sync::Arc;
use tenon_engine::Engine;
use tenon_engine::clients::{ClientInfo, ConnectionKey, Dialect, Message};
use tenon_engine::config::{Caller, Config, Loader, Machine, Origin};
use tenon_engine::wire::OutBuf;
use tenon_engine::worker::Worker;
use tenon_frontend::{Connection, Flow};

/// The server.
pub struct Host {
    pub engine: Arc<Engine>,
    pub worker: Worker,
    clients: u32,
}

/// A client's connection, and what it was sent and has not taken.
pub struct Client {
    pub connection: Connection,
    pub out: OutBuf,
    pub flow: Flow,
}

impl Host {
    pub fn new() -> Host {
        let engine = Arc::new(Engine::new(Config::new(Machine::detect()), tenon_commands::ALL, 7));
        let worker = engine.worker(0);
        Host { engine, worker, clients: 0 }
    }

    /// A server with settings that hold from its start.
    #[allow(dead_code, reason = "not every test program needs such")]
    pub fn with(settings: &[(&str, &str)]) -> Host {
        let mut loader = Loader::new(Machine::detect());
        for (name, value) in settings {
            loader.apply(name, &[(*value).to_owned()], &Origin::CommandLine).expect("a setting");
        }
        let engine = Arc::new(Engine::new(loader.finish().expect("settings"), tenon_commands::ALL, 7));
        let worker = engine.worker(0);
        Host { engine, worker, clients: 0 }
    }

    #[allow(dead_code, reason = "not every test program changes settings")]
    pub fn set(&self, name: &str, value: &str) {
        self.engine.set_config(&[(name.as_bytes(), value.as_bytes())], Caller::Local).expect("a setting");
    }

    /// Lets time pass for whatever runs next; the real clock stays.
    #[allow(dead_code, reason = "not every test program lets time pass")]
    pub fn pass(&mut self, ms: u64) {
        self.engine.read_clock(&mut self.worker);
        self.worker.clock.now_ms += ms;
    }

    pub fn connect(&mut self, dialect: Dialect) -> Client {
        self.clients += 1;
        let info = ClientInfo {
            key: ConnectionKey { worker: 0, index: self.clients, generation: 0 },
            dialect,
            remote: "127.0.0.1:1".to_owned(),
            local: "127.0.0.1:2".to_owned(),
            fd: 0,
            unix: false,
        };
        let connection = Connection::open(&self.engine, &self.worker, info);
        Client { connection, out: OutBuf::new(), flow: Flow::Continue }
    }

    #[allow(dead_code, reason = "not every test program speaks memcached's protocol")]
    pub fn memcached(&mut self) -> Client {
        self.connect(Dialect::Memcached)
    }

    /// Hands over bytes; the answers stay in `client.out`.
    pub fn send(&mut self, client: &mut Client, bytes: &[u8]) {
        client.flow = client.connection.on_bytes(&self.engine, &mut self.worker, bytes, &mut client.out);
    }

    pub fn resume(&mut self, client: &mut Client) {
        client.flow = client.connection.resume(&self.engine, &mut self.worker, &mut client.out);
    }

    #[allow(dead_code, reason = "not every test program posts messages")]
    pub fn tell(&mut self, client: &mut Client, message: Message) {
        client.flow = client.connection.on_message(&self.engine, &mut self.worker, message, &mut client.out);
    }

    /// Hands over bytes and takes the answers, going on as long as the connection wants its output taken first.
    pub fn ask(&mut self, client: &mut Client, bytes: &[u8]) -> Vec<u8> {
        self.send(client, bytes);
        let mut got = take(&mut client.out);
        while client.flow == Flow::Drain {
            self.resume(client);
            got.extend(take(&mut client.out));
        }
        got
    }

    /// The same with text.
    #[allow(dead_code, reason = "not every test program asks in text")]
    pub fn says(&mut self, client: &mut Client, text: &str) -> String {
        String::from_utf8_lossy(&self.ask(client, text.as_bytes())).into_owned()
    }
}

/// Takes everything that waits to be sent.
pub fn take(out: &mut OutBuf) -> Vec<u8> {
    out.take_joined()
}

/// A RESP command.
#[allow(dead_code, reason = "not every test program speaks RESP")]
pub fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
