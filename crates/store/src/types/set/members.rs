//! The members of a large set: a table that grows a thousand of them at a time. Knows nothing of smaller forms.

use crate::hash::element_hash;
use tenon_ds::blob::{Blob, BlobRef};
use tenon_ds::hash_table::{Ahead, ExtendibleTable, Location, Search};
use tenon_ds::looks::Looks;

/// How many members are looked for together.
pub(super) const TOGETHER: usize = 16;

/// Members in a table.
#[derive(Debug, Default)]
pub struct Members {
    table: ExtendibleTable<Blob>,
    /// Bytes of memory that the members take.
    bytes: usize,
}

fn hash_of(blob: BlobRef<'_>) -> u64 {
    element_hash(blob.bytes())
}

impl Members {
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
    fn find(&self, member: &[u8], hash: u64) -> Option<Location> {
        self.table.find(hash, |blob| blob.bytes() == member)
    }

    /// Starts loading a part of what a search for an element of this hash reads.
    #[inline]
    pub fn prefetch(&self, hash: u64, ahead: Ahead) {
        self.table.prefetch(hash, ahead);
    }

    /// Looks for some members together, each of which comes with its hash: gives for each whether it is there.
    pub(super) fn contain(&self, some: &[(&[u8], u64)]) -> [bool; TOGETHER] {
        let mut searches = self.searches(some);
        std::array::from_fn(|index| {
            let search = searches[index].take();
            search.is_some_and(|search| search.is_there(|blob| blob.bytes() == some[index].0))
        })
    }

    /// Starts loading what the searches for some members read, each of which comes with its hash.
    pub(super) fn prefetch_all(&self, some: &[(&[u8], u64)]) {
        let _ = self.searches(some);
    }

    fn searches(&self, some: &[(&[u8], u64)]) -> [Option<Search<'_, Blob>>; TOGETHER] {
        let mut searches = std::array::from_fn(|index| some.get(index).map(|(_, hash)| self.table.begin_search(*hash)));
        searches.iter_mut().flatten().for_each(Search::go_on);
        searches
    }

    /// Whether the member is there.
    #[inline]
    pub fn contains(&self, member: &[u8]) -> bool {
        self.contains_hashed(member, element_hash(member))
    }

    /// Whether the member, whose hash this is, is there.
    #[inline]
    pub fn contains_hashed(&self, member: &[u8], hash: u64) -> bool {
        self.find(member, hash).is_some()
    }

    /// Adds a member; tells whether it is new.
    pub fn add(&mut self, member: &[u8]) -> bool {
        self.add_hashed(member, element_hash(member))
    }

    /// Adds a member, whose hash this is; tells whether it is new.
    pub(super) fn add_hashed(&mut self, member: &[u8], hash: u64) -> bool {
        let is_new = self.find(member, hash).is_none();
        if is_new {
            self.add_new(member, hash);
        }
        is_new
    }

    /// Adds a member that is not there, and whose hash this is.
    pub(super) fn add_new(&mut self, member: &[u8], hash: u64) {
        let blob = Blob::new(member);
        self.bytes += blob.view().memory();
        self.table.insert(hash, blob, hash_of);
    }

    /// Takes a member out; tells whether it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        self.remove_hashed(member, element_hash(member))
    }

    /// Takes a member out, whose hash this is; tells whether it was there.
    pub(super) fn remove_hashed(&mut self, member: &[u8], hash: u64) -> bool {
        let found = self.find(member, hash);
        if let Some(at) = found {
            self.take(at);
        }
        found.is_some()
    }

    /// Takes out the member at a location.
    pub(super) fn take(&mut self, at: Location) -> Blob {
        let blob = self.table.remove(at);
        self.bytes -= blob.view().memory();
        blob
    }

    /// The member at a location.
    pub(super) fn get(&self, at: Location) -> &[u8] {
        self.table.get(at).bytes()
    }

    /// The members, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.table.iter().map(BlobRef::bytes)
    }

    /// A page of the members, as [`ExtendibleTable::scan`] gives it.
    pub fn scan<'a>(&'a self, cursor: u64, count: usize, mut visit: impl FnMut(&'a [u8])) -> u64 {
        self.table.scan(cursor, count, |_, blob| visit(blob.bytes()))
    }

    /// Some member, each as likely as any other; `None` when there is none.
    pub(super) fn sample(&self, random: impl FnMut() -> u64) -> Option<Location> {
        self.table.sample(random)
    }
}

impl Clone for Members {
    fn clone(&self) -> Members {
        Members { table: self.table.copied(|blob| Blob::new(blob.bytes())), bytes: self.bytes }
    }
}
