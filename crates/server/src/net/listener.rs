//! Listening sockets: which addresses, and how they are opened. Knows no connection.

use super::serve::{Bound, Takes};
use super::service::{Address, FrontEnd};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, chmod};
use rustix::io::Errno;
use rustix::net::sockopt::{set_ipv6_v6only, set_socket_reuseaddr};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, getsockname, listen, socket_with,
};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One address to listen on, for one front end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// Who speaks there.
    pub front_end: FrontEnd,
    /// Where.
    pub endpoint: Endpoint,
}

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A TCP address and port; port 0 lets the kernel choose one.
    Tcp {
        /// The address.
        bind: Bind,
        /// The port.
        port: u16,
    },
    /// The same, where TLS is spoken.
    Tls {
        /// The address.
        bind: Bind,
        /// The port.
        port: u16,
    },
    /// A UNIX socket.
    Unix {
        /// The socket's file. One that nobody listens on any more is replaced.
        path: PathBuf,
        /// The file's permissions; without, the process's umask decides.
        mode: Option<u32>,
    },
}

impl Listen {
    /// Whether the kernel chooses the port.
    pub(super) fn takes_any_port(&self) -> bool {
        matches!(self.endpoint, Endpoint::Tcp { port: 0, .. } | Endpoint::Tls { port: 0, .. })
    }
}

/// One word of Redis's `bind` setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    /// A host name or an address, or `*` and `::*` for all addresses of IPv4 and IPv6.
    pub host: String,
    /// Written with a leading `-`: a machine that lacks the address starts without it.
    pub optional: bool,
    /// As memcached has it: all addresses of a name are listened on, and of `*` those of IPv6, too. What is taken already
    /// is passed over as long as one of them is not.
    pub all: bool,
}

impl Bind {
    /// Reads one word: `127.0.0.1`, `-::1`, `*`, `-::*`, `localhost`.
    pub fn parse(word: &str) -> Bind {
        match word.strip_prefix('-') {
            Some(host) => Bind { host: host.to_owned(), optional: true, all: false },
            None => Bind { host: word.to_owned(), optional: false, all: false },
        }
    }

    /// Reads all words as memcached means them: `*` is followed by what stands for it in IPv6, and both are one.
    pub fn parse_as_memcached(words: &[String]) -> Vec<Bind> {
        let mut binds: Vec<Bind> = Vec::with_capacity(words.len());
        for word in words {
            if word == "-::*" && binds.last().is_some_and(|last| last.host == "*") {
                continue;
            }
            binds.push(Bind { all: true, ..Bind::parse(word) });
        }
        binds
    }

    /// Where that is: one address, or those of [`Bind::all`].
    pub(super) fn resolve(&self, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        let any = [SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)), SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))];
        match self.host.as_str() {
            "*" if self.all => Ok(any.to_vec()),
            "*" => Ok(vec![any[0]]),
            "::*" => Ok(vec![any[1]]),
            host => match host.parse::<IpAddr>() {
                Ok(address) => Ok(vec![SocketAddr::from((address, port))]),
                Err(_) => {
                    let wanted = if self.all { usize::MAX } else { 1 };
                    let mut found: Vec<SocketAddr> = Vec::new();
                    for address in (host, port).to_socket_addrs()?.take(wanted) {
                        if !found.contains(&address) {
                            found.push(address);
                        }
                    }
                    match found.is_empty() {
                        true => Err(std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no address")),
                        false => Ok(found),
                    }
                }
            },
        }
    }

    /// Opens what `open` opens at each address; what cannot be had is passed over where that is memcached's way.
    pub(super) fn open_each<T, E: Copy>(
        &self,
        addresses: Vec<SocketAddr>,
        errno: impl Fn(E) -> Errno,
        mut open: impl FnMut(SocketAddr) -> Result<T, E>,
    ) -> Result<Vec<T>, E> {
        let mut opened = Vec::with_capacity(addresses.len());
        let mut passed_over = Vec::new();
        for address in addresses {
            match open(address) {
                Ok(socket) => opened.push(socket),
                Err(error) if self.all && (errno(error) == Errno::ADDRINUSE || self.is_lacking(errno(error))) => {
                    passed_over.push((address, error));
                }
                Err(error) => return Err(error),
            }
        }
        if opened.is_empty()
            && let Some((_, error)) = passed_over.first()
        {
            return Err(*error);
        }
        for (address, error) in passed_over {
            tracing::warn!(%address, "{}; going on without it", errno(error));
        }
        Ok(opened)
    }

    /// Which failures Redis passes over: an absent optional address, and a protocol that the kernel does not have. One of
    /// the families that `*` stands for may be absent, too.
    fn is_lacking(&self, errno: Errno) -> bool {
        match errno {
            Errno::ADDRNOTAVAIL => self.optional || self.all && self.host == "*",
            Errno::NOPROTOOPT
            | Errno::PROTONOSUPPORT
            | Errno::SOCKTNOSUPPORT
            | Errno::PFNOSUPPORT
            | Errno::AFNOSUPPORT => true,
            _ => false,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp { bind, port } | Endpoint::Tls { bind, port } if bind.host.contains(':') => {
                write!(f, "[{}]:{port}", bind.host)
            }
            Endpoint::Tcp { bind, port } | Endpoint::Tls { bind, port } => write!(f, "{}:{port}", bind.host),
            Endpoint::Unix { path, .. } => path.display().fmt(f),
        }
    }
}

/// A listening socket could not be opened.
#[derive(Debug)]
pub struct ListenError {
    /// For whom and where.
    pub listen: Listen,
    /// What was being done, named after the system call.
    pub step: &'static str,
    /// Why it failed.
    pub source: std::io::Error,
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Listen { front_end, endpoint } = &self.listen;
        write!(f, "cannot listen on {endpoint} for {front_end}: {}: {}", self.step, self.source)
    }
}

impl std::error::Error for ListenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Where a listening socket is, and what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    listen: Listen,
    address: Address,
}

/// An open listening socket. Dropping it removes a UNIX socket's file, if it is still ours.
#[derive(Debug)]
pub(super) struct Listener {
    fd: OwnedFd,
    /// What was asked for.
    pub(super) listen: Listen,
    pub(super) front_end: FrontEnd,
    pub(super) address: Address,
    file: Option<SocketFile>,
}

#[derive(Debug)]
struct SocketFile {
    path: Arc<Path>,
    device: u64,
    inode: u64,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another server may have put its own in the place of ours since.
        let is_ours = std::fs::symlink_metadata(&self.path)
            .is_ok_and(|file| (file.dev(), file.ino()) == (self.device, self.inode));
        if is_ours && let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the UNIX socket file");
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Listener {
    /// Opens all of them, or none. An optional address that this machine lacks is skipped with a warning.
    pub(super) fn open_all(listens: &[Listen], backlog: i32) -> Result<Vec<Listener>, ListenError> {
        let mut listeners = Vec::with_capacity(listens.len());
        for listen in listens {
            match Listener::open(listen, backlog) {
                Ok(opened) => listeners.extend(opened),
                Err((step, source)) => {
                    let error = ListenError { listen: listen.clone(), step, source };
                    if !can_be_skipped(listen, &error.source) {
                        return Err(error);
                    }
                    tracing::warn!("{error}; going on without it");
                }
            }
        }
        Ok(listeners)
    }

    /// Opens one where it was: at the port that the kernel chose then, and at the address that a name had.
    pub(super) fn open_again(place: &Place, backlog: i32) -> Result<Listener, ListenError> {
        let listen = &place.listen;
        let opened = match (&listen.endpoint, &place.address) {
            (Endpoint::Unix { path, mode }, _) => open_unix(path, *mode, backlog, listen),
            (_, Address::Inet(address)) => {
                open_tcp(*address, backlog, listen).map_err(|(step, errno)| (step, errno.into()))
            }
            (_, Address::Unix(_)) => unreachable!("a port has no file"),
        };
        opened.map_err(|(step, source)| ListenError { listen: listen.clone(), step, source })
    }

    fn open(listen: &Listen, backlog: i32) -> Result<Vec<Listener>, (&'static str, std::io::Error)> {
        match &listen.endpoint {
            Endpoint::Tcp { bind, port } | Endpoint::Tls { bind, port } => {
                let addresses = bind.resolve(*port).map_err(|error| ("getaddrinfo", error))?;
                bind.open_each(addresses, |(_, errno)| errno, |address| open_tcp(address, backlog, listen))
                    .map_err(|(step, errno)| (step, errno.into()))
            }
            Endpoint::Unix { path, mode } => Ok(vec![open_unix(path, *mode, backlog, listen)?]),
        }
    }
}

/// Whether the server does without an address that it cannot have.
fn can_be_skipped(listen: &Listen, error: &std::io::Error) -> bool {
    let (Endpoint::Tcp { bind, .. } | Endpoint::Tls { bind, .. }) = &listen.endpoint else { return false };
    Errno::from_io_error(error).is_some_and(|errno| bind.is_lacking(errno))
}

const SOCKET_FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

fn open_tcp(address: SocketAddr, backlog: i32, asked: &Listen) -> Result<Listener, (&'static str, Errno)> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let fd = socket_with(family, SocketType::STREAM, SOCKET_FLAGS, None).map_err(|errno| ("socket", errno))?;
    set_socket_reuseaddr(&fd, true).map_err(|errno| ("setsockopt", errno))?;
    if address.is_ipv6() {
        // So that `* ::*` can listen on both.
        set_ipv6_v6only(&fd, true).map_err(|errno| ("setsockopt", errno))?;
    }
    bind(&fd, &address).map_err(|errno| ("bind", errno))?;
    listen(&fd, backlog).map_err(|errno| ("listen", errno))?;
    let bound = getsockname(&fd).and_then(SocketAddr::try_from).map_err(|errno| ("getsockname", errno))?;
    Ok(Listener { fd, listen: asked.clone(), front_end: asked.front_end, address: Address::Inet(bound), file: None })
}

fn open_unix(
    path: &Path,
    mode: Option<u32>,
    backlog: i32,
    asked: &Listen,
) -> Result<Listener, (&'static str, std::io::Error)> {
    let at = |step: &'static str| move |errno: Errno| (step, std::io::Error::from(errno));
    let address = SocketAddrUnix::new(path).map_err(at("path"))?;
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, SOCKET_FLAGS, None).map_err(at("socket"))?;
    if let Err(errno) = bind(&fd, &address) {
        if errno != Errno::ADDRINUSE || !is_abandoned(path, &address) {
            return Err(at("bind")(errno));
        }
        std::fs::remove_file(path).map_err(|error| ("unlink", error))?;
        bind(&fd, &address).map_err(at("bind"))?;
    }
    let metadata = std::fs::symlink_metadata(path).map_err(|error| ("stat", error))?;
    let path: Arc<Path> = Arc::from(path);
    let file = SocketFile { path: Arc::clone(&path), device: metadata.dev(), inode: metadata.ino() };
    if let Some(mode) = mode {
        // Before listen: until then nobody can connect, whatever the file's permissions are.
        chmod(&*path, Mode::from_raw_mode(mode)).map_err(at("chmod"))?;
    }
    listen(&fd, backlog).map_err(at("listen"))?;
    Ok(Listener {
        fd,
        listen: asked.clone(),
        front_end: asked.front_end,
        address: Address::Unix(path),
        file: Some(file),
    })
}

/// Whether the file is a socket that nobody listens on any more.
fn is_abandoned(path: &Path, address: &SocketAddrUnix) -> bool {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if !is_socket {
        return false;
    }
    let probe = socket_with(AddressFamily::UNIX, SocketType::STREAM, SOCKET_FLAGS, None);
    probe.is_ok_and(|probe| connect(&probe, address) == Err(Errno::CONNREFUSED))
}

impl Listener {
    /// Where it is, to be opened there again.
    pub(super) fn place(&self) -> Place {
        Place { listen: self.listen.clone(), address: self.address.clone() }
    }

    /// Where it listens, and to whom.
    pub(super) fn bound(&self) -> Bound {
        let takes = if self.tls() { Takes::Tls } else { Takes::Connections };
        Bound { front_end: self.front_end, takes, address: self.address.clone(), fd: self.fd.as_raw_fd() }
    }

    /// Whether TLS is spoken.
    pub(super) fn tls(&self) -> bool {
        matches!(self.listen.endpoint, Endpoint::Tls { .. })
    }

    /// The UNIX socket's file, for messages.
    pub(super) fn file(&self) -> Option<&Path> {
        self.file.as_ref().map(|file| &*file.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leading_minus_makes_an_address_optional() {
        assert_eq!(Bind::parse("-::1"), Bind { host: "::1".to_owned(), optional: true, all: false });
        for (word, address) in
            [("::1", "[::1]:7"), ("*", "0.0.0.0:7"), ("-::*", "[::]:7"), ("127.0.0.1", "127.0.0.1:7")]
        {
            assert_eq!(Bind::parse(word).resolve(7).unwrap(), [address.parse().unwrap()]);
        }
    }

    #[test]
    fn memcached_means_both_families_and_passes_over_what_is_taken() {
        let words: Vec<String> = ["*", "-::*", "127.0.0.1"].map(str::to_owned).into();
        let binds = Bind::parse_as_memcached(&words);
        assert_eq!(binds.iter().map(|bind| &*bind.host).collect::<Vec<_>>(), ["*", "127.0.0.1"]);
        assert_eq!(binds[0].resolve(7).unwrap(), ["0.0.0.0:7".parse().unwrap(), "[::]:7".parse().unwrap()]);
        let addresses = || binds[0].resolve(7).unwrap();
        let open = |taken: &'static [&str]| {
            move |address: SocketAddr| match taken.contains(&&*address.to_string()) {
                true => Err(Errno::ADDRINUSE),
                false => Ok(address.to_string()),
            }
        };
        let opened = |taken| binds[0].open_each(addresses(), |errno| errno, open(taken));
        assert_eq!(opened(&[]).unwrap(), ["0.0.0.0:7", "[::]:7"]);
        assert_eq!(opened(&["0.0.0.0:7"]).unwrap(), ["[::]:7"]);
        assert_eq!(opened(&["0.0.0.0:7", "[::]:7"]), Err(Errno::ADDRINUSE));
        // Another address is another matter.
        assert_eq!(
            binds[1].open_each(binds[1].resolve(7).unwrap(), |errno| errno, open(&["127.0.0.1:7"])),
            Err(Errno::ADDRINUSE)
        );
        assert_eq!(Bind::parse("*").open_each(addresses(), |errno| errno, open(&["[::]:7"])), Err(Errno::ADDRINUSE));
    }

    #[test]
    fn an_address_of_another_machine_is_skipped_only_where_optional() {
        // 192.0.2.0/24 is kept for documentation, so no machine has it.
        for optional in [true, false] {
            let bind = Bind { host: "192.0.2.1".to_owned(), optional, all: false };
            let listen = Listen { front_end: FrontEnd::Resp, endpoint: Endpoint::Tcp { bind, port: 0 } };
            let opened = Listener::open_all(&[listen], 1);
            if optional {
                assert!(opened.unwrap().is_empty());
            } else {
                assert_eq!(
                    opened.unwrap_err().to_string(),
                    "cannot listen on 192.0.2.1:0 for RESP: bind: Cannot assign requested address (os error 99)"
                );
            }
        }
    }
}
