//! Directed graphs: read, drawn at random, and ranked by a plain program. Know no server.

mod graph;
mod rank;

pub use graph::Graph;
pub use rank::{DAMPING, ranks, step};
