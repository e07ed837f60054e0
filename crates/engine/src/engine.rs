//! The server without its sockets: settings, commands, data, clients and what was measured.

use crate::acl::{Acl, PasswordFile};
use crate::allocator::{Allocator, Releases};
use crate::aof::Aof;
use crate::blocking::Blocking;
use crate::calls::Calls;
use crate::changed_settings::ConfigHook;
use crate::client_eviction::ClientsSeen;
use crate::clients::{Clients, Message};
use crate::clock::{Clock, monotonic_ns, now_us};
use crate::command::Command;
use crate::config::{Config, Rename};
use crate::errand::Errands;
use crate::flush_schedule::FlushSchedule;
use crate::held::HeldReplies;
use crate::hotkeys::HotKeys;
use crate::info::DeadlinesSeen;
use crate::journal::Attachment;
use crate::large::LargeKeys;
use crate::latency::LatencyMonitor;
use crate::lendings::Lendings;
use crate::listening::Listening;
use crate::loading::Loading;
use crate::log_limit::StrangersLog;
use crate::long_calls::LongCalls;
use crate::meanwhile;
use crate::monitor::Monitors;
use crate::onlookers::Onlookers;
use crate::over_limit::OverLimit;
use crate::pause::Pause;
use crate::prefixes::Prefixes;
use crate::pubsub::PubSub;
use crate::quiet::Activity;
use crate::rates::{Rates, Totals};
use crate::reaper::Reaper;
use crate::recent::RecentMost;
use crate::refusals::Refusals;
use crate::remembered::Remembered;
use crate::saving::Saving;
use crate::scripting::Scripts;
use crate::shards::Shards;
use crate::slowlog::CommandLog;
use crate::snapshot::Snapshots;
use crate::stand_ins::StandIns;
use crate::stats::{TlsCounts, WorkerStats};
use crate::table::CommandTable;
use crate::tracking::Tracking;
use crate::under_way::KeysUnderWay;
use crate::unsent::Unsent;
use crate::uploads::Uploads;
use crate::watchers::Watchers;
use crate::worker::{NOBODY, Worker};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};
use tenon_ds::apart::Apart;
use tenon_persist::rdb::Limits;
use tenon_store::access::Noting;
use tenon_store::types::ListLimits;

/// A batch that took longer than this reads the clock anew, so that the next one does not run in the past.
const CLOCK_STALE_NS: u64 = 500_000;
/// The time between ticks while DEBUG PAUSE-CRON lasts.
const PAUSED_TICK: Duration = Duration::from_millis(10);
/// Blocks that others have freed which a tick takes back: a tenth of a millisecond's work, as most of them are in no cache.
const COLLECTED_AT_ONCE: usize = 512;

/// How a shutdown is asked for.
pub type ShutdownHook = Box<dyn Fn() + Send + Sync>;

/// The server. What is written while commands run is [`Apart`]: all workers read the rest of it for every command.
pub struct Engine {
    /// The settings.
    pub config: Config,
    /// The commands.
    pub commands: CommandTable,
    /// The data.
    pub shards: Shards,
    /// The clients.
    pub clients: Apart<Clients>,
    /// The sockets that are listened on.
    pub listening: Listening,
    /// Scripts and function libraries.
    pub scripts: Scripts,
    /// The clients that see every command.
    pub monitors: Monitors,
    /// The memcached clients that see what others do.
    pub watchers: Watchers,
    /// The search for busy keys.
    pub hotkeys: HotKeys,
    /// The largest keys.
    pub large: LargeKeys,
    /// Whether anybody looks on while commands run.
    pub onlookers: Onlookers,
    /// The clients that are told of changes.
    pub tracking: Tracking,
    /// Everybody's subscriptions.
    pub pubsub: Apart<PubSub>,
    /// The users, and what was refused to them.
    pub acl: Acl,
    /// Names and passwords for memcached's clients.
    pub(crate) password_file: PasswordFile,
    /// CLIENT PAUSE.
    pub pause: Pause,
    /// The calls that are under way, for who waits for their end.
    pub(crate) calls: Apart<Calls>,
    /// The calls that others go on beside, and who waits for those.
    pub(crate) long_calls: Apart<LongCalls>,
    /// What is read while its shards are free.
    pub(crate) lendings: Arc<Lendings>,
    /// Why writes are refused.
    pub(crate) refusals: Refusals,
    /// Who holds replies until the log is on disk.
    pub(crate) held_replies: Apart<HeldReplies>,
    /// Output that clients have not taken yet.
    pub(crate) unsent: Apart<Unsent>,
    /// Long values that memcached's clients have under way.
    pub uploads: Uploads,
    /// What of clients' memory was last held against `maxmemory-clients`.
    pub(crate) clients_seen: Mutex<ClientsSeen>,
    /// Data that comes from files.
    pub loading: Loading,
    /// Clients that wait for keys.
    pub blocking: Apart<Blocking>,
    /// What commands have done outside of this process.
    pub(crate) errands: Errands,
    /// Keys that are being moved to other servers.
    pub migrating: KeysUnderWay,
    /// The keys that were evicted of late, and how fast others come.
    pub(crate) remembered: Remembered,
    /// Frees in the background.
    pub reaper: Arc<Reaper>,
    /// The slow log.
    pub slowlog: CommandLog,
    /// Commands with large requests.
    pub large_requests: CommandLog,
    /// Commands with large replies.
    pub large_replies: CommandLog,
    /// The latency monitor.
    pub latency: LatencyMonitor,
    /// When it started.
    pub started: Instant,
    /// When it started, in milliseconds since the UNIX epoch.
    pub started_ms: u64,
    /// Forty hexadecimal digits that are new with each start.
    pub run_id: String,
    /// Whether keys expire ahead of access (DEBUG SET-ACTIVE-EXPIRE).
    pub active_expiry: AtomicBool,
    /// Whether what a tick only keeps in order is done (DEBUG PAUSE-CRON).
    pub housekeeping: AtomicBool,
    /// Whether scripts may call commands of the server and of clients that are not for scripts (DEBUG
    /// SET-DISABLE-DENY-SCRIPTS).
    pub scripts_inspect: AtomicBool,
    /// Bytes from which an element of a long list has a node of its own (DEBUG QUICKLIST-PACKED-THRESHOLD); 0 for those
    /// that are longer than a node may be.
    pub list_alone_from: AtomicUsize,
    /// When certificates were read last, in seconds since the start.
    pub certificates_read_s: AtomicU64,
    /// What became of connections' TLS.
    pub tls_counts: Arc<TlsCounts>,
    /// Memcached connections closed because they were silent for too long.
    pub idle_kicks: AtomicU64,
    /// Connections refused for `maxclients`.
    pub refused_connections: AtomicU64,
    /// How often the log tells of strangers.
    pub strangers_log: StrangersLog,
    /// What INFO has last seen of keys with deadlines.
    pub(crate) deadlines_seen: Apart<Mutex<DeadlinesSeen>>,
    /// The most input of one client that was kept at one time of late, in bytes.
    pub recent_input: Apart<RecentMost>,
    /// The most output of one client that was unsent.
    pub recent_output: Apart<RecentMost>,
    /// The most memory that was in use, in bytes, as far as anyone looked.
    pub peak_memory: AtomicU64,
    /// Bytes of memory that were in use before there was data or a client.
    pub startup_memory: u64,
    /// Bytes of freed blocks whose memory is still taken, as the last step of packing has found them.
    pub(crate) wasted_memory: AtomicUsize,
    /// Commands and bytes a second, of late.
    pub rates: Rates,
    /// When somebody has last sent something.
    pub(crate) activity: Activity,
    /// When what long blocks have left and nobody needs goes back, in milliseconds of the monotonic clock.
    pub(crate) extents_released_at_ms: AtomicU64,
    /// The process's allocator, told of by whoever chose it.
    pub allocator: OnceLock<Allocator>,
    /// When its threads give up what is free.
    pub(crate) releases: Releases,
    /// How the clients' bytes are moved, said by whoever does it.
    pub multiplexer: OnceLock<&'static str>,
    /// What supervises the process and is told of it, said by whoever tells it.
    pub supervisor: OnceLock<&'static str>,
    /// Changes of keys that RESETSTAT made the workers forget.
    forgotten_changes: AtomicU64,
    pub(crate) config_hook: OnceLock<ConfigHook>,
    /// Held while settings change and are made to hold, or are taken back.
    pub(crate) config_applying: Mutex<()>,
    /// How often settings were taken back.
    pub(crate) settings_undone: AtomicU64,
    /// Errors by code, since the start or CONFIG RESETSTAT.
    pub errors: Apart<Mutex<BTreeMap<String, u64>>>,
    /// Every worker's statistics, and those of whoever is none.
    pub(crate) worker_stats: Vec<Arc<WorkerStats>>,
    /// And those of the threads that stand in for workers.
    pub(crate) stand_ins: StandIns,
    /// When everything is to be flushed.
    pub flush_schedule: FlushSchedule,
    /// For how long memory in use has been above `maxmemory`.
    pub over_limit: OverLimit,
    /// The snapshot that is under way.
    pub snapshots: Snapshots,
    /// The data in a file.
    pub saving: Saving,
    /// What memcached's clients ask for, by prefixes of keys.
    pub prefixes: Prefixes,
    /// Who takes the records of writes.
    pub(crate) journal: Attachment,
    /// The append-only file.
    pub(crate) aof: Aof,
    pub(crate) shutdown: OnceLock<ShutdownHook>,
    next_cas: Apart<AtomicU64>,
    workers: usize,
    seed: u64,
    /// Itself, for threads that it starts.
    shared: OnceLock<Weak<Engine>>,
}

/// How many shards there are, of so many that there may be: each takes some hundred bytes with its table, so where there
/// is little memory there are fewer.
fn shards_at(most: usize, maxmemory: u64) -> usize {
    /// What a shard should hold at least, in bytes.
    const SHARD_BYTES: u64 = 16 * 1024;
    /// As many as workers need not to meet.
    const ENOUGH: usize = 256;
    match maxmemory {
        0 => most,
        limit => ((limit / SHARD_BYTES) as usize).next_power_of_two().clamp(ENOUGH.min(most), most),
    }
}

/// The table of these commands, by the names that the configuration has clients call them.
///
/// # Errors
/// Where and why it cannot.
pub fn named_commands(commands: &[&'static Command], config: &Config) -> Result<CommandTable, String> {
    let mut table = CommandTable::new(commands);
    for Rename { origin, old, new } in config.renames() {
        table.rename(old, new).map_err(|error| format!("{origin}: rename-command {old} {new}: {error}"))?;
    }
    Ok(table)
}

impl Engine {
    /// A server without data that runs these commands. `seed` is where its hash and its randomness start from: the
    /// system's randomness, except in tests.
    ///
    /// # Panics
    /// When the configuration names commands as [`named_commands`] refuses to.
    pub fn new(config: Config, commands: &[&'static Command], seed: u64) -> Engine {
        let commands = named_commands(commands, &config).expect("the configuration names commands that there are");
        Engine::with_table(config, commands, seed)
    }

    /// A server without data that runs the commands of this table, which [`named_commands`] has made.
    pub fn with_table(config: Config, commands: CommandTable, seed: u64) -> Engine {
        meanwhile::follow_progress();
        let workers = config.workers().max(1);
        // One more for whoever runs commands without being a worker (tests, embedding).
        let worker_stats = (0..=workers).map(|_| Arc::new(WorkerStats::new(commands.all().len()))).collect();
        // Everybody may read the run's name, so it must not lead back to the seed that keys are hashed with.
        let own = RandomState::new();
        let mut run_id: String = (0..3).map(|part| format!("{:016x}", own.hash_one(part))).collect();
        run_id.truncate(40);
        let shards = Shards::new(shards_at(config.shards(), config.maxmemory()), seed, workers);
        let prefixes = Prefixes::new(&config.memcached_stats_delimiter());
        Engine {
            startup_memory: tenon_ds::memory::used() as u64,
            rates: Rates::default(),
            activity: Activity::default(),
            extents_released_at_ms: AtomicU64::new(0),
            allocator: OnceLock::new(),
            releases: Releases::default(),
            multiplexer: OnceLock::new(),
            supervisor: OnceLock::new(),
            forgotten_changes: AtomicU64::new(0),
            config_hook: OnceLock::new(),
            acl: Acl::new(&config, &commands),
            password_file: PasswordFile::default(),
            config_applying: Mutex::default(),
            settings_undone: AtomicU64::new(0),
            shards,
            config,
            commands,
            clients: Apart::default(),
            listening: Listening::default(),
            scripts: Scripts::default(),
            monitors: Monitors::default(),
            watchers: Watchers::default(),
            hotkeys: HotKeys::default(),
            large: LargeKeys::default(),
            onlookers: Onlookers::default(),
            tracking: Tracking::default(),
            pubsub: Apart::default(),
            pause: Pause::default(),
            loading: Loading::default(),
            calls: Apart::default(),
            long_calls: Apart::default(),
            lendings: Arc::default(),
            refusals: Refusals::default(),
            held_replies: Apart::default(),
            blocking: Apart(Blocking::new(workers)),
            unsent: Apart::default(),
            uploads: Uploads::default(),
            clients_seen: Mutex::default(),
            errands: Errands::default(),
            migrating: KeysUnderWay::default(),
            remembered: Remembered::default(),
            reaper: Arc::default(),
            slowlog: CommandLog::default(),
            large_requests: CommandLog::default(),
            large_replies: CommandLog::default(),
            latency: LatencyMonitor::default(),
            started: Instant::now(),
            started_ms: now_us() / 1_000,
            run_id,
            active_expiry: AtomicBool::new(true),
            housekeeping: AtomicBool::new(true),
            scripts_inspect: AtomicBool::new(false),
            list_alone_from: AtomicUsize::new(0),
            certificates_read_s: AtomicU64::new(0),
            tls_counts: Arc::default(),
            idle_kicks: AtomicU64::new(0),
            refused_connections: AtomicU64::new(0),
            strangers_log: StrangersLog::default(),
            deadlines_seen: Apart(Mutex::default()),
            recent_input: Apart(RecentMost::default()),
            recent_output: Apart(RecentMost::default()),
            peak_memory: AtomicU64::new(0),
            wasted_memory: AtomicUsize::new(0),
            errors: Apart::default(),
            worker_stats,
            stand_ins: StandIns::default(),
            flush_schedule: FlushSchedule::default(),
            over_limit: OverLimit::default(),
            snapshots: Snapshots::default(),
            saving: Saving::new(now_us() / 1_000_000),
            prefixes,
            journal: Attachment::default(),
            aof: Aof::default(),
            shutdown: OnceLock::new(),
            next_cas: Apart::default(),
            workers,
            seed,
            shared: OnceLock::new(),
        }
    }

    /// The engine, for several threads. What goes on in the background, such as writing a snapshot, can be started only
    /// in one that was shared by this.
    pub fn share(self) -> Arc<Engine> {
        Arc::new_cyclic(|own| {
            // It is the first to say so: nobody else can.
            let _ = self.shared.set(Weak::clone(own));
            self
        })
    }

    /// The engine, for a thread of its own; `None` if it was not shared, or ends.
    pub fn shared(&self) -> Option<Arc<Engine>> {
        self.shared.get().and_then(Weak::upgrade)
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// The state of worker `index`, made on its thread. The index `workers()` is for whoever is no worker.
    pub fn worker(&self, index: usize) -> Worker {
        let mut worker =
            Worker::new(index, self.seed_of(index), Arc::clone(&self.worker_stats[index]), Arc::clone(&self.reaper));
        self.read_clock(&mut worker);
        worker
    }

    /// Where the randomness of a thread starts from.
    pub(crate) fn seed_of(&self, thread: usize) -> u64 {
        self.seed ^ (thread as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// How accesses are noted under the policy in force.
    fn noting(&self) -> Noting {
        let policy = self.policy();
        if policy.remembers() {
            Noting::Turnover(self.remembered.turnover())
        } else if policy.notes_frequency() {
            Noting::Frequency { log_factor: self.config.lfu_log_factor(), decay_minutes: self.config.lfu_decay_time() }
        } else {
            Noting::Clock
        }
    }

    /// Reads the clock for a worker.
    #[inline]
    pub fn read_clock(&self, worker: &mut Worker) {
        worker.clock = Clock::read(self.noting());
    }

    /// Has a worker note accesses from here on as the policy in force wants it. Time stays: it may stand still.
    pub fn follow_policy(&self, worker: &mut Worker) {
        worker.clock.note_accesses_by(self.noting());
    }

    /// Notes that a batch which was not timed by command has ended: the next one does not run in the past when this one
    /// took long.
    #[inline]
    pub fn batch_ended(&self, worker: &mut Worker) {
        self.broadcast_changes(worker);
        self.wait_for_scanner(worker);
        self.advance_old_clock(worker, monotonic_ns());
    }

    /// Moves a worker's clock on to the present, if that is later than a batch of quick commands takes; tells whether it is.
    #[inline]
    pub(crate) fn advance_old_clock(&self, worker: &mut Worker, present_ns: u64) -> bool {
        let is_old = present_ns.saturating_sub(worker.clock.now_ns) > CLOCK_STALE_NS;
        if is_old {
            self.advance_clock(worker);
        }
        is_old
    }

    /// Moves a worker's clock on to the present, quicker than reading it anew.
    #[inline]
    pub fn advance_clock(&self, worker: &mut Worker) {
        worker.clock.advance(self.noting());
    }

    /// Up to where lists and their nodes grow.
    #[inline]
    pub fn list_limits(&self) -> ListLimits {
        let alone_from = match self.list_alone_from.load(Ordering::Relaxed) {
            0 => usize::MAX,
            bytes => bytes,
        };
        ListLimits::new(self.config.list_max_listpack_size(), alone_from)
    }

    /// Up to where all collections stay in their small forms, for those that are loaded.
    pub fn limits(&self) -> Limits {
        Limits {
            list: self.list_limits(),
            hash: self.config.hash_limits(),
            set: self.config.set_limits(),
            zset: self.config.zset_limits(),
            producers: self.config.producer_limits(),
        }
    }

    /// A CAS token that no item has had.
    pub fn next_cas(&self) -> u64 {
        self.next_cas.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Has CAS tokens go on from this one at least.
    pub(crate) fn raise_cas(&self, least: u64) {
        self.next_cas.fetch_max(least, Ordering::Relaxed);
    }

    /// What a worker does now and then; gives the time until it wants to be called again.
    pub fn tick(&self, worker: &mut Worker) -> Duration {
        self.read_clock(worker);
        self.follow_journal(worker);
        worker.client = NOBODY;
        let next = if self.is_loading() {
            // Data that is not whole is left as it is.
            self.load_tick(worker)
        } else if self.housekeeping.load(Ordering::Relaxed) {
            self.keep_house(worker)
        } else {
            PAUSED_TICK
        };
        worker.sweep();
        for key in self.pause.end_if_due(worker.clock.now_ms) {
            self.clients.tell(key, Message::Unpause);
        }
        self.go_on_where_free();
        self.end_due_waits(worker);
        self.end_waits_for_disk();
        self.leave_queues_deferred();
        self.unwatch_deferred();
        if !worker.ready.is_empty() {
            self.serve_left(worker);
        }
        self.broadcast_changes(worker);
        self.tick_at_rest(worker, next)
    }

    /// The part of a tick that nobody waits for.
    fn keep_house(&self, worker: &mut Worker) -> Duration {
        let next = self.expire_tick(worker);
        worker.sweep();
        self.tidy_interpreters(worker);
        self.collect_if_asked(worker);
        self.close_stalled_uploads(worker);
        // What the reaper has freed of this worker's comes back a part at a time: ten million blocks take seconds.
        let is_left = tenon_ds::slab::collect_some(COLLECTED_AT_ONCE);
        let next = if is_left { next } else { next.min(self.compact_tick(worker)) };
        if worker.index == 0 {
            self.flush_if_due(worker);
            self.save_if_due(worker);
            self.end_hot_keys_if_due(worker.clock.now_ms);
            self.weed_large_keys(worker);
            self.forget_surplus();
            self.evict_clients(worker);
            self.fit_remembered(worker);
            self.age_keys(worker);
            self.fit_extents(worker.clock.monotonic_ms());
            self.release_behind_falls(worker.clock.monotonic_ms());
            self.peak_memory.fetch_max(tenon_ds::memory::used() as u64, Ordering::Relaxed);
            self.rates.note(Instant::now(), || self.totals());
            self.watch_aof();
            self.rewrite_aof_if_due(worker.clock.now_ms / 1_000);
        }
        self.follow_remembered(worker);
        if self.evict_ahead(worker) || is_left { Duration::ZERO } else { next }
    }

    /// Says how a shutdown is asked for; once.
    pub fn set_shutdown(&self, hook: ShutdownHook) {
        assert!(self.shutdown.set(hook).is_ok(), "how to shut down is said once");
    }

    /// Changes of keys since the start.
    pub fn changes(&self) -> u64 {
        self.forgotten_changes.load(Ordering::Relaxed) + self.sum(|stats| stats.all.changes.get())
    }

    /// What the rates are rates of.
    fn totals(&self) -> Totals {
        Totals {
            commands: self.sum(|stats| stats.all.commands.get()),
            input_bytes: self.sum(|stats| stats.all.input_bytes.get()),
            output_bytes: self.sum(|stats| stats.all.output_bytes.get()),
        }
    }

    /// The sum of one counter over all threads.
    pub fn sum(&self, counter: impl Fn(&WorkerStats) -> u64) -> u64 {
        let mut sum = 0;
        self.each_stats(|stats| sum += counter(stats));
        sum
    }

    /// Counts an error by its code. Scripts can make up codes: of those that come when there are many, all are counted
    /// as one, as in Valkey.
    pub fn count_error(&self, code: String) {
        const CODES_MAX: usize = 128;
        let mut errors = self.errors.lock();
        let has_place = errors.len() < CODES_MAX || errors.contains_key(&code);
        let code = if has_place { code } else { "ERRORSTATS_OVERFLOW".to_owned() };
        *errors.entry(code).or_default() += 1;
    }

    /// All statistics back to 0 (CONFIG RESETSTAT), but for the peak of memory, which as in Redis is that since the start.
    pub fn reset_stats(&self) {
        self.forgotten_changes.store(self.changes(), Ordering::Relaxed);
        self.each_stats(WorkerStats::reset);
        self.errors.lock().clear();
        self.scripts.known.reset_evicted();
        self.prefixes.reset();
        self.rates.reset();
        self.tls_counts.reset();
        self.saving.reset_tries();
        self.forget_rewrites();
        self.over_limit.reset();
        self.reaper.reset_freed();
        self.idle_kicks.store(0, Ordering::Relaxed);
        self.refused_connections.store(0, Ordering::Relaxed);
    }
}
