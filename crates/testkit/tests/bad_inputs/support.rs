//! What every bad input is tried with: servers, conversations in raw bytes, a look at memory. Knows no command but PING
//! and GET.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use tenon_client::{Memcache, Resp, Stream, Value};
pub(crate) use tenon_testkit::patience::PATIENCE;
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

/// A mebibyte.
pub(crate) const MIB: usize = 1 << 20;

/// Tenon with these settings.
pub(crate) fn tenon(settings: &[(&str, &str)]) -> Server {
    Server::tenon(settings).expect("tenon starts")
}

/// A raw connection.
pub(crate) fn connect(server: &Server, dialect: Dialect) -> Stream {
    server.connect(dialect, PATIENCE).expect("connected")
}

/// A RESP client.
pub(crate) fn resp(server: &Server) -> Resp {
    Resp::connect_to(server.address(Dialect::Redis).expect("a RESP port"), Some(PATIENCE)).expect("connected")
}

/// Sends bytes; a server that has closed meanwhile is no failure, what it said is read next.
pub(crate) fn send(stream: &mut Stream, bytes: &[u8]) {
    match stream.write_all(bytes) {
        Err(error) if !is_closed(error.kind()) => panic!("sending failed: {error}"),
        _ => {}
    }
}

/// All that comes until the server closes.
pub(crate) fn read_until_closed(stream: &mut Stream) -> Result<Vec<u8>, String> {
    let mut answer = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(answer),
            Ok(read) => answer.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // A server that closes with our bytes unread makes the system send a reset.
            Err(error) if is_closed(error.kind()) => return Ok(answer),
            Err(error) => return Err(format!("not closed after '{}': {error}", answer.escape_ascii())),
        }
    }
}

/// All that comes until it ends with `last`, which the server must not close before.
pub(crate) fn read_until(stream: &mut Stream, last: &[u8]) -> Result<Vec<u8>, String> {
    read_until_it(stream, |answer| answer.ends_with(last))
        .map_err(|problem| format!("{problem}, before '{}'", last.escape_ascii()))
}

fn read_until_it(stream: &mut Stream, is_whole: impl Fn(&[u8]) -> bool) -> Result<Vec<u8>, String> {
    let mut answer = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    while !is_whole(&answer) {
        match stream.read(&mut buffer) {
            Ok(read) if read > 0 => answer.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            end => return Err(format!("{end:?} after '{}'", answer.escape_ascii())),
        }
    }
    Ok(answer)
}

fn is_closed(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted)
}

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// The server closes it.
    Closed,
    /// What is sent next is understood as it should be.
    InStep,
}

/// Sends `bytes` over a new connection and gives all that was answered. A connection that stays in step is shown to be
/// by a question behind the bytes, whose answer is left out.
pub(crate) fn converse(server: &Server, dialect: Dialect, bytes: &[u8], ends: Ends) -> Result<Vec<u8>, String> {
    let mut stream = connect(server, dialect);
    send(&mut stream, bytes);
    if ends == Ends::Closed {
        return read_until_closed(&mut stream);
    }
    // A question that nothing before it can have been answered with.
    let (question, answer): (&[u8], &[u8]) = match dialect {
        Dialect::Redis => (b"*2\r\n$4\r\nECHO\r\n$9\r\nin step?!\r\n", b"$9\r\nin step?!\r\n"),
        Dialect::Memcache => (b"version\r\n", b"VERSION "),
    };
    send(&mut stream, question);
    let answer_from = |said: &[u8]| {
        let line = if dialect == Dialect::Redis { said.len().checked_sub(answer.len()) } else { last_line_from(said) };
        line.filter(|&from| said[from..].starts_with(answer))
    };
    let mut said = read_until_it(&mut stream, |said| answer_from(said).is_some())?;
    said.truncate(answer_from(&said).expect("it was just there"));
    Ok(said)
}

/// Where the last line starts, if it is whole.
fn last_line_from(said: &[u8]) -> Option<usize> {
    let lines = said.strip_suffix(b"\r\n")?;
    Some(lines.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1))
}

/// Shows that both front ends still serve new clients.
pub(crate) fn assert_alive(server: &Server) {
    match resp(server).call(&[b"ECHO", b"alive?"]).expect("an answer") {
        Value::Bulk(echo) => assert_eq!(echo, b"alive?"),
        // A server that wants a password says so, which it does alive.
        Value::Error(text) => assert_eq!(text, b"NOAUTH Authentication required."),
        other => panic!("{other:?} is no echo"),
    }
    if let Ok(address) = server.address(Dialect::Memcache) {
        let mut memcache = Memcache::connect_to(address, Some(PATIENCE)).expect("connected");
        let answer = memcache.exchange(b"version").expect("an answer");
        let is_stranger = answer.starts_with(b"CLIENT_ERROR unauthenticated");
        assert!(is_stranger || answer.starts_with(b"VERSION "), "{}", answer.escape_ascii());
    }
}

/// Everything in database 0, as far as it is strings.
pub(crate) fn data(server: &Server) -> BTreeMap<Vec<u8>, Value> {
    let mut resp = resp(server);
    let Value::Array(keys) = resp.call(&[b"KEYS", b"*"]).expect("an answer") else { panic!("KEYS gives an array") };
    let keys = keys.into_iter().map(|key| match key {
        Value::Bulk(key) => key,
        other => panic!("{other:?} is no key"),
    });
    keys.map(|key| (key.clone(), resp.call(&[b"GET", &key]).expect("an answer"))).collect()
}

/// Bytes of memory that the server's process has resident now, and the most that it ever had.
pub(crate) fn resident_bytes(server: &Server) -> (usize, usize) {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("the process is there");
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("Linux tells the resident size");
        let kib: usize = line.trim().trim_end_matches("kB").trim().parse().expect("a number of kB");
        kib * 1024
    };
    (bytes("VmRSS:"), bytes("VmHWM:"))
}

/// Runs `load`, and shows that the server never had more than `allowed` bytes more than before.
pub(crate) fn within_memory<R>(server: &Server, allowed: usize, load: impl FnOnce() -> R) -> R {
    let (before, _) = resident_bytes(server);
    let result = load();
    let (_, most) = resident_bytes(server);
    assert!(most <= before + allowed, "from {before} to {most} bytes of memory, {allowed} more were allowed");
    result
}

pub(crate) use tenon_testkit::patience::wait_until;
