//! A consumer group: who has been given which entries and has not acknowledged them. Knows the entries' ids only.

use super::id::StreamId;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::ops::{Bound, RangeInclusive};
use tenon_ds::progress;

/// So many deleted entries are gathered before they are taken out of the order of times.
const GONE_AT_ONCE: usize = 4_096;

/// The highest count of entries and of deliveries, and the latest time of one: commands, and with them the log, have signed
/// numbers for them.
pub(super) const COUNT_MAX: u64 = i64::MAX as u64;

/// A consumer's number in its group, given out once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConsumerNumber(NonZeroU64);

/// Who has an entry that is not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    /// A consumer, since it was delivered to it last, in milliseconds since the UNIX epoch.
    Consumer { number: ConsumerNumber, delivered_ms: u64 },
    /// Nobody: it was given back, so many others before it.
    Nobody { turn: u64 },
}

/// An entry that was delivered and is not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    holder: Holder,
    /// How often it was delivered.
    pub deliveries: u64,
}

/// What is known of its holder's number stands where there is room anyway.
const _: () = assert!(size_of::<Pending>() == 24);

impl Pending {
    /// One that a consumer was given last at this time, in milliseconds since the UNIX epoch; with that, it was delivered so
    /// often.
    pub fn of(number: ConsumerNumber, delivered_ms: u64, deliveries: u64) -> Pending {
        let holder = Holder::Consumer { number, delivered_ms: delivered_ms.min(COUNT_MAX) };
        Pending { holder, deliveries: deliveries.min(COUNT_MAX) }
    }

    /// Who was given it last; nobody any more when it was given back.
    pub fn consumer(&self) -> Option<ConsumerNumber> {
        match self.holder {
            Holder::Consumer { number, .. } => Some(number),
            Holder::Nobody { .. } => None,
        }
    }

    /// When it was delivered last, in milliseconds since the UNIX epoch; 0 when it was given back, as in Redis.
    pub fn delivered_ms(&self) -> u64 {
        match self.holder {
            Holder::Consumer { delivered_ms, .. } => delivered_ms,
            Holder::Nobody { .. } => 0,
        }
    }

    /// For how long nothing has happened to it, in milliseconds.
    pub fn idle_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.delivered_ms())
    }

    /// Whether nothing has happened to it for so long. What was given back may be had at once.
    pub fn is_idle_for(&self, ms: u64, now_ms: u64) -> bool {
        self.consumer().is_none() || self.idle_ms(now_ms) >= ms
    }

    /// Whoever has it is given it once more.
    pub(super) fn deliver_again(&mut self, now_ms: u64) {
        if let Holder::Consumer { delivered_ms, .. } = &mut self.holder {
            *delivered_ms = now_ms;
        }
        self.deliveries = self.deliveries.saturating_add(1).min(COUNT_MAX);
    }
}

/// One of those who share a group's entries.
#[derive(Clone, Debug)]
pub struct Consumer {
    name: Box<[u8]>,
    /// When it asked for entries last, in milliseconds since the UNIX epoch.
    pub seen_ms: u64,
    /// When it was given an entry last.
    pub active_ms: Option<u64>,
    pending: BTreeSet<StreamId>,
}

impl Consumer {
    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The ids of the entries that it was given and has not acknowledged.
    pub fn pending(&self) -> &BTreeSet<StreamId> {
        &self.pending
    }

    /// How many allocations there are to free, about.
    pub fn allocations(&self) -> usize {
        self.pending.len() / NODE_LEN + 2
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        progress::count(1);
        drop_counted(std::mem::take(&mut self.pending));
    }
}

/// Drops one after another, which whoever follows long work hears of.
fn drop_counted<T>(things: impl IntoIterator<Item = T>) {
    things.into_iter().for_each(|_| progress::count(1));
}

/// A consumer group.
#[derive(Clone, Debug)]
pub struct Group {
    pub(super) last_id: StreamId,
    /// How many of all entries ever added it has read, as far as that is known.
    pub(super) entries_read: Option<u64>,
    pending: BTreeMap<StreamId, Pending>,
    /// Those of consumers by the time of their last delivery. Made when it is first asked for: most groups never need it.
    /// Some that the stream has no more, and cannot have again, are left out.
    by_time: Option<BTreeSet<(u64, StreamId)>>,
    /// Those that were given back and are nobody's, by their turn.
    released: BTreeMap<u64, StreamId>,
    next_turn: u64,
    consumers: BTreeMap<ConsumerNumber, Consumer>,
    names: BTreeMap<Box<[u8]>, ConsumerNumber>,
    /// Bytes of all names.
    names_len: usize,
    next_number: NonZeroU64,
}

impl Drop for Group {
    fn drop(&mut self) {
        drop_counted(std::mem::take(&mut self.pending));
        drop_counted(self.by_time.take().unwrap_or_default());
        drop_counted(std::mem::take(&mut self.released));
    }
}

/// The range if it is not empty: the standard library's trees do not take one that ends before it begins.
fn in_order(ids: RangeInclusive<StreamId>) -> impl Iterator<Item = RangeInclusive<StreamId>> {
    Some(ids).filter(|ids| !ids.is_empty()).into_iter()
}

/// A count of entries that a file or a client gives, as far as it can be.
fn known(entries_read: Option<u64>) -> Option<u64> {
    entries_read.map(|count| count.min(COUNT_MAX))
}

/// About how many elements lie in a node of the standard library's trees.
const NODE_LEN: usize = 8;

impl Group {
    /// A group without consumers whose first entry will be the one behind `last_id`.
    pub fn new(last_id: StreamId, entries_read: Option<u64>) -> Group {
        Group {
            last_id,
            entries_read: known(entries_read),
            pending: BTreeMap::new(),
            by_time: None,
            released: BTreeMap::new(),
            next_turn: 0,
            consumers: BTreeMap::new(),
            names: BTreeMap::new(),
            names_len: 0,
            next_number: NonZeroU64::MIN,
        }
    }

    /// The id of the last entry that was delivered to any consumer.
    pub fn last_id(&self) -> StreamId {
        self.last_id
    }

    /// How many of all entries ever added it has read, as far as that is known.
    pub fn entries_read(&self) -> Option<u64> {
        self.entries_read
    }

    /// Goes on behind another entry.
    pub fn set_position(&mut self, last_id: StreamId, entries_read: Option<u64>) {
        self.last_id = last_id;
        self.entries_read = known(entries_read);
    }

    /// Notes that entries up to this id were delivered, if they were not.
    pub fn raise_last_id(&mut self, id: StreamId) -> bool {
        let is_raised = id > self.last_id;
        self.last_id = self.last_id.max(id);
        is_raised
    }

    /// The consumers, in the order of their names.
    pub fn consumers(&self) -> impl ExactSizeIterator<Item = &Consumer> {
        self.names.values().map(|number| &self.consumers[number]).inspect(|_| progress::count(1))
    }

    /// The consumers from one on, or from the first, each with its number, in the order of their names.
    pub fn consumers_from(&self, first: Option<ConsumerNumber>) -> impl Iterator<Item = (ConsumerNumber, &Consumer)> {
        let from = first.map_or(Bound::Unbounded, |number| Bound::Included(self.consumer(number).name()));
        let numbers = self.names.range::<[u8], _>((from, Bound::Unbounded));
        numbers.map(|(_, number)| (*number, &self.consumers[number])).inspect(|_| progress::count(1))
    }

    /// The number of the consumer with this name.
    pub fn number_of(&self, name: &[u8]) -> Option<ConsumerNumber> {
        self.names.get(name).copied()
    }

    /// The consumer with this number, which the group has.
    pub fn consumer(&self, number: ConsumerNumber) -> &Consumer {
        &self.consumers[&number]
    }

    pub(super) fn consumer_mut(&mut self, number: ConsumerNumber) -> &mut Consumer {
        self.consumers.get_mut(&number).expect("the group has the consumer")
    }

    /// Adds a consumer that was last seen, and perhaps given something, at these times; `None` when there is one with
    /// this name.
    pub fn add_consumer(&mut self, name: &[u8], seen_ms: u64, active_ms: Option<u64>) -> Option<ConsumerNumber> {
        if self.names.contains_key(name) {
            return None;
        }
        let number = ConsumerNumber(self.next_number);
        self.next_number = self.next_number.checked_add(1).expect("there are never so many");
        let consumer = Consumer { name: name.into(), seen_ms, active_ms, pending: BTreeSet::new() };
        self.consumers.insert(number, consumer);
        self.names.insert(name.into(), number);
        self.names_len += name.len();
        Some(number)
    }

    /// The consumer with this name, made if there is none, noted as seen now; tells whether it was made.
    pub fn see_consumer(&mut self, name: &[u8], now_ms: u64) -> (ConsumerNumber, bool) {
        match self.number_of(name) {
            Some(number) => {
                self.consumer_mut(number).seen_ms = now_ms;
                (number, false)
            }
            None => (self.add_consumer(name, now_ms, None).expect("the name is free"), true),
        }
    }

    /// Takes a consumer out, and what it was given and has not acknowledged.
    pub fn remove_consumer(&mut self, name: &[u8]) -> Option<Consumer> {
        let number = self.names.remove(name)?;
        self.names_len -= name.len();
        let consumer = self.consumers.remove(&number).expect("who has a name is there");
        for id in &consumer.pending {
            progress::count(1);
            let pending = self.pending.remove(id).expect("a consumer's entry is its group's");
            if let Some(by_time) = &mut self.by_time {
                by_time.remove(&(pending.delivered_ms(), *id));
            }
        }
        Some(consumer)
    }

    /// The name of whoever has an entry of the group; that of nobody is empty, as in Redis.
    pub fn holder_of(&self, pending: Pending) -> &[u8] {
        pending.consumer().map_or(b"", |number| self.consumer(number).name())
    }

    /// The entries that were given back and are nobody's, those first that were first, each with its turn, from a turn on.
    pub fn released_from(&self, turn: u64) -> impl Iterator<Item = (u64, StreamId)> {
        self.released.range(turn..).map(|(turn, id)| (*turn, *id)).inspect(|_| progress::count(1))
    }

    /// How many of those there are.
    pub fn released_len(&self) -> usize {
        self.released.len()
    }

    /// How many entries were delivered and are not acknowledged.
    pub fn pending_len(&self) -> usize {
        self.pending.len()
    }

    /// The lowest and the highest id of those entries.
    pub fn pending_bounds(&self) -> Option<(StreamId, StreamId)> {
        Some((*self.pending.first_key_value()?.0, *self.pending.last_key_value()?.0))
    }

    /// What is known of such an entry.
    pub fn pending(&self, id: StreamId) -> Option<Pending> {
        self.pending.get(&id).copied()
    }

    /// Such entries, in order.
    pub fn pending_in(&self, ids: RangeInclusive<StreamId>) -> impl Iterator<Item = (StreamId, Pending)> {
        let pending = in_order(ids).flat_map(|ids| self.pending.range(ids));
        pending.map(|(id, pending)| (*id, *pending)).inspect(|_| progress::count(1))
    }

    /// Such entries of one consumer, in order.
    pub fn pending_of(
        &self,
        number: ConsumerNumber,
        ids: RangeInclusive<StreamId>,
    ) -> impl Iterator<Item = (StreamId, Pending)> {
        let consumer = self.consumer(number);
        let pending = in_order(ids).flat_map(|ids| consumer.pending.range(ids));
        pending.map(|id| (*id, self.pending[id])).inspect(|_| progress::count(1))
    }

    fn by_time(&mut self) -> &BTreeSet<(u64, StreamId)> {
        let pending = &self.pending;
        self.by_time.get_or_insert_with(|| {
            let held = pending.iter().filter(|(_, pending)| pending.consumer().is_some());
            held.map(|(id, pending)| (pending.delivered_ms(), *id)).collect()
        })
    }

    /// Such entries that were given back, and behind them those that were delivered last at a time up to this one, the
    /// earliest first, at most `most`. Those that the stream does not have are passed over, and if they cannot come again,
    /// their ids being up to its last one, of those that were not given back each once: whoever asks again and again would
    /// pass all of them every time.
    pub(super) fn delivered_up_to(
        &mut self,
        latest_ms: u64,
        most: usize,
        last_id: StreamId,
        mut is_there: impl FnMut(StreamId) -> bool,
    ) -> Vec<StreamId> {
        let released = self.released_from(0).map(|(_, id)| id).filter(|id| is_there(*id));
        let mut found: Vec<StreamId> = released.take(most).collect();
        let (mut gone, mut from) = (Vec::new(), Bound::Unbounded);
        self.by_time();
        let by_time = self.by_time.as_mut().expect("it was made just now");
        loop {
            let rest = (from, Bound::Included((latest_ms, StreamId::MAX)));
            for &(ms, id) in by_time.range(rest) {
                if found.len() == most || gone.len() == GONE_AT_ONCE {
                    break;
                }
                progress::count(1);
                from = Bound::Excluded((ms, id));
                if is_there(id) {
                    found.push(id);
                } else if id <= last_id {
                    gone.push((ms, id));
                }
            }
            let goes_on = gone.len() == GONE_AT_ONCE;
            progress::count(gone.len());
            for passed in gone.drain(..) {
                by_time.remove(&passed);
            }
            if !goes_on {
                return found;
            }
        }
    }

    /// When the first such entry was delivered.
    pub(super) fn first_delivered(&mut self) -> Option<u64> {
        self.by_time().first().map(|(delivered_ms, _)| *delivered_ms)
    }

    /// Entries of which the stream had none before may be there: none is left out any more.
    pub(super) fn look_anew(&mut self) {
        self.by_time = None;
    }

    /// When the first such entry was delivered that was so after this time.
    pub(super) fn first_delivered_after(&mut self, ms: u64) -> Option<u64> {
        let from = ms.checked_add(1)?;
        self.by_time().range((from, StreamId::MIN)..).next().map(|(delivered_ms, _)| *delivered_ms)
    }

    /// Calls `visit` with such entries of one consumer from an id on, at most `most`, in order; gives how many.
    pub(super) fn each_pending_of(
        &mut self,
        number: ConsumerNumber,
        from: StreamId,
        most: usize,
        mut visit: impl FnMut(StreamId, &mut Pending),
    ) -> usize {
        let ids = self.consumers[&number].pending.range(from..).take(most);
        let mut count = 0;
        for id in ids {
            let pending = self.pending.get_mut(id).expect("a consumer's entry is its group's");
            let before_ms = pending.delivered_ms();
            visit(*id, pending);
            if let Some(by_time) = &mut self.by_time
                && pending.delivered_ms() != before_ms
            {
                by_time.remove(&(before_ms, *id));
                by_time.insert((pending.delivered_ms(), *id));
            }
            count += 1;
        }
        count
    }

    /// Notes a delivery: its consumer is the entry's only owner from now on.
    pub fn assign(&mut self, id: StreamId, pending: Pending) {
        let consumer = pending.consumer().expect("what is delivered has an owner");
        let before = self.pending.insert(id, pending);
        if let Some(before) = before.filter(|before| before.consumer() == Some(consumer)) {
            if let Some(by_time) = &mut self.by_time {
                by_time.remove(&(before.delivered_ms(), id));
            }
        } else {
            if let Some(before) = before {
                self.forget_holder(id, before);
            }
            self.consumer_mut(consumer).pending.insert(id);
        }
        if let Some(by_time) = &mut self.by_time {
            by_time.insert((pending.delivered_ms(), id));
        }
    }

    /// Whoever has an entry has it no more, whatever becomes of it.
    fn forget_holder(&mut self, id: StreamId, pending: Pending) {
        match pending.holder {
            Holder::Consumer { number, delivered_ms } => {
                if let Some(by_time) = &mut self.by_time {
                    by_time.remove(&(delivered_ms, id));
                }
                self.consumer_mut(number).pending.remove(&id);
            }
            Holder::Nobody { turn } => _ = self.released.remove(&turn),
        }
    }

    /// Notes that an entry was given back, delivered so often: it is nobody's, and the last one of those.
    pub fn release(&mut self, id: StreamId, deliveries: u64) {
        progress::count(1);
        let turn = self.next_turn;
        self.next_turn += 1;
        let pending = Pending { holder: Holder::Nobody { turn }, deliveries: deliveries.min(COUNT_MAX) };
        if let Some(before) = self.pending.insert(id, pending) {
            self.forget_holder(id, before);
        }
        self.released.insert(turn, id);
    }

    /// Notes that an entry is done with; tells whether it was delivered and not acknowledged before.
    pub fn acknowledge(&mut self, id: StreamId) -> bool {
        progress::count(1);
        let Some(pending) = self.pending.remove(&id) else { return false };
        self.forget_holder(id, pending);
        true
    }

    /// Whether the group will be given the entry, or has been and did not acknowledge it.
    pub(super) fn needs(&self, id: StreamId) -> bool {
        id > self.last_id || self.pending.contains_key(&id)
    }

    /// How many allocations there are to free, about.
    pub fn allocations(&self) -> usize {
        let by_time = self.by_time.as_ref().map_or(0, BTreeSet::len);
        (self.pending.len() * 2 + self.released.len() + by_time) / NODE_LEN + self.consumers.len() * 3 + 1
    }

    /// Bytes of memory beside the group itself, about: trees that are filled in order have room for twice what they hold.
    pub(super) fn memory(&self) -> usize {
        let pending = size_of::<(StreamId, Pending)>() + size_of::<StreamId>();
        let consumer = size_of::<(ConsumerNumber, Consumer)>() + size_of::<(Box<[u8]>, ConsumerNumber)>();
        let by_time = self.by_time.as_ref().map_or(0, |by_time| by_time.len() * size_of::<(u64, StreamId)>());
        let released = self.released.len() * size_of::<(u64, StreamId)>();
        // Each name is there twice. Asked of a stream that is changed: nothing is gone through.
        (self.pending.len() * pending + by_time + released + self.consumers.len() * consumer) * 2 + self.names_len * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_were_deleted_are_passed_over_once() {
        const ENTRIES: u64 = 100;
        let mut group = Group::new(StreamId::MIN, None);
        let (consumer, _) = group.see_consumer(b"c", 0);
        for ms in 1..=ENTRIES {
            group.assign(StreamId::new(ms, 0), Pending::of(consumer, ms, 1));
        }
        let looked_at = |group: &mut Group, most| {
            let mut count = 0;
            let found = group.delivered_up_to(ENTRIES, most, StreamId::new(ENTRIES, 0), |id| {
                count += 1;
                id.ms > ENTRIES - 2
            });
            (found.len(), count)
        };
        assert_eq!(looked_at(&mut group, 1), (1, ENTRIES - 1));
        assert_eq!(looked_at(&mut group, 1), (1, 1));
        assert_eq!(looked_at(&mut group, usize::MAX), (2, 2));
        assert_eq!(group.first_delivered(), Some(ENTRIES - 1));
        assert_eq!(group.pending_len() as u64, ENTRIES, "they are pending all the same");
        assert!(group.acknowledge(StreamId::new(1, 0)));
        // Where some are looked at that are not there, they stay as they are.
        assert_eq!(group.each_pending_of(consumer, StreamId::MIN, 10, |_, _| {}), 10);
        assert_eq!(looked_at(&mut group, usize::MAX), (2, 2));
        group.look_anew();
        assert_eq!(looked_at(&mut group, usize::MAX), (2, ENTRIES - 1));
        // Those behind the last id may be added anew.
        group.look_anew();
        for _ in 0..2 {
            let half = StreamId::new(ENTRIES / 2, 0);
            assert_eq!(group.delivered_up_to(ENTRIES, usize::MAX, half, |_| false), []);
        }
        let all = group.delivered_up_to(ENTRIES, usize::MAX, StreamId::MAX, |_| true);
        assert_eq!(all.len() as u64, ENTRIES / 2);
        assert_eq!(all[0], StreamId::new(ENTRIES / 2 + 1, 0));
    }

    #[test]
    fn very_many_entries_that_were_deleted_are_passed_over() {
        let entries = 3 * GONE_AT_ONCE as u64 + 7;
        let mut group = Group::new(StreamId::MIN, None);
        let (consumer, _) = group.see_consumer(b"c", 0);
        for ms in 1..=entries {
            group.assign(StreamId::new(ms, 0), Pending::of(consumer, ms, 1));
        }
        // Every thousandth is there.
        let found = group.delivered_up_to(entries, usize::MAX, StreamId::MAX, |id| id.ms.is_multiple_of(1_000));
        assert!(found.iter().map(|id| id.ms).eq((1_000..=entries).step_by(1_000)));
        let mut count = 0;
        group.delivered_up_to(entries, usize::MAX, StreamId::MAX, |_| {
            count += 1;
            true
        });
        assert_eq!(count, found.len());
    }
}
