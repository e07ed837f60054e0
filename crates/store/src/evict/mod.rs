//! Which key goes when memory is full: the policies of Redis by name.

mod policy;
mod sampled;

pub use policy::Policy;
pub use sampled::{Sampling, victim};
