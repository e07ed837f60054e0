//! Keys that are declared, and keys that the data in them names, their shards locked. Knows no command.

use super::KeysCx;

/// Keys that are declared, and keys that the data in them names, at one instant.
pub struct FollowingCx<'a> {
    /// The keys: those that the declaration names, and others as far as [`FollowingCx::lacks`] gives nothing.
    pub keys: KeysCx<'a>,
    /// Whether the client's user may read every key there is: nobody can tell beforehand which will be named.
    pub may_read_all_keys: bool,
}

impl FollowingCx<'_> {
    /// The shard that is wanting for a key; `None` when it is held.
    pub fn lacks(&self, key: &[u8]) -> Option<usize> {
        let shards = &self.keys.engine.shards;
        let index = shards.index(shards.hash(key));
        (!self.keys.held.holds(index)).then_some(index)
    }

    /// All shards that are not held, where so many keys are named that looking at each would not pay.
    pub fn lacks_of_all(&self) -> Vec<usize> {
        (0..self.shards()).filter(|index| !self.keys.held.holds(*index)).collect()
    }

    /// How many shards there are.
    pub fn shards(&self) -> usize {
        self.keys.engine.shards.count()
    }
}
