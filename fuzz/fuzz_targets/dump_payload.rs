//! Payloads of DUMP: what loads can be dumped and loads again as the same value, and nothing else does any harm.
#![no_main]

#[path = "../../crates/persist/tests/values/content.rs"]
mod content;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    // With a right footer, or nearly nothing would get past it.
    let mut payload = input.to_vec();
    tenon_wire::rdb::seal(&mut payload);
    if let Ok(loaded) = content::loaded(&payload) {
        content::check_round_trip(loaded.value, loaded.client_flags);
    }
});
