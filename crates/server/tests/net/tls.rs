//! TLS between the socket and the service: the same bytes come out that go in, whatever their number and order.

use crate::echo::pattern;
use crate::harness::{PATIENCE, Server, eventually};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuiteCommon, SupportedCipherSuite, Tls12CipherSuite, Tls13CipherSuite};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned, SupportedProtocolVersion};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use tenon_server::net::{Bind, CloseReason, Endpoint, FrontEnd, Listen, TlsEvent, TlsTerms};

fn file(name: &str) -> String {
    format!("{}/../../tests/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn certificate(name: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(file(name)).unwrap()
}

fn start() -> Server {
    start_with(16 * 1024)
}

fn start_with(write_buffer: usize) -> Server {
    start_telling(write_buffer, |_| {})
}

fn start_telling(write_buffer: usize, tell: impl Fn(TlsEvent) + Send + Sync + 'static) -> Server {
    start_encrypting(ring::default_provider(), write_buffer, tell)
}

fn start_encrypting(
    provider: CryptoProvider,
    write_buffer: usize,
    tell: impl Fn(TlsEvent) + Send + Sync + 'static,
) -> Server {
    start_on(2, provider, write_buffer, tell)
}

fn start_on(
    workers: usize,
    provider: CryptoProvider,
    write_buffer: usize,
    tell: impl Fn(TlsEvent) + Send + Sync + 'static,
) -> Server {
    let endpoint = Endpoint::Tls { bind: Bind::parse("127.0.0.1"), port: 0 };
    let server = Server::start_with(workers, vec![Listen { front_end: FrontEnd::Resp, endpoint }]);
    let key = PrivateKeyDer::from_pem_file(file("server.key.pem")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(provider)).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![certificate("server.pem")], key);
    let terms = TlsTerms { config: Arc::new(config.unwrap()), write_buffer, tell: Arc::new(tell) };
    *server.echo.tls.lock().unwrap() = Some(terms);
    server
}

type Client = BufReader<StreamOwned<ClientConnection, TcpStream>>;

/// A socket on which nothing is waited for without end.
fn socket(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address(FrontEnd::Resp)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn connect(server: &Server) -> Client {
    let stream = socket(server);
    BufReader::new(StreamOwned::new(client_connection(), stream))
}

fn client_config() -> Arc<ClientConfig> {
    Arc::new(ClientConfig::builder().with_root_certificates(roots()).with_no_client_auth())
}

fn roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(certificate("ca.pem")).unwrap();
    roots
}

fn client_connection() -> ClientConnection {
    ClientConnection::new(client_config(), ServerName::try_from("localhost").unwrap()).unwrap()
}

/// A socket that notes what is read from it.
struct Noted {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Read for Noted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.stream.read(buffer)?;
        self.read.extend_from_slice(&buffer[..len]);
        Ok(len)
    }
}

impl Write for Noted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Bytes in clear of each of these records; TLS 1.3 adds 17 to them.
fn in_clear(mut records: &[u8]) -> Vec<usize> {
    let mut lengths = Vec::new();
    while let [23, 3, 3, high, low, behind @ ..] = records {
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        lengths.push(len - 17);
        records = &behind[len..];
    }
    assert!(records.is_empty(), "what is left is no record of data: {} bytes", records.len());
    lengths
}

fn line(client: &mut Client) -> String {
    let mut line = String::new();
    client.read_line(&mut line).unwrap();
    line
}

#[test]
fn others_come_before_the_handshakes_of_many() {
    let server = start_on(1, ring::default_provider(), 16 * 1024, |_| {});
    let (mut asks, mut holds) = (connect(&server), connect(&server));
    for client in [&mut asks, &mut holds] {
        client.get_mut().write_all(b"hello\n").unwrap();
        assert_eq!(line(client), "hello\n");
    }
    let many: Vec<_> = (0..100).map(|_| socket(&server)).collect();
    eventually("all to be known", || (server.echo.peers.lock().unwrap().len() == 102).then_some(()));
    holds.get_mut().write_all(b"hold it\n").unwrap();
    eventually("the worker to be held", || (server.echo.holding.load(Ordering::SeqCst) == 1).then_some(()));
    for mut socket in &many {
        socket.write_all(b"this is no handshake, which ends the connection").unwrap();
    }
    asks.get_mut().write_all(b"closed\n").unwrap();
    server.echo.release("it");
    let closed: usize = line(&mut asks).trim_end().parse().unwrap();
    assert!(closed < 50, "{closed} handshakes came before");
    assert_eq!(line(&mut holds), "held it\n");
    eventually("all to be closed", || (server.echo.closed.lock().unwrap().len() == 100).then_some(()));
}

#[test]
fn lines_come_back() {
    let server = start();
    let mut client = connect(&server);
    for text in ["hello\n", "once more\n"] {
        client.get_mut().write_all(text.as_bytes()).unwrap();
        assert_eq!(line(&mut client), text);
    }
    // Many in one record, and one in many records.
    client.get_mut().write_all("x\n".repeat(5_000).as_bytes()).unwrap();
    for _ in 0..5_000 {
        assert_eq!(line(&mut client), "x\n");
    }
    for piece in ["in ", "three ", "pieces\n"] {
        client.get_mut().write_all(piece.as_bytes()).unwrap();
        client.get_mut().flush().unwrap();
    }
    assert_eq!(line(&mut client), "in three pieces\n");
}

#[test]
fn much_output_waits_for_who_reads_slowly() {
    let server = start();
    let mut client = connect(&server);
    const LENGTH: usize = 30 << 20;
    let sent = || server.echo.sent.load(Ordering::SeqCst);
    client.get_mut().write_all(format!("big {LENGTH}\nafter\n").as_bytes()).unwrap();
    eventually("output to wait", || {
        server.echo.unsent.lock().unwrap().values().any(|&bytes| bytes > 1 << 20).then_some(())
    });
    assert!(sent() < LENGTH - (1 << 20));
    let mut got = vec![0; LENGTH + 3];
    client.read_exact(&mut got).unwrap();
    assert!(got[0] == b'<' && got[1..=LENGTH] == pattern(LENGTH) && got[LENGTH + 1..] == *b">\n");
    assert_eq!(line(&mut client), "after\n");
    eventually("all to be counted", || (sent() == LENGTH + ">\n<after\n".len()).then_some(()));
    // Nothing waits any more, and that is noted.
    eventually("the output to have left", || {
        server.echo.unsent.lock().unwrap().values().all(|&bytes| bytes == 0).then_some(())
    });
}

#[test]
fn output_is_gathered_up_to_the_write_buffer() {
    // The answer is three pieces: a byte before the pattern, and two behind.
    const LENGTH: usize = 100_000;
    for (write_buffer, record) in [(1024, 1024), (4096, 4096), (16 << 10, 16 << 10), (20 << 10, 16 << 10)] {
        let server = start_with(write_buffer);
        let stream = socket(&server);
        let mut client = StreamOwned::new(client_connection(), Noted { stream, read: Vec::new() });
        client.write_all(b"hello\n").unwrap();
        client.read_exact(&mut [0; 6]).unwrap();
        client.sock.read.clear();
        client.write_all(format!("big {LENGTH}\n").as_bytes()).unwrap();
        let mut got = vec![0; LENGTH + 3];
        client.read_exact(&mut got).unwrap();
        assert!(got[0] == b'<' && got[1..=LENGTH] == pattern(LENGTH) && got[LENGTH + 1..] == *b">\n");
        let mut expected = Vec::new();
        let mut left = LENGTH + 3;
        while left > 0 {
            // What is gathered is cut into records, the last of which has what is left of it.
            let mut gathered = left.min(write_buffer);
            left -= gathered;
            while gathered > 0 {
                expected.push(gathered.min(record));
                gathered -= gathered.min(record);
            }
        }
        assert_eq!(in_clear(&client.sock.read), expected, "{write_buffer}");
    }
}

#[test]
fn much_input_arrives_whole() {
    let server = start();
    let mut client = connect(&server);
    let long = vec![b'l'; 3 << 20];
    let mut sent = long.clone();
    sent.push(b'\n');
    client.get_mut().write_all(&sent).unwrap();
    let mut got = vec![0; sent.len()];
    client.read_exact(&mut got).unwrap();
    assert!(got == sent);
    // No room is of use for what is still to be opened.
    let sent = [b"fill 3000000\n", &pattern(3_000_000)[..]].concat();
    client.get_mut().write_all(&sent).unwrap();
    assert_eq!(line(&mut client), "filled\n");
    assert_eq!(server.echo.filled.load(Ordering::Relaxed), 0);
}

#[test]
fn the_end_is_said_by_either_side() {
    let server = start();
    let mut client = connect(&server);
    client.get_mut().write_all(b"quit\n").unwrap();
    assert_eq!(line(&mut client), "bye\n");
    // An end without close_notify would be an error here.
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
    let mut client = connect(&server);
    client.get_mut().write_all(b"hello\n").unwrap();
    assert_eq!(line(&mut client), "hello\n");
    client.get_mut().conn.send_close_notify();
    client.get_mut().flush().unwrap();
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
    eventually("both to be closed", || {
        (*server.echo.closed.lock().unwrap() == [CloseReason::Service, CloseReason::PeerClosed]).then_some(())
    });
}

/// What encrypts, and thinks of each key as used up after so many records.
fn with_records_per_key(records: u64) -> CryptoProvider {
    let mut provider = ring::default_provider();
    for suite in &mut provider.cipher_suites {
        // The library wants them for ever, and there are few.
        *suite = match *suite {
            SupportedCipherSuite::Tls12(suite) => {
                let common = CipherSuiteCommon { confidentiality_limit: records, ..suite.common };
                SupportedCipherSuite::Tls12(Box::leak(Box::new(Tls12CipherSuite { common, ..*suite })))
            }
            SupportedCipherSuite::Tls13(suite) => {
                let common = CipherSuiteCommon { confidentiality_limit: records, ..suite.common };
                SupportedCipherSuite::Tls13(Box::leak(Box::new(Tls13CipherSuite { common, ..*suite })))
            }
        };
    }
    provider
}

fn connect_by(server: &Server, version: &'static SupportedProtocolVersion) -> Client {
    let stream = socket(server);
    let config = ClientConfig::builder_with_protocol_versions(&[version]);
    let config = Arc::new(config.with_root_certificates(roots()).with_no_client_auth());
    let connection = ClientConnection::new(config, ServerName::try_from("localhost").unwrap()).unwrap();
    BufReader::new(StreamOwned::new(connection, stream))
}

#[test]
fn who_has_used_up_a_key_gets_another_or_is_closed() {
    const RECORDS: usize = 20;
    let server = start_encrypting(with_records_per_key(RECORDS as u64), 1024, |_| {});
    let mut client = connect_by(&server, &TLS13);
    let answers = |client: &mut Client| {
        let mut answers = 0;
        for count in 0..5 * RECORDS {
            let text = format!("{count}\n");
            if client.get_mut().write_all(text.as_bytes()).is_err() || line(client) != text {
                break;
            }
            answers += 1;
        }
        answers
    };
    assert_eq!(answers(&mut client), 5 * RECORDS);
    // Also within one answer, and in each of those that are gathered.
    const LENGTH: usize = 100_000;
    client.get_mut().write_all(format!("big {LENGTH}\n").as_bytes()).unwrap();
    let mut got = vec![0; LENGTH + 3];
    client.read_exact(&mut got).unwrap();
    assert!(got[1..=LENGTH] == pattern(LENGTH));
    // TLS 1.2 has no other key. The first record ended the handshake.
    let mut client = connect_by(&server, &TLS12);
    assert_eq!(answers(&mut client), RECORDS - 1);
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0, "the end is said");
    eventually("the connection to be closed", || {
        matches!(server.echo.closed.lock().unwrap()[..], [CloseReason::Failed(_)]).then_some(())
    });
    let mut client = connect_by(&server, &TLS12);
    client.get_mut().write_all(format!("big {LENGTH}\nnot any more\n").as_bytes()).unwrap();
    let mut got = Vec::new();
    client.read_to_end(&mut got).unwrap();
    assert_eq!(got.len(), (RECORDS - 1) * 1024);
    eventually("the other to be closed", || {
        matches!(server.echo.closed.lock().unwrap()[..], [_, CloseReason::Failed(_)]).then_some(())
    });
}

#[test]
fn an_end_that_comes_with_the_last_request_is_heard() {
    let server = start();
    for version in [&TLS12, &TLS13] {
        let mut client = connect_by(&server, version);
        client.get_mut().write_all(b"hello\n").unwrap();
        assert_eq!(line(&mut client), "hello\n");
        let tls = client.get_mut();
        tls.conn.writer().write_all(b"last\n").unwrap();
        tls.conn.send_close_notify();
        let mut sealed = Vec::new();
        while tls.conn.wants_write() {
            tls.conn.write_tls(&mut sealed).unwrap();
        }
        tls.sock.write_all(&sealed).unwrap();
        assert_eq!(line(&mut client), "last\n");
        assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
    }
}

#[test]
fn what_is_no_tls_ends_the_connection_alone() {
    let server = start();
    let mut stream = socket(&server);
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    // A TLS alert, or nothing where the connection is reset first.
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.is_empty() || answer[0] == 21, "{answer:?}");
    let mut client = connect(&server);
    client.get_mut().write_all(b"hello\n").unwrap();
    assert_eq!(line(&mut client), "hello\n");
    // Without a certificate nobody can come in any more, and who is in stays.
    *server.echo.tls.lock().unwrap() = None;
    assert!(connect(&server).get_mut().write_all(b"hello\n").is_err());
    client.get_mut().write_all(b"still\n").unwrap();
    assert_eq!(line(&mut client), "still\n");
}

#[test]
fn what_becomes_of_handshakes_is_told() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&told);
    let server = start_telling(16 * 1024, move |event| events.lock().unwrap().push(event));
    let wait_for = |count| {
        eventually("the events", || {
            let told = told.lock().unwrap();
            (told.len() == count).then(|| told.clone())
        })
    };
    // Who says nothing has not failed.
    drop(socket(&server));
    let mut client = connect(&server);
    client.get_mut().write_all(b"hello\n").unwrap();
    assert_eq!(line(&mut client), "hello\n");
    assert_eq!(wait_for(1), [TlsEvent::NewSession]);
    let mut stream = socket(&server);
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    assert_eq!(wait_for(2)[1], TlsEvent::HandshakeFailed);
    client.get_mut().sock.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    assert_eq!(wait_for(3)[2], TlsEvent::Failed);
    // A second session of the same client is the first one gone on with.
    let tls = client_config();
    for count in [4, 4] {
        let connection = ClientConnection::new(Arc::clone(&tls), ServerName::try_from("localhost").unwrap()).unwrap();
        let mut client = BufReader::new(StreamOwned::new(connection, socket(&server)));
        client.get_mut().write_all(b"hello\n").unwrap();
        assert_eq!(line(&mut client), "hello\n");
        assert_eq!(wait_for(count)[count - 1], TlsEvent::NewSession);
    }
}
