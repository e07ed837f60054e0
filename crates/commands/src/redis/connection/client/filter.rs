//! The filters of CLIENT LIST and CLIENT KILL: which clients are meant. Knows not what becomes of them.

use super::kind::Kind;
use std::collections::HashSet;
use std::mem::discriminant;
use std::sync::atomic::Ordering::Relaxed;
use tenon_engine::Engine;
use tenon_engine::args::Args;
use tenon_engine::client_line::{FLAGS, flags_of};
use tenon_engine::clients::Client;
use tenon_engine::errors::{CmdError, shown};
use tenon_engine::session::Session;
use tenon_engine::wire::resp::number::parse_i64;

/// Who filters: Redis 7 has words of its own for each, and Valkey's filters stand beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    List,
    Kill,
}

/// What a client is to have.
#[derive(Clone, Debug, PartialEq)]
enum Wanted<'a> {
    /// One of these numbers; those that are no client's are left out.
    Id(Ids),
    Kind(Kind),
    User(&'a [u8]),
    /// Its own address.
    Remote(&'a [u8]),
    /// The address that it has connected to.
    Local(&'a [u8]),
    /// Its own address without the port.
    Ip(&'a [u8]),
    Name(&'a [u8]),
    Library(&'a [u8]),
    LibraryVersion(&'a [u8]),
    /// All these flags.
    Flags(&'a [u8]),
    /// All these capabilities.
    Capabilities(&'a [u8]),
    Database(u32),
    /// Connected for so many seconds at least.
    Age(u64),
    /// Silent for so many seconds at least.
    Idle(u64),
}

/// Whether a condition holds for those that have it or for those that have not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sense {
    Has,
    HasNot,
}

/// Names of filters; those with a mark may have NOT- before them.
const NAMES: [(&str, bool); 14] = [
    ("ID", true),
    ("TYPE", true),
    ("USER", true),
    ("ADDR", true),
    ("LADDR", true),
    ("IP", true),
    ("NAME", true),
    ("LIB-NAME", true),
    ("LIB-VER", true),
    ("FLAGS", true),
    ("CAPA", true),
    ("DB", true),
    ("MAXAGE", false),
    ("IDLE", false),
];
const SKIPME: &[u8] = b"SKIPME";

/// The filter's name in full and whether it is turned around.
fn named(word: &[u8]) -> Option<(&'static str, Sense)> {
    let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    let is_not = |name: &str| {
        word.split_at_checked(4)
            .is_some_and(|(not, rest)| not.eq_ignore_ascii_case(b"NOT-") && rest.eq_ignore_ascii_case(name.as_bytes()))
    };
    NAMES.iter().find_map(|&(name, has_opposite)| match () {
        () if is(name) => Some((name, Sense::Has)),
        () if has_opposite && is_not(name) => Some((name, Sense::HasNot)),
        () => None,
    })
}

/// Numbers of clients.
#[derive(Clone, Debug, Default, PartialEq)]
struct Ids {
    /// As they were asked for.
    asked: Vec<u64>,
    /// The same, to be looked up: there may be many, of many clients.
    all: HashSet<u64>,
}

impl Ids {
    fn extend(&mut self, ids: impl Iterator<Item = u64>) {
        let from = self.asked.len();
        self.asked.extend(ids);
        self.all.extend(&self.asked[from..]);
    }
}

/// Which clients are meant: those for which all conditions hold.
#[derive(Debug, PartialEq)]
pub(super) struct Filter<'a> {
    conditions: Vec<(Wanted<'a>, Sense)>,
    pub(super) skips_caller: bool,
}

impl<'a> Filter<'a> {
    /// The client of this address.
    pub(super) fn of_remote(address: &'a [u8]) -> Filter<'a> {
        Filter { conditions: vec![(Wanted::Remote(address), Sense::Has)], skips_caller: false }
    }

    /// Reads the filters from argument 2 on.
    ///
    /// # Errors
    /// What Redis says where it knows the filter, else what Valkey says.
    pub(super) fn parse(engine: &Engine, args: &Args<'a>, by: By) -> Result<Filter<'a>, CmdError> {
        let mut filter = Filter { conditions: Vec::new(), skips_caller: by == By::Kill };
        let mut at = 2;
        while at < args.len() {
            let value = args.try_get(at + 1).ok_or(CmdError::Syntax)?;
            let Some((name, sense)) = named(args.get(at)) else {
                filter.skips_caller = match () {
                    () if !args.get(at).eq_ignore_ascii_case(SKIPME) => return Err(CmdError::Syntax),
                    () if args.is(at + 1, "YES") => true,
                    () if args.is(at + 1, "NO") => false,
                    () => return Err(CmdError::Syntax),
                };
                at += 2;
                continue;
            };
            if name == "ID" {
                let ids = parse_ids(args, at + 1, by, sense)?;
                at += 1 + ids.len();
                filter.add_ids(ids, sense, by);
                continue;
            }
            filter.set(parse_one(engine, name, sense, value)?, sense);
            at += 2;
        }
        Ok(filter)
    }

    /// Adds a condition; of those of one kind the last one holds.
    fn set(&mut self, wanted: Wanted<'a>, sense: Sense) {
        self.conditions.retain(|(old, of)| discriminant(old) != discriminant(&wanted) || *of != sense);
        self.conditions.push((wanted, sense));
    }

    /// Adds numbers. Of several ID Redis's CLIENT KILL takes the last one; it is Valkey that takes all.
    fn add_ids(&mut self, ids: Vec<i64>, sense: Sense, by: By) {
        let ids = ids.into_iter().filter_map(|id| u64::try_from(id).ok());
        let before = self.conditions.iter_mut().find_map(|condition| match condition {
            (Wanted::Id(before), of) if *of == sense => Some(before),
            _ => None,
        });
        match before {
            Some(before) if by == By::List || sense == Sense::HasNot => before.extend(ids),
            _ => {
                let mut first = Ids::default();
                first.extend(ids);
                self.set(Wanted::Id(first), sense);
            }
        }
    }

    /// The numbers that are asked for, in this order and as often, if any are.
    pub(super) fn ids(&self) -> Option<&[u64]> {
        self.conditions.iter().find_map(|condition| match condition {
            (Wanted::Id(ids), Sense::Has) => Some(&ids.asked[..]),
            _ => None,
        })
    }

    /// Whether a client is meant.
    pub(super) fn takes(&self, client: &Client, engine: &Engine, session: &Session, now_ms: u64) -> bool {
        if client.is_gone() || self.skips_caller && client.id == session.client.id {
            return false;
        }
        self.conditions
            .iter()
            .all(|(wanted, sense)| wanted.is_had_by(client, engine, session, now_ms) == (*sense == Sense::Has))
    }
}

/// Reads the numbers from argument `at` on, at least one.
fn parse_ids(args: &Args<'_>, at: usize, by: By, sense: Sense) -> Result<Vec<i64>, CmdError> {
    const TOO_SMALL: CmdError = CmdError::text("ERR client-id should be greater than 0");
    let ids: Vec<i64> = (at..args.len()).map_while(|at| parse_i64(args.get(at))).collect();
    let is_redis = sense == Sense::Has;
    let ends_well =
        args.try_get(at + ids.len()).is_none_or(|word| named(word).is_some() || word.eq_ignore_ascii_case(SKIPME));
    match by {
        By::List if is_redis && (ids.is_empty() || !ends_well) => Err(CmdError::text("ERR Invalid client ID")),
        By::Kill if is_redis && ids.is_empty() => Err(TOO_SMALL),
        _ if ids.is_empty() => Err(CmdError::Syntax),
        _ if ids.iter().any(|&id| id <= 0) && !(is_redis && by == By::List) => Err(TOO_SMALL),
        _ => Ok(ids),
    }
}

/// Reads the value of a filter other than ID.
fn parse_one<'a>(engine: &Engine, name: &str, sense: Sense, value: &'a [u8]) -> Result<Wanted<'a>, CmdError> {
    Ok(match name {
        "TYPE" => Wanted::Kind(Kind::parse(value)?),
        "USER" if engine.acl.find(value).is_none() => {
            return Err(CmdError::new(format!("ERR No such user '{}'", shown(value))));
        }
        "USER" => Wanted::User(value),
        "ADDR" => Wanted::Remote(value),
        "LADDR" => Wanted::Local(value),
        "IP" => Wanted::Ip(value),
        "NAME" => Wanted::Name(value),
        "LIB-NAME" => Wanted::Library(value),
        "LIB-VER" => Wanted::LibraryVersion(value),
        "FLAGS" => Wanted::Flags(known_letters(value, FLAGS, "flags", sense)?),
        "CAPA" => Wanted::Capabilities(known_letters(value, CAPABILITIES, "capa", sense)?),
        "DB" => {
            let name = if sense == Sense::Has { "DB" } else { "NOT-DB" };
            let database = parse_i64(value);
            let database =
                database.ok_or_else(|| CmdError::new(format!("ERR {name} is not an integer or out of range")))?;
            let last = engine.config.databases() - 1;
            match u32::try_from(database) {
                Ok(database) if database <= last => Wanted::Database(database),
                _ => return Err(CmdError::new(format!("ERR {name} number should be between 0 and {last}"))),
            }
        }
        "MAXAGE" => Wanted::Age(parse_seconds(value, "maxage")?),
        "IDLE" => Wanted::Idle(parse_seconds(value, "idle")?),
        other => unreachable!("{other} is among the names"),
    })
}

fn parse_seconds(value: &[u8], name: &str) -> Result<u64, CmdError> {
    let number =
        parse_i64(value).ok_or_else(|| CmdError::new(format!("ERR {name} is not an integer or out of range")))?;
    match u64::try_from(number) {
        Ok(seconds) if seconds > 0 => Ok(seconds),
        _ => Err(CmdError::new(format!("ERR {name} should be greater than 0"))),
    }
}

/// Letters of capabilities: that to follow a redirection (CLIENT CAPA).
const CAPABILITIES: &str = "r";

fn known_letters<'a>(value: &'a [u8], known: &str, what: &str, sense: Sense) -> Result<&'a [u8], CmdError> {
    if value.iter().all(|letter| known.as_bytes().contains(letter)) {
        return Ok(value);
    }
    let filter = match sense {
        Sense::Has => "provided".to_owned(),
        Sense::HasNot => format!("NOT-{}", what.to_ascii_uppercase()),
    };
    Err(CmdError::new(format!("ERR Unknown {what} found in the {filter} filter: {}", shown(value))))
}

impl Wanted<'_> {
    fn is_had_by(&self, client: &Client, engine: &Engine, session: &Session, now_ms: u64) -> bool {
        // A name that was not given is no empty name.
        let is = |wanted: &[u8], found: &str| !found.is_empty() && wanted == found.as_bytes();
        let seconds_since = |time_ms: u64| now_ms.saturating_sub(time_ms) / 1_000;
        match *self {
            Wanted::Id(ref ids) => ids.all.contains(&client.id),
            Wanted::Kind(kind) => kind == Kind::of(client),
            Wanted::User(user) => *user == **client.user.lock(),
            Wanted::Remote(address) => is(address, &client.info.remote),
            Wanted::Local(address) => is(address, &client.info.local),
            Wanted::Ip(ip) => is(ip, ip_of(&client.info.remote)),
            Wanted::Name(name) => is(name, &client.name.lock()),
            Wanted::Library(name) => is(name, &client.library.lock().0),
            Wanted::LibraryVersion(version) => is(version, &client.library.lock().1),
            Wanted::Flags(letters) => {
                let flags = flags_of(engine, session, client);
                letters.iter().all(|letter| flags.as_bytes().contains(letter))
            }
            Wanted::Capabilities(letters) => letters.is_empty() || client.follows_redirects.load(Relaxed),
            Wanted::Database(database) => client.database.load(Relaxed) == database,
            Wanted::Age(least) => seconds_since(client.since_ms) >= least,
            // Whoever asks has just said something.
            Wanted::Idle(least) => {
                client.id != session.client.id && seconds_since(client.active_ms.load(Relaxed)) >= least
            }
        }
    }
}

/// An address without its port, and without the brackets of IPv6.
fn ip_of(address: &str) -> &str {
    let ip = address.rsplit_once(':').map_or(address, |(ip, _port)| ip);
    ip.strip_prefix('[').and_then(|ip| ip.strip_suffix(']')).unwrap_or(ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_known_by_name_and_turned_around() {
        for (word, expected) in [
            ("id", Some(("ID", Sense::Has))),
            ("Not-Lib-Name", Some(("LIB-NAME", Sense::HasNot))),
            ("NOT-ID", Some(("ID", Sense::HasNot))),
            ("MAXAGE", Some(("MAXAGE", Sense::Has))),
            ("NOT-MAXAGE", None),
            ("NOT-IDLE", None),
            ("NOT-", None),
            ("NOT-SKIPME", None),
            ("SKIPME", None),
        ] {
            assert_eq!(named(word.as_bytes()), expected, "{word}");
        }
    }

    #[test]
    fn the_port_is_no_part_of_an_ip() {
        for (address, ip) in
            [("127.0.0.1:5", "127.0.0.1"), ("[::1]:80", "::1"), ("/run/tenon.sock:0", "/run/tenon.sock")]
        {
            assert_eq!(ip_of(address), ip);
        }
    }
}
