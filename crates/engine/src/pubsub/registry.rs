//! Who is subscribed to what, for all workers. Knows no session and no command.

use crate::clients::Client;
use crate::engine::Engine;
use crate::high_water::HighWater;
use crate::outbox::Parcel;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tenon_ds::glob::{Case, glob};
use tenon_store::hash::KeyHash;

/// Parts that channels are split into by their hashes, each with a lock of its own; a power of two.
const STRIPES: usize = 64;

/// About what a message has beside its names and its text.
const MESSAGE_HEAD: usize = 60;

/// The two spaces of channel names: the same name is another channel in the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Channels of the whole cluster (SUBSCRIBE, PUBLISH).
    Global,
    /// Channels of one slot (SSUBSCRIBE, SPUBLISH).
    Shard,
}

impl Scope {
    /// The first word of a message.
    const fn message(self) -> &'static [u8] {
        match self {
            Scope::Global => b"message",
            Scope::Shard => b"smessage",
        }
    }
}

/// Subscribers by their numbers: many of one channel can come and go quickly.
type Subscribers = BTreeMap<u64, Arc<Client>>;

/// Channels whose hashes end alike. The lock is held while a message of one of them is handed out, so that everybody
/// gets a channel's messages in one order.
type Stripe = Mutex<Names>;

/// Channels or patterns, and who is subscribed to them.
#[derive(Default)]
struct Names {
    by_name: HashMap<Box<[u8]>, Subscribers>,
    most: HighWater,
}

impl Names {
    /// Adds a subscriber; tells whether it is the first of its name.
    fn add(&mut self, name: &[u8], client: &Arc<Client>) -> bool {
        let subscribers = self.by_name.entry(name.into()).or_default();
        let is_new = subscribers.is_empty();
        subscribers.insert(client.id, Arc::clone(client));
        self.most.rise(self.by_name.len());
        is_new
    }

    /// Takes a subscriber out; tells whether it was the last of its name.
    fn remove(&mut self, name: &[u8], client: &Client) -> bool {
        let Some(subscribers) = self.by_name.get_mut(name) else { return false };
        subscribers.remove(&client.id);
        if !subscribers.is_empty() {
            return false;
        }
        self.by_name.remove(name);
        if let Some(room) = self.most.fall(self.by_name.len()) {
            self.by_name.shrink_to(room);
        }
        true
    }
}

/// Channels that have subscribers.
struct Channels {
    stripes: Box<[Stripe]>,
    /// How many there are.
    count: AtomicUsize,
}

impl Default for Channels {
    fn default() -> Channels {
        Channels { stripes: (0..STRIPES).map(|_| Stripe::default()).collect(), count: AtomicUsize::new(0) }
    }
}

impl Channels {
    fn stripe(&self, hash: KeyHash) -> &Stripe {
        &self.stripes[hash.shard(STRIPES)]
    }
}

/// Everybody's subscriptions.
///
/// The locks are taken in this order, whatever shards are held: a stripe, the patterns, a client's outbox. Nobody who
/// holds one of them waits for anything else.
#[derive(Default)]
pub struct PubSub {
    global: Channels,
    shard: Channels,
    patterns: RwLock<Names>,
    /// How many patterns there are: without one nobody looks at the list.
    pattern_count: AtomicUsize,
}

impl PubSub {
    fn channels(&self, scope: Scope) -> &Channels {
        match scope {
            Scope::Global => &self.global,
            Scope::Shard => &self.shard,
        }
    }

    /// How many channels have subscribers.
    pub fn channel_count(&self, scope: Scope) -> usize {
        self.channels(scope).count.load(Ordering::Relaxed)
    }

    /// How many different patterns have subscribers.
    pub fn pattern_count(&self) -> usize {
        self.pattern_count.load(Ordering::Relaxed)
    }

    /// Whether anybody may be subscribed to a channel of the whole cluster, by name or by pattern.
    pub(crate) fn may_have_subscribers(&self) -> bool {
        self.channel_count(Scope::Global) > 0 || self.pattern_count() > 0
    }

    /// The channels that have subscribers and match a pattern, if one is given.
    pub fn matching(&self, scope: Scope, pattern: Option<&[u8]>) -> Vec<Box<[u8]>> {
        let is_wanted = |channel: &[u8]| pattern.is_none_or(|pattern| glob(pattern, channel, Case::Sensitive));
        let mut found = Vec::new();
        for stripe in &self.channels(scope).stripes {
            found.extend(stripe.lock().by_name.keys().filter(|channel| is_wanted(channel)).cloned());
        }
        found
    }

    pub(super) fn add(&self, scope: Scope, hash: KeyHash, channel: &[u8], client: &Arc<Client>) {
        let channels = self.channels(scope);
        let mut stripe = channels.stripe(hash).lock();
        if stripe.add(channel, client) {
            channels.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn remove(&self, scope: Scope, hash: KeyHash, channel: &[u8], client: &Client) {
        let channels = self.channels(scope);
        let mut stripe = channels.stripe(hash).lock();
        if stripe.remove(channel, client) {
            channels.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub(super) fn add_pattern(&self, pattern: &[u8], client: &Arc<Client>) {
        let mut patterns = self.patterns.write();
        patterns.add(pattern, client);
        self.pattern_count.store(patterns.by_name.len(), Ordering::Relaxed);
    }

    pub(super) fn remove_pattern(&self, pattern: &[u8], client: &Client) {
        let mut patterns = self.patterns.write();
        patterns.remove(pattern, client);
        self.pattern_count.store(patterns.by_name.len(), Ordering::Relaxed);
    }
}

impl Engine {
    /// Sends a message to all subscribers of a channel, and of patterns that match it; gives how often it was sent. Any
    /// shards may be held meanwhile.
    pub fn publish(&self, scope: Scope, channel: &[u8], message: &[u8]) -> usize {
        let pubsub = &self.pubsub;
        let with_patterns = scope == Scope::Global && pubsub.pattern_count() > 0;
        if pubsub.channel_count(scope) == 0 && !with_patterns {
            return 0;
        }
        let mut sent = 0;
        let stripe = pubsub.channels(scope).stripe(self.shards.hash(channel)).lock();
        if let Some(subscribers) = stripe.by_name.get(channel) {
            let mut parcel = Parcel::of_about(MESSAGE_HEAD + channel.len() + message.len(), |reply| {
                reply.push(3);
                reply.bulk(scope.message());
                reply.bulk(channel);
                reply.bulk(message);
            });
            subscribers.values().for_each(|client| self.deliver(client, &mut parcel));
            sent += subscribers.len();
        }
        if with_patterns {
            for (pattern, subscribers) in &pubsub.patterns.read().by_name {
                if !glob(pattern, channel, Case::Sensitive) {
                    continue;
                }
                let len = MESSAGE_HEAD + pattern.len() + channel.len() + message.len();
                let mut parcel = Parcel::of_about(len, |reply| {
                    reply.push(4);
                    reply.bulk(b"pmessage");
                    reply.bulk(pattern);
                    reply.bulk(channel);
                    reply.bulk(message);
                });
                subscribers.values().for_each(|client| self.deliver(client, &mut parcel));
                sent += subscribers.len();
            }
        }
        sent
    }

    /// How many clients are subscribed to a channel by its name.
    pub fn subscriber_count(&self, scope: Scope, channel: &[u8]) -> usize {
        let stripe = self.pubsub.channels(scope).stripe(self.shards.hash(channel)).lock();
        stripe.by_name.get(channel).map_or(0, Subscribers::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::{ClientInfo, ConnectionKey, Dialect};
    use crate::config::{Config, Machine};
    use crate::pubsub::Topic;
    use crate::session::Session;
    use tenon_wire::OutBuf;

    const PUBLISHERS: usize = 4;
    const MESSAGES: usize = 500;

    fn session(engine: &Engine) -> Session {
        let key = ConnectionKey { worker: 0, index: 0, generation: 0 };
        let (remote, local) = (String::new(), String::new());
        let info = ClientInfo { key, dialect: Dialect::Resp, remote, local, fd: 0, unix: false };
        engine.open_session(engine.clients.add(info, 0))
    }

    fn received(session: &Session) -> Vec<u8> {
        let mut out = OutBuf::new();
        session.client.outbox.take(&mut out);
        out.tail().clone()
    }

    #[test]
    fn who_unsubscribes_gives_back_the_room_of_the_tables() {
        const CHANNELS: usize = 50_000;
        let engine = Engine::new(Config::new(Machine::of_cores(1)), &[], 1);
        let mut listener = session(&engine);
        let names: Vec<String> = (0..CHANNELS).map(|number| format!("channel {number}")).collect();
        let room = |topic| -> usize {
            let of = |names: &Names| names.by_name.capacity();
            match topic {
                Topic::Pattern => of(&engine.pubsub.patterns.read()),
                Topic::Channel => engine.pubsub.global.stripes.iter().map(|stripe| of(&stripe.lock())).sum(),
                Topic::ShardChannel => engine.pubsub.shard.stripes.iter().map(|stripe| of(&stripe.lock())).sum(),
            }
        };
        for topic in Topic::ALL {
            for name in &names {
                engine.subscribe(&mut listener, topic, name.as_bytes());
            }
            assert!(room(topic) >= CHANNELS);
            for name in &names {
                engine.unsubscribe(&mut listener, topic, name.as_bytes());
            }
            assert!(room(topic) <= 64 * STRIPES, "{}", room(topic));
        }
        engine.end_session(&mut listener);
    }

    #[test]
    fn everybody_gets_a_channels_messages_in_one_order() {
        let machine = Machine::of_cores(1);
        let engine = Engine::new(Config::new(machine), &[], 1);
        let mut listeners = [session(&engine), session(&engine)];
        for listener in &mut listeners {
            engine.subscribe(listener, Topic::Channel, b"c");
        }
        let mut by_pattern = session(&engine);
        engine.subscribe(&mut by_pattern, Topic::Pattern, b"*");
        let mut fickle = session(&engine);
        std::thread::scope(|scope| {
            for publisher in 0..PUBLISHERS {
                let engine = &engine;
                scope.spawn(move || {
                    for number in 0..MESSAGES {
                        let sent = engine.publish(Scope::Global, b"c", format!("{publisher} {number}").as_bytes());
                        assert!((3..=4).contains(&sent), "{sent}");
                    }
                });
            }
            // One that comes and goes meanwhile disturbs nobody, and gets nothing once it is gone.
            for _ in 0..MESSAGES {
                engine.subscribe(&mut fickle, Topic::Channel, b"c");
                engine.unsubscribe(&mut fickle, Topic::Channel, b"c");
                received(&fickle);
                assert!(!fickle.client.outbox.is_waiting());
            }
        });
        let [first, second] = listeners.each_ref().map(received);
        assert_eq!(first.split(|&byte| byte == b'*').count(), PUBLISHERS * MESSAGES + 1);
        assert_eq!(first, second);
        let texts = |bytes: &[u8]| -> Vec<String> {
            let text = String::from_utf8(bytes.to_vec()).expect("all of it is text");
            text.split("\r\n").filter(|line| line.contains(' ')).map(str::to_owned).collect()
        };
        assert_eq!(texts(&received(&by_pattern)), texts(&first));
        for listener in &mut listeners {
            engine.end_session(listener);
        }
        engine.end_session(&mut by_pattern);
        assert_eq!((engine.pubsub.channel_count(Scope::Global), engine.pubsub.pattern_count()), (0, 0));
        assert_eq!(engine.publish(Scope::Global, b"c", b"nobody hears"), 0);
    }
}
