//! The `cjson` library, as lua-cjson 2.1.0 has it: an index.

mod decode;
mod encode;
mod settings;

pub(crate) use settings::{Settings, library};
