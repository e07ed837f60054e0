//! The writer's thread: from the ring into the file, and from one file to the next. Knows no record's meaning.

use super::Policy;
use super::event::Event;
use super::group_commit::GroupCommit;
use super::retry::Retry;
use super::room::Room;
use super::shared::{ForgetJob, NO_SWITCH, Shared, SyncJob, WANTS_NONE};
use super::trouble::words;
use crate::files::File;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tenon_ds::ring::Consumer;

/// How long the writer rests between two writes, unless every write is to be synced.
const REST: Duration = Duration::from_millis(2);
const SECOND: Duration = Duration::from_secs(1);
/// A sync on its own thread that takes longer is noted.
const SLOW_SYNC: Duration = Duration::from_secs(2);
/// What each write is synced with is given back in pieces of so many bytes: after each of many short syncs it would cost more
/// than it brings.
const FORGOTTEN_AT_ONCE: u64 = 1 << 20;
/// And what is synced later or never in such pieces.
const FORGOTTEN_BEHIND: u64 = 16 << 20;
/// Nothing is to be done before something happens.
const FOREVER: Duration = Duration::from_secs(3600);
/// Who appends tells the writer when there is something to sync; it looks all the same so often.
const LOOK_UP: Duration = SECOND;

pub(super) struct Writer {
    shared: Arc<Shared>,
    consumer: Consumer,
    file: Arc<dyn File>,
    generation: u64,
    /// Length of the file, as far as it is known to be as it should.
    file_len: u64,
    /// Of so much of it the memory was given back to the system, or the syncer told to do so.
    forgotten: u64,
    /// Something was written behind `file_len` that should not be there, perhaps.
    may_be_torn: bool,
    /// Everything before it was synced, or given to the syncer.
    sync_asked: u64,
    sync_began: Instant,
    slow_sync_noted: bool,
    /// Of writes.
    retry: Retry,
    room: Room,
    commits: GroupCommit,
    /// How far everything was filled when it was last looked what to write.
    seen: u64,
    /// How many records there were then at least, as long as every write is synced.
    counted: u64,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, consumer: Consumer, file: Arc<dyn File>, file_len: u64) -> Writer {
        let sync_asked = consumer.consumed();
        Writer {
            shared,
            consumer,
            file,
            generation: 0,
            file_len,
            forgotten: 0,
            may_be_torn: false,
            sync_asked,
            sync_began: Instant::now(),
            slow_sync_noted: false,
            retry: Retry::default(),
            room: Room::default(),
            commits: GroupCommit::default(),
            seen: sync_asked,
            counted: 0,
        }
    }

    pub(super) fn run(mut self) {
        let end = loop {
            let stop = self.shared.control().stop;
            if stop {
                break self.finish();
            }
            self.keep_room(0);
            let has_written = self.retry.is_due() && self.write_what_is_there().is_ok_and(|written| written);
            let has_switched = self.switch_if_due();
            if has_written {
                self.shared.caught_up();
                self.shared.has_released();
            }
            self.sync_if_due();
            if has_switched {
                // What was appended behind the cut was seen, and can be written only now.
            } else if has_written {
                self.rest();
            } else {
                self.wait();
            }
        };
        self.shared.caught_up();
        let mut control = self.shared.control();
        control.end = Some(end);
        control.ended = true;
        drop(control);
        self.shared.has_released();
        self.shared.has_job();
        self.shared.made_progress();
        self.shared.ring.wake_producers();
    }

    /// Has room kept for `writes` bytes and, behind them, what may be confirmed until everybody hears that there is no more: what
    /// the ring holds, and a quarter of that for commands that had begun.
    fn keep_room(&mut self, writes: u64) {
        let ring = self.shared.ring.capacity();
        let kept = self.room.keep(&*self.file, self.file_len, writes + ring + ring / 4, ring / 2);
        let event = match kept {
            None => return,
            Some(Ok(())) => self.shared.trouble().has_room().then_some(Event::WritesAgain),
            Some(Err(error)) => self.shared.trouble().has_no_room(&error).then(|| Event::NoRoom(words(&error))),
        };
        if let Some(event) = event {
            self.shared.set_failing();
            self.shared.hooks.event(&event);
            self.shared.has_released();
        }
    }

    /// Writes and syncs everything, once.
    fn finish(&mut self) -> io::Result<()> {
        loop {
            self.shared.bring_back();
            let written = self.write_what_is_there()?;
            let switched = self.switch_if_due();
            if !written && !switched {
                break;
            }
        }
        self.sync_now();
        self.room.give_back(&*self.file, self.file_len);
        // Nothing more needs any.
        self.shared.trouble().has_room();
        match self.shared.trouble().reason() {
            Some(reason) => Err(reason.errno.map_or(io::Error::other(reason.error), io::Error::from_raw_os_error)),
            None => Ok(()),
        }
    }

    /// Up to where to write now: whole records, or parts of one that the ring cannot hold.
    fn writable(&mut self) -> u64 {
        self.shared.bring_back();
        // Before the look, which finds the bytes of all of them.
        self.counted = self.shared.records.load(Ordering::SeqCst);
        let complete = self.consumer.look();
        self.seen = complete;
        let consumed = self.consumer.consumed();
        let too_long = complete - consumed >= self.shared.ring.capacity() / 4;
        let end = self.consumer.whole_records().or(too_long.then_some(complete)).unwrap_or(consumed);
        // Read behind the look: who appended behind a cut did so after it.
        end.min(self.shared.switch_at.load(Ordering::Acquire))
    }

    /// Tells whether there was anything.
    fn write_what_is_there(&mut self) -> io::Result<bool> {
        let end = self.writable();
        if self.drops_before_switch(end) {
            return Ok(true);
        }
        if end == self.consumer.consumed() {
            return Ok(false);
        }
        self.keep_room(end - self.consumer.consumed());
        let since = Instant::now();
        let written = self.write(end);
        let took = since.elapsed();
        self.shared.hooks.took(self.circumstances(), took);
        self.shared.hooks.took("aof-write", took);
        match &written {
            Ok(()) => {
                self.retry.has_succeeded();
                if self.shared.trouble().writes_again() {
                    self.shared.set_failing();
                    self.shared.hooks.event(&Event::WritesAgain);
                }
                self.shared.made_progress();
            }
            Err(error) => self.write_failed(error),
        }
        written.map(|()| true)
    }

    /// What else went on during a write, as LATENCY names it.
    fn circumstances(&self) -> &'static str {
        if self.shared.control().sync.is_some() {
            "aof-write-pending-fsync"
        } else if self.shared.snapshotting.load(Ordering::Relaxed) {
            "aof-write-active-child"
        } else {
            "aof-write-alone"
        }
    }

    fn write(&mut self, end: u64) -> io::Result<()> {
        self.mend()?;
        let end = end.max(self.consumer.consumed());
        let (first, second) = self.consumer.bytes(end);
        let mut slices = [IoSlice::new(first), IoSlice::new(second)];
        let mut rest = &mut slices[..];
        self.may_be_torn = true;
        let len = first.len() + second.len();
        // Drops slices without bytes.
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            self.shared.counts.writes.fetch_add(1, Ordering::Relaxed);
            match self.file.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(len) => IoSlice::advance_slices(&mut rest, len),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.may_be_torn = false;
        self.took(end, len as u64);
        if self.file_len - self.forgotten >= FORGOTTEN_BEHIND && self.shared.policy() != Policy::Always {
            self.forget_behind();
        }
        Ok(())
    }

    /// Has the syncer give back what was written, and so begin to bring it to the disk.
    #[cold]
    fn forget_behind(&mut self) {
        self.forgotten = self.file_len;
        self.shared.control().forget = Some(ForgetJob { file: Arc::clone(&self.file), file_len: self.file_len });
        self.shared.has_job();
    }

    /// So many bytes, up to `end`, are in the file.
    fn took(&mut self, end: u64, len: u64) {
        if let Some(keep) = &self.shared.keep {
            keep.set_written(end);
        }
        self.consumer.take(end);
        self.file_len += len;
        self.shared.counts.file_len.store(self.file_len, Ordering::Relaxed);
        self.shared.written.store(end, Ordering::Release);
    }

    /// Cuts off what a failed write has left. If that fails, too, the file is gone on with where it ends: what is left
    /// is the beginning of what was to be written.
    fn mend(&mut self) -> io::Result<()> {
        if !self.may_be_torn {
            return Ok(());
        }
        if let Err(error) = self.file.truncate(self.file_len) {
            let len = self.file.size()?;
            let left =
                len.checked_sub(self.file_len).filter(|left| self.consumer.consumed() + left <= self.consumer.look());
            let left =
                left.ok_or_else(|| io::Error::other(format!("the file has {len} bytes, not {}", self.file_len)))?;
            if left > 0 {
                self.shared.hooks.event(&Event::NotCut(words(&error)));
                self.took(self.consumer.consumed() + left, left);
            }
        }
        self.room.is_gone();
        self.may_be_torn = false;
        Ok(())
    }

    fn write_failed(&mut self, error: &io::Error) {
        // The file is to end with a whole record while it is waited, should the process end; if not, it is tried again.
        let _ = self.mend();
        self.retry.has_failed();
        let is_new = self.shared.trouble().write_failed(error);
        self.shared.set_failing();
        if is_new {
            self.shared.hooks.event(&Event::WriteFailed(words(error)));
        }
        // Behind that: who goes on finds that writes are refused.
        self.shared.has_released();
    }

    /// Passes over what need not be written before the switch; tells whether it did.
    fn drops_before_switch(&mut self, end: u64) -> bool {
        let drops = end > self.consumer.consumed() && self.shared.control().drop_before_switch;
        if drops {
            self.consumer.take(end);
            self.shared.written.store(end, Ordering::Release);
            self.may_be_torn = false;
        }
        drops
    }

    /// Goes on in the next file if everything before the cut is written; tells whether it did.
    fn switch_if_due(&mut self) -> bool {
        let position = self.consumer.consumed();
        if self.shared.switch_at.load(Ordering::Acquire) != position {
            return false;
        }
        // No byte of the next file may survive a crash that one of this file does not.
        self.sync_now();
        self.room.give_back(&*self.file, self.file_len);
        let mut control = self.shared.control();
        self.file = control.next_file.take().expect("a cut has a file to go on in");
        control.generation += 1;
        control.drop_before_switch = false;
        self.generation = control.generation;
        if let Some(keep) = &self.shared.keep {
            keep.end_former_files();
        }
        self.shared.switch_at.store(NO_SWITCH, Ordering::Release);
        drop(control);
        (self.file_len, self.forgotten, self.may_be_torn) = (0, 0, false);
        self.retry.has_succeeded();
        self.sync_asked = position;
        self.shared.counts.file_len.store(0, Ordering::Relaxed);
        if self.shared.trouble().writes_again() {
            // That was the old file's; the new one is to be tried at once.
            self.shared.set_failing();
            self.shared.hooks.event(&Event::WritesAgain);
        }
        self.shared.made_progress();
        true
    }

    /// Syncs what is not synced yet, on this thread, unless a snapshot has taken its place.
    fn sync_now(&mut self) {
        // The system tells only one of two that sync a file at the same time what went wrong with it.
        if !self.shared.await_syncer() {
            return;
        }
        let position = self.consumer.consumed();
        if self.shared.durable.load(Ordering::Acquire) >= position {
            return;
        }
        self.sync_asked = position;
        self.sync_began = Instant::now();
        if !self.shared.trouble().is_trusted(self.generation) {
            // Whatever it answered, it would mean nothing.
            return;
        }
        let synced = self.file.sync();
        let took = self.sync_began.elapsed();
        self.shared.counts.syncs.fetch_add(1, Ordering::Relaxed);
        self.shared.hooks.took("aof-fsync-always", took);
        match synced {
            Ok(()) => {
                self.shared.synced(self.generation, position);
                if self.file_len - self.forgotten >= FORGOTTEN_AT_ONCE {
                    self.forgotten = self.file_len;
                    self.file.forget(self.file_len);
                }
            }
            Err(error) => self.shared.sync_failed(self.generation, &error),
        }
    }

    fn sync_if_due(&mut self) {
        let written = self.consumer.consumed();
        let wanted = self.shared.control().sync_wanted;
        if self.shared.durable.load(Ordering::Acquire) >= written {
            return;
        }
        let policy = self.shared.policy();
        if wanted > self.sync_asked && written > self.sync_asked {
            self.sync_now();
        } else if self.shared.spares_syncs() && policy != Policy::No {
            if policy == Policy::Always {
                self.shared.answer_unsynced(written);
            }
        } else if policy == Policy::Always && written > self.sync_asked {
            let since = Instant::now();
            self.sync_now();
            let all = self.shared.records.load(Ordering::SeqCst);
            self.commits.synced(self.counted, all, since.elapsed());
        } else if policy == Policy::EverySecond && written > self.sync_asked && self.sync_began.elapsed() >= SECOND {
            self.ask_syncer(written);
        }
    }

    fn ask_syncer(&mut self, written: u64) {
        let mut control = self.shared.control();
        if control.sync.is_some() {
            if self.sync_began.elapsed() >= SLOW_SYNC && !std::mem::replace(&mut self.slow_sync_noted, true) {
                self.shared.counts.delayed_syncs.fetch_add(1, Ordering::Relaxed);
                self.shared.hooks.event(&Event::SyncIsSlow);
            }
            return;
        }
        (self.sync_asked, self.sync_began, self.slow_sync_noted) = (written, Instant::now(), false);
        if self.shared.trouble().is_trusted(self.generation) {
            let file = Arc::clone(&self.file);
            control.sync =
                Some(SyncJob { file, generation: self.generation, position: written, file_len: self.file_len });
            drop(control);
            self.shared.has_job();
        }
    }

    /// After a write: lets more come together for the next one.
    fn rest(&mut self) {
        if self.shared.policy() != Policy::Always {
            self.consumer.wait(self.quarter(), REST);
            return;
        }
        let Some(patience) = self.commits.patience(self.shared.records.load(Ordering::SeqCst)) else { return };
        self.wait_for_records(self.commits.expected(), patience);
    }

    /// Sleeps until there are so many records, for a while, or until somebody wants something else. Those who append say
    /// when they have appended all for the moment; only a ring that is a quarter full wakes earlier.
    fn wait_for_records(&mut self, records: u64, at_most: Duration) {
        let shared = Arc::clone(&self.shared);
        shared.wants_records.store(records, Ordering::SeqCst);
        // Either they are seen here, or who appends them sees what is wanted.
        if shared.records.load(Ordering::SeqCst) < records {
            self.consumer.wait(self.quarter(), at_most);
        }
        shared.wants_records.store(WANTS_NONE, Ordering::SeqCst);
    }

    /// The position at which a quarter of the ring waits to be written.
    fn quarter(&self) -> u64 {
        self.consumer.consumed() + self.shared.ring.capacity() / 4
    }

    /// Until there is something to do.
    fn wait(&mut self) {
        let unsynced = self.consumer.consumed() > self.sync_asked && self.shared.policy() == Policy::EverySecond;
        let sync = unsynced.then(|| match SECOND.saturating_sub(self.sync_began.elapsed()) {
            // It is due, and the syncer is at work: it nudges when it is done.
            Duration::ZERO => SECOND,
            rest => rest,
        });
        let at_most =
            [self.retry.pause(), self.room.retry().pause(), sync].into_iter().flatten().min().unwrap_or(FOREVER);
        if self.retry.is_pending() {
            // New records do not make the disk better.
            self.consumer.wait(u64::MAX - 1, at_most);
        } else if self.shared.policy() == Policy::Always {
            // A ring that was too full for this is not: everything that was seen has been written.
            self.wait_for_records(self.counted + 1, at_most.min(LOOK_UP));
        } else {
            // What was filled behind the last look has not been tried yet.
            self.consumer.wait(self.seen, at_most);
        }
    }
}
