//! Datagrams: each is handed over whole and answered to whoever sent it, by any worker.

use crate::echo::Message;
use crate::harness::{PATIENCE, Server, eventually, tcp};
use std::net::UdpSocket;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tenon_server::net::{Bind, FrontEnd, Options, ServeError};
use tenon_testkit::ports::free_port;

/// A server with UDP on the returned port.
fn start() -> (Server, u16) {
    start_with(2)
}

fn start_with(workers: usize) -> (Server, u16) {
    let port = free_port();
    let listens = vec![tcp(FrontEnd::Memcached, "127.0.0.1")];
    let datagrams = Some((port, vec![Bind::parse("127.0.0.1")]));
    (Server::start_as(&Options { workers, listens, datagrams, backlog: 5, io: crate::IO }), port)
}

fn connected(port: u16) -> UdpSocket {
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.connect(("127.0.0.1", port)).unwrap();
    client
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
fn an_answer_waits_for_the_log_and_others_do_not() {
    for lends in [false, true] {
        let (server, port) = start();
        server.echo.lends.store(lends, Ordering::SeqCst);
        let [writer, reader] = [(); 2].map(|()| connected(port));
        let answers = |client: &UdpSocket, question: &[u8]| {
            assert_eq!(received(client), question);
            assert_eq!(received(client), b"and another");
        };
        let is_silent = |client: &UdpSocket| {
            client.set_nonblocking(true).unwrap();
            let got = client.recv(&mut [0; 100]);
            client.set_nonblocking(false).unwrap();
            got.is_err()
        };
        let get_durable = |position| {
            server.echo.durable.store(position, Ordering::SeqCst);
            (0..2).for_each(|worker| server.running().mail().post_worker(worker, Message::Durable));
        };
        for question in [b"log 20", b"log 10"] {
            server.echo.is_holding.store(false, Ordering::SeqCst);
            writer.send(question).unwrap();
            eventually("it to be held", || server.echo.is_holding.load(Ordering::SeqCst).then_some(()));
        }
        for _ in 0..10 {
            reader.send(b"read").unwrap();
            answers(&reader, b"read");
        }
        get_durable(9);
        reader.send(b"log 9").unwrap();
        answers(&reader, b"log 9");
        assert!(is_silent(&writer), "nothing is on disk");
        get_durable(10);
        answers(&writer, b"log 10");
        assert!(is_silent(&writer), "the other one is not on disk");
        get_durable(20);
        answers(&writer, b"log 20");
    }
}

#[test]
fn others_are_answered_in_the_middle_of_a_call() {
    let (server, port) = start_with(1);
    // Or nobody would answer the questions behind a call that is held, as the threads of the last ones are not back.
    server.echo.awaits_threads.store(true, Ordering::SeqCst);
    server.echo.lends.store(true, Ordering::SeqCst);
    let [slow, other] = [(); 2].map(|()| connected(port));
    for round in 0..20 {
        let what = format!("hold {round}");
        slow.send(what.as_bytes()).unwrap();
        // Some of them are there before anybody has told of the first one.
        let questions: Vec<String> = (0..5).map(|number| format!("{round} {number}")).collect();
        questions.iter().for_each(|question| assert!(other.send(question.as_bytes()).is_ok()));
        let mut answers: Vec<Vec<u8>> = questions.iter().flat_map(|_| [received(&other), received(&other)]).collect();
        answers.retain(|answer| answer != b"and another");
        answers.sort_unstable();
        assert!(answers.iter().eq(questions.iter().map(String::as_bytes)), "{answers:?}");
        server.echo.release(&round.to_string());
        assert_eq!(received(&slow), what.as_bytes());
        assert_eq!(received(&slow), b"and another");
    }
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
    let twice = Some((port, vec![Bind::parse("127.0.0.1"); 2]));
    assert!(matches!(listening.change(listens(), twice), Err(ServeError::Datagrams(..))));
    // Under another word it is the same address; what is not there is in nobody's way.
    let again = Some((port, vec![Bind::parse("127.0.0.1"), Bind::parse("-127.0.0.1")]));
    listening.change(listens(), again).unwrap();
    answers("127.0.0.1");
    let localhost = Some((port, vec![Bind::parse("127.0.0.1"), Bind::parse("localhost")]));
    assert!(matches!(listening.change(listens(), localhost), Err(ServeError::Datagrams(..))));
    let nowhere_twice = ["-192.0.2.1", "-192.0.2.1", "127.0.0.1"].map(Bind::parse);
    listening.change(listens(), Some((port, nowhere_twice.to_vec()))).unwrap();
    answers("127.0.0.1");
    // 192.0.2.0/24 is kept for documentation: no machine has such an address.
    let nowhere = vec![tcp(FrontEnd::Memcached, "192.0.2.1")];
    assert!(matches!(listening.change(nowhere, at("127.0.0.2")), Err(ServeError::Listen(_))));
    is_left("127.0.0.2");
    answers("127.0.0.1");
    // Workers may have the sockets of before for a moment longer, which is in nobody's way back.
    for _ in 0..10 {
        let before = listening.change(listens(), at("127.0.0.2")).unwrap();
        listening.put_back(before);
        answers("127.0.0.1");
        is_left("127.0.0.2");
    }
    listening.change(listens(), None).unwrap();
    is_left("127.0.0.1");
}
