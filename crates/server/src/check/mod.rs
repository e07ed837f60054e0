//! `tenon check`: looks through files without a server: an index.

mod aof;
mod command;
mod rdb;

pub(crate) use command::{WORD, run};
