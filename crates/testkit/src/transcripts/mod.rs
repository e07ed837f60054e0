//! Conversations with a server as text files, played and compared; `tests/transcripts/README.md` explains the notation. Knows no command.

pub mod check;
pub mod escape;
pub mod expect;
pub mod pattern;
pub mod play;
pub mod print;
pub mod script;

pub use check::{Report, check, run};
