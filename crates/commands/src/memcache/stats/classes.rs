//! stats items, stats slabs: the items by the size classes of their memory. Knows nothing of what the items are.
//!
//! Nobody keeps count of items by class, so they are looked at. Of very many only some are, shard by shard, and what is
//! seen stands for the rest.

use super::lines::Lines;
use std::collections::BTreeMap;
use tenon_engine::Engine;
use tenon_engine::ds::progress;
use tenon_engine::ds::slab::{self, SPAN_BYTES};
use tenon_engine::stats::{CLASSES, ClassCounters, Counter};
use tenon_engine::store::entry::EntryRef;
use tenon_engine::worker::Worker;

/// Keys that are looked at, about.
const KEYS_SEEN: usize = 100_000;

/// The items of a class.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    items: u64,
    bytes: u64,
    /// The longest time since one was accessed.
    idle_seconds: u32,
}

/// Looks at the keys; classes by the numbers that `class_of` gives them, 0 for those in none.
fn survey(engine: &Engine, worker: &mut Worker, class_of: impl Fn(EntryRef<'_>) -> usize) -> BTreeMap<usize, Class> {
    let clock = worker.clock.access;
    let mut all = 0;
    for index in 0..engine.shards.count() {
        let state = engine.lock_serving(worker, index);
        all += state.shard.keys();
    }
    let step = all.div_ceil(KEYS_SEEN).max(1);
    let mut classes = BTreeMap::<usize, Class>::new();
    let mut seen = 0;
    for index in (0..engine.shards.count()).step_by(step) {
        let state = engine.lock_serving(worker, index);
        for (_, keyspace) in state.shard.databases() {
            seen += keyspace.len();
            keyspace.scan(0, usize::MAX, |entry| {
                progress::count(1);
                let class = classes.entry(class_of(entry)).or_default();
                class.items += 1;
                class.bytes += entry.memory() as u64;
                class.idle_seconds = class.idle_seconds.max(clock.seconds_since(entry.access()));
            });
        }
    }
    let scaled = |number: u64| (u128::from(number) * all as u128 / seen.max(1) as u128) as u64;
    for class in classes.values_mut() {
        *class = Class { items: scaled(class.items), bytes: scaled(class.bytes), ..*class };
    }
    classes
}

/// A counter of a class, over all workers.
fn counted(engine: &Engine, number: usize, counter: fn(&ClassCounters) -> &Counter) -> u64 {
    engine.sum(|stats| stats.class_if_counted(number).map_or(0, |class| counter(class).get()))
}

/// How long nobody had accessed what was evicted last from a class, in seconds.
fn last_evicted_idle_s(engine: &Engine, number: usize) -> u64 {
    let (mut last_ms, mut idle_s) = (0, 0);
    engine.each_stats(|stats| {
        let Some(class) = stats.class_if_counted(number) else { return };
        let at_ms = class.evicted_at_ms.get();
        if at_ms > last_ms {
            (last_ms, idle_s) = (at_ms, class.evicted_idle_s.get());
        }
    });
    idle_s
}

/// How many items each class has, and what has become of others.
pub(super) fn items(engine: &Engine, worker: &mut Worker, lines: &mut Lines<'_>) {
    for (number, class) in survey(engine, worker, |entry| entry.size_class()) {
        let mut stat = |name: &str, value: u64| lines.stat(format_args!("items:{number}:{name}"), value);
        let counted = |counter| counted(engine, number, counter);
        stat("number", class.items);
        stat("age", class.idle_seconds.into());
        stat("mem_requested", class.bytes);
        stat("evicted", counted(|class| &class.evicted));
        stat("evicted_nonzero", counted(|class| &class.evicted_with_deadline));
        stat("evicted_time", last_evicted_idle_s(engine, number));
        stat("outofmemory", counted(|class| &class.out_of_memory));
        // No item can be lost.
        stat("tailrepairs", 0);
        stat("reclaimed", counted(|class| &class.expired));
        stat("expired_unfetched", counted(|class| &class.expired_unfetched));
        stat("evicted_unfetched", counted(|class| &class.evicted_unfetched));
        // Nobody crawls, and there are no queues.
        stat("crawler_reclaimed", 0);
        stat("crawler_items_checked", 0);
        stat("lrutail_reflocked", 0);
    }
}

/// How many items have which size, up to multiples of 32 bytes.
pub(super) fn sizes(engine: &Engine, worker: &mut Worker, lines: &mut Lines<'_>) {
    for (size, class) in survey(engine, worker, |entry| entry.memory().next_multiple_of(32)) {
        lines.stat(size, class.items);
    }
}

/// How much memory each class has, and what was asked of its items; a page is what a span of the slab is.
pub(super) fn slabs(engine: &Engine, worker: &mut Worker, lines: &mut Lines<'_>) {
    let mut classes = survey(engine, worker, |entry| entry.size_class());
    // What was in a class has been asked for, even if nothing is there any more.
    for number in 0..CLASSES {
        if engine.sum(|stats| stats.class_if_counted(number).is_some().into()) > 0 {
            classes.entry(number).or_default();
        }
    }
    let mut active = 0;
    for (number, class) in classes.into_iter().filter(|(number, _)| *number > 0) {
        active += 1;
        let mut stat = |name: &str, value: u64| lines.stat(format_args!("{number}:{name}"), value);
        let counted = |counter| counted(engine, number, counter);
        let chunks_per_page = SPAN_BYTES / slab::class_bytes(number);
        let pages = slab::class_spans(number);
        let chunks = (pages * chunks_per_page) as u64;
        stat("chunk_size", slab::class_bytes(number) as u64);
        stat("chunks_per_page", chunks_per_page as u64);
        stat("total_pages", pages as u64);
        stat("total_chunks", chunks);
        stat("used_chunks", class.items);
        // Parts of tables lie in such blocks, too, and are no items.
        stat("free_chunks", chunks.saturating_sub(class.items));
        stat("free_chunks_end", 0);
        stat("get_hits", counted(|class| &class.get_hits));
        stat("cmd_set", counted(|class| &class.cmd_set));
        stat("delete_hits", counted(|class| &class.delete_hits));
        stat("incr_hits", counted(|class| &class.incr_hits));
        stat("decr_hits", counted(|class| &class.decr_hits));
        stat("cas_hits", counted(|class| &class.cas_hits));
        stat("cas_badval", counted(|class| &class.cas_badval));
        stat("touch_hits", counted(|class| &class.touch_hits));
    }
    lines.stat("active_slabs", active);
    lines.stat("total_malloced", slab::spans() * SPAN_BYTES);
}
