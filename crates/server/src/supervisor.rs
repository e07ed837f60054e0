//! What systemd is told of a service of the type `notify`: that the server is ready, and that it ends. Knows no setting.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Where systemd says the address of the socket that it listens on.
const SOCKET: &str = "NOTIFY_SOCKET";

/// systemd, if it has started the server and wants to be told.
#[derive(Debug)]
pub(crate) struct Supervisor(Option<SocketAddr>);

impl Supervisor {
    /// Nobody who wants to be told.
    pub(crate) fn none() -> Supervisor {
        Supervisor(None)
    }

    /// The one that the environment names. An address of another kind than a UNIX socket's is for virtual machines.
    pub(crate) fn of_environment() -> Supervisor {
        Supervisor(env::var_os(SOCKET).and_then(|name| address(&name).ok()))
    }

    /// Whether there is one.
    pub(crate) fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// Tells it what goes on, in words for `systemctl status`.
    pub(crate) fn tell_status(&self, status: &str) {
        self.tell(&format!("STATUS={status}\n"));
    }

    /// Tells it that clients are served: only now does what waits for the service start.
    pub(crate) fn tell_ready(&self) {
        self.tell("READY=1\nSTATUS=Ready to accept connections\n");
    }

    /// Tells it that the end has begun.
    pub(crate) fn tell_stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=Ending\n");
    }

    fn tell(&self, text: &str) {
        let Some(address) = &self.0 else { return };
        let told = UnixDatagram::unbound().and_then(|socket| socket.send_to_addr(text.as_bytes(), address));
        if let Err(error) = told {
            tracing::warn!("systemd could not be told: {error}");
        }
    }
}

/// A path, or a name behind an `@` that stands in no file system.
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None if name.as_bytes().starts_with(b"/") => SocketAddr::from_pathname(name),
        None => Err(io::ErrorKind::Unsupported.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn it_is_told_at_either_kind_of_address() {
        let path = env::temp_dir().join(format!("tenon-notify-{}", std::process::id()));
        let abstract_name = format!("@tenon-notify-{}", std::process::id());
        for name in [path.as_os_str(), OsStr::new(&abstract_name)] {
            let at = address(name).expect("an address");
            let systemd = UnixDatagram::bind_addr(&at).expect("nobody else has it");
            systemd.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
            Supervisor(Some(at)).tell_ready();
            let mut text = [0; 64];
            let len = systemd.recv(&mut text).expect("something comes");
            assert_eq!(&text[..len], b"READY=1\nSTATUS=Ready to accept connections\n");
        }
        std::fs::remove_file(path).expect("it is there");
        assert!(address(OsStr::new("vsock:2:1234")).is_err());
    }
}
