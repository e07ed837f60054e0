//! What matches patterns in strings: an index. Lua's own matcher recurses without bound and cannot be interrupted.

mod functions;
mod matcher;

pub(crate) use functions::{Caret, Patterns, find_plain, has_specials, is_bound, repeat, replace, search};
pub(crate) use matcher::{Capture, Fault};
