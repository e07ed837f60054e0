//! The order that SORT gives elements. Knows no keys: what elements are sorted by was looked up.

use super::elements::Elements;
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
    Texts { texts: Elements, is_there: Vec<bool> },
    /// The elements themselves as texts.
    Themselves,
}

/// The number that a text stands for.
pub(super) fn number(text: &[u8]) -> Result<f64, CmdError> {
    parse_double_in_range(text).ok_or(CmdError::text("ERR One or more scores can't be converted into double"))
}

impl Weights {
    fn compare(&self, elements: &Elements, one: usize, other: usize) -> Ordering {
        match self {
            Weights::Numbers(numbers) => {
                let by_number = numbers[one].partial_cmp(&numbers[other]).unwrap_or(Ordering::Equal);
                by_number.then_with(|| elements.get(one).cmp(elements.get(other)))
            }
            Weights::Texts { texts, is_there } => {
                is_there[one].cmp(&is_there[other]).then_with(|| texts.get(one).cmp(texts.get(other)))
            }
            Weights::Themselves => elements.get(one).cmp(elements.get(other)),
        }
    }

    /// The indexes of the elements that are `wanted` in the order of their weights.
    pub(super) fn sorted(&self, elements: &Elements, descending: bool, wanted: Range<usize>) -> Vec<usize> {
        // Equal ones keep their order either way.
        let directed = |order: Ordering, one: usize, other: usize| {
            let order = if descending { order.reverse() } else { order };
            order.then(one.cmp(&other))
        };
        if let Weights::Numbers(numbers) = self {
            // A number that moves with its index need not be looked up for each comparison.
            let weighed: Vec<(f64, usize)> = numbers.iter().copied().zip(0..).collect();
            let weighed = arranged(weighed, wanted, |(number, one), (other_number, other)| {
                if number != other_number {
                    let is_less = (number < other_number) != descending;
                    return if is_less { Ordering::Less } else { Ordering::Greater };
                }
                directed(elements.get(*one).cmp(elements.get(*other)), *one, *other)
            });
            return weighed.into_iter().map(|(_, index)| index).collect();
        }
        arranged((0..elements.len()).collect(), wanted, |one: &usize, other: &usize| {
            directed(self.compare(elements, *one, *other), *one, *other)
        })
    }
}

/// Those of the items that are `wanted`, in order: what is not wanted need not be.
fn arranged<T>(mut items: Vec<T>, wanted: Range<usize>, compare: impl Fn(&T, &T) -> Ordering) -> Vec<T> {
    let compare = |one: &T, other: &T| {
        progress::count(1);
        compare(one, other)
    };
    if wanted.is_empty() {
        return Vec::new();
    }
    if wanted.end < items.len() {
        items.select_nth_unstable_by(wanted.end - 1, compare);
        items.truncate(wanted.end);
    }
    if wanted.start > 0 {
        items.select_nth_unstable_by(wanted.start, compare);
        items.drain(..wanted.start);
    }
    items.sort_unstable_by(compare);
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_parts_of_the_whole() {
        let mut elements = Elements::default();
        let mut numbers = Vec::new();
        let mut random = 3u64;
        for _ in 0..200 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = (random >> 33) % 20;
            elements.push(number.to_string().as_bytes());
            numbers.push((number % 7) as f64);
        }
        let texts = |elements: &Elements| {
            let mut texts = Elements::default();
            (0..elements.len()).for_each(|index| texts.push(&elements.get(index)[..1]));
            Weights::Texts { texts, is_there: (0..elements.len()).map(|index| index % 5 > 0).collect() }
        };
        for weights in [Weights::Numbers(numbers), texts(&elements), Weights::Themselves] {
            for descending in [false, true] {
                let all = weights.sorted(&elements, descending, 0..200);
                for pair in all.windows(2) {
                    let order = weights.compare(&elements, pair[0], pair[1]);
                    let wrong = if descending { Ordering::Less } else { Ordering::Greater };
                    assert!(order != wrong && (order != Ordering::Equal || pair[0] < pair[1]));
                }
                for wanted in [0..0, 0..1, 0..10, 5..200, 199..200, 17..90, 200..200] {
                    assert_eq!(weights.sorted(&elements, descending, wanted.clone()), all[wanted]);
                }
            }
        }
    }
}
