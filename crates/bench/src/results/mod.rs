//! What was measured, on disk and in memory. Knows not how it was.

mod build;
mod case;
mod median;
pub mod moment;
mod plan;
mod record;
mod store;
mod table;

pub use build::Build;
pub use case::{Case, Point};
pub use median::{Spread, median, spread};
pub use plan::{Coverage, Mark, Plan};
pub use record::Record;
pub use store::{Earlier, Store};
pub use table::{Table, figure};
