//! The certificate of servers that the bench starts: of the tests' own authority, for this machine's loopback address. It
//! keeps nothing secret. Knows no server.

use anyhow::{Context, Result};
use std::path::Path;

/// The files' names in a server's directory.
pub const AUTHORITY: &str = "ca.pem";
/// The certificate.
pub const CERTIFICATE: &str = "server.pem";
/// Its key.
pub const KEY: &str = "server.key.pem";

static FILES: [(&str, &str); 3] = [
    (AUTHORITY, include_str!("../../../../tests/tls/ca.pem")),
    (CERTIFICATE, include_str!("../../../../tests/tls/server.pem")),
    (KEY, include_str!("../../../../tests/tls/server.key.pem")),
];

/// Puts all of them into a directory.
pub fn put_into(directory: &Path) -> Result<()> {
    FILES.iter().try_for_each(|(name, text)| {
        let path = directory.join(name);
        std::fs::write(&path, text).with_context(|| path.display().to_string())
    })
}
