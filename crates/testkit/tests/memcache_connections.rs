//! `stats conns`: what Tenon tells of sockets, in every state that they can be in, beside memcached.
#![allow(missing_docs)]

use std::collections::BTreeMap;
use std::io::Write;
use std::net::UdpSocket;
use std::time::{Duration, Instant};
use tenon_client::{Address, Memcache, Resp, Stream};
use tenon_testkit::oracle::oracle;
use tenon_testkit::patience::PATIENCE;
use tenon_testkit::ports::free_port;
use tenon_testkit::server::{Folder, Server};
use tenon_testkit::target::Dialect;

/// A port that nobody had a moment ago, over TCP and over UDP.
/// Statistics of one socket after another, without what is another number each time.
fn told(client: &mut Memcache, names: &[(String, &str)]) -> Vec<String> {
    let mut sockets: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for (name, value) in client.stats(Some("conns")).expect("statistics") {
        let (fd, name) = name.split_once(':').expect("the number of a socket");
        let value = match name {
            "secs_since_last_cmd" => value.parse::<u32>().map(|_| "seconds".to_owned()).expect("seconds"),
            _ => {
                let known = |value: String, (from, to): &(String, &str)| value.replace(from, to);
                let value = names.iter().fold(value, known);
                match value.strip_prefix("tcp:127.0.0.1:").map(str::parse::<u16>) {
                    Some(Ok(_)) => "a client".to_owned(),
                    _ => value,
                }
            }
        };
        sockets.entry(fd.parse().expect("a number")).or_default().push(format!("{name} {value}"));
    }
    let mut told: Vec<String> = sockets.into_values().map(|lines| lines.join(", ")).collect();
    // Numbers that are free again are given anew.
    told.sort();
    told
}

/// Waits until the server tells this, in whatever order.
fn check(client: &mut Memcache, names: &[(String, &str)], expected: &[&str]) {
    let deadline = Instant::now() + PATIENCE;
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    loop {
        let told = told(client, names);
        if told == expected {
            return;
        }
        assert!(Instant::now() < deadline, "{told:#?} in place of {expected:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn state(state: &str) -> String {
    format!("addr a client, listen_addr tcp:HERE, state {state}, secs_since_last_cmd seconds")
}

fn check_states(server: &Server, udp_port: u16) {
    let address = server.address(Dialect::Memcache).expect("it speaks memcached");
    let Address::Tcp { port, .. } = *address else { panic!("it listens to TCP") };
    let mut asking = Memcache::connect_to(address, Some(PATIENCE)).expect("connected");
    let value = "v".repeat(900_000);
    let stored = asking.exchange(format!("set big 0 0 {}\r\n{value}", value.len()).as_bytes());
    assert_eq!(stored.expect("an answer"), b"STORED");
    // More than the buffers of two sockets take.
    let unread = format!("get{}\r\n", " big".repeat(40));
    let binary = [&b"\x80\x01\0\x01\x08\0\0\0\0\0\0\x20\0\0\0\0\0\0\0\0\0\0\0\0"[..], b"\0\0\0\0\0\0\0\0kabc"];
    let others: [(&[u8], &str); 10] = [
        (b"", "conn_new_cmd"),
        (b"get k\r\n", "conn_read"),
        (b"get ", "conn_read"),
        (b"set k 0 0 10\r\nabc", "conn_nread"),
        (b"set k 0 0 500000\r\nabc", "conn_nread"),
        (b"ms k 10\r\nabc", "conn_nread"),
        (&binary.concat(), "conn_nread"),
        (b"set k 0 0 2000000\r\nabc", "conn_swallow"),
        (unread.as_bytes(), "conn_mwrite"),
        (b"watch fetchers\r\n", "conn_watch"),
    ];
    let names = [(format!("udp:127.0.0.1:{udp_port}"), "udp:THERE"), (format!("tcp:127.0.0.1:{port}"), "tcp:HERE")];
    let mut expected = vec![
        "addr tcp:HERE, state conn_listening, secs_since_last_cmd seconds".to_owned(),
        "UDP UDP, addr udp:THERE, state conn_read, secs_since_last_cmd seconds".to_owned(),
        state("conn_parse_cmd"),
    ];
    let mut open = Vec::new();
    for (bytes, shown) in others {
        let mut stream = Stream::connect(address, Some(PATIENCE)).expect("connected");
        stream.write_all(bytes).expect("sent");
        open.push(stream);
        expected.push(state(shown));
        check(&mut asking, &names, &expected.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn every_state_is_told_as_memcached_tells_it() {
    let udp_port = free_port();
    let settings = [("memcached-udp-port", &*udp_port.to_string()), ("max-value-size", "1mb")];
    check_states(&Server::tenon(&settings).expect("tenon starts"), udp_port);
    let udp_port = free_port();
    if let Some(server) = oracle(Dialect::Memcache, &[("udp-port", &udp_port.to_string()), ("threads", "1")]) {
        check_states(&server, udp_port);
    }
}

#[test]
fn whoever_asks_over_udp_is_told_of_himself() {
    let ask = |server: Server, udp_port: u16| {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.set_read_timeout(Some(PATIENCE)).expect("set");
        socket.send_to(b"\0\x01\0\0\0\x01\0\0stats conns\r\n", ("127.0.0.1", udp_port)).expect("sent");
        let mut got = [0; 1400];
        let len = socket.recv(&mut got).expect("an answer");
        let told = String::from_utf8_lossy(&got[8..len]).into_owned();
        let own = format!(":addr udp:{}\r\n", socket.local_addr().expect("an address"));
        let at = told.find(&own).unwrap_or_else(|| panic!("no {own} in {told}")) + own.len();
        let there = format!(":listen_addr udp:127.0.0.1:{udp_port}\r\n");
        let mut behind = told[at..].split_inclusive("STAT ").skip(1);
        assert!(behind.next().is_some_and(|line| line.contains(&there)), "{told}");
        assert!(behind.next().is_some_and(|line| line.contains(":state conn_parse_cmd\r\n")), "{told}");
        drop(server);
    };
    let udp_port = free_port();
    let settings = [("memcached-udp-port", &*udp_port.to_string()), ("memcached-udp-amplification-max", "0")];
    ask(Server::tenon(&settings).expect("tenon starts"), udp_port);
    let udp_port = free_port();
    if let Some(server) = oracle(Dialect::Memcache, &[("udp-port", &udp_port.to_string()), ("threads", "1")]) {
        ask(server, udp_port);
    }
}

#[test]
fn unix_sockets_and_other_places_to_listen_are_told() {
    let folder = Folder::new().expect("a folder");
    let path = folder.path.join("listed.sock");
    let server = Server::tenon(&[("memcached-unixsocket", &path.display().to_string())]).expect("tenon starts");
    let Address::Tcp { port, .. } = *server.address(Dialect::Memcache).expect("it speaks memcached") else {
        panic!("it listens to TCP");
    };
    let mut asking = Memcache::connect_to(&Address::Unix(path.clone()), Some(PATIENCE)).expect("connected");
    let listening = |port: u16| [(format!("tcp:127.0.0.1:{port}"), "tcp:HERE"), (path.display().to_string(), "PATH")];
    let at_socket = "addr unix:PATH, state conn_listening, secs_since_last_cmd seconds";
    let at_port = "addr tcp:HERE, state conn_listening, secs_since_last_cmd seconds";
    // The client's end has no address, which memcached shows like this.
    let own = "addr ?:<AF 0>, listen_addr unix:PATH, state conn_parse_cmd, secs_since_last_cmd seconds";
    check(&mut asking, &listening(port), &[at_port, at_socket, own]);
    let mut admin =
        Resp::connect_to(server.address(Dialect::Redis).expect("a port"), Some(PATIENCE)).expect("connected");
    let other = free_port();
    admin.call(&[b"CONFIG", b"SET", b"memcached-port", other.to_string().as_bytes()]).expect("a reply");
    let sockets = told(&mut asking, &listening(other));
    assert!(sockets.contains(&at_port.to_owned()), "{sockets:?}");
    assert!(told(&mut asking, &listening(port)).iter().all(|line| !line.contains("HERE")), "{sockets:?}");
}
