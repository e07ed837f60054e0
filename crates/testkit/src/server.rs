//! Servers started for a test or a measurement, on free ports, and ended with their handle. Knows no command beyond PING.

use crate::patience::PATIENCE;
use crate::ports::Port;
use crate::target::Dialect;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tenon_client::{Address, Memcache, Resp, Stream, Value};

/// Other ports are tried this often when somebody who knows nothing of claims took one between choosing and listening.
const START_ATTEMPTS: usize = 5;

/// A running server of our own, with a folder of its own; both end with this handle.
#[derive(Debug)]
pub struct Server {
    child: Child,
    folder: Folder,
    resp: Option<Address>,
    memcache: Option<Address>,
    unix: Option<Address>,
    /// What it listens on is nobody else's until it ends.
    _ports: [Port; 2],
}

/// Why a server is not there.
#[derive(Debug)]
pub enum StartError {
    /// The program is not installed or not built; says where it was looked for.
    Missing(String),
    /// The program ended instead of listening, or did not answer in time; with what it had to say.
    Failed(String),
    /// The system refused something.
    Io(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Missing(what) | StartError::Failed(what) => f.write_str(what),
            StartError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> StartError {
        StartError::Io(error)
    }
}

impl Server {
    /// Starts `tenon` with a RESP port, a memcached port and a UNIX socket; each setting becomes `--name value`.
    ///
    /// # Errors
    /// See [`StartError`]; where the binary is looked for: [`tenon_binary`].
    pub fn tenon(settings: &[(&str, &str)]) -> Result<Server, StartError> {
        let program = tenon_binary()?;
        Server::tenon_through(|| Command::new(&program), settings)
    }

    /// Starts `tenon` likewise, where the system allows a process so many open files, which only root may raise.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn tenon_with_open_files(limit: u32, settings: &[(&str, &str)]) -> Result<Server, StartError> {
        Server::tenon_within(&format!("-n {limit}"), settings)
    }

    /// Starts `tenon` likewise, where the system lets no file of a process become longer than so many blocks of 512 bytes.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn tenon_with_short_files(blocks: u32, settings: &[(&str, &str)]) -> Result<Server, StartError> {
        Server::tenon_within(&format!("-f {blocks}"), settings)
    }

    /// Starts `tenon` with a limit as `ulimit` names it.
    fn tenon_within(limit: &str, settings: &[(&str, &str)]) -> Result<Server, StartError> {
        let program = tenon_binary()?;
        let shell = || {
            let mut command = Command::new("sh");
            command.arg("-c").arg(format!("ulimit {limit} && exec \"$0\" \"$@\"")).arg(&program);
            command
        };
        Server::tenon_through(shell, settings)
    }

    fn tenon_through(program: impl Fn() -> Command, settings: &[(&str, &str)]) -> Result<Server, StartError> {
        Server::start(|ports, folder| {
            let socket = folder.join("tenon.sock");
            let mut command = program();
            command.args(["--bind", "127.0.0.1"]).arg("--port").arg(ports[0].to_string());
            command.arg("--memcached-port").arg(ports[1].to_string()).arg("--unixsocket").arg(&socket);
            // Said first, so that a test's own word holds.
            if let Some(io) = std::env::var_os("TENON_IO") {
                command.arg("--io").arg(io);
            }
            push_settings(&mut command, settings);
            let addresses = [Some(Address::loopback(ports[0])), Some(Address::loopback(ports[1]))];
            (command, addresses, Some(Address::Unix(socket)))
        })
    }

    /// Starts `redis-server` from the PATH without any persistence; each setting becomes `--name value`.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn redis(settings: &[(&str, &str)]) -> Result<Server, StartError> {
        let program = find_on_path("redis-server").ok_or_else(|| not_on_path("redis-server"))?;
        Server::redis_program(&program, settings)
    }

    /// Starts another version of `redis-server`, or one of its relatives, likewise.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn redis_program(program: &Path, settings: &[(&str, &str)]) -> Result<Server, StartError> {
        Server::start(|ports, folder| {
            let socket = folder.join("redis.sock");
            let mut command = Command::new(program);
            command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
            command.args(["--enable-debug-command", "yes"]).arg("--port").arg(ports[0].to_string());
            command.arg("--unixsocket").arg(&socket);
            push_settings(&mut command, settings);
            (command, [Some(Address::loopback(ports[0])), None], Some(Address::Unix(socket)))
        })
    }

    /// Starts `memcached` from the PATH; a setting becomes `--name=value`, by memcached's own long names, and `--name` where
    /// the value is `yes`.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn memcached(settings: &[(&str, &str)]) -> Result<Server, StartError> {
        let program = find_on_path("memcached").ok_or_else(|| not_on_path("memcached"))?;
        Server::start(|ports, _| {
            let mut command = Command::new(&program);
            // memcached refuses to be root's without being told so; for others `--user` does nothing.
            command.args(["--listen=127.0.0.1", "--udp-port=0", "--user=root"]);
            command.arg(format!("--port={}", ports[1]));
            command.args(settings.iter().map(|(name, value)| match *value {
                "yes" => format!("--{name}"),
                value => format!("--{name}={value}"),
            }));
            (command, [None, Some(Address::loopback(ports[1]))], None)
        })
    }

    /// Starts what `prepare` makes of two free ports and an empty folder, and waits until it answers.
    fn start(
        prepare: impl Fn([u16; 2], &Path) -> (Command, [Option<Address>; 2], Option<Address>),
    ) -> Result<Server, StartError> {
        let mut last = String::new();
        for _ in 0..START_ATTEMPTS {
            let folder = Folder::new()?;
            let ports = [Port::free()?, Port::free()?];
            let (mut command, [resp, memcache], unix) = prepare(ports.each_ref().map(Port::number), &folder.path);
            let log = File::create(folder.path.join("log"))?;
            command.current_dir(&folder.path).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
            let child = command.spawn()?;
            let mut server = Server { child, folder, resp, memcache, unix, _ports: ports };
            match server.wait_until_it_answers() {
                Ok(()) => return Ok(server),
                Err(what) => last = format!("{}: {what}\n{}", command.get_program().display(), server.log()),
            }
            // Only a taken port is worth another attempt.
            if !last.to_lowercase().contains("address already in use") {
                break;
            }
        }
        Err(StartError::Failed(last))
    }

    fn wait_until_it_answers(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            // An ended process is looked for first: another server could be answering on its port.
            if let Some(status) = self.ended() {
                return Err(format!("ended instead of listening, {status}"));
            }
            if self.answers() {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("did not answer within {PATIENCE:?}"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn answers(&self) -> bool {
        let timeout = Some(Duration::from_secs(1));
        // Any reply will do, an error too, as the server may want a password first; but for one that says that it loads.
        let resp = self.resp.as_ref().is_none_or(|address| {
            let answer = Resp::connect_to(address, timeout).and_then(|mut resp| resp.call(&[b"PING"]));
            let is_loading = |answer: &Value| matches!(answer, Value::Error(error) if error.starts_with(b"LOADING"));
            answer.is_ok_and(|answer| !is_loading(&answer))
        });
        resp && self.memcache.as_ref().is_none_or(|address| {
            Memcache::connect_to(address, timeout).and_then(|mut memcache| memcache.exchange(b"version")).is_ok()
        })
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Whether the process has not ended.
    pub fn is_running(&mut self) -> bool {
        self.ended().is_none()
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal, named as for `kill`: `-TERM`.
    ///
    /// # Panics
    /// When it is not there.
    pub fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().expect("kill runs").success());
    }

    /// The TCP address that speaks `dialect`.
    ///
    /// # Errors
    /// When this server doesn't speak it.
    pub fn address(&self, dialect: Dialect) -> io::Result<&Address> {
        let address = match dialect {
            Dialect::Redis => &self.resp,
            Dialect::Memcache => &self.memcache,
        };
        address.as_ref().ok_or_else(|| io::Error::other(format!("this server does not speak {dialect:?}")))
    }

    /// A connection to the address that speaks `dialect`, on which nothing is waited for longer than this.
    ///
    /// # Errors
    /// When this server doesn't speak it, or cannot be reached.
    pub fn connect(&self, dialect: Dialect, patience: Duration) -> io::Result<Stream> {
        let stream = Stream::connect(self.address(dialect)?, Some(patience))?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(stream)
    }

    /// The UNIX socket that speaks RESP, where the server has one.
    pub fn unix(&self) -> Option<&Address> {
        self.unix.as_ref()
    }

    /// The server's working folder, which is deleted with this handle.
    pub fn folder(&self) -> &Path {
        &self.folder.path
    }

    /// What the server has written to its standard output and error.
    pub fn log(&self) -> String {
        let log = fs::read(self.folder.path.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Ends the process by SIGKILL, and waits until it has ended.
    ///
    /// # Panics
    /// When it cannot be waited for.
    pub fn kill(&mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it ends");
    }

    /// Waits until the process has ended by itself, for example after SHUTDOWN or a signal.
    ///
    /// # Errors
    /// `TimedOut` when it is still running after `timeout`.
    pub fn wait_for_end(&mut self, timeout: Duration) -> io::Result<ExitStatus> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() > deadline {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the server is still running"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when the process has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The `tenon` binary: the file that TENON_BIN names, else the one cargo built beside the running test.
///
/// # Errors
/// [`StartError::Missing`] when it is not there.
pub fn tenon_binary() -> Result<PathBuf, StartError> {
    if let Some(named) = std::env::var_os("TENON_BIN") {
        let path = PathBuf::from(named);
        return match path.canonicalize() {
            Ok(path) => Ok(path),
            Err(_) => Err(StartError::Missing(format!("TENON_BIN names {}, which is not there", path.display()))),
        };
    }
    // Tests run from target/<profile>/deps, binaries from target/<profile>.
    let test = std::env::current_exe()?;
    let built = test.ancestors().skip(1).take(2).map(|folder| folder.join("tenon")).find(|path| path.is_file());
    built.ok_or_else(|| StartError::Missing("tenon is not built: run `cargo build`, or set TENON_BIN".to_owned()))
}

/// The program of this name in the folders of PATH.
pub fn find_on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
}

/// One of the newer servers, in the folder `bin` under TENON_PEERS, or under `~/.cache/tenon-peers`.
pub fn find_peer(program: &str) -> Option<PathBuf> {
    let folder = match std::env::var_os("TENON_PEERS") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".cache/tenon-peers"),
    };
    Some(folder.join("bin").join(program)).filter(|program| program.is_file())
}

fn not_on_path(program: &str) -> StartError {
    StartError::Missing(format!("{program} is not installed"))
}

fn push_settings(command: &mut Command, settings: &[(&str, &str)]) {
    for (name, value) in settings {
        command.arg(format!("--{name}")).arg(value);
    }
}

/// A folder for one server or test, deleted when dropped.
#[derive(Debug)]
pub struct Folder {
    /// Where it is.
    pub path: PathBuf,
}

impl Folder {
    /// One of its own.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new() -> io::Result<Folder> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Short: the path of a UNIX socket may have 107 bytes.
        let path = std::env::temp_dir().join(format!("tenon-{}-{number}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Folder { path })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that can't be deleted is litter, not a failure.
        let _ = fs::remove_dir_all(&self.path);
    }
}
