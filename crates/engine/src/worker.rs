//! What one worker has for itself while it runs commands: clock, randomness, statistics, things to free.

use crate::ahead::Ahead;
use crate::batch::BatchScratch;
use crate::blocking::{ReadyKeys, Served};
use crate::clients::Client;
use crate::clock::Clock;
use crate::compact::Compaction;
use crate::journal::{KnownJournal, Unit};
use crate::lendings::{Owed, Rest};
use crate::memory::Room;
use crate::quiet::KnownActivity;
use crate::random::Random;
use crate::reaper::{Garbage, Reaper};
use crate::record::Record;
use crate::remembered::KnownRemembered;
use crate::scripting::Interpreters;
use crate::snapshot::KnownSnapshot;
use crate::stats::WorkerStats;
use crate::tracking::Changes;
use crate::unsent::OnItsWay;
use std::sync::Arc;
use tenon_store::Slot;
use tenon_store::access::Noting;
use tenon_store::entry::{Entry, ValueRef};
use tenon_store::hash::KeyHash;
use tenon_store::keyspace::Keyspace;

/// Whose commands run where it is no client's; no client has this number.
pub(crate) const NOBODY: u64 = 0;

/// Allocations of a value that a worker frees by itself; with more of them it goes to the reaper.
const FREED_HERE_MAX: usize = 1_000;

/// Shards of which the list is kept for the next command.
const INDEXES_KEPT_MAX: usize = 256;

/// A worker's own state. Never shared; the statistics in it may be read by others.
pub struct Worker {
    /// The worker's number, from 0.
    pub index: usize,
    /// The present, read at the start of each batch.
    pub clock: Clock,
    /// What this worker counts.
    pub stats: Arc<WorkerStats>,
    /// Where batches are parsed into; taken out while one is.
    scratch: Option<Box<BatchScratch>>,
    /// How far packing this worker's memory has come.
    pub(crate) compaction: Compaction,
    /// Which time it was that this thread gave up what was free.
    pub(crate) collected: u64,
    /// What this worker may allocate before it looks again how much memory is in use.
    pub(crate) room: Room,
    /// The arguments of the command that runs which the slow log must not show.
    pub(crate) secrets: Vec<usize>,
    /// The Lua states; taken out while a script runs.
    pub(crate) interpreters: Option<Box<Interpreters>>,
    /// Whether a script runs: commands are its calls.
    pub(crate) runs_script: bool,
    /// Whether the command that is about to run may let its shards go before its end (`KeysCx::let_go`).
    pub(crate) lets_go: bool,
    /// Whether the command on one key that runs may lend the value, and answer when its shard is free (`KeyCx::answer_with`).
    pub(crate) may_lend: bool,
    /// The answer that it owes then.
    pub(crate) owed: Option<Box<Owed>>,
    /// What the command on several keys that runs has left to do when its shards are held again (`KeysCx::make_and_store`).
    pub(crate) rest: Option<Rest>,
    /// Whether what runs now does so while another command of this worker waits: it must not lock a shard.
    pub(crate) is_nested: bool,
    /// Where the hashes of a command's keys, and the indexes of their shards, are put down.
    pub(crate) keys_scratch: (Vec<KeyHash>, Vec<usize>),
    /// Where packed collections are changed.
    pub(crate) packed_scratch: Vec<u8>,
    /// Whether the command that runs leaves keys past their deadlines where they are: it only reads, while writes wait.
    pub(crate) keeps_expired: bool,
    /// Keys that have changed and that somebody waits for, to be served before their shards are let go.
    pub(crate) ready: ReadyKeys,
    /// Those that were served and are to be told so, when no shard is locked.
    pub(crate) served: Vec<Served>,
    /// What the command, transaction or script that runs puts down for the log.
    pub(crate) record: Record,
    /// The transaction or script that runs.
    pub(crate) unit: Unit,
    /// Members of the key that is being looked at which have just expired.
    pub(crate) expired_members: Vec<Box<[u8]>>,
    /// Where records go, as far as this worker knows.
    pub(crate) journal: KnownJournal,
    /// The log's position behind the last record that this worker has appended.
    pub journaled: u64,
    /// Whether it has put something into the log in this turn of its event loop.
    pub(crate) has_appended: bool,
    /// Whether a log is read back: what it says is done whatever the time is, and nothing expires by itself.
    pub(crate) is_replaying: bool,
    /// The keys that were evicted of late, as far as it knows, and how many have come through it since the last tick.
    pub(crate) remembered: KnownRemembered,
    /// The shard with which the next look for what is due begins.
    pub(crate) expires_from: usize,
    /// When it looked last for keys that are due, in milliseconds of the system's clock.
    pub(crate) expired_at_ms: u64,
    /// When it looked last for clients that have stalled in the middle of a value, in milliseconds of the monotonic clock.
    pub(crate) looked_for_stalled_ms: u64,
    /// What it knows of its clients' activity.
    pub(crate) activity: KnownActivity,
    /// The snapshot that it has handed something over to.
    pub(crate) snapshot: KnownSnapshot,
    /// Whether it has handed something over to a snapshot since it last looked whether there is room for more.
    pub(crate) has_handed_over: bool,
    /// Whether the command that was to run waits until its connection is told to go on: for a snapshot that writes a large
    /// value, or since very many members of its key are due.
    pub(crate) waits_for_another_turn: bool,
    /// What it knows of members of the batch that it runs next.
    pub(crate) ahead: Ahead,
    /// Where the key of the command that runs was when its batch asked for it: it is looked for there first.
    pub(crate) near: Slot,
    /// What a long call has taken for its answer, until the next call or the turn's end: then it has left or is known as unsent.
    answer: Option<OnItsWay>,
    random: Random,
    /// The number of the client whose commands run, or `NOBODY`.
    pub(crate) client: u64,
    /// The number of its socket.
    client_fd: i32,
    /// Keys that were changed and have not been told to those who listen to prefixes, each with who changed it.
    pub(crate) broadcasts: Changes,
    /// Objects that commands took out of the store, to be freed when no shard is locked.
    garbage: Vec<Entry>,
    /// What takes too long to free between two commands, likewise.
    large_garbage: Vec<Garbage>,
    reaper: Arc<Reaper>,
}

impl Worker {
    /// A worker; `seed` is its randomness's and must not be 0.
    pub fn new(index: usize, seed: u64, stats: Arc<WorkerStats>, reaper: Arc<Reaper>) -> Worker {
        Worker {
            index,
            clock: Clock::read(Noting::Clock),
            stats,
            scratch: None,
            compaction: Compaction::new(std::time::Instant::now()),
            collected: 0,
            room: Room::default(),
            secrets: Vec::new(),
            interpreters: None,
            runs_script: false,
            lets_go: false,
            may_lend: false,
            owed: None,
            rest: None,
            is_nested: false,
            keys_scratch: Default::default(),
            packed_scratch: Vec::new(),
            keeps_expired: false,
            ready: ReadyKeys::default(),
            served: Vec::new(),
            record: Record::default(),
            unit: Unit::default(),
            expired_members: Vec::new(),
            journal: KnownJournal::default(),
            journaled: 0,
            has_appended: false,
            is_replaying: false,
            remembered: KnownRemembered::default(),
            expires_from: 0,
            expired_at_ms: 0,
            looked_for_stalled_ms: 0,
            activity: KnownActivity::default(),
            snapshot: KnownSnapshot::default(),
            has_handed_over: false,
            waits_for_another_turn: false,
            ahead: Ahead::default(),
            near: Slot::NOWHERE,
            answer: None,
            random: Random::new(seed),
            client: NOBODY,
            client_fd: 0,
            broadcasts: Changes::new(),
            garbage: Vec::new(),
            large_garbage: Vec::new(),
            reaper,
        }
    }

    /// Says whose commands run from now on.
    #[inline]
    pub fn serve(&mut self, client: &Client) {
        self.client = client.id;
        self.client_fd = client.info.fd;
        if self.owed.is_some() || self.rest.is_some() {
            self.forget_rest();
        }
        self.answer_has_left();
    }

    /// Keeps what a call has taken that is its answer by now: who made the call is about to send it.
    pub(crate) fn answers_with(&mut self, taken: OnItsWay) {
        self.answer = Some(taken);
    }

    /// Notes that what was answered last has left, as far as it is not noted as unsent.
    #[inline]
    pub(crate) fn answer_has_left(&mut self) {
        if self.answer.is_some() {
            self.answer = None;
        }
    }

    /// Forgets what a command had left to do that has ended by a panic.
    #[cold]
    fn forget_rest(&mut self) {
        (self.owed, self.rest) = (None, None);
    }

    /// The socket of the client whose commands run, as its connection is numbered.
    pub fn client_fd(&self) -> i32 {
        self.client_fd
    }

    /// Takes out the lists that batches are parsed into; they are empty.
    #[inline]
    pub fn take_scratch(&mut self) -> Box<BatchScratch> {
        self.scratch.take().unwrap_or_default()
    }

    /// Empties the lists and keeps them for the next batches.
    #[inline(always)]
    pub fn put_scratch(&mut self, mut scratch: Box<BatchScratch>) {
        scratch.clear();
        self.scratch = Some(scratch);
    }

    /// Keeps a list of shards' indexes for the next command on several keys, unless it is long.
    #[inline]
    pub(crate) fn keep_indexes(&mut self, indexes: Vec<usize>) {
        if indexes.capacity() <= INDEXES_KEPT_MAX {
            self.keys_scratch.1 = indexes;
        }
        if self.keys_scratch.0.capacity() > INDEXES_KEPT_MAX {
            self.keys_scratch.0 = Vec::new();
        }
    }

    /// Keeps an argument of the command that runs out of the logs. They are told in order.
    pub(crate) fn keep_secret(&mut self, index: usize) {
        debug_assert!(self.secrets.last().is_none_or(|last| *last <= index), "in order");
        self.secrets.push(index);
    }

    /// A random number; fast, not for secrets.
    #[inline]
    pub fn random(&mut self) -> u32 {
        (self.random.bits() >> 32) as u32
    }

    /// A source of random numbers for the command that runs.
    #[inline]
    pub fn random_source(&mut self) -> Random {
        self.random.split()
    }

    /// Takes the Lua states out.
    pub(crate) fn take_interpreters(&mut self) -> Box<Interpreters> {
        let interpreters = self.interpreters.take();
        interpreters.unwrap_or_else(|| Box::new(Interpreters::new(self.random_source().bits())))
    }

    /// Frees an entry: at once when that is quick, else when no shard is locked.
    #[inline]
    pub fn discard(&mut self, entry: Entry) {
        if let ValueRef::Object(object) = entry.view().value() {
            if object.allocations() > FREED_HERE_MAX {
                self.large_garbage.push(Garbage::Entry(entry));
            } else {
                self.garbage.push(entry);
            }
        }
    }

    /// Frees what was taken out of a value, of about so many allocations: at once when they are few, else when no shard
    /// is locked.
    pub fn discard_part(&mut self, part: impl Send + 'static, allocations: usize) {
        if allocations > FREED_HERE_MAX {
            // What an allocation takes at least.
            const BYTES: usize = 32;
            self.large_garbage.push(Garbage::Part(Box::new(part), allocations * BYTES));
        }
    }

    /// Frees keyspaces that were taken out, when no shard is locked.
    pub fn discard_keyspaces(&mut self, keyspaces: Vec<Keyspace>) {
        self.large_garbage.extend(keyspaces.into_iter().map(Garbage::Keyspace));
    }

    /// Frees what was put off. No shard is locked.
    #[inline]
    pub fn sweep(&mut self) {
        if !self.garbage.is_empty() {
            self.garbage.clear();
        }
        if !self.large_garbage.is_empty() {
            self.reaper.free(std::mem::take(&mut self.large_garbage));
        }
    }
}
