//! Sorted sets: an index.

mod algebra;
mod bounds;
mod forms;
mod gathered;
mod packed;
mod random;
mod view;

pub use algebra::{Aggregate, Combined, Source, difference, have_in_common, intersection, intersection_len, union};
pub use bounds::{LexBound, LexRange, ScoreBound, ScoreRange};
pub use forms::{Members, Zset, ZsetForm, ZsetLimits};
pub use gathered::Gathered;
pub use tenon_ds::scored_set::Direction;
pub use view::ZsetRef;
