//! Commands of clusters: an index.

pub mod refused;
