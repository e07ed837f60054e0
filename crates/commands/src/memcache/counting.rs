//! What requests are counted as: in all, and in the size class of their item. Changes no item.

use tenon_engine::context::KeyCx;
use tenon_engine::stats::{ClassCounters, Counter, Counters};
use tenon_engine::store::Slot;
use tenon_engine::store::entry::class_of_string;

/// Counts a read of a key, as memcached does: one that sets the expiry is a touch.
#[inline]
pub(super) fn read(cx: &mut KeyCx<'_>, slot: Option<Slot>, sets_expiry: bool) {
    let class = slot.map(|slot| cx.entry(slot).size_class());
    let stats = &cx.worker().stats;
    let all = &stats.all;
    let (requests, hits) =
        if sets_expiry { (&all.mc_touch, &all.mc_touch_hits) } else { (&all.mc_get, &all.mc_get_hits) };
    requests.add(1);
    let Some(class) = class else { return };
    hits.add(1);
    let class = stats.class(class);
    if sets_expiry { class.touch_hits.add(1) } else { class.get_hits.add(1) }
}

/// Counts something about an item, in all and in its size class.
#[inline]
pub(super) fn item(
    cx: &mut KeyCx<'_>,
    slot: Slot,
    all: fn(&Counters) -> &Counter,
    in_class: fn(&ClassCounters) -> &Counter,
) {
    let class = cx.entry(slot).size_class();
    let stats = &cx.worker().stats;
    all(&stats.all).add(1);
    in_class(stats.class(class)).add(1);
}

/// Counts a cas request whose token is the item's, or is another.
#[inline]
pub(super) fn compared(cx: &mut KeyCx<'_>, slot: Slot, is_equal: bool) {
    if is_equal {
        item(cx, slot, |all| &all.mc_cas_hits, |class| &class.cas_hits);
    } else {
        item(cx, slot, |all| &all.mc_cas_badval, |class| &class.cas_badval);
    }
}

/// Counts a storage command in the size class of the item in `slot`, or, where it has stored none, in that of the one
/// that was sent.
#[inline]
pub(super) fn sent(cx: &mut KeyCx<'_>, slot: Option<Slot>, len: usize) {
    let class = slot.map_or_else(|| class_of_string(cx.key.len(), len), |slot| cx.entry(slot).size_class());
    cx.worker().stats.class(class).cmd_set.add(1);
}

/// Counts a storage command that there is no memory for.
pub(super) fn refused_for_memory(cx: &mut KeyCx<'_>, len: usize) {
    let class = class_of_string(cx.key.len(), len);
    let stats = &cx.worker().stats;
    stats.all.mc_no_memory.add(1);
    stats.class(class).out_of_memory.add(1);
}
