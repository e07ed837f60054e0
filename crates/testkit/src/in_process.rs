//! Tenon without a socket: front ends and engine on the test's own thread, and its log, which must lead to the same data
//! again. Knows no command.

use crate::journal::{self, Records, keep_records};
use crate::server::Folder;
use crate::target::{Demand, Dialect, Link, NotReady, Received, Side, Target};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenon_engine::Engine;
use tenon_engine::clients::{self, ClientInfo, ConnectionKey, Message};
use tenon_engine::config::{Config, Loader, Machine, Origin};
use tenon_engine::persist::rdb::file::{FileOptions, Form};
use tenon_engine::snapshot::SnapshotOptions;
use tenon_engine::wire::OutBuf;
use tenon_engine::wire::rdb::Compression;
use tenon_engine::worker::Worker;
use tenon_frontend::{Connection, Ending, Flow};

/// Tenon in this process.
#[derive(Default)]
pub struct InProcess {
    host: Option<Rc<RefCell<Host>>>,
    dialect: Option<Dialect>,
}

/// An engine with its connections.
struct Host {
    engine: Arc<Engine>,
    worker: Worker,
    connections: BTreeMap<u32, Peer>,
    mail: Arc<Mutex<Vec<(ConnectionKey, Message)>>>,
    opened: u32,
    records: Arc<Records>,
    settings: Vec<(String, String)>,
    /// Where it writes files.
    folder: Folder,
}

struct Peer {
    connection: Connection,
    /// What the client has not received yet.
    sent: Vec<u8>,
    open: bool,
    parked: bool,
    /// Bytes that came while the connection was parked.
    held: Vec<u8>,
}

fn configuration(settings: &[(&str, &str)], folder: &Folder) -> Result<Config, String> {
    let machine = Machine::detect();
    let folder = folder.path.display().to_string();
    let mut loader = Loader::new(Machine { directory: folder, ..machine });
    let own = [("workers", "1"), ("shards", "64")];
    for (name, value) in own.iter().chain(settings) {
        let words: Vec<String> = value.split(' ').map(str::to_owned).collect();
        loader.apply(name, &words, &Origin::CommandLine).map_err(|error| error.to_string())?;
    }
    loader.finish().map_err(|error| error.to_string())
}

impl Host {
    fn new(config: Config, settings: Vec<(String, String)>, folder: Folder) -> Host {
        let engine = Engine::new(config, tenon_commands::ALL, 0x5EED).share();
        let mail: Arc<Mutex<Vec<(ConnectionKey, Message)>>> = Arc::default();
        let outbox = Arc::clone(&mail);
        engine.clients.set_post(Arc::new(move |key, message| {
            outbox.lock().expect("no test panics while it posts").push((key, message));
        }));
        let worker = engine.worker(0);
        let records = keep_records(&engine);
        Host { engine, worker, connections: BTreeMap::new(), mail, opened: 0, records, settings, folder }
    }

    /// Another engine of the same settings, and of these.
    fn twin(&self, others: &[(&str, &str)]) -> Result<Engine, String> {
        let mut settings: Vec<_> = self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        settings.extend(others);
        Ok(Engine::new(configuration(&settings, &self.folder)?, tenon_commands::ALL, 0xF00D))
    }

    /// What the log leads to that was kept, where that is not the data there is.
    fn differences(&self) -> Result<(), String> {
        let engine = self.twin(&[])?;
        journal::replay(&engine, &mut engine.worker(0), &self.records.all())?;
        self.compare(&engine)
    }

    /// The same when it is loaded from a file.
    fn differences_loaded(&self, workers: usize) -> Result<(), String> {
        let engine = self.twin(&[("workers", &workers.to_string())])?.share();
        journal::load(&engine, &self.records.all().concat())?;
        self.compare(&engine)
    }

    /// Where the data differs once it was written as commands and loaded.
    fn differences_as_commands(&mut self) -> Result<Vec<String>, String> {
        let file = FileOptions { form: Form::Commands, compression: Compression::Off, has_checksum: false };
        let options = SnapshotOptions { file, is_log_base: true };
        let begun = self.engine.begin_snapshot(&mut self.worker, options, |_| ()).ok_or("another one is under way")?;
        let (commands, _) = begun.write_to(&self.engine, Vec::new()).map_err(|error| error.to_string())?;
        let engine = self.twin(&[("workers", "3")])?.share();
        journal::load(&engine, &commands)?;
        Ok(journal::differences(&self.engine, &engine))
    }

    fn compare(&self, engine: &Engine) -> Result<(), String> {
        let differences = journal::differences(&self.engine, engine);
        if differences.is_empty() { Ok(()) } else { Err(differences.join("\n")) }
    }

    fn open(&mut self, dialect: Dialect) -> u32 {
        self.engine.read_clock(&mut self.worker);
        self.opened += 1;
        let index = self.opened;
        let info = ClientInfo {
            key: ConnectionKey { worker: 0, index, generation: 0 },
            dialect: match dialect {
                Dialect::Redis => clients::Dialect::Resp,
                Dialect::Memcache => clients::Dialect::Memcached,
            },
            remote: format!("127.0.0.1:{}", 40_000 + index),
            local: "127.0.0.1:6379".to_owned(),
            fd: 8 + index as i32,
            unix: false,
        };
        let connection = Connection::open(&self.engine, &self.worker, info);
        let peer = Peer { connection, sent: Vec::new(), open: true, parked: false, held: Vec::new() };
        self.connections.insert(index, peer);
        index
    }

    fn send(&mut self, index: u32, bytes: &[u8]) -> io::Result<()> {
        self.engine.read_clock(&mut self.worker);
        let peer = self.connections.get_mut(&index).filter(|peer| peer.open);
        let Some(peer) = peer else { return Err(io::ErrorKind::BrokenPipe.into()) };
        if peer.parked {
            peer.held.extend_from_slice(bytes);
            return Ok(());
        }
        let mut out = OutBuf::new();
        let flow = peer.connection.on_bytes(&self.engine, &mut self.worker, bytes, &mut out);
        self.follow(index, flow, out);
        Ok(())
    }

    /// Takes the output and does what the connection asks for.
    fn follow(&mut self, index: u32, mut flow: Flow, mut out: OutBuf) {
        let Some(peer) = self.connections.get_mut(&index) else { return };
        loop {
            if flow != Flow::Close {
                peer.connection.note_sent(&self.worker, out.len());
                out.drain_into(&mut peer.sent);
            }
            match flow {
                // The client takes everything at once.
                Flow::Drain => flow = peer.connection.resume(&self.engine, &mut self.worker, &mut out),
                Flow::Continue | Flow::Fill | Flow::Stay => return,
                Flow::Park => {
                    peer.parked = true;
                    return;
                }
                Flow::CloseAfterFlush | Flow::Close => {
                    peer.open = false;
                    return peer.connection.closed(&self.engine, Ending::Error);
                }
            }
        }
    }

    /// What a worker does between its clients' bytes: ticks and messages.
    fn pump(&mut self) {
        self.engine.tick(&mut self.worker);
        loop {
            let mail = std::mem::take(&mut *self.mail.lock().expect("no test panics while it posts"));
            if mail.is_empty() {
                return;
            }
            for (key, message) in mail {
                let Some(peer) = self.connections.get_mut(&key.index).filter(|peer| peer.open) else { continue };
                let mut out = OutBuf::new();
                let mut flow = peer.connection.on_message(&self.engine, &mut self.worker, message, &mut out);
                if flow == Flow::Continue && std::mem::take(&mut peer.parked) {
                    let held = std::mem::take(&mut peer.held);
                    flow = peer.connection.on_bytes(&self.engine, &mut self.worker, &held, &mut out);
                }
                self.follow(key.index, flow, out);
            }
        }
    }
}

impl InProcess {
    /// Opens a connection of either dialect to the server that was prepared.
    ///
    /// # Panics
    /// When none was.
    pub fn open(&mut self, dialect: Dialect) -> Box<dyn Link> {
        let host = self.host.clone().expect("a server was prepared");
        let index = host.borrow_mut().open(dialect);
        Box::new(InProcessLink { host, index })
    }

    /// All data, key by key: see [`journal::state`].
    ///
    /// # Panics
    /// When no server was prepared.
    pub fn state(&self) -> BTreeMap<(usize, Vec<u8>), String> {
        journal::state(&self.host.as_ref().expect("a server was prepared").borrow().engine)
    }

    /// Loads the log of all that was done into another server of so many workers.
    ///
    /// # Errors
    /// When it does not lead to the same data: to what.
    ///
    /// # Panics
    /// When no server was prepared.
    pub fn load_elsewhere(&self, workers: usize) -> Result<(), String> {
        self.host.as_ref().expect("a server was prepared").borrow().differences_loaded(workers)
    }

    /// Writes the data as commands, as the base of a log may have it, and loads these into another server; gives where that
    /// one's data differs.
    ///
    /// # Errors
    /// When it cannot be written or loaded: why.
    ///
    /// # Panics
    /// When no server was prepared.
    pub fn write_as_commands(&mut self) -> Result<Vec<String>, String> {
        self.host.as_ref().expect("a server was prepared").borrow_mut().differences_as_commands()
    }

    /// The records that the log has of all that was done.
    ///
    /// # Panics
    /// When no server was prepared.
    pub fn records(&self) -> Arc<Records> {
        Arc::clone(&self.host.as_ref().expect("a server was prepared").borrow().records)
    }
}

impl Target for InProcess {
    fn name(&self) -> String {
        "Tenon in process".to_owned()
    }

    fn side(&self) -> Side {
        Side::Tenon
    }

    fn prepare(&mut self, demand: &Demand<'_>) -> Result<(), NotReady> {
        let folder = Folder::new().map_err(|error| NotReady::Fail(error.to_string()))?;
        let settings = demand.settings_for(Side::Tenon);
        let config = configuration(&settings, &folder).map_err(NotReady::Fail)?;
        let own = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let host = Host::new(config, own.collect(), folder);
        host.engine.load_users().map_err(NotReady::Fail)?;
        host.engine.load_password_file().map_err(NotReady::Fail)?;
        self.host = Some(Rc::new(RefCell::new(host)));
        self.dialect = Some(demand.dialect);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        let Some(host) = &self.host else { return Ok(()) };
        host.borrow().differences().map_err(|what| format!("the log does not lead to the same data:\n{what}"))
    }

    fn connect(&mut self, _name: &str) -> io::Result<Box<dyn Link>> {
        Ok(self.open(self.dialect.expect("a file is prepared for before it connects")))
    }
}

struct InProcessLink {
    host: Rc<RefCell<Host>>,
    index: u32,
}

impl Link for InProcessLink {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.host.borrow_mut().send(self.index, bytes)
    }

    fn receive(&mut self, into: &mut Vec<u8>, _timeout: Duration) -> io::Result<Received> {
        let mut host = self.host.borrow_mut();
        host.pump();
        let Some(peer) = host.connections.get_mut(&self.index) else { return Ok(Received::Closed) };
        if !peer.sent.is_empty() {
            into.append(&mut peer.sent);
            return Ok(Received::Bytes);
        }
        Ok(if peer.open { Received::Nothing } else { Received::Closed })
    }
}

impl Drop for InProcessLink {
    fn drop(&mut self) {
        let mut host = self.host.borrow_mut();
        let host = &mut *host;
        if let Some(mut peer) = host.connections.remove(&self.index)
            && peer.open
        {
            peer.connection.closed(&host.engine, Ending::Normal);
        }
    }
}
