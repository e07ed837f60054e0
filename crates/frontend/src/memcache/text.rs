//! A memcached client that speaks the text protocol: its bytes to requests, and their answers. Knows no socket, and of
//! the verbs only which handler runs which request.

use super::keys::{Keys, bytes_of};
use super::{BATCH_MAX, MemcacheConnection, Progress, count_get, loading, meta};
use crate::Flow;
use crate::memcache_watch::{Watch, seen_text};
use std::sync::atomic::Ordering;
use tenon_commands::memcache::admin;
use tenon_commands::memcache::crawler::{self, Crawl};
use tenon_commands::memcache::get::{self, Reading};
use tenon_commands::memcache::store::{self, Item};
use tenon_commands::memcache::{Answer, arith, delete, stats, touch, watch};
use tenon_engine::Engine;
use tenon_engine::batch::{BatchScratch, TextStep};
use tenon_engine::clock::monotonic_ns;
use tenon_engine::pause::PauseMode;
use tenon_engine::wire::memcache::{Fatal, MetaWords, Refusal, Request, RequestError, Step, TextDecoder};
use tenon_engine::wire::{OutBuf, Span};
use tenon_engine::worker::Worker;

/// Why parsing ended.
enum Parsed {
    /// The batch is full, or what comes next depends on what runs now.
    Full,
    /// The next request is not complete.
    Incomplete,
    /// The next request continues with a data block at this position, of this length.
    Big { at: usize, len: usize },
}

/// Where a batch starts.
struct Start {
    /// In the buffer.
    at: usize,
    /// The decoder there.
    decoder: TextDecoder,
}

/// What became of a request.
enum Ran {
    /// It is answered.
    Wholly,
    /// It is a read of which so many keys are answered; the client has much unsent output.
    Partly(usize),
    /// It is answered as far as there is room: the list of items goes on when the client has read.
    Dumping,
    /// It ends the connection's time of asking.
    Watching,
    /// It ends the connection.
    Closing,
}

/// Why a batch ended before its last request.
enum Stopped {
    /// It did not.
    No,
    /// The client has much unsent output, or had its turn: the rest is to run when it has read that, and others were
    /// served.
    Output,
    /// The next request waits for the end of a CLIENT PAUSE.
    Paused,
    /// The client is told what others do and asks for nothing any more.
    Watching,
    /// The connection is to be closed.
    Closing,
}

impl MemcacheConnection {
    /// Runs all complete requests of `buf`, batch by batch.
    pub(super) fn run_text(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        scratch: &mut BatchScratch,
        buf: &[u8],
        out: &mut OutBuf,
    ) -> Progress {
        let mut at = 0;
        if self.is_stranger()
            && let Some(progress) = self.hear_stranger(engine, worker, buf, &mut at, out)
        {
            return progress;
        }
        loop {
            let mut start = Start { at, decoder: self.decoder.clone() };
            let parsed = self.parse(engine, scratch, buf, &mut at, &mut start);
            if !scratch.requests.is_empty() {
                let (ran, stopped) = self.run_batch(engine, worker, scratch, buf, start.at, out);
                if ran > 0 {
                    // Only the first request of a batch can have a data block beside the buffer.
                    self.big = None;
                }
                let flow = match stopped {
                    Stopped::No => None,
                    Stopped::Closing => return Progress::Ended(Flow::CloseAfterFlush),
                    Stopped::Watching => return Progress::Ended(Flow::Continue),
                    Stopped::Output => Some(Flow::Drain),
                    Stopped::Paused => Some(Flow::Park),
                };
                if let Some(flow) = flow {
                    // What was parsed beyond is parsed again then.
                    let from = match ran {
                        0 => {
                            self.decoder = start.decoder;
                            start.at
                        }
                        _ => {
                            self.decoder = TextDecoder::new();
                            end_of(&scratch.requests[ran - 1].step)
                        }
                    };
                    return Progress::Stopped { from, flow };
                }
            }
            match parsed {
                Ok(Parsed::Full) => scratch.clear(),
                Ok(Parsed::Incomplete) => return Progress::Incomplete { from: at },
                Ok(Parsed::Big { at: data, len }) => return Progress::Big { from: at, at: data, len },
                Err(fatal) => return Progress::Ended(self.give_up(engine, fatal, out)),
            }
        }
    }

    /// Parses up to a batch of requests from `buf[*at..]` on; `*at` is then the start of the first one not parsed.
    fn parse(
        &mut self,
        engine: &Engine,
        scratch: &mut BatchScratch,
        buf: &[u8],
        at: &mut usize,
        start: &mut Start,
    ) -> Result<Parsed, Fatal> {
        let limits = self.limits(engine);
        while scratch.requests.len() < BATCH_MAX && scratch.hashes.len() < BATCH_MAX {
            if *at == buf.len() {
                return Ok(Parsed::Incomplete);
            }
            let args_from = scratch.args.spans.len();
            let step = self.decoder.next(buf, *at, &mut scratch.args, &limits)?;
            let mut note = |key: Span| {
                let hash = engine.shards.hash(bytes_of(key, buf, &scratch.args.scratch));
                engine.shards.prefetch(hash);
                scratch.hashes.push(hash);
            };
            match step {
                Step::Request { request, .. } => match request {
                    Request::Get { .. } => scratch.args.spans[args_from..].iter().copied().for_each(note),
                    Request::Store { key, .. }
                    | Request::Arithmetic { key, .. }
                    | Request::Delete { key, .. }
                    | Request::Touch { key, .. } => note(key),
                    Request::Meta { .. } | Request::MetaDebug => note(scratch.args.spans[args_from]),
                    _ => {}
                },
                Step::Refused { refusal, .. } => refusal.stale_key().into_iter().for_each(note),
                Step::Skip { end } => {
                    *at = end;
                    if scratch.requests.is_empty() {
                        *start = Start { at: end, decoder: self.decoder.clone() };
                    }
                    continue;
                }
                Step::Incomplete => return Ok(Parsed::Incomplete),
                Step::Big { len, at: data } => return Ok(Parsed::Big { at: data, len }),
            }
            *at = end_of(&step);
            let (args_end, hashes_end) = (scratch.args.spans.len(), scratch.hashes.len());
            scratch.requests.push(TextStep { step, args_end, hashes_end });
            if self.decoder.is_inside_request() {
                // A batch can stop only where a request ends.
                break;
            }
        }
        Ok(Parsed::Full)
    }

    /// Runs requests in order, of which the first begins at `at`. Gives how many ran and why it stopped before the last, if it did.
    fn run_batch(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        scratch: &BatchScratch,
        buf: &[u8],
        mut at: usize,
        out: &mut OutBuf,
    ) -> (usize, Stopped) {
        let mut keys = Keys::new(engine, &scratch.hashes);
        let decoded = &scratch.args.scratch;
        let mut args_from = 0;
        let mut ran = 0;
        let mut stopped = Stopped::No;
        let pause = engine.pause.holds_back(worker.clock.now_ms);
        keys.are_only_read(pause.is_some());
        let is_loading = engine.is_loading();
        let not_kept = engine.refusal();
        let timed = engine.timed_requests();
        for request in &scratch.requests {
            if self.has_had_its_turn(engine, worker, out) {
                stopped = Stopped::Output;
                break;
            }
            if pause.is_some_and(|mode| waits(mode, &request.step)) {
                if engine.pause.wait(self.client.info.key) {
                    self.client.paused.store(true, Ordering::Relaxed);
                    stopped = Stopped::Paused;
                    break;
                }
                // A pause that has ended since, on another thread, would never wake this connection: it does not wait then.
                keys.are_only_read(false);
            }
            let is_refused = not_kept.is_some() && waits(PauseMode::Write, &request.step);
            if (is_loading || is_refused)
                && let Some(refusal) = loading::refusal(&request.step)
            {
                match (refusal, &not_kept) {
                    (None, _) => {}
                    (Some(_), Some(error)) if is_refused => loading::write_not_kept(error, out),
                    (Some(answer), _) => answer.write(out.tail()),
                }
                worker.stats.all.errors.add(1);
                self.note_end(out);
                args_from = request.args_end;
                keys.skip_to(request.hashes_end);
                at = end_of(&request.step);
                // It may have been a read that was answered in part.
                self.answered = 0;
                ran += 1;
                continue;
            }
            let args = &scratch.args.spans[args_from..request.args_end];
            args_from = request.args_end;
            let begins_at = std::mem::replace(&mut at, end_of(&request.step));
            let outcome = match request.step {
                Step::Request { request, .. } => {
                    let watch = Watch::begin(engine, worker, out, timed.is_timed(may_be_long(&request, args)));
                    let ran = match request {
                        Request::Meta { verb, data, .. } => {
                            let words = MetaWords::new(args, buf, decoded);
                            meta::run(engine, worker, verb, words, self.data(data, buf), &mut keys, out);
                            Ran::Wholly
                        }
                        Request::MetaDebug => {
                            meta::debug(worker, MetaWords::new(args, buf, decoded), &mut keys, out);
                            Ran::Wholly
                        }
                        Request::Watch => self.begin_watching(engine, worker, &words_of(args, buf), out),
                        Request::LruCrawler => self.crawl(engine, worker, &words_of(args, buf), out),
                        _ => self.run(engine, worker, request, args, &mut keys, buf, out),
                    };
                    if let Some(watch) = watch {
                        let see = || seen_text(&request, args, buf, decoded, &buf[begins_at..at]);
                        watch.end(engine, worker, &self.client, out, see);
                    }
                    ran
                }
                Step::Refused { refusal, .. } => {
                    refuse(engine, worker, refusal, &mut keys, buf, decoded, out);
                    Ran::Wholly
                }
                Step::Skip { .. } | Step::Incomplete | Step::Big { .. } => unreachable!("none of these is kept"),
            };
            self.answered = 0;
            // Behind these memcached sends what it has to say.
            if let Step::Request { request: Request::Get { .. } | Request::MetaNoop, .. } = request.step {
                self.sent_until = out.len();
            }
            let is_part = matches!(request.step, Step::Request { request: Request::Get { last: false, .. }, .. });
            if !is_part && !matches!(outcome, Ran::Partly(_) | Ran::Dumping) {
                self.note_end(out);
            }
            match outcome {
                Ran::Wholly => ran += 1,
                Ran::Partly(answered) => {
                    self.answered = answered;
                    stopped = Stopped::Output;
                    break;
                }
                Ran::Dumping => {
                    ran += 1;
                    stopped = Stopped::Output;
                    break;
                }
                Ran::Watching => {
                    ran += 1;
                    stopped = Stopped::Watching;
                    break;
                }
                Ran::Closing => {
                    ran += 1;
                    stopped = Stopped::Closing;
                    break;
                }
            }
            if self.client.killed.load(Ordering::Relaxed) {
                stopped = Stopped::Closing;
                break;
            }
        }
        self.note_ran(worker, ran);
        (ran, stopped)
    }

    /// Runs one request, or what is left of it.
    #[expect(clippy::too_many_arguments, reason = "everything that a request may touch, apart from one another")]
    #[inline]
    fn run(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        request: Request,
        args: &[Span],
        keys: &mut Keys<'_>,
        buf: &[u8],
        out: &mut OutBuf,
    ) -> Ran {
        let (answer, noreply) = match request {
            Request::Get { verb, exptime, last } => {
                let reading = Reading::of(verb, exptime);
                let (before, behind) = (keys.passed(), keys.passed() + args.len());
                keys.skip_to(before + self.answered);
                let mut failed = None;
                let counts_prefixes = engine.prefixes.is_on();
                for &key in &args[self.answered..] {
                    if engine.is_much_output(out.len()) {
                        return Ran::Partly(keys.passed() - before);
                    }
                    let key = bytes_of(key, buf, &[]);
                    match keys.visit(worker, key, |cx| get::get(cx, reading, out)) {
                        Ok(is_hit) if counts_prefixes => count_get(engine, key, is_hit),
                        Ok(_) => {}
                        Err(answer) => {
                            failed = Some(answer);
                            break;
                        }
                    }
                }
                keys.skip_to(behind);
                match failed {
                    Some(answer) => {
                        if !last {
                            self.decoder.pass_rest_of_line();
                        }
                        (answer, false)
                    }
                    None => {
                        if last {
                            out.tail().extend_from_slice(b"END\r\n");
                        }
                        return Ran::Wholly;
                    }
                }
            }
            Request::Store { verb, key, flags, exptime, data, noreply } => {
                let data = self.data(data, buf);
                let key = bytes_of(key, buf, &[]);
                if engine.prefixes.is_on() {
                    engine.prefixes.count(key, |counts| counts.sets += 1);
                }
                if engine.make_room(worker) {
                    (keys.visit(worker, key, |cx| store::store(cx, verb, Item { flags, exptime, data })), noreply)
                } else {
                    (keys.visit(worker, key, |cx| store::refuse_for_memory(cx, verb, data)), noreply)
                }
            }
            Request::Arithmetic { verb, key, delta, noreply } => {
                let (key, has_room) = (bytes_of(key, buf, &[]), engine.make_room(worker));
                (keys.visit(worker, key, |cx| arith::arithmetic(cx, verb, delta, has_room)), noreply)
            }
            Request::Delete { key, noreply } => {
                let key = bytes_of(key, buf, &[]);
                if engine.prefixes.is_on() {
                    engine.prefixes.count(key, |counts| counts.deletes += 1);
                }
                (keys.visit(worker, key, delete::delete), noreply)
            }
            Request::Touch { key, exptime, noreply } => {
                (keys.visit(worker, bytes_of(key, buf, &[]), |cx| touch::touch(cx, exptime)), noreply)
            }
            Request::FlushAll { exptime, noreply } => (admin::flush_all(engine, worker, exptime), noreply),
            Request::Verbosity { level, noreply } => (admin::verbosity(engine, level), noreply),
            Request::CacheMemlimit { megabytes, noreply } => {
                (admin::cache_memlimit(engine, worker, megabytes), noreply)
            }
            Request::Shutdown => match admin::shutdown(engine, &words_of(args, buf)) {
                Ok(()) => return Ran::Closing,
                Err(answer) => (answer, false),
            },
            Request::RefreshCerts => (admin::refresh_certs(engine), false),
            Request::Version => {
                admin::version(out.tail());
                return Ran::Wholly;
            }
            Request::Stats => {
                stats::stats(engine, worker, &self.client, &words_of(args, buf), out.tail());
                return Ran::Wholly;
            }
            Request::MetaNoop => {
                worker.stats.all.mc_meta.add(1);
                out.tail().extend_from_slice(b"MN\r\n");
                return Ran::Wholly;
            }
            Request::Quit => {
                self.has_quit = true;
                return Ran::Closing;
            }
            Request::Lru => {
                let words = words_of(args, buf);
                (crawler::lru(&words), wants_no_answer(&words))
            }
            Request::Slabs => {
                let words = words_of(args, buf);
                (crawler::slabs(&words), matches!(words[..], [b"automove", _, ..]) && wants_no_answer(&words))
            }
            Request::Meta { .. } | Request::MetaDebug | Request::LruCrawler | Request::Watch => {
                unreachable!("these run elsewhere")
            }
        };
        if answer.is_error() {
            worker.stats.all.errors.add(1);
        }
        if !noreply {
            answer.write(out.tail());
        }
        Ran::Wholly
    }

    /// Makes the connection one that is told what others do, and no more is read from it.
    fn begin_watching(&mut self, engine: &Engine, worker: &Worker, words: &[&[u8]], out: &mut OutBuf) -> Ran {
        // A datagram's client is not there any more when there is something to tell.
        if engine.clients.get(self.client.id).is_none() {
            return Ran::Closing;
        }
        match watch::watch(engine, &self.client, words, out.len() == self.sent_until) {
            Ok(()) => {
                self.is_watching = true;
                out.tail().extend_from_slice(b"OK\r\n");
                Ran::Watching
            }
            Err(answer) => {
                worker.stats.all.errors.add(1);
                if !wants_no_answer(words) {
                    answer.write(out.tail());
                }
                Ran::Wholly
            }
        }
    }

    /// Does what the words behind `lru_crawler` say.
    fn crawl(&mut self, engine: &Engine, worker: &mut Worker, words: &[&[u8]], out: &mut OutBuf) -> Ran {
        match crawler::crawl(engine, words, out.len() == self.sent_until) {
            Crawl::Answer(answer) => answer.write(out.tail()),
            Crawl::Dump(dump) => {
                self.dump = Some(dump);
                if !self.go_on_with_dump(engine, worker, out) {
                    return Ran::Dumping;
                }
            }
        }
        Ran::Wholly
    }

    /// Writes as much of the list of items as there is room for; tells whether that was the rest.
    pub(super) fn go_on_with_dump(&mut self, engine: &Engine, worker: &mut Worker, out: &mut OutBuf) -> bool {
        while let Some(dump) = &mut self.dump {
            if engine.is_much_output(out.len()) {
                return false;
            }
            if dump.step(engine, worker, out.tail()) {
                self.dump = None;
            }
        }
        true
    }

    /// Ends a stream that cannot be followed any further.
    #[cold]
    fn give_up(&self, engine: &Engine, fatal: Fatal, out: &mut OutBuf) -> Flow {
        match fatal.text() {
            Some(text) => {
                out.tail().extend_from_slice(text.as_bytes());
                out.tail().extend_from_slice(b"\r\n");
                Flow::CloseAfterFlush
            }
            None => {
                if let Some(times) = engine.strangers_log.memcached_http.note(monotonic_ns()) {
                    tracing::warn!(client = self.client.id, times, "an HTTP request on the memcached port; closed");
                }
                Flow::Close
            }
        }
    }
}

/// Whether a request can take long by what it asks for.
#[inline]
fn may_be_long(request: &Request, args: &[Span]) -> bool {
    match request {
        Request::Get { .. } => args.len() > 1,
        Request::Store { data, .. } | Request::Meta { data, .. } => data.is_big(),
        Request::Stats | Request::FlushAll { .. } | Request::LruCrawler | Request::CacheMemlimit { .. } => true,
        _ => false,
    }
}

/// The words behind a verb.
fn words_of<'a>(args: &[Span], buf: &'a [u8]) -> Vec<&'a [u8]> {
    args.iter().map(|&word| bytes_of(word, buf, &[])).collect()
}

/// Whether the words end with the one that says that no answer is wanted.
fn wants_no_answer(words: &[&[u8]]) -> bool {
    words.last() == Some(&&b"noreply"[..])
}

/// Answers a request that was refused as it was read.
#[cold]
fn refuse(
    engine: &Engine,
    worker: &mut Worker,
    refusal: Refusal,
    keys: &mut Keys<'_>,
    buf: &[u8],
    decoded: &[u8],
    out: &mut OutBuf,
) {
    worker.stats.all.errors.add(1);
    let counters = &worker.stats.all;
    match refusal.error {
        RequestError::TooLarge => counters.mc_too_large.add(1),
        RequestError::OutOfMemory => counters.mc_no_memory.add(1),
        // memcached has made the item before it sees that its data ends elsewhere.
        RequestError::BadDataChunk => counters.mc_set.add(1),
        _ => {}
    }
    if let Some((verb, key)) = refusal.write {
        let is_too_large = refusal.error == RequestError::TooLarge;
        let answer = if is_too_large { Answer::TooLarge } else { Answer::OutOfMemoryStoring };
        watch::refused(engine, worker.client_fd(), Some(verb), bytes_of(key, buf, decoded), answer);
    }
    if let Some(key) = refusal.stale_key() {
        keys.visit(worker, bytes_of(key, buf, decoded), delete::drop_stale);
    }
    if !refusal.noreply {
        out.tail().extend_from_slice(refusal.error.text().as_bytes());
        out.tail().extend_from_slice(b"\r\n");
    }
}

/// Whether a request waits for the end of a pause.
fn waits(mode: PauseMode, step: &Step) -> bool {
    match (mode, step) {
        (_, Step::Request { request: Request::Quit, .. }) => false,
        (PauseMode::All, _) => true,
        (PauseMode::Write, Step::Request { request, .. }) => match request {
            Request::Get { exptime, .. } => exptime.is_some(),
            Request::Meta { writes, .. } => *writes,
            Request::Store { .. }
            | Request::Arithmetic { .. }
            | Request::Delete { .. }
            | Request::Touch { .. }
            | Request::FlushAll { .. } => true,
            _ => false,
        },
        (PauseMode::Write, Step::Refused { refusal, .. }) => refusal.stale_key().is_some(),
        (PauseMode::Write, _) => false,
    }
}

/// Where a request that is kept in a batch ends.
fn end_of(step: &Step) -> usize {
    match step {
        Step::Request { end, .. } | Step::Refused { end, .. } | Step::Skip { end } => *end,
        Step::Incomplete | Step::Big { .. } => unreachable!("a batch holds whole requests"),
    }
}
