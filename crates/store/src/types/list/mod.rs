//! Lists: an index.

mod limits;
mod value;
mod view;

pub use limits::ListLimits;
pub use value::List;
pub use view::{Items, ListRef};
