//! Connections end as they should, and alone.

use crate::echo::{Message, pattern};
use crate::harness::{Server, eventually, raise_open_files, tcp};
use std::net::Shutdown::Write;
use std::sync::atomic::Ordering;
use tenon_server::net::{CloseReason, FrontEnd, Wanted};

#[test]
fn requests_before_the_clients_end_are_answered() {
    let server = Server::start();
    let client = server.connect();
    let questions = "question\n".repeat(50_000);
    client.send(&questions);
    client.stream().shutdown(Write).unwrap();
    assert!(client.rest() == questions.as_bytes());
    assert_eq!(server.first_close(), CloseReason::PeerClosed);
}

#[test]
fn requests_with_big_answers_before_the_clients_end_are_answered() {
    let server = Server::start();
    let client = server.connect();
    client.send("big 1000000\n".repeat(30));
    client.stream().shutdown(Write).unwrap();
    assert_eq!(client.rest().len(), 30 * 1_000_003);
    assert_eq!(server.first_close(), CloseReason::PeerClosed);
}

#[test]
fn the_clients_end_in_the_middle_of_a_long_value_is_one() {
    let server = Server::start();
    let mut client = server.connect();
    client.ask("begun\nfill 1000000\n", "begun\n");
    client.send(pattern(500_000));
    client.stream().shutdown(Write).unwrap();
    assert_eq!(client.rest(), b"");
    assert_eq!(server.first_close(), CloseReason::PeerClosed);
}

#[test]
fn quit_flushes_and_cut_does_not() {
    let server = Server::start();
    let client = server.connect();
    client.send("big 5000000\nquit\nunseen\n");
    let reply = client.rest();
    assert!(reply.ends_with(b">\nbye\n"));
    assert_eq!(reply.len(), 5_000_003 + 4);
    assert_eq!(server.first_close(), CloseReason::Service);
    let client = server.connect();
    client.send("unsent\ncut\n");
    assert_eq!(client.rest(), b"");
}

#[test]
fn others_come_before_the_ends_of_many() {
    raise_open_files();
    let server = Server::start_with(1, vec![tcp(FrontEnd::Resp, "127.0.0.1")]);
    let mut many: Vec<_> = (0..200).map(|_| server.connect_known()).collect();
    for parked in &many[100..] {
        parked.send("park\n");
    }
    eventually("all to be parked", || (server.echo.parked.load(Ordering::Relaxed) == 100).then_some(()));
    let (mut asks, mut holds) = (server.connect_known(), server.connect_known());
    holds.send("hold it\n");
    eventually("the worker to be held", || (server.echo.holding.load(Ordering::SeqCst) == 1).then_some(()));
    many.clear();
    asks.send("closed\n");
    server.echo.release("it");
    let closed: usize = asks.line().trim_end().parse().unwrap();
    // A ring tells of some twenty sockets at a time, and there are no more of them in its turns.
    assert!(closed < 100 || !matches!(crate::IO, Wanted::Epoll), "{closed} were closed before");
    assert_eq!(holds.line(), "held it\n");
    eventually("all to be closed", || (server.echo.closed.lock().unwrap().len() == 200).then_some(()));
}

#[test]
fn a_kill_reaches_a_connection_whatever_it_does() {
    let server = Server::start();
    for state in ["", "park\n", "big 100000000\n", "fill 1000000\n\0\x01\x02"] {
        let client = server.connect_known();
        client.send(state);
        server.post(&client, Message::Kill);
        client.rest();
        eventually("it to be gone", || (server.running().mail().connections() == 0).then_some(()));
    }
    assert_eq!(*server.echo.closed.lock().unwrap(), [CloseReason::Service; 4]);
}

#[test]
fn a_message_to_a_connection_of_the_past_does_not_reach_its_successor() {
    let server = Server::start();
    let first = server.connect_known();
    let old = server.echo.id_of(&first.name()).unwrap();
    drop(first);
    eventually("it to be gone", || (server.running().mail().connections() == 0).then_some(()));
    let mut successors = [server.connect_known(), server.connect_known()];
    let same_place = |name: String| {
        let id = server.echo.id_of(&name).unwrap();
        (id.worker, id.index) == (old.worker, old.index)
    };
    assert!(successors.iter().any(|client| same_place(client.name())));
    server.running().mail().post(old, Message::Kill);
    eventually("the message to be given back", || {
        (server.echo.lost_messages.load(Ordering::Relaxed) == 1).then_some(())
    });
    for client in &mut successors {
        client.ask("alive\n", "alive\n");
    }
}

#[test]
fn a_panic_costs_one_connection_and_no_other() {
    let server = Server::start_with(1, vec![crate::harness::tcp(tenon_server::net::FrontEnd::Resp, "127.0.0.1")]);
    let mut bystander = server.connect_known();
    let panics = server.connect_known();
    panics.send("lost\npanic\n");
    assert_eq!(panics.rest(), b"");
    assert_eq!(server.first_close(), CloseReason::Panicked);
    bystander.ask("fine\n", "fine\n");
    let panics = server.connect_known();
    server.post(&panics, Message::Panic);
    assert_eq!(panics.rest(), b"");
    let panics = server.connect_known();
    panics.send("panic-later\nquit\n");
    assert_eq!(panics.rest(), b"bye\n");
    server.running().mail().post_worker(0, Message::Panic);
    bystander.ask("still fine\n", "still fine\n");
    assert_eq!(server.running().mail().connections(), 1);
}

#[test]
fn what_a_parked_client_has_not_read_leaves_when_it_has_ended_its_side() {
    const LENGTH: usize = 100_000;
    let server = Server::start();
    server.echo.keeps_parked.store(true, Ordering::Relaxed);
    let mut client = server.connect_known();
    let unsent = || server.echo.unsent.lock().unwrap().values().sum::<usize>();
    let produced = || server.echo.produced.load(Ordering::Relaxed) as usize;
    let (greeting, mut answers) = (produced(), 0);
    while unsent() == 0 {
        answers += 1;
        client.send(format!("big {LENGTH}\n"));
        eventually("the answer", || (produced() == greeting + answers * (LENGTH + 3)).then_some(()));
        let sent = || server.echo.sent.load(Ordering::SeqCst);
        eventually("it to be counted", || (sent() + unsent() == produced()).then_some(()));
    }
    client.send("park\n");
    eventually("it to park", || (server.echo.parked.load(Ordering::Relaxed) == 1).then_some(()));
    client.stream().shutdown(Write).unwrap();
    client.exactly(answers * (LENGTH + 3));
    server.post(&client, Message::Unpark);
    assert_eq!(client.rest(), b"unparked\n");
}

#[test]
fn a_parked_client_that_leaves_is_dropped() {
    let server = Server::start();
    // Its end comes with the command, and long after it.
    for (round, waits) in [false, true].into_iter().enumerate() {
        let client = server.connect_known();
        client.send("park\n");
        if waits {
            eventually("it to park", || (server.echo.parked.load(Ordering::Relaxed) == round + 1).then_some(()));
        }
        drop(client);
        eventually("it to be gone", || (server.running().mail().connections() == 0).then_some(()));
    }
    assert_eq!(*server.echo.closed.lock().unwrap(), [CloseReason::PeerClosed; 2]);
}

#[test]
fn a_parked_client_that_asks_on_and_leaves_is_dropped() {
    let server = Server::start();
    for (round, bytes) in [1, 5_000, 40_000].into_iter().enumerate() {
        let client = server.connect_known();
        client.send("park\n");
        eventually("it to park", || (server.echo.parked.load(Ordering::Relaxed) == round + 1).then_some(()));
        // In two steps: what comes first is put aside, what comes then waits in the socket.
        client.send(vec![b'x'; bytes]);
        server.connect_known();
        client.send(vec![b'y'; bytes]);
        drop(client);
        eventually("it to be gone", || (server.running().mail().connections() == 0).then_some(()));
    }
}

#[test]
fn what_a_parked_client_asks_meanwhile_is_answered_in_order() {
    let server = Server::start();
    let client = server.connect_known();
    for round in 1..=5 {
        client.send("park\n");
        eventually("it to park", || (server.echo.parked.load(Ordering::Relaxed) == round).then_some(()));
        // Far more than one receive brings, and than the ring's buffers hold together.
        let lines: String = (0..60_000).map(|line| format!("{line}\n")).collect();
        let (front, back) = lines.split_at(1_000 * round);
        client.send(front);
        server.connect_known();
        let expected = format!("unparked\n{lines}");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                server.post(&client, Message::Unpark);
                client.send(back);
            });
            let mut got = vec![0; expected.len()];
            std::io::Read::read_exact(&mut client.stream(), &mut got).unwrap();
            assert!(got == expected.as_bytes(), "round {round}");
        });
    }
}

#[test]
fn a_thousand_clients_that_leave_at_once_leave_nothing() {
    raise_open_files();
    let server = Server::start();
    for _ in 0..3 {
        let clients: Vec<_> = (0..1_000).map(|_| server.connect()).collect();
        clients.iter().for_each(|client| client.send("hello\n"));
        drop(clients);
        eventually("all to be gone", || (server.running().mail().connections() == 0).then_some(()));
    }
    server.connect_known();
}

#[test]
fn a_held_reply_still_reaches_a_client_that_has_ended_its_side() {
    let server = Server::start();
    server.echo.keeps_parked.store(true, Ordering::Relaxed);
    let client = server.connect_known();
    client.send("park\nafter\n");
    client.stream().shutdown(Write).unwrap();
    eventually("it to park", || (server.echo.parked.load(Ordering::Relaxed) == 1).then_some(()));
    server.post(&client, Message::Unpark);
    assert_eq!(client.rest(), b"unparked\nafter\n");
    assert_eq!(server.echo.closed.lock().unwrap().iter().filter(|why| **why != CloseReason::PeerClosed).count(), 0);
}
