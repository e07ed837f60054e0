//! Sockets and worker threads: moves bytes between clients and a [`Service`], and knows nothing of what they mean.

mod acceptor;
mod connection;
mod datagrams;
mod epoll;
mod held;
mod inbox;
mod io;
mod listener;
mod low_water;
mod relisten;
mod sending;
mod serve;
mod service;
mod slab;
mod tls;
mod trial;
mod uring;
mod way;
mod worker;

pub use inbox::Mailboxes;
pub(crate) use inbox::Waker;
pub use listener::{Bind, Endpoint, Listen, ListenError};
pub use relisten::{Listening, Places};
pub use serve::{Bound, Options, Running, ServeError, Sockets, Takes, serve};
pub use service::{Address, CloseReason, ConnectionId, FrontEnd, Meanwhile, OutputLimits, Peer, Service};
pub use tls::{TlsEvent, TlsTerms};
pub use way::{Wanted, Way};
pub(crate) use worker::lending::STAND_INS_MAX;
