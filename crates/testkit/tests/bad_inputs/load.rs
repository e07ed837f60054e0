//! Clients that ask for much and give little: memory stays bounded, others are served. Knows no command's work.

use crate::support::{
    MIB, PATIENCE, assert_alive, connect, read_until_closed, resp, send, tenon, wait_until, within_memory,
};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::process::Command;
use std::thread;
use std::time::Duration;
use tenon_client::resp::encode_command;
use tenon_client::{Resp, Stream, Value};
use tenon_testkit::oracle::oracle;
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

fn command(arguments: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_command(arguments, &mut bytes);
    bytes
}

/// The bytes that INFO says are in use.
fn used_memory(server: &Server) -> usize {
    tenon_testkit::info::field(&mut resp(server), "memory", "used_memory").parse().expect("a number")
}

/// How many connections this process may open at once, of the number wanted; raises its limit where the system lets it.
fn connections(wanted: usize) -> usize {
    let limit = || {
        let limits = fs::read_to_string("/proc/self/limits").expect("Linux tells a process its limits");
        let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("one is on files");
        line.split_whitespace().nth(3).and_then(|soft| soft.parse().ok()).unwrap_or(usize::MAX)
    };
    if limit() < 2 * wanted {
        // Best effort: what it could not raise shows in the limit.
        let _ = Command::new("prlimit")
            .args([format!("--pid={}", std::process::id()), format!("--nofile={}:", 4 * wanted)])
            .output();
    }
    let spare = limit().saturating_sub(256);
    if spare < wanted {
        let _ = writeln!(std::io::stderr(), "only {spare} of {wanted} connections: no more files may be open");
    }
    wanted.min(spare)
}

/// The lines of CLIENT LIST.
fn clients(server: &Server) -> Vec<String> {
    clients_told_to(&mut resp(server))
}

fn clients_told_to(client: &mut Resp) -> Vec<String> {
    let Value::Bulk(list) = client.call(&[b"CLIENT", b"LIST"]).expect("an answer") else {
        panic!("CLIENT LIST gives text");
    };
    String::from_utf8_lossy(&list).lines().map(str::to_owned).collect()
}

#[test]
fn announced_arguments_cost_nothing_until_they_come() {
    let server = tenon(&[]);
    let count = connections(1000);
    within_memory(&server, 64 * MIB, || {
        let announced: Vec<Stream> = (0..count)
            .map(|at| {
                let mut stream = connect(&server, Dialect::Redis);
                let what = ["*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n", "*2147483647\r\n$3\r\nSET\r\n"][at % 2];
                send(&mut stream, what.as_bytes());
                stream
            })
            .collect();
        let read = || clients(&server).iter().filter(|line| !line.contains(" qbuf=0 ")).count();
        wait_until("all announcements are read", || read() >= count);
        assert_alive(&server);
        drop(announced);
    });
    wait_until("all are gone", || clients(&server).len() <= 2);
    assert_eq!(resp(&server).call(&[b"DBSIZE"]).expect("an answer"), Value::Int(0));
}

#[test]
fn silent_connections_cost_little_and_stop_nobody() {
    let server = tenon(&[]);
    let count = connections(2000);
    within_memory(&server, 64 * MIB, || {
        let silent: Vec<Stream> = (0..count)
            .map(|at| connect(&server, if at % 2 == 0 { Dialect::Redis } else { Dialect::Memcache }))
            .collect();
        wait_until("all are accepted", || clients(&server).len() > count);
        assert_alive(&server);
        drop(silent);
    });
    wait_until("all are gone", || clients(&server).len() <= 2);
}

#[test]
fn over_maxclients_a_client_is_told_and_the_others_stay() {
    let server = tenon(&[("maxclients", "10")]);
    let mut first = resp(&server);
    assert_eq!(first.call(&[b"PING"]).expect("an answer"), Value::Simple(b"PONG".to_vec()));
    let mut others = Vec::new();
    // Those of the start may still be going, and one of these may have been the client too many: who is not refused stays.
    wait_until("a client too many is refused", || {
        let mut extra = connect(&server, Dialect::Redis);
        extra.set_read_timeout(Some(Duration::from_millis(500))).expect("set");
        let mut said = Vec::new();
        let _ = extra.read_to_end(&mut said);
        let is_refused = said == b"-ERR max number of clients reached\r\n";
        others.push(extra);
        is_refused
    });
    assert_eq!(first.call(&[b"PING"]).expect("an answer"), Value::Simple(b"PONG".to_vec()));
    let clients = clients_told_to(&mut first);
    assert!(clients.len() <= 10, "{clients:?}");
}

/// Sends `request` so often, or until the server takes no more for some seconds. Gives how often it went out whole.
fn send_often(stream: &mut Stream, request: &[u8], times: usize) -> usize {
    stream.set_write_timeout(Some(Duration::from_secs(3))).expect("set");
    let per_write = (MIB / request.len()).clamp(1, times);
    let block = request.repeat(per_write);
    let mut sent = 0;
    while sent < times {
        let bytes = &block[..request.len() * per_write.min(times - sent)];
        match stream.write_all(bytes) {
            Ok(()) => sent += bytes.len() / request.len(),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => break,
            Err(error) => panic!("sending failed: {error}"),
        }
    }
    sent
}

/// Reads that many bytes and throws them away.
fn skip(stream: &mut Stream, mut bytes: usize) {
    let mut buffer = vec![0; MIB];
    while bytes > 0 {
        let wanted = bytes.min(buffer.len());
        match stream.read(&mut buffer[..wanted]) {
            Ok(0) => panic!("closed {bytes} bytes too soon"),
            Ok(read) => bytes -= read,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Interrupted, "{error}"),
        }
    }
}

#[test]
fn a_client_that_never_reads_is_paused_and_loses_nothing() {
    // A long value is sent by reference, a short one is copied: neither may pile up without bound.
    for (len, times) in [(MIB, 200), (10_000, 20_000)] {
        let server = tenon(&[]);
        resp(&server).call(&[b"SET", b"value", &vec![b'v'; len]]).expect("stored");
        let get = command(&[b"GET", b"value"]);
        let reply_len = len + format!("${len}\r\n\r\n").len();
        never_reads(&server, Dialect::Redis, get, times, times * reply_len, (b"PING\r\n", b"+PONG\r\n"));

        let gets = ("get".to_owned() + &" value".repeat(40) + "\r\n").into_bytes();
        let reply_len = 40 * (len + format!("VALUE value 0 {len}\r\n\r\n").len()) + "END\r\n".len();
        let last = (b"verbosity\r\n".as_slice(), b"ERROR\r\n".as_slice());
        never_reads(&server, Dialect::Memcache, gets, times / 40, times / 40 * reply_len, last);
    }
}

/// Asks so often without reading, while memory stays bounded; then reads all that many bytes, and shows with a last
/// question and its answer that the connection is in step.
fn never_reads(
    server: &Server,
    dialect: Dialect,
    request: Vec<u8>,
    times: usize,
    replies_len: usize,
    (question, answer): (&[u8], &[u8]),
) {
    let mut stream = connect(server, dialect);
    // A paused server takes no more than the system buffers: the rest leaves while the answers are read.
    let mut writer = stream.try_clone().expect("a second handle");
    let writing = within_memory(server, 96 * MIB, || {
        let writing = thread::spawn(move || (0..times).for_each(|_| send(&mut writer, &request)));
        // Enough turns for the server to answer all, if nothing kept it from doing so.
        (0..200).for_each(|_| assert_alive(server));
        writing
    });
    within_memory(server, 96 * MIB, || skip(&mut stream, replies_len));
    writing.join().expect("all is sent");
    send(&mut stream, question);
    assert_eq!(crate::support::read_until(&mut stream, answer), Ok(answer.to_vec()));
}

#[test]
fn clients_that_never_read_have_a_share_of_the_memory_together() {
    // An eighth of it, and a megabyte each: far less than the 64 MiB that each may have where there is room.
    let server = tenon(&[("maxmemory", "128mb")]);
    resp(&server).call(&[b"SET", b"value", &vec![b'v'; 10_000]]).expect("stored");
    let gets = command(&[b"GET", b"value"]).repeat(10_000);
    within_memory(&server, 80 * MIB, || {
        let streams: Vec<Stream> = (0..20).map(|_| connect(&server, Dialect::Redis)).collect();
        thread::scope(|scope| {
            for stream in &streams {
                let mut writer = stream.try_clone().expect("a second handle");
                let gets = &gets;
                scope.spawn(move || send_often(&mut writer, gets, 1));
            }
        });
        let unsent = || clients(&server).iter().map(|line| field(line, "omem")).sum::<u64>();
        wait_until("the server says how much waits", || unsent() > 0);
        // Enough turns for all that it would answer, if nothing kept it from doing so.
        (0..200).for_each(|_| assert_alive(&server));
        assert_alive(&server);
    });
}

#[test]
fn a_million_reads_written_before_the_first_answer_is_read() {
    let server = tenon(&[]);
    let value = [b'v'; 32];
    resp(&server).call(&[b"SET", b"value", &value]).expect("stored");
    let mut stream = connect(&server, Dialect::Redis);
    let count = 1_000_000;
    let answer = b"$32\r\nvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv\r\n";
    within_memory(&server, 96 * MIB, || {
        // One thread: whoever waits here for room to write reads nothing meanwhile, like many a simple client.
        send(&mut stream, &command(&[b"GET", b"value"]).repeat(count));
        skip(&mut stream, (count - 1) * answer.len());
        assert_eq!(crate::support::read_until(&mut stream, answer), Ok(answer.to_vec()));
    });
    wait_until("all has left", || clients(&server).iter().all(|line| field(line, "omem") == 0));
}

/// A number in a line of CLIENT LIST.
fn field(line: &str, name: &str) -> u64 {
    let value = line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).expect("it is there");
    value.parse().expect("a number")
}

/// What INFO says when one client was closed for its unread output.
const CUT: &[u8] = b"client_output_buffer_limit_disconnections:1\r\n";

#[test]
fn a_client_that_never_reads_is_cut_at_its_limit() {
    for limit in ["normal 512kb 0 0", "normal 0 512kb 1"] {
        let server = tenon(&[("client-output-buffer-limit", limit)]);
        resp(&server).call(&[b"SET", b"value", &vec![b'v'; 32 * MIB]]).expect("stored");
        let mut stream = connect(&server, Dialect::Redis);
        // A single reply that is more than the limit and all that the system buffers.
        within_memory(&server, 48 * MIB, || {
            send(&mut stream, &command(&[b"GET", b"value"]));
            wait_until("it is cut", || {
                let stats = resp(&server).call(&[b"INFO", b"stats"]).expect("an answer");
                matches!(stats, Value::Bulk(text) if text.windows(CUT.len()).any(|part| part == CUT))
            });
        });
        let answer = read_until_closed(&mut stream).expect("closed");
        assert!(answer.len() < 32 * MIB, "{limit}: not everything was sent");
        assert_alive(&server);
    }
}

#[test]
fn a_million_commands_in_one_write() {
    let server = tenon(&[]);
    let count = 1_000_000;
    let mut stream = connect(&server, Dialect::Redis);
    let mut writer = stream.try_clone().expect("a second handle");
    within_memory(&server, 64 * MIB, || {
        let bytes = command(&[b"INCR", b"counter"]).repeat(count);
        let writing = thread::spawn(move || writer.write_all(&bytes).expect("sent"));
        let answer = crate::support::read_until(&mut stream, b":1000000\r\n").expect("all answers");
        writing.join().expect("all is sent");
        let numbers = answer.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        for (at, line) in numbers.enumerate() {
            assert_eq!(line, format!(":{}\r", at + 1).as_bytes());
        }
    });
    assert_eq!(resp(&server).call(&[b"GET", b"counter"]).expect("an answer"), Value::Bulk(b"1000000".to_vec()));
}

#[test]
fn clients_that_are_not_in_yet_cannot_pile_up_replies() {
    // CVE-2025-21605: errors to commands before AUTH are answers that nobody takes, too.
    let server = tenon(&[("requirepass", "secret")]);
    within_memory(&server, 48 * MIB, || {
        let mut stream = connect(&server, Dialect::Redis);
        send_often(&mut stream, &command(&[b"GET", b"key"]), 5_000_000);
        (0..20).for_each(|_| assert_alive(&server));
    });
}

#[test]
fn what_one_client_makes_the_server_keep_is_bounded() {
    let limits = [("client-query-buffer-limit", "1mb")];
    let server = tenon(&limits);
    let redis = oracle(Dialect::Redis, &limits);
    let closes = |server: &Server, bytes: &[u8]| {
        let mut stream = connect(server, Dialect::Redis);
        let mut reader = stream.try_clone().expect("a second handle");
        let reading = thread::spawn(move || read_until_closed(&mut reader));
        send(&mut stream, bytes);
        reading.join().expect("read")
    };
    // One argument over the limit; many small ones that are together; many that the server keeps apart.
    let long = command(&[b"SET", b"k", &vec![b'x'; 2 * MIB]]);
    let many = [b"*1000000\r\n".as_slice(), &b"$3\r\nabc\r\n".repeat(300_000)].concat();
    assert_eq!(closes(&server, &long), Ok(Vec::new()));
    if let Some(redis) = &redis {
        // The only case that Redis 7.0 bounds: arguments it has read wholly are no part of its buffer any more.
        assert_eq!(closes(redis, &long), Ok(Vec::new()), "redis");
    }
    assert_eq!(closes(&server, &many), Ok(Vec::new()));
    let argument = [format!("${}\r\n", MIB / 4).as_bytes(), &vec![b'x'; MIB / 4], b"\r\n"].concat();
    let endless = [b"*1000000\r\n".as_slice(), &argument.repeat(200)].concat();
    within_memory(&server, 32 * MIB, || assert_eq!(closes(&server, &endless), Ok(Vec::new())));
    // MULTI's queue is kept, too.
    let queued = command(&[b"SET", b"k", &vec![b'x'; MIB / 4]]).repeat(200);
    let transaction = [command(&[b"MULTI"]), queued].concat();
    let answer = within_memory(&server, 32 * MIB, || closes(&server, &transaction)).expect("closed");
    assert!(answer.len() < 100, "{}", answer.escape_ascii());
    assert_alive(&server);
    assert_eq!(resp(&server).call(&[b"DBSIZE"]).expect("an answer"), Value::Int(0));
}

#[test]
fn memcached_lines_without_end_are_not_kept() {
    let server = tenon(&[]);
    within_memory(&server, 32 * MIB, || {
        for bytes in [b"x".as_slice(), b" ", b"get ", b"\0"] {
            let mut stream = connect(&server, Dialect::Memcache);
            let mut reader = stream.try_clone().expect("a second handle");
            let reading = thread::spawn(move || {
                // An endless multiget is answered as it comes, any other line is given up.
                reader.set_read_timeout(Some(Duration::from_secs(2))).expect("set");
                let _ = std::io::copy(&mut reader, &mut std::io::sink());
            });
            send_often(&mut stream, bytes, 64 * MIB / bytes.len());
            assert_alive(&server);
            drop(stream);
            reading.join().expect("read");
        }
    });
}

#[test]
fn the_longest_argument_there_may_be() {
    const LEN: usize = 512 * MIB;
    let server = tenon(&[]);
    let mut stream = connect(&server, Dialect::Redis);
    let piece: Vec<u8> = (0..MIB).map(|at| (at % 251) as u8).collect();
    let send_long = |stream: &mut Stream, before: &str| {
        // What the last one took is freed beside the commands.
        wait_until("its memory", || used_memory(&server) < LEN + 64 * MIB);
        send(stream, before.as_bytes());
        send(stream, format!("${LEN}\r\n").as_bytes());
        (0..LEN / MIB).for_each(|_| send(stream, &piece));
        send(stream, b"\r\n");
    };
    let answer = |stream: &mut Stream| crate::support::read_until(stream, b"\r\n").expect("an answer");
    // The value, an argument as it comes in chunks, and the same in one piece as a key has to be.
    within_memory(&server, 3 * LEN + 128 * MIB, || {
        send_long(&mut stream, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n");
        assert_eq!(answer(&mut stream), b"+OK\r\n");
        // One byte more than a string may have.
        send(&mut stream, &command(&[b"APPEND", b"k", b"x"]));
        let too_long = b"-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n";
        assert_eq!(answer(&mut stream), too_long);
        send_long(&mut stream, "*3\r\n$6\r\nAPPEND\r\n$1\r\nk\r\n");
        assert_eq!(answer(&mut stream), too_long);
        send(&mut stream, &command(&[b"STRLEN", b"k"]));
        assert_eq!(answer(&mut stream), format!(":{LEN}\r\n").as_bytes());
        // As a key, and to a command that is none.
        send_long(&mut stream, "*2\r\n$3\r\nGET\r\n");
        assert_eq!(answer(&mut stream), b"$-1\r\n");
        send_long(&mut stream, "*2\r\n$6\r\nNOSUCH\r\n");
        assert!(answer(&mut stream).starts_with(b"-ERR unknown command 'NOSUCH', with args beginning with: '"));
        send(&mut stream, &command(&[b"GET", b"k"]));
        let head = format!("${LEN}\r\n");
        let mut buffer = vec![0; MIB];
        stream.read_exact(&mut buffer[..head.len()]).expect("a length");
        assert_eq!(&buffer[..head.len()], head.as_bytes());
        for at in 0..LEN / MIB {
            stream.read_exact(&mut buffer).expect("the value");
            assert!(buffer == piece, "megabyte {at} is as it was sent");
        }
        skip(&mut stream, 2);
    });
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    send(&mut stream, &command(&[b"DEL", b"k"]));
    assert_eq!(answer(&mut stream), b":1\r\n");
    assert_alive(&server);
}
