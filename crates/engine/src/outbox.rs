//! What a client is sent beside the replies to its own commands: messages of channels, invalidations, MONITOR's lines.
//! Any thread puts it into the client's outbox; the client's own worker moves it into the output, never in the middle of
//! a reply. Knows nothing of what is sent.

use crate::clients::{Client, Message};
use crate::config::ClientClass;
use crate::engine::Engine;
use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use tenon_wire::OutBuf;
use tenon_wire::resp::{Proto, Reply, SHARED_MIN};

/// What waits to be moved into a client's output, in order.
///
/// ```text
///   any thread: put ----> waiting, one letter to the worker ----> the worker: take ----> the socket's output
///                         (further puts join what waits)
/// ```
#[derive(Debug, Default)]
pub struct Outbox {
    /// Whether there is something: what the client's worker looks at between two commands.
    waiting: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// What the client speaks. Under the lock, so that nothing in an old version follows the reply that changed it.
    proto: Proto,
    pieces: Vec<Bytes>,
    /// What was put behind the pieces: short ones together.
    tail: Vec<u8>,
    /// Bytes of all pieces and the tail.
    len: usize,
}

/// Pieces below this are copied into the tail, which costs less than to share them; of longer ones many clients hold the
/// same bytes.
const COPIED_BELOW: usize = 1024;

/// A tail of so many bytes becomes a piece.
const TAIL_MAX: usize = 4 * 1024;

impl State {
    /// Puts a piece behind what waits.
    fn put(&mut self, piece: &Written) {
        match piece {
            Written::Short(bytes) => self.put_short(bytes),
            Written::Shared(bytes) => self.put_shared(bytes.clone()),
        }
    }

    fn put_short(&mut self, bytes: &[u8]) {
        if self.tail.len() + bytes.len() > TAIL_MAX {
            self.seal_tail();
            // There will be as much again.
            self.tail.reserve_exact(TAIL_MAX);
        }
        self.len += bytes.len();
        self.tail.extend_from_slice(bytes);
    }

    fn put_shared(&mut self, bytes: Bytes) {
        self.seal_tail();
        self.len += bytes.len();
        self.pieces.push(bytes);
    }

    fn seal_tail(&mut self) {
        if !self.tail.is_empty() {
            self.pieces.push(Bytes::from(std::mem::take(&mut self.tail)));
        }
    }
}

impl Outbox {
    /// Whether there may be something to take.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Moves all that waits to the end of `out`.
    pub fn take(&self, out: &mut OutBuf) {
        let waiting = self.take_waiting(&mut self.state.lock());
        write_waiting(waiting, out);
    }

    fn take_waiting(&self, state: &mut State) -> (Vec<Bytes>, Vec<u8>) {
        self.waiting.store(false, Ordering::Relaxed);
        state.len = 0;
        (std::mem::take(&mut state.pieces), std::mem::take(&mut state.tail))
    }

    /// Puts these pieces behind what waits, if then no more than `bytes_max` do; tells whether they are the first of those.
    pub(crate) fn offer<const N: usize>(&self, pieces: [Bytes; N], bytes_max: usize) -> Option<bool> {
        let mut state = self.state.lock();
        let len: usize = pieces.iter().map(Bytes::len).sum();
        if state.len + len > bytes_max {
            return None;
        }
        for piece in pieces {
            if piece.len() < COPIED_BELOW {
                state.put_short(&piece);
            } else {
                state.put_shared(piece);
            }
        }
        Some(!self.waiting.swap(true, Ordering::Relaxed))
    }

    /// Says which version of RESP what is put from now on is written in; what waits is in the one before, and moves to the end
    /// of `out`.
    pub fn set_proto(&self, proto: Proto, out: &mut OutBuf) {
        let mut state = self.state.lock();
        state.proto = proto;
        let waiting = self.take_waiting(&mut state);
        drop(state);
        write_waiting(waiting, out);
    }
}

fn write_waiting((pieces, tail): (Vec<Bytes>, Vec<u8>), out: &mut OutBuf) {
    for piece in pieces {
        if piece.len() < SHARED_MIN {
            out.tail_for(piece.len()).extend_from_slice(&piece);
        } else {
            out.push_shared(piece);
        }
    }
    out.tail_for(tail.len()).extend_from_slice(&tail);
}

/// Something to send to any number of clients, written once in each version of RESP that one of them speaks.
pub struct Parcel<W> {
    write: W,
    /// Room that is made for what is written.
    len_hint: usize,
    resp2: Option<Written>,
    resp3: Option<Written>,
}

/// What is sent, as it is put into outboxes.
enum Written {
    Short(Vec<u8>),
    Shared(Bytes),
}

impl<W: Fn(&mut Reply<'_>)> Parcel<W> {
    /// What `write` writes. Writing nothing in one version sends nothing to those who speak it.
    pub fn new(write: W) -> Parcel<W> {
        Parcel::of_about(0, write)
    }

    /// The same for who can tell about how many bytes it is.
    pub fn of_about(len_hint: usize, write: W) -> Parcel<W> {
        Parcel { write, len_hint, resp2: None, resp3: None }
    }

    fn written(&mut self, proto: Proto) -> &Written {
        let written = match proto {
            Proto::Resp2 => &mut self.resp2,
            Proto::Resp3 => &mut self.resp3,
        };
        let (write, len_hint) = (&self.write, self.len_hint);
        written.get_or_insert_with(|| {
            let mut out = OutBuf::new();
            out.tail_for(len_hint).reserve(len_hint);
            write(&mut Reply::new(&mut out, proto));
            let bytes = out.take_joined();
            if bytes.len() < COPIED_BELOW { Written::Short(bytes) } else { Written::Shared(Bytes::from(bytes)) }
        })
    }
}

impl Engine {
    /// The most bytes that one command may answer by repeating what is stored: a client's limit for its output, or what is left
    /// of the memory's.
    pub fn answer_max(&self) -> usize {
        match (self.output_max(), self.config.maxmemory() as usize) {
            (usize::MAX, limit @ 1..) => limit.saturating_sub(tenon_ds::memory::used()),
            (output_max, _) => output_max,
        }
    }

    /// The most bytes that a client's output may have.
    pub fn output_max(&self) -> usize {
        match self.config.output_buffer_limit(ClientClass::Normal).hard_bytes {
            0 => usize::MAX,
            hard_bytes => hard_bytes as usize,
        }
    }

    /// Sends a client something, behind whatever it is being answered now. Any thread may, whatever it holds: nothing
    /// is locked in here that anyone waits in.
    ///
    /// A client that is sent more than its output may hold before its worker comes to it is closed.
    pub fn deliver(&self, client: &Client, parcel: &mut Parcel<impl Fn(&mut Reply<'_>)>) {
        let mut state = client.outbox.state.lock();
        // Who is to be closed is sent nothing more: while a call with it runs that may be long in coming.
        if client.is_told_no_more() {
            return;
        }
        let written = parcel.written(state.proto);
        if matches!(written, Written::Short(bytes) if bytes.is_empty()) {
            return;
        }
        state.put(written);
        let len = state.len as u64;
        let is_first = !client.outbox.waiting.swap(true, Ordering::Relaxed);
        drop(state);
        let hard_bytes = self.config.output_buffer_limit(client.class()).hard_bytes;
        if hard_bytes != 0 && len > hard_bytes {
            client.is_over_output_limit.store(true, Ordering::Relaxed);
            self.clients.kill(client);
        } else if is_first {
            self.clients.tell(client.info.key, Message::Output);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::{ClientInfo, ConnectionKey, Dialect};
    use crate::config::{Config, Machine};
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    fn engine() -> (Engine, Arc<Client>, Arc<AtomicUsize>) {
        let machine = Machine::of_cores(1);
        let engine = Engine::new(Config::new(machine), &[], 1);
        let letters = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&letters);
        engine.clients.set_post(Arc::new(move |_, _| {
            counted.fetch_add(1, Ordering::Relaxed);
        }));
        let key = ConnectionKey { worker: 0, index: 0, generation: 0 };
        let (remote, local) = (String::new(), String::new());
        let info = ClientInfo { key, dialect: Dialect::Resp, remote, local, fd: 0, unix: false };
        let client = engine.clients.add(info, 0);
        (engine, client, letters)
    }

    fn taken(client: &Client) -> String {
        let mut out = OutBuf::new();
        client.outbox.take(&mut out);
        String::from_utf8(out.tail().clone()).expect("what is sent here is text")
    }

    #[test]
    fn what_waits_is_announced_once_and_taken_in_order() {
        let (engine, client, letters) = engine();
        for word in ["a", "b"] {
            engine.deliver(&client, &mut Parcel::new(|reply| reply.simple(word)));
        }
        assert_eq!(letters.load(Ordering::Relaxed), 1);
        assert_eq!(taken(&client), "+a\r\n+b\r\n");
        assert!(!client.outbox.is_waiting());
        engine.deliver(&client, &mut Parcel::new(|reply| reply.simple("c")));
        assert_eq!(letters.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn short_and_long_pieces_keep_their_order() {
        let (engine, client, _) = engine();
        let mut expected = String::new();
        for (number, len) in [3, 900, COPIED_BELOW, 5, SHARED_MIN, 700, 800, TAIL_MAX, 1000, 1000, 1000, 1000, 1000, 2]
            .into_iter()
            .enumerate()
        {
            let word = char::from(b'a' + number as u8).to_string().repeat(len);
            engine.deliver(&client, &mut Parcel::of_about(len, |reply| reply.simple(&word)));
            expected.push_str(&format!("+{word}\r\n"));
            assert_eq!(client.outbox.state.lock().len, expected.len());
        }
        let mut out = OutBuf::new();
        client.outbox.take(&mut out);
        assert!(out.take_joined() == expected.as_bytes());
        let state = client.outbox.state.lock();
        assert_eq!((state.len, state.pieces.len(), state.tail.capacity()), (0, 0, 0));
    }

    #[test]
    fn everybody_gets_the_version_they_speak() {
        let (engine, client, letters) = engine();
        let mut parcel = Parcel::new(|reply| {
            if reply.proto() == Proto::Resp3 {
                reply.push(0);
            }
        });
        engine.deliver(&client, &mut parcel);
        assert_eq!((taken(&client).as_str(), letters.load(Ordering::Relaxed)), ("", 0));
        let mut out = OutBuf::new();
        client.outbox.set_proto(Proto::Resp3, &mut out);
        engine.deliver(&client, &mut parcel);
        assert_eq!(taken(&client), ">0\r\n");

        // What waits is in the old version, and comes before whatever is in the new one.
        engine.deliver(&client, &mut parcel);
        client.outbox.set_proto(Proto::Resp2, &mut out);
        assert_eq!(out.take_joined(), b">0\r\n");
        assert!(!client.outbox.is_waiting() && taken(&client).is_empty());
    }

    #[test]
    fn more_than_the_limit_ends_the_client() {
        let (engine, client, _) = engine();
        let limit: &[(&[u8], &[u8])] = &[(b"client-output-buffer-limit", b"normal 10 0 0")];
        engine.set_config(limit, crate::config::Caller::Local).expect("the limit is a valid one");
        engine.deliver(&client, &mut Parcel::new(|reply| reply.simple("1234567")));
        assert!(!client.killed.load(Ordering::Relaxed));
        engine.deliver(&client, &mut Parcel::new(|reply| reply.int(0)));
        assert!(client.killed.load(Ordering::Relaxed));
        taken(&client);
        engine.deliver(&client, &mut Parcel::new(|reply| reply.int(0)));
        assert!(!client.outbox.is_waiting(), "who is to be closed is sent nothing more");
    }
}
