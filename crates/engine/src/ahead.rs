//! What a batch will read is asked for before its first command runs, so that its misses do not follow one another. Knows
//! of commands only where they name keys and members.
//!
//! A key's slot is asked for when the command is parsed. Then follow, each for all commands before the next: the entries;
//! in large collections the slots in which members are looked for; the members themselves.

use crate::batch::{Call, Target};
use crate::engine::Engine;
use crate::execute::BatchArgs;
use crate::session::Session;
use crate::table::Member;
use crate::worker::Worker;
use tenon_store::Slot;
use tenon_store::entry::ValueRef;
use tenon_store::hash::KeyHash;
use tenon_store::types::Object;

/// So many batches whose commands name members are let pass after one that had none in a table: where collections are
/// small, looking costs more than it saves.
const REST: u32 = 15;

/// What a batch will look for.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// Where its keys were when they were asked for, if they were asked for together.
    keys: Vec<Slot>,
    /// Members of large collections.
    found: Vec<Found>,
    /// How many batches are let pass.
    rests: u32,
}

/// A member of a collection that has a table.
#[derive(Debug)]
struct Found {
    /// Which call names it.
    call: usize,
    hash: u64,
}

impl Worker {
    /// Has the next key be looked for first where that of this number among the keys that
    /// [`Engine::prefetch_keys`] was last called with was then. [`Worker::look_anywhere`] ends it.
    #[inline(always)]
    pub fn look_near(&mut self, number: usize) {
        self.near = self.ahead.keys.get(number).copied().unwrap_or(Slot::NOWHERE);
    }

    /// Of the next key nothing is known.
    #[inline(always)]
    pub fn look_anywhere(&mut self) {
        self.near = Slot::NOWHERE;
    }
}

impl Engine {
    /// Loads what the calls of a batch will read, all of them at once, while none waits for another.
    #[inline]
    pub fn prefetch(&self, worker: &mut Worker, session: &Session, batch: BatchArgs<'_>, calls: &mut [Call]) {
        let mut with_members = 0;
        for call in &mut *calls {
            if let Target::Key(resolved, hash) = &call.target {
                call.near = self.shards.prefetch_entry(session.database, *hash);
                with_members += usize::from(resolved.member != Member::Nowhere);
            }
        }
        if with_members > 1 {
            self.prefetch_members(worker, session, batch, calls);
        }
    }

    /// Loads the entries of several keys of a database, all of them at once, while none waits for another, and keeps where
    /// each was for [`Worker::look_near`]. Of a single key there is nothing to load ahead.
    #[inline]
    pub fn prefetch_keys(&self, worker: &mut Worker, database: usize, hashes: &[KeyHash]) {
        worker.ahead.keys.clear();
        if hashes.len() > 1 {
            worker.ahead.keys.extend(hashes.iter().map(|hash| self.shards.prefetch_entry(database, *hash)));
        }
    }

    #[inline(never)]
    fn prefetch_members(&self, worker: &mut Worker, session: &Session, batch: BatchArgs<'_>, calls: &[Call]) {
        let Ahead { found, rests, .. } = &mut worker.ahead;
        if *rests > 0 {
            *rests -= 1;
            return;
        }
        let mut args_from = 0;
        for (call, Call { args_end, target, .. }) in calls.iter().enumerate() {
            if let Target::Key(resolved, hash) = target
                && resolved.member != Member::Nowhere
            {
                let args = batch.of(args_from, *args_end);
                let key = args.get(usize::from(resolved.key));
                self.glance_at_object(session.database, *hash, key, |object| {
                    let hash = resolved.member.among(&args).and_then(|member| object.prefetch_slots(member));
                    found.extend(hash.map(|hash| Found { call, hash }));
                });
            }
            args_from = *args_end;
        }
        if found.is_empty() {
            *rests = REST;
        }
        for Found { call, hash: member } in found.drain(..) {
            let Target::Key(resolved, hash) = &calls[call].target else { continue };
            let args_from = if call == 0 { 0 } else { calls[call - 1].args_end };
            let key = batch.of(args_from, calls[call].args_end).get(usize::from(resolved.key));
            self.glance_at_object(session.database, *hash, key, |object| object.prefetch_element(member));
        }
    }

    #[inline]
    fn glance_at_object(&self, database: usize, hash: KeyHash, key: &[u8], visit: impl FnOnce(&Object)) {
        self.shards.glance(database, hash, key, |entry| {
            if let ValueRef::Object(object) = entry.value() {
                visit(object);
            }
        });
    }
}
