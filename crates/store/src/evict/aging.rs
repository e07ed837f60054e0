//! Keys that nobody uses stay old, however long that is. Knows no shard, and not who goes round.

use super::turnover::aged;
use crate::keyspace::Keyspace;
use tenon_ds::hash_table::Slot;

/// Keys that are asked for from memory ahead.
const KEYS_AHEAD: usize = 8;

/// Makes all keys that are older than is kept as old as that, at this tick.
pub fn keep_old(keyspace: &mut Keyspace, tick: u32) {
    let slots: Vec<Slot> = keyspace.slots_from(0).collect();
    for (at, &slot) in slots.iter().enumerate() {
        if let Some(&ahead) = slots.get(at + KEYS_AHEAD) {
            keyspace.prefetch_slot(ahead);
        }
        if let Some(access) = aged(tick, keyspace.entry(slot).access()) {
            keyspace.entry_mut(slot).set_access(access);
        }
    }
}
