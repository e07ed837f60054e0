//! Members of a set by chance, each as likely as any other. Knows no source of randomness: random numbers are passed in.

use super::forms::{Set, SetForm, SetRef};
use crate::types::chance::{Selection, below};
use std::collections::HashSet;
use tenon_ds::packed::{Element, Item, PackedBuf};

impl<'a> SetRef<'a> {
    /// Some member; `None` when there is none.
    pub fn sample(self, mut random: impl FnMut() -> u64) -> Option<Item<'a>> {
        let len = self.len();
        match self {
            SetRef::Ints(ints) => (len > 0).then(|| Item::Int(ints.get(below(random(), len)))),
            SetRef::Packed(packed) => {
                (len > 0).then(|| packed.get(below(random(), len)).expect("the index is below the length").item)
            }
            SetRef::Table(members) => members.sample(random).map(|at| Item::Bytes(members.get(at))),
        }
    }

    /// Calls `visit` with `count` different members, all when there are fewer; in an order that is not random.
    pub fn sample_distinct(self, count: usize, mut random: impl FnMut() -> u64, mut visit: impl FnMut(Item<'a>)) {
        let len = self.len();
        match self {
            // Few of many: the same one is seldom met again.
            SetRef::Table(members) if count < len / 3 => {
                let mut seen = HashSet::with_capacity(count);
                while seen.len() < count {
                    let at = members.sample(&mut random).expect("there are more members than are wanted");
                    if seen.insert(at) {
                        visit(Item::Bytes(members.get(at)));
                    }
                }
            }
            _ => {
                let mut selection = Selection { wanted: count, left: len };
                self.for_each(|member| {
                    if selection.takes(random()) {
                        visit(member);
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
        mut visit: impl FnMut(Item<'a>) -> bool,
    ) {
        if self.is_empty() {
            return;
        }
        if let SetRef::Packed(packed) = self {
            // Looking for the nth each time would walk the sequence each time.
            let elements: Vec<Element<'a>> = packed.iter().collect();
            (0..count).all(|_| visit(elements[below(random(), elements.len())].item));
        } else {
            (0..count).all(|_| visit(self.sample(&mut random).expect("there is a member")));
        }
    }
}

impl SetForm {
    /// Takes out some member and hands it to `visit`; nothing when there is none.
    fn pop<R>(&mut self, mut random: impl FnMut() -> u64, visit: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        match self {
            SetForm::Ints(ints) => {
                let len = ints.view().len();
                if len == 0 {
                    return None;
                }
                let index = below(random(), len);
                let result = visit(Item::Int(ints.view().get(index)));
                ints.remove(index);
                Some(result)
            }
            SetForm::Packed(packed) => {
                if packed.is_empty() {
                    return None;
                }
                let index = below(random(), packed.len());
                let Element { at, end, item } = packed.view().get(index).expect("the index is below the length");
                let result = visit(item);
                packed.remove(at..end, 1);
                Some(result)
            }
            SetForm::Table(members) => {
                let at = members.sample(random)?;
                Some(visit(Item::Bytes(members.take(at).view().bytes())))
            }
        }
    }

    /// Takes out `count` members, all when there are fewer, and hands them to `visit`.
    fn pop_many(&mut self, count: usize, mut random: impl FnMut() -> u64, mut visit: impl FnMut(Item<'_>)) {
        match self {
            SetForm::Packed(packed) => {
                // One pass: taking them out one by one would move what is behind each time.
                let mut selection = Selection { wanted: count, left: packed.len() };
                let mut rest = PackedBuf::new();
                packed.view().iter().for_each(|element| match selection.takes(random()) {
                    true => visit(element.item),
                    false => rest.push(element.item),
                });
                *packed = rest;
            }
            SetForm::Ints(_) | SetForm::Table(_) => {
                (0..count).try_for_each(|_| self.pop(&mut random, &mut visit));
            }
        }
    }
}

impl Set {
    /// Takes out some member and hands it to `visit`; nothing when there is none.
    pub fn pop<R>(&mut self, random: impl FnMut() -> u64, visit: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        self.removing(|form, removed| {
            form.pop(random, |member| {
                removed(member);
                visit(member)
            })
        })
    }

    /// Takes out `count` members, all when there are fewer, and hands them to `visit`.
    pub fn pop_many(&mut self, count: usize, random: impl FnMut() -> u64, mut visit: impl FnMut(Item<'_>)) {
        self.removing(|form, removed| {
            form.pop_many(count, random, |member| {
                removed(member);
                visit(member);
            });
        });
    }
}
