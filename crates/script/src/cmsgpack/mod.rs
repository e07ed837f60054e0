//! The `cmsgpack` library, as lua-cmsgpack 0.4.0 has it: an index.

mod library;
mod pack;
mod unpack;

pub(crate) use library::library;
