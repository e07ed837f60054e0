//! An engine in process and clients of it, each on a worker and thread of its own. Knows no command but EXEC.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use tenon_engine::Engine;
use tenon_engine::args::OwnedArgs;
use tenon_engine::clients::{ClientInfo, ConnectionKey, Dialect};
use tenon_engine::config::{Loader, Machine, Origin};
use tenon_engine::session::Session;
use tenon_engine::wire::OutBuf;
use tenon_engine::worker::Worker;

/// After so long a test that should have ended is taken for locked up.
pub const LOCKED_UP: Duration = Duration::from_secs(120);
/// Workers, one for each client.
pub const CLIENTS: usize = 8;

/// An engine with a worker for each client.
pub fn engine() -> Arc<Engine> {
    let mut loader = Loader::new(Machine::detect());
    for (name, value) in [("workers", CLIENTS.to_string()), ("shards", "64".to_owned())] {
        loader.apply(name, &[value], &Origin::CommandLine).expect("a setting");
    }
    Arc::new(Engine::new(loader.finish().expect("settings"), tenon_commands::ALL, 0x5EED))
}

/// A client on its own worker.
pub struct Client {
    /// The server.
    pub engine: Arc<Engine>,
    worker: Worker,
    /// The client's session.
    pub session: Session,
}

impl Client {
    /// A client on the worker of this index.
    pub fn new(engine: &Arc<Engine>, index: usize) -> Client {
        let info = ClientInfo {
            key: ConnectionKey { worker: index as u32, index: 0, generation: 0 },
            dialect: Dialect::Resp,
            remote: String::new(),
            local: String::new(),
            fd: 0,
            unix: false,
        };
        let session = engine.open_session(engine.clients.add(info, 0));
        Client { engine: Arc::clone(engine), worker: engine.worker(index), session }
    }

    /// Runs a command of words without blanks; gives the reply's bytes as text.
    pub fn run(&mut self, command: &str) -> String {
        self.engine.read_clock(&mut self.worker);
        let args = OwnedArgs::new(command.split(' '));
        let target = self.engine.resolve(&args.view());
        let mut out = OutBuf::new();
        self.engine.run_alone(&mut self.worker, &mut self.session, target, &args.view(), &mut out);
        String::from_utf8_lossy(out.contiguous().expect("short replies are one piece")).into_owned()
    }

    /// Runs a command that is answered `OK`.
    pub fn ok(&mut self, command: &str) {
        assert_eq!(self.run(command), "+OK\r\n", "{command}");
    }

    /// Queues commands between MULTI and EXEC; gives EXEC's reply.
    pub fn transaction(&mut self, commands: &[&str]) -> String {
        self.ok("MULTI");
        for command in commands {
            assert_eq!(self.run(command), "+QUEUED\r\n", "{command}");
        }
        self.run("EXEC")
    }

    /// What EXEC says of an empty MULTI: whether a watched key has changed.
    pub fn is_dirty(&mut self) -> bool {
        match self.transaction(&["PING"]).as_str() {
            "*-1\r\n" => true,
            "*1\r\n+PONG\r\n" => false,
            other => panic!("EXEC answered {other:?}"),
        }
    }

    /// What the command is answered that it waits with, once it is.
    pub fn answer(&mut self) -> Option<String> {
        let mut out = OutBuf::new();
        let is_over = self.engine.finish_wait(&mut self.worker, &mut self.session, &mut out);
        is_over.then(|| String::from_utf8_lossy(out.contiguous().expect("short replies are one piece")).into_owned())
    }

    /// Removes keys that are past their deadline.
    pub fn tick(&mut self) {
        self.engine.tick(&mut self.worker);
    }

    /// A number below `limit`.
    pub fn random(&mut self, limit: u32) -> u32 {
        self.worker.random() % limit
    }
}

/// The bulk strings of a reply.
pub fn bulks(reply: &str) -> Vec<&str> {
    let mut lines = reply.split("\r\n");
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        if line.starts_with('$') && line != "$-1" {
            found.push(lines.next().expect("a length is followed by as many bytes"));
        }
    }
    found
}

/// Runs the clients' parts on threads of their own until all have ended.
pub fn together(engine: &Arc<Engine>, parts: Vec<Box<dyn FnOnce(Client) + Send>>) {
    assert!(parts.len() <= CLIENTS, "each client has a worker of its own");
    let (ended, wait) = channel();
    let threads: Vec<_> = parts
        .into_iter()
        .enumerate()
        .map(|(index, part)| {
            let (engine, ended) = (Arc::clone(engine), ended.clone());
            thread::spawn(move || {
                let result = catch_unwind(AssertUnwindSafe(|| part(Client::new(&engine, index))));
                let _ = ended.send(result.is_ok());
            })
        })
        .collect();
    for _ in 0..threads.len() {
        // After a failure the others are not waited for: they may go on for ever.
        assert!(wait.recv_timeout(LOCKED_UP).expect("the clients have locked each other up"), "a client has failed");
    }
    for thread in threads {
        thread.join().expect("it has ended without a panic");
    }
}
