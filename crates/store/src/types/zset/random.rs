//! Members of a sorted set by chance, each as likely as any other. Knows no source of randomness: random numbers are
//! passed in.

use super::ZsetRef;
use crate::types::chance::{Selection, below};
use std::collections::HashSet;
use tenon_ds::packed::Item;

impl<'a> ZsetRef<'a> {
    /// Some member with its score; `None` when there is none.
    pub fn sample(self, mut random: impl FnMut() -> u64) -> Option<(Item<'a>, f64)> {
        if self.is_empty() { None } else { self.at(below(random(), self.len())) }
    }

    /// Calls `visit` with `count` different members, all when there are fewer; in an order that is not random.
    pub fn sample_distinct(self, count: usize, mut random: impl FnMut() -> u64, mut visit: impl FnMut(Item<'a>, f64)) {
        let len = self.len();
        match self {
            // Few of many: the same one is seldom met again.
            ZsetRef::Tree(_) if count < len / 3 => {
                let mut seen = HashSet::with_capacity(count);
                while seen.len() < count {
                    let rank = below(random(), len);
                    if seen.insert(rank) {
                        let (member, score) = self.at(rank).expect("the rank is below the length");
                        visit(member, score);
                    }
                }
            }
            _ => {
                let mut selection = Selection { wanted: count, left: len };
                self.for_each(|member, score| {
                    if selection.takes(random()) {
                        visit(member, score);
                    }
                });
            }
        }
    }

    /// Calls `visit` with `count` members, each chosen from all, as long as it wants more; none when there is none.
    pub fn sample_repeated(
        self,
        count: usize,
        mut random: impl FnMut() -> u64,
        mut visit: impl FnMut(Item<'a>, f64) -> bool,
    ) {
        if self.is_empty() {
            return;
        }
        if let ZsetRef::Packed(_) = self {
            // Looking for the nth each time would walk the run each time.
            let mut all = Vec::with_capacity(self.len());
            self.for_each(|member, score| all.push((member, score)));
            (0..count).all(|_| {
                let (member, score) = all[below(random(), all.len())];
                visit(member, score)
            });
        } else {
            (0..count).all(|_| {
                let (member, score) = self.sample(&mut random).expect("there is a member");
                visit(member, score)
            });
        }
    }
}
