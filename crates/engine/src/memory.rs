//! Keeping below `maxmemory`: evicting, or refusing. Knows no command.

use crate::engine::Engine;
use crate::meanwhile;
use crate::notify::EventClass;
use crate::shards::ShardState;
use crate::string;
use crate::watchers::{Watched, write_encoded};
use crate::worker::Worker;
use parking_lot::MutexGuard;
use std::io::Write as _;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tenon_ds::{extents, memory, slab};
use tenon_store::Slot;
use tenon_store::entry::{EntryRef, Marks};
use tenon_store::evict::{Policy, Sampling, hand, victim};
use tenon_wire::OutBuf;

/// Keys evicted for one command without a look at the clock.
const EVICTIONS_UNTIMED: usize = 64;
/// Where eviction goes on for so long, what it frees is taken back and packed meanwhile.
const TIDYING_AFTER: Duration = Duration::from_micros(500);
/// Blocks that are taken back at a time while much is evicted, several times as many as go meanwhile.
const COLLECTED_AT_ONCE: usize = 256;
/// How long a command that nothing can be evicted for waits for memory that is being freed in the background.
const REAPER_WAIT: Duration = Duration::from_millis(50);
/// What the reaper has counts as free for writes up to this part of the limit.
const REAPER_LIMIT_PART: usize = 32;
/// What the server takes beside its start before there is a key, in bytes, as measured with one to four workers.
const STARTUP_LATER: usize = 48 * 1024;
/// And for each worker: above all the buffer that it receives into.
const STARTUP_OF_WORKER: usize = 80 * 1024;
/// Of so many keys at most `allkeys-tenon` lets one go, whatever `maxmemory-samples` says.
const SAMPLES_MAX: usize = 64;
/// It looks at so many times as many for one key at most, where its bar is too high.
const LOOKED_AT_FACTOR: usize = 6;
/// Shards that are looked at for one key to evict once enough have been looked at of those that could go.
const SHARDS_LOOKED_AT: usize = 64;
/// So many keys are enough at least where so many shards have had fewer: they are few, and large, and one that is in use is missed.
const FEW_KEYS_LOOKED_AT: usize = 16;
/// What a worker may allocate at most between two looks at how much memory is in use, in bytes.
const ROOM_MAX: usize = 64 * 1024;
/// Of what is wasted so large a part of the limit is left out, as nearly so much is where values keep their lengths.
const WASTE_LEFT_OUT: usize = 64;
/// And at most such a part of it counts beyond that.
const WASTE_COUNTED_MAX: usize = 32;
/// At a smaller limit no waste counts: there the program itself is up to a tenth of it, and it is about items.
const WASTE_COUNTS_FROM: usize = 64 << 20;
/// Of what long blocks have left such a part of what is used is kept where there is no limit, with a minimum; such a part of
/// the limit at least where there is one; and for so long what is not needed.
const EXTENTS_KEPT_PART: usize = 32;
const EXTENTS_KEPT_MIN: usize = 128 << 20;
const EXTENTS_KEPT_PART_MIN: usize = 256;
/// So many bytes however low the limit is, but no more than such a part: with less each value's pages would come and go with it.
const EXTENTS_KEPT_LEAST: usize = 1 << 20;
const EXTENTS_KEPT_PART_MAX: usize = 8;
const EXTENTS_KEPT_MS: u64 = 5_000;

/// Of a batch's output from so many bytes on it is known that its memory will be freed.
const LONG_OUTPUT: usize = 256 << 10;

/// What a worker may allocate before it looks again how much memory is in use.
///
/// A look reads every thread's count, which the other workers change all the time: made for every write it would cost
/// a cache miss for each of them. So a worker that has seen room takes a share of it and watches its own count only.
/// All shares together are no more than half of what was left; a share is void when the limit changes, and with the
/// next tick, so that a worker with little to do does not live on what it saw long ago.
#[derive(Debug, Default)]
pub struct Room {
    /// The limit that the share was taken of; 0: there is no share.
    limit: usize,
    /// What `counted_here` may say: what is beyond, the worker has to make up for.
    until: isize,
    /// Bytes that unsent output took when `until` was set.
    unsent: usize,
    /// What it said when nothing could be evicted.
    stuck_at: Option<isize>,
    /// Bytes that telling of the keys took that the eviction under way has let go. A key may be told to many clients: to make
    /// up for that would take another key, and another, until there is none.
    told: usize,
}

/// What eviction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Makes {
    /// Some room, in a bounded time. What is freed soon without that, all output and so many bytes, is left out: a long answer
    /// is not to drive out data that nobody needs room for.
    SomeRoomBut(usize),
    /// As much at least as the worker has taken since it last saw room, for a write: so those of long values do not outrun the
    /// eviction of short ones.
    UpForGrowth,
}

impl Room {
    /// Ends the share; what was taken beyond it is still to be made up for.
    fn end_share(&mut self, unsent: usize) {
        if self.until > memory::counted_here() {
            (self.until, self.unsent) = (memory::counted_here(), unsent);
        }
        self.stuck_at = None;
    }

    /// What `counted_here` is to come down to, but for output that clients have not taken yet. At another limit than the one
    /// that the worker has looked at nothing is to be made up for: it is not this worker that has taken all that is beyond.
    fn made_up_at(&self, limit: usize, unsent: usize) -> isize {
        if self.limit == limit {
            self.until.saturating_add_unsigned(unsent.saturating_sub(self.unsent))
        } else {
            isize::MAX
        }
    }
}

/// What came of looking for a key to evict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gone {
    /// One has gone.
    AKey,
    /// None can go.
    Nothing,
    /// None was found, and shards were held.
    Unknown,
}

impl Engine {
    /// The policy in force.
    pub fn policy(&self) -> Policy {
        self.config.maxmemory_policy()
    }

    /// Whether a command that needs memory may run, after evicting what the policy lets go. No shard is locked.
    #[inline]
    pub fn make_room(&self, worker: &mut Worker) -> bool {
        let limit = self.config.maxmemory() as usize;
        limit == 0
            || worker.room.limit == limit && memory::counted_here() < worker.room.until
            || self.look(worker, limit)
    }

    /// Bytes up to `maxmemory`, as far as they are known here and now.
    pub fn memory_left(&self) -> usize {
        match self.config.maxmemory() as usize {
            0 => usize::MAX,
            limit => self.reach(limit).saturating_sub(memory::used()),
        }
    }

    /// Bytes in use that are not held against `maxmemory`.
    pub fn uncounted_memory(&self) -> usize {
        if self.config.maxmemory_counts_startup() {
            return 0;
        }
        self.startup_memory as usize + STARTUP_LATER + self.workers() * STARTUP_OF_WORKER
    }

    /// How many bytes may be in use at this limit.
    pub(crate) fn reach(&self, limit: usize) -> usize {
        limit.saturating_add(self.uncounted_memory())
    }

    /// Bytes that freed blocks take beyond their share, and that eviction makes up for: resident memory is to stay within
    /// a tenth of the limit also where packing does not catch up. No write is refused because of them.
    pub fn waste_counted(&self) -> usize {
        match self.policy() {
            Policy::NoEviction => 0,
            _ => waste_counted(self.wasted_memory(), self.config.maxmemory() as usize),
        }
    }

    /// Bytes of freed blocks whose memory is still taken, as a tick has last found them.
    pub fn wasted_memory(&self) -> usize {
        self.wasted_memory.load(Ordering::Relaxed)
    }

    /// Says how much of what long blocks have left is kept with its pages, for the next ones, and gives back what was not
    /// needed for a while, by the monotonic clock. At the limit it counts as wasted, and is no more than does not have anything evicted.
    pub(crate) fn fit_extents(&self, now_ms: u64) {
        let used = memory::used();
        extents::keep_at_most(match self.config.maxmemory() as usize {
            0 => EXTENTS_KEPT_MIN.max(used / EXTENTS_KEPT_PART),
            limit => {
                let others = self.wasted_memory().saturating_sub(extents::kept());
                let spared = (limit / WASTE_LEFT_OUT).saturating_sub(others).max(limit / EXTENTS_KEPT_PART_MIN);
                spared.max(EXTENTS_KEPT_LEAST.min(limit / EXTENTS_KEPT_PART_MAX))
                    + self.reach(limit).saturating_sub(used) / 2
            }
        });
        if now_ms >= self.extents_released_at_ms.load(Ordering::Relaxed) {
            extents::release_unneeded();
            self.extents_released_at_ms.store(now_ms + EXTENTS_KEPT_MS, Ordering::Relaxed);
        }
    }

    /// How many bytes eviction leaves in use at this limit.
    fn kept(&self, limit: usize) -> usize {
        self.reach(limit).saturating_sub(self.waste_counted())
    }

    /// Takes a share of the room there is, or makes some.
    #[inline(never)]
    fn look(&self, worker: &mut Worker, limit: usize) -> bool {
        self.take_share(worker, limit, self.kept(limit)) || self.evict_or_wait(worker, limit)
    }

    /// Takes a share of the room that there is up to so many bytes in use, if there is any.
    fn take_share(&self, worker: &mut Worker, limit: usize, reach: usize) -> bool {
        let Some(left) = reach.checked_sub(memory::used()) else { return false };
        let share = (left / 2 / self.threads()).min(ROOM_MAX);
        let until = memory::counted_here() + share as isize;
        worker.room = Room { limit, until, unsent: self.unsent.memory(), ..Room::default() };
        true
    }

    #[cold]
    fn evict_or_wait(&self, worker: &mut Worker, limit: usize) -> bool {
        // With some room made the command may run: as in Redis the limit is then approached over several commands.
        self.evict(worker, limit, Makes::UpForGrowth)
            // Where nothing can go, what is wasted is left out.
            || self.take_share(worker, limit, self.reach(limit))
            || self.wait_for_room_of_reaper(limit)
    }

    fn wait_for_room_of_reaper(&self, limit: usize) -> bool {
        if !self.reaper.is_idle() {
            // The worker's other clients need not wait.
            meanwhile::lend();
        }
        self.reaper.wait_until(|| memory::used() <= self.reach(limit), REAPER_WAIT)
    }

    /// What comes behind a batch: takes off what its commands have left over the limit, so that it is not there until
    /// the next write, but for the batch's own output. No shard is locked.
    #[inline]
    pub(crate) fn evict_behind(&self, worker: &mut Worker, output: &OutBuf) {
        let limit = self.config.maxmemory() as usize;
        if limit != 0 && (worker.room.limit != limit || memory::counted_here() >= worker.room.until) {
            self.look_behind(worker, limit, output);
        }
    }

    #[inline(never)]
    fn look_behind(&self, worker: &mut Worker, limit: usize, output: &OutBuf) {
        // Data that is not whole is left as it is.
        if self.is_loading() {
            return;
        }
        // Where nothing could be evicted, nothing is looked for until this worker has taken more memory, or a tick has
        // passed.
        let is_stuck = worker.room.stuck_at.is_some_and(|stuck_at| memory::counted_here() <= stuck_at);
        // A worker that only reads takes its share too: so it does not come here behind each batch.
        if is_stuck || self.take_share(worker, limit, self.kept(limit)) {
            return;
        }
        // A worker's buffer for short answers stays.
        let output = if output.len() < LONG_OUTPUT { 0 } else { output.memory() };
        if !self.evict(worker, limit, Makes::SomeRoomBut(output)) {
            worker.room.stuck_at = Some(memory::counted_here());
        }
        if !worker.ready.is_empty() {
            self.serve_left(worker);
        }
    }

    /// What a tick does: evicts what commands have left over the limit. Tells whether there is more to do.
    pub(crate) fn evict_ahead(&self, worker: &mut Worker) -> bool {
        worker.room.end_share(self.unsent.memory());
        let limit = self.config.maxmemory() as usize;
        let freed_soon = || self.unsent.freed_soon() + self.clients_leaving().others + self.freed_behind();
        let is_over = || limit > 0 && memory::used() > self.kept(limit).saturating_add(freed_soon());
        if worker.index != 0 {
            return false;
        }
        let is_left =
            is_over() && !self.pauses_eviction(worker) && self.evict(worker, limit, Makes::SomeRoomBut(0)) && is_over();
        let is_above = limit > 0 && memory::used() > self.reach(limit).saturating_add(freed_soon());
        self.over_limit.note(is_above, worker.clock.now_ns);
        is_left
    }

    /// Bytes that are no data any more and not free yet: what waits to be written to disk, and what the reaper has. Else one key
    /// more would go for each of theirs.
    fn freed_behind(&self) -> usize {
        self.snapshots.freed_soon() + self.reaper.pending_bytes()
    }

    /// Whether nothing is evicted now: the data stands still during a pause, whatever `maxmemory` says, as it does with
    /// keys that are due; and what is evicted needs room in the log.
    fn pauses_eviction(&self, worker: &Worker) -> bool {
        self.pause.holds_back(worker.clock.now_ms).is_some()
    }

    /// Evicts until the limit is kept, or for a bounded time. Tells whether a key went, or nothing had to: another worker may
    /// have made room since this one looked, and take it again right behind. Where somebody holds the shards nobody knows
    /// whether any could go: a command waits for its own then, and who comes behind makes up for it.
    fn evict(&self, worker: &mut Worker, limit: usize, makes: Makes) -> bool {
        if self.pauses_eviction(worker) {
            return true;
        }
        let how = Sampling {
            policy: self.policy(),
            samples: self.config.maxmemory_samples() as usize,
            clock: worker.clock.access,
        };
        let leaving = self.evict_clients_before_keys(worker);
        if how.policy == Policy::NoEviction {
            // What a snapshot still has to write of data that has gone is held against nobody, nor is what others' long calls have
            // taken.
            let left = leaving.all() + self.snapshots.gone() + self.on_the_way_of_others();
            return left > 0 && memory::used() <= self.kept(limit).saturating_add(left);
        }
        if how.policy.remembers() {
            self.begin_to_remember(worker);
        }
        let started = Instant::now();
        let evicting_max = evicting_max(self.config.maxmemory_eviction_tenacity());
        let kept = self.kept(limit);
        let made_up_at = match makes {
            Makes::SomeRoomBut(_) => isize::MAX,
            Makes::UpForGrowth => worker.room.made_up_at(limit, self.unsent.memory()),
        };
        let mut packed_at = started;
        let (mut evicted, mut is_unknown) = (0, false);
        worker.room.told = 0;
        let is_over = |told: usize| {
            let output = match makes {
                Makes::SomeRoomBut(output) => output + self.unsent.freed_soon() + leaving.others,
                Makes::UpForGrowth => self.on_the_way_of_others() + leaving.all(),
            };
            memory::used() > kept.saturating_add(self.freed_behind() + output + told)
        };
        let mut has_room = !is_over(0);
        while !has_room {
            let gone = if how.policy.remembers() {
                self.evict_least_worth(worker, &how)
            } else {
                self.evict_one(worker, &how)
            };
            if gone != Gone::AKey {
                is_unknown = gone == Gone::Unknown;
                break;
            }
            evicted += 1;
            let mut is_time_over = false;
            if evicted % EVICTIONS_UNTIMED == 0 {
                let elapsed = started.elapsed();
                is_time_over = evicting_max.is_some_and(|most| elapsed >= most);
                if elapsed >= TIDYING_AFTER {
                    self.tidy_up(worker, &mut packed_at);
                }
            }
            // What is freed in the background is not counted here.
            let told = worker.room.told;
            let has_made_up =
                || memory::counted_here() <= made_up_at.saturating_add_unsigned(told) || !self.reaper.is_idle();
            has_room = is_time_over && has_made_up() || !is_over(told);
        }
        if makes == Makes::UpForGrowth || worker.room.limit != limit {
            let (until, unsent) = (memory::counted_here(), self.unsent.memory());
            worker.room = Room { limit, until, unsent, ..Room::default() };
        } else {
            worker.room.end_share(self.unsent.memory());
        }
        if makes == Makes::UpForGrowth {
            self.wait_for_reaper(limit, kept);
        }
        let elapsed = started.elapsed();
        worker.stats.all.evicted.add(evicted as u64);
        worker.stats.all.eviction_us.add(elapsed.as_micros() as u64);
        let threshold_ms = self.config.latency_monitor_threshold();
        self.latency.note("eviction-cycle", elapsed.as_millis() as u64, threshold_ms, worker.clock.now_ms);
        // Who only makes some room looks again with the next tick.
        evicted > 0 || has_room || is_unknown && makes == Makes::UpForGrowth
    }

    /// Bytes that others' long calls have taken. What this thread's own has, it may have written: a command of it makes room for
    /// those before.
    fn on_the_way_of_others(&self) -> usize {
        self.unsent.on_its_way().saturating_sub(meanwhile::taken_here())
    }

    /// Waits a moment for the reaper if what it is to free is so much that the memory could be seen to exceed the limit.
    fn wait_for_reaper(&self, limit: usize, kept: usize) {
        let spared = limit / REAPER_LIMIT_PART;
        if self.reaper.pending_bytes() > spared && memory::used() > kept + spared {
            meanwhile::lend();
            self.reaper.wait_until(|| memory::used() <= kept + spared, REAPER_WAIT);
        }
    }

    /// What a tick does for the memory of what has gone, where so much goes that no tick comes in time: takes back what others
    /// have freed of this worker's, and packs for as long as it has evicted since it last did.
    #[cold]
    fn tidy_up(&self, worker: &mut Worker, packed_at: &mut Instant) {
        let is_left = slab::collect_some(COLLECTED_AT_ONCE);
        if !is_left && packed_at.elapsed() >= TIDYING_AFTER && self.packing_is_urgent() {
            self.compact_tick(worker);
            *packed_at = Instant::now();
        }
    }

    /// How many keys are to be looked at for one to go, where so many shards have had fewer than the samples that are wanted.
    fn enough_of_few(&self, samples: usize, policy: Policy) -> usize {
        let keys = if policy.volatile_only() { self.deadlines_about() } else { self.keys_about() };
        samples.max(FEW_KEYS_LOOKED_AT).min(usize::try_from(keys).unwrap_or(usize::MAX)).max(1)
    }

    /// Evicts the worst of a few keys of a shard chosen at random, and of others as long as they have been fewer.
    fn evict_one(&self, worker: &mut Worker, how: &Sampling) -> Gone {
        let shards = self.shards.count();
        // Neighbours would lose their worst keys together, and the next one that comes there finds only good ones.
        let (start, stride) = (worker.random() as usize, worker.random() as usize | 1);
        let (mut looked_at, mut none) = (0, Gone::Nothing);
        let mut enough = if how.policy.is_random() { 1 } else { how.samples };
        let mut worst: Option<(MutexGuard<'_, ShardState>, Victim)> = None;
        let few_from = SHARDS_LOOKED_AT.min(shards / 4);
        let has_none = || self.has_no_key() || how.policy.volatile_only() && self.has_no_deadline();
        for step in 0..shards {
            if step == few_from {
                if worst.is_none() && has_none() {
                    break;
                }
                enough = if how.policy.is_random() { 1 } else { self.enough_of_few(how.samples, how.policy) };
            }
            if looked_at >= enough {
                break;
            }
            let index = start.wrapping_add(step.wrapping_mul(stride)) & (shards - 1);
            if !self.shards.may_have_keys(index) || how.policy.volatile_only() && self.shards.due_ms(index) == u64::MAX
            {
                continue;
            }
            // A shard that somebody holds is not waited for: a script may, and for long.
            let Some(state) = self.shards.try_lock(index) else {
                none = Gone::Unknown;
                continue;
            };
            match worst_of(&state, worker, how) {
                Some(found) => {
                    looked_at += found.among;
                    // Nobody is waited for, so holding two shards in any order is no danger.
                    if worst.as_ref().is_none_or(|(_, worst)| found.badness > worst.badness) {
                        worst = Some((state, found));
                    }
                }
                None => {
                    // Nobody looks here again for what has gone: keys, or those with deadlines.
                    self.shards.note_if_empty(index, &state.shard);
                    if how.policy.volatile_only() {
                        self.shards.set_due(index, state.shard.next_due_ms());
                    }
                }
            }
        }
        let Some((mut state, Victim { database, slot, .. })) = worst else { return none };
        self.evict_slot(&mut state, worker, database, slot);
        drop(state);
        worker.sweep();
        Gone::AKey
    }

    /// Evicts the first key that is as bad as the bar, or the worst of many, from where this worker's hand is on.
    fn evict_least_worth(&self, worker: &mut Worker, how: &Sampling) -> Gone {
        let shards = self.shards.count();
        let samples = how.samples.clamp(1, SAMPLES_MAX);
        let most = samples * LOOKED_AT_FACTOR;
        let bar = self.remembered.bar();
        let wanted = bar.badness();
        let mut at = worker.remembered.hand.unwrap_or_else(|| self.remembered.next_shard(shards));
        let (mut looked_at, mut none) = (0, Gone::Nothing);
        let mut worst = None;
        let (mut enough, few_from) = (most, SHARDS_LOOKED_AT.min(shards / 4));
        // Once around, and where the hand began from the shard's beginning.
        for step in 0..=shards + SHARDS_LOOKED_AT {
            if step == few_from {
                if worst.is_none() && self.has_no_key() {
                    break;
                }
                enough = self.enough_of_few(samples, how.policy);
            }
            if looked_at >= enough {
                break;
            }
            // Nobody is waited for, so holding two shards in any order is no danger.
            let may_have_keys = self.shards.may_have_keys(at.shard);
            if let Some(state) = may_have_keys.then(|| self.shards.try_lock(at.shard)).flatten() {
                self.shards.note_if_empty(at.shard, &state.shard);
                let (mut worst_here, mut is_done) = (None, false);
                for (database, keyspace) in state.shard.used_databases().skip_while(|(number, _)| *number < at.database)
                {
                    let from = if database == at.database { at.tag } else { 0 };
                    let walked = hand::walk(keyspace, from, wanted, most - looked_at, how.clock.tick());
                    looked_at += walked.looked_at;
                    if let Some((slot, badness)) = walked.worst
                        && worst_here.is_none_or(|(_, _, most)| badness > most)
                    {
                        worst_here = Some((database, slot, badness));
                        is_done = badness >= wanted;
                    }
                    is_done |= looked_at >= most;
                    if is_done {
                        let next = walked.next.map(|tag| (database, tag)).unwrap_or((database + 1, 0));
                        (at.database, at.tag) = next;
                        break;
                    }
                }
                if let Some((database, slot, badness)) = worst_here
                    && worst.as_ref().is_none_or(|(_, _, _, most)| badness > *most)
                {
                    worst = Some((state, database, slot, badness));
                }
                if is_done {
                    break;
                }
            } else if may_have_keys {
                none = Gone::Unknown;
            }
            // Hands share the shards, unless there is hardly a key.
            at = if step < SHARDS_LOOKED_AT { self.remembered.next_shard(shards) } else { at.behind(shards) };
        }
        worker.remembered.hand = Some(at);
        let Some((mut state, database, slot, badness)) = worst else { return none };
        bar.note(badness, looked_at, samples);
        self.evict_slot(&mut state, worker, database, slot);
        drop(state);
        worker.sweep();
        Gone::AKey
    }

    /// Tells who watches of a key that is evicted, in memcached's form.
    #[cold]
    fn tell_evicted(&self, entry: EntryRef<'_>, worker: &Worker) {
        let fetch = if entry.marks().has(Marks::FETCHED) { "yes" } else { "no" };
        let ttl = entry.deadline_ms().map_or(-1, |ms| (ms.saturating_sub(worker.clock.now_ms) / 1_000) as i64);
        let idle = worker.clock.access.seconds_since(entry.access());
        let size = if entry.is_string() { string::len(entry.value()) } else { entry.memory() };
        self.tell_watchers(Watched::EVICTIONS, |line| {
            line.extend_from_slice(b"type=eviction key=");
            write_encoded(entry.key(), line);
            let class = entry.size_class();
            write!(line, " fetch={fetch} ttl={ttl} la={idle} clsid={class} size={size}")
                .expect("a Vec takes everything");
        });
    }

    /// Takes a key out of its shard and tells whoever is concerned.
    fn evict_slot(&self, state: &mut ShardState, worker: &mut Worker, database: usize, slot: Slot) {
        let keyspace = state.shard.database_mut(database);
        let with_deadlines = keyspace.deadline_counts();
        let entry = keyspace.remove(slot);
        worker.stats.keys.deadlines_changed(database, with_deadlines, keyspace.deadline_counts());
        let idle_s = worker.clock.access.seconds_since(entry.view().access());
        worker.stats.evicted(entry.view(), idle_s, worker.clock.now_ms);
        self.remember(worker, entry.view());
        let before = memory::counted_here();
        if self.watchers.want(Watched::EVICTIONS) {
            self.tell_evicted(entry.view(), worker);
        }
        if let Some(watched) = &state.watched {
            watched.changed(database, entry.view().key(), &mut worker.ready);
        }
        self.notify(database, entry.view().key(), EventClass::EVICTED, "evicted");
        // Its shard is let go of at once, whatever is under way.
        self.with_own_record(worker, |worker| {
            self.log(worker, database, &["DEL".into(), entry.view().key().into()]);
            self.commit(worker);
        });
        if self.tracking.is_active() {
            self.key_gone(worker, entry.view().key());
        }
        worker.room.told += usize::try_from(memory::counted_here() - before).unwrap_or(0);
        self.discard_removed(worker, database, entry);
    }
}

/// The worst of some keys of a shard.
struct Victim {
    database: usize,
    slot: Slot,
    badness: u64,
    /// How many there are to choose from.
    among: usize,
}

/// The worst of a few keys of one shard, of whichever database it is in.
fn worst_of(state: &ShardState, worker: &mut Worker, how: &Sampling) -> Option<Victim> {
    let mut worst: Option<Victim> = None;
    let mut among = 0;
    // Of keys that are equally bad the first counts: no database is always the first.
    let start = worker.random() as usize % state.shard.databases().count();
    for (database, keyspace) in state.shard.databases().skip(start).chain(state.shard.databases().take(start)) {
        if let Some((slot, badness)) = victim(keyspace, how, || worker.random()) {
            among += if how.policy.volatile_only() { keyspace.expiring() } else { keyspace.len() };
            if worst.as_ref().is_none_or(|worst| badness > worst.badness) {
                worst = Some(Victim { database, slot, badness, among: 0 });
            }
        }
    }
    worst.map(|worst| Victim { among, ..worst })
}

/// How long one command may evict beyond what makes up for its worker's own growth, at this `maxmemory-eviction-tenacity`:
/// what is still over the limit then, the next ones and the ticks take off. Redis's times.
fn evicting_max(tenacity: u32) -> Option<Duration> {
    match tenacity {
        0..=10 => Some(Duration::from_micros(50) * tenacity),
        11..=99 => Some(Duration::from_micros(500).mul_f64(1.15_f64.powi(tenacity as i32 - 10))),
        _ => None,
    }
}

/// Of so many wasted bytes those that count at a limit, of which 0 is none.
fn waste_counted(wasted: usize, limit: usize) -> usize {
    if limit < WASTE_COUNTS_FROM {
        0
    } else {
        wasted.saturating_sub(limit / WASTE_LEFT_OUT).min(limit / WASTE_COUNTED_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenacity_is_a_time_from_none_to_unbounded() {
        let us = [0, 1, 10, 11, 20, 99].map(|tenacity| evicting_max(tenacity).expect("it is bounded").as_micros());
        assert_eq!(us[..5], [0, 50, 500, 575, 2_022]);
        assert_eq!(us[5] / 1_000_000, 126);
        assert_eq!(evicting_max(100), None);
    }

    #[test]
    fn waste_counts_beyond_a_part_of_the_limit_and_up_to_another() {
        let limit = 320 << 20;
        let of = |megabytes: usize| waste_counted(megabytes << 20, limit) >> 20;
        assert_eq!([0, 4, 5, 6, 14, 15, 16, 400].map(of), [0, 0, 0, 1, 9, 10, 10, 10]);
        assert_eq!(waste_counted(50 << 20, 0), 0, "there is no limit");
        assert_eq!(waste_counted(50 << 20, WASTE_COUNTS_FROM - 1), 0, "a small limit is about items");
    }
}
