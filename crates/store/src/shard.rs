//! One shard: its part of the keys of every database. Knows no lock; whoever holds one passes a plain reference.

use crate::keyspace::Keyspace;

/// The part of every database whose keys hash here.
#[derive(Default)]
pub struct Shard {
    first: Keyspace,
    /// Databases from 1 on, as far as they were ever used; most servers use only database 0.
    #[expect(clippy::box_collection, reason = "one word, so that a shard with its lock is one cache line")]
    others: Option<Box<Vec<Keyspace>>>,
}

impl Shard {
    /// The keys of a database; it may never have been used.
    #[inline]
    pub fn database(&self, index: usize) -> Option<&Keyspace> {
        if index == 0 { Some(&self.first) } else { self.others.as_ref()?.get(index - 1) }
    }

    /// The databases that have keys, with their numbers.
    pub fn used_databases(&self) -> impl Iterator<Item = (usize, &Keyspace)> {
        let others = self.others.iter().flat_map(|others| others.iter());
        std::iter::once(&self.first).chain(others).enumerate().filter(|(_, keyspace)| !keyspace.is_empty())
    }

    /// Keys in all databases.
    pub fn keys(&self) -> usize {
        self.used_databases().map(|(_, keyspace)| keyspace.len()).sum()
    }

    /// The keys of a database, to be changed; it may never have been used.
    #[inline]
    pub fn used_database_mut(&mut self, index: usize) -> Option<&mut Keyspace> {
        if index == 0 { Some(&mut self.first) } else { self.others.as_mut()?.get_mut(index - 1) }
    }

    /// The keys of a database.
    #[inline]
    pub fn database_mut(&mut self, index: usize) -> &mut Keyspace {
        if index == 0 { &mut self.first } else { self.other(index) }
    }

    #[cold]
    fn other(&mut self, index: usize) -> &mut Keyspace {
        let others = self.others.get_or_insert_default();
        while others.len() < index {
            let mut keyspace = Keyspace::default();
            keyspace.follow_snapshot(&self.first);
            others.push(keyspace);
        }
        &mut others[index - 1]
    }

    /// Two databases, which must differ.
    ///
    /// # Panics
    /// When they do not.
    pub fn two_databases_mut(&mut self, a: usize, b: usize) -> (&mut Keyspace, &mut Keyspace) {
        assert_ne!(a, b, "two different databases");
        let most = a.max(b);
        self.other(most);
        let Shard { first, others } = self;
        let others = others.as_mut().expect("the larger index is above 0");
        match (a, b) {
            (0, b) => (first, &mut others[b - 1]),
            (a, 0) => (&mut others[a - 1], first),
            (a, b) => {
                let [a, b] = others.get_disjoint_mut([a - 1, b - 1]).expect("they differ and are there");
                (a, b)
            }
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

    /// Takes all keys of a database out.
    pub fn take(&mut self, index: usize) -> Keyspace {
        let keyspace = self.database_mut(index);
        let mut empty = Keyspace::default();
        empty.follow_snapshot(keyspace);
        let taken = std::mem::replace(keyspace, empty);
        if !self.is_unfinished() {
            self.forget_unused();
        }
        taken
    }

    /// Gives the memory back of databases behind the last one that has keys.
    fn forget_unused(&mut self) {
        let Some(others) = &mut self.others else { return };
        others.truncate(others.iter().rposition(|keyspace| !keyspace.is_empty()).map_or(0, |last| last + 1));
        if others.is_empty() {
            self.others = None;
        } else {
            others.shrink_to_fit();
        }
    }

    fn each(&mut self, visit: impl FnMut(&mut Keyspace)) {
        std::iter::once(&mut self.first)
            .chain(self.others.iter_mut().flat_map(|others| others.iter_mut()))
            .for_each(visit);
    }

    /// Begins a snapshot of all databases.
    pub fn begin_snapshot(&mut self) {
        self.each(Keyspace::begin_snapshot);
    }

    /// Ends a snapshot, which lacks nothing of the shard any more.
    pub fn end_snapshot(&mut self) {
        self.each(Keyspace::end_snapshot);
    }

    /// Whether a snapshot is under way that may lack keys of the shard.
    #[inline]
    pub fn is_unfinished(&self) -> bool {
        self.first.is_unfinished()
    }

    /// Whether there may be something to be done about a key of the shard before a command runs: a snapshot lacks it, it
    /// has very many members with deadlines, or changing it may entail a change in other shards.
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
        if (0..self.databases()).all(|index| self.database(index).is_none_or(|it| it.with_deadlines() == 0)) {
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

    /// How many databases were used so far.
    pub fn databases(&self) -> usize {
        1 + self.others.as_ref().map_or(0, |others| others.len())
    }

    /// A time before which no key of any database is due, in milliseconds.
    pub fn next_due_ms(&self) -> Option<u64> {
        (0..self.databases()).filter_map(|index| self.database(index)?.next_due_ms()).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Meta, NewValue};
    use crate::hash::KeyHasher;

    #[test]
    fn databases_that_are_emptied_take_no_memory_when_they_are_the_last() {
        let mut shard = Shard::default();
        for index in [3, 900] {
            let hash = KeyHasher::new(5).hash(b"k");
            shard.database_mut(index).insert(hash, b"k", NewValue::Bytes(b"v"), &Meta::default(), 0);
        }
        assert_eq!(shard.databases(), 901);
        assert_eq!(shard.take(900).len(), 1);
        assert_eq!((shard.databases(), shard.keys()), (4, 1));
        assert_eq!(shard.take(0).len(), 0);
        assert_eq!(shard.database(3).map(Keyspace::len), Some(1));
        assert_eq!(shard.take(3).len(), 1);
        assert_eq!((shard.databases(), shard.keys()), (1, 0));
        assert!(shard.others.is_none() && shard.database(3).is_none());
    }
}
