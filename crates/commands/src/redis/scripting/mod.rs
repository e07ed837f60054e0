//! Scripts and functions: an index.

pub mod eval;
pub mod fcall;
pub mod function;
mod function_help;
mod function_list;
pub mod script;
