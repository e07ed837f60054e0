//! Which key goes when memory is full: the policies of Redis by name, and Tenon's own.

pub mod aging;
mod ghosts;
pub mod hand;
mod policy;
mod sampled;
pub mod turnover;
pub mod worth;

pub use ghosts::Ghosts;
pub use policy::Policy;
pub use sampled::{Sampling, victim};
