//! A load from several processes: the bench starts itself as often as asked for, each process drives its part, and all
//! begin together. Knows no experiment.

mod child;
mod order;
mod parent;

pub use child::drive;
pub use order::{Job, Order};
pub use parent::{SUBCOMMAND, run};
