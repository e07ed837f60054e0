//! The `tenon` binary: parses the command line and boots the server.

fn main() {}
