//! A connected byte stream, TCP, UNIX or TLS over TCP, behind one type. Knows no protocol.

use crate::Address;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A connected socket.
#[derive(Debug)]
pub enum Stream {
    /// Over TCP, with TCP_NODELAY set.
    Tcp(TcpStream),
    /// Over a UNIX socket.
    Unix(UnixStream),
    /// With TLS over TCP.
    #[cfg(feature = "tls")]
    Tls(Box<rustls::StreamOwned<rustls::ClientConnection, TcpStream>>),
}

impl Stream {
    /// Connects; `timeout` bounds the TCP handshake with each address a host name stands for.
    ///
    /// # Errors
    /// What the system says of the last address tried.
    pub fn connect(address: &Address, timeout: Option<Duration>) -> io::Result<Stream> {
        let (host, port) = match address {
            Address::Unix(path) => return UnixStream::connect(path).map(Stream::Unix),
            Address::Tcp { host, port } => (host.as_str(), *port),
        };
        let mut last = io::Error::new(io::ErrorKind::NotFound, format!("the name {host} stands for no address"));
        for candidate in (host, port).to_socket_addrs()? {
            let connected = match timeout {
                Some(timeout) => TcpStream::connect_timeout(&candidate, timeout),
                None => TcpStream::connect(candidate),
            };
            match connected {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(Stream::Tcp(stream));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Speaks TLS over a connected TCP stream; `host` is whom the server's certificate must name.
    ///
    /// # Errors
    /// When the handshake fails, and for other streams than TCP's.
    #[cfg(feature = "tls")]
    pub fn secured(self, config: std::sync::Arc<rustls::ClientConfig>, host: &str) -> io::Result<Stream> {
        let Stream::Tcp(mut socket) = self else {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "TLS is spoken over TCP only"));
        };
        let name = rustls::pki_types::ServerName::try_from(host.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let mut connection = rustls::ClientConnection::new(config, name).map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut socket).map_err(|error| in_words(error, socket.read_timeout()))?;
        }
        Ok(Stream::Tls(Box::new(rustls::StreamOwned::new(connection, socket))))
    }

    /// Bounds every following read; `None` waits for ever.
    ///
    /// # Errors
    /// For a timeout of zero, which the system refuses.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_read_timeout(timeout),
            Stream::Unix(stream) => stream.set_read_timeout(timeout),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.sock.set_read_timeout(timeout),
        }
    }

    /// Reads what comes next, however often a signal interrupts that; a timeout that has passed is told with its length.
    ///
    /// # Errors
    /// `TimedOut` when [`Stream::set_read_timeout`]'s time has passed, and what the system says.
    pub fn read_in_time(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read.map_err(|error| in_words(error, self.read_timeout())),
            }
        }
    }

    fn read_timeout(&self) -> io::Result<Option<Duration>> {
        match self {
            Stream::Tcp(stream) => stream.read_timeout(),
            Stream::Unix(stream) => stream.read_timeout(),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.sock.read_timeout(),
        }
    }

    /// Bounds every following write; `None` waits for ever.
    ///
    /// # Errors
    /// For a timeout of zero, which the system refuses.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_write_timeout(timeout),
            Stream::Unix(stream) => stream.set_write_timeout(timeout),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.sock.set_write_timeout(timeout),
        }
    }

    /// Whether reads and writes give `WouldBlock` instead of waiting.
    ///
    /// # Errors
    /// When the socket is gone.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_nonblocking(nonblocking),
            Stream::Unix(stream) => stream.set_nonblocking(nonblocking),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.sock.set_nonblocking(nonblocking),
        }
    }

    /// The addresses of this end and of the other one, if both are of one machine and the same process could be at both:
    /// its server then knows a client between these two.
    pub fn addresses_within_host(&self) -> Option<(SocketAddr, SocketAddr)> {
        let stream = match self {
            Stream::Tcp(stream) => stream,
            Stream::Unix(_) => return None,
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => &stream.sock,
        };
        let (own, other) = (stream.local_addr().ok()?, stream.peer_addr().ok()?);
        (own.ip() == other.ip()).then_some((own, other))
    }

    /// Says that nothing more will be sent; what the server still answers can be read.
    ///
    /// # Errors
    /// When the peer has already gone.
    pub fn finish_sending(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.sock.shutdown(Shutdown::Write),
        }
    }

    /// A second handle on the same socket, for example to read on another thread.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn try_clone(&self) -> io::Result<Stream> {
        match self {
            Stream::Tcp(stream) => stream.try_clone().map(Stream::Tcp),
            Stream::Unix(stream) => stream.try_clone().map(Stream::Unix),
            #[cfg(feature = "tls")]
            Stream::Tls(_) => Err(io::Error::new(io::ErrorKind::Unsupported, "a TLS stream has one handle")),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, pieces: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write_vectored(pieces),
            Stream::Unix(stream) => stream.write_vectored(pieces),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.write_vectored(pieces),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Tcp(_) | Stream::Unix(_) => Ok(()),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.flush(),
        }
    }
}

/// So that the stream can be watched by an event loop.
impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.sock.as_fd(),
        }
    }
}

/// A socket's timeout is `WouldBlock` on Unix, and "Resource temporarily unavailable" in the system's words.
fn in_words(error: io::Error, timeout: io::Result<Option<Duration>>) -> io::Error {
    match (error.kind(), timeout) {
        (io::ErrorKind::WouldBlock, Ok(Some(time))) => {
            io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {} s", time.as_secs_f64()))
        }
        _ => error,
    }
}

/// What has arrived on a stream and is not yet understood.
#[derive(Debug, Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    start: usize,
}

impl Input {
    /// Least room offered to one read.
    const READ_LEN: usize = 64 * 1024;

    /// The bytes not yet consumed.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Forgets the first `len` unread bytes.
    pub(crate) fn consume(&mut self, len: usize) {
        self.start += len;
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
        }
    }

    /// Waits for more bytes and appends them.
    ///
    /// # Errors
    /// `UnexpectedEof` when the server has closed; `TimedOut` when the read timeout has passed.
    pub(crate) fn read_more(&mut self, stream: &mut Stream) -> io::Result<()> {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        let filled = self.bytes.len();
        // Room in proportion to what is here: a reply of many megabytes takes few reads, and few attempts to decode it.
        self.bytes.resize(filled + Self::READ_LEN.max(filled / 2), 0);
        let read = stream.read_in_time(&mut self.bytes[filled..]);
        self.bytes.truncate(filled + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_told_with_its_length() {
        let (own, _other) = UnixStream::pair().expect("a pair");
        let mut stream = Stream::Unix(own);
        stream.set_read_timeout(Some(Duration::from_secs(1))).expect("it is more than nothing");
        let error = stream.read_in_time(&mut [0; 8]).expect_err("nobody says anything");
        assert_eq!((error.kind(), error.to_string().as_str()), (io::ErrorKind::TimedOut, "no answer within 1 s"));
        // Who does not want to wait is told so, and no time.
        stream.set_nonblocking(true).expect("it is open");
        stream.set_read_timeout(None).expect("it is open");
        assert_eq!(stream.read_in_time(&mut [0; 8]).expect_err("nothing").kind(), io::ErrorKind::WouldBlock);
    }
}
