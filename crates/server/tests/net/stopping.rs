//! Shutdown: what was asked is answered, what nobody takes is given up.

use crate::echo::Message;
use crate::harness::{PATIENCE, Server, eventually, tcp};
use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tenon_server::net::{CloseReason, FrontEnd};

#[test]
fn buffered_requests_are_answered_and_then_nobody_listens() {
    let server = Server::start();
    let address = server.address(FrontEnd::Resp);
    let clients: Vec<_> = (0..20).map(|_| server.connect_known()).collect();
    let slow = server.connect_known();
    slow.send("big 20000000\nlast\n");
    let parked = server.connect_known();
    parked.send("park\n");
    for client in &clients {
        client.send("question\n".repeat(100));
    }
    let stopping = std::thread::spawn(move || server.stop(PATIENCE));
    for client in clients {
        assert_eq!(client.rest().len(), 900);
    }
    assert_eq!(parked.rest(), b"");
    assert!(slow.rest().ends_with(b">\nlast\n"));
    let echo = stopping.join().unwrap();
    assert_eq!(*echo.closed.lock().unwrap(), [CloseReason::Shutdown; 22]);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn whatever_had_come_before_the_end_is_answered_however_many_have_sent_it() {
    const CLIENTS: usize = 300;
    let server = Server::start_with(1, vec![tcp(FrontEnd::Resp, "127.0.0.1")]);
    let clients: Vec<_> = (0..CLIENTS).map(|_| server.connect_known()).collect();
    let holding = server.connect_known();
    holding.send("hold it\n");
    let echo = Arc::clone(&server.echo);
    eventually("the worker to be held", || (echo.holding.load(Ordering::Relaxed) == 1).then_some(()));
    for client in &clients {
        client.send("question\n".repeat(3));
    }
    server.shutdown.request(PATIENCE);
    echo.release("it");
    for client in clients {
        assert_eq!(client.rest(), "question\n".repeat(3).as_bytes());
    }
    assert_eq!(holding.rest(), b"held it\n");
}

#[test]
fn whoever_was_served_while_parked_has_the_answer_before_the_end() {
    let server = Server::start();
    let parked = server.connect_known();
    parked.send("park\n");
    let echo = Arc::clone(&server.echo);
    eventually("it to be parked", || (echo.parked.load(Ordering::Relaxed) == 1).then_some(()));
    echo.answers_parked.store(true, Ordering::Relaxed);
    server.shutdown.request(PATIENCE);
    eventually("the end to come to it", || (echo.asked_of_parked.load(Ordering::Relaxed) > 0).then_some(()));
    server.post(&parked, Message::Unpark);
    assert_eq!(parked.rest(), b"unparked\n");
    let echo = server.stop(PATIENCE);
    assert_eq!(*echo.closed.lock().unwrap(), [CloseReason::Shutdown]);
}

#[test]
fn who_takes_nothing_is_given_up_before_the_grace_is_over() {
    let server = Server::start();
    let stuck = server.connect_known();
    stuck.send("big 100000000\n");
    let echo = server.stop(Duration::from_secs(2));
    assert_eq!(*echo.closed.lock().unwrap(), [CloseReason::FlushTimeout]);
    assert!(stuck.rest().len() < 100_000_000);
}

#[test]
fn the_time_that_a_call_takes_is_not_the_time_of_who_waits_for_its_answer() {
    const GRACE: Duration = Duration::from_secs(8);
    let server = Server::start_with(1, vec![tcp(FrontEnd::Resp, "127.0.0.1")]);
    let client = server.connect_known();
    client.send("hold it\nbig 30000000\n");
    let echo = Arc::clone(&server.echo);
    eventually("the worker to be held", || (echo.holding.load(Ordering::Relaxed) == 1).then_some(()));
    server.shutdown.request(GRACE);
    std::thread::sleep(GRACE / 4 + Duration::from_millis(100));
    echo.release("it");
    // It is not so quick that the kernel has room again when the loop looks first.
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(client.rest().len(), "held it\n<>\n".len() + 30_000_000);
    server.stop(PATIENCE);
}

#[test]
fn who_never_stops_asking_is_not_read_for_all_of_the_grace() {
    const GRACE: Duration = Duration::from_secs(20);
    let server = Server::start();
    let mut client = server.connect_known().stream().try_clone().unwrap();
    let mut reading = client.try_clone().unwrap();
    let asking = std::thread::spawn(move || while client.write_all(&b"question\n".repeat(1_000)).is_ok() {});
    let answered = std::thread::spawn(move || std::io::copy(&mut reading, &mut std::io::sink()));
    let began = Instant::now();
    let echo = server.stop(GRACE);
    assert!(began.elapsed() < GRACE, "there was time left when it was closed");
    assert_eq!(*echo.closed.lock().unwrap(), [CloseReason::Shutdown]);
    asking.join().unwrap();
    drop(answered.join().unwrap());
}

#[test]
fn a_command_may_ask_for_it_from_a_workers_thread() {
    let server = Server::start();
    let client = server.connect_known();
    let shutdown = server.shutdown.clone();
    std::thread::spawn(move || shutdown.request(Duration::from_secs(1))).join().unwrap();
    assert_eq!(client.rest(), b"");
    server.running().mail().post_worker(0, Message::Unpark);
    server.stop(Duration::ZERO);
}
