//! Scripts and function libraries: an index. Knows of commands only what the table says.

mod host;
mod interpreters;
mod known;
mod libraries;
mod load;
mod payload;
mod reaching;
mod run;
mod running;
mod scripts;

pub use interpreters::Interpreters;
pub use known::Known;
pub use libraries::{Function, Library, Shelf};
pub(crate) use load::OnExisting;
pub use payload::Restore;
pub(crate) use run::is_script_call;
pub use run::{Access, By};
pub use running::{Kind, LongScript};
pub use scripts::Scripts;
