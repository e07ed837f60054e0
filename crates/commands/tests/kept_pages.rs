//! What is done again and again takes no fresh pages each time: those that it frees would be kept beside all that was freed before.
//! Looks at what the allocator keeps, and knows nothing of why.

mod one_worker;

use one_worker::Server;
use std::alloc::System;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tenon_engine::ds::extents::{self, Extents};
use tenon_engine::ds::memory::Counting;
use tenon_engine::persist::rdb::file::{FileOptions, Form};
use tenon_engine::snapshot::SnapshotOptions;
use tenon_engine::wire::rdb::Compression;
use tenon_engine::wire::resp::Value;

#[global_allocator]
static ALLOCATOR: Counting<Extents<System>> = Counting(Extents(System));

/// What is kept at most beside what was before, in bytes: a few times what one piece of work takes.
const KEPT_MAX: usize = 2 << 20;

/// What is kept is the whole process's: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does something, and gives how many bytes more are kept behind it.
fn kept_by(act: impl FnOnce()) -> usize {
    extents::release();
    act();
    extents::kept()
}

/// Digits get shorter by a third.
fn digits(len: usize) -> Vec<u8> {
    let mut random = 1u32;
    let next = || {
        random = random.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        b'0' + ((random >> 16) % 10) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

fn run(server: &mut Server, words: &[&[u8]]) {
    let answer = server.run(&words.iter().map(|word| word.to_vec()).collect::<Vec<_>>());
    assert!(!matches!(answer, Value::Error(_)), "{answer:?}");
}

#[test]
fn a_snapshot_of_long_strings() {
    const KEYS: usize = 200;
    let _alone = alone();
    // In one piece, in several, and as one of several in a collection.
    for (command, len) in [("SET", 10_000), ("SET", 100_000), ("SET", 600_000), ("HSET", 100_000)] {
        let mut server = Server::new(28, &[]);
        let text = digits(len);
        for number in 0..KEYS * 100_000 / len.max(100_000) {
            let key = format!("key{number}").into_bytes();
            match command {
                "SET" => run(&mut server, &[b"SET", &key, &text]),
                _ => run(&mut server, &[b"HSET", &key, b"one", &text, b"other", &text]),
            }
        }
        let file = FileOptions { form: Form::Rdb, compression: Compression::On, has_checksum: true };
        let options = SnapshotOptions { file, is_log_base: false };
        let kept = kept_by(|| {
            let begun = server.engine.begin_snapshot(&mut server.worker, options, |_| ()).expect("it is the only one");
            begun.write_to(&server.engine, io::sink()).expect("a sink takes all");
        });
        assert!(kept < KEPT_MAX, "{command} of {len} bytes: {kept}");
    }
}

#[test]
fn the_same_command_again_and_again() {
    const TIMES: usize = 300;
    let _alone = alone();
    let mut server = Server::new(28, &[]);
    for (key, len) in [("short", 10), ("long", 20_000), ("longer", 100_000), ("rope", 800_000)] {
        run(&mut server, &[b"SET", key.as_bytes(), &digits(len)]);
    }
    for line in [
        "DUMP long",
        "DUMP longer",
        "DUMP rope",
        "INFO latencystats",
        "LATENCY HISTOGRAM",
        "LCS short long LEN",
        "LCS short long",
    ] {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let kept = kept_by(|| (0..TIMES).for_each(|_| run(&mut server, &words)));
        assert!(kept < KEPT_MAX, "{line}: {kept}");
    }
}
