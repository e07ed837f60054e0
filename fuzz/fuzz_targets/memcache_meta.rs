//! Flags and keys of memcached's meta commands: read or refused, never more.
#![no_main]

#[path = "../../crates/wire/tests/feed/checks.rs"]
mod checks;
#[path = "../../crates/wire/tests/feed/connection.rs"]
mod connection;

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::memcache_meta(input));
