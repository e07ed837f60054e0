//! `cargo xtask tidy`: rules about the source that a compiler does not check. Knows only committed text.

mod code;
mod commands;
mod edges;
mod finding;
mod heads;
mod leftovers;
mod links;
mod machine;
mod names;
mod runner;
mod sizes;
mod tree;
mod unsafety;

pub use runner::run;
