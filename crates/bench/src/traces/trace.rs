//! A recorded sequence of requests. Knows no file.

use std::collections::HashMap;

/// Requests for objects, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The objects requested, numbered from 0 in the order of their first requests.
    pub requests: Vec<u32>,
    /// Bytes of each object, as at its first request.
    pub sizes: Vec<u32>,
}

/// Puts requests into a trace.
#[derive(Debug, Default)]
pub struct Builder {
    trace: Trace,
    numbers: HashMap<u64, u32>,
}

impl Builder {
    /// Somebody asked for this object.
    pub fn request(&mut self, object: u64, size: u32) {
        let next = self.trace.sizes.len() as u32;
        let number = *self.numbers.entry(object).or_insert(next);
        if number == next {
            self.trace.sizes.push(size);
        }
        self.trace.requests.push(number);
    }

    /// All requests.
    pub fn finish(self) -> Trace {
        self.trace
    }
}

impl Trace {
    /// Bytes of all objects together.
    pub fn footprint(&self) -> u64 {
        self.sizes.iter().map(|size| u64::from(*size)).sum()
    }

    /// The first requests, and the objects that they name.
    pub fn beginning(mut self, requests: usize) -> Trace {
        self.requests.truncate(requests);
        let objects = self.requests.iter().max().map_or(0, |last| *last as usize + 1);
        self.sizes.truncate(objects);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_numbered_as_they_come() {
        let mut builder = Builder::default();
        [(900, 5), (7, 10), (900, 6), (8, 1)].into_iter().for_each(|(object, size)| builder.request(object, size));
        let trace = builder.finish();
        assert_eq!(trace, Trace { requests: vec![0, 1, 0, 2], sizes: vec![5, 10, 1] });
        assert_eq!(trace.footprint(), 16);
        assert_eq!(trace.beginning(3), Trace { requests: vec![0, 1, 0], sizes: vec![5, 10] });
    }
}
