//! YCSB's core workloads over records of several fields. Know no socket.

mod core;
mod layout;
mod memcache;
mod mix;
mod places;
mod postgres;
mod resp;
mod work;

pub use self::core::{KINDS, Spec};
pub use layout::Layout;
pub use memcache::{Memcache, Updates};
pub use mix::{Mix, WATERLOO, YCSB};
pub use postgres::{Postgres, USERTABLE, table};
pub use resp::Resp;
pub use work::{Driver, Numbers, Part, Work};
