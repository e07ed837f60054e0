//! What the log's threads and those who append share. Knows not who does what with it.

use super::event::{Event, Hooks};
use super::keep::Keep;
use super::trouble::{Trouble, words};
use super::{Policy, Settings};
use crate::files::File;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tenon_ds::ring::{Claim, Ring};

/// No switch to another file is due.
pub(super) const NO_SWITCH: u64 = u64::MAX;

/// What `wants_records` is while the writer does not sleep.
pub(super) const WANTS_NONE: u64 = u64::MAX;

/// How long the writer may not come on while there is something to write before replies wait for it.
const BEHIND_AFTER: Duration = Duration::from_secs(1);

/// How often it is looked whether the ring would be found by who comes next.
const KEEP_LOOK: Duration = Duration::from_secs(1);

/// How often it is looked whether the syncer is done, of which it tells.
const SYNCER_LOOK: Duration = Duration::from_secs(1);

/// Bits of `care`: why appending takes the longer way.
pub(super) const CARE_TIMESTAMPS: u8 = 1;
pub(super) const CARE_COUNT: u8 = 2;

pub(super) struct Shared {
    pub(super) ring: Arc<Ring>,
    /// What says of the ring's memory which files it is for, where that outlives the process.
    pub(super) keep: Option<Keep>,
    is_keep_lost: AtomicBool,
    looked_for_keep: Mutex<Instant>,
    /// What an append has to see to besides.
    pub(super) care: AtomicU8,
    /// Something is wrong; what it is stands in `trouble`.
    pub(super) failing: AtomicBool,
    /// What was appended has not been written for too long: replies wait for it, whatever the policy.
    pub(super) behind: AtomicBool,
    watch: Mutex<Watch>,
    /// Little room is left in the ring, and the hooks were told, with this locked.
    pub(super) is_short: AtomicBool,
    pub(super) told_short: Mutex<bool>,
    pub(super) written: AtomicU64,
    pub(super) durable: AtomicU64,
    /// Up to here replies may leave although it is not synced: the settings spare syncs during a rewrite.
    spared: AtomicU64,
    /// Records from this position on go to the next file.
    pub(super) switch_at: AtomicU64,
    policy: AtomicU8,
    pub(super) no_sync_during_rewrite: AtomicBool,
    pub(super) snapshotting: AtomicBool,
    /// Records so far, as long as the policy is `always`.
    pub(super) records: AtomicU64,
    /// The writer, which syncs everything, sleeps until there are so many records.
    pub(super) wants_records: AtomicU64,
    /// Whether who appends says when that was all for the moment.
    pub(super) hears_of_turns: bool,
    /// The second of the last timestamp.
    pub(super) last_timestamp: AtomicU64,
    pub(super) clock: fn() -> u64,
    pub(super) hooks: Arc<dyn Hooks>,
    trouble: Mutex<Trouble>,
    /// What was appended and found no room while nothing could be written, by its position.
    pub(super) aside: Mutex<BTreeMap<u64, Aside>>,
    pub(super) has_aside: AtomicBool,
    control: Mutex<Control>,
    progress: Condvar,
    /// There is something to do for the syncer.
    jobs: Condvar,
    pub(super) counts: Counts,
}

/// How far everything was written when that last changed, or when nothing was left to write.
struct Watch {
    written: u64,
    since: Instant,
}

pub(super) struct Aside {
    pub(super) claim: Claim,
    pub(super) bytes: Vec<u8>,
    pub(super) done: usize,
}

/// What is asked of the threads, and what they answer.
#[derive(Default)]
pub(super) struct Control {
    pub(super) stop: bool,
    /// The writer has ended.
    pub(super) ended: bool,
    /// How it ended.
    pub(super) end: Option<io::Result<()>>,
    /// Somebody waits for this position to be synced.
    pub(super) sync_wanted: u64,
    /// Where to go on from the switch.
    pub(super) next_file: Option<Arc<dyn File>>,
    /// Which file that is.
    pub(super) next_identity: [u64; 2],
    /// Records before the switch are in a snapshot, there is no need to write them.
    pub(super) drop_before_switch: bool,
    /// The file being written, counted from 0.
    pub(super) generation: u64,
    /// What the syncer is to sync, or syncs.
    pub(super) sync: Option<SyncJob>,
    /// And what it is to give back to the system besides.
    pub(super) forget: Option<ForgetJob>,
    /// While files that are not trusted lie before: what would be durable but for them.
    pub(super) synced_since: u64,
    /// How many wait for progress.
    waiting: u32,
}

#[derive(Clone)]
pub(super) struct SyncJob {
    pub(super) file: Arc<dyn File>,
    pub(super) generation: u64,
    pub(super) position: u64,
    /// Length of the file at that position.
    pub(super) file_len: u64,
}

/// Memory of the system's to be given back.
#[derive(Clone)]
pub(super) struct ForgetJob {
    pub(super) file: Arc<dyn File>,
    /// So much was written.
    pub(super) file_len: u64,
}

/// What there is for the syncer.
pub(super) enum Job {
    Sync(SyncJob),
    Forget(ForgetJob),
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) file_len: AtomicU64,
    pub(super) writes: AtomicU64,
    pub(super) syncs: AtomicU64,
    pub(super) delayed_syncs: AtomicU64,
    pub(super) held_up: AtomicU64,
    pub(super) stalls: AtomicU64,
    pub(super) stalled_us: AtomicU64,
}

/// Figures of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes of the file that is written to.
    pub file_len: u64,
    /// Bytes that were appended and not yet written.
    pub buffered: u64,
    /// Whether those are found again when the process is killed.
    pub outlives_process: bool,
    /// Whether a sync is under way on its own thread.
    pub sync_pending: bool,
    /// Syncs that took more than two seconds while others waited.
    pub delayed_syncs: u64,
    /// How often the writer was held up for a second, so that replies waited for it.
    pub held_up: u64,
    /// Whether the last write succeeded, and no file is untrusted.
    pub last_write_ok: bool,
    /// Calls that wrote to the file.
    pub writes: u64,
    /// Calls that synced it.
    pub syncs: u64,
    /// Appends that had to wait for room.
    pub stalls: u64,
    /// How long they waited.
    pub stalled_us: u64,
}

impl Shared {
    pub(super) fn new(
        ring: Arc<Ring>,
        keep: Option<Keep>,
        settings: &Settings,
        hooks: Arc<dyn Hooks>,
        file_len: u64,
    ) -> Shared {
        let start = ring.head();
        let counts = Counts { file_len: AtomicU64::new(file_len), ..Counts::default() };
        let shared = Shared {
            ring,
            keep,
            is_keep_lost: AtomicBool::new(false),
            looked_for_keep: Mutex::new(Instant::now()),
            care: AtomicU8::new(0),
            failing: AtomicBool::new(false),
            behind: AtomicBool::new(false),
            watch: Mutex::new(Watch { written: start, since: Instant::now() }),
            is_short: AtomicBool::new(false),
            told_short: Mutex::default(),
            written: AtomicU64::new(start),
            durable: AtomicU64::new(start),
            spared: AtomicU64::new(start),
            switch_at: AtomicU64::new(NO_SWITCH),
            policy: AtomicU8::new(0),
            no_sync_during_rewrite: AtomicBool::new(settings.no_sync_during_rewrite),
            snapshotting: AtomicBool::new(false),
            records: AtomicU64::new(0),
            wants_records: AtomicU64::new(WANTS_NONE),
            hears_of_turns: settings.hears_of_turns,
            last_timestamp: AtomicU64::new(0),
            clock: settings.clock,
            hooks,
            trouble: Mutex::default(),
            aside: Mutex::default(),
            has_aside: AtomicBool::new(false),
            control: Mutex::default(),
            progress: Condvar::new(),
            jobs: Condvar::new(),
            counts,
        };
        shared.set_timestamps(settings.timestamps);
        shared.set_policy(settings.policy);
        shared
    }

    pub(super) fn policy(&self) -> Policy {
        match self.policy.load(Ordering::Relaxed) {
            0 => Policy::No,
            1 => Policy::EverySecond,
            _ => Policy::Always,
        }
    }

    pub(super) fn set_policy(&self, policy: Policy) {
        self.policy.store(policy as u8, Ordering::Relaxed);
        self.set_care(CARE_COUNT, policy == Policy::Always);
        // Replies that were held need not be any more; or what was written must be synced now.
        self.hooks.may_answer(self.durable.load(Ordering::Acquire));
        self.ring.nudge_consumer();
    }

    pub(super) fn set_timestamps(&self, timestamps: bool) {
        self.set_care(CARE_TIMESTAMPS, timestamps);
    }

    fn set_care(&self, bit: u8, on: bool) {
        if on {
            self.care.fetch_or(bit, Ordering::Relaxed);
        } else {
            self.care.fetch_and(!bit, Ordering::Relaxed);
        }
    }

    /// Whether the settings want nothing synced at the moment.
    pub(super) fn spares_syncs(&self) -> bool {
        self.no_sync_during_rewrite.load(Ordering::Relaxed) && self.snapshotting.load(Ordering::Relaxed)
    }

    pub(super) fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn trouble(&self) -> MutexGuard<'_, Trouble> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something was written, synced, switched or asked for.
    pub(super) fn wait_for_progress<'a>(
        &self,
        mut control: MutexGuard<'a, Control>,
        at_most: Duration,
    ) -> MutexGuard<'a, Control> {
        control.waiting += 1;
        let mut control = self.progress.wait_timeout(control, at_most).unwrap_or_else(PoisonError::into_inner).0;
        control.waiting -= 1;
        control
    }

    /// Tells all who wait for something of it.
    pub(super) fn made_progress(&self) {
        // The lock orders it behind whoever has looked and is about to wait. Mostly nobody does, and no call is made.
        if self.control().waiting > 0 {
            self.progress.notify_all();
        }
    }

    /// Waits until there is something to do for the syncer; nothing when the writer has ended.
    pub(super) fn wait_for_job(&self) -> Option<Job> {
        let has_none = |control: &mut Control| control.sync.is_none() && control.forget.is_none() && !control.ended;
        let mut control = self.jobs.wait_while(self.control(), has_none).unwrap_or_else(PoisonError::into_inner);
        // A sync is there until it is done; somebody may wait for it.
        match control.sync.clone() {
            Some(sync) => Some(Job::Sync(sync)),
            None if control.ended => None,
            None => control.forget.take().map(Job::Forget),
        }
    }

    /// Waits until the syncer has done what it was given, or until nobody needs the file any more; tells which.
    pub(super) fn await_syncer(&self) -> bool {
        let mut control = self.control();
        while control.sync.is_some() && !control.drop_before_switch {
            control = self.wait_for_progress(control, SYNCER_LOOK);
        }
        !control.drop_before_switch
    }

    /// Tells the syncer that there is something to do, or that there will be nothing more. It was said under the lock.
    pub(super) fn has_job(&self) {
        self.jobs.notify_one();
    }

    /// Notes that everything before `position` is synced as far as this file goes.
    pub(super) fn synced(&self, generation: u64, position: u64) {
        {
            let mut control = self.control();
            let trouble = self.trouble();
            if !trouble.is_trusted(generation) {
                return;
            }
            control.synced_since = control.synced_since.max(position);
            if trouble.has_untrusted_file() {
                return;
            }
        }
        self.raise_durable(position);
    }

    /// Whether what is appended is found again when the process is killed.
    pub(super) fn outlives_process(&self) -> bool {
        self.keep.is_some() && !self.is_keep_lost.load(Ordering::Relaxed)
    }

    /// What is in the ring would not be found any more.
    pub(super) fn keep_is_lost(&self, why: &str) {
        if self.keep.is_some() && !self.is_keep_lost.swap(true, Ordering::Relaxed) {
            self.hooks.event(&Event::EndsWithProcess(why.to_owned()));
        }
    }

    /// Looks whether the ring would still be found, now and then.
    fn watch_keep(&self, now: Instant) {
        let Some(keep) = &self.keep else { return };
        {
            let mut looked = self.looked_for_keep.lock().unwrap_or_else(PoisonError::into_inner);
            if now.saturating_duration_since(*looked) < KEEP_LOOK {
                return;
            }
            *looked = now;
        }
        if !keep.is_there() {
            self.keep_is_lost("somebody has removed its file");
        }
    }

    /// Looks whether the writer comes on.
    pub(super) fn watch(&self, now: Instant) {
        self.has_released();
        self.watch_keep(now);
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        // In this order: what is appended in between is not taken for old.
        let head = self.ring.head();
        let written = self.written.load(Ordering::Acquire);
        if written >= head || written != watch.written {
            *watch = Watch { written, since: now };
            drop(watch);
            self.caught_up();
            return;
        }
        let is_held_up = now.saturating_duration_since(watch.since) >= BEHIND_AFTER;
        if is_held_up && !self.failing.load(Ordering::Relaxed) && !self.behind.swap(true, Ordering::SeqCst) {
            self.counts.held_up.fetch_add(1, Ordering::Relaxed);
            self.hooks.event(&Event::HeldUp);
        }
    }

    /// The writer has come on: replies that waited for it may leave.
    pub(super) fn caught_up(&self) {
        if self.behind.load(Ordering::SeqCst) {
            self.behind.store(false, Ordering::SeqCst);
            self.hooks.may_answer(self.written.load(Ordering::Acquire));
        }
    }

    /// Up to where replies may be sent.
    pub(super) fn answerable(&self) -> u64 {
        if self.policy() == Policy::Always {
            self.durable.load(Ordering::Acquire).max(self.spared.load(Ordering::Acquire))
        } else if self.behind.load(Ordering::SeqCst) {
            self.written.load(Ordering::Acquire)
        } else {
            u64::MAX
        }
    }

    /// Lets replies leave whose records are written and, as the settings want it, not synced for the moment. Nothing may leave
    /// when a sync has failed.
    pub(super) fn answer_unsynced(&self, written: u64) {
        let is_new = !self.trouble().has_untrusted_file() && self.spared.fetch_max(written, Ordering::AcqRel) < written;
        if is_new {
            self.hooks.may_answer(written);
        }
    }

    /// Everything before `position` is durable.
    pub(super) fn raise_durable(&self, position: u64) {
        if self.durable.fetch_max(position, Ordering::AcqRel) < position {
            self.made_progress();
            self.hooks.may_answer(position);
        }
    }

    pub(super) fn sync_failed(&self, generation: u64, error: &io::Error) {
        // It may have been under way when a snapshot took the file's place.
        if !self.trouble().sync_failed(generation, error) {
            return;
        }
        self.set_failing();
        self.hooks.event(&Event::SyncFailed(words(error)));
        self.has_released();
        self.hooks.needs_rewrite();
    }

    /// Brings `failing` up to date.
    pub(super) fn set_failing(&self) {
        let trouble = self.trouble();
        self.failing.store(trouble.is_any(), Ordering::Release);
        drop(trouble);
        // Who waits for room need not any more.
        self.ring.wake_producers();
        self.made_progress();
    }

    pub(super) fn statistics(&self) -> Statistics {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let written = self.written.load(Ordering::Acquire);
        Statistics {
            file_len: load(&self.counts.file_len),
            buffered: self.ring.head().saturating_sub(written),
            outlives_process: self.outlives_process(),
            sync_pending: self.control().sync.is_some(),
            delayed_syncs: load(&self.counts.delayed_syncs),
            held_up: load(&self.counts.held_up),
            last_write_ok: !self.failing.load(Ordering::Acquire),
            writes: load(&self.counts.writes),
            syncs: load(&self.counts.syncs),
            stalls: load(&self.counts.stalls),
            stalled_us: load(&self.counts.stalled_us),
        }
    }
}
