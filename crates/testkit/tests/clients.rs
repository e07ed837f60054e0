//! The client crate against the original servers, over TCP and a UNIX socket. Knows nothing of transcripts.

use std::io::ErrorKind;
use std::time::Duration;
use tenon_client::memcache::{Direction, StoreVerb, Stored};
use tenon_client::resp::Version;
use tenon_client::{Memcache, Resp, Value};
use tenon_testkit::oracle::oracle;
use tenon_testkit::patience::PATIENCE;
use tenon_testkit::server::{Server, StartError};
use tenon_testkit::target::Dialect;

const TIMEOUT: Option<Duration> = Some(PATIENCE);

fn bulk(text: &[u8]) -> Value {
    Value::Bulk(text.to_vec())
}

#[test]
fn resp_over_tcp_and_unix() {
    let Some(server) = oracle(Dialect::Redis, &[("maxclients", "50")]) else { return };
    for address in [server.address(Dialect::Redis).expect("a port"), server.unix().expect("a socket")] {
        let mut resp = Resp::connect_to(address, TIMEOUT).expect("connected");
        assert_eq!(resp.call(&[b"CONFIG", b"GET", b"maxclients"]).expect("a reply"), {
            Value::Array(vec![bulk(b"maxclients"), bulk(b"50")])
        });
        let big = vec![b'x'; 3_000_000];
        let replies = resp.pipeline(&[&[b"SET", b"k", &big], &[b"GET", b"k"], &[b"NOSUCH"], &[b"GET", b"none"]]);
        let replies = replies.expect("replies");
        assert_eq!(replies[..2], [Value::Simple(b"OK".to_vec()), Value::Bulk(big)]);
        assert!(matches!(&replies[2], Value::Error(text) if text.starts_with(b"ERR unknown command")));
        assert_eq!(replies[3], Value::NullBulk);

        assert!(matches!(resp.hello(Version::Resp3).expect("a reply"), Value::Map(_)));
        assert_eq!(resp.call(&[b"GET", b"none"]).expect("a reply"), Value::Null);
        // A message that is pushed between replies is neither lost nor taken for one.
        resp.send(&[b"SUBSCRIBE", b"channel"]).expect("sent");
        assert!(matches!(resp.receive().expect("a push"), Value::Push(_)));
        let mut other = Resp::connect_to(address, TIMEOUT).expect("connected");
        assert_eq!(other.call(&[b"PUBLISH", b"channel", b"hi"]).expect("a reply"), Value::Int(1));
        assert_eq!(resp.call(&[b"ECHO", b"x"]).expect("a reply"), bulk(b"x"));
        assert_eq!(resp.take_push(), Some(Value::Push(vec![bulk(b"message"), bulk(b"channel"), bulk(b"hi")])));
        assert_eq!(resp.take_push(), None);

        resp.set_timeout(Some(Duration::from_millis(20))).expect("set");
        assert_eq!(resp.receive().expect_err("nothing comes").kind(), ErrorKind::TimedOut);
        other.send_raw(b"*1\r\n$-5\r\n").expect("sent");
        assert_eq!(
            other.receive().expect("an error"),
            Value::Error(b"ERR Protocol error: invalid bulk length".to_vec())
        );
        assert_eq!(other.receive().expect_err("closed").kind(), ErrorKind::UnexpectedEof);
    }
}

#[test]
fn memcached_text() {
    let Some(server) = oracle(Dialect::Memcache, &[("memory-limit", "16")]) else { return };
    let mut client =
        Memcache::connect_to(server.address(Dialect::Memcache).expect("a port"), TIMEOUT).expect("connected");
    assert_eq!(client.get(b"k").expect("a reply"), None);
    assert_eq!(client.set(b"k", b"a\r\nb", 7, 0).expect("a reply"), Stored::Stored);
    assert_eq!(client.store(StoreVerb::Add, b"k", b"", 0, 0).expect("a reply"), Stored::NotStored);
    assert_eq!(client.store(StoreVerb::Append, b"k", b"\r\nEND\r\n", 0, 0).expect("a reply"), Stored::Stored);
    let item = client.gets(b"k").expect("a reply").expect("an item");
    assert_eq!((item.value.as_slice(), item.flags), (&b"a\r\nb\r\nEND\r\n"[..], 7));
    let cas = item.cas.expect("a token");
    assert_eq!(client.cas(b"k", b"5", 0, 0, cas).expect("a reply"), Stored::Stored);
    assert_eq!(client.cas(b"k", b"6", 0, 0, cas).expect("a reply"), Stored::Exists);
    assert_eq!(client.cas(b"none", b"6", 0, 0, cas).expect("a reply"), Stored::NotFound);
    assert_eq!(client.count(Direction::Up, b"k", 6).expect("a reply"), Some(11));
    assert_eq!(client.count(Direction::Down, b"k", 2).expect("a reply"), Some(9));
    assert_eq!(client.count(Direction::Down, b"none", 2).expect("a reply"), None);

    client.set_many_noreply(&[(b"a", b"1"), (b"b", b"2")], 3, 0).expect("sent");
    let items = client.multiget(&[b"a", b"none", b"b"]).expect("a reply");
    let found: Vec<(&[u8], &[u8])> = items.iter().map(|item| (item.key.as_slice(), item.value.as_slice())).collect();
    assert_eq!(found, [(&b"a"[..], &b"1"[..]), (b"b", b"2")]);
    assert!(client.touch(b"a", 100).expect("a reply"));
    assert_eq!(client.gat(b"a", -1).expect("a reply").map(|item| item.value), Some(b"1".to_vec()));
    assert!(!client.touch(b"a", 100).expect("a reply"));
    assert!(client.delete(b"b").expect("a reply"));
    assert!(!client.delete(b"b").expect("a reply"));

    assert!(client.version().expect("a reply").contains('.'));
    let stats = client.stats(None).expect("a reply");
    assert!(stats.contains(&("pid".to_owned(), server.pid().to_string())));
    assert!(stats.contains(&("limit_maxbytes".to_owned(), (16 << 20).to_string())), "the setting is in force");
    let refusal = client.get(&[b'k'; 251]).expect_err("too long");
    assert_eq!(refusal.to_string(), "CLIENT_ERROR bad command line format");
    client.flush_all().expect("a reply");
    assert_eq!(client.get(b"k").expect("a reply"), None);
    client.send_line(b"quit").expect("sent");
    assert_eq!(client.receive_line().expect_err("closed").kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn a_server_ends_with_its_handle_and_a_wrong_start_says_why() {
    let Some(server) = oracle(Dialect::Redis, &[]) else { return };
    let (address, folder) = (server.address(Dialect::Redis).expect("a port").clone(), server.folder().to_owned());
    assert!(folder.is_dir());
    drop(server);
    assert!(!folder.exists());
    assert_eq!(Resp::connect_to(&address, TIMEOUT).expect_err("gone").kind(), ErrorKind::ConnectionRefused);

    match Server::redis(&[("no-such-setting", "1")]) {
        Err(StartError::Failed(what)) => assert!(what.contains("no-such-setting"), "{what}"),
        other => panic!("{other:?}"),
    }
}
