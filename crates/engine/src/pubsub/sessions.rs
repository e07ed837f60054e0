//! A session's own subscriptions: which there are, beginning and ending them. Knows no command.

use super::registry::Scope;
use crate::engine::Engine;
use crate::session::{Roles, Session};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use tenon_ds::progress;

/// What one can be subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// A channel of the whole cluster.
    Channel,
    /// All of these whose names match.
    Pattern,
    /// A channel of one slot.
    ShardChannel,
}

impl Topic {
    /// All of them.
    pub const ALL: [Topic; 3] = [Topic::Channel, Topic::Pattern, Topic::ShardChannel];
}

/// What a session is subscribed to, by topic.
#[derive(Debug, Default)]
pub struct Subscriptions {
    names: [BTreeSet<Box<[u8]>>; Topic::ALL.len()],
}

impl Subscriptions {
    /// The names of one topic.
    pub fn of(&self, topic: Topic) -> &BTreeSet<Box<[u8]>> {
        &self.names[topic as usize]
    }

    /// How many there are as the replies count them: shard channels by themselves.
    pub fn count(&self, topic: Topic) -> usize {
        match topic {
            Topic::Channel | Topic::Pattern => self.of(Topic::Channel).len() + self.of(Topic::Pattern).len(),
            Topic::ShardChannel => self.of(Topic::ShardChannel).len(),
        }
    }
}

impl Engine {
    /// Subscribes a session; gives how many subscriptions it has now.
    pub fn subscribe(&self, session: &mut Session, topic: Topic, name: &[u8]) -> usize {
        progress::count(1);
        let subscriptions = session.subscriptions.get_or_insert_default();
        if subscriptions.names[topic as usize].insert(name.into()) {
            let client = &session.client;
            client.subscribed[topic as usize].fetch_add(1, Ordering::Relaxed);
            client.names_bytes.fetch_add(name.len() as u64, Ordering::Relaxed);
            match topic {
                Topic::Channel => self.pubsub.add(Scope::Global, self.shards.hash(name), name, client),
                Topic::Pattern => self.pubsub.add_pattern(name, client),
                Topic::ShardChannel => self.pubsub.add(Scope::Shard, self.shards.hash(name), name, client),
            }
        }
        let count = subscriptions.count(topic);
        session.set_role(Roles::SUBSCRIBER, true);
        count
    }

    /// Ends a subscription, if there is one; gives how many are left. Once this returns nothing more is put into the
    /// client's outbox on its account.
    pub fn unsubscribe(&self, session: &mut Session, topic: Topic, name: &[u8]) -> usize {
        progress::count(1);
        let Some(subscriptions) = &mut session.subscriptions else { return 0 };
        if subscriptions.names[topic as usize].remove(name) {
            let client = &session.client;
            client.subscribed[topic as usize].fetch_sub(1, Ordering::Relaxed);
            client.names_bytes.fetch_sub(name.len() as u64, Ordering::Relaxed);
            match topic {
                Topic::Channel => self.pubsub.remove(Scope::Global, self.shards.hash(name), name, client),
                Topic::Pattern => self.pubsub.remove_pattern(name, client),
                Topic::ShardChannel => self.pubsub.remove(Scope::Shard, self.shards.hash(name), name, client),
            }
        }
        let count = subscriptions.count(topic);
        if subscriptions.names.iter().all(BTreeSet::is_empty) {
            session.subscriptions = None;
            session.set_role(Roles::SUBSCRIBER, false);
        }
        count
    }

    /// Ends all subscriptions of a session.
    pub fn unsubscribe_all(&self, session: &mut Session) {
        for topic in Topic::ALL {
            let names: Vec<Box<[u8]>> = session.subscribed_names(topic).map(Box::from).collect();
            for name in names {
                self.unsubscribe(session, topic, &name);
            }
        }
    }
}
