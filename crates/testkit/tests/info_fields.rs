//! What INFO says: the fields that redis-server has and those that exporters read, each in its section. Knows of the
//! fields only which ones Tenon leaves out, and why.

use std::collections::BTreeMap;
use std::time::Duration;
use tenon_client::{Resp, Value};
use tenon_testkit::oracle::oracle;
use tenon_testkit::patience::PATIENCE;
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

/// Fields of redis-server 7.0 that Tenon has not, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    ("atomicvar_api", "how the C program was compiled"),
    ("gcc_version", "how the C program was compiled"),
    ("dump_payload_sanitizations", "every payload is looked through"),
];

/// Fields of later versions that exporters read.
const LATER: &[&str] = &[
    "watching_clients",
    "total_watched_keys",
    "client_query_buffer_limit_disconnections",
    "client_output_buffer_limit_disconnections",
    "pubsub_clients",
    "evicted_scripts",
    "acl_access_denied_auth",
    "acl_access_denied_db",
    "paused_reason",
    "paused_actions",
    "paused_timeout_milliseconds",
    "expired_fields",
];

fn client(server: &Server) -> Resp {
    Resp::connect_to(server.address(Dialect::Redis).expect("a RESP port"), Some(PATIENCE)).expect("connected")
}

/// Every field with its section and value.
fn fields(client: &mut Resp) -> BTreeMap<String, (String, String)> {
    let answer = client.call(&[b"INFO", b"everything"]).expect("an answer");
    let Value::Bulk(text) = answer else { panic!("INFO gives a text: {answer:?}") };
    let text = String::from_utf8(text).expect("INFO is text");
    let mut section = String::new();
    let mut fields = BTreeMap::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("# ") {
            section = title.to_owned();
        } else if let Some((name, value)) = line.split_once(':') {
            let known = fields.insert(name.to_owned(), (section.clone(), value.to_owned()));
            assert!(known.is_none(), "{name} is there twice");
        }
    }
    fields
}

#[test]
fn info_has_the_fields_of_redis_and_of_exporters() {
    let tenon = Server::tenon(&[]).expect("tenon starts");
    let ours = fields(&mut client(&tenon));
    for name in LATER {
        assert!(ours.contains_key(*name), "{name} is missing");
    }
    let Some(redis) = oracle(Dialect::Redis, &[]) else { return };
    let theirs = fields(&mut client(&redis));
    assert!(theirs.len() > 100, "only {} fields", theirs.len());
    let mut problems = Vec::new();
    for (name, (section, value)) in &theirs {
        let is_left_out = LEFT_OUT.iter().any(|(start, _)| name.starts_with(start));
        match ours.get(name) {
            None if is_left_out => {}
            None => problems.push(format!("{name} is missing")),
            Some(_) if is_left_out => problems.push(format!("{name} is there and was to be left out")),
            Some((our_section, our_value)) => {
                if our_section != section {
                    problems.push(format!("{name} is in {our_section}, not in {section}"));
                }
                // A reader of numbers must find one where redis-server has one, and a percent sign where it has that.
                let kind = |value: &str| (value.parse::<f64>().is_ok(), value.ends_with('%'));
                if kind(value) != kind(our_value) && name != "redis_git_sha1" && name != "redis_build_id" {
                    problems.push(format!("{name} is {our_value:?} where redis-server has {value:?}"));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn counters_count() {
    let server = Server::tenon(&[]).expect("tenon starts");
    let mut client = client(&server);
    let number = |fields: &BTreeMap<String, (String, String)>, name: &str| -> u64 {
        fields[name].1.parse().unwrap_or_else(|_| panic!("{name} is {:?}", fields[name]))
    };
    let before = fields(&mut client);
    for _ in 0..10 {
        client.call(&[b"PING"]).expect("an answer");
    }
    client.call(&[b"WATCH", b"a", b"b"]).expect("an answer");
    client.call(&[b"SET", b"k", b"v", b"PX", b"1"]).expect("an answer");
    std::thread::sleep(Duration::from_millis(100));
    client.call(&[b"GET", b"k"]).expect("an answer");
    let after = fields(&mut client);
    for name in ["total_reads_processed", "total_writes_processed", "total_commands_processed"] {
        let grown = number(&after, name) - number(&before, name);
        assert!((14..=30).contains(&grown), "{name}: {grown}");
    }
    assert_eq!(["watching_clients", "total_watched_keys", "expired_keys"].map(|name| number(&after, name)), [1, 2, 1]);
}
