//! The `tenon` binary: an in-memory data server that speaks RESP and memcached. Boots it and knows nothing else.
#![forbid(unsafe_code)]

use mimalloc::MiMalloc;
use std::process::ExitCode;
use tenon_ds::extents::Extents;
use tenon_ds::memory::Counting;

/// Every allocation is counted: `maxmemory` is about all of them.
#[global_allocator]
static ALLOCATOR: Counting<Extents<MiMalloc>> = Counting(Extents(MiMalloc));

fn main() -> ExitCode {
    tenon_server::allocator::keep_free_memory();
    tenon_server::boot::run(std::env::args_os().skip(1))
}
