//! Bytes arrive whole, in order and where they belong, however they are cut.

use crate::echo::{DRAIN_ABOVE, Echo, Message, pattern};
use crate::harness::{Connection, PATIENCE, Server, eventually, raise_open_files, tcp};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tenon_server::net::{Endpoint, FrontEnd, Listen, Options, serve};
use tenon_server::shutdown::Shutdown;

#[test]
fn a_pipeline_is_answered_in_order() {
    let server = Server::start();
    let mut client = server.connect();
    let questions: String = (0..100_000).map(|number| format!("question {number}\n")).collect();
    let writer = {
        let (mut stream, questions) = (client.stream().try_clone().unwrap(), questions.clone());
        std::thread::spawn(move || stream.write_all(questions.as_bytes()).unwrap())
    };
    assert!(client.exactly(questions.len()) == questions.as_bytes());
    writer.join().unwrap();
}

#[test]
fn a_command_may_trickle_in() {
    let server = Server::start();
    let mut client = server.connect();
    for byte in b"one byte at a time\n" {
        client.send([*byte]);
    }
    assert_eq!(client.line(), "one byte at a time\n");
}

#[test]
fn a_client_may_send_much_at_a_time_then_little_then_much() {
    let server = Server::start();
    let mut client = server.connect();
    let much: String = (0..400).map(|number| format!("question {number}\n")).collect();
    for times in [20, 1, 40, 9] {
        for _ in 0..times {
            client.send(&much);
            assert!(client.exactly(much.len()) == much.as_bytes());
        }
        for number in 0..times {
            let little = format!("little {number}\n");
            client.ask(&little, &little);
        }
    }
}

#[test]
fn big_values_leave_by_reference_and_in_order() {
    let server = Server::start();
    let mut client = server.connect();
    let sizes = [1, 70_000, 3_000_000, 0, 12_345_678];
    for size in sizes {
        client.send(format!("big {size}\nafter {size}\n"));
    }
    for size in sizes {
        let reply = client.exactly(size + 3);
        assert!(reply[0] == b'<' && reply.ends_with(b">\n"));
        assert!(reply[1..=size] == pattern(size));
        assert_eq!(client.line(), format!("after {size}\n"));
    }
}

#[test]
fn long_values_are_received_where_they_stay() {
    let server = Server::start();
    let mut client = server.connect();
    let sizes = [1, 99_999, 100_000, 3_000_000, 0, 12_345_678];
    let writer = {
        let mut stream = client.stream().try_clone().unwrap();
        std::thread::spawn(move || {
            for size in sizes {
                stream
                    .write_all(&[format!("fill {size}\n").as_bytes(), &pattern(size), b"between\n"].concat())
                    .unwrap();
            }
        })
    };
    for _ in sizes {
        assert_eq!(client.line(), "filled\n");
        assert_eq!(client.line(), "between\n");
    }
    writer.join().unwrap();
    let filled = server.echo.filled.load(Ordering::Relaxed);
    assert!(filled > sizes.iter().sum::<usize>() / 2, "{filled} bytes only were received where they stay");
}

#[test]
fn short_requests_and_long_values_may_follow_in_any_order() {
    let server = Server::start();
    let mut client = server.connect();
    let short: String = (0..3_000).map(|number| format!("question {number}\n")).collect();
    for long_values in [1, 2, 0, 3, 0, 0, 1] {
        let values = [b"fill 200000\n".as_slice(), &pattern(200_000)].concat().repeat(long_values);
        let stream = [values.as_slice(), short.as_bytes()].concat();
        let mut writing = client.stream().try_clone().unwrap();
        let writer = std::thread::spawn(move || writing.write_all(&stream).unwrap());
        for _ in 0..long_values {
            assert_eq!(client.line(), "filled\n");
        }
        assert!(client.exactly(short.len()) == short.as_bytes());
        writer.join().unwrap();
    }
}

#[test]
fn of_the_next_long_value_little_goes_through_the_buffer() {
    let server = Server::start();
    let mut client = server.connect();
    let fill = |client: &mut Connection| {
        let before = server.echo.filled.load(Ordering::Relaxed);
        client.send([b"fill 60000\n".as_slice(), &pattern(60_000)].concat());
        assert_eq!(client.line(), "filled\n");
        server.echo.filled.load(Ordering::Relaxed) - before
    };
    // Of the first nothing is known before it is there: all of it may lie in the buffer.
    fill(&mut client);
    client.send("fill 300000\n");
    client.send(pattern(300_000));
    assert_eq!(client.line(), "filled\n");
    for _ in 0..5 {
        let filled = fill(&mut client);
        assert!(filled > 50_000, "{filled} bytes only of 60,000 were received where they stay");
    }
}

#[test]
fn a_long_value_may_trickle_in_and_others_are_served_meanwhile() {
    let server = Server::start();
    let mut client = server.connect();
    client.send("big 3000000\nfill 60000\n");
    for piece in pattern(60_000).chunks(6_000) {
        client.send(piece);
        server.connect().ask("quick\n", "quick\n");
    }
    // The reply before it was not taken all the while.
    assert!(client.exactly(3_000_003)[1..=3_000_000] == pattern(3_000_000));
    assert_eq!(client.line(), "filled\n");
    client.ask("done\n", "done\n");
}

#[test]
fn whoever_sends_steadily_may_stop_at_any_byte() {
    let server = Server::start();
    let mut client = server.connect();
    let value = pattern(1_000_000);
    for steady_len in [999_970, 1_000_000, 400_000, 1_000_000] {
        let (steady, rest) = value.split_at(steady_len);
        let drops = &rest[..rest.len().min(30)];
        client.send("fill 1000000\n");
        // In pieces that the server has to wait for.
        for piece in steady.chunks(50_000) {
            client.send(piece);
            server.connect().ask("quick\n", "quick\n");
        }
        for drop in drops {
            client.send([*drop]);
            server.connect().ask("quick\n", "quick\n");
        }
        client.send(&rest[drops.len()..]);
        assert_eq!(client.line(), "filled\n");
        // Few bytes are reported again.
        client.ask("behind\n", "behind\n");
    }
}

#[test]
fn a_client_that_reads_late_slows_only_itself_and_loses_nothing() {
    let server = Server::start();
    let mut slow = server.connect();
    let (size, count) = (100_000, 1_000);
    slow.send(format!("big {size}\n").repeat(count));
    // Meanwhile others are served, and what is made for the slow one stays within what is sent and what may wait.
    for _ in 0..50 {
        server.connect().ask("quick\n", "quick\n");
    }
    let produced = server.echo.produced.load(Ordering::Relaxed) as usize;
    let kernel_buffers = 32 * 1024 * 1024;
    assert!(produced <= kernel_buffers + 4 * (DRAIN_ABOVE + size), "{produced} bytes were made for nobody");
    let unsent = || server.echo.unsent.lock().unwrap().values().sum::<usize>();
    eventually("the service to know how much waits", || (unsent() > 0).then_some(()));
    let sent = || server.echo.sent.load(Ordering::SeqCst);
    let quick = 50 * "quick\n".len();
    eventually("the service to know how much has left", || {
        let produced = server.echo.produced.load(Ordering::Relaxed) as usize;
        (sent() + unsent() == produced).then_some(())
    });
    assert!(sent() > quick && sent() <= kernel_buffers);
    for _ in 0..count {
        let reply = slow.exactly(size + 3);
        assert!(reply[1..=size] == pattern(size));
    }
    slow.ask("done\n", "done\n");
    let all = quick + count * (size + 3) + "done\n".len();
    eventually("the service to know that all has left", || (unsent() == 0 && sent() == all).then_some(()));
}

#[test]
fn a_client_that_only_writes_is_stopped_by_its_own_unread_replies() {
    let server = Server::start();
    let mut client = server.connect();
    let piece = "a line that comes back\n".repeat(1_000).into_bytes();
    client.stream().set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut written = 0;
    // A write that times out after some of it was taken tells how much; the next one then takes nothing and fails.
    while let Ok(count) = client.stream().write(&piece[written % piece.len()..]) {
        written += count;
        assert!(written < 256 * 1024 * 1024, "the server takes in without end");
    }
    client.stream().set_write_timeout(Some(PATIENCE)).unwrap();
    let whole_lines = written / 23 * 23;
    let mut read = 0;
    while read < whole_lines {
        let count = (whole_lines - read).min(23_000);
        assert!(client.exactly(count) == piece[..count]);
        read += count;
    }
    client.send(&piece[written % 23..23]);
    assert_eq!(client.line(), "a line that comes back\n");
    client.ask("done\n", "done\n");
}

#[test]
fn two_thousand_idle_connections_and_all_still_answer() {
    raise_open_files();
    let server = Server::start();
    let mut clients: Vec<Connection> = (0..2_000).map(|_| server.connect()).collect();
    eventually("all to be known", || (server.echo.connections.lock().unwrap().len() == 2_000).then_some(()));
    assert_eq!(server.running().mail().connections(), 2_000);
    for client in &mut clients {
        client.ask("still here\n", "still here\n");
    }
    let mut per_worker = [0; 2];
    for client in &mut clients {
        client.send("who\n");
        per_worker[client.line().trim().parse::<usize>().unwrap()] += 1;
    }
    assert_eq!(per_worker, [1_000, 1_000]);
    drop(clients);
    eventually("all to be gone", || (server.running().mail().connections() == 0).then_some(()));
}

#[test]
fn new_connections_go_to_the_worker_with_the_fewest() {
    let server = Server::start();
    let mut clients: Vec<Connection> = (0..10).map(|_| server.connect_known()).collect();
    clients.retain_mut(|client| {
        client.send("who\n");
        client.line() == "0\n"
    });
    assert_eq!(clients.len(), 5);
    eventually("worker 1 to lose its five", || (server.running().mail().connections() == 5).then_some(()));
    for _ in 0..5 {
        let mut client = server.connect();
        client.ask("who\n", "1\n");
        clients.push(client);
    }
}

#[test]
fn messages_reach_a_connection_and_a_parked_one_goes_on() {
    let server = Server::start();
    let mut client = server.connect_known();
    server.post(&client, Message::Push(b"pushed\n".to_vec()));
    assert_eq!(client.line(), "pushed\n");
    client.send("before\npark\nafter\n");
    assert_eq!(client.line(), "before\n");
    client.send("later\n");
    server.post(&client, Message::Unpark);
    assert_eq!([client.line(), client.line(), client.line()], ["unparked\n", "after\n", "later\n"]);
    for worker in 0..2 {
        server.running().mail().post_worker(worker, Message::Unpark);
    }
    eventually("both workers' mail", || (server.echo.worker_messages.load(Ordering::Relaxed) == 2).then_some(()));
}

#[test]
fn mail_from_many_threads_arrives_in_each_threads_order() {
    let server = Server::start();
    let mut client = server.connect_known();
    let id = server.echo.id_of(&client.name()).unwrap();
    let (threads, count) = (4, 5_000);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let mail = server.running().mail().clone();
            scope.spawn(move || {
                for number in 0..count {
                    mail.post(id, Message::Push(format!("{thread} {number}\n").into_bytes()));
                    if number % 100 == 0 {
                        // Lets the worker fall asleep now and then, so that waking is tried too.
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
            });
        }
        let mut expected = vec![0; threads];
        for _ in 0..threads * count {
            let line = client.line();
            let (thread, number) = line.trim().split_once(' ').unwrap();
            let next = &mut expected[thread.parse::<usize>().unwrap()];
            assert_eq!(number.parse::<usize>().unwrap(), *next);
            *next += 1;
        }
    });
}

#[test]
fn an_idle_server_rests() {
    let server = Server::start();
    let _client = server.connect_known();
    let before = server.echo.turns.load(Ordering::Relaxed);
    eventually("ticks", || (server.echo.ticks.load(Ordering::Relaxed) > 20).then_some(()));
    let (turns, ticks) =
        (server.echo.turns.load(Ordering::Relaxed) - before, server.echo.ticks.load(Ordering::Relaxed));
    assert!(turns <= 4 * ticks + 20, "{turns} turns of the loops for {ticks} ticks: they spin");
}

#[test]
fn a_unix_socket_serves_has_its_permissions_and_replaces_only_a_dead_one() {
    let path = std::env::temp_dir().join(format!("tenon-net-{}.sock", std::process::id()));
    // The socket of a server that has died.
    drop(UnixListener::bind(&path).unwrap());
    let endpoint = Endpoint::Unix { path: path.clone(), mode: Some(0o700) };
    let listens = vec![Listen { front_end: FrontEnd::Resp, endpoint }];
    let server = Server::start_with(1, listens.clone());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);

    let mut client = BufReader::new(UnixStream::connect(&path).unwrap());
    let size = 3_000_000;
    client.get_mut().write_all(format!("over unix\nbig {size}\n").as_bytes()).unwrap();
    let mut line = String::new();
    client.read_line(&mut line).unwrap();
    assert_eq!(line, "over unix\n");
    let mut reply = vec![0; size + 3];
    client.read_exact(&mut reply).unwrap();
    assert!(reply[1..=size] == pattern(size));
    assert_eq!(server.echo.peers.lock().unwrap()[0].remote.to_string(), format!("{}:0", path.display()));

    let options = Options { workers: 1, listens, datagrams: None, backlog: 5, io: crate::IO };
    let error = serve(&options, server.echo.clone(), &Shutdown::new()).unwrap_err().to_string();
    assert!(error.contains("bind: Address already in use"), "{error}");
    drop(client);
    server.stop(Duration::from_secs(5));
    assert!(!path.exists());
    std::fs::write(&path, "no socket").unwrap();
    assert!(serve(&options, Arc::<Echo>::default(), &Shutdown::new()).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "no socket");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn ipv6_has_its_own_listener_on_the_same_port() {
    let server = Server::start_with(1, vec![tcp(FrontEnd::Resp, "-::1"), tcp(FrontEnd::Memcached, "127.0.0.1")]);
    if server.running().bound().len() < 2 {
        let _ = writeln!(std::io::stderr(), "skipped: this machine has no IPv6 loopback");
        return;
    }
    let mut client = server.connect();
    client.ask("six\n", "six\n");
    let peer = server.echo.peers.lock().unwrap()[0].clone();
    assert!(peer.remote.to_string().starts_with("[::1]:") && peer.remote.is_local());
    assert_eq!(peer.remote.to_string(), client.name());
    assert_eq!(peer.local.to_string(), client.stream().peer_addr().unwrap().to_string());
}

#[test]
fn many_messages_hold_no_other_client_up() {
    const MESSAGES: usize = 1_000;
    let server = Server::start_with(1, vec![tcp(FrontEnd::Resp, "127.0.0.1")]);
    let mut slow = server.connect_known();
    let (mut listener, mut other) = (server.connect_known(), server.connect_known());
    slow.send("hold x\n");
    eventually("a call that waits", || (server.echo.holding.load(Ordering::SeqCst) == 1).then_some(()));
    for _ in 0..MESSAGES {
        server.post(&listener, Message::Push(b"pushed\n".to_vec()));
    }
    other.send("messages\n");
    server.echo.release("x");
    let before: usize = other.line().trim_end().parse().unwrap();
    assert!(before < MESSAGES, "{before} of {MESSAGES} messages came first");
    (0..MESSAGES).for_each(|_| assert_eq!(listener.line(), "pushed\n"));
    assert_eq!(slow.line(), "held x\n");
}
