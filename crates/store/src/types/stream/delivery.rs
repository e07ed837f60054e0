//! Giving a stream's entries to the consumers of a group. Knows no command.

use super::block::Entry;
use super::group::{COUNT_MAX, ConsumerNumber, Pending};
use super::id::StreamId;
use super::value::Stream;

/// Whether a delivered entry waits to be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledgement {
    /// It does.
    Expected,
    /// It counts as acknowledged.
    Given,
}

/// How an entry that was delivered before is taken over by another consumer.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// By whom.
    pub consumer: ConsumerNumber,
    /// For how long nothing must have happened to it, in milliseconds.
    pub idle_ms_min: u64,
    /// When it counts as delivered, in milliseconds since the UNIX epoch.
    pub delivered_ms: u64,
    /// How often it counts as delivered; without it, once more than before where `is_delivery`.
    pub deliveries: Option<u64>,
    /// Whether the entry itself is given to the consumer.
    pub is_delivery: bool,
    /// Whether an entry is taken that was not delivered to anybody.
    pub is_forced: bool,
}

/// What became of an entry that was to be taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// It is the consumer's.
    Yes,
    /// It was delivered to nobody, or not long enough ago.
    No,
    /// It was deleted meanwhile, and waits no more.
    Gone,
}

/// How the deliveries of an entry count that is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recount {
    /// The last one does not.
    Undone,
    /// As they are.
    Kept,
    /// As the most there can be: nobody should try again.
    Most,
    /// As so many.
    Set(u64),
}

/// Whether an entry may be given back that is not pending: that must be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotPending {
    /// It is passed over.
    PassedOver,
    /// It becomes pending, delivered to nobody yet, if the stream has it.
    Made,
}

impl Stream {
    /// Gives back an entry that was delivered and is not acknowledged: it is nobody's, and whoever claims entries may have it
    /// at once. Tells whether there was one.
    pub fn release(&mut self, group: &[u8], id: StreamId, recount: Recount, not_pending: NotPending) -> bool {
        let Some(group) = self.groups.get_mut(group) else { return false };
        let deliveries = match group.pending(id) {
            Some(pending) => pending.deliveries,
            None if not_pending == NotPending::Made && self.entries.get(id).is_some() => 0,
            None => return false,
        };
        let deliveries = match recount {
            Recount::Undone => deliveries.saturating_sub(1),
            Recount::Kept => deliveries,
            Recount::Most => COUNT_MAX,
            Recount::Set(deliveries) => deliveries,
        };
        group.release(id, deliveries);
        true
    }

    /// Gives a consumer the entries that come next, at most `most`; gives how many there were. Each is handed to `visit`.
    pub fn deliver(
        &mut self,
        group: &[u8],
        consumer: ConsumerNumber,
        most: usize,
        now_ms: u64,
        acknowledgement: Acknowledgement,
        mut visit: impl FnMut(Entry<'_>),
    ) -> usize {
        let counters = self.counters();
        let Some(group) = self.groups.get_mut(group) else { return 0 };
        let Some(from) = group.last_id.next() else { return 0 };
        let mut count = 0;
        for entry in self.entries.range(from, StreamId::MAX).take(most) {
            let id = entry.id();
            group.entries_read = counters.read_up_to(id, group.last_id, group.entries_read);
            group.last_id = id;
            visit(entry);
            if acknowledgement == Acknowledgement::Expected {
                group.assign(id, Pending::of(consumer, now_ms, 1));
            }
            count += 1;
        }
        if count > 0 && acknowledgement == Acknowledgement::Expected {
            group.consumer_mut(consumer).active_ms = Some(now_ms);
        }
        count
    }

    /// Gives a consumer the entries once more that it was given, from an id on, at most `most`; gives how many there
    /// were. Each is handed to `visit`, without the entry if it was deleted.
    pub fn deliver_again(
        &mut self,
        group: &[u8],
        consumer: ConsumerNumber,
        from: StreamId,
        most: usize,
        now_ms: u64,
        mut visit: impl FnMut(StreamId, Option<Entry<'_>>),
    ) -> usize {
        let Some(group) = self.groups.get_mut(group) else { return 0 };
        let entries = &self.entries;
        group.each_pending_of(consumer, from, most, |id, pending| {
            let entry = entries.get(id);
            if entry.is_some() {
                pending.deliver_again(now_ms);
            }
            visit(id, entry);
        })
    }

    /// The entries that were given to any consumer and not acknowledged, and that nothing has happened to for so long, the
    /// longest first, at most `most`. Entries that were deleted are passed over.
    pub fn idle(&mut self, group: &[u8], idle_ms_min: u64, most: usize, now_ms: u64) -> Vec<StreamId> {
        let Some(group) = self.groups.get_mut(group) else { return Vec::new() };
        let Some(latest_ms) = now_ms.checked_sub(idle_ms_min) else { return Vec::new() };
        let entries = &self.entries;
        group.delivered_up_to(latest_ms, most, self.state.last_id, |id| entries.get(id).is_some())
    }

    /// How long it is until nothing has happened for so long to a further entry, if nothing does: then `idle` is to be
    /// asked again. Where none is waited for, it is as long as it would take an entry that is given now.
    pub fn idle_in_ms(&mut self, group: &[u8], idle_ms_min: u64, now_ms: u64) -> u64 {
        let earlier_ms = now_ms.checked_sub(idle_ms_min);
        let group = self.groups.get_mut(group);
        let first_ms = group.and_then(|group| match earlier_ms {
            Some(ms) => group.first_delivered_after(ms),
            None => group.first_delivered(),
        });
        first_ms.map_or(idle_ms_min, |ms| ms.saturating_add(idle_ms_min).saturating_sub(now_ms))
    }

    /// Lets a consumer take over an entry that was given to another one, or to itself.
    pub fn claim(&mut self, group: &[u8], id: StreamId, claim: &Claim, now_ms: u64) -> Claimed {
        let Some(group) = self.groups.get_mut(group) else { return Claimed::No };
        if self.entries.get(id).is_none() {
            return if group.acknowledge(id) { Claimed::Gone } else { Claimed::No };
        }
        let before = match group.pending(id) {
            Some(pending) if !pending.is_idle_for(claim.idle_ms_min, now_ms) => return Claimed::No,
            Some(pending) => pending.deliveries,
            // Made as if it had been delivered once.
            None if claim.is_forced => 1,
            None => return Claimed::No,
        };
        let deliveries = claim.deliveries.unwrap_or(before.saturating_add(claim.is_delivery.into()));
        group.assign(id, Pending::of(claim.consumer, claim.delivered_ms, deliveries));
        group.consumer_mut(claim.consumer).active_ms = Some(now_ms);
        Claimed::Yes
    }
}
