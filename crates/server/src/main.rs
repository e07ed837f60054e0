//! The `tenon` binary: an in-memory data server that speaks RESP and memcached. Boots it and knows nothing else.
#![forbid(unsafe_code)]

#[cfg(not(sanitized))]
use mimalloc::MiMalloc;
#[cfg(sanitized)]
use std::alloc::System;
use std::process::ExitCode;
#[cfg(not(sanitized))]
use tenon_ds::extents::Extents;
use tenon_ds::memory::Counting;

/// Every allocation is counted: `maxmemory` is about all of them.
#[cfg(not(sanitized))]
#[global_allocator]
static ALLOCATOR: Counting<Extents<MiMalloc>> = Counting(Extents(MiMalloc));

/// Sanitizers know the system's allocator alone.
#[cfg(sanitized)]
#[global_allocator]
static ALLOCATOR: Counting<System> = Counting(System);

fn main() -> ExitCode {
    tenon_server::allocator::keep_free_memory();
    tenon_server::boot::run(std::env::args_os().skip(1))
}
