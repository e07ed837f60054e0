//! Replies wait for the log to be on disk, those of other clients do not, and the order stays.

use crate::echo::Message;
use crate::harness::{Server, eventually, tcp};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tenon_server::net::{CloseReason, FrontEnd};

fn start() -> Server {
    Server::start_with(1, vec![tcp(FrontEnd::Resp, "127.0.0.1")])
}

impl Server {
    fn get_durable(&self, position: u64) {
        self.echo.durable.store(position, Ordering::SeqCst);
        self.running().mail().post_worker(0, Message::Durable);
    }

    fn unsent(&self) -> usize {
        self.echo.unsent.lock().unwrap().values().sum()
    }
}

#[test]
fn a_write_is_confirmed_when_it_is_on_disk_and_nobody_else_waits() {
    let server = start();
    let (mut writer, mut reader) = (server.connect_known(), server.connect_known());
    writer.send("log 10\nread\n");
    writer.send("log 20\n");
    eventually("the replies to be held", || (server.unsent() == 19).then_some(()));
    reader.ask("read\n", "read\n");
    server.get_durable(9);
    reader.ask("read again\n", "read again\n");
    assert_eq!(server.unsent(), 19, "nothing is on disk");
    server.get_durable(20);
    for line in ["log 10\n", "read\n", "log 20\n"] {
        assert_eq!(writer.line(), line);
    }
    writer.ask("log 15\n", "log 15\n");
    eventually("all to have left", || (server.unsent() == 0).then_some(()));
}

#[test]
fn pieces_leave_as_they_get_durable() {
    let server = start();
    let mut writer = server.connect_known();
    for position in 1..=100 {
        writer.send(format!("log {position}\n"));
        eventually("it to be held", || (server.unsent() > 0).then_some(()));
        server.get_durable(position);
        assert_eq!(writer.line(), format!("log {position}\n"));
    }
}

#[test]
fn who_goes_on_holding_says_so() {
    let server = start();
    let (mut one, mut other) = (server.connect_known(), server.connect_known());
    one.send("log 10\n");
    other.send("log 20\n");
    eventually("both to be held", || (server.unsent() == 14).then_some(()));
    server.echo.is_holding.store(false, Ordering::SeqCst);
    server.get_durable(10);
    assert_eq!(one.line(), "log 10\n");
    eventually("the worker to say so", || server.echo.is_holding.load(Ordering::SeqCst).then_some(()));
    server.get_durable(20);
    assert_eq!(other.line(), "log 20\n");
}

#[test]
fn a_connection_that_ends_is_answered_first() {
    let server = start();
    let mut writer = server.connect_known();
    writer.send("log 5\nquit\nnever\n");
    eventually("it to be held", || (server.unsent() > 0).then_some(()));
    assert!(server.echo.closed.lock().unwrap().is_empty());
    server.get_durable(5);
    assert_eq!(writer.line(), "log 5\n");
    assert_eq!(writer.rest(), b"bye\n");
    assert_eq!(server.first_close(), CloseReason::Service);
}

#[test]
fn a_client_that_asks_on_while_it_is_held_is_stopped_by_what_is_unsent() {
    let server = start();
    let mut writer = server.connect_known();
    writer.send("log 7\n");
    writer.send("big 100000\n".repeat(40));
    eventually("much to be held", || (server.unsent() > 256 * 1024).then_some(()));
    server.get_durable(7);
    assert_eq!(writer.line(), "log 7\n");
    for _ in 0..40 {
        assert_eq!(writer.exactly(100_003).len(), 100_003);
    }
}

#[test]
fn what_came_while_much_was_held_is_answered_when_that_has_left() {
    // More than may be unsent, and no more than the kernel takes at once: nothing tells of room in the output then.
    const LENGTH: usize = 300_000;
    let server = start();
    let (mut writer, mut other) = (server.connect_known(), server.connect_known());
    for position in 1..=5 {
        writer.send(format!("log {position}\nbig {LENGTH}\n"));
        eventually("it to be held", || (server.unsent() > LENGTH).then_some(()));
        writer.send("ping\n");
        // Both have come when the later one is answered.
        other.ask("pong\n", "pong\n");
        server.get_durable(position);
        assert_eq!(writer.line(), format!("log {position}\n"));
        assert_eq!(writer.exactly(LENGTH + 3).len(), LENGTH + 3);
        assert_eq!(writer.line(), "ping\n");
    }
}

#[test]
fn a_server_that_stops_does_not_confirm_what_is_not_on_disk() {
    let server = start();
    let writer = server.connect_known();
    writer.send("log 3\n");
    eventually("it to be held", || (server.unsent() > 0).then_some(()));
    server.stop(Duration::from_millis(50));
    assert_eq!(writer.rest(), b"");
}
