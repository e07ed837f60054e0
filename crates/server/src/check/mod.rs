//! `tenon check`: looks through files without a server: an index.

mod command;
mod rdb;

pub(crate) use command::{WORD, run};
