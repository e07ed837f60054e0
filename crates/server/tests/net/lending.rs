//! Lending the loop: in the middle of a call another thread serves the worker's other connections.

use crate::echo::Message;
use crate::harness::{Connection, PATIENCE, Server, eventually, tcp};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tenon_server::net::{CloseReason, FrontEnd};

/// One worker, all of whose calls lend the loop.
fn lending() -> Server {
    let server = lending_where_held();
    server.echo.lends.store(true, Ordering::SeqCst);
    server
}

/// One worker that lends its loop to those calls alone that are [`held`]. So it is known which threads are free: one that
/// has lent the loop to a short call takes a moment to come back.
fn lending_where_held() -> Server {
    Server::start_with(1, vec![tcp(FrontEnd::Resp, "127.0.0.1")])
}

/// Threads that run the calls of a worker when all are in the middle of one.
const THREADS: usize = 5;

fn await_holding(server: &Server, count: usize) {
    let is_reached = || (server.echo.holding.load(Ordering::SeqCst) == count).then_some(());
    eventually("calls that wait to be released", is_reached);
}

/// A connection with which a call runs that waits for this, and that has lent the loop if a thread was there.
fn held(server: &Server, what: &str) -> Connection {
    let others_lend = server.echo.lends.swap(false, Ordering::SeqCst);
    let connection = server.connect_known();
    server.echo.lends.store(true, Ordering::SeqCst);
    let before = server.echo.holding.load(Ordering::SeqCst);
    connection.send(format!("hold {what}\n"));
    await_holding(server, before + 1);
    server.echo.lends.store(others_lend, Ordering::SeqCst);
    connection
}

#[test]
fn others_are_served_in_the_middle_of_a_call() {
    let server = lending();
    let mut other = server.connect_known();
    let mut slow = held(&server, "x");
    for _ in 0..100 {
        other.ask("question\n", "question\n");
    }
    let mut late = server.connect_known();
    server.post(&late, Message::Push(b"pushed\n".to_vec()));
    assert_eq!(late.line(), "pushed\n");
    late.send("park\nbehind\n");
    eventually("a parked connection", || (server.echo.parked.load(Ordering::SeqCst) == 1).then_some(()));
    server.post(&late, Message::Unpark);
    assert_eq!([late.line(), late.line()], ["unparked\n", "behind\n"]);
    drop(late);
    server.first_close();
    server.echo.release("x");
    assert_eq!(slow.line(), "held x\n");
    slow.ask("next\n", "next\n");
    other.ask("question\n", "question\n");
}

#[test]
fn what_comes_for_a_connection_waits_for_its_call() {
    let server = lending();
    let mut other = server.connect_known();
    let mut slow = held(&server, "x");
    slow.send("second\n");
    server.post(&slow, Message::Push(b"pushed first\n".to_vec()));
    server.post(&slow, Message::Push(b"pushed second\n".to_vec()));
    // Once these are answered, the loop has seen all of that.
    for _ in 0..10 {
        other.ask("question\n", "question\n");
    }
    slow.send("third\n");
    server.echo.release("x");
    assert_eq!(slow.line(), "held x\n");
    let mut rest: Vec<String> = (0..4).map(|_| slow.line()).collect();
    // Mail and input come by different ways; each keeps its order.
    rest.sort_by_key(|line| line.starts_with("pushed"));
    assert_eq!(rest, ["second\n", "third\n", "pushed first\n", "pushed second\n"]);
}

#[test]
fn calls_on_several_threads_end_in_any_order() {
    let server = lending_where_held();
    let mut other = server.connect_known();
    let mut slow: Vec<_> = (0..THREADS - 2).map(|number| (number, held(&server, &number.to_string()))).collect();
    // Neither the first nor the last waits for another.
    for at in [1, 0, 0] {
        other.ask("question\n", "question\n");
        let (number, mut connection) = slow.remove(at);
        server.echo.release(&number.to_string());
        assert_eq!(connection.line(), format!("held {number}\n"));
        connection.ask("next\n", "next\n");
    }
    other.ask("question\n", "question\n");
    assert_eq!(server.echo.not_lent.load(Ordering::SeqCst), 0);
}

#[test]
fn with_no_thread_left_a_call_is_waited_for() {
    let server = lending_where_held();
    let mut other = server.connect_known();
    let mut slow: Vec<_> = (0..THREADS).map(|number| held(&server, &number.to_string())).collect();
    assert_eq!(server.echo.not_lent.load(Ordering::SeqCst), 1);
    other.send("question\n");
    server.echo.release("2");
    // It is free, but the loop is where the last call runs.
    server.echo.release(&(THREADS - 1).to_string());
    assert_eq!(other.line(), "question\n");
    assert_eq!(slow[2].line(), "held 2\n");
    server.echo.release("all");
    for number in [0, 1, 3, 4] {
        assert_eq!(slow[number].line(), format!("held {number}\n"));
        slow[number].ask("next\n", "next\n");
    }
}

#[test]
fn a_panic_closes_the_connection_whose_call_had_lent_the_loop() {
    let server = lending();
    let mut other = server.connect_known();
    let slow = server.connect_known();
    slow.send("hold-panic x\n");
    await_holding(&server, 1);
    other.ask("question\n", "question\n");
    server.echo.release("x");
    assert_eq!(slow.rest(), b"");
    assert_eq!(server.first_close(), CloseReason::Panicked);
    other.ask("question\n", "question\n");
}

#[test]
fn a_client_may_leave_in_the_middle_of_its_call() {
    let server = lending();
    let mut other = server.connect_known();
    let slow = held(&server, "x");
    drop(slow);
    for _ in 0..10 {
        other.ask("question\n", "question\n");
    }
    assert!(server.echo.closed.lock().unwrap().is_empty(), "its call runs");
    server.echo.release("x");
    assert_ne!(server.first_close(), CloseReason::Panicked);
    other.ask("question\n", "question\n");
}

#[test]
fn the_end_of_the_server_ends_calls_that_have_lent_the_loop() {
    let server = lending();
    let slow: Vec<_> = ["x", "y"].map(|what| (what, held(&server, what))).into_iter().collect();
    let idle = server.connect_known();
    let stopping = std::thread::spawn(move || server.stop(PATIENCE));
    for (what, slow) in slow {
        assert_eq!(slow.rest(), format!("held {what}\n").as_bytes());
    }
    assert_eq!(idle.rest(), b"");
    let echo = stopping.join().unwrap();
    assert_eq!(*echo.closed.lock().unwrap(), [CloseReason::Shutdown; 3]);
}

#[test]
fn the_end_of_the_server_waits_for_a_call_beyond_the_grace() {
    let server = lending();
    let slow = held(&server, "x");
    // Its reply is lost, but nothing is torn away from under it.
    let echo = server.stop(Duration::ZERO);
    assert_eq!(*echo.closed.lock().unwrap(), [CloseReason::Shutdown]);
    drop(slow);
}

#[test]
fn replies_of_a_call_that_had_lent_the_loop_wait_for_the_log() {
    let server = lending();
    let mut other = server.connect_known();
    let mut slow = server.connect_known();
    slow.send("hold x\nlog 5\n");
    await_holding(&server, 1);
    // What this one waits for has nothing to do with it.
    other.ask("log 0\n", "log 0\n");
    server.echo.release("x");
    await_holding(&server, 0);
    slow.stream().set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    slow.stream().peek(&mut [0]).unwrap_err();
    slow.stream().set_read_timeout(Some(PATIENCE)).unwrap();
    server.echo.durable.store(5, Ordering::SeqCst);
    server.running().mail().post_worker(0, Message::Durable);
    assert_eq!([slow.line(), slow.line()], ["held x\n", "log 5\n"]);
    slow.ask("next\n", "next\n");
}

#[test]
fn the_loop_goes_home() {
    let server = lending_where_held();
    let mut other = server.connect_known();
    let mut slow = held(&server, "x");
    other.send("thread\n");
    assert_ne!(other.line(), "tenon-w0\n");
    server.echo.release("x");
    assert_eq!(slow.line(), "held x\n");
    let other = std::cell::RefCell::new(other);
    eventually("the loop to be at home", || {
        let mut other = other.borrow_mut();
        other.send("thread\n");
        (other.line() == "tenon-w0\n").then_some(())
    });
}

/// Every call of every kind moves the loop to another thread.
#[test]
fn nothing_is_lost_where_the_loop_moves_all_the_time() {
    const CLIENTS: usize = 8;
    const ROUNDS: usize = 60;
    let server = lending();
    let clients: Vec<_> = (0..CLIENTS).map(|_| server.connect_known()).collect();
    std::thread::scope(|scope| {
        for (number, mut client) in clients.into_iter().enumerate() {
            let server = &server;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let line = format!("{number}:{round}\n");
                    client.send(line.repeat(3));
                    (0..3).for_each(|_| assert_eq!(client.line(), line));
                    match (number + round) % 6 {
                        0 => {
                            let len = 150_000 + round;
                            client.send(format!("fill {len}\n"));
                            client.send(crate::echo::pattern(len));
                            assert_eq!(client.line(), "filled\n");
                        }
                        1 => {
                            client.send("big 400000\nbig 3\n");
                            assert_eq!(client.exactly(400_003).last(), Some(&b'\n'));
                            assert_eq!(client.exactly(6).last(), Some(&b'\n'));
                        }
                        2 => {
                            server.post(&client, Message::Push(b"pushed\n".to_vec()));
                            assert_eq!(client.line(), "pushed\n");
                        }
                        3 => {
                            client.send("panic\n");
                            assert_eq!(client.rest(), b"");
                            client = server.connect_known();
                        }
                        4 => server.echo.release("all"),
                        _ => {
                            client.send("hold all\n");
                            server.echo.release("all");
                            assert_eq!(client.line(), "held all\n");
                        }
                    }
                }
            });
        }
    });
    // How often depends on how soon threads come back.
    assert!(server.echo.lent.load(Ordering::SeqCst) > 1);
}
