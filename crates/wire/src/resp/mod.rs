//! RESP2, RESP3 and inline commands: an index. Knows no command's name.

pub mod decode;
pub mod double;
pub mod encode;
pub mod error;
mod inline;
pub mod number;
pub mod value;

pub use decode::{CommandDecoder, Limits, Step};
pub use double::write_double;
pub use encode::{Deferred, Proto, Reply, SHARED_MIN};
pub use error::ProtocolError;
pub use inline::{append_quoted, words_of};
pub use value::{Value, ValueDecoder, ValueLimits};
