//! Memcached's protocols: text, with classic and meta commands, and binary: an index.

pub mod base64;
pub mod binary;
pub mod decode;
pub mod error;
mod line;
pub mod meta;
pub mod number;
mod plain;
pub mod request;

pub use decode::{Limits, Step, TextDecoder};
pub use error::{Fatal, Refusal, RequestError};
pub use line::KEY_MAX;
pub use meta::{MetaFlags, MetaWords};
pub use request::{ArithmeticVerb, GetVerb, MetaVerb, Request, StoreVerb};
