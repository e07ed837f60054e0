//! What memcached's `-l` says, as often as it is said: addresses, their port, where TLS is not spoken, and which protocol
//! is. It knows no other option.

use super::error::LoadProblem;

/// Where memcached's clients are served without TLS although it is asked for (`notls:`).
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Plain {
    /// Nowhere.
    #[default]
    None,
    /// Everywhere.
    All,
    /// On this port.
    Port(String),
}

/// What all `-l` say together.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Addresses {
    /// The words of `bind`.
    pub(super) bind: Vec<String>,
    /// The port, if the addresses have one.
    pub(super) port: Option<String>,
    /// Where TLS is not spoken.
    pub(super) plain: Plain,
    /// What every address says of its protocol, by the words of `-B`; nothing where that is to decide.
    protocols: Vec<Option<&'static str>>,
}

impl Addresses {
    /// The protocol that is spoken where `-B` or what stands for it says `usual`.
    pub(super) fn protocol(&self, usual: &'static str) -> Result<&'static str, LoadProblem> {
        let mut spoken = self.protocols.iter().map(|own| own.unwrap_or(usual));
        let first = spoken.next().unwrap_or(usual);
        if spoken.all(|other| other == first) {
            Ok(first)
        } else {
            Err(problem("all addresses speak the same protocol"))
        }
    }
}

/// The parts of every `-l` in their order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parts(Vec<String>);

impl Parts {
    /// Adds what one `-l` says: addresses, each perhaps with `notls:`, `proto[...]:`, `tag[...]:` before it, in this order,
    /// and with `:port` behind it. One that says only what was said before says nothing.
    pub(super) fn add(&mut self, value: &str) {
        let parts: Vec<&str> = value.split([',', ';']).filter(|part| !part.is_empty()).collect();
        if parts.iter().any(|part| self.0.iter().all(|known| known != part)) {
            self.0.extend(parts.into_iter().map(str::to_owned));
        }
    }

    /// What they say together; nothing where there are none. An IPv6 address with a port stands in brackets.
    pub(super) fn read(&self) -> Result<Option<Addresses>, LoadProblem> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let (mut usual, mut plain, mut protocols) = (Vec::new(), Vec::new(), Vec::new());
        for part in &self.0 {
            let (side, part) = match part.strip_prefix("notls:") {
                Some(part) => (&mut plain, part),
                None => (&mut usual, part.as_str()),
            };
            let (protocol, part) = match bracketed(part, "proto")? {
                Some((name, part)) => (protocol_of(name)?, part),
                None => (None, part),
            };
            protocols.push(protocol);
            // A tag is for the proxy to tell addresses by.
            let part = match bracketed(part, "tag")? {
                Some((tag, _)) if !(1..=8).contains(&tag.len()) => {
                    return Err(problem("Listener tags must be between 1 and 8 characters"));
                }
                Some((_, part)) => part,
                None => part,
            };
            let (address, port) = match part.strip_prefix('[').and_then(|part| part.split_once(']')) {
                Some((address, behind)) => (address, behind.strip_prefix(':')),
                None if part.matches(':').count() == 1 => {
                    let (address, port) = part.split_once(':').expect("there is one");
                    (address, Some(port))
                }
                None => (part, None),
            };
            side.push((address, port));
        }
        let port_of = |side: &[(&str, Option<&str>)]| match side {
            [(_, port), rest @ ..] if rest.iter().all(|(_, other)| other == port) => Ok(port.map(str::to_owned)),
            [] => Ok(None),
            _ => Err(problem("all addresses have the same port")),
        };
        let (usual_port, plain_port) = (port_of(&usual)?, port_of(&plain)?);
        let addresses = |side: &[(&str, Option<&str>)]| -> Vec<String> {
            side.iter().map(|(address, _)| (*address).to_owned()).collect()
        };
        let (mut usual, mut plain) = (addresses(&usual), addresses(&plain));
        let where_plain = match (usual.is_empty(), plain.is_empty()) {
            (_, true) => Plain::None,
            (true, false) => Plain::All,
            (false, false) => {
                usual.sort();
                plain.sort();
                match plain_port.clone() {
                    Some(port) if usual == plain => Plain::Port(port),
                    _ => return Err(problem("the same addresses, with a port of their own, listen without TLS")),
                }
            }
        };
        let port = if where_plain == Plain::All { plain_port } else { usual_port };
        let words = if usual.is_empty() { plain } else { usual };
        // All addresses are those of IPv6, too.
        let bind = words.into_iter().flat_map(|word| match word.as_str() {
            "*" => vec![word, "-::*".to_owned()],
            _ => vec![word],
        });
        Ok(Some(Addresses { bind: bind.collect(), port, plain: where_plain, protocols }))
    }
}

/// What stands in brackets behind a word at the start of an address, and the address behind that.
fn bracketed<'a>(part: &'a str, word: &str) -> Result<Option<(&'a str, &'a str)>, LoadProblem> {
    match part.strip_prefix(word).and_then(|behind| behind.strip_prefix('[')) {
        Some(behind) => behind.split_once("]:").map(Some).ok_or_else(|| problem("proto[...] and tag[...] end with ]:")),
        None => Ok(None),
    }
}

/// The protocol that a name begins; `-B`'s where it begins none, as in memcached.
fn protocol_of(name: &str) -> Result<Option<&'static str>, LoadProblem> {
    const NAMES: [(&str, &str); 3] = [("ascii", "ascii"), ("binary", "binary"), ("negotiating", "auto")];
    let known = NAMES.iter().find(|(known, _)| known.starts_with(name)).map(|&(_, protocol)| protocol);
    if known.is_none() && "proxy".starts_with(name) { Err(problem("there is no proxy")) } else { Ok(known) }
}

fn problem(text: &'static str) -> LoadProblem {
    LoadProblem::MemcachedOption { option: "-l".to_owned(), text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(values: &[&str]) -> String {
        let mut parts = Parts::default();
        values.iter().for_each(|value| parts.add(value));
        parts.read().unwrap().map_or(String::new(), |addresses| addresses.bind.join(" "))
    }

    #[test]
    fn several_options_are_one_list() {
        assert_eq!(bind(&["127.0.0.1", "127.0.0.3"]), "127.0.0.1 127.0.0.3");
        assert_eq!(bind(&["127.0.0.1;127.0.0.3,", "127.0.0.2"]), "127.0.0.1 127.0.0.3 127.0.0.2");
        assert_eq!(bind(&["", ","]), "");
        // Said again it says nothing; twice in one list it is one address too many, as in memcached.
        assert_eq!(bind(&["127.0.0.1,127.0.0.3", "127.0.0.3", "127.0.0.1"]), "127.0.0.1 127.0.0.3");
        assert_eq!(bind(&["127.0.0.1,127.0.0.1"]), "127.0.0.1 127.0.0.1");
        assert_eq!(bind(&["*"]), "* -::*");
        assert_eq!(bind(&["tag[a]:127.0.0.1,proto[ascii]:tag[bcdefghi]:[::1]"]), "127.0.0.1 ::1");
    }
}
