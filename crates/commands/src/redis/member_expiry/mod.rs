//! What the commands on the deadlines of hash fields, set members and sorted-set members share: an index.

pub(in crate::redis) mod arguments;
pub(in crate::redis) mod change;
pub(in crate::redis) mod names;
pub(in crate::redis) mod read;
