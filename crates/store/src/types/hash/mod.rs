//! Hashes: an index.

mod fields;
mod forms;
mod random;

pub use fields::Fields;
pub use forms::{Hash, HashForm, HashLimits, HashRef};
