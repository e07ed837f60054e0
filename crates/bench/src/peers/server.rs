//! A server that the bench has started. Knows how to wait for it and how to end it, not what is measured.

use super::answers::answers;
use super::certificate;
use super::family::Family;
use super::guard::Guard;
use super::postgres;
use super::program::{Program, Settings};
use crate::machine::{placement, process};
use crate::session::Interrupt;
use crate::target::{Login, Protocol, Target};
use anyhow::{Context, Result, anyhow, bail};
use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tenon_client::Address;

/// A running server, ended when dropped.
#[derive(Debug)]
pub struct Server {
    /// What was started.
    pub program: Program,
    arguments: Vec<String>,
    child: Child,
    guard: Guard,
    ports: [u16; 3],
    speaks_tls: bool,
    directory: PathBuf,
    /// Whether its directory outlives it.
    keeps_directory: bool,
}

/// How often it is asked meanwhile.
const LOOK: Duration = Duration::from_millis(2);

/// How long a server may take until it answers; one that loads its data may take longer.
const PATIENCE: Duration = Duration::from_secs(120);

static STARTED: AtomicU64 = AtomicU64::new(0);

impl Server {
    /// In a new directory of its own.
    pub fn start(program: &Program, settings: &Settings<'_>) -> Result<Server> {
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let directory = settings.scratch.join(format!("{}-{}-{number}", program.name, std::process::id()));
        std::fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
        Server::start_in(program, settings, directory)
    }

    /// In a directory that may hold the files of one before it.
    pub fn start_in(program: &Program, settings: &Settings<'_>, directory: PathBuf) -> Result<Server> {
        let ports = free_ports()?;
        let mut command = Command::new(&program.path);
        let arguments = program.arguments(settings, ports);
        command.args(&arguments).current_dir(&directory).stdin(Stdio::null());
        let log = directory.join("log");
        let log_file = File::create(&log).with_context(|| log.display().to_string())?;
        command.stdout(log_file.try_clone()?).stderr(log_file);
        if settings.tls {
            certificate::put_into(&directory)?;
        }
        if program.family == Family::Postgres {
            postgres::initialise(program, &directory)?;
            postgres::run_as(&mut command)?;
        }
        // An interrupt from the terminal is the bench's to deal with.
        command.process_group(0);
        let mut child = spawn_on(settings.cores, &mut command).with_context(|| program.path.display().to_string())?;
        let guard = match Guard::over(child.id()) {
            Ok(guard) => guard,
            Err(error) => {
                child.kill()?;
                child.wait()?;
                return Err(error).context("sh");
            }
        };
        let (program, keeps_directory) = (program.clone(), false);
        let speaks_tls = settings.tls;
        let mut server = Server { program, arguments, child, guard, ports, speaks_tls, directory, keeps_directory };
        server.wait_until_it_answers(&log, &settings.interrupt)?;
        if let Some(target) = server.target(Protocol::Postgres) {
            postgres::make_table(&target, settings.persistence)?;
        }
        Ok(server)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it was started by.
    pub fn command(&self) -> String {
        let program = self.program.path.display().to_string();
        std::iter::once(program).chain(self.arguments.iter().cloned()).collect::<Vec<_>>().join(" ")
    }

    /// Where a cluster's nodes speak to it.
    pub fn bus_port(&self) -> u16 {
        self.ports[1]
    }

    /// Where it keeps its files.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where it speaks `protocol`, if it does.
    pub fn target(&self, protocol: Protocol) -> Option<Target> {
        let port = match protocol {
            Protocol::Resp | Protocol::Postgres => self.ports[0],
            Protocol::Text | Protocol::Meta | Protocol::Binary => self.ports[1],
            Protocol::RespTls if !self.speaks_tls => return None,
            Protocol::RespTls => self.ports[2],
        };
        let authority = (protocol == Protocol::RespTls).then(|| self.directory.join(certificate::AUTHORITY));
        let login = (protocol == Protocol::Postgres).then(Login::default);
        self.program.speaks(protocol).then(|| Target { protocol, address: Address::loopback(port), login, authority })
    }

    fn wait_until_it_answers(&mut self, log: &Path, interrupt: &Interrupt) -> Result<()> {
        let begin = Instant::now();
        let protocols = self.program.family.protocols();
        // The other languages come with the first of each port.
        let asked = [Protocol::Resp, Protocol::RespTls, Protocol::Text, Protocol::Postgres]
            .into_iter()
            .filter(|protocol| protocols.contains(protocol));
        let targets: Vec<Target> = asked.filter_map(|protocol| self.target(protocol)).collect();
        loop {
            if let Some(status) = self.child.try_wait()? {
                let said = std::fs::read_to_string(log).unwrap_or_default();
                let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("none");
                bail!("{} ended before it answered ({status}); its last words: {last}", self.program.name);
            }
            if targets.iter().all(answers) {
                return Ok(());
            }
            if begin.elapsed() > PATIENCE {
                bail!("{} did not answer within {} s", self.program.name, PATIENCE.as_secs());
            }
            interrupt.sleep(LOOK)?;
        }
    }

    /// Asks it to end and waits; after ten seconds it is killed.
    pub fn stop(&mut self) -> Result<()> {
        let ended = self.end();
        self.guard.dismiss();
        ended
    }

    fn end(&mut self) -> Result<()> {
        let signal = match self.program.family {
            // To TERM it answers by waiting for all clients to go.
            Family::Postgres => rustix::process::Signal::INT,
            Family::Tenon | Family::Redis | Family::Memcached => rustix::process::Signal::TERM,
        };
        process::end(&mut self.child, signal, Duration::from_secs(10))
    }

    /// Ends it as a crash does, and gives its directory to whoever starts the next one there.
    pub fn kill(mut self) -> Result<PathBuf> {
        self.child.kill()?;
        self.child.wait()?;
        self.guard.dismiss();
        self.keeps_directory = true;
        Ok(self.directory.clone())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("{}: {error:#}", self.program.name);
        }
        if !self.keeps_directory {
            // What is left of a server's files harms nobody.
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

/// A process begins on the cores of the thread that starts it, so a thread that is kept on the right ones does.
fn spawn_on(cores: &[usize], command: &mut Command) -> Result<Child> {
    if cores.is_empty() {
        return Ok(command.spawn()?);
    }
    std::thread::scope(|scope| {
        let starter = scope.spawn(|| {
            placement::pin_this_thread(cores)?;
            Ok(command.spawn()?)
        });
        starter.join().unwrap_or_else(|_| Err(anyhow!("the starting thread panicked")))
    })
}

/// Ports that were free a moment ago.
fn free_ports() -> Result<[u16; 3]> {
    let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port");
    let bound = [bind()?, bind()?, bind()?];
    let port = |index: usize| bound[index].local_addr().map(|address| address.port());
    Ok([port(0)?, port(1)?, port(2)?])
}
