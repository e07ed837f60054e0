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
        if others.len() < index {
            others.resize_with(index, Keyspace::default);
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
            let (a, b) = self.two_databases_mut(a, b);
            std::mem::swap(a, b);
        }
    }

    /// Takes all keys of a database out.
    pub fn take(&mut self, index: usize) -> Keyspace {
        std::mem::take(self.database_mut(index))
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
