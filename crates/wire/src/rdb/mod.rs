//! Pieces of Redis's dump format that payloads and files share: an index. Knows no command and no type of value.

mod crc64;
mod footer;
mod lzf;
mod read;
mod write;

pub use crc64::crc64;
pub use footer::{PAYLOAD_VERSION, VALKEY_VERSION, seal, unseal};
pub use lzf::{lzf_compress, lzf_decompress};
pub use read::{ReadError, Reader, STRING_LEN_MAX, Source};
pub use write::{Compression, Writer};
