//! ACL: an index.

pub mod check;
pub mod container;
pub mod file;
pub mod list;
pub mod log;
pub mod user;
