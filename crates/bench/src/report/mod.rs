//! Results as tables and pages. Know not how anything was measured.

mod conditions;
mod html;
mod limits;
mod markdown;
mod published;
mod rivals;
mod scale;
mod svg;
mod tables;
mod write;

pub use limits::limits;
pub use markdown::section;
pub use tables::{Group, groups, table};
pub use write::{lines, write};
