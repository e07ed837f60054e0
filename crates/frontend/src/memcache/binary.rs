//! A memcached client that speaks the binary protocol: its bytes to requests, and their answers. Knows no socket, and of
//! the requests only which handler runs which.

use super::keys::{Keys, bytes_of};
use super::{BATCH_MAX, MemcacheConnection, Progress, count_get, loading};
use crate::Flow;
use crate::memcache_watch::{Watch, seen_binary};
use std::sync::atomic::Ordering;
use tenon_commands::memcache::binary::{self, BinaryItem, Refused};
use tenon_commands::memcache::{Answer, admin, delete, stats, store, watch};
use tenon_engine::Engine;
use tenon_engine::batch::BatchScratch;
use tenon_engine::pause::PauseMode;
use tenon_engine::wire::memcache::Limits;
use tenon_engine::wire::memcache::binary::{
    BinaryCommand, BinaryDecoder, BinaryHead, BinaryStep, BinaryStore, Status, write_status,
};
use tenon_engine::wire::{OutBuf, Span};
use tenon_engine::worker::Worker;

/// Why parsing ended.
enum Parsed {
    /// The batch is full, or what comes next depends on what runs now.
    Full,
    /// The next request is not complete.
    Incomplete,
    /// The next request continues with data at this position, of this length.
    Big { at: usize, len: usize },
    /// What comes next is no request.
    NoRequest,
}

impl MemcacheConnection {
    /// Runs all complete requests of `buf`, batch by batch.
    pub(super) fn run_binary(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        scratch: &mut BatchScratch,
        buf: &[u8],
        out: &mut OutBuf,
    ) -> Progress {
        let mut at = 0;
        loop {
            let mut start = at;
            let before = (at, self.binary.clone());
            let parsed = self.parse_binary(engine, scratch, buf, &mut at, &mut start);
            if !scratch.binary.is_empty() {
                let (ran, flow) = self.run_binary_batch(engine, worker, scratch, buf, start, out);
                if ran > 0 {
                    // Only the first request of a batch can have data beside the buffer.
                    self.big = None;
                }
                match flow {
                    None => {}
                    Some(flow @ (Flow::CloseAfterFlush | Flow::Close)) => return Progress::Ended(flow),
                    Some(flow) => {
                        // What was parsed beyond is parsed again then.
                        let from = if ran == 0 { start } else { end_of(&scratch.binary[ran - 1]) };
                        // Only a batch that has not begun may begin with data that was taken out of the stream.
                        self.binary = if from == before.0 { before.1 } else { Some(BinaryDecoder::new()) };
                        return Progress::Stopped { from, flow };
                    }
                }
            }
            match parsed {
                Parsed::Full => scratch.clear(),
                Parsed::Incomplete => return Progress::Incomplete { from: at },
                Parsed::Big { at: data, len } => return Progress::Big { from: at, at: data, len },
                Parsed::NoRequest => return Progress::Ended(Flow::CloseAfterFlush),
            }
        }
    }

    /// Parses up to a batch of requests from `buf[*at..]` on; `*at` is then the start of the first one not parsed, and
    /// `start` where the first one of the batch begins.
    fn parse_binary(
        &mut self,
        engine: &Engine,
        scratch: &mut BatchScratch,
        buf: &[u8],
        at: &mut usize,
        start: &mut usize,
    ) -> Parsed {
        let limits = self.limits(engine);
        // What a stranger asks for is not awaited, and what it may ask for depends on each request before.
        let is_stranger = self.is_stranger();
        let limits = if is_stranger { Limits { value_max: 0, ..limits } } else { limits };
        let batch_max = if is_stranger { 1 } else { BATCH_MAX };
        let decoder = self.binary.as_mut().expect("the connection is one of the binary protocol");
        while scratch.binary.len() < batch_max {
            if *at == buf.len() {
                return Parsed::Incomplete;
            }
            let step = decoder.next(buf, *at, &limits);
            match step {
                BinaryStep::Request { .. } | BinaryStep::Refused { .. } => {}
                BinaryStep::Skip { end } => {
                    *at = end;
                    if scratch.binary.is_empty() {
                        *start = end;
                    }
                    continue;
                }
                BinaryStep::Incomplete => return Parsed::Incomplete,
                BinaryStep::Big { len, at } => return Parsed::Big { at, len },
                BinaryStep::NoRequest => return Parsed::NoRequest,
            }
            if let Some(key) = key_of_step(&step) {
                let hash = engine.shards.hash(bytes_of(key, buf, &[]));
                engine.shards.prefetch(hash);
                scratch.hashes.push(hash);
            }
            *at = end_of(&step);
            scratch.binary.push(step);
            if decoder.is_inside_request() || matches!(step, BinaryStep::Refused { closes: true, .. }) {
                // A batch can stop only where a request ends.
                break;
            }
        }
        Parsed::Full
    }

    /// Runs requests in order, of which the first begins at `at`. Gives how many ran, and what is to happen if that is not
    /// to go on.
    fn run_binary_batch(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        scratch: &BatchScratch,
        buf: &[u8],
        mut at: usize,
        out: &mut OutBuf,
    ) -> (usize, Option<Flow>) {
        let mut keys = Keys::new(engine, &scratch.hashes);
        let mut ran = 0;
        let mut flow = None;
        let pause = engine.pause.holds_back(worker.clock.now_ms);
        keys.are_only_read(pause.is_some());
        let is_loading = engine.is_loading();
        let is_kept = engine.refusal().is_none();
        let timed = engine.timed_requests();
        for step in &scratch.binary {
            if self.has_had_its_turn(engine, worker, out) {
                flow = Some(Flow::Drain);
                break;
            }
            if pause.is_some_and(|mode| waits(mode, step)) {
                if engine.pause.wait(self.client.info.key) {
                    self.client.paused.store(true, Ordering::Relaxed);
                    flow = Some(Flow::Park);
                    break;
                }
                keys.are_only_read(false);
            }
            ran += 1;
            let begins_at = std::mem::replace(&mut at, end_of(step));
            if self.is_stranger()
                && let Some(head) = asks_for_too_much(step)
            {
                worker.stats.all.errors.add(1);
                Refused::from(Status::AuthError).write(head, out);
                flow = Some(Flow::CloseAfterFlush);
                break;
            }
            let is_refused = !is_kept && waits(PauseMode::Write, step);
            if (is_loading || is_refused)
                && loading::is_refused(step)
                && let BinaryStep::Request { head, .. } | BinaryStep::Refused { head, closes: false, .. } = step
            {
                worker.stats.all.errors.add(1);
                let refused = if is_loading { Refused::LOADING } else { Refused::NOT_KEPT };
                refused.write(head, out);
                self.note_end(out);
                keys.skip_to(keys.passed() + usize::from(key_of_step(step).is_some()));
                continue;
            }
            match step {
                BinaryStep::Request { head, command, end } => {
                    if *command == BinaryCommand::Quit {
                        self.has_quit = true;
                        binary::write_done(head, 0, out);
                        flow = Some(Flow::CloseAfterFlush);
                        break;
                    }
                    let watch = Watch::begin(engine, worker, out, timed.is_timed(may_be_long(command)));
                    if let Err(refused) = self.run_one(engine, worker, head, *command, &mut keys, buf, out) {
                        worker.stats.all.errors.add(1);
                        refused.write(head, out);
                    }
                    if let Some(watch) = watch {
                        let see = || seen_binary(head, command, buf, *end - begins_at);
                        watch.end(engine, worker, &self.client, out, see);
                    }
                }
                BinaryStep::Refused { head, status, write, closes, .. } => {
                    worker.stats.all.errors.add(1);
                    if *status == Status::TooLarge {
                        worker.stats.all.mc_too_large.add(1);
                    }
                    if let Some((_, key)) = write {
                        let is_too_large = *status == Status::TooLarge;
                        let answer = if is_too_large { Answer::TooLarge } else { Answer::OutOfMemoryStoring };
                        watch::refused(engine, worker.client_fd(), None, bytes_of(*key, buf, &[]), answer);
                    }
                    if let Some(key) = step.stale_key() {
                        keys.visit(worker, bytes_of(key, buf, &[]), delete::drop_stale);
                    }
                    let refused = if *status == Status::OutOfMemory {
                        worker.stats.all.mc_no_memory.add(1);
                        Refused::NO_MEMORY_STORING
                    } else {
                        Refused::from(*status)
                    };
                    refused.write(head, out);
                    if *closes {
                        flow = Some(Flow::CloseAfterFlush);
                        break;
                    }
                }
                _ => unreachable!("a batch holds whole requests"),
            }
            self.note_end(out);
            if self.client.killed.load(Ordering::Relaxed) {
                flow = Some(Flow::CloseAfterFlush);
                break;
            }
        }
        self.note_ran(worker, ran);
        (ran, flow)
    }

    /// Runs one request, and counts it by the prefix of its key where that is wanted.
    #[expect(clippy::too_many_arguments, reason = "everything that a request may touch, apart from one another")]
    fn run_one(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        head: &BinaryHead,
        command: BinaryCommand,
        keys: &mut Keys<'_>,
        buf: &[u8],
        out: &mut OutBuf,
    ) -> Result<(), Refused> {
        let hits = |worker: &Worker| worker.stats.all.mc_get_hits.get() + worker.stats.all.mc_touch_hits.get();
        if engine.prefixes.is_on()
            && let Some(key) = key_of(&command)
        {
            let before = hits(worker);
            let key = bytes_of(key, buf, &[]);
            let result = self.run_uncounted(engine, worker, head, command, keys, buf, out);
            match command {
                BinaryCommand::Get { .. } | BinaryCommand::Touch { .. } => {
                    count_get(engine, key, hits(worker) > before);
                }
                BinaryCommand::Store { .. } => engine.prefixes.count(key, |counts| counts.sets += 1),
                BinaryCommand::Delete { .. } => engine.prefixes.count(key, |counts| counts.deletes += 1),
                _ => {}
            }
            return result;
        }
        self.run_uncounted(engine, worker, head, command, keys, buf, out)
    }

    #[expect(clippy::too_many_arguments, reason = "everything that a request may touch, apart from one another")]
    fn run_uncounted(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        head: &BinaryHead,
        command: BinaryCommand,
        keys: &mut Keys<'_>,
        buf: &[u8],
        out: &mut OutBuf,
    ) -> Result<(), Refused> {
        match command {
            BinaryCommand::Get { key, with_key, exptime } => {
                keys.visit(worker, bytes_of(key, buf, &[]), |cx| binary::get(cx, head, with_key, exptime, out))
            }
            BinaryCommand::Touch { key, exptime } => {
                keys.visit(worker, bytes_of(key, buf, &[]), |cx| binary::touch(cx, head, exptime, out))
            }
            BinaryCommand::Store { verb, key, flags, exptime, data } => {
                let item = BinaryItem { flags, exptime, data: self.data(data, buf) };
                let key = bytes_of(key, buf, &[]);
                if engine.make_room(worker) {
                    return keys.visit(worker, key, |cx| binary::store(cx, head, verb, item, out));
                }
                let replaces = verb == BinaryStore::Set;
                watch::refused(engine, worker.client_fd(), None, key, Answer::OutOfMemoryStoring);
                keys.visit(worker, key, |cx| store::no_memory(cx, replaces, item.data));
                Err(Refused::NO_MEMORY_STORING)
            }
            BinaryCommand::Arithmetic { verb, key, delta, initial } => {
                let (key, has_room) = (bytes_of(key, buf, &[]), engine.make_room(worker));
                keys.visit(worker, key, |cx| binary::arithmetic(cx, head, verb, delta, initial, has_room, out))
            }
            BinaryCommand::Delete { key } => {
                keys.visit(worker, bytes_of(key, buf, &[]), |cx| binary::delete(cx, head, out))
            }
            BinaryCommand::Flush { exptime } => {
                if admin::flush_all(engine, worker, exptime.map(i64::from)).is_error() {
                    return Err(Status::AuthError.into());
                }
                binary::write_done(head, 0, out);
                Ok(())
            }
            BinaryCommand::Noop => {
                binary::write_done(head, 0, out);
                Ok(())
            }
            BinaryCommand::Version => {
                write_status(out.tail(), head, Status::Done, 0, admin::VERSION_TEXT);
                Ok(())
            }
            BinaryCommand::Stat { group } => {
                if stats::binary_stats(engine, worker, &self.client, head, bytes_of(group, buf, &[]), out.tail()) {
                    Ok(())
                } else {
                    Err(Status::NotFound.into())
                }
            }
            BinaryCommand::SaslMechanisms => {
                self.list_mechanisms(engine, head, out);
                Ok(())
            }
            BinaryCommand::Sasl { is_step, mechanism, data } => {
                let credentials = (bytes_of(mechanism, buf, &[]), bytes_of(data, buf, &[]));
                self.hear_credentials(engine, worker, head, is_step, credentials, out)
            }
            BinaryCommand::Quit => unreachable!("it ends the batch"),
        }
    }
}

/// The key that a request is about, if it is about one.
pub(crate) fn key_of(command: &BinaryCommand) -> Option<Span> {
    match *command {
        BinaryCommand::Get { key, .. }
        | BinaryCommand::Touch { key, .. }
        | BinaryCommand::Store { key, .. }
        | BinaryCommand::Arithmetic { key, .. }
        | BinaryCommand::Delete { key } => Some(key),
        BinaryCommand::Flush { .. }
        | BinaryCommand::Noop
        | BinaryCommand::Version
        | BinaryCommand::Quit
        | BinaryCommand::SaslMechanisms
        | BinaryCommand::Sasl { .. }
        | BinaryCommand::Stat { .. } => None,
    }
}

/// The key of a step that has its hash in the batch.
fn key_of_step(step: &BinaryStep) -> Option<Span> {
    match step {
        BinaryStep::Request { command, .. } => key_of(command),
        BinaryStep::Refused { .. } => step.stale_key(),
        _ => None,
    }
}

/// Whether a request can take long by what it asks for.
#[inline]
fn may_be_long(command: &BinaryCommand) -> bool {
    match command {
        BinaryCommand::Store { data, .. } => data.is_big(),
        BinaryCommand::Stat { .. } | BinaryCommand::Flush { .. } => true,
        _ => false,
    }
}

/// Whether a request is more than who has not said who it is may ask for; gives what its answer needs.
fn asks_for_too_much(step: &BinaryStep) -> Option<&BinaryHead> {
    match step {
        BinaryStep::Request { command, head, .. } => {
            let is_for_strangers =
                matches!(command, BinaryCommand::SaslMechanisms | BinaryCommand::Sasl { .. } | BinaryCommand::Version);
            (!is_for_strangers).then_some(head)
        }
        // Lengths that contradict each other are seen first, as in memcached, and so are those of credentials.
        BinaryStep::Refused { status: Status::Unknown, closes: true, .. } => None,
        BinaryStep::Refused { head, .. } => (!matches!(head.opcode, 0x0b | 0x20..=0x22)).then_some(head),
        _ => None,
    }
}

/// Whether a request waits for the end of a pause.
fn waits(mode: PauseMode, step: &BinaryStep) -> bool {
    match (mode, step) {
        (_, BinaryStep::Request { command: BinaryCommand::Quit, .. }) => false,
        (PauseMode::All, _) => true,
        (PauseMode::Write, BinaryStep::Request { command, .. }) => match command {
            BinaryCommand::Get { exptime, .. } => exptime.is_some(),
            BinaryCommand::Flush { .. } => true,
            command => key_of(command).is_some(),
        },
        (PauseMode::Write, BinaryStep::Refused { .. }) => step.stale_key().is_some(),
        (PauseMode::Write, _) => false,
    }
}

/// Where a request that is kept in a batch ends.
fn end_of(step: &BinaryStep) -> usize {
    match step {
        BinaryStep::Request { end, .. } | BinaryStep::Refused { end, .. } => *end,
        _ => unreachable!("a batch holds whole requests"),
    }
}
