//! Lists: an index.

pub mod blocking;
pub mod edit;
pub mod pop;
pub mod position;
pub mod push;
mod range;
pub mod read;
pub mod transfer;
mod which_end;
