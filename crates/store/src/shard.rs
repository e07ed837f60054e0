//! One shard: its part of the keys of every database. Knows no lock; whoever holds one passes a plain reference.

use crate::keyspace::Keyspace;

/// The part of every database whose keys hash here.
#[derive(Default)]
pub struct Shard {
    first: Keyspace,
    /// Those of databases from 1 on that were used, by their numbers; most servers use only database 0.
    #[expect(clippy::box_collection, reason = "one word, so that a shard with its lock is one cache line")]
    others: Option<Box<Vec<Other>>>,
}

/// The part of a database from 1 on.
struct Other {
    database: u32,
    keyspace: Keyspace,
}

impl Shard {
    /// The keys of a database; it may never have been used.
    #[inline]
    pub fn database(&self, index: usize) -> Option<&Keyspace> {
        if index == 0 {
            return Some(&self.first);
        }
        let others = self.others.as_ref()?;
        Some(&others[place(others, index).ok()?].keyspace)
    }

    /// The databases that were ever used, the first one in any case, with their numbers.
    pub fn databases(&self) -> impl Iterator<Item = (usize, &Keyspace)> {
        let others = self.others.iter().flat_map(|others| others.iter());
        std::iter::once((0, &self.first)).chain(others.map(|other| (other.database as usize, &other.keyspace)))
    }

    /// The same, to be changed.
    pub fn databases_mut(&mut self) -> impl Iterator<Item = (usize, &mut Keyspace)> {
        let others = self.others.iter_mut().flat_map(|others| others.iter_mut());
        std::iter::once((0, &mut self.first)).chain(others.map(|other| (other.database as usize, &mut other.keyspace)))
    }

    /// The databases that have keys, with their numbers.
    pub fn used_databases(&self) -> impl Iterator<Item = (usize, &Keyspace)> {
        self.databases().filter(|(_, keyspace)| !keyspace.is_empty())
    }

    /// Keys in all databases.
    pub fn keys(&self) -> usize {
        self.used_databases().map(|(_, keyspace)| keyspace.len()).sum()
    }

    /// The keys of a database, to be changed; it may never have been used.
    #[inline]
    pub fn used_database_mut(&mut self, index: usize) -> Option<&mut Keyspace> {
        if index == 0 {
            return Some(&mut self.first);
        }
        let others = self.others.as_mut()?;
        let at = place(others, index).ok()?;
        Some(&mut others[at].keyspace)
    }

    /// The keys of a database.
    #[inline]
    pub fn database_mut(&mut self, index: usize) -> &mut Keyspace {
        if index == 0 { &mut self.first } else { self.other(index) }
    }

    fn other(&mut self, index: usize) -> &mut Keyspace {
        let others = self.others.get_or_insert_default();
        let at = place(others, index).unwrap_or_else(|at| {
            let mut keyspace = Keyspace::default();
            keyspace.follow_snapshot(&self.first);
            let database = u32::try_from(index).expect("the number of databases has 32 bits");
            // Most who use another database use one.
            if others.is_empty() {
                others.reserve_exact(1);
            }
            others.insert(at, Other { database, keyspace });
            at
        });
        &mut others[at].keyspace
    }

    /// Two databases, which must differ.
    ///
    /// # Panics
    /// When they do not.
    pub fn two_databases_mut(&mut self, a: usize, b: usize) -> (&mut Keyspace, &mut Keyspace) {
        assert_ne!(a, b, "two different databases");
        for index in [a, b] {
            self.database_mut(index);
        }
        let Shard { first, others } = self;
        let others = others.as_mut().expect("one of them is not the first");
        let [at_a, at_b] = [a, b].map(|index| place(others, index));
        match (at_a, at_b) {
            (Ok(a), Ok(b)) => {
                let [a, b] = others.get_disjoint_mut([a, b]).expect("they differ and are there");
                (&mut a.keyspace, &mut b.keyspace)
            }
            (Err(_), Ok(b)) => (first, &mut others[b].keyspace),
            (Ok(a), Err(_)) => (&mut others[a].keyspace, first),
            (Err(_), Err(_)) => unreachable!("only the first is not among the others"),
        }
    }

    /// Exchanges the keys of two databases.
    pub fn swap(&mut self, a: usize, b: usize) {
        if a != b {
            let noted = self.first.noted();
            let (a, b) = self.two_databases_mut(a, b);
            std::mem::swap(a, b);
            self.first.take_over_shard(noted);
        }
    }

    /// Takes all keys of a database out, which keeps its place until `forget_unused`.
    pub fn take(&mut self, index: usize) -> Keyspace {
        let mut empty = Keyspace::default();
        empty.follow_snapshot(&self.first);
        let Some(keyspace) = self.used_database_mut(index) else { return empty };
        std::mem::replace(keyspace, empty)
    }

    /// Gives the memory back of databases that have no keys, unless a snapshot may lack some of theirs.
    #[inline]
    pub fn forget_unused(&mut self) {
        // Mostly there are none, and who empties databases asks every shard.
        if self.others.is_some() {
            self.forget_unused_others();
        }
    }

    fn forget_unused_others(&mut self) {
        if self.is_unfinished() {
            return;
        }
        let Some(others) = &mut self.others else { return };
        others.retain(|other| !other.keyspace.is_empty());
        if others.is_empty() {
            self.others = None;
        } else {
            others.shrink_to_fit();
        }
    }

    /// Begins a snapshot of all databases.
    pub fn begin_snapshot(&mut self) {
        self.databases_mut().for_each(|(_, keyspace)| keyspace.begin_snapshot());
    }

    /// Ends a snapshot, which lacks nothing of the shard any more.
    pub fn end_snapshot(&mut self) {
        self.databases_mut().for_each(|(_, keyspace)| keyspace.end_snapshot());
    }

    /// Whether a snapshot is under way that may lack keys of the shard.
    #[inline]
    pub fn is_unfinished(&self) -> bool {
        self.first.is_unfinished()
    }

    /// Whether there may be something to be done about a key of the shard before a command runs: a snapshot lacks it, it
    /// has very many members with deadlines, it is read without the shard, or changing it may entail a change in other
    /// shards.
    #[inline]
    pub fn needs_care(&self) -> bool {
        self.first.needs_care()
    }

    /// Whether a key of any database may have very many members with deadlines.
    pub fn has_many_deadlines(&self) -> bool {
        self.first.has_many_deadlines()
    }

    /// Notes that one has.
    pub fn note_many_deadlines(&mut self) {
        self.first.set_many_deadlines(true);
    }

    /// Forgets that one had, if no key has members with deadlines any more.
    pub fn forget_many_deadlines(&mut self) {
        if self.databases().all(|(_, keyspace)| keyspace.with_deadlines() == 0) {
            self.first.set_many_deadlines(false);
        }
    }

    /// Whether a change of a key of any database may entail one in other shards: a client that waits for it wants to move
    /// something there.
    #[inline]
    pub fn reaches_further(&self) -> bool {
        self.first.reaches_further()
    }

    /// Notes whether it may.
    pub fn set_reaches_further(&mut self, reaches: bool) {
        self.first.set_reaches_further(reaches);
    }

    /// Whether a key of any database may be read without the shard.
    pub fn lends(&self) -> bool {
        self.first.lends()
    }

    /// Notes whether one may be.
    pub fn set_lends(&mut self, lends: bool) {
        self.first.set_lends(lends);
    }

    /// The same of all databases as [`Keyspace::next_due_ms`].
    pub fn next_due_ms(&self) -> Option<u64> {
        self.databases().filter_map(|(_, keyspace)| keyspace.next_due_ms()).min()
    }
}

/// Where a database from 1 on is among those that were used, or where it would be.
#[inline]
fn place(others: &[Other], index: usize) -> Result<usize, usize> {
    others.binary_search_by_key(&index, |other| other.database as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Meta, NewValue};
    use crate::hash::KeyHasher;

    #[test]
    fn databases_that_are_not_used_take_no_memory() {
        let mut shard = Shard::default();
        for index in [3, 900] {
            let hash = KeyHasher::new(5).hash(b"k");
            shard.database_mut(index).insert(hash, b"k", NewValue::Bytes(b"v"), &Meta::default(), 0);
        }
        assert!(shard.databases().map(|(number, _)| number).eq([0, 3, 900]));
        assert!(shard.database(2).is_none() && shard.database(901).is_none());
        assert_eq!(shard.take(900).len(), 1);
        shard.forget_unused();
        assert_eq!((shard.databases().count(), shard.keys()), (2, 1));
        assert_eq!(shard.take(0).len(), 0);
        assert_eq!(shard.database(3).map(Keyspace::len), Some(1));
        assert_eq!(shard.take(3).len(), 1);
        shard.forget_unused();
        assert_eq!((shard.databases().count(), shard.keys()), (1, 0));
        assert!(shard.others.is_none() && shard.database(3).is_none());
    }
}
