//! The server as a running script sees it: its calls, the shards that they touch, and the time it has. Knows no Lua.
//!
//! # Which shards a script holds
//!
//! It begins with the shards of its declared keys, and holds every shard that it has once touched until its end. So two
//! scripts, or a script and a command, either have nothing to do with each other or come one after the other.
//!
//! A key that was not declared may lie in a shard that is not held. Nobody who holds shards may wait for just any other:
//! two could wait for each other. So
//!
//! - a shard that nobody holds is taken;
//! - before it has done anything (a write, a message) a script may wait for a shard behind all those that it holds, as
//!   commands do. Else, or where it has waited for long and what it has read is of another moment, it is stopped and starts
//!   anew, with what it held and wanted locked in order; the second time with everything. It has changed nothing, but who watches sees it begin twice: what it has read until then is read, counted
//!   and shown by MONITOR once more. What it has to say to the log waits for that reason, until it has done something, has
//!   taken long, or ends;
//! - with that it becomes the stray, if it or an earlier call of it has reached for keys that it did not declare: see stray.rs.
//!
//! A command on the whole keyspace needs everything. A script that has called one is given everything from its start
//! the next time. Within EXEC everything is held.

use super::known::Known;
use super::libraries::Function;
use super::reaching::{Reached, Reaching};
use super::running::{Kind, LongScript};
use crate::args::Args;
use crate::batch::{Target, Wrong};
use crate::clock::monotonic_ns;
use crate::command::{Command, Flags, Group, Run};
use crate::engine::Engine;
use crate::errors::CmdError;
use crate::locking::{OnBusy, SLICE};
use crate::meanwhile;
use crate::monitor::Origin;
use crate::session::Session;
use crate::shards::{Held, Locked, ShardState};
use crate::table::Resolved;
use crate::worker::Worker;
use parking_lot::MutexGuard;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tenon_script::{Host, LogLevel, NoSuchCommand, Propagation, Stop, Words};
use tenon_store::hash::KeyHash;
use tenon_wire::OutBuf;
use tenon_wire::resp::{Proto, Reply};

/// How long a script that has written nothing may go on when the server ends: what it has begun it mostly finishes.
const ENDING_GRACE_MS: u64 = 1_000;

/// A script that has run for so long is told of by FUNCTION STATS, and SCRIPT KILL waits for it, in nanoseconds.
const LONG_AFTER_NS: u64 = 5_000_000;

/// What runs.
#[derive(Clone, Copy)]
pub(crate) enum Subject<'a> {
    Script(&'a Known),
    Function(&'a Function),
}

impl Subject<'_> {
    pub(crate) fn kind(self) -> Kind {
        match self {
            Subject::Script(_) => Kind::Script,
            Subject::Function(_) => Kind::Function,
        }
    }

    pub(crate) fn name(self) -> String {
        match self {
            Subject::Script(known) => known.sha_text().to_owned(),
            Subject::Function(function) => String::from_utf8_lossy(&function.info.name).into_owned(),
        }
    }

    pub(crate) fn reaching(&self) -> &Reaching {
        match self {
            Subject::Script(known) => &known.reaching,
            Subject::Function(function) => &function.reaching,
        }
    }
}

/// What a run may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rights {
    /// No command that writes.
    pub(crate) read_only: bool,
    /// Commands that need memory are refused as long as it has not written.
    pub(crate) out_of_memory: bool,
}

/// The shards that a script holds.
pub(crate) enum Reach<'h, 'e> {
    /// Its own.
    Own(Held<'e>),
    /// All, of the EXEC that it runs in.
    Given(&'h mut dyn Locked),
}

/// The server behind one run of a script.
pub(crate) struct ScriptHost<'h, 'e> {
    pub(crate) engine: &'e Engine,
    pub(crate) worker: &'h mut Worker,
    pub(crate) session: &'h mut Session,
    pub(crate) reach: Reach<'h, 'e>,
    pub(crate) subject: Subject<'h>,
    pub(crate) rights: Rights,
    /// The command that called the script.
    pub(crate) command: Args<'h>,
    pub(crate) started_ns: u64,
    /// Whether others may have seen something of it, as a change or a message: then it may not start anew.
    pub(crate) acted: bool,
    /// Whether it may have written: then nobody may kill it.
    pub(crate) wrote: bool,
    /// The shards to begin with when it starts anew.
    pub(crate) wanted: Vec<usize>,
    /// What it has to say to the log, as long as it may start anew.
    pub(crate) unsaid: Vec<(LogLevel, Vec<u8>)>,
    /// What others know of it, once it has run for long.
    pub(crate) long: Option<Arc<LongScript>>,
    pub(crate) is_stray: bool,
    /// Whether it is to be the stray from its beginning when it starts anew.
    pub(crate) begins_as_stray: bool,
    /// Whether what it changes goes into a record that has not ended.
    pub(crate) is_recording: bool,
    /// What it has said is to become of its changes.
    pub(crate) propagation: Propagation,
    /// When the worker's other clients are to be lent to another thread, in nanoseconds of the monotonic clock.
    pub(crate) lends_at_ns: u64,
}

impl Drop for ScriptHost<'_, '_> {
    fn drop(&mut self) {
        self.say();
        // Where a bug has made a command panic in its middle.
        self.worker.record.withhold(false);
        // Its shards are still held.
        self.end_record();
        if self.is_stray {
            self.engine.shards.stray.end();
        }
        if let Some(long) = self.long.take() {
            self.engine.end_long_script(&long);
        }
    }
}

/// What others know of a script that is to start anew. It goes on where nobody kills it.
pub(crate) struct BetweenRuns<'e> {
    pub(crate) engine: &'e Engine,
    pub(crate) long: Option<Arc<LongScript>>,
}

impl BetweenRuns<'_> {
    /// Whether it may start anew: until it has taken long again it is not busy.
    pub(crate) fn may_go_on(&self) -> bool {
        let running = &self.engine.scripts.running;
        self.long.as_ref().is_none_or(|long| running.begin_anew(long, &self.engine.pause))
    }
}

impl Drop for BetweenRuns<'_> {
    fn drop(&mut self) {
        if let Some(long) = self.long.take() {
            self.engine.end_long_script(&long);
        }
    }
}

impl Engine {
    #[cold]
    fn end_long_script(&self, long: &Arc<LongScript>) {
        let waiting = self.scripts.running.end(long, &self.pause);
        self.go_on(waiting);
    }
}

impl<'e> ScriptHost<'_, 'e> {
    /// Writes to the log what has waited.
    fn say(&mut self) {
        self.unsaid.drain(..).for_each(|(level, text)| log(level, &text));
    }

    fn end_record(&mut self) {
        if std::mem::take(&mut self.is_recording) {
            self.engine.end_unit(self.worker);
        }
    }

    /// Ends a run: those who wait for what it has changed are served, unless EXEC does that. All of its shards are still
    /// held.
    pub(crate) fn serve(&mut self) {
        if self.worker.ready.is_empty() {
            return;
        }
        // Shards of keys that it did not declare were taken without those that are needed to serve who waits in them.
        while let Reach::Own(held) = &self.reach
            && let Some(index) = held.further().first()
            && self.take(*index).is_ok()
        {}
        self.end_record();
        if let Reach::Own(held) = &mut self.reach {
            self.engine.serve_held(self.worker, held);
        }
    }

    fn refuse(&self, resolved: Option<Resolved>, error: &CmdError, reply: &mut Reply<'_>) {
        if let Some(resolved) = resolved {
            self.worker.stats.commands[resolved.number as usize].rejected.add(1);
        }
        self.engine.answer_error(self.worker, None, error, reply);
    }

    /// What must hold before a script's command runs.
    fn gate(&mut self, resolved: Resolved, args: &Args<'_>) -> Result<(), CmdError> {
        let flags = resolved.command.flags;
        if flags.any(Flags::NO_SCRIPT) && !self.may_inspect(resolved.command) {
            return Err(CmdError::text("ERR This Redis command is not allowed from script"));
        }
        if let Err(denial) = self.engine.acl_check(self.session, resolved, args) {
            self.engine.note_denial_in_script(self.worker, self.session, &self.command, (resolved, args), denial);
            return Err(CmdError::text(denial.message_in_script()));
        }
        if self.rights.read_only && flags.any(Flags::WRITE.or(Flags::MAY_REPLICATE)) {
            return Err(CmdError::text("ERR Write commands are not allowed from read-only scripts."));
        }
        // What it has written already cannot be taken back, so it goes on.
        if flags.any(Flags::WRITE)
            && !self.wrote
            && let Some(error) = self.engine.refusal_in_script(self.session)
        {
            return Err(error);
        }
        if flags.any(Flags::DENY_OOM) && self.rights.out_of_memory && !self.wrote {
            return Err(CmdError::OutOfMemory);
        }
        Ok(())
    }

    /// Whether a test lets scripts call this command although it is not for them: it changes neither who the client is
    /// nor what locks are held.
    fn may_inspect(&self, command: &Command) -> bool {
        let is_outside = matches!(command.group, Group::Server | Group::Connection);
        is_outside && !command.flags.any(Flags::NO_AUTH) && self.engine.scripts_inspect.load(Ordering::Relaxed)
    }

    /// Sees to it that the shards a command touches are held; `hash` is that of the key where it is a call on one.
    fn reach_for(&mut self, resolved: Resolved, hash: Option<KeyHash>, args: &Args<'_>) -> Result<(), Stop> {
        let engine = self.engine;
        let Reach::Own(held) = &self.reach else { return Ok(()) };
        if let Some(hash) = hash {
            let index = engine.shards.index(hash);
            return if held.holds(index) { Ok(()) } else { self.take(index) };
        }
        match resolved.command.run {
            Run::Session(_) | Run::Alone(..) => Ok(()),
            Run::Server(_) => {
                self.subject.reaching().note(Reached::Everything);
                self.take_everything()
            }
            _ => {
                for index in engine.shards_of(resolved.command, args) {
                    self.take(index)?;
                }
                let Reach::Own(held) = &mut self.reach else { return Ok(()) };
                // What is held is not let go, so that the data names no others meanwhile.
                for index in engine.further_shards(self.worker, self.session, resolved, args, held) {
                    self.take(index)?;
                }
                Ok(())
            }
        }
    }

    fn take_everything(&mut self) -> Result<(), Stop> {
        let Reach::Own(held) = &self.reach else { return Ok(()) };
        let count = self.engine.shards.count();
        if held.len() == count {
            return Ok(());
        }
        if !self.acted {
            self.wanted = (0..count).collect();
            return Err(Stop::Restart);
        }
        (0..count).try_for_each(|index| self.take(index))
    }

    /// Takes one more shard: see the head of this file.
    fn take(&mut self, index: usize) -> Result<(), Stop> {
        let engine = self.engine;
        let Reach::Own(held) = &mut self.reach else { return Ok(()) };
        if held.holds(index) {
            return Ok(());
        }
        self.subject.reaching().note(Reached::Undeclared);
        if let Some(state) = engine.shards.try_lock(index) {
            self.add(index, state);
            return Ok(());
        }
        if self.acted || self.is_stray { self.stray_for(index) } else { self.wait_in_order(index) }
    }

    /// Notes that one more shard is held.
    fn add(&mut self, index: usize, state: MutexGuard<'e, ShardState>) {
        let Reach::Own(held) = &mut self.reach else { return };
        if held.len() == 0 {
            self.engine.unit_holds_first(self.worker);
        }
        held.add(index, state, self.engine.shards.count());
    }

    #[cold]
    fn wait_in_order(&mut self, index: usize) -> Result<(), Stop> {
        let engine = self.engine;
        loop {
            let Reach::Own(held) = &mut self.reach else { return Ok(()) };
            let is_last = held.indexes().last().is_none_or(|last| *last < index);
            if !is_last || engine.shards.stray.wanted().is_some() {
                self.wanted = held.indexes();
                self.wanted.push(index);
                return Err(Stop::Restart);
            }
            if let Some(state) = engine.shards.try_lock_for(index, SLICE) {
                let is_first = held.len() == 0;
                self.add(index, state);
                // What it changes is of the present, and what it has read is of the same moment: it reads that anew.
                if engine.advance_old_clock(self.worker, monotonic_ns()) && !is_first {
                    let Reach::Own(held) = &self.reach else { return Ok(()) };
                    self.wanted = held.indexes();
                    return Err(Stop::Restart);
                }
                return Ok(());
            }
            self.interrupt()?;
        }
    }

    #[cold]
    fn stray_for(&mut self, index: usize) -> Result<(), Stop> {
        let engine = self.engine;
        let stray = &engine.shards.stray;
        while !self.is_stray {
            if stray.try_begin() {
                self.is_stray = true;
                break;
            }
            let Reach::Own(held) = &mut self.reach else { return Ok(()) };
            if stray.wanted().is_some_and(|wanted| held.holds(wanted)) {
                // Neither could go on. That happens to a script once: from the next call on it is the stray from the first.
                tracing::warn!(
                    script = self.subject.name(),
                    "two scripts wait for each other's undeclared keys; one lets others see its changes so far"
                );
                engine.end_unit(self.worker);
                self.is_recording = false;
                held.let_go();
                let everything = (0..engine.shards.count()).collect();
                let clock = self.worker.clock;
                let all = engine.lock_several(self.worker, everything, OnBusy::Serve);
                self.worker.clock = clock;
                *held = all.expect("who waits on is not refused");
                engine.begin_unit(self.worker);
                self.is_recording = true;
                return Ok(());
            }
            stray.wait(SLICE);
            self.interrupt()?;
        }
        stray.wants(Some(index));
        let taken = loop {
            if let Some(state) = engine.shards.try_lock_for(index, SLICE) {
                self.add(index, state);
                break Ok(());
            }
            if let Err(stop) = self.interrupt() {
                break Err(stop);
            }
        };
        stray.wants(None);
        taken
    }

    /// Notes that others may see something of what comes: a script that has ever reached for keys it did not declare is the
    /// stray from here on. So all its changes are seen at once: it has to wait for nobody who waits for it.
    fn begin_to_act(&mut self) -> Result<(), Stop> {
        if self.long.as_ref().is_some_and(|long| long.is_killed()) {
            return Err(Stop::Killed);
        }
        if let Reach::Own(held) = &self.reach
            && held.len() < self.engine.shards.count()
            && self.subject.reaching().furthest() > Reached::Declared
            && !self.is_stray
        {
            self.become_stray()?;
        }
        self.acted = true;
        self.say();
        Ok(())
    }

    /// Becomes the stray before anything is done; where there is one already the script starts anew as the next.
    fn become_stray(&mut self) -> Result<(), Stop> {
        self.is_stray = self.engine.shards.stray.try_begin();
        self.begins_as_stray = !self.is_stray;
        if self.is_stray { Ok(()) } else { Err(Stop::Restart) }
    }

    /// Notes that what comes may write.
    fn begin_write(&mut self) -> Result<(), Stop> {
        if !self.wrote {
            if self.long.as_ref().is_some_and(|long| !long.may_write()) {
                return Err(Stop::Killed);
            }
            self.wrote = true;
        }
        Ok(())
    }

    /// Whether what it has begun must come to its end, as half of it may be done: it has written, or EXEC goes on behind it.
    fn must_end_whole(&self) -> bool {
        self.wrote || self.is_in_exec()
    }

    fn is_in_exec(&self) -> bool {
        matches!(self.reach, Reach::Given(_))
    }

    fn elapsed_ms(&self) -> u64 {
        (monotonic_ns() - self.started_ns) / 1_000_000
    }

    /// Has another thread serve the worker's other clients once the script has taken long.
    #[inline]
    fn lend_if_long(&mut self, now_ns: u64) {
        if now_ns >= self.lends_at_ns {
            // Where there is no such thread now, there may be one later.
            self.lends_at_ns = if meanwhile::lend_long() { u64::MAX } else { now_ns + meanwhile::LENT_AFTER_NS };
        }
    }

    /// Lets others know of it.
    #[cold]
    fn become_long(&mut self) -> Arc<LongScript> {
        self.say();
        let elapsed = Duration::from_nanos(monotonic_ns() - self.started_ns);
        let started = Instant::now().checked_sub(elapsed).unwrap_or_else(Instant::now);
        let words = self.command.from(0).map(<[u8]>::to_vec).collect();
        let long =
            LongScript::new(self.subject.kind(), self.subject.name(), words, started, self.wrote, self.is_in_exec());
        Arc::clone(self.long.insert(self.engine.scripts.running.begin(long)))
    }

    #[cold]
    fn become_busy(&mut self) {
        let long = self.long.clone().unwrap_or_else(|| self.become_long());
        tracing::warn!(
            script = long.name,
            "Slow script detected: still in execution after {} milliseconds. You can try killing the script using \
             the {} KILL command.",
            self.elapsed_ms(),
            if long.kind == Kind::Script { "SCRIPT" } else { "FUNCTION" },
        );
        let waiting = self.engine.scripts.running.become_busy(&long, &self.engine.pause);
        // Those are refused now, and these are not.
        self.engine.go_on(self.engine.long_calls.wake());
        self.engine.go_on(waiting);
        // Those who wait in a pause, which may wait for this script, are refused now, or may end it.
        self.engine.go_on(self.engine.pause.take_waiting());
    }
}

impl Host for ScriptHost<'_, '_> {
    fn reply_max(&self) -> usize {
        self.engine.output_max()
    }

    fn call(&mut self, words: &Words, proto: Proto, reply: &mut OutBuf) -> Result<(), Stop> {
        let engine = self.engine;
        let args = Args::new(&words.spans, &words.bytes, &[], &[]);
        let mut reply = Reply::new(reply, proto);
        let (resolved, hash) = match engine.resolve(&args) {
            Target::Key(resolved, hash) => (resolved, Some(hash)),
            Target::Other(resolved) => (resolved, None),
            Target::Settled(_) => unreachable!("nothing has run yet"),
            Target::Refused(wrong, resolved) => {
                let error = match wrong {
                    Wrong::Count => CmdError::text("ERR Wrong number of args calling Redis command from script"),
                    Wrong::Name | Wrong::Subcommand => CmdError::text("ERR Unknown Redis command called from script"),
                };
                self.refuse(resolved.filter(|_| wrong != Wrong::Subcommand), &error, &mut reply);
                return Ok(());
            }
        };
        if let Err(error) = self.gate(resolved, &args) {
            self.refuse(Some(resolved), &error, &mut reply);
            return Ok(());
        }
        self.reach_for(resolved, hash, &args)?;
        let flags = resolved.command.flags;
        if !self.acted && flags.any(Flags::WRITE.or(Flags::MAY_REPLICATE)) {
            self.begin_to_act()?;
        }
        if flags.any(Flags::WRITE) {
            self.begin_write()?;
        }
        if engine.monitors.are_watching() {
            engine.tell_monitors(Origin::Script, self.session.database, resolved.command, &args, &[]);
        }
        let started_ns = monotonic_ns();
        self.lend_if_long(started_ns);
        let held: &mut dyn Locked = match &mut self.reach {
            Reach::Own(held) => held,
            Reach::Given(held) => &mut **held,
        };
        let is_withheld = self.propagation == Propagation::Withheld;
        self.worker.record.withhold(is_withheld);
        let result = engine.run_held(self.worker, self.session, resolved, &args, held, &mut reply);
        if is_withheld {
            self.worker.record.end_withholding(engine.journal_number(), self.session.database);
        }
        if let Err(error) = result {
            engine.answer_error(self.worker, Some(resolved), &error, &mut reply);
        }
        let took_ns = monotonic_ns().saturating_sub(started_ns);
        if !flags.any(Flags::SKIP_SLOWLOG) {
            engine.note_if_slow(self.worker.clock.now_ms, took_ns / 1_000, &args, &[], &self.session.client);
        }
        let stats = &self.worker.stats;
        stats.commands[resolved.number as usize].ran(1, took_ns);
        stats.all.commands.add(1);
        self.session.client.count_commands(1);
        Ok(())
    }

    fn may_call(&mut self, words: &Words) -> Result<bool, NoSuchCommand> {
        let args = Args::new(&words.spans, &words.bytes, &[], &[]);
        match self.engine.resolve(&args) {
            Target::Key(resolved, _) | Target::Other(resolved) => {
                Ok(self.engine.acl_check(self.session, resolved, &args).is_ok())
            }
            // The number of arguments is not looked at.
            Target::Refused(Wrong::Count, Some(resolved)) => {
                Ok(self.engine.acl_check(self.session, resolved, &args).is_ok())
            }
            Target::Settled(_) | Target::Refused(..) => Err(NoSuchCommand),
        }
    }

    fn propagate(&mut self, propagation: Propagation) {
        self.propagation = propagation;
    }

    fn log(&mut self, level: LogLevel, text: &[u8]) {
        if self.acted || self.long.is_some() || self.is_in_exec() {
            log(level, text);
        } else {
            self.unsaid.push((level, text.to_vec()));
        }
    }

    fn interrupt(&mut self) -> Result<(), Stop> {
        let is_ending = self.engine.scripts.running.is_ending();
        if is_ending && !self.must_end_whole() && self.elapsed_ms() >= ENDING_GRACE_MS {
            return Err(Stop::Killed);
        }
        let now_ns = monotonic_ns();
        self.lend_if_long(now_ns);
        if self.long.is_none() && now_ns >= self.started_ns + LONG_AFTER_NS {
            self.become_long();
        }
        if self.lends_at_ns == u64::MAX {
            meanwhile::go_on_beside();
        }
        if !self.long.as_ref().is_some_and(|long| long.is_busy()) {
            let threshold_ms = self.engine.config.busy_reply_threshold();
            if threshold_ms == 0 || self.elapsed_ms() < threshold_ms {
                // Somebody else's script may be busy while this one waits for it.
                if self.engine.scripts.running.busy().is_some() {
                    meanwhile::serve(self.engine, self.worker);
                }
                return Ok(());
            }
            self.become_busy();
        }
        if self.long.as_ref().is_some_and(|long| long.is_killed()) {
            return Err(Stop::Killed);
        }
        meanwhile::serve(self.engine, self.worker);
        Ok(())
    }
}

/// Writes what a script has to say to the server's log.
pub(crate) fn log(level: LogLevel, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    match level {
        LogLevel::Debug => tracing::trace!("script: {text}"),
        LogLevel::Verbose => tracing::debug!("script: {text}"),
        LogLevel::Notice => tracing::info!("script: {text}"),
        LogLevel::Warning => tracing::warn!("script: {text}"),
    }
}
