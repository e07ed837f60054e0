//! The fields of a large hash: a table that grows a thousand of them at a time. Knows nothing of the smaller form.

use crate::hash::element_hash;
use tenon_ds::blob::{PairBlob, PairBlobRef};
use tenon_ds::hash_table::{Ahead, ExtendibleTable, Location};
use tenon_ds::looks::Looks;

/// Fields with their values in a table.
#[derive(Debug, Default)]
pub struct Fields {
    table: ExtendibleTable<PairBlob>,
    /// Bytes of memory that fields and values take.
    bytes: usize,
}

fn hash_of(blob: PairBlobRef<'_>) -> u64 {
    element_hash(blob.first())
}

impl Fields {
    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Bytes of memory beside this itself.
    pub fn memory(&self, looks: Looks) -> usize {
        self.table.memory(looks) + self.bytes
    }

    #[inline]
    fn find(&self, field: &[u8], hash: u64) -> Option<Location> {
        self.table.find(hash, |blob| blob.first() == field)
    }

    /// Starts loading a part of what a search for an element of this hash reads.
    #[inline]
    pub fn prefetch(&self, hash: u64, ahead: Ahead) {
        self.table.prefetch(hash, ahead);
    }

    /// The value of a field.
    #[inline]
    pub fn get(&self, field: &[u8]) -> Option<&[u8]> {
        self.find(field, element_hash(field)).map(|at| self.table.get(at).second())
    }

    /// Sets a field; tells whether it is new.
    pub fn set(&mut self, field: &[u8], value: &[u8]) -> bool {
        let hash = element_hash(field);
        let Some(at) = self.find(field, hash) else {
            let blob = PairBlob::new(field, value);
            self.bytes += blob.view().memory();
            self.table.insert(hash, blob, hash_of);
            return true;
        };
        // In place, the block stays of its class.
        if !self.table.get_mut(at).try_set_second(value) {
            let blob = PairBlob::new(field, value);
            self.bytes += blob.view().memory();
            let old = self.table.replace(at, blob);
            self.bytes -= old.view().memory();
        }
        false
    }

    /// Takes a field out; tells whether it was there.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        let found = self.find(field, element_hash(field));
        if let Some(at) = found {
            let blob = self.table.remove(at);
            self.bytes -= blob.view().memory();
        }
        found.is_some()
    }

    /// The field and the value at a location.
    pub(super) fn at(&self, at: Location) -> (&[u8], &[u8]) {
        let blob = self.table.get(at);
        (blob.first(), blob.second())
    }

    /// Fields and values, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.table.iter().map(|blob| (blob.first(), blob.second()))
    }

    /// A page of the fields, as [`ExtendibleTable::scan`] gives it.
    pub fn scan<'a>(&'a self, cursor: u64, count: usize, mut visit: impl FnMut(&'a [u8], &'a [u8])) -> u64 {
        self.table.scan(cursor, count, |_, blob| visit(blob.first(), blob.second()))
    }

    /// Some field, each as likely as any other; `None` when there is none.
    pub(super) fn sample(&self, random: impl FnMut() -> u64) -> Option<Location> {
        self.table.sample(random)
    }
}

impl Clone for Fields {
    fn clone(&self) -> Fields {
        Fields { table: self.table.copied(|blob| PairBlob::new(blob.first(), blob.second())), bytes: self.bytes }
    }
}
