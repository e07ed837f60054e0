//! What a transcript is played against: bytes in, bytes out. Knows neither the transcripts nor any reply.

use crate::patience::PATIENCE;
use crate::server::{Server, StartError, find_on_path, find_peer};
use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tenon_client::Stream;

/// A protocol that transcripts speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// RESP; files under a folder `redis`.
    Redis,
    /// memcached's classic text protocol; files under a folder `memcache`.
    Memcache,
}

impl Dialect {
    /// The dialect of a file, by the last folder called `redis` or `memcache` in its path.
    pub fn of_path(path: &Path) -> Option<Dialect> {
        path.components().rev().find_map(|part| match part.as_os_str().to_str() {
            Some("redis") => Some(Dialect::Redis),
            Some("memcache") => Some(Dialect::Memcache),
            _ => None,
        })
    }

    /// The original server that judges a transcript which names none.
    pub fn product(self) -> Product {
        match self {
            Dialect::Redis => Product::Redis,
            Dialect::Memcache => Product::Memcached,
        }
    }

    fn oracle_program(self) -> &'static str {
        match self {
            Dialect::Redis => "redis-server",
            Dialect::Memcache => "memcached",
        }
    }
}

/// An original server, as transcripts name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// redis-server.
    Redis,
    /// valkey-server, which has commands and options of its own.
    Valkey,
    /// memcached.
    Memcached,
}

impl Product {
    /// Those whose transcripts speak this dialect.
    pub fn speaking(dialect: Dialect) -> &'static [Product] {
        match dialect {
            Dialect::Redis => &[Product::Redis, Product::Valkey],
            Dialect::Memcache => &[Product::Memcached],
        }
    }

    /// The name that transcripts write.
    pub fn name(self) -> &'static str {
        match self {
            Product::Redis => "redis",
            Product::Valkey => "valkey",
            Product::Memcached => "memcached",
        }
    }
}

/// Whose behaviour a target shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Tenon, however it is reached.
    Tenon,
    /// The original server.
    Oracle,
}

/// A setting a server is to be started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name, without dashes.
    pub name: String,
    /// The value.
    pub value: String,
    /// The only side it is for, where the names differ.
    pub side: Option<Side>,
}

/// A version such as 7.0.15; a part not written counts as 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version([u32; 3]);

impl Version {
    /// Reads up to three numbers with dots between them.
    pub fn parse(text: &str) -> Option<Version> {
        let mut parts = [0; 3];
        let words: Vec<&str> = text.split('.').collect();
        for (at, word) in words.iter().enumerate() {
            *parts.get_mut(at)? = word.parse().ok()?;
        }
        Some(Version(parts))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Version([major, minor, patch]) = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}

/// What a file asks of the server before its first step.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// The protocol that will be spoken.
    pub dialect: Dialect,
    /// Settings to start with; with any, the server is to be a fresh one.
    pub settings: &'a [Setting],
    /// Whether the server must be one that nothing has used before.
    pub fresh: bool,
}

impl Demand<'_> {
    /// Whether a server that other files have used will not do.
    pub fn wants_own_server(&self) -> bool {
        self.fresh || !self.settings.is_empty()
    }

    /// The settings for one side, as names and values.
    pub fn settings_for(&self, side: Side) -> Vec<(&str, &str)> {
        let wanted = self.settings.iter().filter(|setting| setting.side.is_none_or(|only| only == side));
        wanted.map(|setting| (setting.name.as_str(), setting.value.as_str())).collect()
    }
}

/// Why a target can't play a file.
#[derive(Debug)]
pub enum NotReady {
    /// The target is not installed or not made for this, and says why: the file is skipped.
    Skip(String),
    /// Something is broken: the file has failed.
    Fail(String),
}

/// Something transcripts can be played against.
pub trait Target {
    /// How reports call it.
    fn name(&self) -> String;

    /// Whose behaviour it shows.
    fn side(&self) -> Side;

    /// For an oracle: the version that speaks `dialect`, if it is installed.
    fn version(&self, dialect: Dialect) -> Option<Version> {
        let _ = dialect;
        None
    }

    /// For an oracle: which original server it is.
    fn product(&self, dialect: Dialect) -> Product {
        dialect.product()
    }

    /// Makes everything ready for a file: settings in force, no data, no connection of an earlier file.
    ///
    /// # Errors
    /// When the file can't be played here.
    fn prepare(&mut self, demand: &Demand<'_>) -> Result<(), NotReady>;

    /// Says what is wrong with the server behind the replies, once a file has been played.
    ///
    /// # Errors
    /// When something is.
    fn finish(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Opens a connection, as [`Target::prepare`] was last asked for; `name` is the transcript's name for it.
    ///
    /// # Errors
    /// What the system says.
    fn connect(&mut self, name: &str) -> io::Result<Box<dyn Link>>;
}

/// What a wait for bytes has given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// At least one byte was appended.
    Bytes,
    /// Nothing came in the time given.
    Nothing,
    /// The server has closed the connection, and all its bytes were given before.
    Closed,
}

/// A connection: bytes in, bytes out. Dropping it closes it.
pub trait Link {
    /// Hands bytes to the server.
    ///
    /// # Errors
    /// When the connection is gone.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Waits up to `timeout` for bytes and appends them to `into`; a timeout of zero only looks.
    ///
    /// A link that can't wait may give `Nothing` early: it is asked again until the time has passed.
    ///
    /// # Errors
    /// When the connection broke in another way than being closed.
    fn receive(&mut self, into: &mut Vec<u8>, timeout: Duration) -> io::Result<Received>;
}

impl Link for Stream {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn receive(&mut self, into: &mut Vec<u8>, timeout: Duration) -> io::Result<Received> {
        let mut buffer = vec![0; 64 * 1024];
        // A read timeout of zero means for ever to the system.
        let read = if timeout.is_zero() {
            self.set_nonblocking(true)?;
            let read = self.read(&mut buffer);
            self.set_nonblocking(false)?;
            read
        } else {
            self.set_read_timeout(Some(timeout))?;
            self.read(&mut buffer)
        };
        match read {
            Ok(0) => Ok(Received::Closed),
            Ok(len) => {
                into.extend_from_slice(&buffer[..len]);
                Ok(Received::Bytes)
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => {
                    Ok(Received::Nothing)
                }
                // A server that closes with our bytes unread makes the system send a reset.
                io::ErrorKind::ConnectionReset => Ok(Received::Closed),
                _ => Err(error),
            },
        }
    }
}

/// Between two looks whether it is.
const PAUSE: Duration = Duration::from_millis(2);

/// Empties the store behind a fresh link, for targets that keep one server for many files, and waits until the server has
/// seen that the connections of earlier files were closed.
///
/// # Errors
/// When the server does not answer as it should in time.
pub fn flush(link: &mut dyn Link, dialect: Dialect) -> Result<(), String> {
    let (request, wanted): (&[u8], &[u8]) = match dialect {
        Dialect::Redis => (b"*1\r\n$8\r\nFLUSHALL\r\n", b"+OK\r\n"),
        Dialect::Memcache => (b"flush_all\r\n", b"OK\r\n"),
    };
    let answer = ask(link, request, |answer| answer.len() >= wanted.len())
        .map_err(|error| format!("can't empty the store: {error}"))?;
    if answer != wanted {
        return Err(format!("can't empty the store: the server answered '{}'", answer.escape_ascii()));
    }
    if dialect == Dialect::Redis { wait_until_alone(link) } else { Ok(()) }
}

fn wait_until_alone(link: &mut dyn Link) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let clients = ask(link, b"*2\r\n$6\r\nCLIENT\r\n$4\r\nLIST\r\n", |answer| answer.ends_with(b"\n\r\n"))
            .map_err(|error| format!("can't list the clients: {error}"))?;
        // Our own line is there.
        if clients.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"id=")).count() == 1 {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(format!("connections of earlier files are still there: '{}'", clients.escape_ascii()));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Sends a request and gives what comes until that is the whole answer, or too long has passed.
fn ask(link: &mut dyn Link, request: &[u8], is_whole: impl Fn(&[u8]) -> bool) -> io::Result<Vec<u8>> {
    link.send(request)?;
    let mut answer = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    while !is_whole(&answer) && Instant::now() < deadline {
        if link.receive(&mut answer, Duration::from_millis(100))? == Received::Closed {
            break;
        }
    }
    Ok(answer)
}

/// How servers of a target are started.
pub trait Starter {
    /// How reports call the target.
    fn name(&self) -> String;
    /// Whose behaviour the started servers show.
    fn side(&self) -> Side;
    /// The version, where it is known before a start.
    fn version(&self, dialect: Dialect) -> Option<Version>;
    /// For an oracle: which original server it is.
    fn product(&self, dialect: Dialect) -> Product {
        dialect.product()
    }
    /// Starts a server.
    ///
    /// # Errors
    /// When it is missing or does not come up.
    fn start(&self, dialect: Dialect, settings: &[(&str, &str)]) -> Result<Server, StartError>;
    /// The slot a server for `dialect` is kept in: servers that speak both dialects are kept once.
    fn slot(&self, dialect: Dialect) -> usize;
}

/// A target that starts servers itself: one for all files, and a fresh one for a file that asks for settings.
pub struct Started<S> {
    starter: S,
    shared: [Option<Server>; 2],
    own: Option<Server>,
    dialect: Dialect,
}

impl<S: Starter> Started<S> {
    /// Nothing runs before the first file.
    pub fn new(starter: S) -> Started<S> {
        Started { starter, shared: [None, None], own: None, dialect: Dialect::Redis }
    }

    fn server(&self) -> io::Result<&Server> {
        let shared = self.shared[self.starter.slot(self.dialect)].as_ref();
        self.own.as_ref().or(shared).ok_or_else(|| io::Error::other("prepare was not called"))
    }
}

impl<S: Starter> Target for Started<S> {
    fn name(&self) -> String {
        self.starter.name()
    }

    fn side(&self) -> Side {
        self.starter.side()
    }

    fn version(&self, dialect: Dialect) -> Option<Version> {
        self.starter.version(dialect)
    }

    fn product(&self, dialect: Dialect) -> Product {
        self.starter.product(dialect)
    }

    fn prepare(&mut self, demand: &Demand<'_>) -> Result<(), NotReady> {
        let not_ready = |error: StartError| match error {
            StartError::Missing(what) => NotReady::Skip(what),
            other => NotReady::Fail(other.to_string()),
        };
        self.dialect = demand.dialect;
        self.own = None;
        let settings = demand.settings_for(self.starter.side());
        if demand.wants_own_server() {
            self.own = Some(self.starter.start(demand.dialect, &settings).map_err(not_ready)?);
            return Ok(());
        }
        let slot = &mut self.shared[self.starter.slot(demand.dialect)];
        // A transcript may have ended the server; the next one gets another.
        if slot.as_mut().is_none_or(|server| !server.is_running()) {
            *slot = Some(self.starter.start(demand.dialect, &settings).map_err(not_ready)?);
            return Ok(());
        }
        let mut link = self.connect("flush").map_err(|error| NotReady::Fail(error.to_string()))?;
        flush(link.as_mut(), demand.dialect).map_err(NotReady::Fail)
    }

    fn connect(&mut self, _name: &str) -> io::Result<Box<dyn Link>> {
        let address = self.server()?.address(self.dialect)?;
        Ok(Box::new(Stream::connect(address, Some(PATIENCE))?))
    }
}

/// Starts redis-server and memcached, as found on the PATH.
pub struct Oracles {
    versions: [Option<Version>; 2],
}

impl Oracles {
    /// A target that starts the original servers, each when the first file needs it.
    pub fn target() -> Started<Oracles> {
        let versions = [Dialect::Redis, Dialect::Memcache].map(installed_version);
        Started::new(Oracles { versions })
    }
}

fn installed_version(dialect: Dialect) -> Option<Version> {
    version_of(&find_on_path(dialect.oracle_program())?)
}

/// Reads `... v=7.0.15 ...` and `memcached 1.6.18`.
fn version_of(program: &Path) -> Option<Version> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().find_map(|word| Version::parse(word.strip_prefix("v=").unwrap_or(word)))
}

impl Starter for Oracles {
    fn name(&self) -> String {
        let found = [Dialect::Redis, Dialect::Memcache].map(|dialect| match self.version(dialect) {
            Some(version) => format!("{} {version}", dialect.oracle_program()),
            None => format!("{} (not installed)", dialect.oracle_program()),
        });
        found.join(" and ")
    }

    fn side(&self) -> Side {
        Side::Oracle
    }

    fn version(&self, dialect: Dialect) -> Option<Version> {
        self.versions[self.slot(dialect)]
    }

    fn start(&self, dialect: Dialect, settings: &[(&str, &str)]) -> Result<Server, StartError> {
        match dialect {
            Dialect::Redis => Server::redis(settings),
            Dialect::Memcache => {
                // Its maintenance thread holds items for a moment, and decr only pads a value that nobody holds:
                // without the thread, the answers do not depend on the machine's load.
                let mut all = vec![("extended", "no_lru_maintainer,no_lru_crawler")];
                all.extend(settings);
                Server::memcached(&all)
            }
        }
    }

    fn slot(&self, dialect: Dialect) -> usize {
        match dialect {
            Dialect::Redis => 0,
            Dialect::Memcache => 1,
        }
    }
}

/// Starts the Valkey that lies among the newer servers.
pub struct Valkey {
    program: PathBuf,
    version: Version,
}

impl Valkey {
    /// A target that starts it; nothing where it is not installed.
    pub fn target() -> Option<Started<Valkey>> {
        let program = find_peer("valkey9-server")?;
        let version = version_of(&program)?;
        Some(Started::new(Valkey { program, version }))
    }
}

impl Starter for Valkey {
    fn name(&self) -> String {
        format!("valkey-server {}", self.version)
    }

    fn side(&self) -> Side {
        Side::Oracle
    }

    fn version(&self, _dialect: Dialect) -> Option<Version> {
        Some(self.version)
    }

    fn product(&self, _dialect: Dialect) -> Product {
        Product::Valkey
    }

    fn start(&self, _dialect: Dialect, settings: &[(&str, &str)]) -> Result<Server, StartError> {
        Server::redis_program(&self.program, settings)
    }

    fn slot(&self, _dialect: Dialect) -> usize {
        0
    }
}

/// Starts the `tenon` binary, and speaks to it over TCP.
pub struct TenonOverTcp {
    /// The setting `io`, where it is not left to Tenon.
    io: Option<&'static str>,
}

impl TenonOverTcp {
    /// A target that starts Tenon when the first file needs it.
    pub fn target() -> Started<TenonOverTcp> {
        Started::new(TenonOverTcp { io: None })
    }

    /// Likewise, with this way to move bytes.
    pub fn with_io(io: &'static str) -> Started<TenonOverTcp> {
        Started::new(TenonOverTcp { io: Some(io) })
    }
}

impl Starter for TenonOverTcp {
    fn name(&self) -> String {
        match self.io {
            None => "tenon over TCP".to_owned(),
            Some(io) => format!("tenon over TCP with {io}"),
        }
    }

    fn side(&self) -> Side {
        Side::Tenon
    }

    fn version(&self, _dialect: Dialect) -> Option<Version> {
        None
    }

    fn start(&self, _dialect: Dialect, settings: &[(&str, &str)]) -> Result<Server, StartError> {
        let io = self.io.map(|io| ("io", io));
        Server::tenon(&settings.iter().copied().chain(io).collect::<Vec<_>>())
    }

    fn slot(&self, _dialect: Dialect) -> usize {
        0
    }
}
