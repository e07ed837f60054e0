//! What becomes of the time that calls took: their statistics, the slow log, the latency monitor. Knows no command.

use crate::args::Args;
use crate::batch::{Call, Target};
use crate::clock::monotonic_ns;
use crate::command::Flags;
use crate::engine::Engine;
use crate::execute::BatchArgs;
use crate::session::Session;
use crate::worker::Worker;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A slow log that wants commands below this many microseconds makes every command be timed by itself.
const TIMED_ALONE_US: i64 = 1_000;

impl Engine {
    /// Notes the time of the calls `from..` of `calls`, which ran since `started_ns`; `timed_alone` says whether the slow log
    /// may want them. Gives the present.
    #[inline(always)]
    pub(crate) fn note_stretch(
        &self,
        worker: &Worker,
        session: &Session,
        batch: BatchArgs<'_>,
        calls: &[Call],
        from: usize,
        (started_ns, timed_alone): (u64, bool),
    ) -> u64 {
        let now_ns = monotonic_ns();
        let took_ns = now_ns.saturating_sub(started_ns);
        // A command that came alone is what most clients send.
        if let [Call { target: Target::Key(resolved, _), .. }] = &calls[from..]
            && took_ns < TIMED_ALONE_US as u64 * 1_000
            && !timed_alone
        {
            worker.stats.commands[resolved.number as usize].ran(1, took_ns);
            worker.stats.all.commands.add(1);
            session.client.last_command.store(resolved.number.into(), Ordering::Relaxed);
        } else {
            self.note_calls(worker, session, batch, calls, from, took_ns);
        }
        now_ns
    }

    #[inline(never)]
    fn note_calls(
        &self,
        worker: &Worker,
        session: &Session,
        batch: BatchArgs<'_>,
        calls: &[Call],
        from: usize,
        took_ns: u64,
    ) {
        let mut rest = &calls[from..];
        // Most stretches are one command, and so spare the division.
        let each_ns = if rest.len() == 1 { took_ns } else { took_ns / rest.len() as u64 };
        // Batches are mostly of one command: calls of it in a row are counted together.
        let mut all = 0;
        let mut last = None;
        while let Some(call) = rest.first() {
            last = call.target.ran_number();
            let alike = rest.iter().take_while(|call| call.target.ran_number() == last).count();
            rest = &rest[alike..];
            if let Some(number) = last {
                worker.stats.commands[number as usize].ran(alike as u64, each_ns);
                all += alike as u64;
            }
        }
        let last = last.or_else(|| calls.last().and_then(|call| call.target.number()));
        session.client.last_command.store(last.map_or(u32::MAX, u32::from), Ordering::Relaxed);
        worker.stats.all.commands.add(all);
        if all == 0 || each_ns < TIMED_ALONE_US as u64 * 1_000 && !self.times_each_alone() {
            // Nobody asks for anything that short: the latency monitor's least threshold is a millisecond too.
            return;
        }
        let threshold_us = self.config.slowlog_log_slower_than();
        if threshold_us >= 0 && each_ns / 1_000 >= threshold_us as u64 {
            self.note_slow(worker, session, batch, calls, from, each_ns / 1_000);
        }
        self.note_latency(worker, &calls[from].target, each_ns / 1_000_000);
    }

    /// Tells the latency monitor of a command, if it wants such.
    fn note_latency(&self, worker: &Worker, target: &Target, took_ms: u64) {
        let threshold_ms = self.config.latency_monitor_threshold();
        if threshold_ms > 0 && took_ms >= threshold_ms {
            let is_fast = matches!(target, Target::Key(it, _) | Target::Other(it) if it.command.flags.any(Flags::FAST));
            let event = if is_fast { "fast-command" } else { "command" };
            self.latency.note(event, took_ms, threshold_ms, worker.clock.now_ms);
        }
    }

    /// Counts a command that came in no batch.
    pub(crate) fn note_alone(
        &self,
        worker: &Worker,
        session: &Session,
        target: &Target,
        args: &Args<'_>,
        took: Duration,
    ) {
        let client = &session.client;
        client.active_ms.store(worker.clock.now_ms, Ordering::Relaxed);
        client.last_command.store(target.number().map_or(u32::MAX, u32::from), Ordering::Relaxed);
        // One that waits now counts when its wait is over.
        client.count_commands(u64::from(!session.is_parked()));
        let (Target::Key(resolved, _) | Target::Other(resolved)) = target else { return };
        worker.stats.commands[resolved.number as usize].ran(1, took.as_nanos() as u64);
        worker.stats.all.commands.add(1);
        if !session.is_parked() && !resolved.command.flags.any(Flags::SKIP_SLOWLOG) {
            self.note_if_slow(worker.clock.now_ms, took.as_micros() as u64, args, &worker.secrets, client);
        }
        self.note_latency(worker, target, took.as_millis() as u64);
    }

    /// Whether the slow log wants commands so short that each is timed by itself.
    #[inline]
    pub(crate) fn times_each_alone(&self) -> bool {
        (0..TIMED_ALONE_US).contains(&self.config.slowlog_log_slower_than())
    }

    #[cold]
    fn note_slow(
        &self,
        worker: &Worker,
        session: &Session,
        batch: BatchArgs<'_>,
        calls: &[Call],
        from: usize,
        each_us: u64,
    ) {
        // The last one, if it waits now, is noted when its wait ends.
        let ended = calls.len() - usize::from(session.is_parked());
        for (index, call) in calls[..ended].iter().enumerate().skip(from) {
            let (Target::Key(resolved, _) | Target::Other(resolved)) = &call.target else { continue };
            if resolved.command.flags.any(Flags::SKIP_SLOWLOG) {
                continue;
            }
            let args = batch.of(if index == 0 { 0 } else { calls[index - 1].args_end }, call.args_end);
            let max_len = self.config.slowlog_max_len();
            self.slowlog.add(worker.clock.now_ms, each_us, &args, &worker.secrets, &session.client, max_len);
        }
    }
}
