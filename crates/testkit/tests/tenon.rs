//! Plays the transcripts against Tenon, in process and over TCP. Knows no command.

use std::alloc::System;
use tenon_engine::ds::memory::Counting;
use tenon_testkit::in_process::InProcess;
use tenon_testkit::target::TenonOverTcp;
use tenon_testkit::transcripts::check::{check, folder};

/// As in the server, so that `maxmemory` has something to count in process too.
#[global_allocator]
static ALLOCATOR: Counting<System> = Counting(System);

#[test]
fn tenon_in_process_agrees_with_the_transcripts() {
    check(&mut InProcess::default(), &folder(), None);
}

#[test]
fn tenon_over_tcp_agrees_with_the_transcripts() {
    check(&mut TenonOverTcp::target(), &folder(), None);
}

/// The test above has epoll. Where the system has no io_uring, so has this.
#[test]
fn tenon_over_tcp_with_io_uring_agrees_with_the_transcripts() {
    check(&mut TenonOverTcp::with_io("io-uring"), &folder(), None);
}
