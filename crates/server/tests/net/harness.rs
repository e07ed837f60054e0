//! Starts an echo server for one test and connects to it.

use crate::echo::{Echo, Message};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use tenon_server::net::{Address, Bind, Bound, CloseReason, Endpoint, FrontEnd, Listen, Options, Running, serve};
use tenon_server::open_files::{Needs, raise_for};
use tenon_server::shutdown::Shutdown;

pub use tenon_testkit::patience::PATIENCE;

pub struct Server {
    pub echo: Arc<Echo>,
    pub shutdown: Shutdown,
    running: Option<Running<Message>>,
}

/// For the tests with many connections, either end of which is this process's: they run beside each other, and many a system
/// gives a process 1,024 unless it asks for more.
pub fn raise_open_files() {
    let _ = raise_for(10_000, Needs { workers: 2, listeners: 2, datagrams: 0, more_rings: 0 });
}

pub fn tcp(front_end: FrontEnd, address: &str) -> Listen {
    Listen { front_end, endpoint: Endpoint::Tcp { bind: Bind::parse(address), port: 0 } }
}

impl Server {
    pub fn start() -> Server {
        Server::start_with(2, vec![tcp(FrontEnd::Resp, "127.0.0.1"), tcp(FrontEnd::Memcached, "127.0.0.1")])
    }

    pub fn start_with(workers: usize, listens: Vec<Listen>) -> Server {
        Server::start_as(&Options { workers, listens, datagrams: None, backlog: 511, io: crate::IO })
    }

    pub fn start_as(options: &Options) -> Server {
        let (echo, shutdown) = (Arc::new(Echo::default()), Shutdown::new());
        let running = serve(options, Arc::clone(&echo), &shutdown).unwrap();
        Server { echo, shutdown, running: Some(running) }
    }

    pub fn running(&self) -> &Running<Message> {
        self.running.as_ref().unwrap()
    }

    pub fn address(&self, front_end: FrontEnd) -> SocketAddr {
        let is_wanted = |bound: &&Bound| bound.front_end == front_end;
        match &self.running().bound().iter().find(is_wanted).unwrap().address {
            Address::Inet(address) => *address,
            Address::Unix(path) => panic!("{} is no TCP address", path.display()),
        }
    }

    pub fn connect(&self) -> Connection {
        Connection::to(self.address(FrontEnd::Resp))
    }

    /// Connects and waits until the worker knows the connection.
    pub fn connect_known(&self) -> Connection {
        let mut connection = self.connect();
        connection.ask("hello\n", "hello\n");
        connection
    }

    pub fn post(&self, connection: &Connection, message: Message) {
        let id = self.echo.id_of(&connection.name()).unwrap();
        self.running().mail().post(id, message);
    }

    /// Waits for the first connection to end and tells why it did.
    pub fn first_close(&self) -> CloseReason {
        eventually("a connection to end", || self.echo.closed.lock().unwrap().first().copied())
    }

    /// Shuts down with this grace and waits for all threads.
    pub fn stop(mut self, grace: Duration) -> Arc<Echo> {
        self.shutdown.request(grace);
        assert_eq!(end_of(self.running.take().unwrap()), Some(true), "a thread panicked, or does not end");
        Arc::clone(&self.echo)
    }
}

/// Waits until all threads have ended, and tells whether they did so well; nothing when they do not. Then they are left to
/// themselves: a server that hangs fails its test, and the others run.
fn end_of(running: Running<Message>) -> Option<bool> {
    let (ended, end) = channel();
    std::thread::spawn(move || ended.send(running.wait()));
    // The grace may be as long as anybody is patient.
    end.recv_timeout(2 * PATIENCE).ok()
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // What the test would have released would be waited for.
            self.echo.release("all");
        }
        self.shutdown.request(Duration::ZERO);
        if let Some(running) = self.running.take() {
            let well = end_of(running) == Some(true);
            assert!(well || std::thread::panicking(), "a thread panicked, or does not end");
        }
    }
}

pub struct Connection {
    pub reader: BufReader<TcpStream>,
}

impl Connection {
    pub fn to(address: SocketAddr) -> Connection {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Connection { reader: BufReader::new(stream) }
    }

    pub fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    /// The name by which the server knows this client.
    pub fn name(&self) -> String {
        self.stream().local_addr().unwrap().to_string()
    }

    pub fn send(&self, bytes: impl AsRef<[u8]>) {
        self.stream().write_all(bytes.as_ref()).unwrap();
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        line
    }

    pub fn exactly(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.reader.read_exact(&mut bytes).unwrap();
        bytes
    }

    pub fn ask(&mut self, question: &str, answer: &str) {
        self.send(question);
        assert_eq!(self.line(), answer);
    }

    /// Everything until the server closes; a reset counts as a close.
    pub fn rest(mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.reader.read_to_end(&mut bytes) {
            Ok(_) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => bytes,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Waits until `probe` finds something.
pub fn eventually<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
