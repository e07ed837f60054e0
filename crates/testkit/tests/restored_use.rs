//! How long a key was not used, and how often it was, as RESTORE says it: a restart on the log keeps both.

use tenon_client::{Resp, Value};
use tenon_testkit::patience::PATIENCE;
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

fn client(server: &Server) -> Resp {
    Resp::connect_to(server.address(Dialect::Redis).expect("a RESP port"), Some(PATIENCE)).expect("connected")
}

fn call(client: &mut Resp, line: &str) -> Value {
    client.call(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>()).expect("an answer")
}

fn int(client: &mut Resp, line: &str) -> i64 {
    match call(client, line) {
        Value::Int(number) => number,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn the_log_has_what_a_restored_key_was_used() {
    for (policy, said, asked, value) in
        [("allkeys-lru", "IDLETIME", "OBJECT IDLETIME", 5_000), ("allkeys-lfu", "FREQ", "OBJECT FREQ", 77)]
    {
        let settings = [("appendonly", "yes"), ("appendfsync", "always"), ("maxmemory-policy", policy)];
        let mut server = Server::tenon(&settings).expect("tenon starts");
        let mut first = client(&server);
        call(&mut first, "SET text 7");
        call(&mut first, "RPUSH list a b");
        for from in ["text", "list"] {
            let Value::Bulk(payload) = call(&mut first, &format!("DUMP {from}")) else { panic!("there is none") };
            for (to, ttl, more) in [("plain", "0", None), ("due", "4000000000000", Some("ABSTTL"))] {
                let (to, value) = (format!("{from}:{to}"), value.to_string());
                let words = ["RESTORE", &to, ttl].into_iter().map(str::as_bytes).chain([&payload[..]]);
                let rest = [said, &value].into_iter().chain(more).map(str::as_bytes);
                let words: Vec<&[u8]> = words.chain(rest).collect();
                assert_eq!(first.call(&words).expect("an answer"), Value::Simple(b"OK".to_vec()));
            }
        }
        server.kill();
        let folder = server.folder().to_str().expect("it is text").to_owned();
        // A frequency that no minute makes lower.
        let settings =
            [("dir", &*folder), ("appendonly", "yes"), ("maxmemory-policy", policy), ("lfu-decay-time", "0")];
        let again = Server::tenon(&settings).expect("tenon starts");
        let mut second = client(&again);
        for from in ["text", "list"] {
            for to in ["plain", "due"] {
                let found = int(&mut second, &format!("{asked} {from}:{to}"));
                // A slow machine adds seconds.
                let is_near = if said == "FREQ" { found == value } else { (value..value + 1_000).contains(&found) };
                assert!(is_near, "{asked} {from}:{to}: {found}");
            }
            assert_eq!(int(&mut second, &format!("PEXPIRETIME {from}:due")), 4_000_000_000_000);
            assert_eq!(int(&mut second, &format!("PEXPIRETIME {from}:plain")), -1);
        }
    }
}
