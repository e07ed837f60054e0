//! The fuzz targets' saved corpus, replayed without a fuzzer.
#![allow(missing_docs)]

#[path = "feed/checks.rs"]
mod checks;
#[path = "feed/connection.rs"]
mod connection;

use std::path::Path;

#[track_caller]
fn replay(target: &str, check: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).expect("the seeds are in the repository") {
        let path = entry.expect("the folder can be read").path();
        println!("{}", path.display());
        check(&std::fs::read(&path).expect("a seed can be read"));
        count += 1;
    }
    assert!(count > 0, "no seed for {target}");
}

#[test]
fn resp_command() {
    replay("resp_command", checks::resp_command);
}

#[test]
fn resp_value() {
    replay("resp_value", checks::resp_value);
}

#[test]
fn memcache_binary() {
    replay("memcache_binary", checks::memcache_binary);
}

#[test]
fn memcache_meta() {
    replay("memcache_meta", checks::memcache_meta);
}

#[test]
fn memcache_text() {
    replay("memcache_text", checks::memcache_text);
}
