//! `tenon check`: looks through files without a server: an index.

mod aof;
mod command;

pub(crate) use command::{WORD, run};
