//! TLS as clients see it: Redis's settings, redis-cli, certificates that change while the server runs.
#![allow(missing_docs)]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tenon_client::{Resp, Value};
use tenon_testkit::patience::{PATIENCE, output_of};
use tenon_testkit::ports;
use tenon_testkit::server::{Folder, Server, find_on_path};
use tenon_testkit::slow_log::SlowLog;
use tenon_testkit::target::Dialect;

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tls").join(name);
    path.canonicalize().expect("it is there").display().to_string()
}

fn with<'a>(base: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [base, more].concat()
}

fn free_port() -> String {
    ports::free_port().to_string()
}

/// What a program says when it is told this; without the program the test says that it left that out.
fn told(program: &str, args: &[&str], input: &str) -> Option<String> {
    let Some(path) = find_on_path(program) else {
        assert!(std::env::var("TENON_REQUIRE_ORACLES").is_err(), "{program} is not installed");
        let _ = writeln!(std::io::stderr(), "skipped: {program} is not installed");
        return None;
    };
    let mut command = Command::new(path);
    let mut child = command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    child.stdin.take().expect("its input").write_all(input.as_bytes()).expect("it listens");
    let output = output_of(child, program);
    Some(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

fn config_set(server: &Server, name: &str, value: &str) -> Value {
    config_set_all(server, &[name, value])
}

fn config_set_all(server: &Server, pairs: &[&str]) -> Value {
    let address = server.address(Dialect::Redis).expect("RESP is spoken");
    let mut resp = Resp::connect_to(address, Some(PATIENCE)).expect("the server listens");
    let words: Vec<&[u8]> = ["CONFIG", "SET"].iter().chain(pairs).map(|word| word.as_bytes()).collect();
    resp.call(&words).expect("a reply")
}

#[test]
fn clients_of_redis_come_in_with_a_certificate() {
    let port = free_port();
    let (cert, key, ca) = (file("server.pem"), file("server.key.pem"), file("ca.pem"));
    let settings = [("tls-port", &*port), ("tls-cert-file", &cert), ("tls-key-file", &key), ("tls-ca-cert-file", &ca)];
    let server = Server::tenon(&settings).expect("tenon starts");
    let (own_cert, own_key) = (file("client.pem"), file("client.key.pem"));
    let base = ["--tls", "-h", "localhost", "-p", &port, "--cacert", &ca];
    let with_own = with(&base, &["--cert", &own_cert, "--key", &own_key, "SET", "k", "v"]);
    let Some(answer) = told("redis-cli", &with_own, "") else { return };
    assert_eq!(answer, "OK\n");
    // Without one nobody is served, unless the setting changes while the server runs: not by one that has failed.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = listener.local_addr().expect("it has one").port().to_string();
    let failing: [&[&str]; 3] = [
        &["tls-port", &taken, "tls-auth-clients", "no"],
        &["tls-auth-clients", "no", "tls-port", &taken],
        &["tls-port", "0", "port", &taken],
    ];
    for pairs in failing {
        let answer = told("redis-cli", &with(&base, &["GET", "k"]), "").expect("it is there");
        assert!(!answer.contains('v') || answer.contains("rror"), "{answer}");
        let Value::Error(error) = config_set_all(&server, pairs) else { panic!("{pairs:?} are taken") };
        assert!(String::from_utf8_lossy(&error).contains("Unable to listen"), "{pairs:?}");
        assert_eq!(told("redis-cli", &with_own, "").expect("it is there"), "OK\n", "{pairs:?}");
    }
    let answer = told("redis-cli", &with(&base, &["GET", "k"]), "").expect("it is there");
    assert!(!answer.contains('v') || answer.contains("rror"), "{answer}");
    for (clients, expected) in [("optional", "v\n"), ("no", "v\n")] {
        assert_eq!(config_set(&server, "tls-auth-clients", clients), Value::Simple(b"OK".to_vec()));
        assert_eq!(told("redis-cli", &with(&base, &["GET", "k"]), "").expect("it is there"), expected);
    }
    // What cannot be used changes nothing.
    for (name, value) in [("tls-cert-file", "/nowhere"), ("tls-key-file", &*own_key), ("tls-protocols", "TLSv1.1")] {
        let Value::Error(error) = config_set(&server, name, value) else { panic!("{name} {value} is taken") };
        let error = String::from_utf8_lossy(&error).into_owned();
        assert!(error.ends_with("Unable to update TLS configuration. Check server logs."), "{error}");
    }
    assert_eq!(told("redis-cli", &with(&base, &["GET", "k"]), "").expect("it is there"), "v\n");
    assert_eq!(config_set(&server, "tls-port", "0"), Value::Simple(b"OK".to_vec()));
    assert!(told("redis-cli", &with(&base, &["GET", "k"]), "").expect("it is there").contains("Could not connect"));
}

#[test]
fn terms_are_taken_back_whose_files_have_gone() {
    let folder = Folder::new().expect("a folder");
    let copy = |name: &str| {
        let path = folder.path.join(name);
        std::fs::copy(file(name), &path).expect("it is copied");
        path.display().to_string()
    };
    let (port, cert, key, ca) = (free_port(), copy("server.pem"), copy("server.key.pem"), copy("ca.pem"));
    let settings = [("tls-port", &*port), ("tls-cert-file", &cert), ("tls-key-file", &key), ("tls-ca-cert-file", &ca)];
    let server = Server::tenon(&settings).expect("tenon starts");
    let (known, new_cert, new_key) = (file("ca.pem"), file("server.pem"), file("server.key.pem"));
    let (own_cert, own_key) = (file("client.pem"), file("client.key.pem"));
    let base = ["--tls", "-h", "localhost", "-p", &port, "--cacert", &known];
    let with_own = with(&base, &["--cert", &own_cert, "--key", &own_key, "SET", "k", "v"]);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = listener.local_addr().expect("it has one").port().to_string();
    let no_longer_read = ["tls-auth-clients", "no", "port", &taken];
    let elsewhere = with(&["tls-cert-file", &new_cert, "tls-key-file", &new_key], &no_longer_read);
    for (gone, pairs) in [(vec![&ca], &no_longer_read[..]), (vec![&cert, &key], &elsewhere)] {
        gone.iter().for_each(|file| std::fs::remove_file(file).expect("it is ours"));
        let Value::Error(error) = config_set_all(&server, pairs) else { panic!("{pairs:?} are taken") };
        assert!(String::from_utf8_lossy(&error).contains("Unable to listen"), "{pairs:?}");
        let Some(answer) = told("redis-cli", &with_own, "") else { return };
        assert_eq!(answer, "OK\n", "{pairs:?}");
        let answer = told("redis-cli", &with(&base, &["GET", "k"]), "").expect("it is there");
        assert!(!answer.contains('v') || answer.contains("rror"), "{pairs:?}: {answer}");
    }
}

#[test]
fn who_comes_while_data_is_loaded_is_told_so() {
    let log = SlowLog::new();
    let (port, memcached_port, dir) = (free_port(), free_port(), log.folder.path.display().to_string());
    let (cert, key, ca) = (file("server.pem"), file("server.key.pem"), file("ca.pem"));
    let settings = [
        ("dir", &*dir),
        ("appendonly", "yes"),
        ("tls-port", &port),
        ("memcached-tls-port", &memcached_port),
        ("tls-cert-file", &cert),
        ("tls-key-file", &key),
        ("tls-auth-clients", "no"),
    ];
    std::thread::scope(|scope| {
        // It is there once it answers, which is when the data is.
        let server = scope.spawn(|| Server::tenon(&settings));
        let mut writer = log.writer();
        let get = ["--tls", "-h", "localhost", "-p", &port, "--cacert", &ca, "GET", "k"];
        let deadline = Instant::now() + PATIENCE;
        let told_in_time = || loop {
            let answer = told("redis-cli", &get, "")?;
            if !answer.contains("Could not connect") || Instant::now() > deadline {
                return Some(answer);
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        if let Some(answer) = told_in_time() {
            assert_eq!(answer, "LOADING Redis is loading the dataset in memory\n\n");
        }
        let address = format!("localhost:{memcached_port}");
        let args = ["s_client", "-connect", &address, "-CAfile", &ca, "-quiet", "-ign_eof"];
        if let Some(said) = told("openssl", &args, "get k\r\nquit\r\n") {
            assert!(said.contains("SERVER_ERROR loading"), "{said}");
        }
        writer.set("k");
        drop(writer);
        let server = server.join().expect("it does not panic").expect("tenon starts");
        if let Some(answer) = told("redis-cli", &get, "") {
            assert_eq!(answer, "v\n");
        }
        drop(server);
    });
}

#[test]
fn a_port_without_a_certificate_stops_the_start() {
    let cert = file("server.pem");
    for settings in [
        vec![("tls-port", "0"), ("memcached-tls-port", "20590")],
        vec![("memcached-tls-port", "20590"), ("tls-cert-file", &*cert), ("tls-auth-clients", "no")],
        vec![("memcached-tls-port", "20590"), ("tls-cert-file", "/nowhere"), ("tls-auth-clients", "no")],
    ] {
        let error = Server::tenon(&settings).expect_err("it cannot start").to_string();
        assert!(error.contains("tls-cert-file") || error.contains("Failed to load"), "{error}");
    }
}

/// A server that speaks memcached's protocols over TLS, and on which port.
fn memcached_over_tls() -> (Server, String) {
    let port = free_port();
    let (cert, key) = (file("server.pem"), file("server.key.pem"));
    let settings =
        [("memcached-tls-port", &*port), ("tls-cert-file", &cert), ("tls-key-file", &key), ("tls-auth-clients", "no")];
    (Server::tenon(&settings).expect("tenon starts"), port)
}

#[test]
fn memcached_is_spoken_too() {
    let (server, port) = memcached_over_tls();
    let (address, ca) = (format!("localhost:{port}"), file("ca.pem"));
    for version in ["-tls1_2", "-tls1_3"] {
        let args =
            ["s_client", "-connect", &address, "-CAfile", &ca, "-verify_return_error", "-quiet", "-ign_eof", version];
        let Some(said) = told("openssl", &args, "set k 0 0 2\r\nhi\r\nget k\r\nquit\r\n") else { return };
        assert!(said.contains("STORED\r\nVALUE k 0 2\r\nhi\r\nEND\r\n"), "{said}");
    }
    let args = ["s_client", "-connect", &address, "-CAfile", &ca, "-quiet", "-ign_eof"];
    for (size, told_back) in [("16kb", 16_384), ("64kb", 65_536)] {
        assert_eq!(config_set(&server, "tls-write-buffer", size), Value::Simple(b"OK".to_vec()));
        let said = told("openssl", &args, "stats settings\r\nquit\r\n").expect("it is there");
        assert!(said.contains(&format!("STAT ssl_wbuf_size {told_back}\r\n")), "{said}");
    }
}

#[test]
fn memcached_tells_how_many_handshakes_there_were() {
    let (server, port) = memcached_over_tls();
    let (address, ca) = (format!("localhost:{port}"), file("ca.pem"));
    let args = ["s_client", "-connect", &address, "-CAfile", &ca, "-quiet", "-ign_eof"];
    let stat = |name: &str| {
        let said = told("openssl", &args, "stats\r\nquit\r\n")?;
        let line = said.lines().find_map(|line| line.strip_prefix("STAT ")?.strip_prefix(name)?.strip_prefix(' '));
        Some(line.and_then(|number| number.trim().parse::<u64>().ok()))
    };
    let Some(sessions) = stat("ssl_new_sessions") else { return };
    // Who asks is the first, and then the second.
    assert_eq!((sessions, stat("ssl_new_sessions")), (Some(1), Some(Some(2))));
    assert_eq!(stat("ssl_handshake_errors"), Some(Some(0)));
    let mut stream = std::net::TcpStream::connect(format!("127.0.0.1:{port}")).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("it is no timeout of zero");
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("it is sent");
    // Until the server has hung up.
    let _ = std::io::Read::read_to_end(&mut stream, &mut Vec::new());
    assert_eq!((stat("ssl_handshake_errors"), stat("ssl_proto_errors")), (Some(Some(1)), Some(Some(0))));
    // Without sessions that could be resumed there is nothing to count.
    assert_eq!(config_set(&server, "tls-session-caching", "no"), Value::Simple(b"OK".to_vec()));
    assert_eq!(stat("ssl_new_sessions"), Some(None));
}

#[test]
fn sessions_take_memory_when_they_come() {
    let (server, port) = memcached_over_tls();
    let used_memory = || {
        let address = server.address(Dialect::Redis).expect("RESP is spoken");
        let mut resp = Resp::connect_to(address, Some(PATIENCE)).expect("the server listens");
        let Ok(Value::Bulk(info)) = resp.call(&[b"INFO", b"memory"]) else { panic!("no text") };
        let info = String::from_utf8(info.to_vec()).expect("it is text");
        let used = info.lines().find_map(|line| line.strip_prefix("used_memory:")).expect("it is told");
        used.trim().parse::<u64>().expect("it is a number")
    };
    let before = used_memory();
    assert_eq!(config_set(&server, "tls-session-cache-size", "2147483647"), Value::Simple(b"OK".to_vec()));
    assert!(used_memory() < before + (16 << 20), "{} bytes are used, {before} before", used_memory());
    // As with OpenSSL no number is no limit, and not no session.
    let (address, ca, folder) = (format!("localhost:{port}"), file("ca.pem"), std::env::temp_dir());
    for (size, version) in [("0", "-tls1_2"), ("0", "-tls1_3"), ("1", "-tls1_2")] {
        assert_eq!(config_set(&server, "tls-session-cache-size", size), Value::Simple(b"OK".to_vec()));
        let kept = folder.join(format!("tenon-tls-session-{}-{size}{version}", std::process::id()));
        let kept = kept.display().to_string();
        let mut answers = Vec::new();
        for option in ["-sess_out", "-sess_in"] {
            let args = ["s_client", "-connect", &address, "-CAfile", &ca, "-ign_eof", version, option, &kept];
            let Some(said) = told("openssl", &args, "version\r\nquit\r\n") else { return };
            answers.push(said);
        }
        std::fs::remove_file(&kept).expect("it is ours");
        assert!(answers[0].contains("\nNew, ") && answers[1].contains("\nReused, "), "{size} {version}: {answers:?}");
    }
}

#[test]
fn ciphers_are_chosen_by_lists_of_openssl() {
    let (server, port) = memcached_over_tls();
    let (address, ca) = (format!("localhost:{port}"), file("ca.pem"));
    for (list, cipher) in [
        ("DEFAULT:!MEDIUM:!CHACHA20:!AES256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ("ECDHE+CHACHA20:!aNULL:!MD5:@STRENGTH", "ECDHE-ECDSA-CHACHA20-POLY1305"),
    ] {
        assert_eq!(config_set(&server, "tls-ciphers", list), Value::Simple(b"OK".to_vec()));
        let args = ["s_client", "-connect", &address, "-CAfile", &ca, "-ign_eof", "-tls1_2"];
        let Some(said) = told("openssl", &args, "quit\r\n") else { return };
        assert!(said.contains(&format!("Cipher is {cipher}\n")), "{list}: {said}");
    }
    for list in ["RSA:!aNULL", "ALL:!ECDHE"] {
        assert!(matches!(config_set(&server, "tls-ciphers", list), Value::Error(_)), "{list}");
    }
}
