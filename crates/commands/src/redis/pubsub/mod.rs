//! Channels: an index.

pub mod inspect;
pub mod publish;
pub mod subscribe;
