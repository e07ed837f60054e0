//! Log lines to the system's log, as syslog(3) hands them over: each is a datagram to the socket on which its daemon
//! listens. Knows nothing of what is logged.

use parking_lot::Mutex;
use std::io::{self, ErrorKind, Write};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// Where the daemon listens on every system that has one.
pub const SOCKET: &str = "/dev/log";

/// How urgent a line is, as syslog numbers it.
mod severity {
    pub(super) const ERROR: u8 = 3;
    pub(super) const WARNING: u8 = 4;
    pub(super) const NOTICE: u8 = 5;
    pub(super) const INFO: u8 = 6;
    pub(super) const DEBUG: u8 = 7;
}

/// Who speaks to the system's log, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// The daemon's socket.
    pub socket: PathBuf,
    /// The name of the program there.
    pub ident: String,
    /// The number of the facility: 1 is `user`, 16 `local0`.
    pub facility: u8,
}

/// The way to the daemon.
#[derive(Debug)]
pub(crate) struct Syslog {
    options: Options,
    /// None before the first line, and while there is no daemon.
    connection: Mutex<Option<UnixDatagram>>,
}

impl Syslog {
    pub(crate) fn new(options: Options) -> Syslog {
        Syslog { options, connection: Mutex::new(None) }
    }

    /// Hands a line over. It has no time, which the daemon notes itself. Where there is none, and where it does not keep up, the
    /// line is lost: nobody is to wait for it.
    fn send(&self, severity: u8, line: &[u8]) {
        let Options { socket, ident, facility } = &self.options;
        let priority = (facility << 3) | severity;
        let mut packet = format!("<{priority}>{ident}[{}]: ", std::process::id()).into_bytes();
        packet.extend_from_slice(line.trim_ascii());
        let mut connection = self.connection.lock();
        let sent = connection.as_ref().map(|daemon| daemon.send(&packet));
        match sent {
            Some(Ok(_)) => {}
            Some(Err(error)) if error.kind() == ErrorKind::WouldBlock => {}
            // A daemon that was started anew has another socket.
            Some(Err(_)) | None => {
                *connection = connect(socket).ok();
                if let Some(daemon) = &*connection {
                    let _ = daemon.send(&packet);
                }
            }
        }
    }
}

fn connect(socket: &Path) -> io::Result<UnixDatagram> {
    let daemon = UnixDatagram::unbound()?;
    daemon.connect(socket)?;
    daemon.set_nonblocking(true)?;
    Ok(daemon)
}

/// What one line is written to.
pub(crate) struct Line<'a> {
    syslog: &'a Syslog,
    severity: u8,
}

impl Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.syslog.send(self.severity, line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Syslog {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line { syslog: self, severity: severity::NOTICE }
    }

    /// As Redis's levels: what it calls verbose is INFO there, and what it calls notice NOTICE.
    fn make_writer_for(&'a self, meta: &Metadata<'_>) -> Line<'a> {
        let severity = match *meta.level() {
            Level::ERROR => severity::ERROR,
            Level::WARN => severity::WARNING,
            Level::INFO => severity::NOTICE,
            Level::DEBUG => severity::INFO,
            Level::TRACE => severity::DEBUG,
        };
        Line { syslog: self, severity }
    }
}
