//! Sets: an index.

mod algebra;
mod forms;
mod int_set;
mod members;
mod random;

pub use algebra::{Visited, difference, have_in_common, intersection, union, visit_difference, visit_union};
pub use forms::{Set, SetForm, SetLimits, SetRef};
pub use int_set::{IntSet, IntSetRef};
pub use members::Members;
