//! One client's state between its commands. Knows no socket and no command.

use crate::acl::{Rights, User};
use crate::args::OwnedArgs;
use crate::blocking::Parked;
use crate::clients::Client;
use crate::command::{ChannelKind, Command};
use crate::errors::CmdError;
use crate::pubsub::{Subscriptions, Topic};
use crate::table::Resolved;
use crate::tracking::{Caching, SessionTracking};
use crate::watch::{AtWatch, DirtyFlag};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tenon_wire::OutBuf;
use tenon_wire::resp::Proto;

/// What becomes of replies (CLIENT REPLY).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyMode {
    /// They are sent.
    #[default]
    On,
    /// They are not, until CLIENT REPLY ON.
    Off,
    /// The next one is not (CLIENT REPLY SKIP was the last command).
    SkipNext,
    /// This one is not.
    SkipThis,
}

impl ReplyMode {
    /// Whether what is written now goes nowhere.
    pub fn is_silent(self) -> bool {
        matches!(self, ReplyMode::Off | ReplyMode::SkipThis)
    }

    /// The mode for the next command, once one has run.
    pub fn after_command(self) -> ReplyMode {
        match self {
            ReplyMode::On | ReplyMode::SkipThis => ReplyMode::On,
            ReplyMode::Off => ReplyMode::Off,
            ReplyMode::SkipNext => ReplyMode::SkipThis,
        }
    }
}

/// What a client does beside asking and being answered; a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roles(u8);

impl Roles {
    /// Nothing.
    pub const NONE: Roles = Roles(0);
    /// It is subscribed to something.
    pub const SUBSCRIBER: Roles = Roles(1);
    /// It watches what others do (MONITOR).
    pub const MONITOR: Roles = Roles(1 << 1);
    /// What it reads is noted, so that it learns of changes (CLIENT TRACKING).
    pub const TRACKER: Roles = Roles(1 << 2);
    /// It watches what memcached's clients do (`watch`).
    pub const WATCHER: Roles = Roles(1 << 3);

    /// Whether all of `other` are in the set.
    #[inline]
    pub const fn has(self, other: Roles) -> bool {
        self.0 & other.0 == other.0
    }

    /// These and those of `other`.
    pub const fn with(self, other: Roles) -> Roles {
        Roles(self.0 | other.0)
    }

    /// The set as a number, to be shared.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The set of a number that `bits` gave.
    pub const fn from_bits(bits: u8) -> Roles {
        Roles(bits)
    }
}

/// What stood against its scripts' writes when EXEC began.
#[derive(Debug)]
pub(crate) struct AtExec {
    pub(crate) refusal: Option<CmdError>,
    pub(crate) out_of_memory: bool,
}

/// Commands that MULTI has queued.
#[derive(Debug, Default)]
pub struct Transaction {
    /// The commands in order.
    pub queue: Vec<(Resolved, OwnedArgs)>,
    /// Whether a command was refused while it was queued, so that EXEC must be too.
    pub aborted: bool,
}

/// A watched key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedKey {
    /// In which database.
    pub database: usize,
    /// The key.
    pub key: Box<[u8]>,
    /// What was there when it came to be watched.
    pub found: AtWatch,
}

/// One client's state.
#[derive(Debug)]
pub struct Session {
    /// What others may see of it.
    pub client: Arc<Client>,
    /// The selected database.
    pub database: usize,
    /// The RESP version that replies are written in.
    pub proto: Proto,
    /// Whether it may run commands that want authentication.
    pub authenticated: bool,
    user: Arc<User>,
    /// The user's rights, as they were when `rights_epoch` was the number of changes.
    rights: Arc<Rights>,
    rights_epoch: u64,
    /// Whether it may run every command there is: it need not authenticate, and its rights refuse nothing.
    unrestricted: bool,
    /// Whether its reads and writes count as accesses (off with CLIENT NO-TOUCH).
    pub touches: bool,
    /// What becomes of replies.
    pub reply: ReplyMode,
    /// MULTI's queue, within MULTI.
    pub transaction: Option<Box<Transaction>>,
    /// The keys of WATCH.
    pub watched: Vec<WatchedKey>,
    /// Set when a watched key has changed.
    pub dirty: DirtyFlag,
    /// What the client does beside asking and being answered.
    pub(crate) roles: Roles,
    /// What it is subscribed to, if to anything.
    pub(crate) subscriptions: Option<Box<Subscriptions>>,
    /// Its wait for a key, while it is in one: no command runs then.
    pub(crate) parked: Option<Parked>,
    /// How it is told of changes, if it is (CLIENT TRACKING).
    pub tracking: Option<Box<SessionTracking>>,
    /// What held when EXEC began to run its queue, while it does: nothing may wait then, nor begin to listen to other clients'
    /// commands.
    pub(crate) in_exec: Option<AtExec>,
    /// How often its command has come again since it first came (`ServerCx::comes_later`).
    pub(crate) times_put_off: u32,
    /// Whether what EXEC has written is sent though it began in silence (CLIENT REPLY OFF): then it is messages, and what was
    /// answered once a CLIENT REPLY ON had run.
    pub(crate) exec_is_heard: bool,
    /// The number of the pause that the command which runs now has begun.
    pub(crate) pausing: Option<u64>,
    /// Whether the connection is to be closed once the replies are sent.
    pub closing: bool,
}

impl Session {
    /// Keeps the room of a list of watched keys that has become empty, unless that is much: who has watched watches again.
    pub(crate) fn watches_nothing(&mut self, emptied: Vec<WatchedKey>) {
        const KEPT: usize = 16;
        debug_assert!(emptied.is_empty() && self.watched.is_empty());
        if emptied.capacity() <= KEPT {
            self.watched = emptied;
        }
    }

    /// A session at its start.
    ///
    /// It may do nothing yet: `Engine::open_session` looks up the user's rights.
    pub(crate) fn new(client: Arc<Client>, user: Arc<User>, authenticated: bool, rights_epoch: u64) -> Session {
        let rights = user.rights();
        Session {
            client,
            database: 0,
            proto: Proto::Resp2,
            authenticated,
            user,
            rights,
            rights_epoch,
            unrestricted: false,
            touches: true,
            reply: ReplyMode::On,
            transaction: None,
            watched: Vec::new(),
            dirty: DirtyFlag::default(),
            roles: Roles::NONE,
            subscriptions: None,
            parked: None,
            tracking: None,
            in_exec: None,
            times_put_off: 0,
            exec_is_heard: false,
            pausing: None,
            closing: false,
        }
    }

    /// Whether every command may run at once: allowed all of them, not within MULTI, replies on, and nothing sent beside
    /// them.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.unrestricted && self.transaction.is_none() && self.reply == ReplyMode::On && self.roles == Roles::NONE
    }

    /// The user that it is.
    pub fn user(&self) -> &Arc<User> {
        &self.user
    }

    /// What it may do, as far as it knows: see `Engine::follow_rights`.
    #[inline]
    pub fn rights(&self) -> &Rights {
        &self.rights
    }

    #[inline]
    pub(crate) fn rights_epoch(&self) -> u64 {
        self.rights_epoch
    }

    /// Makes it a user's; the rights follow by `set_rights`.
    pub(crate) fn set_user(&mut self, user: Arc<User>, authenticated: bool) {
        self.user = user;
        self.authenticated = authenticated;
    }

    /// Notes what it may do, as of so many changes; `may_run` says whether it need not authenticate any more.
    pub(crate) fn set_rights(&mut self, rights: Arc<Rights>, epoch: u64, may_run: bool) {
        self.unrestricted = may_run && rights.is_everything();
        self.rights = rights;
        self.rights_epoch = epoch;
    }

    /// What it may do, as far as it knows; another one whenever that has changed.
    pub(crate) fn rights_shared(&self) -> Arc<Rights> {
        Arc::clone(&self.rights)
    }

    /// Whether it may still use the channels that it is subscribed to.
    pub(crate) fn may_use_its_channels(&self) -> bool {
        Topic::ALL.into_iter().all(|topic| {
            let kind = if topic == Topic::Pattern { ChannelKind::Pattern } else { ChannelKind::Literal };
            self.subscribed_names(topic).all(|name| self.rights.may_use_channel(name, kind))
        })
    }

    /// Whether it waits for a key.
    pub fn is_parked(&self) -> bool {
        self.parked.is_some()
    }

    /// Whether what it is parked for comes by itself, its command's next slice, the end of what ran before its pause, or of what
    /// is done on another thread: what the client asks for is done, whether it goes on sending or not.
    pub fn is_sure_of_answer(&self) -> bool {
        matches!(self.parked, Some(Parked::InSlices(_) | Parked::Pausing(_) | Parked::Away { .. }))
    }

    /// What the client does beside asking and being answered.
    pub fn roles(&self) -> Roles {
        self.roles
    }

    /// Whether EXEC runs its queue now.
    pub fn is_in_exec(&self) -> bool {
        self.in_exec.is_some()
    }

    /// Notes that a command is over: CLIENT CACHING was said for it, unless it was one about the client itself, or
    /// MULTI goes on. `None`: a command that is none.
    pub(crate) fn end_caching(&mut self, command: Option<&Command>) {
        if self.transaction.is_none()
            && let Some(tracking) = &mut self.tracking
            && command.is_none_or(|command| !command.name.starts_with("CLIENT "))
        {
            tracking.caching = Caching::Unsaid;
        }
    }

    /// Adds a role or takes it away.
    pub(crate) fn set_role(&mut self, role: Roles, has_it: bool) {
        self.roles = Roles(if has_it { self.roles.0 | role.0 } else { self.roles.0 & !role.0 });
        self.client.roles.store(self.roles.0, Ordering::Relaxed);
    }

    /// How many subscriptions there are, as the replies to one topic's commands count them.
    pub fn subscription_count(&self, topic: Topic) -> usize {
        self.subscriptions.as_ref().map_or(0, |subscriptions| subscriptions.count(topic))
    }

    /// Whether the client reads nothing but messages and the answers to what is about them: RESP2 cannot tell those from
    /// other replies.
    pub fn only_listens(&self) -> bool {
        self.proto == Proto::Resp2 && self.roles.has(Roles::SUBSCRIBER)
    }

    /// What the session is subscribed to, of one topic, in the order of the bytes.
    pub fn subscribed_names(&self, topic: Topic) -> impl Iterator<Item = &[u8]> {
        self.subscriptions.iter().flat_map(move |subscriptions| subscriptions.of(topic)).map(|name| &**name)
    }

    /// Selects a database.
    pub fn select(&mut self, database: usize) {
        self.database = database;
        self.client.database.store(database as u32, Ordering::Relaxed);
    }

    /// Sets the RESP version of replies. What the client is sent beside those is written to `out` first, as far as it is in the
    /// version before.
    pub fn set_proto(&mut self, proto: Proto, out: &mut OutBuf) {
        let number = match proto {
            Proto::Resp2 => 2,
            Proto::Resp3 => 3,
        };
        self.proto = proto;
        self.client.outbox.set_proto(proto, out);
        self.client.protocol.store(number, Ordering::Relaxed);
    }

    /// Starts or ends MULTI.
    pub fn set_transaction(&mut self, transaction: Option<Box<Transaction>>) {
        self.client.queued_bytes.store(0, Ordering::Relaxed);
        self.client.queued.store(if transaction.is_some() { 0 } else { u32::MAX }, Ordering::Relaxed);
        self.transaction = transaction;
    }

    /// Notes that MULTI's queue must not run any more, as a command was refused.
    pub fn abort_transaction(&mut self) {
        if let Some(transaction) = &mut self.transaction {
            transaction.aborted = true;
        }
    }
}
