//! One client's bytes in, bytes out: the two protocols behind one interface. Knows no socket.

use crate::memcache::MemcacheConnection;
use crate::resp::RespConnection;
use crate::{Ending, Flow};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tenon_engine::Engine;
use tenon_engine::clients::{Client, ClientInfo, Dialect, Message};
use tenon_engine::unsent::OUTPUT_OF_STRANGER;
use tenon_engine::wire::OutBuf;
use tenon_engine::worker::Worker;

/// A client's connection.
pub enum Connection {
    /// RESP2, RESP3 or inline.
    Resp(Box<RespConnection>),
    /// Memcached.
    Memcache(Box<MemcacheConnection>),
}

impl Connection {
    /// A new connection, which is listed among the clients until `closed`.
    pub fn open(engine: &Engine, worker: &Worker, info: ClientInfo) -> Connection {
        worker.stats.all.connections.add(1);
        let dialect = info.dialect;
        let client = engine.clients.add(info, worker.clock.now_ms);
        match dialect {
            Dialect::Resp => Connection::Resp(Box::new(RespConnection::new(engine, client))),
            Dialect::Memcached => Connection::Memcache(Box::new(MemcacheConnection::new(engine, client))),
        }
    }

    /// What others may see of the client.
    pub fn client(&self) -> &Arc<Client> {
        match self {
            Connection::Resp(connection) => connection.client(),
            Connection::Memcache(connection) => connection.client(),
        }
    }

    /// Counts bytes of its output that the kernel has taken.
    #[inline]
    pub fn note_sent(&self, worker: &Worker, bytes: usize) {
        worker.stats.sent(bytes as u64);
        let client = self.client();
        // Only the thread that runs the connection's loop writes it.
        client.sent_bytes.store(client.sent_bytes.load(Ordering::Relaxed) + bytes as u64, Ordering::Relaxed);
    }

    /// Consumes all of `input`: runs the complete commands, keeps the rest, appends the replies to `out`.
    #[inline]
    pub fn on_bytes(&mut self, engine: &Engine, worker: &mut Worker, input: &[u8], out: &mut OutBuf) -> Flow {
        match self {
            Connection::Resp(connection) => connection.on_bytes(engine, worker, input, out),
            Connection::Memcache(connection) => connection.on_bytes(engine, worker, input, out),
        }
    }

    /// Where the client's next bytes belong, if they are part of a long value: behind what is there, as many as there is
    /// capacity for. Whoever puts some there says so by [`Connection::on_filled`].
    pub fn room(&mut self) -> Option<&mut Vec<u8>> {
        match self {
            Connection::Resp(connection) => connection.room(),
            Connection::Memcache(connection) => connection.room(),
        }
    }

    /// How many bytes are missing of the long value that there is room for, in this room and behind it.
    pub fn missing(&self) -> usize {
        match self {
            Connection::Resp(connection) => connection.missing(),
            Connection::Memcache(connection) => connection.missing(),
        }
    }

    /// Goes on after so many bytes were put into the room; otherwise as `on_bytes`.
    pub fn on_filled(&mut self, engine: &Engine, worker: &mut Worker, received: usize, out: &mut OutBuf) -> Flow {
        let received = received as u64;
        worker.stats.received(received);
        let of_client = &self.client().received_bytes;
        of_client.store(of_client.load(Ordering::Relaxed) + received, Ordering::Relaxed);
        self.on_bytes(engine, worker, &[], out)
    }

    /// Goes on with what was kept, after the output has drained or a message has ended a wait.
    pub fn resume(&mut self, engine: &Engine, worker: &mut Worker, out: &mut OutBuf) -> Flow {
        self.on_bytes(engine, worker, &[], out)
    }

    /// Whether it may be served while another connection's command on this worker has not ended: most commands are then
    /// refused, which memcached's protocol has no word for.
    pub fn may_serve_meanwhile(&self) -> bool {
        matches!(self, Connection::Resp(_))
    }

    /// Takes a message from another thread.
    pub fn on_message(&mut self, engine: &Engine, worker: &mut Worker, message: Message, out: &mut OutBuf) -> Flow {
        match message {
            Message::Kill => Flow::Close,
            // Who waits for a key is not waiting for the end of a pause any more.
            Message::Unpause if self.is_blocked() => Flow::Stay,
            Message::Unpause => Flow::Continue,
            Message::RightsChanged => match self {
                Connection::Resp(connection) => {
                    if connection.may_stay(engine) {
                        Flow::Stay
                    } else {
                        Flow::Close
                    }
                }
                Connection::Memcache(connection) => {
                    if connection.may_stay(engine) {
                        Flow::Stay
                    } else {
                        Flow::Close
                    }
                }
            },
            Message::Wake => Flow::Stay,
            Message::Unblocked => self.unblocked(engine, worker, out),
            Message::Output => {
                // Who has waited for a key is answered first: what it is told may come of its own command.
                let flow = if self.is_blocked() { self.unblocked(engine, worker, out) } else { Flow::Stay };
                match self {
                    Connection::Resp(connection) => connection.take_messages(engine, out),
                    Connection::Memcache(connection) => {
                        if !connection.may_stay(engine) {
                            return Flow::Close;
                        }
                        connection.client().outbox.take(out);
                    }
                }
                flow
            }
        }
    }

    fn unblocked(&mut self, engine: &Engine, worker: &mut Worker, out: &mut OutBuf) -> Flow {
        match self {
            Connection::Resp(connection) => connection.unblocked(engine, worker, out),
            Connection::Memcache(_) => Flow::Stay,
        }
    }

    /// Whether the client waits for a key.
    pub fn is_blocked(&self) -> bool {
        match self {
            Connection::Resp(connection) => connection.session().is_parked(),
            Connection::Memcache(_) => false,
        }
    }

    /// Whether the client, if it sends no more, wants no answer to what it waits for: as with Redis it waits for others then.
    pub fn waits_for_others(&self) -> bool {
        match self {
            Connection::Resp(connection) => {
                connection.session().is_parked() && !connection.session().is_sure_of_answer()
            }
            Connection::Memcache(_) => false,
        }
    }

    /// Ends what the client waits for, as the server ends; `false` if an answer to it is on its way all the same.
    pub fn ends_unanswered(&self, engine: &Engine) -> bool {
        match self {
            Connection::Resp(connection) => engine.ends_unanswered(connection.session()),
            Connection::Memcache(_) => true,
        }
    }

    /// How much of its output the client may leave unread and still be answered, in bytes.
    pub fn unsent_max(&self, engine: &Engine) -> usize {
        match self {
            // Answers that nobody takes are no way to use up memory before AUTH (CVE-2025-21605).
            Connection::Resp(connection) if engine.wants_password(connection.session()) => OUTPUT_OF_STRANGER,
            Connection::Memcache(connection) if connection.is_stranger() => OUTPUT_OF_STRANGER,
            Connection::Resp(_) | Connection::Memcache(_) => engine.unsent_max(),
        }
    }

    /// Ends the connection.
    pub fn closed(&mut self, engine: &Engine, ending: Ending) {
        match self {
            Connection::Resp(connection) => connection.closed(engine),
            Connection::Memcache(connection) => connection.closed(engine, ending),
        }
    }
}
