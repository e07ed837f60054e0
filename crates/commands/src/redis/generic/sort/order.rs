//! The order that SORT gives elements. Knows no keys: what elements are sorted by was looked up.

use super::elements::Elements;
use super::texts::Texts;
use std::cmp::Ordering;
use std::ops::Range;
use tenon_engine::double::parse_double_in_range;
use tenon_engine::ds::progress;
use tenon_engine::errors::CmdError;

/// What elements are sorted by, each by what is of its index.
#[derive(Debug)]
pub(super) enum Weights {
    /// Numbers; where these are equal the elements themselves.
    Numbers(Vec<f64>),
    /// Texts; elements without one come first.
    Texts(Texts),
    /// The elements themselves as texts.
    Themselves,
}

/// The number that a text stands for.
pub(super) fn number(text: &[u8]) -> Result<f64, CmdError> {
    parse_double_in_range(text).ok_or(CmdError::text("ERR One or more scores can't be converted into double"))
}

impl Weights {
    /// The indexes of the elements that are `wanted` in the order of their weights.
    pub(super) fn sorted(&self, elements: &Elements, descending: bool, wanted: Range<usize>) -> Vec<usize> {
        let indexes = || (0..elements.len()).inspect(|_| progress::count(1)).collect();
        match self {
            Weights::Numbers(numbers) => sorted_by_numbers(numbers, elements, descending, wanted),
            Weights::Texts(texts) => arranged(indexes(), wanted, |&one: &usize, &other| {
                directed(texts.compare(one, other), descending, one, other)
            }),
            Weights::Themselves => arranged(indexes(), wanted, |&one: &usize, &other| {
                directed(elements.get(one).cmp(elements.get(other)), descending, one, other)
            }),
        }
    }
}

/// The order of two elements by that of what they are worth. Equal ones keep their order either way.
fn directed(order: Ordering, descending: bool, one: usize, other: usize) -> Ordering {
    let order = if descending { order.reverse() } else { order };
    order.then(one.cmp(&other))
}

/// As [`Weights::sorted`] for numbers, each of which moves as an integer together with its index: to compare two of them takes
/// neither a look elsewhere nor a branch.
fn sorted_by_numbers(numbers: &[f64], elements: &Elements, descending: bool, wanted: Range<usize>) -> Vec<usize> {
    const INDEX_BITS: u32 = u64::BITS;
    let number_of = |key: u128| key >> INDEX_BITS;
    let index_of = |key: u128| (key as u64) as usize;
    let keys = numbers.iter().zip(0u64..).map(|(number, index)| {
        progress::count(1);
        let in_order = in_order(*number);
        let in_order = if descending { !in_order } else { in_order };
        u128::from(in_order) << INDEX_BITS | u128::from(index)
    });
    let mut keys: Vec<u128> = keys.collect();
    // Equal numbers are told apart by their elements.
    let by_elements = |one: &u128, other: &u128| {
        let (one, other) = (index_of(*one), index_of(*other));
        directed(elements.get(one).cmp(elements.get(other)), descending, one, other)
    };
    let is_part = wanted.len() < keys.len();
    if is_part {
        keys = arranged(keys, wanted, |one, other| {
            number_of(*one).cmp(&number_of(*other)).then_with(|| by_elements(one, other))
        });
    } else {
        keys = arranged(keys, wanted, u128::cmp);
        for equal in keys.chunk_by_mut(|one, other| number_of(*one) == number_of(*other)) {
            if equal.len() > 1 {
                sort_counting(equal, by_elements);
            }
        }
    }
    keys.into_iter().map(index_of).inspect(|_| progress::count(1)).collect()
}

/// An integer that is less where the number is.
fn in_order(number: f64) -> u64 {
    // Both zeros are one.
    let bits = (number + 0.0).to_bits();
    let sign = 1 << 63;
    if bits & sign == 0 { bits | sign } else { !bits }
}

/// Those of the items that are `wanted`, in order: what is not wanted need not be.
fn arranged<T>(mut items: Vec<T>, wanted: Range<usize>, compare: impl Fn(&T, &T) -> Ordering) -> Vec<T> {
    if wanted.is_empty() {
        return Vec::new();
    }
    if wanted.end < items.len() {
        items.select_nth_unstable_by(wanted.end - 1, counting(&compare));
        items.truncate(wanted.end);
    }
    if wanted.start > 0 {
        items.select_nth_unstable_by(wanted.start, counting(&compare));
        items.drain(..wanted.start);
    }
    sort_counting(&mut items, compare);
    items
}

/// Sorts, and counts the comparisons as work that goes on: those of a few items at once.
fn sort_counting<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    const FEW: usize = 1_000;
    if items.len() <= FEW {
        progress::count(items.len() * (items.len().max(1).ilog2() as usize));
        items.sort_unstable_by(compare);
    } else {
        items.sort_unstable_by(counting(&compare));
    }
}

fn counting<T>(compare: &impl Fn(&T, &T) -> Ordering) -> impl Fn(&T, &T) -> Ordering {
    |one, other| {
        progress::count(1);
        compare(one, other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Compare<'a> = &'a dyn Fn(usize, usize) -> Ordering;

    #[test]
    fn integers_have_the_order_of_their_numbers() {
        let numbers = [f64::NEG_INFINITY, -f64::MAX, -2.5, -2.0, -f64::MIN_POSITIVE, -5e-324, 0.0, 5e-324, 1.0, 1e300];
        for pair in numbers.windows(2) {
            assert!(in_order(pair[0]) < in_order(pair[1]), "{pair:?}");
        }
        assert_eq!(in_order(-0.0), in_order(0.0));
        assert!(in_order(f64::MAX) < in_order(f64::INFINITY));
    }

    #[test]
    fn parts_are_parts_of_the_whole() {
        let mut random = 3u64;
        // Many are counted one by one.
        for len in [200, 3_000] {
            let mut elements = Elements::default();
            let mut numbers = Vec::new();
            for _ in 0..len {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let number = (random >> 33) % 20;
                elements.push(number.to_string().as_bytes());
                let special = [f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1.5, f64::INFINITY, 1.0];
                numbers.push(special[(random >> 40) as usize % special.len()]);
            }
            let text = |index: usize| (!index.is_multiple_of(5)).then(|| &elements.get(index)[..1]);
            let mut texts = Texts::default();
            for index in 0..len {
                match text(index) {
                    Some(text) => texts.push_bytes(text),
                    None => texts.push_absent(),
                }
            }
            let by_number = numbers.clone();
            let orders: [(Weights, Compare<'_>); 3] = [
                (Weights::Numbers(numbers), &|one, other| {
                    let order = by_number[one].partial_cmp(&by_number[other]).expect("they are numbers");
                    order.then_with(|| elements.get(one).cmp(elements.get(other)))
                }),
                (Weights::Texts(texts), &|one, other| text(one).cmp(&text(other))),
                (Weights::Themselves, &|one, other| elements.get(one).cmp(elements.get(other))),
            ];
            for (weights, compare) in orders {
                for descending in [false, true] {
                    let all = weights.sorted(&elements, descending, 0..len);
                    let mut expected: Vec<usize> = (0..len).collect();
                    // Stable.
                    expected
                        .sort_by(|one, other| if descending { compare(*other, *one) } else { compare(*one, *other) });
                    assert_eq!(all, expected);
                    for wanted in [0..0, 0..1, 0..10, 5..len, len - 1..len, 17..90, len..len, 0..len - 1] {
                        assert_eq!(weights.sorted(&elements, descending, wanted.clone()), all[wanted]);
                    }
                }
            }
        }
    }
}
