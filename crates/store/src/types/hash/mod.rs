//! Hashes: an index.

mod fields;
mod forms;
mod packed;
mod random;

pub use fields::Fields;
pub use forms::{Hash, HashForm, HashLimits, HashRef};
pub use packed::{PackedFields, PackedFieldsRef};
