//! The cases that throughput and instructions are taken for. Knows no server.

use super::load::{Operation, Protocol};

/// One kind of request at one depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The language.
    pub protocol: Protocol,
    /// What each request does.
    pub operation: Operation,
    /// Requests in flight on each connection.
    pub pipeline: usize,
}

/// Bytes of every value in the throughput cases.
pub const VALUE_LEN: usize = 32;

/// GET of such a value.
pub const GET: Operation = Operation::Get { value_len: VALUE_LEN };

/// SET of such a value.
pub const SET: Operation = Operation::Set { value_len: VALUE_LEN, expire: false };

/// Depths measured.
pub const PIPELINES: [usize; 3] = [1, 16, 64];

/// GET and SET at each depth in both protocols; in memcached's, which has it built in, multiget too.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for protocol in [Protocol::Resp, Protocol::Memcache] {
        for operation in [GET, SET] {
            cases.extend(PIPELINES.map(|pipeline| Case { protocol, operation, pipeline }));
        }
    }
    for keys in [16, 64] {
        let operation = Operation::MultiGet { keys, value_len: VALUE_LEN };
        cases.push(Case { protocol: Protocol::Memcache, operation, pipeline: 1 });
    }
    cases
}

impl Case {
    /// What the filter is matched against, after the experiment's name.
    pub fn name(&self) -> String {
        let operation = match self.operation {
            Operation::Get { .. } => "get".to_owned(),
            Operation::Set { .. } => "set".to_owned(),
            Operation::MultiGet { keys, .. } => format!("multiget-{keys}"),
            Operation::Command { words, .. } => words[0].to_lowercase(),
        };
        format!("{}/{operation}/p{}", self.protocol.name(), self.pipeline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct() {
        let mut names: Vec<String> = all().iter().map(Case::name).collect();
        assert!(names.contains(&"resp/get/p16".to_owned()) && names.contains(&"memcache/multiget-16/p1".to_owned()));
        names.dedup();
        assert_eq!(names.len(), 14);
    }
}
