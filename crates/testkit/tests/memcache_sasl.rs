//! memcached's binary protocol where clients must say who they are. The answers to PLAIN are those of memcached 1.6.18 and
//! 1.6.45 with a database of Cyrus SASL, which is not set up where the tests run.
#![allow(missing_docs)]

use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use std::io::{Read, Write};
use tenon_client::Stream;
use tenon_testkit::patience::PATIENCE;
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

const GET: u8 = 0x00;
const SET: u8 = 0x01;
const VERSION: u8 = 0x0b;
const LIST: u8 = 0x20;
const AUTH: u8 = 0x21;
const STEP: u8 = 0x22;

const DONE: u16 = 0;
const FAILED: u16 = 0x20;
const CONTINUE: u16 = 0x21;

fn request(opcode: u8, extras: &[u8], key: &[u8], data: &[u8]) -> Vec<u8> {
    announced(opcode, extras, key, data, data.len())
}

/// A request that says that its data is so long.
fn announced(opcode: u8, extras: &[u8], key: &[u8], data: &[u8], len: usize) -> Vec<u8> {
    let mut out = vec![0x80, opcode];
    out.extend((key.len() as u16).to_be_bytes());
    out.extend([extras.len() as u8, 0, 0, 0]);
    out.extend(((extras.len() + key.len() + len) as u32).to_be_bytes());
    out.extend([0; 12]);
    [&out[..], extras, key, data].concat()
}

struct Client(Stream);

impl Client {
    fn new(server: &Server) -> Client {
        Client(server.connect(Dialect::Memcache, PATIENCE).expect("connected"))
    }

    /// Sends bytes; gives the status and the body of the next answer, or nothing when the server has closed.
    fn ask(&mut self, bytes: &[u8]) -> Option<(u16, String)> {
        // A server that has closed meanwhile is no failure; what it said is read next.
        let _ = self.0.write_all(bytes);
        let mut header = [0; 24];
        self.0.read_exact(&mut header).ok()?;
        let mut body = vec![0; u32::from_be_bytes(header[8..12].try_into().unwrap()) as usize];
        self.0.read_exact(&mut body).expect("the body is as long as its header says");
        Some((u16::from_be_bytes([header[6], header[7]]), body.escape_ascii().to_string()))
    }

    fn is_asked(&mut self, bytes: &[u8], status: u16, body: &str) {
        assert_eq!(self.ask(bytes), Some((status, body.to_owned())), "{}", bytes.escape_ascii());
    }
}

fn start() -> Server {
    Server::tenon(&[("memcached-auth", "yes"), ("requirepass", "secret")]).expect("tenon starts")
}

#[test]
fn who_says_rightly_who_it_is_comes_in() {
    let server = start();
    let mut client = Client::new(&server);
    client.is_asked(&request(LIST, b"", b"", b""), DONE, "PLAIN");
    assert_eq!(client.ask(&request(VERSION, b"", b"", b"")).expect("an answer").0, DONE);
    client.is_asked(&request(AUTH, b"", b"PLAIN", b"\0default\0wrong"), FAILED, "Auth failure.");
    client.is_asked(&request(AUTH, b"", b"CRAM-MD5", b"\0default\0secret"), FAILED, "Auth failure.");
    client.is_asked(&request(STEP, b"", b"PLAIN", b"\0default\0secret"), FAILED, "Auth failure.");
    client.is_asked(&request(AUTH, b"", b"PLAIN", b""), CONTINUE, "");
    client.is_asked(&request(STEP, b"", b"any", b"\0default\0secret"), DONE, "Authenticated");
    client.is_asked(&request(SET, &[0; 8], b"k", b"value"), DONE, "");
    client.is_asked(&request(GET, b"", b"k", b""), DONE, "\\x00\\x00\\x00\\x00value");
    // In one packet with what it is for.
    let mut other = Client::new(&server);
    let both = [request(AUTH, b"", b"PLAIN", b"default\0default\0secret"), request(GET, b"", b"k", b"")].concat();
    other.is_asked(&both, DONE, "Authenticated");
    other.is_asked(b"", DONE, "\\x00\\x00\\x00\\x00value");
    // Who asks for the ways has to say again who it is; how it writes their names does not matter.
    other.is_asked(&request(LIST, b"", b"", b""), DONE, "PLAIN");
    other.is_asked(&request(AUTH, b"", b"plain", b"\0default\0secret"), DONE, "Authenticated");
    other.is_asked(&request(GET, b"", b"k", b""), DONE, "\\x00\\x00\\x00\\x00value");
    // Another attempt that fails makes it a stranger again.
    other.is_asked(&request(AUTH, b"", b"PLAIN", b"\0default\0no"), FAILED, "Auth failure.");
    other.is_asked(&request(GET, b"", b"k", b""), FAILED, "Auth failure.");
    assert_eq!(other.ask(b""), None);
}

/// A name and the digest of a challenge, as RFC 2195 has them.
fn signed(name: &str, password: &str, challenge: &str) -> Vec<u8> {
    let mac = Hmac::<Md5>::new_from_slice(password.as_bytes()).expect("a key of any length");
    let digest = mac.chain_update(challenge).finalize().into_bytes();
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{name} {digits}").into_bytes()
}

#[test]
fn who_stands_in_the_file_may_sign_a_challenge() {
    let path = std::env::temp_dir().join(format!("tenon-sasl-{}", std::process::id()));
    std::fs::write(&path, "user@realm:pass\nother:word:realm\n").expect("a file of passwords");
    let file = path.to_str().expect("a path of text");
    let settings = [("memcached-auth", "yes"), ("memcached-auth-file", file), ("requirepass", "secret")];
    let server = Server::tenon(&settings).expect("tenon starts");
    std::fs::remove_file(&path).expect("it was written here");
    let mut client = Client::new(&server);
    client.is_asked(&request(LIST, b"", b"", b""), DONE, "CRAM-MD5 PLAIN");
    let challenge = |client: &mut Client| {
        let (status, challenge) = client.ask(&request(AUTH, b"", b"CRAM-MD5", b"")).expect("an answer");
        assert_eq!(status, CONTINUE);
        challenge
    };
    let step = |data: &[u8]| request(STEP, b"", b"CRAM-MD5", data);
    let first = challenge(&mut client);
    client.is_asked(&step(&signed("user@realm", "wrong", &first)), FAILED, "Auth failure.");
    // A challenge is good for one answer.
    client.is_asked(&step(&signed("user@realm", "pass", &first)), FAILED, "Auth failure.");
    let second = challenge(&mut client);
    assert_ne!(second, first);
    client.is_asked(&step(&signed("user@realm", "pass", &first)), FAILED, "Auth failure.");
    let third = challenge(&mut client);
    client.is_asked(&step(&signed("user@realm", "pass", &third)), DONE, "Authenticated");
    client.is_asked(&request(SET, &[0; 8], b"k", b"value"), DONE, "");
    // What stands behind a second colon is no part of the password.
    let mut other = Client::new(&server);
    let asked = challenge(&mut other);
    other.is_asked(&step(&signed("other", "word", &asked)), DONE, "Authenticated");
    // Of a user's password only a hash is known; PLAIN is there beside.
    let mut user = Client::new(&server);
    let asked = challenge(&mut user);
    user.is_asked(&step(&signed("default", "secret", &asked)), FAILED, "Auth failure.");
    user.is_asked(&request(AUTH, b"", b"CRAM-MD5", &signed("user@realm", "pass", "")), FAILED, "Auth failure.");
    for odd in [&b""[..], b"user@realm", b"user@realm 00", &[b'x'; 5_000], b"\0default\0secret"] {
        challenge(&mut user);
        user.is_asked(&step(odd), FAILED, "Auth failure.");
    }
    user.is_asked(&request(AUTH, b"", b"PLAIN", b"\0default\0secret"), DONE, "Authenticated");
}

#[test]
fn a_stranger_is_refused_and_closed_and_changes_nothing() {
    let server = start();
    let mut friend = Client::new(&server);
    friend.is_asked(&request(AUTH, b"", b"PLAIN", b"\0default\0secret"), DONE, "Authenticated");
    friend.is_asked(&request(SET, &[0; 8], b"k", b"value"), DONE, "");
    for bytes in [
        request(GET, b"", b"k", b""),
        request(SET, &[0; 8], b"k", b""),
        request(0x99, b"", b"", b""),
        request(0x08, b"", b"", b""),
        request(0x0a, b"", b"", b""),
        request(0x10, b"", b"", b""),
        // What is announced is not awaited, and a set that is too large removes nothing.
        announced(SET, &[0; 8], b"k", b"", 100_000_000),
        announced(SET, &[0; 8], b"k", b"", 2_000_000_000),
        announced(0x0e, b"", b"k", b"", 100_000_000),
    ] {
        let mut stranger = Client::new(&server);
        stranger.is_asked(&bytes, FAILED, "Auth failure.");
        assert_eq!(stranger.ask(b""), None, "{}", bytes.escape_ascii());
    }
    // The name of no way, and more than anybody has to say.
    let mut stranger = Client::new(&server);
    stranger.is_asked(&request(AUTH, b"", &[b'x'; 33], b"data"), 4, "Invalid arguments");
    stranger.is_asked(&request(AUTH, b"", b"PLAIN", &[b'p'; 100_000]), FAILED, "Auth failure.");
    stranger.is_asked(&request(AUTH, b"", b"PLAIN", b"\0\0\0\0"), FAILED, "Auth failure.");
    friend.is_asked(&request(GET, b"", b"k", b""), DONE, "\\x00\\x00\\x00\\x00value");
}

#[test]
fn a_user_who_loses_its_rights_is_closed() {
    let server = start();
    let address = server.address(Dialect::Redis).expect("RESP is spoken");
    let mut resp = tenon_client::Resp::connect_to(address, Some(PATIENCE)).expect("connected");
    let mut redis = |words: &[&[u8]]| resp.call(words).expect("a reply");
    redis(&[b"AUTH", b"secret"]);
    redis(&[b"ACL", b"SETUSER", b"cache", b"on", b">pw", b"~*", b"&*", b"+@all"]);
    redis(&[b"ACL", b"SETUSER", b"less", b"on", b">pw", b"~*", b"&*", b"+@read"]);
    let mut client = Client::new(&server);
    client.is_asked(&request(AUTH, b"", b"PLAIN", b"\0less\0pw"), FAILED, "Auth failure.");
    client.is_asked(&request(AUTH, b"", b"PLAIN", b"\0cache\0pw"), DONE, "Authenticated");
    client.is_asked(&request(SET, &[0; 8], b"k", b"value"), DONE, "");
    redis(&[b"ACL", b"SETUSER", b"cache", b"-flushall"]);
    assert_eq!(client.ask(&request(GET, b"", b"k", b"")), None);
}
