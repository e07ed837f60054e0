//! What happens when a key changes that somebody keeps: messages. Knows no command.

use super::trackers::{Mode, Tracker};
use crate::args::Args;
use crate::clients::Client;
use crate::command::{Command, Flags, Run};
use crate::engine::Engine;
use crate::outbox::Parcel;
use crate::session::{Roles, Session};
use crate::worker::{NOBODY, Worker};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tenon_store::hash::KeyHash;
use tenon_wire::resp::{Proto, Reply};

/// The channel on which RESP2 clients get the messages.
const CHANNEL: &[u8] = b"__redis__:invalidate";
/// Keys that are forgotten at most for one that is noted, while there are more than `tracking-table-max-keys`.
const FORGOTTEN_MAX: usize = 100;

/// About what a message has beside its keys.
const MESSAGE_HEAD: usize = 60;
/// About what a key has there beside its bytes.
const KEY_HEAD: usize = 9;

/// What has changed.
#[derive(Clone, Copy)]
enum Stale<'a> {
    Keys(&'a [&'a [u8]]),
    /// Everything there was.
    All,
}

/// How a message reaches a client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As a push; there is no way to tell who speaks RESP2.
    Push,
    /// As a push, or on the channel to who speaks RESP2.
    Channel,
}

/// The same message for everyone whom it reaches in the same form.
fn message(stale: Stale<'_>, form: Form) -> Parcel<impl Fn(&mut Reply<'_>)> {
    let keys_len = match stale {
        Stale::Keys(keys) => keys.iter().map(|key| key.len() + KEY_HEAD).sum(),
        Stale::All => 0,
    };
    Parcel::of_about(MESSAGE_HEAD + keys_len, move |reply: &mut Reply<'_>| {
        match (reply.proto(), form) {
            (Proto::Resp3, _) => {
                reply.push(2);
                reply.bulk(b"invalidate");
            }
            (Proto::Resp2, Form::Channel) => {
                reply.push(3);
                reply.bulk(b"message");
                reply.bulk(CHANNEL);
            }
            (Proto::Resp2, Form::Push) => return,
        }
        match stale {
            Stale::Keys(keys) => {
                reply.array(keys.len());
                keys.iter().for_each(|key| reply.bulk(key));
            }
            Stale::All => reply.null(),
        }
    })
}

impl Session {
    /// Whether the session is told when a key changes that it reads by this command now.
    pub(crate) fn is_told_of(&self, command: &Command) -> bool {
        let Some(tracking) = &self.tracking else { return false };
        // A script's own commands read, not the script.
        let reads = command.flags.any(Flags::READONLY)
            && matches!(
                command.run,
                Run::Key(_) | Run::Keys(_) | Run::Each(_) | Run::Blocking(_) | Run::Following { .. }
            );
        reads && tracking.notes_reads()
    }
}

impl Engine {
    /// Notes the keys that a tracked session's command has read. Their shards are still held, so that no change goes
    /// between the read and the note.
    pub fn note_read(&self, session: &Session, command: &Command, args: &Args<'_>) {
        if session.is_told_of(command) {
            self.note_reader(session.client.id, command, args);
        }
    }

    /// Notes that a client is told when a key of this command changes. Their shards are held.
    pub(crate) fn note_reader(&self, client: u64, command: &Command, args: &Args<'_>) {
        for index in command.keys.indexes(args) {
            let key = args.get(index);
            self.tracking.table.add(self.shards.hash(key), key, client);
        }
        self.forget_surplus();
    }

    /// Forgets some of the keys beyond `tracking-table-max-keys`. Whoever keeps one is told that it is stale: nobody
    /// would tell of its next change.
    pub(crate) fn forget_surplus(&self) {
        let keys_max = self.config.tracking_table_max_keys() as usize;
        let mut forgotten = 0;
        while keys_max != 0 && self.tracking.table.keys() > keys_max && forgotten < FORGOTTEN_MAX {
            let Some((key, readers)) = self.tracking.table.take_any() else { break };
            self.tell_readers(&readers, &key, None);
            forgotten += 1;
        }
    }

    /// Tells those who keep a key that it has changed. Its shard is held.
    #[cold]
    pub(crate) fn key_changed(&self, worker: &mut Worker, hash: KeyHash, key: &[u8]) {
        if let Some(readers) = self.tracking.table.take(hash, key) {
            self.tell_readers(&readers, key, Some(worker.client));
        }
        if self.tracking.prefixes.has_one_of(key) {
            // A script may change one key a million times before anybody is told.
            match worker.broadcasts.get_mut(key) {
                Some(writer) => *writer = worker.client,
                None => _ = worker.broadcasts.insert(key.into(), worker.client),
            }
        }
    }

    /// Tells those who keep a key that it is gone, and that no command has taken it: also the client that is served meanwhile,
    /// whatever it wants to hear of what it does itself. Its shard is held.
    #[cold]
    pub(crate) fn key_gone(&self, worker: &mut Worker, key: &[u8]) {
        let served = std::mem::replace(&mut worker.client, NOBODY);
        self.key_changed(worker, self.shards.hash(key), key);
        worker.client = served;
    }

    fn tell_readers(&self, readers: &[u64], key: &[u8], writer: Option<u64>) {
        let keys = [key];
        let mut messages = messages(Stale::Keys(&keys));
        for &reader in readers {
            if let Some(tracker) = self.tracking.of(reader)
                && tracker.mode != Mode::Broadcast
                && writer.is_none_or(|writer| tracker.hears(writer))
            {
                self.tell_tracker(&tracker, &mut messages);
            }
        }
    }

    /// Tells everybody that all keys are gone. Whatever was noted is forgotten first: what is read from now on is noted
    /// anew.
    pub(crate) fn all_changed(&self) {
        if !self.tracking.is_active() {
            return;
        }
        self.tracking.table.clear();
        let mut messages = messages(Stale::All);
        for tracker in self.tracking.all() {
            self.tell_tracker(&tracker, &mut messages);
        }
    }

    /// Tells those who listen to prefixes of what this worker has changed since the last time, each in one message.
    #[inline]
    pub fn broadcast_changes(&self, worker: &mut Worker) {
        if !worker.broadcasts.is_empty() {
            self.broadcast(worker);
        }
    }

    #[cold]
    fn broadcast(&self, worker: &mut Worker) {
        let changes = std::mem::take(&mut worker.broadcasts);
        for (changed, listeners) in self.tracking.prefixes.matching(&changes) {
            let all: Vec<&[u8]> = changed.keys().copied().collect();
            let mut to_all = messages(Stale::Keys(&all));
            for listener in listeners {
                let Some(tracker) = self.tracking.of(listener) else { continue };
                let heard: Vec<&[u8]> =
                    changed.iter().filter(|(_, writer)| tracker.hears(**writer)).map(|(key, _)| *key).collect();
                if heard.len() == all.len() {
                    self.tell_tracker(&tracker, &mut to_all);
                } else if !heard.is_empty() {
                    self.tell_tracker(&tracker, &mut messages(Stale::Keys(&heard)));
                }
            }
        }
    }

    fn tell_tracker(&self, tracker: &Tracker, messages: &mut Messages<impl Fn(&mut Reply<'_>)>) {
        let Some(id) = tracker.redirect else {
            return self.deliver(&tracker.client, &mut messages.push);
        };
        // Who is to be closed is gone, though its worker may not have come to it.
        match self.clients.get(id).filter(|target| !target.is_told_no_more()) {
            Some(target) if listens(&target) => self.deliver(&target, &mut messages.channel),
            Some(target) => self.deliver(&target, &mut messages.push),
            None => {
                tracker.redirect_broken.store(true, Ordering::Relaxed);
                let mut broken = Parcel::new(|reply| {
                    if reply.proto() == Proto::Resp3 {
                        reply.push(2);
                        reply.bulk(b"tracking-redir-broken");
                        reply.int(id as i64);
                    }
                });
                self.deliver(&tracker.client, &mut broken);
            }
        }
    }
}

/// Whether a RESP2 client expects messages of channels.
fn listens(client: &Arc<Client>) -> bool {
    client.roles().has(Roles::SUBSCRIBER)
}

/// One message in both forms.
struct Messages<W> {
    push: Parcel<W>,
    channel: Parcel<W>,
}

fn messages(stale: Stale<'_>) -> Messages<impl Fn(&mut Reply<'_>)> {
    Messages { push: message(stale, Form::Push), channel: message(stale, Form::Channel) }
}
