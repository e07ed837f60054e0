//! The ways that scripts take often, on Lua's own stack: an index. All that is `unsafe` in this crate is here, and each
//! file says at its head what must hold in it.

pub(crate) mod basic;
pub(crate) mod calls;
pub(crate) mod compile;
pub(crate) mod guarded;
pub(crate) mod numbers;
pub(crate) mod results;
pub(crate) mod stack;
pub(crate) mod strings;
