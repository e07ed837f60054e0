//! A memcached client's connection: what both of its protocols have in common. Knows no socket and no verb.
//!
//! Clients live in database 0. Who may reach this port may use it, unless `memcached-auth` says otherwise; then who has
//! come in may do everything, as memcached's protocols have no rights.

mod binary;
mod connections;
mod keys;
mod loading;
mod login;
mod meta;
mod text;

pub(crate) use self::binary::key_of as binary_key;
use self::login::Login;
use crate::filling::Filling;
use crate::pending;
use crate::{Ending, Flow};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tenon_commands::memcache::crawler::Dump;
use tenon_commands::memcache::store::Data;
use tenon_engine::Engine;
use tenon_engine::args::BigArg;
use tenon_engine::batch::BatchScratch;
use tenon_engine::clients::{Awaited, Client};
use tenon_engine::config::MemcachedProtocol;
use tenon_engine::unsent::OUTPUT_OF_STRANGER;
use tenon_engine::uploads::Upload;
use tenon_engine::wire::memcache::binary::{BinaryDecoder, HEADER, REQUEST_MAGIC};
use tenon_engine::wire::memcache::{Limits, TextDecoder};
use tenon_engine::wire::{OutBuf, Place, Span};
use tenon_engine::worker::Worker;

/// Keys that are looked for side by side, and requests that are parsed before the first of them runs: enough for their
/// memory to be loaded together, few enough for the first's to be still there when its turn comes.
const BATCH_MAX: usize = 64;
/// Data blocks from this many bytes on are taken out of the stream into chunks when they are not wholly there.
const BIG_MIN: usize = 64 * 1024;

/// From this many bytes on the beginning of a shorter one counts, too, while its rest has not come.
const SHORT_MIN: usize = 4 * 1024;

/// One client's connection.
pub struct MemcacheConnection {
    client: Arc<Client>,
    decoder: TextDecoder,
    /// In the binary protocol: the decoder that is used instead.
    binary: Option<BinaryDecoder>,
    /// Whether the first byte still chooses the protocol.
    is_new: bool,
    /// Who the client is, where it has to say so.
    login: Option<Box<Login>>,
    /// The bytes of requests that are not complete or could not run yet.
    pending: Vec<u8>,
    /// What `pending` counts as the beginning of a request, once it has counted.
    begun: Option<Upload>,
    /// The data block that is being read, and what it counts.
    filling: Option<(Filling, Upload)>,
    /// Whether one has been read this way to its end.
    has_filled: bool,
    /// The data block of the request at the start of `pending`, when it was taken out of the stream.
    big: Option<(BigArg, Upload)>,
    /// The list of items that is being written.
    dump: Option<Dump>,
    /// Whether the client is told what others do: what it sends is not read any more.
    is_watching: bool,
    /// Where each answer ends that the last call has written to its end; of a datagram only.
    ends: Option<Vec<usize>>,
    /// Whether it has said that it goes.
    has_quit: bool,
    /// Where the answers end that memcached would have sent by now. Behind others it lists nothing and lets nobody watch.
    sent_until: usize,
    /// Requests that may still run in this turn.
    turn_left: u32,
    /// How many keys of the read at the start of `pending` are answered: its client was to take those answers first.
    answered: usize,
}

/// How far a buffer was worked off.
enum Progress {
    /// What is left from this position on is an incomplete request.
    Incomplete { from: usize },
    /// What is left from this position on is to be looked at when the flow allows it.
    Stopped { from: usize, flow: Flow },
    /// The request that starts at `from` continues with a data block at `at`, of this length.
    Big { from: usize, at: usize, len: usize },
    /// No more is to be read.
    Ended(Flow),
}

impl MemcacheConnection {
    /// A connection at its start.
    pub fn new(engine: &Engine, client: Arc<Client>) -> MemcacheConnection {
        connections::tell_new(engine, &client);
        MemcacheConnection { ends: None, ..MemcacheConnection::for_datagram(engine, client) }
    }

    /// One for the requests of a datagram, which nobody is told of.
    pub(crate) fn for_datagram(engine: &Engine, client: Arc<Client>) -> MemcacheConnection {
        let protocol = engine.config.memcached_protocol();
        MemcacheConnection {
            client,
            decoder: TextDecoder::new(),
            binary: (protocol == MemcachedProtocol::Binary).then(BinaryDecoder::new),
            is_new: protocol == MemcachedProtocol::Auto,
            login: engine.config.memcached_auth().then(Box::default),
            pending: Vec::new(),
            begun: None,
            filling: None,
            has_filled: false,
            big: None,
            dump: None,
            is_watching: false,
            ends: Some(Vec::new()),
            has_quit: false,
            sent_until: 0,
            turn_left: u32::MAX,
            answered: 0,
        }
    }

    /// What others may see of the client.
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Where the next bytes belong, if they are part of a data block.
    pub(crate) fn room(&mut self) -> Option<&mut Vec<u8>> {
        let (filling, upload) = self.filling.as_mut()?;
        filling.prepare();
        upload.holds(filling.memory());
        filling.room()
    }

    /// How many bytes of the data block are missing.
    pub(crate) fn missing(&self) -> usize {
        self.filling.as_ref().map_or(0, |(filling, _)| filling.missing())
    }

    /// Consumes all of `input`: runs the complete requests, keeps the rest, appends the answers to `out`.
    pub fn on_bytes(&mut self, engine: &Engine, worker: &mut Worker, input: &[u8], out: &mut OutBuf) -> Flow {
        worker.stats.received(input.len() as u64);
        if self.is_new && !input.is_empty() {
            self.is_new = false;
            self.binary = (input[0] == REQUEST_MAGIC).then(BinaryDecoder::new);
        }
        // Who was killed runs no further request.
        if self.client.killed.load(Ordering::Acquire) {
            return Flow::CloseAfterFlush;
        }
        if !self.may_stay(engine) {
            return Flow::Close;
        }
        if self.is_watching {
            return Flow::Continue;
        }
        self.turn_left = match engine.config.memcached_requests_per_turn() {
            0 => u32::MAX,
            requests => requests,
        };
        let before = out.len();
        self.sent_until = before;
        worker.serve(&self.client);
        let mut scratch = worker.take_scratch();
        let flow = self.work(engine, worker, &mut scratch, input, out);
        worker.put_scratch(scratch);
        self.count_begun(engine, flow);
        worker.sweep();
        engine.batch_ended(worker);
        let client = &self.client;
        let received = client.received_bytes.load(Ordering::Relaxed) + input.len() as u64;
        client.received_bytes.store(received, Ordering::Relaxed);
        let filled = self.filling.as_ref().map_or(0, |(filling, _)| filling.len());
        let big = self.big.as_ref().map_or(0, |(big, _)| big.len());
        let kept = (self.pending.len() + filled + big) as u64;
        client.input_bytes.store(kept, Ordering::Relaxed);
        if kept > 0 {
            engine.recent_input.note(worker.clock.now_ms, kept);
            client.input_ms.store(worker.clock.monotonic_ms(), Ordering::Relaxed);
        }
        client.set_awaited(self.awaited());
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
        if self.client.paused.load(Ordering::Relaxed) {
            self.client.paused.store(false, Ordering::Relaxed);
        }
        if self.dump.is_some() {
            if !self.go_on_with_dump(engine, worker, out) {
                self.pending.extend_from_slice(input);
                return Flow::Drain;
            }
            self.note_end(out);
        }
        if let Some((filling, upload)) = &mut self.filling {
            input = filling.add(input);
            upload.holds(filling.memory());
            let is_whole = filling.is_whole();
            if !is_whole && engine.has_room_for(upload) {
                return Flow::Fill;
            }
            let (filling, upload) = self.filling.take().expect("it was just there");
            match (is_whole, &mut self.binary) {
                (true, Some(decoder)) => decoder.big_taken(),
                (true, None) => self.decoder.big_taken(),
                (false, Some(decoder)) => decoder.big_let_go(filling.len()),
                (false, None) => self.decoder.big_let_go(filling.len()),
            }
            if is_whole {
                self.has_filled = true;
                // It counts until it is stored: its line's end may never come.
                self.big = Some((BigArg::new(filling.finish()), upload));
            }
        }
        if self.pending.is_empty() {
            let progress = self.run_buffer(engine, worker, scratch, input, out);
            let (keep, flow) = self.settle(engine, input, progress);
            self.pending.extend_from_slice(&input[keep]);
            flow
        } else {
            // What is left of earlier bytes has to lie before these.
            let mut own = std::mem::take(&mut self.pending);
            own.extend_from_slice(input);
            let progress = self.run_buffer(engine, worker, scratch, &own, out);
            let (keep, flow) = self.settle(engine, &own, progress);
            self.pending = pending::cut(own, keep);
            flow
        }
    }

    /// Runs all complete requests of `buf`.
    fn run_buffer(
        &mut self,
        engine: &Engine,
        worker: &mut Worker,
        scratch: &mut BatchScratch,
        buf: &[u8],
        out: &mut OutBuf,
    ) -> Progress {
        if self.binary.is_some() {
            self.run_binary(engine, worker, scratch, buf, out)
        } else {
            self.run_text(engine, worker, scratch, buf, out)
        }
    }

    /// Which part of the buffer is to be kept, and what is to happen next.
    fn settle(&mut self, engine: &Engine, buf: &[u8], progress: Progress) -> (Range<usize>, Flow) {
        match progress {
            Progress::Incomplete { from } => (from..buf.len(), Flow::Continue),
            Progress::Stopped { from, flow } => (from..buf.len(), flow),
            Progress::Ended(flow) => (0..0, flow),
            Progress::Big { from, at, len } => {
                let filling = Filling::new(len, &buf[at..], self.has_filled);
                let upload = engine.uploads.begin(filling.memory());
                self.filling = Some((filling, upload));
                (from..at, Flow::Fill)
            }
        }
    }

    /// Counts what is kept of a request whose rest has not come. What waits for its turn is no beginning.
    #[inline]
    fn count_begun(&mut self, engine: &Engine, flow: Flow) {
        let memory = if flow == Flow::Continue { self.pending.capacity() } else { 0 };
        let memory = if memory < SHORT_MIN { 0 } else { memory };
        match &mut self.begun {
            Some(begun) => begun.holds(memory),
            None if memory == 0 => {}
            None => self.begun = Some(engine.uploads.begin_short(memory)),
        }
    }

    /// How much the client may ask for.
    fn limits(&self, engine: &Engine) -> Limits {
        let (value_max, sasl) = (engine.config.max_value_size() as usize, engine.config.memcached_auth());
        Limits {
            value_max,
            big_min: BIG_MIN,
            takes_big: engine.takes_uploads(),
            short_min: SHORT_MIN,
            takes_short: engine.takes_short_uploads(self.begun.as_ref()),
            sasl,
            ..Limits::default()
        }
    }

    /// What the client has to send next.
    #[inline]
    fn awaited(&self) -> Awaited {
        match &self.binary {
            Some(decoder) if decoder.is_skipping() => Awaited::Refused,
            Some(_) if self.filling.is_some() || self.pending.len() >= HEADER => Awaited::Data,
            Some(_) => Awaited::Request,
            None if self.decoder.is_skipping() => Awaited::Refused,
            None if self.decoder.is_inside_data() => Awaited::Data,
            None => Awaited::Request,
        }
    }

    /// Whether the next request is to wait for the client's next turn: there is much unsent output already, or as many
    /// have run in this one as may.
    #[inline]
    fn has_had_its_turn(&mut self, engine: &Engine, worker: &Worker, out: &OutBuf) -> bool {
        if self.turn_left == 0 {
            worker.stats.all.mc_yields.add(1);
            return true;
        }
        self.turn_left -= 1;
        out.len() > OUTPUT_OF_STRANGER && (engine.is_much_output(out.len()) || self.is_stranger())
    }

    /// Notes that an answer ends here.
    #[inline]
    fn note_end(&mut self, out: &OutBuf) {
        if let Some(ends) = &mut self.ends {
            ends.push(out.len());
        }
    }

    /// Where each answer ends that the last call has written to its end.
    pub(crate) fn take_ends(&mut self) -> Vec<usize> {
        self.ends.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Counts the requests of a batch.
    #[inline]
    fn note_ran(&self, worker: &Worker, ran: usize) {
        worker.stats.all.commands.add(ran as u64);
        let client = &self.client;
        client.active_ms.store(worker.clock.now_ms, Ordering::Relaxed);
        client.commands.store(client.commands.load(Ordering::Relaxed) + ran as u64, Ordering::Relaxed);
    }

    /// The data block of a request.
    #[inline]
    fn data<'a>(&'a self, data: Span, buf: &'a [u8]) -> Data<'a> {
        match data.resolve(buf, &[]) {
            Place::Bytes(bytes) => Data::Bytes(bytes),
            Place::Big(_) => {
                let (big, _) = self.big.as_ref().expect("the data block was taken out of the stream");
                Data::Big(big)
            }
        }
    }

    /// Ends the connection.
    pub fn closed(&mut self, engine: &Engine, ending: Ending) {
        if ending == Ending::IdleTimeout {
            engine.idle_kicks.fetch_add(1, Ordering::Relaxed);
        }
        if self.is_watching {
            engine.stop_watching(&self.client);
        }
        engine.forget_client(&self.client);
        let ending = if self.has_quit && ending == Ending::Error { Ending::Normal } else { ending };
        connections::tell_closed(engine, &self.client, ending);
    }
}

/// Counts a read by the prefix of its key.
fn count_get(engine: &Engine, key: &[u8], is_hit: bool) {
    engine.prefixes.count(key, |counts| {
        counts.gets += 1;
        counts.hits += u64::from(is_hit);
    });
}
