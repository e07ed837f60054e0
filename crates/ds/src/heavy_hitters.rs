//! What weighs most in a stream of names, in bounded memory: Space-Saving (Metwally, Agrawal and El Abbadi, 2005) with
//! weights. Knows not what the names name.
//!
//! A name that is not known takes the place of the lightest one and its count, of which it then may be wrong by as much.
//! So no count is too low, and every name that weighs more than the whole stream divided by the capacity is known.
//!
//! ```text
//! places: name -> slot          heap: slots, the lightest first
//! slots:  [ name, count, surplus, where in the heap ]
//! ```

use std::collections::HashMap;
use std::sync::Arc;

/// The heaviest names, and about how much each weighs.
#[derive(Debug)]
pub struct HeavyHitters {
    capacity: usize,
    slots: Vec<Slot>,
    heap: Vec<u32>,
    places: HashMap<Arc<[u8]>, u32>,
    total: u64,
}

#[derive(Debug)]
struct Slot {
    name: Arc<[u8]>,
    count: u64,
    /// How much of the count may be other names'.
    surplus: u64,
    /// Where the slot is in the heap.
    place: u32,
}

/// A name and what it weighs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hitter {
    /// The name.
    pub name: Arc<[u8]>,
    /// At least what was added for it.
    pub count: u64,
    /// How much of that may not have been.
    pub surplus: u64,
}

impl HeavyHitters {
    /// Nothing yet; up to `capacity` names will be known.
    ///
    /// # Panics
    /// When that is 0.
    pub fn new(capacity: usize) -> HeavyHitters {
        assert!(capacity > 0, "without room nothing can be counted");
        HeavyHitters { capacity, slots: Vec::new(), heap: Vec::new(), places: HashMap::new(), total: 0 }
    }

    /// The sum of all that was added.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Adds to what a name weighs.
    pub fn add(&mut self, name: &[u8], weight: u64) {
        if weight == 0 {
            return;
        }
        self.total += weight;
        if let Some(&slot) = self.places.get(name) {
            let slot = &mut self.slots[slot as usize];
            slot.count += weight;
            let place = slot.place as usize;
            self.sink(place);
        } else if self.slots.len() < self.capacity {
            let (slot, name) = (self.slots.len() as u32, Arc::from(name));
            self.places.insert(Arc::clone(&name), slot);
            self.slots.push(Slot { name, count: weight, surplus: 0, place: slot });
            self.heap.push(slot);
            self.rise(self.heap.len() - 1);
        } else {
            let lightest = self.heap[0];
            let slot = &mut self.slots[lightest as usize];
            self.places.remove(&slot.name);
            slot.name = Arc::from(name);
            slot.surplus = slot.count;
            slot.count += weight;
            self.places.insert(Arc::clone(&slot.name), lightest);
            self.sink(0);
        }
    }

    /// What is known, in no order.
    pub fn hitters(&self) -> impl Iterator<Item = Hitter> {
        self.slots.iter().map(|slot| Hitter { name: Arc::clone(&slot.name), count: slot.count, surplus: slot.surplus })
    }

    fn count_at(&self, place: usize) -> u64 {
        self.slots[self.heap[place] as usize].count
    }

    fn exchange(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        for place in [a, b] {
            self.slots[self.heap[place] as usize].place = place as u32;
        }
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.count_at(parent) <= self.count_at(place) {
                return;
            }
            self.exchange(parent, place);
            place = parent;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let children = 2 * place + 1..(2 * place + 3).min(self.heap.len());
            let Some(lighter) = children.min_by_key(|&child| self.count_at(child)) else { return };
            if self.count_at(place) <= self.count_at(lighter) {
                return;
            }
            self.exchange(place, lighter);
            place = lighter;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds skewed names and holds what is known against all that was added.
    fn check(capacity: usize, names: u64, steps: u64) {
        let mut hitters = HeavyHitters::new(capacity);
        let mut model: HashMap<Vec<u8>, u64> = HashMap::new();
        let mut random = 7u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        for _ in 0..steps {
            let most = next(names) + 1;
            let (name, weight) = (next(most).to_string().into_bytes(), next(20));
            hitters.add(&name, weight);
            *model.entry(name).or_default() += weight;
        }
        let total: u64 = model.values().sum();
        assert_eq!(hitters.total(), total);
        let known: HashMap<Vec<u8>, Hitter> = hitters.hitters().map(|hitter| (hitter.name.to_vec(), hitter)).collect();
        assert_eq!((known.len(), hitters.places.len()), (hitters.slots.len(), hitters.slots.len()));
        assert!(known.len() <= capacity);
        for (name, hitter) in &known {
            let real = model[name];
            assert!(hitter.count >= real && hitter.count - hitter.surplus <= real, "{hitter:?} of {real}");
        }
        for (name, &count) in model.iter().filter(|&(_, &count)| count > total / capacity as u64) {
            assert!(known.contains_key(name), "{count} of {total} are not known");
        }
        for (place, &slot) in hitters.heap.iter().enumerate() {
            assert_eq!(hitters.slots[slot as usize].place as usize, place);
            assert!(place == 0 || hitters.count_at((place - 1) / 2) <= hitters.count_at(place));
        }
    }

    #[test]
    fn the_heaviest_are_known() {
        let steps = if cfg!(miri) { 300 } else { 20_000 };
        for (capacity, names) in [(1, 1), (1, 50), (2, 50), (10, 5), (16, 200), (64, 64), (100, 2_000)] {
            check(capacity, names, steps);
        }
    }

    #[test]
    fn nothing_is_counted_for_nothing() {
        let mut hitters = HeavyHitters::new(1);
        hitters.add(b"a", 0);
        assert_eq!((hitters.total(), hitters.hitters().count()), (0, 0));
    }
}
