//! What values hold, and the check that they hold it still once they were in a payload: shared with the fuzz target
//! `dump_payload`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use tenon_ds::packed::Item;
use tenon_persist::rdb::file::OnModule;
use tenon_persist::rdb::{Limits, LoadError, Loaded, Value, dump, load};
use tenon_store::entry::{self, Meta};
use tenon_store::types::stream::{Entry, Group, ProducerCounts, ProducerLimits, Producers, StreamId, StreamState};
use tenon_store::types::{Collection, DeadlinesRef, HashLimits, ListLimits, SetLimits, Stream, ZsetLimits};

/// Bytes that compressed strings may come to.
const EXPANSION_MAX: usize = 1 << 24;

/// Small ones, so that short values pass them.
pub static LIMITS: LazyLock<Limits> = LazyLock::new(|| Limits {
    list: ListLimits::new(-2, usize::MAX),
    hash: HashLimits { fields: 16, bytes: 64 },
    set: SetLimits { ints: 20, members: 16, bytes: 64 },
    zset: ZsetLimits { members: 16, bytes: 64 },
    producers: ProducerLimits::INITIAL,
});

/// When members expire.
pub type Deadlines = BTreeMap<Vec<u8>, u64>;

/// What a value holds, how it is kept, and when its members expire.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    String(Vec<u8>),
    List(Vec<Vec<u8>>, &'static str),
    Hash(BTreeMap<Vec<u8>, Vec<u8>>, &'static str, Deadlines),
    Set(BTreeSet<Vec<u8>>, &'static str, Deadlines),
    Zset(Vec<(Vec<u8>, f64)>, &'static str, Deadlines),
    Stream(StreamContent),
}

/// An entry's id and its fields with their values.
pub type EntryContent = (StreamId, Vec<(Vec<u8>, Vec<u8>)>);

/// What a stream holds.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamContent {
    pub entries: Vec<EntryContent>,
    pub state: StreamState,
    pub groups: Vec<GroupContent>,
    pub limits: ProducerLimits,
    pub counts: ProducerCounts,
    pub producers: Vec<ProducerContent>,
}

/// A producer's name and its ids with the entries that they came with.
pub type ProducerContent = (Vec<u8>, Vec<(Vec<u8>, StreamId)>);

/// What a stream's group holds.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupContent {
    pub name: Vec<u8>,
    pub last_id: StreamId,
    pub entries_read: Option<u64>,
    /// The consumers, each with when it was seen and active.
    pub consumers: Vec<(Vec<u8>, u64, Option<u64>)>,
    /// Who has which entry since when, and how often it was delivered.
    pub pending: Vec<(StreamId, Vec<u8>, u64, u64)>,
    /// Those of nobody, the first that was given back first.
    pub released: Vec<StreamId>,
}

fn stream_content(stream: &Stream) -> StreamContent {
    let pairs = |entry: Entry<'_>| entry.fields().map(|(field, value)| (field.to_vec(), value.to_vec())).collect();
    let group = |(name, group): (&[u8], &Group)| GroupContent {
        name: name.to_vec(),
        last_id: group.last_id(),
        entries_read: group.entries_read(),
        consumers: group.consumers().map(|one| (one.name().to_vec(), one.seen_ms, one.active_ms)).collect(),
        pending: group
            .pending_in(StreamId::MIN..=StreamId::MAX)
            .map(|(id, it)| (id, group.holder_of(it).to_vec(), it.delivered_ms(), it.deliveries))
            .collect(),
        released: group.released_from(0).map(|(_, id)| id).collect(),
    };
    let mut producers: Vec<ProducerContent> = Vec::new();
    if let Some(all) = stream.producers() {
        for (name, ids) in all.starting_at(0) {
            producers.push((name.to_vec(), ids.map(|(id, entry)| (id.to_vec(), entry)).collect()));
        }
    }
    producers.sort();
    StreamContent {
        entries: stream.range(StreamId::MIN..=StreamId::MAX).map(|entry| (entry.id(), pairs(entry))).collect(),
        state: stream.state(),
        groups: stream.groups().map(group).collect(),
        limits: stream.producer_limits(),
        counts: stream.producers().map(Producers::counts).unwrap_or_default(),
        producers,
    }
}

/// The same as it is once it was written: Redis 7.0 does not tell when a consumer was active.
pub fn as_written(mut content: Content) -> Content {
    if let Content::Stream(stream) = &mut content {
        let consumers = stream.groups.iter_mut().flat_map(|group| &mut group.consumers);
        consumers.for_each(|(_, seen_ms, active_ms)| *active_ms = Some(*seen_ms));
    }
    content
}

/// What a value holds.
pub fn content(value: &Value) -> Content {
    match value {
        Value::String(text) => Content::String(text.clone()),
        Value::Rope(rope) => Content::String(rope.to_vec()),
        Value::List(list) => {
            Content::List(list.view().iter_from(0).map(Item::to_vec).collect(), list.view().encoding())
        }
        Value::Hash(hash) => {
            let mut fields = BTreeMap::new();
            hash.view().for_each(|field, value| _ = fields.insert(field.to_vec(), value.to_vec()));
            Content::Hash(fields, hash.encoding(), deadlines(hash.deadlines()))
        }
        Value::Set(set) => {
            let mut members = BTreeSet::new();
            set.view().for_each(|member| _ = members.insert(member.to_vec()));
            Content::Set(members, set.encoding(), deadlines(set.deadlines()))
        }
        Value::Zset(zset) => {
            let mut members = Vec::new();
            zset.view().for_each(|member, score| members.push((member.to_vec(), score)));
            Content::Zset(members, zset.view().encoding(), deadlines(zset.deadlines()))
        }
        Value::Stream(stream) => Content::Stream(stream_content(stream)),
    }
}

fn deadlines(deadlines: Option<DeadlinesRef<'_>>) -> Deadlines {
    let mut all = Deadlines::new();
    if let Some(deadlines) = deadlines {
        deadlines.for_each(|member, deadline_ms| _ = all.insert(member.to_vec(), deadline_ms));
    }
    all
}

/// The payload of a value with flags.
pub fn payload_of(value: Value, client_flags: u32) -> Vec<u8> {
    let entry = value.store(|value| entry::Entry::new(b"k", value, &Meta::default()));
    dump(entry.view().value(), client_flags)
}

/// What a payload holds.
pub fn loaded(payload: &[u8]) -> Result<Loaded, LoadError> {
    load(payload, *LIMITS, EXPANSION_MAX, OnModule::Refuse)
}

/// A value is the same once it was in a payload, and kept in the same form.
pub fn check_round_trip(value: Value, flags: u32) {
    let before = as_written(content(&value));
    let payload = payload_of(value, flags);
    let Loaded { value, client_flags } = loaded(&payload).expect("what was dumped loads");
    let after = content(&value);
    match (&before, &after) {
        // A small set of strings is written as any set, so that one whose strings are all integers gets their form.
        (Content::Set(before, _, due_before), Content::Set(after, _, due)) => {
            assert_eq!((before, due_before), (after, due))
        }
        _ => assert_eq!(before, after),
    }
    assert_eq!(client_flags, flags);
}
