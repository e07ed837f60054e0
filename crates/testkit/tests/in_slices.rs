//! What a client is answered whose command runs in slices, over TCP: all of it, in its order, also where the client has
//! said that it sends no more.

use tenon_client::{Address, Resp, Value};
use tenon_testkit::patience::PATIENCE;
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

const KEYS: usize = 10_000;

fn connect(address: &Address) -> Resp {
    Resp::connect_to(address, Some(PATIENCE)).expect("the server listens")
}

#[test]
fn keys_is_answered_in_its_order_and_after_the_clients_end() {
    let server = Server::tenon(&[("workers", "2")]).expect("tenon starts");
    let address = server.address(Dialect::Redis).expect("RESP is spoken");
    let mut client = connect(address);
    let names: Vec<String> = (0..KEYS).map(|number| format!("key:{number}")).collect();
    for names in names.chunks(1_000) {
        let commands: Vec<[&[u8]; 3]> = names.iter().map(|name| [&b"SET"[..], name.as_bytes(), b"v"]).collect();
        let commands: Vec<&[&[u8]]> = commands.iter().map(|command| &command[..]).collect();
        client.pipeline(&commands).expect("all are answered");
    }
    let replies = client.pipeline(&[&[b"KEYS", b"*"], &[b"DEL", b"key:7"], &[b"KEYS", b"key:7"], &[b"PING"]]);
    let replies = replies.expect("all are answered");
    assert!(matches!(&replies[0], Value::Array(listed) if listed.len() == KEYS), "it is answered first, and whole");
    assert_eq!(replies[1..], [Value::Int(1), Value::Array(vec![]), Value::Simple(b"PONG".to_vec())]);
    // As `printf 'KEYS *\r\n' | nc` does.
    client.send(&[b"KEYS", b"*"]).expect("it is sent");
    client.stream().finish_sending().expect("it is connected");
    assert!(matches!(client.receive(), Ok(Value::Array(listed)) if listed.len() == KEYS - 1));
}
