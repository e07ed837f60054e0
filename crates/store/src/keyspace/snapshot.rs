//! What a keyspace knows of a snapshot that is under way: which keys it lacks. Knows neither who writes it nor where to.
//!
//! ```text
//!            begin_snapshot            mark_written, or a new value        end_snapshot
//!   bit = epoch  --->  bit != epoch: lacking  --->  bit = epoch: not lacking  --->  bit = epoch
//!                (the epoch flips)
//! ```
//!
//! Every entry has one bit, every keyspace a bit that it is compared with, its epoch. Outside of snapshots all entries
//! have the epoch's bit, and new ones get it. A snapshot begins by flipping the epoch: at once it lacks all keys that are
//! there, and no entry was touched. Those that come later have the new epoch's bit and do not concern it. When it ends it
//! lacks none, and all bits are equal again.

use super::Keyspace;
use crate::entry::{Entry, EntryRef};
use tenon_ds::hash_table::Slot;

/// Keys with members that have a deadline, below two bits for snapshots and three for the whole shard: a word more would not
/// fit a shard's cache line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Noted(u32);

impl Noted {
    /// What the bit of an entry is that no snapshot lacks.
    const EPOCH: u32 = 1 << 31;
    /// A snapshot is under way and may lack keys.
    const UNFINISHED: u32 = 1 << 30;
    /// A key of the shard, in whatever database, may have very many members with deadlines.
    const MANY_DEADLINES: u32 = 1 << 29;
    /// Whoever changes a key of the shard, in whatever database, may have to change keys of other shards with it.
    const REACHES_FURTHER: u32 = 1 << 28;
    /// A key of the shard, in whatever database, may be read without the shard.
    const LENDS: u32 = 1 << 27;
    /// What is noted of the whole shard, in database 0.
    const OF_SHARD: u32 = Noted::MANY_DEADLINES | Noted::REACHES_FURTHER | Noted::LENDS;
    const BITS: u32 = Noted::EPOCH | Noted::UNFINISHED | Noted::OF_SHARD;

    pub(super) fn with_deadlines(self) -> u32 {
        self.0 & !Noted::BITS
    }

    pub(super) fn set_with_deadlines(&mut self, count: u32) {
        assert!(count & Noted::BITS == 0, "a shard has less than a hundred million such keys");
        self.0 = self.0 & Noted::BITS | count;
    }

    #[inline]
    pub(super) fn epoch(self) -> bool {
        self.0 & Noted::EPOCH != 0
    }

    #[inline]
    fn is_unfinished(self) -> bool {
        self.0 & Noted::UNFINISHED != 0
    }
}

impl Keyspace {
    /// Begins a snapshot, which lacks all keys that are there.
    pub fn begin_snapshot(&mut self) {
        debug_assert!(!self.noted.is_unfinished(), "one snapshot at a time");
        self.noted.0 = (self.noted.0 ^ Noted::EPOCH) | Noted::UNFINISHED;
    }

    /// Ends a snapshot, which lacks nothing of the keyspace any more.
    pub fn end_snapshot(&mut self) {
        self.noted.0 &= !Noted::UNFINISHED;
    }

    /// Whether a snapshot is under way that may lack keys.
    #[inline]
    pub fn is_unfinished(&self) -> bool {
        self.noted.is_unfinished()
    }

    /// Whether there is anything to be done about a key before a command runs: one of the bits for that is set.
    #[inline]
    pub(crate) fn needs_care(&self) -> bool {
        self.noted.0 & (Noted::UNFINISHED | Noted::OF_SHARD) != 0
    }

    /// Whether a key of the shard may have very many members with deadlines. It is noted in database 0.
    pub(crate) fn has_many_deadlines(&self) -> bool {
        self.noted.0 & Noted::MANY_DEADLINES != 0
    }

    /// Notes whether one may.
    pub(crate) fn set_many_deadlines(&mut self, has_many: bool) {
        self.noted.0 &= !Noted::MANY_DEADLINES;
        self.noted.0 |= if has_many { Noted::MANY_DEADLINES } else { 0 };
    }

    /// Whether whoever changes a key of the shard may have to change keys of others with it. It is noted in database 0.
    pub(crate) fn reaches_further(&self) -> bool {
        self.noted.0 & Noted::REACHES_FURTHER != 0
    }

    /// Notes whether it may be so.
    pub(crate) fn set_reaches_further(&mut self, reaches: bool) {
        self.noted.0 &= !Noted::REACHES_FURTHER;
        self.noted.0 |= if reaches { Noted::REACHES_FURTHER } else { 0 };
    }

    /// Whether a key of the shard may be read without it. It is noted in database 0.
    pub(crate) fn lends(&self) -> bool {
        self.noted.0 & Noted::LENDS != 0
    }

    /// Notes whether one may be.
    pub(crate) fn set_lends(&mut self, lends: bool) {
        self.noted.0 &= !Noted::LENDS;
        self.noted.0 |= if lends { Noted::LENDS } else { 0 };
    }

    /// Takes over what is noted of the whole shard from the keyspace that was database 0 until now.
    pub(crate) fn take_over_shard(&mut self, other: Noted) {
        self.noted.0 = self.noted.0 & !Noted::OF_SHARD | other.0 & Noted::OF_SHARD;
    }

    /// What is noted of the keyspace, and of the shard in database 0.
    pub(crate) fn noted(&self) -> Noted {
        self.noted
    }

    /// Takes over how far a snapshot has come in another keyspace: this one is new in its place or beside it.
    pub(crate) fn follow_snapshot(&mut self, other: &Keyspace) {
        debug_assert!(self.is_empty(), "its entries would have another keyspace's bits");
        self.noted.0 = self.noted.with_deadlines() | other.noted.0 & Noted::BITS;
    }

    /// Whether a snapshot lacks the key in a slot.
    #[inline]
    pub fn is_lacking(&self, slot: Slot) -> bool {
        self.lacks(self.table.get(slot))
    }

    #[inline]
    fn lacks(&self, entry: EntryRef<'_>) -> bool {
        self.noted.is_unfinished() && entry.snapshot_bit() != self.noted.epoch()
    }

    /// Notes that the snapshot has the key in a slot.
    pub fn mark_written(&mut self, slot: Slot) {
        let epoch = self.noted.epoch();
        self.table.get_mut(slot).set_snapshot_bit(epoch);
    }

    /// Calls `write` with keys that a snapshot lacks, with tags from `from` on, until at least `count` keys are looked at;
    /// gives the tag to go on from, `None` at the end. Those that `write` says the snapshot has now are lacking no more.
    pub fn write_lacking(
        &mut self,
        from: u16,
        count: usize,
        mut write: impl FnMut(EntryRef<'_>) -> bool,
    ) -> Option<u16> {
        let mut written = Vec::new();
        let next = self.table.scan(from, count, |slot, entry| {
            if self.lacks(entry) && write(entry) {
                written.push(slot);
            }
        });
        written.into_iter().for_each(|slot| self.mark_written(slot));
        next
    }

    /// What the bit of an entry says once it is in no keyspace: whether a snapshot lacks it.
    pub(super) fn note_removed(&self, entry: &mut Entry) {
        let is_lacking = self.lacks(entry.view());
        entry.view_mut().set_snapshot_bit(is_lacking);
    }
}

impl Entry {
    /// Whether the entry was taken out of its keyspace while a snapshot lacked it.
    #[inline]
    pub fn is_lacking(&self) -> bool {
        self.view().snapshot_bit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{EntryCopies, Meta, NewValue, ValueRef};
    use crate::hash::{KeyHash, KeyHasher};

    fn hash(key: &[u8]) -> KeyHash {
        KeyHasher::new(7).hash(key)
    }

    fn put(keyspace: &mut Keyspace, key: &[u8], value: NewValue<'_>, meta: &Meta) {
        match keyspace.find(hash(key), key) {
            Some(slot) => drop(keyspace.overwrite(slot, value, meta, 0)),
            None => _ = keyspace.insert(hash(key), key, value, meta, 0),
        }
    }

    /// All that the snapshot lacks, in pages of so many keys.
    fn written(keyspace: &mut Keyspace, page: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut copies = EntryCopies::default();
        let mut from = Some(0);
        while let Some(tag) = from {
            from = keyspace.write_lacking(tag, page, |entry| copies.push(entry));
        }
        let mut all: Vec<_> = copies
            .iter()
            .map(|entry| match entry.value() {
                ValueRef::Bytes(bytes) => (entry.key().to_vec(), bytes.to_vec()),
                ValueRef::Int(int) => (entry.key().to_vec(), int.to_string().into_bytes()),
                ValueRef::Packed(..) | ValueRef::Object(_) => unreachable!("only strings were put"),
            })
            .collect();
        all.sort();
        all
    }

    #[test]
    fn lacks_what_was_there_and_nothing_else() {
        let mut keyspace = Keyspace::default();
        // Three snapshots, so that each value of the bit is every meaning once.
        for round in 0..3 {
            let count: u32 = if cfg!(miri) { 40 } else { 200 };
            let keys: Vec<Vec<u8>> = (0..count).map(|number| number.to_string().into_bytes()).collect();
            for key in &keys {
                put(&mut keyspace, key, NewValue::Bytes(format!("{round}").as_bytes()), &Meta::default());
            }
            assert!(keys.iter().all(|key| !keyspace.is_lacking(keyspace.find(hash(key), key).unwrap())));
            keyspace.begin_snapshot();
            assert!(keys.iter().all(|key| keyspace.is_lacking(keyspace.find(hash(key), key).unwrap())));
            // A new key, one whose entry becomes another, one that goes, and one that only gets a deadline's field.
            put(&mut keyspace, b"new", NewValue::Int(1), &Meta::default());
            let slot = keyspace.find(hash(b"7"), b"7").unwrap();
            let replaced = keyspace.overwrite(slot, NewValue::Bytes(&[b'x'; 500]), &Meta::default(), 0).unwrap();
            assert!(replaced.is_lacking());
            let slot = keyspace.find(hash(b"8"), b"8").unwrap();
            assert!(keyspace.remove(slot).is_lacking());
            let slot = keyspace.find(hash(b"9"), b"9").unwrap();
            keyspace.set_meta(slot, &Meta { deadline_ms: Some(1 << 40), ..Meta::default() }, 0);
            assert!(keyspace.is_lacking(keyspace.find(hash(b"9"), b"9").unwrap()));
            let slot = keyspace.find(hash(b"new"), b"new").unwrap();
            assert!(!keyspace.is_lacking(slot) && !keyspace.remove(slot).is_lacking());
            let wanted: Vec<_> = {
                let mut left: Vec<_> = keys.iter().filter(|key| ![&b"7"[..], b"8"].contains(&&key[..])).collect();
                left.sort();
                left.into_iter().map(|key| (key.clone(), format!("{round}").into_bytes())).collect()
            };
            assert_eq!(written(&mut keyspace, 5), wanted);
            assert_eq!(written(&mut keyspace, 5), []);
            keyspace.end_snapshot();
            assert!(!keyspace.is_unfinished());
        }
    }

    #[test]
    fn a_plain_entry_stays_plain_for_writing_over_it() {
        let mut keyspace = Keyspace::default();
        keyspace.begin_snapshot();
        keyspace.end_snapshot();
        put(&mut keyspace, b"key", NewValue::Bytes(b"one"), &Meta::default());
        let (slot, mut entry) = keyspace.find_entry_mut(hash(b"key"), b"key").unwrap();
        assert!(entry.view().snapshot_bit());
        assert!(entry.try_write_over(b"two", 5));
        assert_eq!(entry.view().key(), b"key");
        assert!(matches!(keyspace.entry(slot).value(), ValueRef::Bytes(b"two")));
    }
}
