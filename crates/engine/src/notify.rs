//! Keyspace events: their classes, and what happens when one occurs. Knows no command and no event by name.

use crate::context::KeyCx;
use crate::engine::Engine;
use crate::pubsub::Scope;
use std::fmt::{self, Display, Formatter};
use tenon_store::Slot;
use tenon_store::types::ValueType;

/// A set of classes of keyspace events; with `K` and `E` for where they are published it is what
/// `notify-keyspace-events` holds. The bits are Redis's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventClass(pub u32);

impl EventClass {
    /// `K`: published on `__keyspace@<db>__:<key>`.
    pub const KEYSPACE: Self = Self(1);
    /// `E`: published on `__keyevent@<db>__:<event>`.
    pub const KEYEVENT: Self = Self(1 << 1);
    /// `g`: commands of no type, such as DEL.
    pub const GENERIC: Self = Self(1 << 2);
    /// `$`: strings.
    pub const STRING: Self = Self(1 << 3);
    /// `l`: lists.
    pub const LIST: Self = Self(1 << 4);
    /// `s`: sets.
    pub const SET: Self = Self(1 << 5);
    /// `h`: hashes.
    pub const HASH: Self = Self(1 << 6);
    /// `z`: sorted sets.
    pub const ZSET: Self = Self(1 << 7);
    /// `x`: keys that expired.
    pub const EXPIRED: Self = Self(1 << 8);
    /// `e`: keys that were evicted.
    pub const EVICTED: Self = Self(1 << 9);
    /// `t`: streams.
    pub const STREAM: Self = Self(1 << 10);
    /// `m`: reads of absent keys.
    pub const KEY_MISS: Self = Self(1 << 11);
    /// `d`: types of modules.
    pub const MODULE: Self = Self(1 << 13);
    /// `n`: keys that are new.
    pub const NEW: Self = Self(1 << 14);
    /// `o`: values that others have taken the place of as a whole.
    pub const OVERWRITTEN: Self = Self(1 << 15);
    /// `c`: the same where the other one is of another type.
    pub const TYPE_CHANGED: Self = Self(1 << 16);
    /// `A`: everything but `m`, `n`, `o` and `c`.
    const ALL: u32 = 0b10_0111_1111_1100;
    /// Letters and bits in the order Redis shows them.
    const LETTERS: [(char, Self); 16] = [
        ('g', Self::GENERIC),
        ('$', Self::STRING),
        ('l', Self::LIST),
        ('s', Self::SET),
        ('h', Self::HASH),
        ('z', Self::ZSET),
        ('x', Self::EXPIRED),
        ('e', Self::EVICTED),
        ('t', Self::STREAM),
        ('d', Self::MODULE),
        ('n', Self::NEW),
        ('o', Self::OVERWRITTEN),
        ('c', Self::TYPE_CHANGED),
        ('K', Self::KEYSPACE),
        ('E', Self::KEYEVENT),
        ('m', Self::KEY_MISS),
    ];

    /// The class of changes of a type's values.
    pub const fn of_type(value_type: ValueType) -> Self {
        match value_type {
            ValueType::String => Self::STRING,
            ValueType::List => Self::LIST,
            ValueType::Set => Self::SET,
            ValueType::Zset => Self::ZSET,
            ValueType::Hash => Self::HASH,
            ValueType::Stream => Self::STREAM,
        }
    }

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of `other` is set.
    #[inline]
    pub const fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The set of these letters; nothing when one of them is none.
    pub(crate) fn parse(letters: &str) -> Option<Self> {
        letters.chars().try_fold(Self(0), |flags, letter| match letter {
            'A' => Some(Self(flags.0 | Self::ALL)),
            _ => Self::LETTERS.iter().find(|(known, _)| *known == letter).map(|(_, flag)| Self(flags.0 | flag.0)),
        })
    }
}

/// Normalised as Redis does. Beside `A`, Redis loses `n`, `o` and `c`; here they stay.
impl Display for EventClass {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let all = self.contains(Self(Self::ALL));
        if all {
            f.write_str("A")?;
        }
        for (letter, flag) in Self::LETTERS {
            if self.contains(flag) && !(all && flag.0 & Self::ALL != 0) {
                write!(f, "{letter}")?;
            }
        }
        Ok(())
    }
}

impl KeyCx<'_> {
    /// Says that something has happened to the key, in the name that Redis has for it; after the change, once for each.
    /// Where nobody asked for events of the class it costs a load and a branch.
    #[inline]
    pub fn notify(&mut self, class: EventClass, event: &'static str) {
        self.engine.notify(self.database, self.key, class, event);
    }

    /// The type of what is in a slot, if it is to be told that something else takes its place.
    #[inline]
    pub fn displaced(&self, slot: Option<Slot>) -> Option<ValueType> {
        const TOLD: EventClass = EventClass(EventClass::OVERWRITTEN.0 | EventClass::TYPE_CHANGED.0);
        if !self.engine.config.notify_keyspace_events().any(TOLD) {
            return None;
        }
        slot.map(|slot| ValueType::of(self.entry(slot).value()))
    }

    /// Says that a value of another type, or of the same, has taken the place of what was displaced.
    #[inline]
    pub fn notify_displaced(&mut self, displaced: Option<ValueType>, by: ValueType) {
        if let Some(before) = displaced {
            self.notify(EventClass::OVERWRITTEN, "overwritten");
            if before != by {
                self.notify(EventClass::TYPE_CHANGED, "type_changed");
            }
        }
    }
}

impl Engine {
    /// Says that something has happened to a key, as [`KeyCx::notify`] does.
    #[inline]
    pub(crate) fn notify(&self, database: usize, key: &[u8], class: EventClass, event: &'static str) {
        if self.config.notify_keyspace_events().any(class) {
            self.publish_event(database, key, event);
        }
    }

    /// Publishes an event. The key's shard is held, so that a key's events are published in their order.
    #[cold]
    fn publish_event(&self, database: usize, key: &[u8], event: &'static str) {
        let wanted = self.config.notify_keyspace_events();
        if !self.pubsub.may_have_subscribers() {
            return;
        }
        let mut channel = Vec::with_capacity(CHANNEL_HEAD + key.len().max(event.len()));
        if wanted.contains(EventClass::KEYSPACE) {
            write_channel("keyspace", database, key, &mut channel);
            self.publish(Scope::Global, &channel, event.as_bytes());
        }
        if wanted.contains(EventClass::KEYEVENT) {
            write_channel("keyevent", database, event.as_bytes(), &mut channel);
            self.publish(Scope::Global, &channel, key);
        }
    }
}

/// The longest of what comes before a key or an event in a channel's name.
const CHANNEL_HEAD: usize = "__keyspace@__:".len() + 20;

/// `__keyspace@<db>__:<key>`
fn write_channel(of: &str, database: usize, rest: &[u8], channel: &mut Vec<u8>) {
    channel.clear();
    channel.extend_from_slice(b"__");
    channel.extend_from_slice(of.as_bytes());
    channel.push(b'@');
    channel.extend_from_slice(itoa::Buffer::new().format(database).as_bytes());
    channel.extend_from_slice(b"__:");
    channel.extend_from_slice(rest);
}
