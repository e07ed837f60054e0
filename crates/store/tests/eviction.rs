//! `allkeys-tenon` replayed on made-up requests, beside the rule written down plainly and beside LRU.
#![cfg(not(miri))]

use std::collections::{HashMap, VecDeque};
use tenon_store::access::{AccessClock, Noting};
use tenon_store::entry::{Meta, NewValue};
use tenon_store::evict::hand::{self, Bar};
use tenon_store::evict::turnover::{self, Turnover};
use tenon_store::evict::{Ghosts, worth};
use tenon_store::hash::KeyHasher;
use tenon_store::keyspace::Keyspace;

/// One key in so many goes.
const SAMPLES: usize = 5;
/// Of so many chosen anew for each that goes, the rule takes the worst.
const SAMPLES_OF_RULE: usize = 20;

/// Randomness that is the same each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 32) as u32
    }

    fn share(&mut self) -> f64 {
        f64::from(self.next()) / 2f64.powi(32)
    }
}

/// A cache that is asked for keys, and given those that it does not have.
trait Cache {
    /// Whether the key is there.
    fn request(&mut self, key: u32) -> bool;
}

fn hit_ratio(cache: &mut dyn Cache, requests: &[u32]) -> f64 {
    requests.iter().filter(|key| cache.request(**key)).count() as f64 / requests.len() as f64
}

/// Bytes of a key's value.
fn size(key: u32) -> usize {
    64 << (key % 3)
}

/// The store's own parts.
struct Tenon {
    keyspace: Keyspace,
    hasher: KeyHasher,
    turnover: &'static Turnover,
    ghosts: Ghosts,
    limit: usize,
    used: usize,
    bar: Bar,
    from: u16,
}

impl Tenon {
    fn new(limit: usize, ghosts: usize) -> Tenon {
        Tenon {
            keyspace: Keyspace::default(),
            hasher: KeyHasher::new(9),
            turnover: Box::leak(Box::default()),
            ghosts: Ghosts::new(ghosts),
            limit,
            used: 0,
            bar: Bar::default(),
            from: 0,
        }
    }
}

impl Cache for Tenon {
    fn request(&mut self, key: u32) -> bool {
        let name = key.to_be_bytes();
        let hash = self.hasher.hash(&name);
        let clock = AccessClock::new(Noting::Turnover(self.turnover), 1_000);
        if let Some(slot) = self.keyspace.find(hash, &name) {
            let access = clock.touched(self.keyspace.entry(slot).access(), 0);
            self.keyspace.entry_mut(slot).set_access(access);
            return true;
        }
        self.turnover.advance();
        self.turnover.note_round(self.keyspace.len() as u64);
        while self.used + size(key) > self.limit {
            let wanted = self.bar.badness();
            let walked = hand::walk(&self.keyspace, self.from, wanted, 6 * SAMPLES, self.turnover.tick());
            assert!(walked.looked_at <= 6 * SAMPLES);
            self.from = walked.next.unwrap_or(0);
            let Some((slot, badness)) = walked.worst else { continue };
            self.bar.note(badness, walked.looked_at, SAMPLES);
            let entry = self.keyspace.remove(slot);
            let gone = entry.view().key();
            self.ghosts.note(self.hasher.hash(gone), turnover::hits(entry.view().access()));
            self.used -= size(u32::from_be_bytes(gone.try_into().expect("four bytes")));
        }
        let hits = self.ghosts.take(hash).map_or(0, worth::hits_again);
        let meta = Meta { access: turnover::bits(self.turnover.tick(), hits), ..Meta::default() };
        self.keyspace.insert(hash, &name, NewValue::Bytes(&vec![b'x'; size(key)]), &meta, 0);
        self.used += size(key);
        false
    }
}

/// The rule in plain words and numbers: hits to the power 1.5 over age over the square root of size, of many keys; a hit counts
/// by how long ago the one before was, in parts of a round; what has gone is remembered in the order of going.
struct Plain {
    kept: HashMap<u32, (u64, u32)>,
    order: Vec<u32>,
    gone: VecDeque<(u32, u32)>,
    ghosts: usize,
    limit: usize,
    used: usize,
    now: u64,
    /// Keys that are there when a new one comes: as many make a round.
    round: f64,
    random: Random,
}

impl Plain {
    fn new(limit: usize, ghosts: usize) -> Plain {
        let (kept, order, gone) = (HashMap::new(), Vec::new(), VecDeque::new());
        Plain { kept, order, gone, ghosts, limit, used: 0, now: 0, round: 512.0, random: Random(4) }
    }

    fn worth(&self, key: u32) -> f64 {
        let (last, hits) = self.kept[&key];
        (f64::from(hits) + 0.2).powf(1.5) / (self.now - last + 1) as f64 / (size(key) as f64).sqrt()
    }
}

impl Cache for Plain {
    fn request(&mut self, key: u32) -> bool {
        if let Some((last, hits)) = self.kept.get_mut(&key) {
            let rounds = (self.now - *last) as f64 / self.round;
            let counts = [1.0 / 32.0, 1.0 / 8.0, 1.0 / 2.0, 2.0].iter().filter(|least| rounds >= **least).count();
            (*last, *hits) = (self.now, (*hits + counts.max(usize::from(*hits == 0)) as u32).min(15));
            return true;
        }
        self.now += 1;
        self.round = (self.kept.len() as f64).max(1.0);
        while self.used + size(key) > self.limit {
            let places: Vec<usize> =
                (0..SAMPLES_OF_RULE).map(|_| self.random.next() as usize % self.order.len()).collect();
            let least = |a: &&usize, b: &&usize| self.worth(self.order[**a]).total_cmp(&self.worth(self.order[**b]));
            let gone = self.order.swap_remove(*places.iter().min_by(least).expect("some"));
            let (_, hits) = self.kept.remove(&gone).expect("it was kept");
            self.gone.push_back((gone, hits));
            if self.gone.len() > self.ghosts {
                self.gone.pop_front();
            }
            self.used -= size(gone);
        }
        let remembered = self.gone.iter().position(|(gone, _)| *gone == key);
        let hits = remembered.and_then(|place| self.gone.remove(place)).map_or(0, |(_, hits)| (hits + 3).min(15));
        self.kept.insert(key, (self.now, hits));
        self.order.push(key);
        self.used += size(key);
        false
    }
}

/// The least recently used goes.
struct Lru {
    order: VecDeque<u32>,
    limit: usize,
    used: usize,
}

impl Cache for Lru {
    fn request(&mut self, key: u32) -> bool {
        let place = self.order.iter().position(|kept| *kept == key);
        if let Some(place) = place {
            self.order.remove(place);
        } else {
            self.used += size(key);
        }
        self.order.push_front(key);
        while self.used > self.limit {
            self.used -= size(self.order.pop_back().expect("there are keys"));
        }
        place.is_some()
    }
}

/// Requests of some keys much more than of others, and between them scans of keys that never come again.
fn with_scans(keys: u32, requests: usize) -> Vec<u32> {
    let mut random = Random(1);
    let mut next_of_scan = keys;
    let mut list = Vec::new();
    while list.len() < requests {
        list.extend((0..500).map(|_| (f64::from(keys).powf(random.share()) - 1.0) as u32));
        list.extend(next_of_scan..next_of_scan + 250);
        next_of_scan += 250;
    }
    list
}

#[test]
fn it_is_as_good_as_its_rule_and_better_than_lru_where_there_are_scans() {
    let requests = with_scans(20_000, 100_000);
    let (limit, ghosts) = (100_000, 1_600);
    let tenon = hit_ratio(&mut Tenon::new(limit, ghosts), &requests);
    let plain = hit_ratio(&mut Plain::new(limit, ghosts), &requests);
    let lru = hit_ratio(&mut Lru { order: VecDeque::new(), limit, used: 0 }, &requests);
    // It remembers four keys in each of many places instead of so many in all, which costs a little, and looks at fewer.
    assert!((tenon - plain).abs() < 0.015, "{tenon} {plain}");
    assert!(tenon > lru + 0.05, "{tenon} {lru}");
}
