//! Where a server listens, and how people write it. Opens no socket.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// A server's address: a TCP host and port, or the path of a UNIX socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A host name or IP address, and a port.
    Tcp {
        /// A name or an address; an IPv6 address without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// The path of a UNIX socket.
    Unix(PathBuf),
}

impl Address {
    /// A TCP port on 127.0.0.1.
    pub fn loopback(port: u16) -> Address {
        Address::Tcp { host: "127.0.0.1".to_owned(), port }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        Address::Tcp { host: address.ip().to_string(), port: address.port() }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp { host, port } if host.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv6()) => {
                write!(f, "[{host}]:{port}")
            }
            Address::Tcp { host, port } => write!(f, "{host}:{port}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A text that is no address, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadAddress {
    text: String,
    why: &'static str,
}

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is no address: {}", self.text, self.why)
    }
}

impl std::error::Error for BadAddress {}

impl From<BadAddress> for std::io::Error {
    fn from(bad: BadAddress) -> std::io::Error {
        std::io::Error::new(std::io::ErrorKind::InvalidInput, bad)
    }
}

impl FromStr for Address {
    type Err = BadAddress;

    /// Reads `host:port`, `[v6]:port`, `/path`, `unix:/path`, `unix:///path`, and `redis://host[:port]` and
    /// `memcached://host[:port]` with the protocols' usual ports.
    fn from_str(text: &str) -> Result<Address, BadAddress> {
        let bad = |why| BadAddress { text: text.to_owned(), why };
        let path = text.strip_prefix("unix://").or_else(|| text.strip_prefix("unix:"));
        if let Some(path) = path.or_else(|| text.starts_with('/').then_some(text)) {
            return if path.is_empty() { Err(bad("the path is empty")) } else { Ok(Address::Unix(path.into())) };
        }
        let (rest, usual_port) = if let Some(rest) = text.strip_prefix("redis://") {
            (rest, Some(6379))
        } else if let Some(rest) = text.strip_prefix("memcached://") {
            (rest, Some(11211))
        } else {
            (text, None)
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '@', '?']) {
            return Err(bad("only a host and a port are understood; send AUTH and SELECT yourself"));
        }
        let (host, port) = match rest.strip_prefix('[') {
            Some(v6) => {
                let (host, after) = v6.split_once(']').ok_or_else(|| bad("a bracket is not closed"))?;
                (host, after.strip_prefix(':'))
            }
            None => match rest.rsplit_once(':') {
                Some((host, _)) if host.contains(':') => return Err(bad("an IPv6 address needs brackets")),
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            },
        };
        if host.is_empty() {
            return Err(bad("the host is missing"));
        }
        let port = match port {
            Some(port) => port.parse().map_err(|_| bad("the port is no number from 0 to 65535"))?,
            None => usual_port.ok_or_else(|| bad("the port is missing"))?,
        };
        Ok(Address::Tcp { host: host.to_owned(), port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        let tcp = |host: &str, port| Address::Tcp { host: host.to_owned(), port };
        for (text, address) in [
            ("localhost:7000", tcp("localhost", 7000)),
            ("[::1]:7000", tcp("::1", 7000)),
            ("redis://example", tcp("example", 6379)),
            ("redis://example:1/", tcp("example", 1)),
            ("memcached://[::1]", tcp("::1", 11211)),
            ("/run/t.sock", Address::Unix("/run/t.sock".into())),
            ("unix:/run/t.sock", Address::Unix("/run/t.sock".into())),
            ("unix:///run/t.sock", Address::Unix("/run/t.sock".into())),
        ] {
            assert_eq!(text.parse(), Ok(address), "{text}");
        }
        for text in
            ["", "host", ":1", "host:", "host:65536", "::1:80", "[::1:80", "unix:", "redis://u:p@h", "redis://h/1"]
        {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_shown_can_be_read() {
        for text in ["localhost:7000", "[::1]:7000", "unix:/run/t.sock"] {
            assert_eq!(text.parse::<Address>().expect("an address").to_string(), text);
        }
    }
}
