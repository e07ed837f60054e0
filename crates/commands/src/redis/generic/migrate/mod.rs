//! MIGRATE: an index.

mod deliver;
mod options;
mod parcel;
mod run;

pub use run::MIGRATE;
