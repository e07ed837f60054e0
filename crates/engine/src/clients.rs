//! The list of clients, for CLIENT LIST, CLIENT KILL and messages to a connection. Knows no socket.

use crate::acl::DEFAULT_USER;
use crate::blocking::Waiter;
use crate::clock::monotonic_ms;
use crate::config::ClientClass;
use crate::outbox::Outbox;
use crate::pubsub::Topic;
use crate::session::Roles;
use crate::session::{Session, WatchedKey};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Which connection a message is for; only whoever moves the bytes knows what the numbers mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionKey {
    /// The worker that owns it.
    pub worker: u32,
    /// Its place there.
    pub index: u32,
    /// How often that place was used before.
    pub generation: u32,
}

impl ConnectionKey {
    /// Of whoever has sent a datagram to this worker: nothing can be posted there.
    pub const fn of_datagram(worker: u32) -> ConnectionKey {
        ConnectionKey { worker, index: u32::MAX, generation: u32::MAX }
    }

    /// Whether there is a connection that can be told something.
    pub fn is_connection(self) -> bool {
        self.index != u32::MAX
    }
}

/// A message to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Close the connection (CLIENT KILL).
    Kill,
    /// Look again whether the connection may go on (CLIENT UNPAUSE).
    Unpause,
    /// The client's wait for a key is over.
    Unblocked,
    /// Look whether its user may still use the channels that it is subscribed to.
    RightsChanged,
    /// Something lies in the client's outbox.
    Output,
    /// For a worker: what it holds may leave.
    Wake,
}

/// Which protocol a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// RESP2, RESP3 or inline.
    Resp,
    /// Memcached.
    Memcached,
}

/// What a memcached client has to send next, as far as its last bytes tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Awaited {
    /// A request.
    Request,
    /// The rest of a data block.
    Data,
    /// The rest of what was refused.
    Refused,
}

/// What a connection is, known when it is accepted.
#[derive(Clone, Debug)]
pub struct ClientInfo {
    /// Where messages to it go.
    pub key: ConnectionKey,
    /// Its protocol.
    pub dialect: Dialect,
    /// The client's end, as CLIENT LIST shows it.
    pub remote: String,
    /// The server's end.
    pub local: String,
    /// The socket's number.
    pub fd: i32,
    /// Whether it came through a UNIX socket.
    pub unix: bool,
}

impl ClientInfo {
    /// Whether the client is on this machine: it came through a UNIX socket or over loopback.
    pub fn is_local(&self) -> bool {
        let address = self.remote.parse::<SocketAddr>().map(|address| address.ip().to_canonical());
        self.unix || address.is_ok_and(|ip| ip.is_loopback())
    }
}

/// What others may see of a session; the session's worker writes it, now and then.
#[derive(Debug)]
pub struct Client {
    /// The number that CLIENT ID gives.
    pub id: u64,
    /// What it is.
    pub info: ClientInfo,
    /// When it connected, in milliseconds since the UNIX epoch.
    pub since_ms: u64,
    /// CLIENT SETNAME's name.
    pub name: Mutex<String>,
    /// CLIENT SETINFO's LIB-NAME and LIB-VER.
    pub library: Mutex<(String, String)>,
    /// The name of the user that it is.
    pub user: Mutex<Vec<u8>>,
    /// The number of its last login by a password of the default user, among those of all clients; 0: there was none.
    login: AtomicU64,
    /// When it last sent something, in milliseconds since the UNIX epoch.
    pub active_ms: AtomicU64,
    /// The number of its last command in the table; `u32::MAX`: none yet.
    pub last_command: AtomicU32,
    /// Whether it is closed as it was sent more than its output may hold.
    pub is_over_output_limit: AtomicBool,
    /// The database that it has selected.
    pub database: AtomicU32,
    /// RESP version.
    pub protocol: AtomicU8,
    /// Commands queued by MULTI; `u32::MAX`: not in MULTI.
    pub queued: AtomicU32,
    /// Bytes of memory that MULTI's queue takes.
    pub queued_bytes: AtomicU64,
    /// Bytes of the command that it waits with, and about what its places in the keys' queues take.
    pub waiting_bytes: AtomicU64,
    /// Keys watched.
    pub watching: AtomicU32,
    /// Bytes of the keys that it watches, of the names of what it has subscribed to, and of the prefixes that it tracks.
    pub(crate) names_bytes: AtomicU64,
    /// What it does beside asking and being answered: the bits of [`Roles`].
    pub roles: AtomicU8,
    /// How many channels, patterns and shard channels it is subscribed to.
    pub subscribed: [AtomicU32; Topic::ALL.len()],
    /// What it has to send next: an [`Awaited`].
    awaited: AtomicU8,
    /// Bytes of its input that are kept.
    pub input_bytes: AtomicU64,
    /// When the last of those came from a client of memcached's protocol, in milliseconds of the monotonic clock.
    pub input_ms: AtomicU64,
    /// Bytes of replies that are not sent yet.
    pub output_bytes: AtomicU64,
    /// Bytes of memory that its unsent output takes, values that it shares with the data counted whole.
    pub output_memory: AtomicU64,
    /// Bytes it has sent in all.
    pub received_bytes: AtomicU64,
    /// Bytes it was sent in all, as far as the kernel has taken them.
    pub sent_bytes: AtomicU64,
    /// Commands it has run.
    pub commands: AtomicU64,
    /// Whether it wants never to be evicted (CLIENT NO-EVICT).
    pub no_evict: AtomicBool,
    /// Whether its reads leave the access clock alone (CLIENT NO-TOUCH).
    pub no_touch: AtomicBool,
    /// Whether it says that it follows redirections (CLIENT CAPA).
    pub follows_redirects: AtomicBool,
    /// Whether it waits for the end of a CLIENT PAUSE.
    pub paused: AtomicBool,
    /// Its wait for a key, while it is in one.
    pub(crate) waiter: Mutex<Option<Arc<Waiter>>>,
    /// Whether it is to be closed.
    pub killed: AtomicBool,
    /// Whether it is to be closed once its replies are sent, and is sent nothing else.
    pub leaving: AtomicBool,
    /// The log's position behind the last record of its own that another client's worker has appended: its blocked command
    /// was served there. What its own worker appends is in [`Worker::journaled`](crate::worker::Worker::journaled).
    pub journaled: AtomicU64,
    /// The log's position behind the last record that was appended for it; 0: there was none.
    pub(crate) written: AtomicU64,
    /// What others have sent to it.
    pub outbox: Outbox,
}

impl Client {
    /// Whether it is sent nothing more beside replies.
    pub(crate) fn is_told_no_more(&self) -> bool {
        self.killed.load(Ordering::Acquire) || self.leaving.load(Ordering::Acquire)
    }

    /// Whether it is gone for others, even if its worker has not closed it yet. As long as it has replies to take they can close
    /// it, and it takes memory.
    pub fn is_gone(&self) -> bool {
        self.killed.load(Ordering::Acquire)
            || self.leaving.load(Ordering::Acquire) && self.output_bytes.load(Ordering::Relaxed) == 0
    }

    /// Whether it waits for a key.
    pub fn is_blocked(&self) -> bool {
        self.waiter.lock().is_some()
    }

    /// A client that is in no list: a log that is read back.
    pub(crate) fn of_nobody(info: ClientInfo) -> Client {
        Client::new(0, info, 0)
    }

    fn new(id: u64, info: ClientInfo, now_ms: u64) -> Client {
        Client {
            id,
            info,
            since_ms: now_ms,
            name: Mutex::default(),
            library: Mutex::default(),
            user: Mutex::new(DEFAULT_USER.to_vec()),
            login: AtomicU64::new(0),
            active_ms: AtomicU64::new(now_ms),
            last_command: AtomicU32::new(u32::MAX),
            is_over_output_limit: AtomicBool::new(false),
            database: AtomicU32::new(0),
            protocol: AtomicU8::new(2),
            queued: AtomicU32::new(u32::MAX),
            names_bytes: AtomicU64::new(0),
            queued_bytes: AtomicU64::new(0),
            waiting_bytes: AtomicU64::new(0),
            watching: AtomicU32::new(0),
            roles: AtomicU8::new(0),
            subscribed: Default::default(),
            awaited: AtomicU8::new(Awaited::Request as u8),
            input_bytes: AtomicU64::new(0),
            input_ms: AtomicU64::new(monotonic_ms()),
            output_bytes: AtomicU64::new(0),
            output_memory: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            no_evict: AtomicBool::new(false),
            no_touch: AtomicBool::new(false),
            follows_redirects: AtomicBool::new(false),
            paused: AtomicBool::new(false),
            waiter: Mutex::default(),
            killed: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            journaled: AtomicU64::new(0),
            written: AtomicU64::new(0),
            outbox: Outbox::default(),
        }
    }

    /// What it has to send next.
    pub fn awaited(&self) -> Awaited {
        let all = [Awaited::Request, Awaited::Data, Awaited::Refused];
        all[usize::from(self.awaited.load(Ordering::Relaxed))]
    }

    /// Says what it has to send next.
    #[inline]
    pub fn set_awaited(&self, awaited: Awaited) {
        self.awaited.store(awaited as u8, Ordering::Relaxed);
    }

    /// What it does beside asking and being answered.
    pub fn roles(&self) -> Roles {
        Roles::from_bits(self.roles.load(Ordering::Relaxed))
    }

    /// Says what it does beside asking and being answered.
    pub fn set_roles(&self, roles: Roles) {
        self.roles.store(roles.bits(), Ordering::Relaxed);
    }

    /// Whose limits hold for its output.
    pub fn class(&self) -> ClientClass {
        if self.roles().has(Roles::SUBSCRIBER) { ClientClass::Pubsub } else { ClientClass::Normal }
    }
}

impl Client {
    /// Notes how far the log is behind what was appended for it. Only the client's worker says so.
    #[inline]
    pub(crate) fn note_written(&self, position: u64) {
        self.written.store(position, Ordering::Relaxed);
    }

    /// Notes that it watches none of these keys any more, which were all.
    pub(crate) fn watches_nothing(&self, watched: &[WatchedKey]) {
        let bytes: usize = watched.iter().map(|watch| watch.key.len()).sum();
        self.names_bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
        self.watching.store(0, Ordering::Relaxed);
    }

    /// Notes that so many of its commands have run. Only the client's worker says so.
    pub(crate) fn count_commands(&self, count: u64) {
        self.commands.store(self.commands.load(Ordering::Relaxed) + count, Ordering::Relaxed);
    }

    /// Bytes of memory that the client takes: itself, input that is kept, commands that MULTI has queued or that it waits
    /// with, output that is not sent, and about what it watches, has subscribed to and tracks by prefix.
    pub fn memory(&self) -> u64 {
        // Beside the names, as measured with 20,000 and 100,000.
        const WATCHED: u64 = 190;
        const SUBSCRIBED: [(Topic, u64); 3] =
            [(Topic::Channel, 100), (Topic::Pattern, 280), (Topic::ShardChannel, 100)];
        let buffers =
            [&self.input_bytes, &self.queued_bytes, &self.waiting_bytes, &self.output_bytes, &self.names_bytes];
        let own = (size_of::<Client>() + size_of::<Session>()) as u64;
        let watched = u64::from(self.watching.load(Ordering::Relaxed)) * WATCHED;
        let subscribed = SUBSCRIBED
            .iter()
            .map(|&(topic, bytes)| u64::from(self.subscribed[topic as usize].load(Ordering::Relaxed)) * bytes);
        own + watched + subscribed.sum::<u64>() + buffers.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum::<u64>()
    }
}

/// How messages reach connections.
pub type Post = Arc<dyn Fn(ConnectionKey, Message) + Send + Sync>;

/// Who came last; to be compared with later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latest {
    id: u64,
    login: u64,
}

/// All clients.
#[derive(Default)]
pub struct Clients {
    next_id: AtomicU64,
    /// How often a client was let in by a password of the default user.
    logins: AtomicU64,
    all: Mutex<BTreeMap<u64, Arc<Client>>>,
    /// How many they are.
    count: AtomicUsize,
    post: std::sync::OnceLock<Post>,
}

impl Clients {
    /// Says how messages reach connections; once, before the first client.
    pub fn set_post(&self, post: Post) {
        assert!(self.post.set(post).is_ok(), "how messages are posted is said once");
    }

    /// How messages reach connections, if anybody moves bytes.
    pub(crate) fn post(&self) -> Option<Post> {
        self.post.get().cloned()
    }

    /// Who has come last, and who has logged in last as the default user.
    pub(crate) fn latest(&self) -> Latest {
        Latest { id: self.next_id.load(Ordering::Relaxed), login: self.logins.load(Ordering::SeqCst) }
    }

    /// Notes that a password of the default user, which it had a moment ago, lets a client in.
    pub(crate) fn note_login(&self, client: &Client) {
        client.login.store(self.logins.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
    }

    /// Closes the connections of who has come since.
    pub(crate) fn kill_newer(&self, latest: Latest) {
        self.kill_all(|client| client.id > latest.id);
    }

    /// Closes the connections of who has logged in as the default user since.
    pub(crate) fn kill_logged_in_since(&self, latest: Latest) {
        self.kill_all(|client| client.login.load(Ordering::SeqCst) > latest.login);
    }

    fn kill_all(&self, is_meant: impl Fn(&Client) -> bool) {
        self.list().iter().filter(|client| is_meant(client)).for_each(|client| self.kill(client));
    }

    /// Adds a client.
    pub fn add(&self, info: ClientInfo, now_ms: u64) -> Arc<Client> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed) + 1;
        let client = Arc::new(Client::new(id, info, now_ms));
        let mut all = self.all.lock();
        all.insert(id, Arc::clone(&client));
        self.count.store(all.len(), Ordering::Relaxed);
        client
    }

    /// A client that is in no list: one of whom nothing is known but one request.
    pub fn unlisted(&self, info: ClientInfo, now_ms: u64) -> Arc<Client> {
        Arc::new(Client::new(self.next_id.fetch_add(1, Ordering::Relaxed) + 1, info, now_ms))
    }

    /// Takes a client away.
    pub fn remove(&self, id: u64) {
        let mut all = self.all.lock();
        all.remove(&id);
        self.count.store(all.len(), Ordering::Relaxed);
    }

    /// How many clients are connected.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Every client, oldest first.
    pub fn list(&self) -> Vec<Arc<Client>> {
        self.all.lock().values().cloned().collect()
    }

    /// Calls `visit` with every client, oldest first. None comes or goes meanwhile.
    pub(crate) fn each(&self, visit: impl FnMut(&Client)) {
        self.all.lock().values().map(|client| &**client).for_each(visit);
    }

    /// Whether there is a client between these addresses, its own and the server's. One alone says nothing: two sockets may
    /// have it, to different others.
    pub fn has_one_between(&self, remote: SocketAddr, local: SocketAddr) -> bool {
        let is = |text: &str, address: SocketAddr| {
            text.parse().is_ok_and(|other: SocketAddr| {
                other.port() == address.port() && other.ip().to_canonical() == address.ip().to_canonical()
            })
        };
        let clients = self.all.lock();
        clients.values().any(|client| is(&client.info.local, local) && is(&client.info.remote, remote))
    }

    /// The client of this number.
    pub fn get(&self, id: u64) -> Option<Arc<Client>> {
        self.all.lock().get(&id).cloned()
    }

    /// Closes a client's connection soon: it runs no further command, and what it was not sent yet is lost. A session
    /// that ends itself sets `closing` instead, so that its reply still leaves.
    pub fn kill(&self, client: &Client) {
        client.killed.store(true, Ordering::Release);
        self.tell(client.info.key, Message::Kill);
    }

    /// Sends a message to a connection; nothing happens when it is gone, or when nothing moves bytes (in process).
    pub fn tell(&self, key: ConnectionKey, message: Message) {
        if let Some(post) = self.post.get() {
            post(key, message);
        }
    }
}
