//! Before a key changes that a snapshot has not written yet, it is handed over. Who changes keys calls one of these while
//! the key's shard is locked: commands before they run, for all keys that they name; expiry, eviction and the emptying of
//! databases with what they take out. Knows no command.

use super::shared::{Snapshot, Wanted};
use crate::args::Args;
use crate::clients::ConnectionKey;
use crate::command::Flags;
use crate::engine::Engine;
use crate::keys::Fate;
use crate::meanwhile;
use crate::shards::{Locked, ShardState};
use crate::table::Resolved;
use crate::worker::Worker;
use std::sync::Arc;
use tenon_persist::rdb::is_large;
use tenon_store::entry::{Entry, EntryRef};
use tenon_store::hash::KeyHash;
use tenon_store::keyspace::{Ahead, Keyspace, is_past};
use tenon_store::types::ValueType;

/// The commands that may change keys.
pub(crate) const CHANGES: Flags = Flags::WRITE.or(Flags::MAY_REPLICATE);

impl Engine {
    /// Hands a key over before a command changes it, or has the client wait until the scanner has written a large value;
    /// `false`: it waits, and nothing must change. A command that only reads changes a key when it takes out members that
    /// are due.
    #[cold]
    #[inline(never)]
    pub(crate) fn hand_over_or_wait(
        &self,
        worker: &mut Worker,
        state: &mut ShardState,
        flags: Flags,
        database: usize,
        (hash, key): (KeyHash, &[u8]),
        client: ConnectionKey,
    ) -> bool {
        let mut waits = false;
        let reads_at_ms = self.reads_at(worker, flags);
        self.hand_over_if(worker, state, database, hash, key, |snapshot, shard, database, entry| {
            let changes = may_change_at(reads_at_ms, entry);
            waits = changes && self.waits_for(snapshot, shard, database, entry, client);
            changes && !waits
        });
        worker.waits_for_another_turn |= waits;
        !waits
    }

    /// Whether a client is to wait for a key that is not written yet: its value is large, and the client's connection can be
    /// told when it can go on. The scanner is then asked for that key.
    fn waits_for(
        &self,
        snapshot: &Snapshot,
        shard: usize,
        database: usize,
        entry: EntryRef<'_>,
        client: ConnectionKey,
    ) -> bool {
        let waits = is_large(entry.value()) && self.clients.post().is_some();
        if waits {
            snapshot.wanted.lock().push(Wanted { shard, database, key: entry.key().into(), client });
        }
        waits
    }

    /// The time at which a command that only reads looks at members' deadlines, in milliseconds, 0 where none counts;
    /// `None`: it may change the key anyway.
    fn reads_at(&self, worker: &Worker, flags: Flags) -> Option<u64> {
        let keeps_expired = self.pause.keeps_members() || worker.is_replaying;
        (!flags.any(CHANGES)).then_some(if keeps_expired { 0 } else { worker.clock.now_ms })
    }

    /// Whether a command that only reads a key takes out members of it that are due.
    pub(crate) fn takes_members_out(&self, worker: &Worker, entry: EntryRef<'_>) -> bool {
        may_change_at(self.reads_at(worker, Flags::READONLY), entry)
    }

    /// Has a client wait for a key that its command changes, if its value is large and not written yet; tells whether it
    /// does. Its connection is told when it can go on, as it is at the end of a CLIENT PAUSE.
    pub(crate) fn waits_for_large(
        &self,
        worker: &mut Worker,
        state: &ShardState,
        flags: Flags,
        database: usize,
        (hash, key): (KeyHash, &[u8]),
        client: ConnectionKey,
    ) -> bool {
        let reads_at_ms = self.reads_at(worker, flags);
        let Some(snapshot) = self.snapshots.known_to(&mut worker.snapshot) else { return false };
        let Some(keyspace) = state.shard.database(database) else { return false };
        let Some((slot, entry)) = keyspace.find_entry(hash, key) else { return false };
        let (shard, database) = (self.shards.index(hash), snapshot.original(database));
        let waits = may_change_at(reads_at_ms, entry)
            && keyspace.is_lacking(slot)
            && self.waits_for(snapshot, shard, database, entry, client);
        worker.waits_for_another_turn |= waits;
        waits
    }

    /// Hands the keys of a command over before it runs; their shards are held.
    #[inline]
    pub(crate) fn hand_over_keys(
        &self,
        worker: &mut Worker,
        database: usize,
        resolved: Resolved,
        args: &Args<'_>,
        held: &mut dyn Locked,
    ) {
        if self.snapshots.is_active() && resolved.command.flags.any(CHANGES) {
            self.hand_over_each(worker, database, resolved, args, held);
        }
    }

    #[cold]
    fn hand_over_each(
        &self,
        worker: &mut Worker,
        database: usize,
        resolved: Resolved,
        args: &Args<'_>,
        held: &mut dyn Locked,
    ) {
        let reads_at_ms = self.reads_at(worker, Flags::READONLY);
        for (index, fate) in resolved.command.fates_of(args) {
            let key = args.get(index);
            let hash = self.shards.hash(key);
            let shard = self.shards.index(hash);
            if held.holds(shard) {
                let changes = |entry: EntryRef<'_>| fate != Fate::Stays || may_change_at(reads_at_ms, entry);
                self.hand_over_if(worker, held.shard(shard), database, hash, key, |_, _, _, entry| changes(entry));
            }
        }
    }

    /// Hands a key over, whatever its value.
    #[cold]
    pub(crate) fn hand_over(
        &self,
        worker: &mut Worker,
        state: &mut ShardState,
        database: usize,
        hash: KeyHash,
        key: &[u8],
    ) {
        self.hand_over_if(worker, state, database, hash, key, |_, _, _, _| true);
    }

    /// Hands a key over if it is a string: memcached's verbs change no others.
    #[cold]
    #[inline(never)]
    pub(crate) fn hand_over_string(
        &self,
        worker: &mut Worker,
        state: &mut ShardState,
        database: usize,
        hash: KeyHash,
        key: &[u8],
    ) {
        self.hand_over_if(worker, state, database, hash, key, |_, _, _, entry| {
            ValueType::of(entry.value()) == ValueType::String
        });
    }

    /// Hands a key over if it is not written yet and `is_meant` says so, which is told where it was when the snapshot began.
    #[inline]
    fn hand_over_if(
        &self,
        worker: &mut Worker,
        state: &mut ShardState,
        database: usize,
        hash: KeyHash,
        key: &[u8],
        is_meant: impl FnOnce(&Snapshot, usize, usize, EntryRef<'_>) -> bool,
    ) {
        if !state.shard.is_unfinished() {
            return;
        }
        let Some(keyspace) = state.shard.used_database_mut(database) else { return };
        let Some((slot, entry)) = keyspace.find_entry(hash, key) else { return };
        // Also in a shard that is not completely written many keys are, busy ones above all.
        if !keyspace.is_lacking(slot) {
            return;
        }
        let Some(snapshot) = self.snapshots.known_to(&mut worker.snapshot) else { return };
        let (shard, database) = (self.shards.index(hash), snapshot.original(database));
        if is_meant(snapshot, shard, database, entry) {
            snapshot.take_over(shard, database, entry);
            keyspace.mark_written(slot);
            worker.has_handed_over = true;
        }
    }

    /// What is done about a key of which members are due, before they go.
    pub(crate) fn hand_over_ahead(&self, worker: &mut Worker, database: usize, entry: EntryRef<'_>) -> Ahead {
        let Some(snapshot) = self.snapshots.current() else { return Ahead::HandedOver };
        if is_large(entry.value()) {
            return Ahead::Left;
        }
        let shard = self.shards.index(self.shards.hash(entry.key()));
        snapshot.take_over(shard, snapshot.original(database), entry);
        worker.has_handed_over = true;
        Ahead::HandedOver
    }

    /// Frees an entry that was taken out of a database's keyspace, or hands it over first, and counts that it has gone. Its
    /// shard is still locked.
    pub(crate) fn discard_removed(&self, worker: &mut Worker, database: usize, entry: Entry) {
        worker.stats.keys.removed(database, 1);
        if !entry.is_lacking() {
            return worker.discard(entry);
        }
        let Some(snapshot) = self.snapshots.current() else { return worker.discard(entry) };
        let shard = self.shards.index(self.shards.hash(entry.view().key()));
        worker.has_handed_over = true;
        if let Some(entry) = snapshot.take_entry(shard, snapshot.original(database), entry) {
            worker.discard(entry);
        }
    }

    /// Gives back all keys of a database in one shard, which were taken out, unless a snapshot still lacks some: then it
    /// frees them, too. The shard is still locked.
    pub(crate) fn keep_for_snapshot(&self, shard: usize, database: usize, keyspace: Keyspace) -> Option<Keyspace> {
        if !keyspace.is_unfinished() {
            return Some(keyspace);
        }
        let Some(snapshot) = self.snapshots.current() else { return Some(keyspace) };
        snapshot.take_keyspace(shard, snapshot.original(database), keyspace, |key| self.shards.hash(key));
        None
    }

    /// Waits until the scanner has room for more, if the worker has handed something over. No shard is held.
    #[inline]
    pub(crate) fn wait_for_scanner(&self, worker: &mut Worker) {
        if worker.has_handed_over {
            self.wait_for_room(worker);
        }
    }

    #[cold]
    fn wait_for_room(&self, worker: &mut Worker) {
        worker.has_handed_over = false;
        // Within another command of this worker shards may be held, which the scanner may need.
        if !worker.is_nested
            && let Some(snapshot) = self.snapshots.known_to(&mut worker.snapshot)
            && !snapshot.has_room()
        {
            let snapshot = Arc::clone(snapshot);
            let before_us = snapshot.progress().stalled_us;
            // The wait is longer than a turn: what was written is synced, and its clients are answered, meanwhile.
            self.end_turn(worker);
            // The worker's other clients need not wait.
            meanwhile::lend();
            snapshot.wait_for_room();
            let waited_ms = (snapshot.progress().stalled_us - before_us) / 1_000;
            let threshold_ms = self.config.latency_monitor_threshold();
            self.latency.note("snapshot-stall", waited_ms, threshold_ms, worker.clock.now_ms);
        }
    }

    /// The snapshot that is under way.
    pub fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.snapshots.current()
    }
}

/// Whether a command may change a key, of which `reads_at` has said what it looks at.
fn may_change_at(reads_at_ms: Option<u64>, entry: EntryRef<'_>) -> bool {
    reads_at_ms.is_none_or(|now_ms| has_due_members(entry, now_ms))
}

/// Whether members of a key are due that nobody may read, and not the key as a whole, which is quick to take out. What a
/// stream remembers of its producers is nothing that it holds.
pub(crate) fn has_due_members(entry: EntryRef<'_>, now_ms: u64) -> bool {
    is_past(entry.members_due_ms(), now_ms)
        && !entry.is_past(now_ms)
        && ValueType::of(entry.value()) != ValueType::Stream
}
