//! Values by small stable numbers whose reuse is noticed. Knows nothing of connections.

/// A place in a [`Slab`] and how often it was used before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) index: u32,
    pub(super) generation: u32,
}

impl Key {
    /// The key as one word, for the kernel to carry.
    pub(super) fn to_u64(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    pub(super) fn from_u64(word: u64) -> Key {
        Key { index: word as u32, generation: (word >> 32) as u32 }
    }
}

/// A growing array of places; freed places are used again, the last freed first.
#[derive(Debug)]
pub(super) struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slab<T> {
    pub(super) fn new() -> Slab<T> {
        Slab { places: Vec::new(), free: Vec::new() }
    }

    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// How many places there are, free ones included: the bound for [`Slab::key_at`].
    pub(super) fn places(&self) -> usize {
        self.places.len()
    }

    /// The key that the next [`Slab::insert`] will give.
    pub(super) fn next_key(&mut self) -> Key {
        let index = match self.free.last() {
            Some(&index) => index,
            None => {
                let index = u32::try_from(self.places.len()).expect("fewer than 2^32 connections");
                self.places.push(Place { generation: 0, value: None });
                self.free.push(index);
                index
            }
        };
        Key { index, generation: self.places[index as usize].generation }
    }

    pub(super) fn insert(&mut self, value: T) -> Key {
        let key = self.next_key();
        self.free.pop();
        self.places[key.index as usize].value = Some(value);
        key
    }

    #[inline]
    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let place = self.places.get_mut(key.index as usize)?;
        if place.generation == key.generation { place.value.as_mut() } else { None }
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        let place = self.places.get_mut(key.index as usize)?;
        if place.generation != key.generation {
            return None;
        }
        let value = place.value.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(key.index);
        Some(value)
    }

    /// The key of the value at `index`, if there is one.
    pub(super) fn key_at(&self, index: usize) -> Option<Key> {
        let place = self.places.get(index)?;
        place.value.as_ref()?;
        Some(Key { index: index as u32, generation: place.generation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_key_finds_nothing() {
        let mut slab = Slab::new();
        assert_eq!(slab.next_key(), Key { index: 0, generation: 0 });
        let first = slab.insert("first");
        assert_eq!(Key::from_u64(first.to_u64()), first);
        assert_eq!(slab.remove(first), Some("first"));
        let second = slab.insert("second");
        assert_eq!((first.index, slab.len(), slab.places()), (second.index, 1, 1));
        assert_eq!(slab.get_mut(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get_mut(second), Some(&mut "second"));
        assert_eq!(slab.key_at(0), Some(second));
        assert_eq!(slab.remove(second), Some("second"));
        assert_eq!((slab.key_at(0), slab.key_at(1), slab.len()), (None, None, 0));
        assert_eq!(Key::from_u64(second.to_u64()), second);
    }
}
