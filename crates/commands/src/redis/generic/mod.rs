//! Commands for keys of any type and for whole databases: an index.

pub mod copy;
pub mod dbsize;
pub mod delete;
pub mod dump;
pub mod exists;
pub mod expire;
pub mod flush;
pub mod keys;
pub mod migrate;
pub mod move_key;
mod moved;
pub mod object;
pub mod randomkey;
pub mod rename;
pub mod restore;
pub mod scan;
pub mod sort;
pub mod swapdb;
pub mod ttl;
pub mod type_of;
pub mod wait;
