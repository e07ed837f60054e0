//! Datagrams: each is handed over whole and answered to whoever sent it, by any worker.

use crate::harness::{PATIENCE, Server, eventually, tcp};
use std::net::UdpSocket;
use std::time::Duration;
use tenon_server::net::{Bind, FrontEnd, Options, ServeError};

/// A server with UDP on the returned port.
fn start() -> (Server, u16) {
    // The port is free a moment before.
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listens = vec![tcp(FrontEnd::Memcached, "127.0.0.1")];
    let datagrams = Some((port, vec![Bind::parse("127.0.0.1")]));
    (Server::start_as(&Options { workers: 2, listens, datagrams, backlog: 5, io: crate::IO }), port)
}

fn received(client: &UdpSocket) -> Vec<u8> {
    let mut got = vec![0; 65_536];
    loop {
        match client.recv(&mut got) {
            Ok(len) => {
                got.truncate(len);
                return got;
            }
            // Seen where servers with rings come and go in the process.
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn each_sender_gets_its_own_back() {
    let (server, port) = start();
    let clients: Vec<UdpSocket> = (0..4).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    for round in 0..200_usize {
        for (number, client) in clients.iter().enumerate() {
            client.set_read_timeout(Some(PATIENCE)).unwrap();
            let sent = vec![number as u8; round * 40];
            client.send_to(&sent, ("127.0.0.1", port)).unwrap();
            assert!(received(client) == sent);
            assert_eq!(received(client), b"and another");
        }
    }
    drop(server);
    assert!(UdpSocket::bind(("127.0.0.1", port)).is_ok(), "the port is free again");
}

#[test]
fn a_port_that_is_taken_stops_the_start() {
    let (_server, port) = start();
    let echo = std::sync::Arc::<crate::echo::Echo>::default();
    let datagrams = Some((port, vec![Bind::parse("127.0.0.1")]));
    let options = Options { workers: 1, listens: vec![], datagrams, backlog: 5, io: crate::IO };
    let shutdown = tenon_server::shutdown::Shutdown::new();
    let error = tenon_server::net::serve(&options, echo, &shutdown).unwrap_err().to_string();
    assert!(error.starts_with("cannot listen to datagrams on 127.0.0.1:"), "{error}");
}

#[test]
fn they_are_received_elsewhere_when_that_is_asked_for() {
    let (server, port) = start();
    let at = |host: &str| Some((port, vec![Bind::parse(host)]));
    let listens = || vec![tcp(FrontEnd::Memcached, "127.0.0.1")];
    let listening = server.running().listening();
    let client_of = |host: &str| {
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.connect((host, port)).unwrap();
        client
    };
    let answers = |host: &str| {
        let client = client_of(host);
        client.send(b"ping").unwrap();
        assert_eq!((received(&client), received(&client)), (b"ping".to_vec(), b"and another".to_vec()));
    };
    let is_left = |host: &str| {
        eventually("the socket to be left", || {
            let client = client_of(host);
            // Until then it is answered, or lies in the socket when that is closed.
            client.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            let refused = client.send(b"ping").and_then(|_| client.recv(&mut [0; 100])).err()?;
            (refused.kind() == std::io::ErrorKind::ConnectionRefused).then_some(())
        });
    };
    for _ in 0..10 {
        listening.change(listens(), at("127.0.0.2")).unwrap();
        answers("127.0.0.2");
        is_left("127.0.0.1");
        // The one address is not in the way of all, nor are all in that of one.
        listening.change(listens(), at("*")).unwrap();
        answers("127.0.0.1");
        listening.change(listens(), at("127.0.0.1")).unwrap();
        answers("127.0.0.1");
        is_left("127.0.0.2");
    }
    let _taken = UdpSocket::bind(("127.0.0.3", port)).unwrap();
    let both = Some((port, vec![Bind::parse("127.0.0.2"), Bind::parse("127.0.0.3")]));
    assert!(matches!(listening.change(listens(), both), Err(ServeError::Datagrams(..))));
    // 192.0.2.0/24 is kept for documentation: no machine has such an address.
    let nowhere = vec![tcp(FrontEnd::Memcached, "192.0.2.1")];
    assert!(matches!(listening.change(nowhere, at("127.0.0.2")), Err(ServeError::Listen(_))));
    is_left("127.0.0.2");
    answers("127.0.0.1");
    listening.change(listens(), None).unwrap();
    is_left("127.0.0.1");
}
