//! A RESP client's connection: bytes to batches of commands, and their replies. Knows no socket and no command.

use crate::Flow;
use crate::filling::Filling;
use crate::pending;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tenon_engine::Engine;
use tenon_engine::args::{Args, BigArg, OwnedArgs};
use tenon_engine::batch::{BatchScratch, Call, Target};
use tenon_engine::clients::Client;
use tenon_engine::clock::monotonic_ns;
use tenon_engine::command::Flags;
use tenon_engine::ds::progress;
use tenon_engine::execute::{BatchArgs, Stopped};
use tenon_engine::session::Session;
use tenon_engine::unsent::OUTPUT_OF_STRANGER;
use tenon_engine::wire::resp::{CommandDecoder, Limits, ProtocolError, Reply, Step};
use tenon_engine::wire::{ArgSpans, OutBuf};
use tenon_engine::worker::Worker;

/// Commands that are parsed before the first of them runs: enough for their memory to be loaded side by side, few
/// enough for the first's to be still there when its turn comes.
const BATCH_MAX: usize = 64;
/// Arguments from this many bytes on are taken out of the stream into chunks when they are not wholly there.
const BIG_MIN: usize = 64 * 1024;

/// One client's connection.
pub struct RespConnection {
    session: Session,
    decoder: CommandDecoder,
    /// The bytes of commands that are not complete or could not run yet.
    pending: Vec<u8>,
    /// The long argument that is being read.
    filling: Option<Filling>,
    /// Whether one has been read this way to its end.
    has_filled: bool,
    /// The long arguments of the command at the start of `pending`.
    bigs: Vec<BigArg>,
    /// A command with long arguments that waits for the end of a pause.
    waiting: Option<OwnedArgs>,
}

/// How far a buffer was worked off.
enum Progress {
    /// What is left from this position on is an incomplete command.
    Incomplete { from: usize },
    /// What is left from this position on is to be looked at when the flow allows it.
    Stopped { from: usize, flow: Flow },
    /// The command that starts at `from` continues with a long argument at `at`, of this length.
    Big { from: usize, at: usize, len: usize },
    /// No more is to be read.
    Ended(Flow),
}

impl RespConnection {
    /// A connection at its start.
    pub fn new(engine: &Engine, client: Arc<Client>) -> RespConnection {
        RespConnection {
            session: engine.open_session(client),
            decoder: CommandDecoder::new(),
            pending: Vec::new(),
            filling: None,
            has_filled: false,
            bigs: Vec::new(),
            waiting: None,
        }
    }

    /// What others may see of the client.
    pub fn client(&self) -> &Arc<Client> {
        &self.session.client
    }

    /// The client's session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Whether the client may stay connected, now that its user's rights have changed.
    pub fn may_stay(&mut self, engine: &Engine) -> bool {
        engine.may_stay_subscribed(&mut self.session)
    }

    /// Moves what the client is sent beside replies to the end of `out`.
    pub(crate) fn take_messages(&mut self, engine: &Engine, out: &mut OutBuf) {
        engine.take_messages(&mut self.session, out);
    }

    /// Where the next bytes belong, if they are part of a long argument.
    pub(crate) fn room(&mut self) -> Option<&mut Vec<u8>> {
        self.filling.as_mut()?.room()
    }

    /// How many bytes of the long argument are missing.
    pub(crate) fn missing(&self) -> usize {
        self.filling.as_ref().map_or(0, Filling::missing)
    }

    /// Consumes all of `input`: runs the complete commands, keeps the rest, appends the replies to `out`.
    pub fn on_bytes(&mut self, engine: &Engine, worker: &mut Worker, input: &[u8], out: &mut OutBuf) -> Flow {
        worker.stats.received(input.len() as u64);
        // Counted at once, so that CLIENT INFO in these bytes knows of them.
        let client = &self.session.client;
        let received = client.received_bytes.load(Ordering::Relaxed) + input.len() as u64;
        client.received_bytes.store(received, Ordering::Relaxed);
        let mut scratch = worker.take_scratch();
        let flow = self.work(engine, worker, &mut scratch, input, out);
        worker.put_scratch(scratch);
        let client = &self.session.client;
        let kept = self.kept_bytes() as u64;
        client.input_bytes.store(kept, Ordering::Relaxed);
        if kept > 0 {
            engine.recent_input.note(worker.clock.now_ms, kept);
        }
        flow
    }

    fn work(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        scratch: &mut BatchScratch,
        mut input: &[u8],
        out: &mut OutBuf,
    ) -> Flow {
        if self.waiting.is_some()
            && let Some(flow) = self.run_waiting(engine, worker, input, out)
        {
            return flow;
        }
        if let Some(filling) = &mut self.filling {
            input = filling.add(input);
            if !filling.is_whole() {
                return Flow::Fill;
            }
            let filling = self.filling.take().expect("it was just there");
            self.has_filled = true;
            self.bigs.push(BigArg::new(filling.finish()));
            self.decoder.big_taken();
        }
        // What is left of earlier bytes has to lie before these.
        let own = (!self.pending.is_empty()).then(|| {
            let mut own = std::mem::take(&mut self.pending);
            if own.capacity() - own.len() < input.len() {
                // It moves.
                progress::count_bytes(own.len());
            }
            own.extend_from_slice(input);
            own
        });
        let buf = own.as_deref().unwrap_or(input);
        let progress = self.run_buffer(engine, worker, scratch, buf, out);
        if let Progress::Incomplete { from } = progress
            && from == buf.len()
            && self.session.transaction.is_none()
        {
            // Nothing is left, nor queued.
            return Flow::Continue;
        }
        let (keep, flow) = self.settle(engine, worker, buf, progress);
        self.pending = match own {
            Some(own) => pending::cut(own, keep),
            None => input[keep].to_vec(),
        };
        flow
    }

    /// Which part of the buffer is to be kept, and what is to happen next.
    fn settle(&mut self, engine: &Engine, worker: &Worker, buf: &[u8], progress: Progress) -> (Range<usize>, Flow) {
        match progress {
            Progress::Incomplete { from } => {
                if self.holds_too_much(engine, worker, buf.len() - from) {
                    return self.end_behind_replies();
                }
                (from..buf.len(), Flow::Continue)
            }
            Progress::Stopped { from, flow } => (from..buf.len(), flow),
            Progress::Ended(Flow::CloseAfterFlush) => self.end_behind_replies(),
            Progress::Ended(flow) => (0..0, flow),
            Progress::Big { from, at, len } => {
                // Its length is known: what can't fit is not collected first.
                if self.holds_too_much(engine, worker, at - from + len) {
                    return self.end_behind_replies();
                }
                self.filling = Some(Filling::new(len, &buf[at..], self.has_filled));
                (from..at, Flow::Fill)
            }
        }
    }

    /// What ran before is answered, and nothing else is sent: what others say might come faster than it leaves.
    fn end_behind_replies(&self) -> (Range<usize>, Flow) {
        self.session.client.leaving.store(true, Ordering::Release);
        (0..0, Flow::CloseAfterFlush)
    }

    /// Bytes of input that are kept.
    #[inline]
    fn kept_bytes(&self) -> usize {
        let filled = self.filling.as_ref().map_or(0, Filling::len);
        self.pending.len() + filled + self.bigs.iter().map(BigArg::len).sum::<usize>()
    }

    /// Whether the client makes the server keep more than `client-query-buffer-limit`: these bytes of a command that is
    /// not complete, its long arguments beside them, and what MULTI has queued.
    fn holds_too_much(&self, engine: &Engine, worker: &Worker, bytes: usize) -> bool {
        let beside: usize = self.bigs.iter().map(BigArg::len).sum();
        let queued = self.session.client.queued_bytes.load(Ordering::Relaxed);
        let too_much = (bytes + beside) as u64 + queued > engine.config.client_query_buffer_limit();
        if too_much {
            worker.stats.all.input_limit_closed.add(1);
            tracing::warn!(client = self.session.client.id, "query buffer limit reached, connection closed");
        }
        too_much
    }

    /// Runs the command that waited for the end of a pause, if there is one; gives a flow when it has to wait on.
    fn run_waiting(&mut self, engine: &Engine, worker: &mut Worker, input: &[u8], out: &mut OutBuf) -> Option<Flow> {
        let owned = self.waiting.take()?;
        let args = owned.view();
        let target = engine.resolve(&args);
        match engine.run_alone(worker, &mut self.session, target, &args, out) {
            Stopped::Paused => {
                self.waiting = Some(args.to_owned());
                self.pending.extend_from_slice(input);
                Some(Flow::Park)
            }
            Stopped::Parked => {
                self.pending.extend_from_slice(input);
                Some(Flow::Park)
            }
            Stopped::Closing => Some(Flow::CloseAfterFlush),
            Stopped::No | Stopped::Output => None,
        }
    }

    /// Runs all complete commands of `buf`, batch by batch.
    fn run_buffer(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        scratch: &mut BatchScratch,
        buf: &[u8],
        out: &mut OutBuf,
    ) -> Progress {
        let mut at = 0;
        loop {
            let start = at;
            let parsed = self.parse(engine, scratch, buf, &mut at);
            if !scratch.calls.is_empty() {
                let batch = BatchArgs { input: buf, input_from: start, spans: &scratch.args, bigs: &self.bigs };
                if scratch.calls.len() > 1 {
                    engine.prefetch(worker, &self.session, batch, &mut scratch.calls);
                }
                let (ran, stopped) = engine.run_batch(worker, &mut self.session, batch, &mut scratch.calls, out);
                let from = if ran == 0 { start } else { scratch.calls[ran - 1].input_end };
                match stopped {
                    Stopped::No if self.bigs.is_empty() => {}
                    Stopped::No => self.bigs.clear(),
                    Stopped::Closing => return Progress::Ended(Flow::CloseAfterFlush),
                    Stopped::Paused if !self.bigs.is_empty() => {
                        // Such a command is alone in its batch. Its long arguments left the stream: it is kept whole.
                        self.waiting = Some(batch_args(&scratch.args, buf, &self.bigs).to_owned());
                        self.bigs.clear();
                        return Progress::Stopped { from: scratch.calls[0].input_end, flow: Flow::Park };
                    }
                    Stopped::Output | Stopped::Paused | Stopped::Parked => {
                        // What was parsed beyond is parsed again then.
                        self.bigs.clear();
                        self.decoder = CommandDecoder::new();
                        let flow = if stopped == Stopped::Output { Flow::Drain } else { Flow::Park };
                        return Progress::Stopped { from, flow };
                    }
                }
            }
            match parsed {
                Ok(Parsed::Full) if at < buf.len() && self.is_much_output(engine, out.len()) => {
                    // The engine looks within a batch alone, and a stranger's batch is one command.
                    return Progress::Stopped { from: at, flow: Flow::Drain };
                }
                Ok(Parsed::Full) => scratch.clear(),
                Ok(Parsed::Incomplete) => return Progress::Incomplete { from: at },
                Ok(Parsed::Big { at: body, len }) => return Progress::Big { from: at, at: body, len },
                Ok(Parsed::Http) => {
                    if let Some(times) = engine.strangers_log.http.note(monotonic_ns()) {
                        tracing::warn!(
                            client = self.session.client.id,
                            times,
                            "possible attack: a client sent HTTP (POST or Host:), as cross-protocol scripting does; closed"
                        );
                    }
                    return Progress::Ended(Flow::Close);
                }
                Err(error) => {
                    worker.stats.all.errors.add(1);
                    engine.count_error("ERR".to_owned());
                    if !self.session.reply.is_silent() {
                        Reply::new(out, self.session.proto).protocol_error(&error);
                    }
                    return Progress::Ended(Flow::CloseAfterFlush);
                }
            }
        }
    }

    /// Whether so many bytes of output of one call let the client's next command wait until there is room for more.
    fn is_much_output(&self, engine: &Engine, bytes: usize) -> bool {
        bytes > OUTPUT_OF_STRANGER && (engine.is_much_output(bytes) || engine.wants_password(&self.session))
    }

    /// Parses up to a batch of commands from `buf[*at..]` on; `*at` is then the start of the first one not parsed.
    fn parse(
        &mut self,
        engine: &Engine,
        scratch: &mut BatchScratch,
        buf: &[u8],
        at: &mut usize,
    ) -> Result<Parsed, ProtocolError> {
        let is_stranger = engine.wants_password(&self.session);
        let limits = Limits {
            bulk_len_max: engine.config.proto_max_bulk_len() as usize,
            big_min: BIG_MIN,
            authenticated: !is_stranger,
            ..Limits::default()
        };
        // AUTH may lift the limits, and a command with long arguments has them to itself.
        scratch.args.plain_from = *at;
        let batch_max = if !is_stranger && self.bigs.is_empty() { BATCH_MAX } else { 1 };
        while scratch.calls.len() < batch_max {
            if *at == buf.len() {
                return Ok(Parsed::Incomplete);
            }
            let args_from = scratch.args.spans.len();
            match self.decoder.next(buf, *at, &mut scratch.args, &limits)? {
                Step::Command { end } => {
                    *at = end;
                    let spans = &scratch.args.spans[args_from..];
                    let args_end = scratch.args.spans.len();
                    if let Some((resolved, hash)) = engine.resolve_at_sight(spans, buf) {
                        engine.shards.prefetch(hash);
                        scratch.calls.push(Call::new(Target::Key(*resolved, hash), args_end, end));
                        continue;
                    }
                    let args = Args::new(spans, buf, &scratch.args.scratch, &self.bigs);
                    let target = engine.resolve(&args);
                    match &target {
                        Target::Key(_, hash) => engine.shards.prefetch(*hash),
                        Target::Refused(_, None) if args.is(0, "POST") || args.is(0, "HOST:") => {
                            return Ok(Parsed::Http);
                        }
                        Target::Refused(..) | Target::Other(_) | Target::Settled(_) => {}
                    }
                    // CONFIG SET may change the limits of what comes behind it.
                    let is_last = matches!(&target, Target::Other(it) if it.command.flags.any(Flags::ADMIN));
                    scratch.calls.push(Call::new(target, args_end, end));
                    if is_last {
                        return Ok(Parsed::Full);
                    }
                }
                Step::Skip { end } => *at = end,
                Step::Incomplete => return Ok(Parsed::Incomplete),
                // Long arguments of one command are never more than the bigs that it has collected so far.
                Step::Big { len, at: body, .. } => return Ok(Parsed::Big { at: body, len }),
            }
        }
        Ok(Parsed::Full)
    }

    /// Answers a command that has waited for a key, if its wait is over; the commands behind it go on then.
    pub fn unblocked(&mut self, engine: &Engine, worker: &mut Worker, out: &mut OutBuf) -> Flow {
        if engine.finish_wait(worker, &mut self.session, out) { Flow::Continue } else { Flow::Stay }
    }

    /// Ends the connection.
    pub fn closed(&mut self, engine: &Engine) {
        engine.end_session(&mut self.session);
    }
}

/// Why parsing ended.
enum Parsed {
    /// The batch is full.
    Full,
    /// The next command is not complete.
    Incomplete,
    /// The next command continues with a long argument at this position, of this length.
    Big { at: usize, len: usize },
    /// The client speaks HTTP.
    Http,
}

/// The arguments of the only call of a batch.
fn batch_args<'a>(args: &'a ArgSpans, buf: &'a [u8], bigs: &'a [BigArg]) -> Args<'a> {
    Args::new(&args.spans, buf, &args.scratch, bigs)
}
