//! Which way moves the bytes, as a user sees it: in the settings, in INFO and in the log. Knows neither way.

use std::fs;
use tenon_client::{Resp, Value};
use tenon_testkit::patience::PATIENCE;
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

fn text(value: &Value) -> String {
    let (Value::Bulk(bytes) | Value::Simple(bytes)) = value else { panic!("{value:?} is a text") };
    String::from_utf8_lossy(bytes).into_owned()
}

/// Starts a server with this way, has it serve, and checks that setting, INFO and log say which it is, one of `allowed`.
fn check(io: &str, allowed: &[&str]) {
    let log = std::env::temp_dir().join(format!("tenon-io-choice-{io}-{}.log", std::process::id()));
    let log_name = log.to_str().expect("a path that is text");
    let server = Server::tenon(&[("io", io), ("logfile", log_name), ("loglevel", "notice")]).expect("tenon starts");
    let address = server.address(Dialect::Redis).expect("RESP is spoken");
    let mut client = Resp::connect_to(address, Some(PATIENCE)).expect("the server listens");
    assert_eq!(text(&client.call(&[b"SET", b"k", b"v"]).expect("a reply")), "OK");
    assert_eq!(text(&client.call(&[b"GET", b"k"]).expect("a reply")), "v");

    let Value::Array(setting) = client.call(&[b"CONFIG", b"GET", b"io"]).expect("a reply") else {
        panic!("CONFIG GET answers pairs")
    };
    assert_eq!(setting.iter().map(text).collect::<Vec<_>>(), ["io", io]);
    let refused = client.call(&[b"CONFIG", b"SET", b"io", b"epoll"]).expect("a reply");
    assert!(matches!(refused, Value::Error(_)), "it is chosen at the start: {refused:?}");

    let info = text(&client.call(&[b"INFO", b"server"]).expect("a reply"));
    let way = info.lines().find_map(|line| line.strip_prefix("multiplexing_api:")).expect("INFO has the field");
    assert!(allowed.contains(&way), "{way}");
    let log_text = fs::read_to_string(&log).expect("there is a log");
    let lines: Vec<&str> = log_text.lines().filter(|line| line.contains("clients are served with")).collect();
    assert_eq!(lines.len(), 1, "{log_text}");
    assert!(lines[0].contains(&format!("clients are served with {way}")), "{}", lines[0]);
    drop(server);
    let _ = fs::remove_file(&log);
}

#[test]
fn epoll_is_epoll() {
    check("epoll", &["epoll"]);
}

#[test]
fn io_uring_is_there_or_epoll_stands_in() {
    check("io-uring", &["io_uring", "epoll"]);
}

#[test]
fn auto_is_one_of_both() {
    check("auto", &["io_uring", "epoll"]);
}
