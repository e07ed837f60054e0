//! Statistics that each worker keeps for itself and INFO adds up, so that no counter is shared on the hot path.

use crate::durations::Durations;
use crate::key_counts::KeyCounts;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use tenon_ds::slab;
use tenon_store::entry::{EntryRef, Marks};

/// A number that one thread writes and any may read.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds, on the thread that owns the counter.
    #[inline]
    pub fn add(&self, more: u64) {
        // Only the owner writes: no read-modify-write is needed.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    /// Raises to at least `value`, on the thread that owns the counter.
    pub fn raise(&self, value: u64) {
        if value > self.0.load(Ordering::Relaxed) {
            self.0.store(value, Ordering::Relaxed);
        }
    }

    /// The number now.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Another number, on the thread that owns the counter.
    fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Back to 0 (CONFIG RESETSTAT); an addition at the same moment may win.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// What became of connections' TLS; any thread counts.
#[derive(Debug, Default)]
pub struct TlsCounts {
    /// Handshakes that came to an end and did not resume an earlier session, where sessions are kept.
    pub new_sessions: AtomicU64,
    /// Handshakes that failed.
    pub handshake_errors: AtomicU64,
    /// Connections that were closed for what their client sent behind the handshake.
    pub protocol_errors: AtomicU64,
}

impl TlsCounts {
    /// Every number back to 0.
    pub fn reset(&self) {
        for count in [&self.new_sessions, &self.handshake_errors, &self.protocol_errors] {
            count.store(0, Ordering::Relaxed);
        }
    }
}

macro_rules! counters {
    ($(#[$outer:meta])* $name:ident { $($(#[$doc:meta])* $field:ident,)* }) => {
        $(#[$outer])*
        #[derive(Debug, Default)]
        pub struct $name { $($(#[$doc])* pub $field: Counter,)* }

        impl $name {
            /// Every counter back to 0.
            pub fn reset(&self) {
                $(self.$field.reset();)*
            }
        }
    };
}

counters! {
    /// What a worker has counted.
    Counters {
        /// Commands run, of both protocols.
        commands,
        /// Keys that were looked up for reading and found.
        hits,
        /// Keys that were looked up for reading and not found.
        misses,
        /// Changes of keys.
        changes,
        /// Keys removed because their time had come.
        expired,
        /// Of those, keys that a client was about to use.
        expired_in_use,
        /// Of those, keys that nobody had read.
        expired_unfetched,
        /// Members removed because their time had come.
        expired_members,
        /// Of those, fields of hashes.
        expired_fields,
        /// Milliseconds that removed keys and members were overdue, summed.
        expiry_lag_ms_sum,
        /// The most milliseconds that a removed key or member was overdue.
        expiry_lag_ms_max,
        /// Microseconds that ticks spent removing keys whose time had come.
        expire_us,
        /// Ticks that left keys whose time had come to the next one, as their own time was over.
        expire_capped,
        /// Keys evicted to stay below `maxmemory`.
        evicted,
        /// Of those, keys that nobody had read.
        evicted_unfetched,
        /// Microseconds spent evicting.
        eviction_us,
        /// Connections accepted.
        connections,
        /// Connections closed because their unsent output exceeded its limit.
        output_limit_closed,
        /// Connections closed because all clients together took more than `maxmemory-clients`.
        clients_evicted,
        /// Connections closed because the server would have to keep too much of their input.
        input_limit_closed,
        /// Bytes received.
        input_bytes,
        /// Receptions that brought bytes.
        reads,
        /// Bytes that the kernel has taken to send.
        output_bytes,
        /// Times that it has taken some.
        writes,
        /// Commands that answered an error.
        errors,
        /// memcached: keys asked for by get and its kin.
        mc_get,
        /// memcached: keys of get and its kin that were there.
        mc_get_hits,
        /// memcached: storage commands.
        mc_set,
        /// memcached: touch and gat requests.
        mc_touch,
        /// memcached: touch and gat requests whose key was there.
        mc_touch_hits,
        /// memcached: meta commands.
        mc_meta,
        /// memcached: flush_all requests.
        mc_flush,
        /// memcached: incr requests whose key was there.
        mc_incr_hits,
        /// memcached: incr requests whose key was not there.
        mc_incr_misses,
        /// memcached: decr requests whose key was there.
        mc_decr_hits,
        /// memcached: decr requests whose key was not there.
        mc_decr_misses,
        /// memcached: delete requests whose key was there.
        mc_delete_hits,
        /// memcached: delete requests whose key was not there.
        mc_delete_misses,
        /// memcached: cas requests with the right token.
        mc_cas_hits,
        /// memcached: cas requests whose key was not there.
        mc_cas_misses,
        /// memcached: cas requests with another token.
        mc_cas_badval,
        /// memcached: values refused as too large.
        mc_too_large,
        /// memcached: values refused because memory was used up.
        mc_no_memory,
        /// memcached: attempts of clients to say who they are.
        mc_auth,
        /// memcached: those that failed.
        mc_auth_errors,
        /// memcached: items that were stored, by storage commands and by those that make one or give it a new place.
        mc_stored,
        /// memcached: times that a client had more requests than may run in one turn.
        mc_yields,
    }
}

counters! {
    /// What a worker has counted for the items of one size class, as memcached's `stats slabs` and `stats items` tell it.
    ClassCounters {
        /// memcached: keys of get and its kin that were there.
        get_hits,
        /// memcached: storage commands.
        cmd_set,
        /// memcached: delete requests whose key was there.
        delete_hits,
        /// memcached: incr requests whose key was there.
        incr_hits,
        /// memcached: decr requests whose key was there.
        decr_hits,
        /// memcached: cas requests with the right token.
        cas_hits,
        /// memcached: cas requests with another token.
        cas_badval,
        /// memcached: touch and gat requests whose key was there.
        touch_hits,
        /// memcached: values refused because memory was used up.
        out_of_memory,
        /// Keys evicted.
        evicted,
        /// Of those, keys that were to expire.
        evicted_with_deadline,
        /// Of those, keys that nobody had read.
        evicted_unfetched,
        /// When the last one was evicted, in milliseconds since the UNIX epoch.
        evicted_at_ms,
        /// How long nobody had accessed that one, in seconds.
        evicted_idle_s,
        /// Keys removed because their time had come.
        expired,
        /// Of those, keys that nobody had read.
        expired_unfetched,
    }
}

/// Buckets of the histogram of expiry lags: bucket 0 counts keys removed in their millisecond, bucket `n` lags of less
/// than `2^n` milliseconds.
pub const LAG_BUCKETS: usize = 24;

/// What a worker has counted for one command.
#[derive(Debug, Default)]
pub struct CommandCounters {
    /// Calls that ran.
    pub calls: Counter,
    /// Nanoseconds that they took.
    pub time_ns: Counter,
    /// Calls refused before they ran.
    pub rejected: Counter,
    /// Calls that ran and answered an error.
    pub failed: Counter,
    /// Calls by duration.
    pub latency: Durations,
}

impl CommandCounters {
    /// Notes calls that took `each_ns` nanoseconds each.
    #[inline]
    pub fn ran(&self, calls: u64, each_ns: u64) {
        self.calls.add(calls);
        self.time_ns.add(calls * each_ns);
        self.latency.add(calls, each_ns);
    }

    /// Everything back to 0.
    pub fn reset(&self) {
        self.calls.reset();
        self.time_ns.reset();
        self.rejected.reset();
        self.failed.reset();
        self.latency.reset();
    }
}

/// Numbers of size classes, 0 for what is in none among them.
pub const CLASSES: usize = slab::class_number(slab::SLAB_MAX) + 1;

/// Everything that one worker counts, in memory that no other worker writes.
#[derive(Debug)]
#[repr(align(128))]
pub struct WorkerStats {
    /// Counters over all commands.
    pub all: Counters,
    /// Keys removed because their time had come, by how late it was.
    pub expiry_lag: [Counter; LAG_BUCKETS],
    /// Counters of each command, by its number in the table.
    pub commands: Box<[CommandCounters]>,
    /// Counters of each size class that anything was counted for, by its number (`slab::class_number`).
    classes: Box<[OnceLock<Box<ClassCounters>>]>,
    /// Bytes of the Lua states of EVAL and of FUNCTION: what there is now, which no reset forgets.
    pub lua_bytes: [AtomicU64; 2],
    /// Keys added and removed, which no reset forgets either.
    pub(crate) keys: KeyCounts,
}

impl WorkerStats {
    /// Zeros for a table of so many commands.
    pub fn new(commands: usize) -> WorkerStats {
        WorkerStats {
            all: Counters::default(),
            expiry_lag: Default::default(),
            commands: (0..commands).map(|_| CommandCounters::default()).collect(),
            classes: (0..CLASSES).map(|_| OnceLock::new()).collect(),
            lua_bytes: Default::default(),
            keys: KeyCounts::default(),
        }
    }

    /// Counters of the size class with this number.
    #[inline]
    pub fn class(&self, number: usize) -> &ClassCounters {
        self.classes[number].get_or_init(Box::default)
    }

    /// The same, if anything was counted there.
    pub fn class_if_counted(&self, number: usize) -> Option<&ClassCounters> {
        self.classes[number].get().map(|class| &**class)
    }

    /// Counts a key that is evicted after nobody has accessed it for so long.
    pub(crate) fn evicted(&self, entry: EntryRef<'_>, idle_s: u32, now_ms: u64) {
        let unfetched = u64::from(!entry.marks().has(Marks::FETCHED));
        self.all.evicted_unfetched.add(unfetched);
        let class = self.class(entry.size_class());
        class.evicted.add(1);
        class.evicted_with_deadline.add(u64::from(entry.deadline_ms().is_some()));
        class.evicted_unfetched.add(unfetched);
        class.evicted_at_ms.set(now_ms);
        class.evicted_idle_s.set(idle_s.into());
    }

    /// Counts a lookup for reading.
    #[inline]
    pub fn looked_up(&self, found: bool) {
        if found { self.all.hits.add(1) } else { self.all.misses.add(1) }
    }

    /// Counts bytes that were received at once.
    #[inline]
    pub fn received(&self, bytes: u64) {
        self.all.input_bytes.add(bytes);
        // One that goes on with what it has received before reads nothing.
        self.all.reads.add(u64::from(bytes > 0));
    }

    /// Counts bytes that the kernel has taken at once.
    #[inline]
    pub fn sent(&self, bytes: u64) {
        self.all.output_bytes.add(bytes);
        self.all.writes.add(u64::from(bytes > 0));
    }

    /// Notes how much memory the thread's Lua states of EVAL and of FUNCTION take.
    pub(crate) fn note_lua(&self, eval: usize, functions: usize) {
        self.lua_bytes[0].store(eval as u64, Ordering::Relaxed);
        self.lua_bytes[1].store(functions as u64, Ordering::Relaxed);
    }

    /// Counts a change of a key.
    #[inline]
    pub fn changed(&self) {
        self.all.changes.add(1);
    }

    /// Counts keys whose time had come.
    pub fn expired(&self, keys: u64, lag_ms: u64) {
        self.all.expired.add(keys);
        self.lagged(keys, lag_ms);
    }

    /// Counts by its size class a key whose time had come.
    pub(crate) fn expired_in_class(&self, entry: EntryRef<'_>) {
        let unfetched = u64::from(!entry.marks().has(Marks::FETCHED));
        self.all.expired_unfetched.add(unfetched);
        let class = self.class(entry.size_class());
        class.expired.add(1);
        class.expired_unfetched.add(unfetched);
    }

    /// Counts members whose time had come; the first of them was overdue by this.
    pub fn expired_members(&self, members: u64, lag_ms: u64) {
        self.all.expired_members.add(members);
        self.lagged(members, lag_ms);
    }

    fn lagged(&self, count: u64, lag_ms: u64) {
        self.all.expiry_lag_ms_sum.add(lag_ms.saturating_mul(count));
        self.all.expiry_lag_ms_max.raise(lag_ms);
        let bucket = lag_ms.checked_ilog2().map_or(0, |log| log as usize + 1);
        self.expiry_lag[bucket.min(LAG_BUCKETS - 1)].add(count);
    }

    /// Everything back to 0 (CONFIG RESETSTAT).
    pub fn reset(&self) {
        self.all.reset();
        self.expiry_lag.iter().for_each(Counter::reset);
        self.commands.iter().for_each(CommandCounters::reset);
        self.classes.iter().filter_map(OnceLock::get).for_each(|class| class.reset());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lags_are_counted_by_powers_of_two_of_milliseconds() {
        let stats = WorkerStats::new(0);
        for lag_ms in [0, 1, 2, 3, 4, 7, 8, u64::MAX] {
            stats.expired(1, lag_ms);
        }
        let counts = |stats: &WorkerStats| stats.expiry_lag.each_ref().map(Counter::get);
        assert_eq!(counts(&stats)[..5], [1, 1, 2, 2, 1]);
        assert_eq!(counts(&stats)[LAG_BUCKETS - 1], 1);
        stats.reset();
        assert_eq!(counts(&stats), [0; LAG_BUCKETS]);
    }
}
