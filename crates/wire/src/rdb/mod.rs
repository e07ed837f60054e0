//! Pieces of Redis's dump format that payloads and files share: an index. Knows no command and no type of value.

mod crc64;
mod footer;
mod lzf;
mod string;

pub use crc64::crc64;
pub use footer::{PAYLOAD_VERSION, seal, unseal};
pub use lzf::lzf_decompress;
pub use string::{Len, read_len, read_string, write_len, write_string};
