//! What to measure and how to speak to it, as people write it. Opens no socket.

use crate::tls;
use anyhow::Result;
use rustls::ClientConfig;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tenon_client::{Address, Stream};

/// A language that a load can be sent in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// RESP2.
    Resp,
    /// RESP2 through TLS.
    RespTls,
    /// memcached's classic text.
    Text,
    /// memcached's meta commands.
    Meta,
    /// memcached's binary protocol.
    Binary,
    /// PostgreSQL's, version 3.
    Postgres,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Protocol; 6] =
        [Protocol::Resp, Protocol::RespTls, Protocol::Text, Protocol::Meta, Protocol::Binary, Protocol::Postgres];

    /// Its name in options and results.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Resp => "resp",
            Protocol::RespTls => "resp-tls",
            Protocol::Text => "text",
            Protocol::Meta => "meta",
            Protocol::Binary => "binary",
            Protocol::Postgres => "postgres",
        }
    }

    /// The scheme of its addresses.
    fn scheme(self) -> &'static str {
        match self {
            Protocol::Resp => "redis",
            Protocol::RespTls => "rediss",
            Protocol::Text => "memcache",
            Protocol::Meta => "memcache-meta",
            Protocol::Binary => "memcache-binary",
            Protocol::Postgres => "postgres",
        }
    }

    /// Whether it is one of memcached's, so that the same port speaks the others too.
    pub fn is_memcache(self) -> bool {
        matches!(self, Protocol::Text | Protocol::Meta | Protocol::Binary)
    }

    fn usual_port(self) -> u16 {
        match self {
            Protocol::Resp | Protocol::RespTls => 6_379,
            Protocol::Text | Protocol::Meta | Protocol::Binary => 11_211,
            Protocol::Postgres => 5_432,
        }
    }
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Protocol, String> {
        let known = Protocol::ALL.into_iter().find(|protocol| protocol.name() == text);
        known.ok_or_else(|| format!("'{text}' is no protocol: resp, resp-tls, text, meta, binary or postgres"))
    }
}

/// Where a server listens and what it speaks there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The language.
    pub protocol: Protocol,
    /// The place.
    pub address: Address,
    /// Who connects, where that must be said first: to PostgreSQL.
    pub login: Option<Login>,
    /// The file of the authority that vouches for the server, where TLS is spoken; if none is named, the system's.
    pub authority: Option<PathBuf>,
}

impl Target {
    /// How TLS is spoken there, if it is.
    ///
    /// # Errors
    /// When whom to trust cannot be read.
    pub fn tls(&self) -> Result<Option<Arc<ClientConfig>>> {
        (self.protocol == Protocol::RespTls).then(|| tls::config(self.authority.as_deref())).transpose()
    }

    /// Connects; `timeout` bounds the TCP handshake and every later read.
    ///
    /// # Errors
    /// When nobody is there, or is not who it should be.
    pub fn connect(&self, timeout: Option<Duration>) -> Result<Stream> {
        let stream = connect(&self.address, self.tls()?.as_ref(), timeout)?;
        stream.set_read_timeout(timeout)?;
        Ok(stream)
    }
}

/// Connects, with TLS if it is given.
pub fn connect(address: &Address, tls: Option<&Arc<ClientConfig>>, timeout: Option<Duration>) -> Result<Stream> {
    let stream = Stream::connect(address, timeout)?;
    Ok(match (tls, address) {
        (Some(tls), Address::Tcp { host, .. }) => stream.secured(Arc::clone(tls), host)?,
        _ => stream,
    })
}

/// Who connects to a database.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user's name.
    pub user: String,
    /// What shows that it is the user, if it is asked for.
    pub password: Option<String>,
    /// The database.
    pub database: String,
}

impl Default for Login {
    fn default() -> Login {
        Login { user: "postgres".to_owned(), password: None, database: "postgres".to_owned() }
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.user, self.database)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Address::Unix(path) => write!(f, "{}+unix://{}", self.protocol.scheme(), path.display()),
            tcp @ Address::Tcp { .. } => write!(f, "{}://{tcp}", self.protocol.scheme()),
        }
    }
}

impl FromStr for Target {
    type Err = String;

    /// Reads `SCHEME://HOST[:PORT]`, `SCHEME+unix:///PATH` and `unix:///PATH`, which speaks RESP.
    fn from_str(text: &str) -> std::result::Result<Target, String> {
        const FORMS: &str = "redis://HOST[:PORT], rediss://..., memcache://HOST[:PORT], memcache-meta://..., memcache-binary://..., \
                             postgres://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE], unix:///PATH (RESP) or \
                             SCHEME+unix:///PATH";
        let (scheme, rest) = text.split_once("://").ok_or_else(|| format!("'{text}' is no target: write {FORMS}"))?;
        let (scheme, unix) = match scheme.strip_suffix("+unix") {
            Some(scheme) => (scheme, true),
            None if scheme == "unix" => (Protocol::Resp.scheme(), true),
            None => (scheme, false),
        };
        let protocol = Protocol::ALL.into_iter().find(|protocol| protocol.scheme() == scheme);
        let protocol =
            protocol.ok_or_else(|| format!("'{scheme}' is no scheme that can be measured: write {FORMS}"))?;
        let (login, rest) = match protocol {
            Protocol::Postgres | Protocol::RespTls if unix => return Err(format!("{scheme} is spoken over TCP only")),
            Protocol::Postgres => read_login(rest),
            _ => (None, rest),
        };
        let address = if unix {
            format!("unix://{rest}").parse()
        } else {
            let rest = rest.strip_suffix('/').unwrap_or(rest);
            let has_port = rest.rsplit_once(':').is_some_and(|(host, _)| !host.contains(':') || host.ends_with(']'));
            if has_port { rest.parse() } else { format!("{rest}:{}", protocol.usual_port()).parse() }
        };
        let address = address.map_err(|bad: tenon_client::address::BadAddress| bad.to_string())?;
        Ok(Target { protocol, address, login, authority: None })
    }
}

/// Takes `USER:PASSWORD@` and `/DATABASE` from around the host. The password may hold anything but an `@`; nothing is
/// decoded.
fn read_login(rest: &str) -> (Option<Login>, &str) {
    let usual = Login::default();
    let (who, place) = rest.rsplit_once('@').unwrap_or((&usual.user, rest));
    let (user, password) = who.split_once(':').map_or((who, None), |(user, password)| (user, Some(password)));
    let (place, database) = place.split_once('/').unwrap_or((place, ""));
    let database = if database.is_empty() { usual.database.clone() } else { database.to_owned() };
    (Some(Login { user: user.to_owned(), password: password.map(str::to_owned), database }), place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_are_told_who_connects() {
        let login = |text: &str| text.parse::<Target>().expect(text).login.expect("a login");
        let all: Target = "postgres://me:a:b/c@host:1/data".parse().expect("a target");
        assert_eq!(all.to_string(), "postgres://host:1", "no password is shown");
        let given = Login { user: "me".into(), password: Some("a:b/c".into()), database: "data".into() };
        assert_eq!((all.login, format!("{given:?}").contains("a:b/c")), (Some(given), false));
        assert_eq!(login("postgres://host"), Login::default());
        assert_eq!(login("postgres://me@host/"), Login { user: "me".into(), ..Login::default() });
        assert!("postgres+unix:///run/x".parse::<Target>().is_err() && "rediss+unix:///x".parse::<Target>().is_err());
        assert_eq!("rediss://host".parse::<Target>().map(|target| target.to_string()), Ok("rediss://host:6379".into()));
    }

    #[test]
    fn targets_are_read_and_written() {
        for (text, shown) in [
            ("redis://localhost", "redis://localhost:6379"),
            ("redis://127.0.0.1:7000/", "redis://127.0.0.1:7000"),
            ("redis://[::1]", "redis://[::1]:6379"),
            ("redis://[::1]:7000", "redis://[::1]:7000"),
            ("memcache://host", "memcache://host:11211"),
            ("memcache-meta://host:1", "memcache-meta://host:1"),
            ("memcache-binary://host:1", "memcache-binary://host:1"),
            ("unix:///run/t.sock", "redis+unix:///run/t.sock"),
            ("memcache+unix:///run/t.sock", "memcache+unix:///run/t.sock"),
        ] {
            let target: Target = text.parse().expect(text);
            assert_eq!(target.to_string(), shown);
            assert_eq!(shown.parse(), Ok(target));
        }
        for bad in ["", "localhost", "http://x", "redis://", "redis://u:p@h", "redis://h/1", "unix://", "redis://h:x"] {
            assert!(bad.parse::<Target>().is_err(), "{bad}");
        }
    }
}
