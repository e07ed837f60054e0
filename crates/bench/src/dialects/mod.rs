//! The languages as bytes: requests written, replies found and read. Know no socket.

mod binary;
mod dialect;
mod lines;
mod meta;
pub mod postgres;
mod resp;
mod text;

pub use binary::{Binary, read_login, write_login};
pub use dialect::{Dialect, Each, Read};
pub use lines::{digits, line, push_number, refused};
pub use meta::Meta;
pub use postgres::Postgres;
pub use resp::{Resp, read_length, write_bulk, write_head};
pub use text::Text;
