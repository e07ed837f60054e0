//! Values of the store in the forms in which they leave the process and come back. Knows no key, no clock and no file.
#![forbid(unsafe_code)]

pub mod aof;
pub mod rdb;

pub use tenon_journal as journal;
