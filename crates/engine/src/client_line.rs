//! A client's line in CLIENT LIST, CLIENT INFO and ACL LOG, in the form of Redis 8
//! (<https://redis.io/docs/latest/commands/client-list/>). Knows no command.

use crate::args::Args;
use crate::clients::{Client, Dialect};
use crate::command::Command;
use crate::engine::Engine;
use crate::pubsub::Topic;
use crate::session::{Roles, Session};
use crate::tracking::{Mode, Tracker};
use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

/// Writes lines on behalf of the client that asked for them.
pub struct Lines<'a> {
    engine: &'a Engine,
    now_ms: u64,
    /// Whoever asks, if it is a client that has a session.
    asker: Option<Asker<'a>>,
    /// The lines so far.
    pub text: String,
}

struct Asker<'a> {
    session: &'a Session,
    /// The command that asks: its last one.
    command: &'static Command,
    /// Bytes of its arguments.
    bytes: usize,
}

impl<'a> Lines<'a> {
    /// No lines yet, of the present `now_ms`, for nobody who has a session.
    pub(crate) fn for_nobody(engine: &'a Engine, now_ms: u64) -> Lines<'a> {
        Lines { engine, now_ms, asker: None, text: String::new() }
    }

    /// No lines yet, of the present `now_ms`. `asked_by` is the command that the session runs, with these arguments.
    pub fn new(
        engine: &'a Engine,
        session: &'a Session,
        now_ms: u64,
        asked_by: &'static Command,
        args: &Args<'_>,
    ) -> Lines<'a> {
        let bytes = (0..args.len()).map(|index| args.len_of(index)).sum();
        let asker = Some(Asker { session, command: asked_by, bytes });
        Lines { engine, now_ms, asker, text: String::new() }
    }

    /// Adds a client's line.
    pub fn push(&mut self, client: &Client) {
        let me = self.asker.as_ref().filter(|asker| asker.session.client.id == client.id);
        let now_ms = self.now_ms;
        // What a client has done of late is noted when its batch is over: the one that asks is in the middle of it.
        let active_ms = if me.is_some() { now_ms } else { client.active_ms.load(Relaxed) };
        let last_command = match (me, client.last_command.load(Relaxed)) {
            (Some(asker), _) if asker.session.is_in_exec() => "exec".to_owned(),
            (Some(asker), _) => asker.command.full_name(),
            (None, u32::MAX) => "NULL".to_owned(),
            (None, number) => self.engine.commands.all()[number as usize].full_name(),
        };
        let commands = client.commands.load(Relaxed);
        let input = client.input_bytes.load(Relaxed);
        let output = client.output_bytes.load(Relaxed);
        let asked = me.map_or(0, |asker| asker.bytes as u64);
        let queued = client.queued.load(Relaxed);
        let queued_bytes = client.queued_bytes.load(Relaxed);
        let (library, library_version) = client.library.lock().clone();
        let [sub, psub, ssub] = Topic::ALL.map(|topic| client.subscribed[topic as usize].load(Relaxed));
        let tracker = self.engine.tracking.of(client.id);
        let info = &client.info;
        // A string takes no error.
        let _ = writeln!(
            self.text,
            "id={id} addr={addr} laddr={laddr} fd={fd} name={name} age={age} idle={idle} flags={flags} capa={capa} db={db} sub={sub} \
             psub={psub} ssub={ssub} multi={multi} watch={watch} qbuf={input} qbuf-free=0 argv-mem={arguments} \
             multi-mem={queued_bytes} rbs=0 rbp=0 obl={output} oll=0 omem={output} tot-mem={total} events={events} \
             cmd={last_command} user={user} redir={redir} resp={resp} lib-name={library} lib-ver={library_version} \
             io-thread={thread} tot-net-in={received} tot-net-out={sent} tot-cmds={commands}",
            id = client.id,
            addr = info.remote,
            laddr = info.local,
            fd = info.fd,
            name = client.name.lock(),
            age = now_ms.saturating_sub(client.since_ms) / 1_000,
            idle = now_ms.saturating_sub(active_ms) / 1_000,
            flags = flags(client, tracker.as_deref(), me.map(|asker| asker.session)),
            capa = if client.follows_redirects.load(Relaxed) { "r" } else { "" },
            db = client.database.load(Relaxed),
            multi = if queued == u32::MAX { -1 } else { i64::from(queued) },
            watch = client.watching.load(Relaxed),
            arguments = asked + client.waiting_bytes.load(Relaxed),
            total = client.memory() + asked,
            events = if output > 0 { "rw" } else { "r" },
            user = String::from_utf8_lossy(&client.user.lock()),
            redir = tracker.as_ref().map_or(-1, |tracker| tracker.redirect.unwrap_or(0) as i64),
            // A memcached client speaks no version of RESP.
            resp = if info.dialect == Dialect::Resp { client.protocol.load(Relaxed) } else { 0 },
            thread = info.key.worker,
            received = client.received_bytes.load(Relaxed),
            sent = client.sent_bytes.load(Relaxed),
        );
    }
}

/// All flags that Redis and Valkey know.
pub const FLAGS: &str = "ABEIMNOPRSTUbcdeirtux";

/// A client's flags, as the session sees them.
pub fn flags_of(engine: &Engine, session: &Session, client: &Client) -> String {
    let is_me = client.id == session.client.id;
    flags(client, engine.tracking.of(client.id).as_deref(), is_me.then_some(session))
}

/// The flags, in Redis's order. `session` is the client's where it may be looked at: of others it is not known whether
/// a key that they watch has changed.
fn flags(client: &Client, tracker: Option<&Tracker>, session: Option<&Session>) -> String {
    let roles = client.roles();
    let known = [
        (roles.has(Roles::MONITOR), 'O'),
        (roles.has(Roles::SUBSCRIBER), 'P'),
        (client.queued.load(Relaxed) != u32::MAX, 'x'),
        (client.paused.load(Relaxed) || client.is_blocked(), 'b'),
        (roles.has(Roles::TRACKER), 't'),
        (tracker.is_some_and(Tracker::is_redirect_broken), 'R'),
        (tracker.is_some_and(|tracker| tracker.mode == Mode::Broadcast), 'B'),
        (session.is_some_and(|session| session.dirty.is_set()), 'd'),
        (client.leaving.load(Relaxed) || session.is_some_and(|session| session.closing), 'c'),
        (client.killed.load(Relaxed), 'A'),
        (client.info.unix, 'U'),
        (client.no_evict.load(Relaxed), 'e'),
        (client.no_touch.load(Relaxed), 'T'),
    ];
    let set: String = known.iter().filter(|(is_set, _)| *is_set).map(|(_, letter)| letter).collect();
    if set.is_empty() { "N".to_owned() } else { set }
}
