//! Fields of a hash by chance, each as likely as any other. Knows no source of randomness: random numbers are passed in.

use super::HashRef;
use crate::types::chance::{Selection, below};
use std::collections::HashSet;
use tenon_ds::packed::Item;

impl<'a> HashRef<'a> {
    /// Some field with its value; `None` when there is none.
    pub fn sample(self, mut random: impl FnMut() -> u64) -> Option<(Item<'a>, Item<'a>)> {
        match self {
            HashRef::Packed(_) if self.is_empty() => None,
            HashRef::Packed(packed) => packed.iter().nth(below(random(), self.len())),
            HashRef::Table(fields) => {
                let (field, value) = fields.at(fields.sample(random)?);
                Some((Item::Bytes(field), Item::Bytes(value)))
            }
        }
    }

    /// Calls `visit` with `count` different fields, all when there are fewer; in an order that is not random.
    pub fn sample_distinct(
        self,
        count: usize,
        mut random: impl FnMut() -> u64,
        mut visit: impl FnMut(Item<'a>, Item<'a>),
    ) {
        let len = self.len();
        match self {
            // Few of many: the same one is seldom met again.
            HashRef::Table(fields) if count < len / 3 => {
                let mut seen = HashSet::with_capacity(count);
                while seen.len() < count {
                    let at = fields.sample(&mut random).expect("there are more fields than are wanted");
                    if seen.insert(at) {
                        let (field, value) = fields.at(at);
                        visit(Item::Bytes(field), Item::Bytes(value));
                    }
                }
            }
            _ => {
                let mut selection = Selection { wanted: count, left: len };
                self.for_each(|field, value| {
                    if selection.takes(random()) {
                        visit(field, value);
                    }
                });
            }
        }
    }

    /// Calls `visit` with `count` fields, each chosen from all, as long as it wants more; none when there is none.
    pub fn sample_repeated(
        self,
        count: usize,
        mut random: impl FnMut() -> u64,
        mut visit: impl FnMut(Item<'a>, Item<'a>) -> bool,
    ) {
        if self.is_empty() {
            return;
        }
        if let HashRef::Packed(packed) = self {
            // Looking for the nth each time would walk the sequence each time.
            let all: Vec<_> = packed.iter().collect();
            (0..count).all(|_| {
                let (field, value) = all[below(random(), all.len())];
                visit(field, value)
            });
        } else {
            (0..count).all(|_| {
                let (field, value) = self.sample(&mut random).expect("there is a field");
                visit(field, value)
            });
        }
    }
}
