//! Clients that listen, over TCP: silence does not end them, but not taking what they are sent does.

use std::time::{Duration, Instant};
use tenon_client::{Resp, Value};
use tenon_testkit::patience::{PATIENCE, wait_until};
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

const TIMEOUT: Option<Duration> = Some(PATIENCE);

fn connect(server: &Server) -> Resp {
    let address = server.address(Dialect::Redis).expect("RESP is spoken");
    Resp::connect_to(address, TIMEOUT).expect("the server listens")
}

fn text(line: &Value) -> String {
    let (Value::Bulk(bytes) | Value::Simple(bytes)) = line else { panic!("{line:?} is a text") };
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn silence_does_not_end_who_listens() {
    let server = Server::tenon(&[]).expect("tenon starts");
    let mut subscriber = connect(&server);
    subscriber.call(&[b"SUBSCRIBE", b"c"]).expect("an answer");
    let mut monitor = connect(&server);
    monitor.call(&[b"MONITOR"]).expect("an answer");
    // Until now nobody is closed, however long this thread has no core.
    connect(&server).call(&[b"CONFIG", b"SET", b"timeout", b"1"]).expect("an answer");
    // Two that are silent after them, one after the other, are closed: by then all clients were looked at.
    for _ in 0..2 {
        connect(&server).receive().expect_err("who is idle is closed");
    }
    let sent = connect(&server).call(&[b"PUBLISH", b"c", b"still there"]).expect("a reply");
    assert_eq!(sent, Value::Int(1));
    let Value::Array(message) = subscriber.receive().expect("a message") else { panic!("messages are arrays") };
    assert_eq!(text(&message[2]), "still there");
    let line = text(&monitor.receive().expect("a line"));
    assert!(line.ends_with(r#""PUBLISH" "c" "still there""#), "{line}");
}

#[test]
fn who_waits_for_a_long_script_is_not_idle() {
    const IDLE_MAX: Duration = Duration::from_secs(2);
    const SCRIPT: &[u8] = b"local function now() local t = redis.call('TIME') return t[1] + t[2] / 1e6 end
        local start = now() while now() < start + 2.5 do end return 'done'";
    let server = Server::tenon(&[("timeout", "2")]).expect("tenon starts");
    let mut client = connect(&server);
    let sent = Instant::now();
    client.send(&[b"EVAL", SCRIPT, b"0"]).expect("sent");
    assert_eq!(text(&client.receive().expect("an answer")), "done");
    // By then all clients are looked at once more.
    std::thread::sleep(Duration::from_millis(1200));
    let pong = client.call(&[b"PING"]);
    assert!(sent.elapsed() > IDLE_MAX, "the script took long enough to be taken for silence");
    // It was answered 2.5 s after it was sent at the earliest.
    if sent.elapsed() < IDLE_MAX + Duration::from_millis(2_500) {
        assert_eq!(pong.expect("it is not idle yet"), Value::Simple(b"PONG".to_vec()));
    }
}

#[test]
fn a_subscriber_that_does_not_read_is_cut_at_its_own_limit() {
    let limit = ("client-output-buffer-limit", "pubsub 1mb 0 0");
    let server = Server::tenon(&[limit]).expect("tenon starts");
    let mut subscriber = connect(&server);
    subscriber.call(&[b"SUBSCRIBE", b"c"]).expect("an answer");
    let mut publisher = connect(&server);
    let message = vec![b'm'; 1 << 16];
    // The kernel's buffers take some of it. It is counted until its worker has taken it away.
    wait_until("it to be cut", || publisher.call(&[b"PUBLISH", b"c", &message]).expect("a reply") == Value::Int(0));
    while subscriber.receive().is_ok() {}
    // The publisher is none the worse for it.
    assert_eq!(publisher.call(&[b"PING"]).expect("a reply"), Value::Simple(b"PONG".to_vec()));
}
