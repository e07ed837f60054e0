//! Clients over a limit: too many, too slow, too silent.

use crate::echo::{Message, SOFT_FOR, pattern};
use crate::harness::{Connection, Server, eventually};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tenon_server::net::{CloseReason, FrontEnd};

#[test]
fn clients_over_the_maximum_are_told_in_their_protocol() {
    let server = Server::start();
    server.echo.max_clients.store(2, Ordering::Relaxed);
    let first = server.connect_known();
    let mut second = server.connect_known();
    let over = |front_end| Connection::to(server.address(front_end)).rest();
    assert_eq!(over(FrontEnd::Resp), b"-ERR max number of clients reached\r\n");
    assert_eq!(over(FrontEnd::Memcached), b"ERROR Too many open connections\r\n");
    second.ask("served\n", "served\n");
    drop(first);
    eventually("a place", || (server.running().mail().connections() == 1).then_some(()));
    server.connect().ask("now\n", "now\n");
}

#[test]
fn whether_the_limit_was_taken_back_is_noted_before_it_is_looked_at() {
    let server = Server::start();
    for looks in 0..2 {
        let _client = server.connect_known();
        let noted = server.echo.peers.lock().unwrap().last().map(|peer| peer.taken_back);
        assert_eq!(noted, Some(looks));
    }
}

#[test]
fn a_client_that_never_reads_is_cut_at_the_hard_limit() {
    let server = Server::start();
    let limit = 4 * 1024 * 1024;
    server.echo.hard_bytes.store(limit, Ordering::Relaxed);
    let client = server.connect_known();
    let id = server.echo.id_of(&client.name()).unwrap();
    let reason = eventually("the cut", || {
        server.running().mail().post(id, Message::Push(vec![b'x'; 64 * 1024]));
        server.echo.closed.lock().unwrap().first().copied()
    });
    assert_eq!(reason, CloseReason::OutputLimit);
    // What the kernel had taken still arrives, and then the end.
    assert!(client.rest().len() < 64 * 1024 * 1024);
}

#[test]
fn a_client_over_the_soft_limit_is_cut_only_after_its_time() {
    let server = Server::start();
    server.echo.soft_bytes.store(1, Ordering::Relaxed);
    let mut reads = server.connect_known();
    // Twice over the limit, but not all the time between.
    for pause in [SOFT_FOR, Duration::ZERO] {
        reads.send("big 10000000\n");
        reads.exactly(10_000_003);
        reads.ask("fine\n", "fine\n");
        std::thread::sleep(pause);
    }
    assert!(server.echo.closed.lock().unwrap().is_empty());
    let reads_not = server.connect_known();
    reads_not.send("big 100000000\n");
    assert_eq!(server.first_close(), CloseReason::OutputLimit);
    reads.ask("still fine\n", "still fine\n");
}

#[test]
fn silent_clients_are_closed_and_the_timeout_may_change_meanwhile() {
    let server = Server::start();
    let silent = server.connect_known();
    let parked = server.connect_known();
    parked.send("park\n");
    eventually("ticks", || (server.echo.ticks.load(Ordering::Relaxed) > 10).then_some(()));
    assert!(server.echo.closed.lock().unwrap().is_empty());
    server.echo.idle_ms.store(200, Ordering::Relaxed);
    assert_eq!(silent.rest(), b"");
    assert_eq!(server.first_close(), CloseReason::IdleTimeout);
    server.echo.idle_ms.store(0, Ordering::Relaxed);
    let mut parked = parked;
    server.post(&parked, Message::Unpark);
    assert_eq!(parked.line(), "unparked\n");
    assert_eq!(server.echo.closed.lock().unwrap().len(), 1);
}

#[test]
fn a_client_slow_in_the_middle_of_a_long_value_is_not_taken_for_idle() {
    let server = Server::start();
    let mut client = server.connect();
    let value = pattern(5_000_000);
    client.ask(format!("ready\nfill {}\n", value.len()).as_str(), "ready\n");
    // First it is quick, so that it is worth waiting for more of it.
    let (quick, slow) = value.split_at(2_000_000);
    client.send(quick);
    let all_counts = |what, sent| {
        eventually(what, || (server.echo.filled.load(Ordering::Relaxed) == sent).then_some(()));
    };
    all_counts("what came at once", quick.len());
    // Then it is slow: all the same what comes counts before there is much of it.
    client.send(&slow[..1]);
    all_counts("a byte", quick.len() + 1);
    client.send(&slow[1..1_000]);
    all_counts("a few bytes", quick.len() + 1_000);
    client.send(&slow[1_000..]);
    assert_eq!(client.line(), "filled\n");
}
