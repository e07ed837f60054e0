//! The two servers and their connections. Knows no command but those that make both empty again.

use crate::grammar::Request;
use crate::reply::Reply;
use crate::scripts;
use std::io::{BufReader, Read, Write};
use tenon_client::{Stream, resp};
use tenon_testkit::oracle::oracle;
use tenon_testkit::patience::{PATIENCE, wait_until};
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

/// Alike for both: no bound on memory, and nothing in the slow log.
const SETTINGS: [(&str, &str); 5] = [
    ("maxmemory", "0"),
    ("save", ""),
    ("slowlog-log-slower-than", "-1"),
    ("enable-debug-command", "yes"),
    ("activedefrag", "no"),
];

/// How many connections a case has.
pub const CONNECTIONS: usize = 2;

/// A connection.
pub struct Connection {
    reader: BufReader<Stream>,
}

impl Connection {
    /// Sends requests in one write.
    pub fn send(&mut self, requests: &[&Request]) {
        let mut bytes = Vec::new();
        for request in requests {
            let words: Vec<&[u8]> = request.iter().map(Vec::as_slice).collect();
            resp::encode_command(&words, &mut bytes);
        }
        self.send_raw(&bytes);
    }

    /// Sends bytes as they are.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        // A server that has closed the connection is noticed when its answer is read.
        let _ = self.reader.get_mut().write_all(bytes);
    }

    /// The next reply; a connection that broke counts as closed.
    pub fn receive(&mut self) -> Reply {
        match Reply::read(&mut self.reader) {
            Ok(reply) => reply,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("no answer came in time"),
            Err(_) => Reply::Closed,
        }
    }

    /// Says that nothing more is sent.
    pub fn finish_sending(&mut self) {
        let _ = self.reader.get_mut().finish_sending();
    }

    /// All bytes that come until the server closes the connection.
    pub fn everything(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.reader.read_to_end(&mut bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("the connection was not closed"),
            _ => bytes,
        }
    }

    /// The answers to so many requests, without what was pushed meanwhile.
    pub fn answers(&mut self, count: usize) -> Vec<Reply> {
        let mut answers = Vec::new();
        while answers.len() < count {
            let reply = self.receive();
            if !reply.is_push() {
                answers.push(reply);
            }
        }
        answers
    }

    /// The answer to one request.
    pub fn ask(&mut self, words: &[&[u8]]) -> Reply {
        self.send(&[&words.iter().map(|word| word.to_vec()).collect()]);
        self.answers(1).remove(0)
    }
}

/// One of the servers, and the connections of a case.
pub struct Side {
    server: Server,
    admin: Connection,
    /// Settings as they were at the start.
    settings: Vec<(&'static str, Vec<u8>)>,
    connections: [Option<Connection>; CONNECTIONS],
}

impl Side {
    fn new(server: Server) -> Side {
        let mut admin = connect(&server);
        let value = |name: &&'static str| {
            let found = admin.ask(&[b"CONFIG", b"GET", name.as_bytes()]);
            Some((*name, found.elements().get(1)?.text()?.to_vec()))
        };
        let settings = scripts::SETTINGS.iter().filter_map(value).collect();
        Side { server, admin, settings, connections: [const { None }; CONNECTIONS] }
    }

    /// Forgets all that cases have left.
    pub fn reset(&mut self) {
        self.connections = [const { None }; CONNECTIONS];
        self.await_ends();
        for words in [&["FLUSHALL"][..], &["FUNCTION", "FLUSH"], &["SCRIPT", "FLUSH"], &["ACL", "DELUSER", "u1", "u2"]]
        {
            let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            let answer = self.admin.ask(&words);
            assert!(!answer.is_error(), "{words:?}: {answer:?}");
        }
    }

    /// Puts all settings back that a case may change.
    pub fn reset_settings(&mut self) {
        for (name, value) in &self.settings {
            // What cannot be changed at all is not.
            self.admin.ask(&[b"CONFIG", b"SET", name.as_bytes(), value]);
        }
    }

    /// The connection on which nothing but this file's commands and looks at the data are sent.
    pub fn admin(&mut self) -> &mut Connection {
        &mut self.admin
    }

    /// One of a case's connections, made where it is not there.
    pub fn connection(&mut self, number: usize) -> &mut Connection {
        let server = &self.server;
        self.connections[number].get_or_insert_with(|| connect(server))
    }

    /// Ends a connection, so that the next use makes another.
    pub fn forget(&mut self, number: usize) {
        self.connections[number] = None;
        self.await_ends();
    }

    /// Waits until the server knows of the connections that are gone: what it tells of subscriptions and clients would have them in.
    fn await_ends(&mut self) {
        let most = 1 + self.connections.iter().flatten().count();
        wait_until("the end of closed connections", || {
            let info = self.admin.ask(&[b"INFO", b"clients"]);
            let info = String::from_utf8_lossy(info.text().expect("INFO is a text"));
            let clients = info.lines().find_map(|line| line.strip_prefix("connected_clients:")?.parse::<usize>().ok());
            clients.expect("INFO has the field") <= most
        });
    }
}

fn connect(server: &Server) -> Connection {
    let stream = server.connect(Dialect::Redis, PATIENCE).expect("connected");
    Connection { reader: BufReader::new(stream) }
}

/// Tenon and redis-server; no test without the latter.
pub fn sides() -> Option<[Side; 2]> {
    let redis = oracle(Dialect::Redis, &SETTINGS)?;
    let tenon = Server::tenon(&SETTINGS).expect("tenon starts");
    Some([Side::new(tenon), Side::new(redis)])
}
