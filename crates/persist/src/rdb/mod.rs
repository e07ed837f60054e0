//! Values in Redis's dump format, as payloads of DUMP and RESTORE and files of SAVE have them: an index.

mod build;
mod decode;
mod elements;
mod encode;
mod error;
mod extras;
pub mod file;
mod intset;
mod kind;
mod listpack;
mod payload;
mod producers;
mod slices;
mod stream;
mod value;
mod ziplist;
mod zipmap;

pub use decode::{Limits, Origin, Scene, read_value};
pub(crate) use encode::{View, view};
pub use encode::{kind_of, write_value};
pub use error::DecodeError;
pub use payload::{LoadError, Loaded, dump, load, serialized_len};
pub use slices::{Cursor, is_large};
pub(crate) use slices::{Part, Room, Stage};
pub use value::Value;
