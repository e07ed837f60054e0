//! Requests of memcached's binary protocol: whole or in pieces, the decoder makes the same of them.
#![no_main]

#[path = "../../crates/wire/tests/feed/checks.rs"]
mod checks;
#[path = "../../crates/wire/tests/feed/connection.rs"]
mod connection;

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::memcache_binary(input));
