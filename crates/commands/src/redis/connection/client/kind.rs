//! The kinds of clients that CLIENT LIST and CLIENT KILL tell apart by TYPE.

use tenon_engine::clients::Client;
use tenon_engine::errors::{CmdError, shown};
use tenon_engine::session::Roles;

/// A kind of client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// None of the others.
    Normal,
    /// A replica of this server.
    Replica,
    /// A subscriber.
    PubSub,
    /// The server that this one is a replica of.
    Master,
}

impl Kind {
    /// The kind of this name, in any case.
    pub(super) fn parse(name: &[u8]) -> Result<Kind, CmdError> {
        let known: [(&[u8], Kind); 6] = [
            (b"normal", Kind::Normal),
            (b"slave", Kind::Replica),
            (b"replica", Kind::Replica),
            (b"pubsub", Kind::PubSub),
            (b"master", Kind::Master),
            (b"primary", Kind::Master),
        ];
        let found = known.iter().find(|(word, _)| word.eq_ignore_ascii_case(name));
        found.map(|(_, kind)| *kind).ok_or_else(|| CmdError::new(format!("ERR Unknown client type '{}'", shown(name))))
    }

    /// The kind of a client: as yet there are no replicas.
    pub(super) fn of(client: &Client) -> Kind {
        if client.roles().has(Roles::SUBSCRIBER) { Kind::PubSub } else { Kind::Normal }
    }
}
