//! What a host refuses a server that runs: it goes on with what it has, and says so.

use std::fs;
use tenon_client::{Resp, Value};
use tenon_testkit::info;
use tenon_testkit::patience::{PATIENCE, wait_until};
use tenon_testkit::server::{Folder, Server};
use tenon_testkit::target::Dialect;

const VALUE_LEN: usize = 50_000;

/// Nothing that could be compressed.
fn noise() -> Vec<u8> {
    let mut state = 1_u32;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    noise.take(VALUE_LEN).collect()
}

#[test]
fn a_file_that_may_not_become_longer_ends_no_server() {
    // 512,000 bytes.
    let mut server = Server::tenon_with_short_files(1_000, &[("workers", "1"), ("save", "")]).expect("tenon starts");
    let address = server.address(Dialect::Redis).expect("RESP is spoken");
    let mut client = Resp::connect_to(address, Some(PATIENCE)).expect("the server listens");
    let value = noise();
    for number in 0..20 {
        let reply = client.call(&[b"SET", format!("key:{number}").as_bytes(), &value]).expect("a reply");
        assert_eq!(reply, Value::Simple(b"OK".to_vec()));
    }
    client.call(&[b"BGSAVE"]).expect("a reply");
    wait_until("the save has failed", || info::field(&mut client, "persistence", "rdb_last_bgsave_status") == "err");
    assert!(server.is_running());
    assert_eq!(client.call(&[b"DBSIZE"]).expect("a reply"), Value::Int(20));
    assert!(!fs::exists(server.folder().join("dump.rdb")).expect("it can be looked for"));
    assert!(server.log().contains("File too large"), "{}", server.log());
}

#[test]
fn nor_does_a_log_file_that_is_as_long_as_it_may_be() {
    let folder = Folder::new().expect("a folder of our own");
    let log = folder.path.join("long.log");
    fs::write(&log, vec![b'\n'; 600_000]).expect("it is written");
    // So little is warned of before anybody is served.
    let settings = [("logfile", log.to_str().expect("text")), ("maxmemory", "100000"), ("save", "")];
    let mut server = Server::tenon_with_short_files(1_000, &settings).expect("tenon starts");
    assert!(server.is_running() && fs::metadata(&log).expect("it is there").len() == 600_000);
}

#[test]
fn what_a_log_that_may_not_become_longer_has_confirmed_is_written() {
    // 20 MB: more than the memory that the log is gathered in.
    let start = |folder: &Folder| {
        let settings = [
            ("workers", "1"),
            ("save", ""),
            ("appendonly", "yes"),
            ("auto-aof-rewrite-percentage", "0"),
            ("dir", folder.path.to_str().expect("text")),
        ];
        Server::tenon_with_short_files(40_000, &settings).expect("tenon starts")
    };
    let folder = Folder::new().expect("a folder of our own");
    let mut server = start(&folder);
    let connect = |server: &Server| {
        let address = server.address(Dialect::Redis).expect("RESP is spoken");
        Resp::connect_to(address, Some(PATIENCE)).expect("the server listens")
    };
    let mut client = connect(&server);
    let value = noise();
    let confirmed = (0..1_000)
        .take_while(|number| {
            let reply = client.call(&[b"SET", format!("key:{number}").as_bytes(), &value]).expect("a reply");
            let is_refused = matches!(&reply, Value::Error(error) if error.starts_with(b"MISCONF"));
            assert!(is_refused || reply == Value::Simple(b"OK".to_vec()), "{reply:?}");
            !is_refused
        })
        .count();
    assert!((1..1_000).contains(&confirmed), "{confirmed}");
    wait_until("all is written", || info::field(&mut client, "persistence", "aof_buffer_length") == "0");
    server.kill();
    let server = start(&folder);
    assert_eq!(connect(&server).call(&[b"DBSIZE"]).expect("a reply"), Value::Int(confirmed as i64));
}
