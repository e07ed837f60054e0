//! What to measure and how to speak to it, as people write it. Opens no socket.

use crate::{login, tls};
use anyhow::{Context, Result};
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command};
use rustls::ClientConfig;
use std::ffi::OsStr;
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
    /// Who connects, where that must be said first.
    pub login: Option<Login>,
    /// The file of the authority that vouches for the server, where TLS is spoken; if none is named, the system's.
    pub authority: Option<PathBuf>,
}

impl Target {
    /// Where nobody needs to say who connects.
    pub fn of(protocol: Protocol, address: Address) -> Target {
        Target { protocol, address, login: None, authority: None }
    }

    /// How TLS is spoken there, if it is.
    ///
    /// # Errors
    /// When whom to trust cannot be read.
    pub fn tls(&self) -> Result<Option<Arc<ClientConfig>>> {
        (self.protocol == Protocol::RespTls).then(|| tls::config(self.authority.as_deref())).transpose()
    }

    /// Connects, and says who does but to a database; `timeout` bounds each step of the
    /// handshakes and of the login, and every later read.
    ///
    /// # Errors
    /// When nobody is there, or is not who it should be, or wants somebody else.
    pub fn connect(&self, timeout: Option<Duration>) -> Result<Stream> {
        self.connect_by(self.tls()?.as_ref(), timeout)
    }

    /// The same by TLS that is known already.
    pub fn connect_by(&self, tls: Option<&Arc<ClientConfig>>, timeout: Option<Duration>) -> Result<Stream> {
        let stream = Stream::connect(&self.address, timeout)?;
        // Whoever is there may have no word for who asks for TLS, or for a login.
        let patience = timeout.or(Some(OPENING_MAX));
        stream.set_read_timeout(patience)?;
        stream.set_write_timeout(patience)?;
        let mut stream = match (tls, &self.address) {
            (Some(tls), Address::Tcp { host, .. }) => {
                stream.secured(Arc::clone(tls), host).context("TLS is not agreed on")?
            }
            _ => stream,
        };
        if let Some(login) = self.login.as_ref().filter(|_| self.protocol != Protocol::Postgres) {
            login::say(&mut stream, self.protocol, login)?;
        }
        stream.set_read_timeout(timeout)?;
        stream.set_write_timeout(None)?;
        Ok(stream)
    }
}

/// Who takes longer for one step of TLS's handshake, or to accept a login, has failed.
const OPENING_MAX: Duration = Duration::from_secs(30);

/// Who connects.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user's name; over RESP none for who needs a password alone.
    pub user: String,
    /// What shows that it is the user; to a database, if it is asked for.
    pub password: Option<String>,
    /// The database, of who connects to one.
    pub database: String,
}

impl Default for Login {
    fn default() -> Login {
        Login { user: "postgres".to_owned(), password: None, database: "postgres".to_owned() }
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not what nobody is to know.
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

    /// Reads `SCHEME://[USER:PASSWORD@]HOST[:PORT]`, `SCHEME+unix:///PATH` and `unix:///PATH`, which speaks RESP. What it
    /// refuses it shows without what stands before an `@`.
    fn from_str(text: &str) -> std::result::Result<Target, String> {
        Target::read(text, None)
    }
}

impl Target {
    /// Reads it likewise; the password for who stands before an `@` without one is given aside.
    fn read(text: &str, aside: Option<&str>) -> std::result::Result<Target, String> {
        const FORMS: &str = "redis://[[USER]:PASSWORD@]HOST[:PORT], rediss://..., memcache://[USER:PASSWORD@]HOST[:PORT], \
                             memcache-meta://..., memcache-binary://..., postgres://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE], unix:///PATH (RESP) or \
                             SCHEME+unix:///PATH";
        let (scheme, rest) = text.split_once("://").ok_or_else(|| {
            let shown = text.rsplit_once('@').map_or(text, |(_, place)| place);
            format!("'{shown}' is no target: write {FORMS}")
        })?;
        let (scheme, unix) = match scheme.strip_suffix("+unix") {
            Some(scheme) => (scheme, true),
            None if scheme == "unix" => (Protocol::Resp.scheme(), true),
            None => (scheme, false),
        };
        let protocol = Protocol::ALL.into_iter().find(|protocol| protocol.scheme() == scheme);
        let protocol =
            protocol.ok_or_else(|| format!("'{scheme}' is no scheme that can be measured: write {FORMS}"))?;
        if unix && matches!(protocol, Protocol::Postgres | Protocol::RespTls) {
            return Err(format!("{scheme} is spoken over TCP only"));
        }
        // The path of a socket may have an `@` of its own.
        let end = if unix { rest.find("@/").filter(|_| !rest.starts_with('/')) } else { rest.rfind('@') };
        let (who, rest) = end.map_or((None, rest), |end| (Some(&rest[..end]), &rest[end + 1..]));
        let (login, rest) = match protocol {
            Protocol::Postgres => {
                let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
                (Some(database_login(who, database, aside)?), place)
            }
            _ => (who.map(|who| login(protocol, who, aside)).transpose()?, rest),
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

/// `USER[:PASSWORD]`, each decoded. The password may hold any `:`; where there is none, it is the one that was given aside.
fn user_and_password(who: &str, aside: Option<&str>) -> std::result::Result<(String, Option<String>), String> {
    let (user, password) = who.split_once(':').map_or((who, None), |(user, password)| (user, Some(password)));
    Ok((decoded(user)?, password.map(decoded).transpose()?.or_else(|| aside.map(str::to_owned))))
}

/// Who connects to a database; PostgreSQL's usual user and database if none are named.
fn database_login(who: Option<&str>, database: &str, aside: Option<&str>) -> std::result::Result<Login, String> {
    let usual = Login::default();
    let (user, password) = who.map(|who| user_and_password(who, aside)).transpose()?.unwrap_or((usual.user, None));
    let database = if database.is_empty() { usual.database } else { decoded(database)? };
    Ok(Login { user, password, database })
}

/// Who connects to another server: a user and a password, over RESP a password alone, too.
fn login(protocol: Protocol, who: &str, aside: Option<&str>) -> std::result::Result<Login, String> {
    let (user, password) = user_and_password(who, aside)?;
    if password.as_ref().is_none_or(String::is_empty) {
        return Err(format!(
            "before the @ stands no password: write USER:PASSWORD@, or for Redis :PASSWORD@, or set {PASSWORD_VARIABLE}"
        ));
    }
    if protocol.is_memcache() && (user.is_empty() || user.contains(' ')) {
        return Err("memcached's languages need a user without blanks, too: write USER:PASSWORD@".to_owned());
    }
    Ok(Login { user, password, database: String::new() })
}

/// Puts the bytes in place that stand as `%` and two digits.
fn decoded(text: &str) -> std::result::Result<String, String> {
    let bad = || "what stands before the @ is no text with each % as %25".to_owned();
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        let digits = part.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        bytes.push(u8::from_str_radix(digits.ok_or_else(bad)?, 16).map_err(|_| bad())?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

/// The password for targets with an `@` and none before it: a command line may be seen by whoever lists processes.
pub const PASSWORD_VARIABLE: &str = "TENON_BENCH_PASSWORD";

/// Reads a target of the command line. Clap itself would show what cannot be read, and so a password.
#[derive(Clone, Copy, Debug)]
pub struct TargetParser;

impl TypedValueParser for TargetParser {
    type Value = Target;

    fn parse_ref(&self, command: &Command, _: Option<&Arg>, value: &OsStr) -> Result<Target, clap::Error> {
        let aside = std::env::var(PASSWORD_VARIABLE).ok();
        let text = value.to_str().ok_or_else(|| "a target is text".to_owned());
        let read = text.and_then(|text| Target::read(text, aside.as_deref()));
        read.map_err(|why| clap::Error::raw(ErrorKind::ValueValidation, format!("--target: {why}\n")).with_cmd(command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::path::Path;

    #[test]
    fn who_does_not_answer_is_not_waited_for_in_any_language() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let place = listener.local_addr().expect("an address");
        for (scheme, step) in [("rediss://", "TLS is not agreed on: "), ("redis://:p@", "the login: ")] {
            let target: Target = format!("{scheme}{place}").parse().expect("a target");
            let authority = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tls/ca.pem");
            let target = Target { authority: Some(authority), ..target };
            // The system accepts for who listens; nobody reads.
            let why = target.connect(Some(Duration::from_secs(1))).expect_err("nobody answers");
            assert_eq!(format!("{why:#}"), format!("{step}no answer within 1 s"));
        }
    }

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
    fn who_connects_is_read_and_never_shown() {
        for (text, user, password, shown) in [
            ("redis://me:a%3Ab%40c:d@host", "me", "a:b@c:d", "redis://host:6379"),
            ("redis://:p/@w@host:7000", "", "p/@w", "redis://host:7000"),
            ("rediss://:p@host", "", "p", "rediss://host:6379"),
            ("memcache://me:p@[::1]", "me", "p", "memcache://[::1]:11211"),
            ("memcache-binary://me:p@host", "me", "p", "memcache-binary://host:11211"),
            ("redis+unix://me:p@/run/a@/b", "me", "p", "redis+unix:///run/a@/b"),
            ("postgres://me:%70@host", "me", "p", "postgres://host:5432"),
        ] {
            let target: Target = text.parse().expect(text);
            assert_eq!(target.to_string(), shown);
            assert!(!format!("{target:?}").contains(password) || password == "p", "{target:?}");
            let login = target.login.expect("a login");
            assert_eq!((&*login.user, login.password.as_deref()), (user, Some(password)));
        }
        for (text, user, password) in
            [("redis://me@host", "me", "as%ide"), ("redis://@host", "", "as%ide"), ("redis://me:p@host", "me", "p")]
        {
            let login = Target::read(text, Some("as%ide")).expect(text).login.expect("a login");
            assert_eq!((&*login.user, login.password.as_deref()), (user, Some(password)), "{text}");
        }
        let nobody = Target::read("redis://host", Some("aside")).expect("a target");
        assert!(nobody.login.is_none(), "nobody was asked to log in");
        let path: Target = "unix:///run/a@/b".parse().expect("a target");
        assert_eq!((path.login.is_none(), path.to_string()), (true, "redis+unix:///run/a@/b".to_owned()));
        for bad in [
            "me:secret@host",
            "http://me:secret@host",
            "redis://secret@host",
            "redis://me:@host",
            "redis://:secret%@host",
            "redis://:secret%ff@host",
            "redis://:secret@host:x",
            "memcache://:secret@host",
            "memcache-binary://a b:secret@host",
        ] {
            let why = bad.parse::<Target>().expect_err(bad);
            assert!(!why.contains("secret"), "{why}");
        }
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
        for bad in ["", "localhost", "http://x", "redis://", "redis://h/1", "unix://", "redis://h:x"] {
            assert!(bad.parse::<Target>().is_err(), "{bad}");
        }
    }
}
