//! Data that comes from files: an index.

mod crew;
mod error;
mod figures;
mod insert;
mod lanes;
mod log;
mod rdb;
mod reload;
mod stretch;

pub use error::LoadError;
pub use figures::{Figures, Loading, LoadingGuard};
pub use insert::{OnDuplicate, Past};
pub use log::LogReport;
pub use rdb::{Hands, LoadReport, Progress, RdbOptions};
pub use reload::Before;
