//! What a command's keys may have it wait for before it runs: its client's command is put off and comes again from its start, as at
//! the end of a CLIENT PAUSE. Knows no command.
//!
//! ```text
//!   a long call holds the key's shard                  until that ends      long_calls.rs
//!   a large value that a snapshot has not written      until it has         snapshot/hand_over.rs
//!   very many members that are due                     until few are left   many_due.rs
//!   a value that is read without its shard             until it is read     lendings.rs
//! ```
//!
//! Each of the four is almost always nowhere, and then no key is hashed for it. A command on one key finds the latter three where it
//! locks the shard; this is for those on several keys, and for what EXEC runs.

use crate::args::Args;
use crate::engine::Engine;
use crate::errors::CmdError;
use crate::keys::Fate;
use crate::long_calls::WaitsFor;
use crate::session::Session;
use crate::snapshot::CHANGES;
use crate::table::Resolved;
use crate::worker::Worker;
use tenon_store::hash::KeyHash;
use tenon_store::keyspace::TICK_MS;

/// Which of the four may be somewhere.
#[derive(Clone, Copy)]
struct Possible {
    long_call: bool,
    snapshot: bool,
    many_deadlines: bool,
    lending: bool,
}

impl Engine {
    /// Has a session come again later that is about to run a command, or the commands of its transaction, if one of their keys
    /// wants that; tells whether it does. No shard is held.
    ///
    /// # Errors
    /// When a busy script holds a shard.
    pub(crate) fn waits_for_keys(
        &self,
        worker: &mut Worker,
        session: &Session,
        resolved: Resolved,
        args: &Args<'_>,
    ) -> Result<bool, CmdError> {
        let possible = Possible {
            long_call: self.long_calls.are_there(),
            snapshot: self.snapshots.is_active(),
            many_deadlines: self.shards.have_many_deadlines(),
            lending: self.lendings.are_there(),
        };
        if !(possible.long_call || possible.snapshot || possible.many_deadlines || possible.lending) {
            return Ok(false);
        }
        session.any_call(resolved, args, |resolved, args| {
            for (index, fate) in resolved.command.fates_of(args) {
                let key = args.get(index);
                if self.waits_for_key(worker, session, resolved, (self.shards.hash(key), key, fate), possible)? {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    fn waits_for_key(
        &self,
        worker: &mut Worker,
        session: &Session,
        resolved: Resolved,
        (hash, key, fate): (KeyHash, &[u8], Fate),
        possible: Possible,
    ) -> Result<bool, CmdError> {
        let (client, database, flags) = (session.client.info.key, session.database, resolved.command.flags);
        let shard = self.shards.index(hash);
        // A shard says in which tick of its wheel something is due: at the tick's end.
        let is_due = self.shards.due_ms(shard) <= worker.clock.now_ms.saturating_add(TICK_MS);
        let looks_for_large = possible.snapshot && (flags.any(CHANGES) || is_due);
        let looks_for_members = possible.many_deadlines && is_due;
        let looks_for_readers = possible.lending && (fate == Fate::Changes || is_due);
        if possible.long_call {
            // That a busy script holds the shard is found where it is locked.
            if self.stays_held(shard) && self.puts_off(worker, client, WaitsFor::Shard(shard)) {
                return Ok(true);
            }
        }
        if !looks_for_large && !looks_for_members && !looks_for_readers {
            return Ok(false);
        }
        let mut state = self.lock_or_busy(shard)?;
        if looks_for_readers && self.waits_for_readers(worker, &mut state, fate, database, (hash, key), client) {
            return Ok(true);
        }
        if looks_for_large
            && state.shard.is_unfinished()
            && self.waits_for_large(worker, &state, flags, database, (hash, key), client)
        {
            return Ok(true);
        }
        let waits =
            looks_for_members && self.waits_for_members(worker, &mut state, flags, database, (hash, key), client);
        if !worker.ready.is_empty() {
            self.release_changed(worker, shard, state);
        }
        Ok(waits)
    }
}
