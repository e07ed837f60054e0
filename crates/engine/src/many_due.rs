//! Commands on a collection of which very many members are due: they wait while those go, a slice at a time, between which
//! the shard and the worker are free. Knows no command.
//!
//! Who finds a key removes what is due of it, all at once, so that ranks and counts are right. Ticks keep that little,
//! but not in the moment in which a large part of a huge collection falls due. So before a command runs on such a key its
//! client takes a slice of them out and comes again later, as it does at the end of a CLIENT PAUSE, until few are left.
//!
//! Not so where nobody can wait: a script's undeclared keys, a client that is served by another's push, memcached's verbs
//! (which refuse collections). They remove what is due in one go.

use crate::args::Args;
use crate::clients::{ConnectionKey, Message};
use crate::command::{Command, Flags};
use crate::engine::Engine;
use crate::keys::Fate;
use crate::session::Session;
use crate::shards::ShardState;
use crate::worker::Worker;
use tenon_store::entry::ValueRef;
use tenon_store::hash::KeyHash;
use tenon_store::keyspace::is_past;

/// Members that are removed before others get a turn: less than a millisecond's work.
const SLICE: usize = 1_024;

/// Whether a value has so many members with deadlines that it may take more than a slice when they are due.
#[inline]
pub(crate) fn has_many_deadlines(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Object(object) => object.deadlines().is_some_and(|deadlines| deadlines.len() > SLICE),
        ValueRef::Bytes(_) | ValueRef::Int(_) | ValueRef::Packed(..) => false,
    }
}

impl Engine {
    /// Does what is to be done about a key before a command runs on it, whose shard says that there may be something;
    /// `false`: the command has to come again later, and nothing must change.
    #[cold]
    #[inline(never)]
    pub(crate) fn takes_care(
        &self,
        worker: &mut Worker,
        state: &mut ShardState,
        command: &Command,
        session: &Session,
        args: &Args<'_>,
        (hash, key): (KeyHash, &[u8]),
    ) -> bool {
        let (database, client) = (session.database, session.client.info.key);
        let waits_for_readers = state.shard.lends() && {
            let fates = command.fates_of(args);
            let fate = fates.first().map_or(Fate::Changes, |(_, fate)| *fate);
            self.waits_for_readers(worker, state, fate, database, (hash, key), client)
        };
        !waits_for_readers
            && !self.waits_for_members(worker, state, command.flags, database, (hash, key), client)
            && (!state.shard.is_unfinished()
                || self.hand_over_or_wait(worker, state, command.flags, database, (hash, key), client))
    }

    /// Removes a slice of the members of a key that are due, if they are more than one; tells whether it was so. Then the
    /// client has to come again, and its connection is told so.
    pub(crate) fn waits_for_members(
        &self,
        worker: &mut Worker,
        state: &mut ShardState,
        flags: Flags,
        database: usize,
        (hash, key): (KeyHash, &[u8]),
        client: ConnectionKey,
    ) -> bool {
        let keeps_expired = self.pause.keeps_members() && !flags.any(Flags::WRITE);
        if !state.shard.has_many_deadlines() || worker.is_replaying || keeps_expired {
            return false;
        }
        let now_ms = worker.clock.now_ms;
        let ShardState { shard, watched } = state;
        let Some(keyspace) = shard.used_database_mut(database) else { return false };
        let Some((slot, entry)) = keyspace.find_entry(hash, key) else { return false };
        let ValueRef::Object(object) = entry.value() else { return false };
        // What goes as a whole is quick, and what a snapshot lacks stays until it has it.
        if !is_past(entry.members_due_ms(), now_ms) || entry.is_past(now_ms) || keyspace.is_lacking(slot) {
            return false;
        }
        if object.deadlines().is_none_or(|deadlines| deadlines.past(now_ms, SLICE + 1) <= SLICE) {
            return false;
        }
        let before = keyspace.deadline_counts();
        keyspace.expire_members(slot, now_ms, SLICE, |expired| {
            self.has_expired(worker, watched.as_deref(), database, now_ms, expired);
        });
        worker.stats.keys.deadlines_changed(database, before, keyspace.deadline_counts());
        self.commit(worker);
        if self.clients.post().is_some() {
            worker.waits_for_another_turn = true;
            self.clients.tell(client, Message::Unpause);
        }
        true
    }
}
