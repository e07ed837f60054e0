//! An original server to hold Tenon's answers against, where there is one. Knows no answer.

use crate::server::{Server, StartError};
use crate::target::Dialect;
use std::io::Write;

/// The original server of a protocol with these settings, where it is installed; elsewhere says past the test harness that
/// nobody judges the answers.
///
/// # Panics
/// When it does not start, and where it is missing although the oracles are required (`TENON_REQUIRE_ORACLES`).
pub fn oracle(dialect: Dialect, settings: &[(&str, &str)]) -> Option<Server> {
    let started = match dialect {
        Dialect::Redis => Server::redis(settings),
        Dialect::Memcache => Server::memcached(settings),
    };
    match started {
        Ok(server) => Some(server),
        Err(StartError::Missing(what)) => {
            assert!(std::env::var("TENON_REQUIRE_ORACLES").is_err(), "{what}");
            let _ = writeln!(std::io::stderr(), "skipped: the comparison with the original server: {what}");
            None
        }
        Err(other) => panic!("{other}"),
    }
}
