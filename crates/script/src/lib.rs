//! Lua scripts and function libraries: the sandbox, its libraries, and the conversions between Lua and RESP. Knows no
//! command and no data: what a script calls goes through [`Host`].
#![deny(unsafe_code)]

mod arguments;
mod bit;
mod cjson;
mod cmsgpack;
pub mod host;
pub mod interpreter;
mod into_lua;
pub mod library;
mod number;
mod pattern;
mod raise;
mod random;
mod raw;
mod redis;
pub mod shebang;
mod structs;

pub use host::{Host, LogLevel, NoSuchCommand, Propagation, Stop, Words};
pub use interpreter::{Failure, Interpreter, Kind, Outcome, Script};
pub use library::{FunctionInfo, LibraryHead};
pub use random::Random;
pub use shebang::ScriptFlags;
