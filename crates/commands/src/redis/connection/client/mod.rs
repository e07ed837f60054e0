//! CLIENT: an index.

pub mod container;
mod filter;
pub mod identity;
pub mod kill;
mod kind;
pub mod list;
pub mod mode;
pub mod pause;
mod prefixes;
pub mod tracking;
