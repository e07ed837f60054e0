//! stats cachedump: some items of a size class, with the length of their data and when they expire. Knows nothing of the
//! items beyond.

use super::super::admin::DATABASE;
use super::super::answer::Answer;
use std::io::Write;
use tenon_engine::Engine;
use tenon_engine::ds::{progress, slab};
use tenon_engine::store::keyspace::is_past;
use tenon_engine::string;
use tenon_engine::wire::memcache::number::parse_u32;
use tenon_engine::worker::Worker;

/// Bytes of a list, as in memcached; what does not fit is left out.
const LIST_MAX: usize = 2 << 20;

/// Lists up to a number of items of a class, as the words behind `stats cachedump` say; 0 for no limit.
pub(super) fn cachedump(engine: &Engine, worker: &mut Worker, words: &[&[u8]], out: &mut Vec<u8>) {
    if !engine.config.memcached_dump() {
        return Answer::CachedumpDisabled.write(out);
    }
    let [class, limit, ..] = words else { return Answer::BadLine.write(out) };
    let (Some(class), Some(limit)) = (parse_u32(class), parse_u32(limit)) else { return Answer::BadFormat.write(out) };
    let (class, limit) = (class as usize, if limit == 0 { usize::MAX } else { limit as usize });
    if class > slab::class_number(slab::SLAB_MAX) {
        return Answer::IllegalClass.write(out);
    }
    let now_ms = worker.clock.now_ms;
    let full = out.len() + LIST_MAX;
    let mut listed = 0;
    for index in 0..engine.shards.count() {
        if listed >= limit || out.len() >= full {
            break;
        }
        let state = engine.lock_serving(worker, index);
        let Some(keyspace) = state.shard.database(DATABASE) else { continue };
        let looked_at = keyspace.len();
        keyspace.scan(0, usize::MAX, |entry| {
            // A key that could not be told in a line is left out, as in memcached.
            let is_wanted = listed < limit
                && out.len() < full
                && entry.size_class() == class
                && entry.is_string()
                && !is_past(entry.deadline_ms(), now_ms)
                && entry.key().iter().all(|&byte| byte > b' ');
            if is_wanted {
                listed += 1;
                out.extend_from_slice(b"ITEM ");
                out.extend_from_slice(entry.key());
                let seconds = entry.deadline_ms().map_or(0, |ms| ms / 1_000);
                write!(out, " [{} b; {seconds} s]\r\n", string::len(entry.value())).expect("a Vec takes everything");
            }
        });
        // There may be few of this class among very many others, which are all looked at: nobody else waits for that.
        drop(state);
        progress::count(looked_at);
    }
    out.extend_from_slice(b"END\r\n");
}
