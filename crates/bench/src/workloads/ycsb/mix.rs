//! How often each operation is drawn: YCSB's workloads, and those of the Waterloo study. Knows no server.

use crate::generators::Distribution;

/// A workload's operations, as shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// Its name in options and results.
    pub name: &'static str,
    /// Reads of a whole record.
    pub read: f64,
    /// Writes of one field.
    pub update: f64,
    /// New records.
    pub insert: f64,
    /// Ends of records that the run has inserted, the oldest first; reads and writes then name the others alone.
    pub delete: f64,
    /// Reads of several records in the order of the index.
    pub scan: f64,
    /// Reads of a record, then writes of one field of it.
    pub read_modify_write: f64,
    /// Which records are named.
    pub distribution: Distribution,
}

const ZIPFIAN: Distribution = Distribution::Zipfian(0.99);

const NOTHING: Mix = Mix {
    name: "",
    read: 0.0,
    update: 0.0,
    insert: 0.0,
    delete: 0.0,
    scan: 0.0,
    read_modify_write: 0.0,
    distribution: ZIPFIAN,
};

/// YCSB's core workloads (Cooper et al., SoCC 2010).
pub static YCSB: [Mix; 6] = [
    Mix { name: "A", read: 0.5, update: 0.5, ..NOTHING },
    Mix { name: "B", read: 0.95, update: 0.05, ..NOTHING },
    Mix { name: "C", read: 1.0, ..NOTHING },
    Mix { name: "D", read: 0.95, insert: 0.05, distribution: Distribution::Latest, ..NOTHING },
    Mix { name: "E", scan: 0.95, insert: 0.05, ..NOTHING },
    Mix { name: "F", read: 0.5, read_modify_write: 0.5, ..NOTHING },
];

/// The six mixes of the University of Waterloo's study, and one with the deletes that it wished for.
pub static WATERLOO: [Mix; 7] = [
    Mix { name: "WA", read: 0.5, update: 0.5, ..NOTHING },
    Mix { name: "WB", read: 0.95, update: 0.05, ..NOTHING },
    Mix { name: "WC", read: 0.05, update: 0.95, ..NOTHING },
    Mix { name: "WD", read: 0.9, insert: 0.1, ..NOTHING },
    Mix { name: "WE", read: 0.1, insert: 0.9, ..NOTHING },
    Mix { name: "WF", read: 0.5, insert: 0.5, ..NOTHING },
    Mix { name: "WG", read: 0.5, insert: 0.25, delete: 0.25, ..NOTHING },
];

impl Mix {
    /// The workload of this name.
    pub fn of(name: &str) -> Option<&'static Mix> {
        YCSB.iter().chain(&WATERLOO).find(|mix| mix.name.eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_names_are_found() {
        for mix in YCSB.iter().chain(&WATERLOO) {
            let sum = mix.read + mix.update + mix.insert + mix.delete + mix.scan + mix.read_modify_write;
            assert!((sum - 1.0).abs() < 1e-12, "{}", mix.name);
            assert_eq!(Mix::of(&mix.name.to_lowercase()), Some(mix));
        }
        assert_eq!(Mix::of("G"), None);
    }
}
