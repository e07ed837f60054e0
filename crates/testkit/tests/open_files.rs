//! The limit on open files and `maxclients`: whatever the system allows, clients leave the server what it needs itself.

use std::io::{Read, Write};
use tenon_client::{Resp, Stream, Value};
use tenon_testkit::info;
use tenon_testkit::patience::{PATIENCE, wait_until};
use tenon_testkit::server::{Server, StartError};
use tenon_testkit::target::Dialect;

/// More than any system allows, so that what it does allow shows.
const TOO_MANY: &str = "4000000000";

fn connect(server: &Server) -> Resp {
    Resp::connect_to(server.address(Dialect::Redis).expect("RESP is spoken"), Some(PATIENCE)).expect("it listens")
}

fn says(resp: &mut Resp, command: &str) -> Value {
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    resp.call(&words).expect("a reply")
}

fn max_clients(resp: &mut Resp) -> u64 {
    let Value::Array(pair) = says(resp, "CONFIG GET maxclients") else { panic!("it is a list") };
    let [_, Value::Bulk(number)] = &pair[..] else { panic!("it is a name and a value: {pair:?}") };
    String::from_utf8_lossy(number).parse().expect("it is a number")
}

#[test]
fn as_many_clients_as_may_be_leave_what_a_save_takes() {
    let settings = [("workers", "24"), ("maxclients", "100"), ("appendonly", "yes")];
    let server = Server::tenon_with_open_files(128, &settings).expect("tenon starts");
    let mut first = connect(&server);
    let most = max_clients(&mut first);
    // Whoever may not raise the limit has fewer.
    assert!(most == 100 || (1..128 - 24 * 3).contains(&most), "{most}");
    let mut held: Vec<Stream> = Vec::new();
    loop {
        let mut stream = server.connect(Dialect::Redis, PATIENCE).expect("it listens");
        let mut said = [0; 5];
        // Who is refused may not be able to send any more, nor read why.
        if stream.write_all(b"PING\r\n").and_then(|()| stream.read_exact(&mut said)).is_err() || &said == b"-ERR " {
            break;
        }
        assert_eq!(&said, b"+PONG");
        held.push(stream);
        assert!((held.len() as u64) < most, "nobody is refused");
    }
    // The first one of those at the start may still have been there.
    assert!(held.len() as u64 + 4 >= most, "{} of {most}", held.len());
    for command in ["SAVE", "SET k 1", "BGREWRITEAOF"] {
        assert!(!matches!(says(&mut first, command), Value::Error(_)), "{command}");
    }
    wait_until("the end of the rewrite", || info::field(&mut first, "persistence", "aof_rewrite_in_progress") == "0");
    assert_eq!(info::field(&mut first, "persistence", "aof_last_bgrewrite_status"), "ok");
    assert_eq!(says(&mut first, "SET k 2"), Value::Simple(b"OK".to_vec()));
}

#[test]
fn at_the_start_maxclients_becomes_what_the_system_allows() {
    let server = Server::tenon(&[("workers", "3"), ("maxclients", TOO_MANY)]).expect("tenon starts");
    let mut resp = connect(&server);
    let most = max_clients(&mut resp);
    assert!(most < 4_000_000_000);
    assert!(server.log().contains(&format!("maxclients is now {most}")), "{}", server.log());
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.pid())).expect("the process is there");
    let open_files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("there is a limit");
    let limit: u64 = open_files.split_whitespace().next().expect("a word").parse().expect("a number");
    // Two for each worker, and one for each of the places that it listens on.
    assert_eq!(most + 32 + 3 * 3 + 3, limit);
}

#[test]
fn config_set_takes_what_the_system_allows_and_says_how_much_that_is() {
    let server = Server::tenon_with_open_files(256, &[("workers", "1"), ("maxclients", "20")]).expect("tenon starts");
    let mut resp = connect(&server);
    let Value::Error(error) = says(&mut resp, "CONFIG SET maxclients 4000000000") else { panic!("it is too many") };
    let error = String::from_utf8_lossy(&error).into_owned();
    let most = error.strip_prefix(
        "ERR CONFIG SET failed (possibly related to argument 'maxclients') - The operating system is not able to \
         handle the specified number of clients, try with ",
    );
    let most: u64 = most.expect(&error).parse().expect("a number");
    assert_eq!(max_clients(&mut resp), 20);
    assert_eq!(says(&mut resp, &format!("CONFIG SET maxclients {most}")), Value::Simple(b"OK".to_vec()));
    assert_eq!(max_clients(&mut resp), most);
    assert!(matches!(says(&mut resp, &format!("CONFIG SET maxclients {}", most + 1)), Value::Error(_)));
}

#[test]
fn with_too_few_for_a_single_client_it_does_not_start() {
    // Where root raises the limit it does.
    if let Err(StartError::Failed(why)) = Server::tenon_with_open_files(36, &[("workers", "2")]) {
        assert!(why.contains("too few for a single client"), "{why}");
    }
}
