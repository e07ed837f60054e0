//! What matches patterns in strings: an index. Lua's own matcher recurses without bound and cannot be interrupted.

mod functions;
mod matcher;

pub(crate) use functions::register;
