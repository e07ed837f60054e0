//! The servers under measurement: found, started, ended, or only spoken to. Know not what is measured.

mod answers;
mod certificate;
mod external;
mod family;
mod find;
mod guard;
pub mod identity;
pub mod postgres;
mod program;
mod server;
mod spark;

pub use answers::{answers, own_figures};
pub use external::External;
pub use family::Family;
pub use find::{Found, find};
pub use guard::Guard;
pub use program::{Persistence, Program, Settings};
pub use server::Server;
pub use spark::{Lookups, Ranked, Spark};
