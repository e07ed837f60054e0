//! Where each group of a long sequence starts, by a hash of what names the group: a search then looks at one group,
//! mostly, where it would pass over half of them. Knows neither the sequence nor how its elements are hashed.
//!
//! ```text
//! word, one a group, in ascending order
//! 31             20 19                        0
//! +----------------+---------------------------+
//! | tag, from hash | where the group starts    |
//! +----------------+---------------------------+
//! ```
//!
//! Tags are spread, so a tag's words lie about where its share of all of them says, and there the search begins.

/// Bytes that a sequence may have at most.
pub const REACH: usize = 1 << PLACE_BITS;

const PLACE_BITS: u32 = 20;
const PLACE: u32 = (1 << PLACE_BITS) - 1;
const TAG_BITS: u32 = u32::BITS - PLACE_BITS;
/// The list of words grows by one in so many of them: it should not be half empty.
const GROWTH: usize = 8;

/// The places of groups.
#[derive(Clone, Debug, Default)]
pub struct Places {
    words: Vec<u32>,
}

/// The word of a group that starts at byte 0.
#[inline]
fn tag_word(hash: u64) -> u32 {
    (hash >> 32) as u32 & !PLACE
}

#[inline]
fn word_of(hash: u64, at: usize) -> u32 {
    debug_assert!(at < REACH);
    tag_word(hash) | at as u32
}

impl Places {
    /// No places, with room for so many.
    pub fn with_capacity(groups: usize) -> Places {
        Places { words: Vec::with_capacity(groups) }
    }

    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there is no group.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Bytes of memory beside this itself.
    pub fn memory(&self) -> usize {
        self.words.capacity() * size_of::<u32>()
    }

    /// The index of the first word that is not below this one.
    #[inline]
    fn lower_bound(&self, word: u32) -> usize {
        let words = &self.words[..];
        let mut index = ((u64::from(word >> PLACE_BITS) * words.len() as u64) >> TAG_BITS) as usize;
        while words[..index].last().is_some_and(|&before| before >= word) {
            index -= 1;
        }
        while words.get(index).is_some_and(|&here| here < word) {
            index += 1;
        }
        index
    }

    /// Where groups with this hash may start.
    #[inline]
    pub fn of(&self, hash: u64) -> impl Iterator<Item = usize> {
        let tag = tag_word(hash);
        let words = self.words[self.lower_bound(tag)..].iter();
        words.take_while(move |&&word| word & !PLACE == tag).map(|&word| (word & PLACE) as usize)
    }

    /// Adds a group that starts at byte `at`; the others stay where they are.
    ///
    /// # Panics
    /// When that is out of reach.
    pub fn insert(&mut self, hash: u64, at: usize) {
        assert!(at < REACH, "a sequence with places is not longer than they reach");
        if self.words.len() == self.words.capacity() {
            self.words.reserve_exact(self.words.len() / GROWTH + 4);
        }
        let word = word_of(hash, at);
        self.words.insert(self.lower_bound(word), word);
    }

    /// Takes out the group that starts at byte `at`; the others stay where they are.
    ///
    /// # Panics
    /// When there is no such group.
    pub fn remove(&mut self, hash: u64, at: usize) {
        let word = word_of(hash, at);
        let index = self.lower_bound(word);
        assert_eq!(self.words.get(index), Some(&word), "only groups that are there are removed");
        self.words.remove(index);
    }

    /// Notes that the groups that start behind byte `at` have moved by so many bytes.
    pub fn moved(&mut self, at: usize, by: isize) {
        for word in &mut self.words {
            let delta = if (*word & PLACE) as usize > at { by as u32 } else { 0 };
            *word = word.wrapping_add(delta);
        }
        debug_assert!(self.words.is_sorted(), "groups keep their order");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn hash_of(key: u64) -> u64 {
        let mixed = (key ^ key >> 31).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93)
    }

    fn found(places: &Places, hash: u64, at: usize) -> bool {
        let all: Vec<usize> = places.of(hash).collect();
        assert!(all.is_sorted() && all.len() <= places.len());
        all.contains(&at)
    }

    /// Groups of different lengths come and go in the middle of others; `hash` may be as bad as it likes.
    fn check(hash: fn(u64) -> u64) {
        let mut places = Places::default();
        // Keys in the order of their places, and the lengths of their groups.
        let mut model: Vec<(u64, usize)> = Vec::new();
        let mut random = 3u64;
        for round in 0..if cfg!(miri) { 200 } else { 4_000 } {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let index = (random >> 40) as usize % (model.len() + 1);
            let at = |model: &[(u64, usize)], index: usize| model[..index].iter().map(|group| group.1).sum::<usize>();
            let start = at(&model, index);
            let len = 1 + (random >> 33) as usize % 90;
            match (random >> 60, model.get(index).copied()) {
                (0..4, Some((key, old))) => {
                    places.remove(hash(key), start);
                    places.moved(start, -(old as isize));
                    model.remove(index);
                }
                (4..7, Some((_, old))) => {
                    places.moved(start, len as isize - old as isize);
                    model[index].1 = len;
                }
                _ => {
                    if start > 0 {
                        places.moved(start - 1, len as isize);
                    } else {
                        // Nothing starts before byte 0: what starts there is made to start behind.
                        let keys: Vec<_> = model.iter().map(|group| group.0).collect();
                        let places_of: BTreeMap<usize, u64> =
                            keys.into_iter().enumerate().map(|(index, key)| (at(&model, index), key)).collect();
                        places_of.iter().rev().for_each(|(&at, &key)| {
                            places.remove(hash(key), at);
                            places.insert(hash(key), at + len);
                        });
                    }
                    places.insert(hash(round), start);
                    model.insert(index, (round, len));
                }
            }
            assert_eq!(places.len(), model.len());
            if round % 16 == 0 {
                let mut start = 0;
                for &(key, len) in &model {
                    assert!(found(&places, hash(key), start), "{key} at {start}");
                    start += len;
                }
            }
        }
    }

    #[test]
    fn groups_are_found_wherever_they_have_moved() {
        check(hash_of);
        check(|_| 0);
        check(|key| key % 2 * u64::MAX);
    }

    #[test]
    fn a_hash_that_is_spread_has_hardly_any_strangers() {
        let mut places = Places::default();
        (0..500).for_each(|key| places.insert(hash_of(key), key as usize * 50));
        let candidates: usize = (0..500).map(|key| places.of(hash_of(key)).count()).sum();
        assert!((500..600).contains(&candidates), "{candidates}");
        let strangers: usize = (500..5_500).map(|key| places.of(hash_of(key)).count()).sum();
        assert!(strangers < 1_000, "{strangers}");
        assert!(places.memory() <= 500 * 4 * 5 / 4, "{}", places.memory());
    }
}
