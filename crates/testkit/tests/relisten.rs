//! CONFIG SET port, bind and memcached-port in a running server, beside redis-server where it is installed. Knows no
//! other command.

use std::net::{TcpListener, UdpSocket};
use std::time::Duration;
use tenon_client::{Address, Memcache, Resp, Value};
use tenon_testkit::oracle::oracle;
use tenon_testkit::patience::{self, PATIENCE, wait_until};
use tenon_testkit::ports::free_port;
use tenon_testkit::server::{Server, tenon_binary};
use tenon_testkit::target::Dialect;

fn set(client: &mut Resp, pairs: &[(&str, &str)]) -> Result<(), String> {
    let words = pairs.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
    let command: Vec<&[u8]> = [b"CONFIG".as_slice(), b"SET"].into_iter().chain(words).collect();
    match client.call(&command).expect("an answer") {
        Value::Simple(ok) if ok == b"OK" => Ok(()),
        Value::Error(text) => Err(String::from_utf8(text).expect("UTF-8")),
        other => panic!("{other:?}"),
    }
}

fn get(client: &mut Resp, name: &str) -> String {
    match client.call(&[b"CONFIG", b"GET", name.as_bytes()]).expect("an answer") {
        Value::Array(row) => match &row[1] {
            Value::Bulk(value) => String::from_utf8_lossy(value).into_owned(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn connect(address: &Address) -> std::io::Result<Resp> {
    Resp::connect_to(address, Some(PATIENCE))
}

/// Moves a server to other ports and addresses, and tries to where it cannot go.
fn moves(server: &Server) {
    let address = server.address(Dialect::Redis).expect("a port");
    let mut client = connect(address).expect("connected");
    let refused_there = |port: u16| connect(&Address::loopback(port)).is_err();
    let first = free_port();
    set(&mut client, &[("port", &first.to_string())]).expect("moved");
    assert!(connect(address).is_err(), "the old port is left");
    // Whoever is connected stays, and others come in through the new port.
    assert_eq!(get(&mut client, "port"), first.to_string());
    let mut other = connect(&Address::loopback(first)).expect("connected");
    assert_eq!(get(&mut other, "port"), first.to_string());

    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken_port = taken.local_addr().expect("an address").port().to_string();
    let limit = get(&mut client, "client-query-buffer-limit");
    let refusal = set(&mut client, &[("client-query-buffer-limit", "10mb"), ("port", &taken_port)]);
    let cannot = "ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen on this port. Check \
                  server logs.";
    assert_eq!(refusal, Err(cannot.to_owned()));
    assert_eq!(get(&mut client, "port"), first.to_string());
    assert_eq!(get(&mut client, "client-query-buffer-limit"), limit, "all or nothing");
    // 192.0.2.0/24 is kept for documentation: no machine has such an address.
    for bind in ["127.0.0.1 192.0.2.1", "127.0.0.1 127.0.0.1", "127.0.0.1 -127.0.0.1"] {
        let refusal = set(&mut client, &[("bind", bind)]);
        let cannot =
            "ERR CONFIG SET failed (possibly related to argument 'bind') - Failed to bind to specified addresses.";
        assert_eq!(refusal, Err(cannot.to_owned()), "{bind}");
        assert_eq!(get(&mut client, "bind"), "127.0.0.1");
    }
    assert!(!refused_there(first), "it listens where it did");

    let second = free_port();
    set(&mut client, &[("bind", "127.0.0.1 -192.0.2.1"), ("port", &second.to_string())]).expect("moved");
    assert!(refused_there(first) && !refused_there(second));
    set(&mut client, &[("port", "0")]).expect("closed");
    assert!(refused_there(second), "port 0 is none");
    set(&mut client, &[("port", &first.to_string())]).expect("opened");
    assert!(!refused_there(first));
}

#[test]
fn a_running_server_listens_elsewhere() {
    let server = Server::tenon(&[]).expect("tenon starts");
    moves(&server);
    if let Some(redis) = oracle(Dialect::Redis, &[]) {
        moves(&redis);
    }
}

#[test]
fn the_port_of_memcached_moves_too() {
    let server = Server::tenon(&[]).expect("tenon starts");
    let old = server.address(Dialect::Memcache).expect("a port");
    let mut client = connect(server.address(Dialect::Redis).expect("a port")).expect("connected");
    let port = free_port();
    set(&mut client, &[("memcached-port", &port.to_string())]).expect("moved");
    assert!(Memcache::connect_to(old, Some(PATIENCE)).is_err());
    let mut there = Memcache::connect_to(&Address::loopback(port), Some(PATIENCE)).expect("connected");
    assert!(there.version().is_ok());
}

#[test]
fn a_port_that_the_system_has_chosen_stays_when_a_change_fails() {
    let server = Server::tenon(&[]).expect("tenon starts");
    let mut client = connect(server.address(Dialect::Redis).expect("a port")).expect("connected");
    set(&mut client, &[("memcached-port", "-1")]).expect("moved");
    let chosen = |client: &mut Resp| match client.call(&[b"INFO", b"server"]).expect("an answer") {
        Value::Bulk(info) => {
            let info = String::from_utf8_lossy(&info).into_owned();
            let line = info.lines().find(|line| line.contains("name=memcached,bind=")).expect("it listens").to_owned();
            line.rsplit_once("port=").expect("at a port").1.to_owned()
        }
        other => panic!("{other:?}"),
    };
    let port = chosen(&mut client);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("an address").port().to_string();
    let limit = "2147483647";
    for pairs in [
        &[("memcached-port", &*taken)][..],
        &[("bind", "192.0.2.1")],
        // One fails behind one that has held.
        &[("memcached-port", "0"), ("maxclients", limit)],
        &[("bind", "127.0.0.2"), ("maxclients", limit)],
    ] {
        set(&mut client, pairs).expect_err("it cannot hold");
        assert_eq!(chosen(&mut client), port, "{pairs:?}");
        let address = Address::loopback(port.parse().expect("a number"));
        let mut there = Memcache::connect_to(&address, Some(PATIENCE)).expect("connected");
        assert!(there.version().is_ok(), "{pairs:?}");
    }
}

#[test]
fn datagrams_are_received_where_connections_are() {
    let port = free_port();
    let server = Server::tenon(&[("memcached-udp-port", &port.to_string())]).expect("tenon starts");
    let mut client = connect(server.address(Dialect::Redis).expect("a port")).expect("connected");
    let ask_within = |host: &str, time: Duration| {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.set_read_timeout(Some(time))?;
        socket.connect((host, port))?;
        socket.send(b"\0\x07\0\0\0\x01\0\0mn\r\n")?;
        let mut got = [0; 100];
        socket.recv(&mut got).map(|len| got[8..len].to_vec())
    };
    let ask = |host| ask_within(host, PATIENCE);
    assert_eq!(ask("127.0.0.1").expect("an answer"), b"MN\r\n");
    set(&mut client, &[("bind", "127.0.0.2")]).expect("moved");
    assert_eq!(ask("127.0.0.2").expect("an answer"), b"MN\r\n");
    // Until workers have left the old place they may answer there, and what lies there then is lost.
    let is_refused = |answer: std::io::Result<Vec<u8>>| {
        answer.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
    };
    wait_until("the old place to be left", || is_refused(ask_within("127.0.0.1", Duration::from_millis(20))));
    // 192.0.2.0/24 is kept for documentation: no machine has such an address.
    set(&mut client, &[("bind", "127.0.0.1 192.0.2.1")]).expect_err("no such address");
    assert_eq!(ask("127.0.0.2").expect("an answer"), b"MN\r\n");
    wait_until("the old place to be left", || is_refused(ask_within("127.0.0.1", Duration::from_millis(20))));
}

#[test]
fn a_server_with_nowhere_to_listen_says_why_it_ends() {
    for (words, said) in [
        (
            &["--port", "17999", "--memcached-port", "0", "--bind", ""][..],
            "bind names no address and no UNIX socket is set",
        ),
        (&["--port", "0", "--memcached-port", "0"], "both ports are 0 and no UNIX socket is set"),
    ] {
        let output = patience::run(std::process::Command::new(tenon_binary().expect("it is built")).args(words));
        let output = output.expect("it runs");
        assert_eq!(String::from_utf8_lossy(&output.stderr), format!("tenon: nothing to listen on: {said}\n"));
        assert_eq!(output.status.code(), Some(1));
    }
}
