//! stats items, stats slabs: the items by the size classes of their memory. Knows nothing of what the items are.
//!
//! Nobody keeps count of items by class, so they are looked at. Of very many only some are, shard by shard, and what is
//! seen stands for the rest.

use super::lines::Lines;
use std::collections::BTreeMap;
use tenon_engine::Engine;
use tenon_engine::ds::slab::{self, SPAN_BYTES};
use tenon_engine::store::entry::EntryRef;
use tenon_engine::store::keyspace::Keyspace;
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
    let count = |keyspace: Option<&Keyspace>| keyspace.map_or(0, Keyspace::len);
    let mut all = 0;
    for index in 0..engine.shards.count() {
        let state = engine.lock_serving(worker, index);
        all += (0..state.shard.databases()).map(|database| count(state.shard.database(database))).sum::<usize>();
    }
    let step = all.div_ceil(KEYS_SEEN).max(1);
    let mut classes = BTreeMap::<usize, Class>::new();
    let mut seen = 0;
    for index in (0..engine.shards.count()).step_by(step) {
        let state = engine.lock_serving(worker, index);
        for keyspace in (0..state.shard.databases()).filter_map(|database| state.shard.database(database)) {
            seen += keyspace.len();
            keyspace.scan(0, usize::MAX, |entry| {
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

/// How many items each class has.
pub(super) fn items(engine: &Engine, worker: &mut Worker, lines: &mut Lines<'_>) {
    for (number, class) in survey(engine, worker, |entry| entry.size_class()) {
        lines.stat(format_args!("items:{number}:number"), class.items);
        lines.stat(format_args!("items:{number}:age"), class.idle_seconds);
        lines.stat(format_args!("items:{number}:mem_requested"), class.bytes);
    }
}

/// How many items have which size, up to multiples of 32 bytes.
pub(super) fn sizes(engine: &Engine, worker: &mut Worker, lines: &mut Lines<'_>) {
    for (size, class) in survey(engine, worker, |entry| entry.memory().next_multiple_of(32)) {
        lines.stat(size, class.items);
    }
}

/// How much memory each class has; a page is what a span of the slab is.
pub(super) fn slabs(engine: &Engine, worker: &mut Worker, lines: &mut Lines<'_>) {
    let mut active = 0;
    for (number, class) in
        survey(engine, worker, |entry| entry.size_class()).into_iter().filter(|(number, _)| *number > 0)
    {
        active += 1;
        let chunk = slab::class_bytes(number);
        let pages = slab::class_spans(number);
        let chunks = pages * (SPAN_BYTES / chunk);
        lines.stat(format_args!("{number}:chunk_size"), chunk);
        lines.stat(format_args!("{number}:chunks_per_page"), SPAN_BYTES / chunk);
        lines.stat(format_args!("{number}:total_pages"), pages);
        lines.stat(format_args!("{number}:total_chunks"), chunks);
        lines.stat(format_args!("{number}:used_chunks"), class.items);
        // Parts of tables lie in such blocks, too, and are no items.
        lines.stat(format_args!("{number}:free_chunks"), (chunks as u64).saturating_sub(class.items));
        lines.stat(format_args!("{number}:free_chunks_end"), 0);
    }
    lines.stat("active_slabs", active);
    lines.stat("total_malloced", slab::spans() * SPAN_BYTES);
}
