//! Streams against a model that keeps every entry, deleted or not, in the nodes that Redis would have.

// Streams are safe code over the standard library's trees.
#![cfg(not(miri))]

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use tenon_ds::listpack::{End, ListpackBuf};
use tenon_ds::looks::Looks;
use tenon_ds::packed::Item;
use tenon_store::types::stream::{
    Acknowledgement, Claim, Claimed, Deletion, Entry, Group, Keep, NotPending, Pending, Reach, Recount, References,
    StreamId, StreamState, Trim,
};
use tenon_store::types::{Collection, Object, Stream, StreamLimits};

const NODE_BYTES: usize = 300;
const NODE_ENTRIES: usize = 6;
const GROUPS: [&[u8]; 2] = [b"g1", b"g2"];
const CONSUMERS: [&[u8]; 3] = [b"alice", b"bob", b"carol"];

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

#[derive(Clone, Debug)]
struct ModelEntry {
    id: StreamId,
    fields: Fields,
    is_deleted: bool,
}

#[derive(Clone, Debug)]
struct Node {
    entries: Vec<ModelEntry>,
    names: Vec<Vec<u8>>,
}

impl Node {
    fn first(&self) -> StreamId {
        self.entries[0].id
    }

    fn live(&self) -> usize {
        self.entries.iter().filter(|entry| !entry.is_deleted).count()
    }

    /// The node as Redis would keep it, element by element; how many bytes it is.
    fn redis_len(&self) -> usize {
        let mut listpack = ListpackBuf::new();
        let mut int = |number: usize| listpack.push_back(Item::Int(number as i64));
        int(self.live());
        int(self.entries.len() - self.live());
        int(self.names.len());
        self.names.iter().for_each(|name| listpack.push_back(Item::of(name)));
        listpack.push_back(Item::Int(0));
        for ModelEntry { id, fields, is_deleted } in &self.entries {
            let is_same = fields.iter().map(|(field, _)| field).eq(&self.names);
            let start = listpack.view().len();
            listpack.push_back(Item::Int(i64::from(*is_deleted) + 2 * i64::from(is_same)));
            listpack.push_back(Item::Int((id.ms - self.first().ms) as i64));
            listpack.push_back(Item::Int(id.seq.wrapping_sub(self.first().seq) as i64));
            if !is_same {
                listpack.push_back(Item::Int(fields.len() as i64));
            }
            for (field, value) in fields {
                if !is_same {
                    listpack.push_back(Item::of(field));
                }
                listpack.push_back(Item::of(value));
            }
            let count = listpack.view().len() - start;
            listpack.push_back(Item::Int(count as i64));
        }
        assert!(listpack.view().end(End::Back).is_some());
        listpack.view().redis_len()
    }
}

#[derive(Clone, Debug, Default)]
struct ModelGroup {
    last_id: StreamId,
    /// When each was delivered, how often, and to whom; nobody has those that were given back.
    pending: BTreeMap<StreamId, (u64, u64, Option<usize>)>,
    /// Those, the first one first.
    released: Vec<StreamId>,
    consumers: BTreeSet<usize>,
}

impl ModelGroup {
    /// Notes that who had the entry has it no more; gives what was known of it.
    fn take(&mut self, id: StreamId) -> Option<(u64, u64, Option<usize>)> {
        self.released.retain(|one| *one != id);
        self.pending.remove(&id)
    }

    fn needs(&self, id: StreamId) -> bool {
        id > self.last_id || self.pending.contains_key(&id)
    }
}

#[derive(Debug, Default)]
struct Model {
    nodes: Vec<Node>,
    state: StreamState,
    groups: BTreeMap<usize, ModelGroup>,
}

impl Model {
    fn live(&self) -> impl DoubleEndedIterator<Item = &ModelEntry> {
        self.nodes.iter().flat_map(|node| &node.entries).filter(|entry| !entry.is_deleted)
    }

    fn len(&self) -> usize {
        self.live().count()
    }

    fn has(&self, id: StreamId) -> bool {
        self.live().any(|entry| entry.id == id)
    }

    fn add(&mut self, id: StreamId, fields: Fields) {
        let added: usize = fields.iter().map(|(field, value)| field.len() + value.len()).sum();
        let entry = ModelEntry { id, fields, is_deleted: false };
        match self.nodes.last_mut() {
            Some(node) if node.redis_len() + added < NODE_BYTES && node.entries.len() < NODE_ENTRIES => {
                node.entries.push(entry);
            }
            _ => {
                let names = entry.fields.iter().map(|(field, _)| field.clone()).collect();
                self.nodes.push(Node { entries: vec![entry], names });
            }
        }
        self.state.last_id = id;
        self.state.entries_added += 1;
    }

    /// Marks an entry as deleted; a node without others goes.
    fn remove(&mut self, id: StreamId) {
        for node in &mut self.nodes {
            if let Some(entry) = node.entries.iter_mut().find(|entry| entry.id == id) {
                entry.is_deleted = true;
            }
        }
        self.nodes.retain(|node| node.live() > 0);
    }

    fn forget(&mut self, id: StreamId) -> bool {
        self.groups.values_mut().fold(false, |was_pending, group| was_pending | group.take(id).is_some())
    }

    fn delete(&mut self, id: StreamId, references: References) -> Deletion {
        let is_forgotten = references == References::Delete && self.forget(id);
        if references == References::WaitForAcknowledgement && self.groups.values().any(|group| group.needs(id)) {
            return Deletion::Needed;
        }
        if !self.has(id) {
            return if is_forgotten { Deletion::Forgotten } else { Deletion::Missing };
        }
        self.remove(id);
        self.state.max_deleted_id = self.state.max_deleted_id.max(id);
        Deletion::Deleted
    }

    fn trim(&mut self, trim: Trim, references: References) -> u64 {
        let before = self.len();
        let mut visited = 0;
        for node in self.nodes.clone() {
            let len = self.len();
            let is_whole = match trim.keep {
                Keep::Newest(count) if len as u64 <= count => break,
                Keep::Newest(count) => (len - node.live()) as u64 >= count,
                Keep::From(id) => node.entries.last().is_some_and(|entry| entry.id < id),
            };
            visited += node.live() as u64;
            if let Reach::WholeBlocks { entries_max } = trim.reach
                && (!is_whole || entries_max > 0 && visited > entries_max)
            {
                break;
            }
            for entry in node.entries.iter().filter(|entry| !entry.is_deleted) {
                let is_kept = match trim.keep {
                    Keep::Newest(count) => self.len() as u64 <= count,
                    Keep::From(id) => entry.id >= id,
                };
                let waits = references == References::WaitForAcknowledgement
                    && self.groups.values().any(|group| group.needs(entry.id));
                if is_kept || waits {
                    continue;
                }
                if references == References::Delete {
                    self.forget(entry.id);
                }
                self.remove(entry.id);
            }
        }
        (before - self.len()) as u64
    }
}

/// A number that stands for an entry of all those ever added, or for none.
type Nth = usize;

#[derive(Clone, Debug)]
enum Step {
    Add { ms: u64, seq: u64, fields: Fields },
    Delete { nth: Nth, references: References },
    Trim { keep: Result<u64, Nth>, whole: Option<u64>, references: References },
    AddGroup { group: usize, nth: Nth },
    RemoveGroup { group: usize },
    Deliver { group: usize, consumer: usize, most: usize, acknowledgement: Acknowledgement },
    DeliverAgain { group: usize, consumer: usize, nth: Nth, most: usize },
    Acknowledge { group: usize, nth: Nth },
    Claim { group: usize, consumer: usize, nth: Nth, idle_ms_min: u64, is_forced: bool, is_delivery: bool },
    Release { group: usize, nth: Nth, recount: Recount, not_pending: NotPending },
    Idle { group: usize, idle_ms_min: u64, most: usize },
    RemoveConsumer { group: usize, consumer: usize },
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (-200_000i64..200_000).prop_map(|number| number.to_string().into_bytes()),
        prop::collection::vec(prop::sample::select(&b"ab-0"[..]), 0..20),
        Just(vec![b'x'; 150]),
    ]
}

fn fields() -> impl Strategy<Value = Fields> {
    let usual = (text(), text()).prop_map(|(a, b)| vec![(b"name".to_vec(), a), (b"7".to_vec(), b)]);
    prop_oneof![3 => usual, 1 => prop::collection::vec((text(), text()), 1..4)]
}

fn references() -> impl Strategy<Value = References> {
    prop::sample::select(&[References::Keep, References::Delete, References::WaitForAcknowledgement][..])
}

fn steps() -> impl Strategy<Value = Step> {
    let (group, consumer, nth) = (0..GROUPS.len(), 0..CONSUMERS.len(), 0..100usize);
    let keep = prop_oneof![(0..30u64).prop_map(Ok), nth.clone().prop_map(Err)];
    let acknowledgement = prop::sample::select(&[Acknowledgement::Expected, Acknowledgement::Given][..]);
    let recounts = [Recount::Undone, Recount::Kept, Recount::Most, Recount::Set(3)];
    let recount = prop::sample::select(recounts.to_vec());
    let not_pending = prop::sample::select(vec![NotPending::PassedOver, NotPending::Made]);
    prop_oneof![
        20 => (0..3u64, 0..4u64, fields()).prop_map(|(ms, seq, fields)| Step::Add { ms, seq, fields }),
        4 => (nth.clone(), references()).prop_map(|(nth, references)| Step::Delete { nth, references }),
        2 => (keep, prop::option::of(0..20u64), references())
            .prop_map(|(keep, whole, references)| Step::Trim { keep, whole, references }),
        2 => (group.clone(), nth.clone()).prop_map(|(group, nth)| Step::AddGroup { group, nth }),
        1 => group.clone().prop_map(|group| Step::RemoveGroup { group }),
        5 => (group.clone(), consumer.clone(), 1..8usize, acknowledgement).prop_map(
            |(group, consumer, most, acknowledgement)| Step::Deliver { group, consumer, most, acknowledgement }
        ),
        2 => (group.clone(), consumer.clone(), nth.clone(), 1..8usize)
            .prop_map(|(group, consumer, nth, most)| Step::DeliverAgain { group, consumer, nth, most }),
        4 => (group.clone(), nth.clone()).prop_map(|(group, nth)| Step::Acknowledge { group, nth }),
        4 => (group.clone(), nth.clone(), recount, not_pending)
            .prop_map(|(group, nth, recount, not_pending)| Step::Release { group, nth, recount, not_pending }),
        2 => (group.clone(), 0..20u64, 1..5usize)
            .prop_map(|(group, idle_ms_min, most)| Step::Idle { group, idle_ms_min, most }),
        4 => (group.clone(), consumer.clone(), nth, 0..20u64, any::<bool>(), any::<bool>()).prop_map(
            |(group, consumer, nth, idle_ms_min, is_forced, is_delivery)| Step::Claim {
                group,
                consumer,
                nth,
                idle_ms_min,
                is_forced,
                is_delivery
            }
        ),
        1 => (group, consumer).prop_map(|(group, consumer)| Step::RemoveConsumer { group, consumer }),
    ]
}

fn fields_of(entry: &Entry<'_>) -> Fields {
    entry.fields().map(|(field, value)| (field.to_vec(), value.to_vec())).collect()
}

/// A stream and its model, changed together.
#[derive(Default)]
struct Pair {
    stream: Stream,
    model: Model,
    ids: Vec<StreamId>,
    now_ms: u64,
}

impl Pair {
    fn id(&self, nth: Nth) -> StreamId {
        self.ids.get(nth).copied().unwrap_or(StreamId::new(nth as u64, 77))
    }

    fn play(&mut self, step: Step) {
        self.now_ms += 1;
        let now_ms = self.now_ms;
        let Pair { stream, model, .. } = self;
        match step {
            Step::Add { ms, seq, fields } => {
                let last = stream.last_id();
                let seq = if ms == 0 { last.seq + 1 + seq } else { seq };
                let id = StreamId::new(last.ms + ms, seq);
                let borrowed: Vec<(&[u8], &[u8])> =
                    fields.iter().map(|(field, value)| (&field[..], &value[..])).collect();
                stream.append(id, borrowed.into_iter(), StreamLimits::new(NODE_BYTES, NODE_ENTRIES));
                model.add(id, fields);
                self.ids.push(id);
            }
            Step::Delete { nth, references } => {
                let id = self.id(nth);
                assert_eq!(self.stream.delete(id, references), self.model.delete(id, references));
            }
            Step::Trim { keep, whole, references } => {
                let keep = keep.map_or_else(|nth| Keep::From(self.id(nth)), Keep::Newest);
                let reach = whole.map_or(Reach::Exact, |entries_max| Reach::WholeBlocks { entries_max });
                let trim = Trim { keep, reach };
                assert_eq!(self.stream.trim(trim, references).0, self.model.trim(trim, references), "{trim:?}");
            }
            Step::AddGroup { group, nth } => {
                let last_id = self.id(nth);
                let is_new = self.stream.add_group(GROUPS[group], Group::new(last_id, None));
                assert_eq!(is_new, !self.model.groups.contains_key(&group));
                self.model.groups.entry(group).or_insert(ModelGroup { last_id, ..ModelGroup::default() });
            }
            Step::RemoveGroup { group } => {
                assert_eq!(stream.remove_group(GROUPS[group]).is_some(), model.groups.remove(&group).is_some());
            }
            Step::Deliver { group, consumer, most, acknowledgement } => {
                let live: Vec<_> = model.live().map(|entry| entry.id).collect();
                let Some(known) = model.groups.get_mut(&group) else { return };
                let place = stream.group_mut(GROUPS[group]).expect("the model has it");
                let (number, is_new) = place.see_consumer(CONSUMERS[consumer], now_ms);
                assert_eq!(is_new, known.consumers.insert(consumer));
                let mut given = Vec::new();
                stream.deliver(GROUPS[group], number, most, now_ms, acknowledgement, |entry| given.push(entry.id()));
                let expected: Vec<_> = live.into_iter().filter(|id| *id > known.last_id).take(most).collect();
                assert_eq!(given, expected);
                known.last_id = expected.last().copied().unwrap_or(known.last_id);
                if acknowledgement == Acknowledgement::Expected {
                    for id in expected {
                        known.take(id);
                        known.pending.insert(id, (now_ms, 1, Some(consumer)));
                    }
                }
            }
            Step::DeliverAgain { group, consumer, nth, most } => {
                let from = self.id(nth);
                let live: Vec<_> = self.model.live().map(|entry| entry.id).collect();
                let Some(number) =
                    self.stream.group(GROUPS[group]).and_then(|group| group.number_of(CONSUMERS[consumer]))
                else {
                    return;
                };
                let mut given = Vec::new();
                self.stream.deliver_again(GROUPS[group], number, from, most, now_ms, |id, entry| {
                    given.push((id, entry.is_some()));
                });
                let known = self.model.groups.get_mut(&group).expect("the stream has it");
                let own = known.pending.range_mut(from..).filter(|(_, pending)| pending.2 == Some(consumer)).take(most);
                let mut expected = Vec::new();
                for (id, pending) in own {
                    expected.push((*id, live.contains(id)));
                    if live.contains(id) {
                        (pending.0, pending.1) = (now_ms, pending.1.saturating_add(1).min(i64::MAX as u64));
                    }
                }
                assert_eq!(given, expected);
            }
            Step::Acknowledge { group, nth } => {
                let id = self.id(nth);
                let (Some(place), Some(known)) =
                    (self.stream.group_mut(GROUPS[group]), self.model.groups.get_mut(&group))
                else {
                    return;
                };
                assert_eq!(place.acknowledge(id), known.take(id).is_some());
            }
            Step::Claim { group, consumer, nth, idle_ms_min, is_forced, is_delivery } => {
                let id = self.id(nth);
                let is_there = self.model.has(id);
                let Some(known) = self.model.groups.get_mut(&group) else { return };
                let place = self.stream.group_mut(GROUPS[group]).expect("the model has it");
                let (number, _) = place.see_consumer(CONSUMERS[consumer], now_ms);
                known.consumers.insert(consumer);
                let claim = Claim {
                    consumer: number,
                    idle_ms_min,
                    delivered_ms: now_ms,
                    deliveries: None,
                    is_delivery,
                    is_forced,
                };
                let claimed = self.stream.claim(GROUPS[group], id, &claim, now_ms);
                let before = known.pending.get(&id).copied();
                let expected = match before {
                    _ if !is_there && known.take(id).is_some() => Claimed::Gone,
                    _ if !is_there => Claimed::No,
                    Some((delivered_ms, _, Some(_))) if now_ms - delivered_ms < idle_ms_min => Claimed::No,
                    None if !is_forced => Claimed::No,
                    before => {
                        let deliveries = before.map_or(1, |(_, deliveries, _)| deliveries);
                        let deliveries = deliveries.saturating_add(is_delivery.into()).min(i64::MAX as u64);
                        known.take(id);
                        known.pending.insert(id, (now_ms, deliveries, Some(consumer)));
                        Claimed::Yes
                    }
                };
                assert_eq!(claimed, expected);
            }
            Step::Release { group, nth, recount, not_pending } => {
                let id = self.id(nth);
                let is_there = self.model.has(id);
                let was_released = self.stream.release(GROUPS[group], id, recount, not_pending);
                let Some(known) = self.model.groups.get_mut(&group) else {
                    assert!(!was_released);
                    return;
                };
                let before = known.pending.get(&id).map(|(_, deliveries, _)| *deliveries);
                let before = before.or((is_there && not_pending == NotPending::Made).then_some(0));
                assert_eq!(was_released, before.is_some());
                if let Some(before) = before {
                    let deliveries = match recount {
                        Recount::Undone => before.saturating_sub(1),
                        Recount::Kept => before,
                        Recount::Most => i64::MAX as u64,
                        Recount::Set(deliveries) => deliveries,
                    };
                    known.take(id);
                    known.pending.insert(id, (0, deliveries, None));
                    known.released.push(id);
                }
            }
            Step::Idle { group, idle_ms_min, most } => {
                let idle = self.stream.idle(GROUPS[group], idle_ms_min, most, now_ms);
                let Some(known) = self.model.groups.get(&group).filter(|_| idle_ms_min <= now_ms) else {
                    assert_eq!(idle, []);
                    return;
                };
                let held = known.pending.iter().filter(|(_, (_, _, holder))| holder.is_some());
                let held = held.filter(|(_, (ms, ..))| now_ms - ms >= idle_ms_min);
                let mut held: Vec<_> = held.map(|(id, (ms, ..))| (*ms, *id)).collect();
                held.sort();
                let order = known.released.iter().copied().chain(held.into_iter().map(|(_, id)| id));
                assert!(idle.into_iter().eq(order.filter(|id| self.model.has(*id)).take(most)));
            }
            Step::RemoveConsumer { group, consumer } => {
                let (Some(place), Some(known)) = (stream.group_mut(GROUPS[group]), model.groups.get_mut(&group)) else {
                    return;
                };
                let removed = place.remove_consumer(CONSUMERS[consumer]);
                assert_eq!(removed.is_some(), known.consumers.remove(&consumer));
                known.pending.retain(|_, pending| pending.2 != Some(consumer));
            }
        }
    }

    /// Whether the two agree in everything that can be asked.
    fn check(&self, from: Nth, to: Nth) {
        let Pair { stream, model, .. } = self;
        assert_eq!(stream.state(), model.state);
        assert_eq!(stream.len(), model.len() as u64);
        let expected: Vec<_> = model.live().map(|entry| (entry.id, entry.fields.clone())).collect();
        let shown = |entry: Entry<'_>| (entry.id(), fields_of(&entry));
        let (from, to) = (self.id(from), self.id(to));
        for (from, to) in [(StreamId::MIN, StreamId::MAX), (from, to)] {
            let mut within: Vec<_> = expected.iter().filter(|(id, _)| (from..=to).contains(id)).cloned().collect();
            assert_eq!(stream.range(from..=to).map(shown).collect::<Vec<_>>(), within);
            within.reverse();
            assert_eq!(stream.range_back(from..=to).map(shown).collect::<Vec<_>>(), within);
        }
        let behind: Vec<_> = stream.behind(from).map(|entry| entry.id()).collect();
        assert!(behind.into_iter().eq(expected.iter().map(|(id, _)| *id).filter(|id| *id > from)));
        assert_eq!(stream.get(from).map(shown), expected.iter().find(|(id, _)| *id == from).cloned());
        assert_eq!(stream.first().map(shown), expected.first().cloned());
        assert_eq!(stream.last().map(shown), expected.last().cloned());
        assert_eq!(stream.block_count(), model.nodes.len());
        for (block, node) in stream.blocks().zip(&model.nodes) {
            assert_eq!((block.first(), block.live()), (node.first(), node.live() as u64));
            assert_eq!(block.redis_len(), node.redis_len());
        }
        assert!(stream.groups().map(|(name, _)| name).eq(model.groups.keys().map(|group| GROUPS[*group])));
        for (group, known) in &model.groups {
            let place = stream.group(GROUPS[*group]).expect("the names agree");
            assert_eq!(place.last_id(), known.last_id);
            assert!(
                place.consumers().map(|consumer| consumer.name()).eq(known.consumers.iter().map(|at| CONSUMERS[*at]))
            );
            let of = |id, pending: Pending| {
                (id, pending.delivered_ms(), pending.deliveries, place.holder_of(pending).to_vec())
            };
            let pending: Vec<_> =
                place.pending_in(StreamId::MIN..=StreamId::MAX).map(|(id, pending)| of(id, pending)).collect();
            let expected = known
                .pending
                .iter()
                .map(|(id, (ms, count, at))| (*id, *ms, *count, at.map_or(vec![], |at| CONSUMERS[at].to_vec())));
            assert_eq!(pending, expected.collect::<Vec<_>>());
            assert!(place.released_from(0).map(|(_, id)| id).eq(known.released.iter().copied()));
            assert_eq!(place.released_len(), known.released.len());
            for consumer in place.consumers() {
                let own = pending.iter().filter(|(.., name)| **name == *consumer.name()).map(|(id, ..)| id);
                assert!(consumer.pending().iter().eq(own));
            }
        }
    }
}

/// The stream that another one is made into by the parts that it gives.
fn rebuilt(stream: &Stream) -> Stream {
    let mut again = Stream::default();
    again.set_state(stream.state());
    for block in stream.blocks() {
        again.begin_block(block.first(), block.names());
        for (index, entry) in block.entries().enumerate() {
            let (names, values): (Vec<_>, Vec<_>) = entry.fields().unzip();
            // The block's own may be named or not.
            let is_named = !entry.has_block_names() || index % 2 == 0;
            let names = is_named.then(|| names.iter().copied());
            again.restore_entry(entry.id(), names, values.iter().copied(), false);
        }
    }
    again
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 400 }))]

    #[test]
    fn a_stream_agrees_with_its_model(
        steps in prop::collection::vec((steps(), 0..100usize, 0..100usize), 1..if cfg!(miri) { 30 } else { 120 })
    ) {
        let mut pair = Pair::default();
        for (step, from, to) in steps {
            pair.play(step);
            pair.check(from, to);
        }
        let again = rebuilt(&pair.stream);
        prop_assert_eq!(again.len(), pair.stream.len());
        let shown = |stream: &Stream| -> Vec<_> {
            stream.range(StreamId::MIN..=StreamId::MAX).map(|entry| (entry.id(), fields_of(&entry))).collect()
        };
        prop_assert_eq!(shown(&again), shown(&pair.stream));
        prop_assert_eq!(shown(&pair.stream.clone()), shown(&pair.stream));
    }
}

/// Bytes of a stream of `count` entries with five fields, an entry.
fn bytes_of_an_entry(count: u64) -> u64 {
    let mut stream = Stream::default();
    for number in 0..count {
        let values: Vec<_> = (0..5).map(|at| format!("{:08}", number * 7 + at * 1_000_003)).collect();
        let names = ["sensor", "temperature", "humidity", "pressure", "state"];
        let fields: Vec<_> =
            names.iter().zip(&values).map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        let id = StreamId::new(1_700_000_000_000 + number * 3, 0);
        stream.append(id, fields.into_iter(), StreamLimits::new(4096, 100));
    }
    let object = stream.into_object();
    let Object::Stream(stream) = &object else { panic!("a stream is an object of its own") };
    let redis: usize = stream.blocks().map(|block| block.redis_len()).sum();
    assert!(
        object.memory(Looks::ALL) < redis,
        "{} bytes, {redis} in Redis without its tree",
        object.memory(Looks::ALL)
    );
    object.memory(Looks::ALL) as u64 / count
}

#[test]
#[cfg_attr(miri, ignore = "safe code that takes minutes")]
fn entries_are_small() {
    // Five values of eight bytes, each with one more, three of head and id, and the block's part.
    assert!(bytes_of_an_entry(100_000) <= 52, "{}", bytes_of_an_entry(100_000));
}

#[test]
fn memory_is_given_back() {
    let count: u64 = if cfg!(miri) { 200 } else { 2_000 };
    let mut stream = Stream::default();
    let empty = stream.memory(Looks::ALL);
    let limits = StreamLimits::new(4096, 100);
    for number in 1..=count {
        stream.append(StreamId::new(number, 0), [(&b"field"[..], &b"value of some length"[..])].into_iter(), limits);
    }
    assert!(stream.memory(Looks::ALL) > count as usize * 20);
    let full = stream.memory(Looks::ALL);
    let delete = |stream: &mut Stream, number| {
        assert_eq!(stream.delete(StreamId::new(number, 0), References::Keep), Deletion::Deleted);
    };
    // Two of three from the end, by which most of each block is dead.
    (1..=count).rev().filter(|number| number % 3 != 0).for_each(|number| delete(&mut stream, number));
    assert!(stream.memory(Looks::ALL) < full * 2 / 3, "{} of {full} bytes", stream.memory(Looks::ALL));
    let left = stream.range(StreamId::MIN..=StreamId::MAX).map(|entry| (entry.id().ms, fields_of(&entry)));
    let value = (b"field".to_vec(), b"value of some length".to_vec());
    assert!(left.eq((1..=count).filter(|number| number % 3 == 0).map(|number| (number, vec![value.clone()]))));
    (1..=count).filter(|number| number % 3 == 0).for_each(|number| delete(&mut stream, number));
    assert_eq!((stream.len(), stream.block_count(), stream.memory(Looks::ALL)), (0, 0, empty));
    assert_eq!(stream.last_id(), StreamId::new(count, 0));
    assert!(!Collection::is_empty(&stream), "a stream without entries stays");
}

#[test]
fn counts_that_are_as_high_as_numbers_go_stay_there() {
    let mut stream = Stream::default();
    let fields = [(&b"f"[..], &b"v"[..])];
    let (first, second) = (StreamId::new(1, 0), StreamId::new(2, 0));
    stream.append(first, fields.into_iter(), StreamLimits::new(4096, 100));
    // As a file may say.
    stream.set_state(StreamState { entries_added: u64::MAX, ..stream.state() });
    let mut group = Group::new(StreamId::MIN, Some(u64::MAX));
    let consumer = group.add_consumer(b"c", 0, None).expect("it is the first");
    group.assign(first, Pending::of(consumer, u64::MAX, u64::MAX));
    assert!(stream.add_group(b"g", group));
    stream.append(second, fields.into_iter(), StreamLimits::new(4096, 100));
    assert_eq!(stream.state().entries_added, i64::MAX as u64);
    assert_eq!(stream.deliver_again(b"g", consumer, StreamId::MIN, 10, 7, |_, _| {}), 1);
    assert_eq!(stream.deliver(b"g", consumer, 10, 7, Acknowledgement::Expected, |_| {}), 2);
    for read in [None, Some(0), Some(1 << 63), Some(u64::MAX)] {
        for last in [StreamId::MIN, first, second, StreamId::MAX] {
            let group = Group::new(last, read);
            let _ = stream.lag(&group);
        }
    }
    let group = stream.group(b"g").expect("it was added");
    assert!(group.pending_in(StreamId::MIN..=StreamId::MAX).all(|(_, pending)| pending.deliveries > 0));
}
