//! Memcached's classic text protocol: an index. The meta commands and the binary protocol get files beside these.

pub mod decode;
pub mod error;
mod line;
mod number;
mod plain;
pub mod request;

pub use decode::{Limits, Step, TextDecoder};
pub use error::{Fatal, Refusal, RequestError};
pub use request::{ArithmeticVerb, GetVerb, Request, StoreVerb};
