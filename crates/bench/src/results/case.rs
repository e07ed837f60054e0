//! What sets one measurement of an experiment apart from its others. Knows no experiment.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A value on one of an experiment's axes.
#[derive(Clone, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Point {
    /// A quantity.
    Number(f64),
    /// A name.
    Word(String),
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Point::Number(number) => write!(f, "{number}"),
            Point::Word(word) => f.write_str(word),
        }
    }
}

/// A place on every axis of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Case {
    points: BTreeMap<String, Point>,
}

impl Case {
    /// On no axis yet.
    pub fn new() -> Case {
        Case::default()
    }

    /// At this name on an axis.
    pub fn word(mut self, axis: &str, word: &str) -> Case {
        self.points.insert(axis.to_owned(), Point::Word(word.to_owned()));
        self
    }

    /// At this quantity on an axis.
    pub fn number(mut self, axis: &str, number: f64) -> Case {
        self.points.insert(axis.to_owned(), Point::Number(number));
        self
    }

    /// Where it is on an axis.
    pub fn at(&self, axis: &str) -> Option<&Point> {
        self.points.get(axis)
    }

    /// The quantity on an axis.
    pub fn quantity(&self, axis: &str) -> Option<f64> {
        match self.at(axis)? {
            Point::Number(number) => Some(*number),
            Point::Word(_) => None,
        }
    }

    /// The same without one axis.
    pub fn without(&self, axis: &str) -> Case {
        let mut other = self.clone();
        other.points.remove(axis);
        other
    }

    /// Where all of some are on one place.
    pub fn shared_by(cases: &[&Case]) -> Case {
        let mut shared = cases.first().map_or_else(Case::new, |first| (*first).clone());
        shared.points.retain(|axis, point| cases.iter().all(|case| case.at(axis) == Some(point)));
        shared
    }

    /// Its place on these axes, to be read: words by themselves, quantities with their axis.
    pub fn shown(&self, axes: &[&str]) -> String {
        let shown = axes.iter().filter_map(|axis| match self.at(axis)? {
            Point::Word(word) => Some(word.clone()),
            Point::Number(number) => Some(format!("{axis} {number}")),
        });
        shown.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_kept_as_plain_json() {
        let case = Case::new().word("operation", "get").number("pipeline", 16.0);
        let text = serde_json::to_string(&case).unwrap();
        assert_eq!(text, r#"{"operation":"get","pipeline":16.0}"#);
        assert_eq!(serde_json::from_str::<Case>(&text).unwrap(), case);
        assert_eq!(case.shown(&["operation", "pipeline", "none"]), "get, pipeline 16");
        assert_eq!((case.quantity("pipeline"), case.quantity("operation")), (Some(16.0), None));
        assert_eq!(case.without("operation"), Case::new().number("pipeline", 16.0));
        let other = case.clone().word("operation", "set");
        assert_eq!(Case::shared_by(&[&case, &other]), Case::new().number("pipeline", 16.0));
        assert_eq!((Case::shared_by(&[&case]), Case::shared_by(&[])), (case, Case::new()));
    }
}
