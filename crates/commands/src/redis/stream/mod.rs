//! Commands on streams: an index.

pub mod acknowledge;
pub mod add;
pub mod claim;
pub mod delete;
mod delivery_log;
pub mod group;
mod id;
pub mod info;
pub mod negative_acknowledge;
pub mod pending;
pub mod producers;
pub mod range;
pub mod read;
mod read_args;
pub mod read_group;
mod references;
mod reply;
pub mod set_id;
pub mod trim;
mod trim_args;
