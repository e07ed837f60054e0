//! INFO's section Keysizes: how many keys of each type have how many elements, or bytes where they are strings, by powers
//! of two. Nobody counts that while keys change, as every write would pay for it: all keys are looked at, a slice at a
//! time, for whoever names the section.

use super::info_sections::{Facts, line};
use crate::redis::key_walk::KeyWalk;
use std::fmt::Write;
use tenon_engine::context::{ServerCx, view_of};
use tenon_engine::store::entry::ValueRef;
use tenon_engine::store::types::{Hash, List, Set, ValueType, Zset};
use tenon_engine::string;

/// The types that have a line, in Redis's order, with what it is called.
const LINES: [(ValueType, &str); 5] = [
    (ValueType::String, "strings_sizes"),
    (ValueType::List, "lists_items"),
    (ValueType::Set, "sets_items"),
    (ValueType::Zset, "zsets_items"),
    (ValueType::Hash, "hashes_items"),
];

/// A size of 0, and one for each power of two.
const SIZES: usize = 1 + usize::BITS as usize;

/// For each type how many keys have a size.
type Histograms = [[u64; SIZES]; LINES.len()];

/// What was found of each database, and how far all keys have been looked at.
#[derive(Default)]
pub(super) struct KeySizes {
    databases: Vec<Option<Box<Histograms>>>,
    walk: KeyWalk<true>,
}

impl KeySizes {
    /// Looks at some more keys; tells whether these were the last ones.
    pub(super) fn go_on(&mut self, cx: &mut ServerCx<'_>) -> bool {
        let KeySizes { databases, walk } = self;
        walk.go_on(cx, |database, entry| {
            if databases.len() <= database {
                databases.resize_with(database + 1, || None);
            }
            let histograms = databases[database].get_or_insert_with(|| Box::new([[0; SIZES]; LINES.len()]));
            if let Some((line, size)) = measure(entry.value()) {
                histograms[line][size.checked_ilog2().map_or(0, |power| 1 + power as usize)] += 1;
            }
        })
    }
}

/// The line in which a value is counted, and its size; streams have none. Members whose time has come count until they are
/// removed, as in Redis.
fn measure(value: ValueRef<'_>) -> Option<(usize, usize)> {
    const WHY: &str = "the value is of its own type";
    let value_type = ValueType::of(value);
    let size = match value_type {
        ValueType::String => string::len(value),
        ValueType::List => view_of::<List>(value).expect(WHY).len(),
        ValueType::Set => view_of::<Set>(value).expect(WHY).len(),
        ValueType::Zset => view_of::<Zset>(value).expect(WHY).len(),
        ValueType::Hash => view_of::<Hash>(value).expect(WHY).len(),
        ValueType::Stream => return None,
    };
    Some((LINES.iter().position(|(of, _)| *of == value_type)?, size))
}

/// `# Keysizes`
pub(super) fn key_sizes(facts: &Facts<'_>, text: &mut String) {
    for (database, histograms) in facts.key_sizes.databases.iter().enumerate() {
        let Some(histograms) = histograms else { continue };
        for ((_, name), histogram) in LINES.iter().zip(&histograms[..]) {
            let mut counts = String::new();
            for (place, count) in histogram.iter().enumerate().filter(|(_, count)| **count > 0) {
                let separator = if counts.is_empty() { "" } else { "," };
                write!(counts, "{separator}{}={count}", size_name(place)).expect("a string takes whatever is written");
            }
            if !counts.is_empty() {
                line(text, &format!("db{database}_distrib_{name}"), counts);
            }
        }
    }
}

/// The least size that is counted at a place, as Redis writes it: `0`, `1`, `512`, `1K`.
fn size_name(place: usize) -> String {
    const UNITS: [&str; 7] = ["", "K", "M", "G", "T", "P", "E"];
    place.checked_sub(1).map_or("0".into(), |power| format!("{}{}", 1_u64 << (power % 10), UNITS[power / 10]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_named_by_powers_of_two() {
        let names = [0, 1, 2, 10, 11, 12, 21, 31, SIZES - 1].map(size_name);
        assert_eq!(names, ["0", "1", "2", "512", "1K", "2K", "1M", "1G", "8E"]);
    }
}
