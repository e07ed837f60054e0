//! RDB files: whatever is in them does no harm, and it is the same whether they come whole or byte by byte.
#![no_main]

#[path = "../../crates/persist/tests/files/sample.rs"]
mod sample;

use std::io::Read;
use tenon_persist::rdb::file::OnModule;

/// Gives a few bytes at a time.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let len = buf.len().min(7);
        self.0.read(&mut buf[..len])
    }
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    // With a header that is known and without a checksum, or nearly nothing would get past them.
    let header: &[u8] = if input.first().is_some_and(|byte| byte % 4 == 0) { b"VALKEY080" } else { b"REDIS0014" };
    let file = [header, input, b"\xFF\0\0\0\0\0\0\0\0"].concat();
    let whole = sample::read_from(&file[..], Some(file.len() as u64), OnModule::Skip);
    let pieces = sample::read_from(Trickle(&file), None, OnModule::Skip);
    match (whole, pieces) {
        (Ok((whole, rest)), Ok((pieces, rest_of_pieces))) => {
            assert_eq!(whole.keys(), pieces.keys());
            assert_eq!(rest, rest_of_pieces);
        }
        (Err(error), Err(_)) => assert!(error.offset <= file.len() as u64),
        (whole, pieces) => panic!("{whole:?} and {pieces:?}"),
    }
});
