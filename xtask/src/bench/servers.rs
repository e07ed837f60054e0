//! The servers under measurement: finding them, starting them pinned, ending them. Knows how to call each program, not
//! what is measured.

use super::load::Protocol;
use super::placement;
use crate::process;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Programs that are called alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Both protocols.
    Tenon,
    /// redis-server and valkey-server.
    Redis,
    /// memcached.
    Memcached,
}

impl Family {
    /// What its servers speak.
    pub fn protocols(self) -> &'static [Protocol] {
        match self {
            Family::Tenon => &[Protocol::Resp, Protocol::Memcache, Protocol::Meta],
            Family::Redis => &[Protocol::Resp],
            Family::Memcached => &[Protocol::Memcache, Protocol::Meta],
        }
    }
}

/// An installed server.
#[derive(Clone, Debug)]
pub struct Program {
    /// What the tables call it.
    pub name: &'static str,
    /// How it is called.
    pub family: Family,
    /// Where it lies.
    pub path: PathBuf,
    /// What it says of itself.
    pub version: String,
}

/// How to start a server.
#[derive(Debug)]
pub struct Start<'a> {
    /// Worker threads.
    pub threads: usize,
    /// Cores it may use.
    pub cores: &'a [usize],
    /// A program with arguments that runs it, such as valgrind; empty for none.
    pub under: &'a [String],
    /// Further words of its command line.
    pub settings: &'a [&'a str],
    /// How long it may take until it answers.
    pub patience: Duration,
    /// Where its log goes.
    pub scratch: &'a Path,
}

impl<'a> Start<'a> {
    /// So many threads on these cores, by itself and with no settings but those of the measurement; ten seconds to start.
    pub fn new(threads: usize, cores: &'a [usize], scratch: &'a Path) -> Start<'a> {
        Start { threads, cores, under: &[], settings: &[], patience: Duration::from_secs(10), scratch }
    }
}

/// A running server, ended when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// What the tables call it.
    pub name: &'static str,
    /// How it is called.
    pub family: Family,
    resp: Option<SocketAddr>,
    memcache: Option<SocketAddr>,
}

/// Newer builds than the system's, from Debian's next release, are looked for in this directory's `bin`.
const PEERS_VARIABLE: &str = "TENON_PEERS";

/// Every server that can be measured here, and a line on each that cannot.
pub fn find(workspace: &Workspace, scratch: &Path) -> (Vec<Program>, Vec<String>) {
    let peers = std::env::var_os(PEERS_VARIABLE).map(PathBuf::from).or_else(|| {
        let home = PathBuf::from(std::env::var_os("HOME")?);
        Some(home.join(".cache/tenon-peers"))
    });
    let peer =
        |name: &str| peers.as_ref().map(|dir| dir.join("bin").join(name)).filter(|file| process::is_executable(file));
    let tenon = std::env::var_os("TENON_BIN").map(PathBuf::from).unwrap_or_else(|| workspace.tenon("release"));
    let wanted = [
        ("tenon", Family::Tenon, Some(tenon), ""),
        ("redis-server", Family::Redis, process::find("redis-server"), "install the package `redis-server`"),
        ("memcached", Family::Memcached, process::find("memcached"), "install the package `memcached`"),
        ("redis8-server", Family::Redis, peer("redis8-server"), PEERS_VARIABLE),
        ("valkey9-server", Family::Redis, peer("valkey9-server"), PEERS_VARIABLE),
        ("memcached-new", Family::Memcached, peer("memcached-new"), PEERS_VARIABLE),
    ];
    let (mut found, mut skipped) = (Vec::new(), Vec::new());
    for (name, family, path, hint) in wanted {
        let Some(path) = path else {
            let hint = if hint == PEERS_VARIABLE { format!("not in ${PEERS_VARIABLE}/bin") } else { hint.to_owned() };
            skipped.push(format!("{name}: not measured: {hint}"));
            continue;
        };
        match probe(name, family, &path, scratch) {
            Ok(version) => found.push(Program { name, family, path, version }),
            Err(error) => skipped.push(format!("{name}: not measured: {error:#}")),
        }
    }
    (found, skipped)
}

/// Starts the program once to see that it answers; its version.
fn probe(name: &'static str, family: Family, path: &Path, scratch: &Path) -> Result<String> {
    let said = process::output(Command::new(path).arg("--version"))?;
    let version = said.split_whitespace().map(|word| word.trim_start_matches("v=").trim_start_matches('v'));
    let version = version.filter(|word| word.starts_with(|c: char| c.is_ascii_digit())).find(|word| word.contains('.'));
    let program = Program { name, family, path: path.to_path_buf(), version: version.unwrap_or("?").to_owned() };
    let start = Start::new(1, &[], scratch);
    program.start(&start)?;
    Ok(program.version)
}

impl Program {
    /// Starts it on free loopback ports and waits until it answers.
    pub fn start(&self, start: &Start<'_>) -> Result<Server> {
        let ports = free_ports()?;
        let address = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let speaks = |protocol| self.family.protocols().contains(&protocol);
        let (resp, memcache) =
            (speaks(Protocol::Resp).then(|| address(ports[0])), speaks(Protocol::Memcache).then(|| address(ports[1])));
        let log = start.scratch.join(format!("{}.log", self.name));
        let log_file = File::create(&log).with_context(|| log.display().to_string())?;
        let mut words: Vec<std::ffi::OsString> = Vec::new();
        if !start.cores.is_empty() {
            words.extend(["taskset".into(), "-c".into(), placement::list(start.cores).into()]);
        }
        words.extend(start.under.iter().map(Into::into));
        words.push(self.path.clone().into());
        words.extend(self.arguments(start.threads, ports).into_iter().map(Into::into));
        words.extend(start.settings.iter().map(Into::into));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(start.scratch).stdin(Stdio::null());
        command.stdout(log_file.try_clone()?).stderr(log_file);
        let child = command.spawn().with_context(|| process::line(&command))?;
        let mut server = Server { child, name: self.name, family: self.family, resp, memcache };
        server.wait_until_it_answers(start.patience, &log)?;
        Ok(server)
    }

    fn arguments(&self, threads: usize, [resp, memcache]: [u16; 2]) -> Vec<String> {
        let line = match self.family {
            Family::Tenon => {
                format!("--bind 127.0.0.1 --port {resp} --memcached-port {memcache} --workers {threads}")
            }
            Family::Redis => {
                format!("--bind 127.0.0.1 --port {resp} --daemonize no --appendonly no --io-threads {threads} --save")
            }
            Family::Memcached => {
                let user = if rustix::process::geteuid().is_root() { "-u root " } else { "" };
                format!("{user}-l 127.0.0.1 -p {memcache} -U 0 -t {threads} -m 4096")
            }
        };
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        if self.family == Family::Redis {
            words.push(String::new());
            if threads > 1 {
                // Before 8 they only write, unless they are told to read, too.
                words.extend(["--io-threads-do-reads", "yes"].map(str::to_owned));
            }
        }
        words
    }
}

impl Server {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where it speaks `protocol`, if it does.
    pub fn address(&self, protocol: Protocol) -> Option<SocketAddr> {
        match protocol {
            Protocol::Resp => self.resp,
            Protocol::Memcache | Protocol::Meta => self.memcache,
        }
    }

    /// The protocol to fill it through.
    pub fn first_protocol(&self) -> Protocol {
        self.family.protocols()[0]
    }

    fn wait_until_it_answers(&mut self, patience: Duration, log: &Path) -> Result<()> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                let said = std::fs::read_to_string(log).unwrap_or_default();
                let last = said.lines().rev().find(|line| !line.trim().is_empty());
                let last = last.map(|line| format!("; its last words: {line}")).unwrap_or_default();
                bail!("it ended before it answered ({status}){last}");
            }
            let answers = |protocol| match self.address(protocol) {
                Some(address) => answers(address, protocol),
                None => true,
            };
            if answers(Protocol::Resp) && answers(Protocol::Memcache) {
                return Ok(());
            }
            if begin.elapsed() > patience {
                bail!("it did not answer within {} s", patience.as_secs());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asks it to end.
    pub fn ask_to_end(&self) -> Result<()> {
        let pid = rustix::process::Pid::from_child(&self.child);
        Ok(rustix::process::kill_process(pid, rustix::process::Signal::TERM)?)
    }

    /// Asks it to end and waits; after ten seconds it is killed.
    pub fn stop(&mut self) -> Result<()> {
        if self.child.try_wait()?.is_some() {
            return Ok(());
        }
        self.ask_to_end()?;
        let begin = Instant::now();
        while self.child.try_wait()?.is_none() {
            if begin.elapsed() > Duration::from_secs(10) {
                self.child.kill()?;
                self.child.wait()?;
                bail!("{} did not end when asked to", self.name);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("{}: {error:#}", self.name);
        }
    }
}

fn answers(address: SocketAddr, protocol: Protocol) -> bool {
    let (question, answer): (&[u8], &[u8]) = match protocol {
        Protocol::Resp => (b"*1\r\n$4\r\nPING\r\n", b"+PONG"),
        Protocol::Memcache | Protocol::Meta => (b"version\r\n", b"VERSION"),
    };
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(question)?;
        let mut begins = vec![0; answer.len()];
        stream.read_exact(&mut begins)?;
        Ok(begins == answer)
    };
    ask().unwrap_or(false)
}

/// Two ports that were free a moment ago.
fn free_ports() -> Result<[u16; 2]> {
    let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port");
    let (one, other) = (bind()?, bind()?);
    Ok([one.local_addr()?.port(), other.local_addr()?.port()])
}
