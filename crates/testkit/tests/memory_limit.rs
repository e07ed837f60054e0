//! Several workers at the memory limit: a cache that may drop any key takes every write.

use std::time::Duration;
use tenon_client::{Resp, Value};
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

/// Far longer than anything takes: a test that reaches it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
const CLIENTS: usize = 4;
const ROUNDS: usize = 3_000;
/// Written at a time by each client: several events' worth of the room that workers take of one another.
const AT_ONCE: usize = 32;

#[test]
fn no_write_is_refused_where_any_key_may_go() {
    for policy in ["allkeys-lru", "allkeys-random", "allkeys-tenon"] {
        let settings = [("workers", "2"), ("maxmemory", "12mb"), ("maxmemory-policy", policy)];
        let server = Server::tenon(&settings).expect("tenon starts");
        let address = server.address(Dialect::Redis).expect("RESP is spoken");
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                scope.spawn(move || {
                    let mut connection = Resp::connect_to(address, Some(PATIENCE)).expect("the server listens");
                    (0..ROUNDS).for_each(|round| write(&mut connection, &format!("{client}:{round}")));
                });
            }
        });
        let mut connection = Resp::connect_to(address, Some(PATIENCE)).expect("the server listens");
        let Value::Int(keys) = connection.call(&[b"DBSIZE"]).expect("a reply") else { panic!("it is a number") };
        assert!((keys as usize) < CLIENTS * ROUNDS * AT_ONCE / 2, "{policy}: the limit was never reached, {keys} keys");
    }
}

/// Writes keys of a name of their own, all at once, and wants each to be taken.
fn write(connection: &mut Resp, name: &str) {
    let keys: Vec<String> = (0..AT_ONCE).map(|number| format!("{name}:{number}")).collect();
    let value = [b'v'; 100];
    let commands: Vec<[&[u8]; 3]> = keys.iter().map(|key| [&b"SET"[..], key.as_bytes(), &value]).collect();
    let commands: Vec<&[&[u8]]> = commands.iter().map(|command| &command[..]).collect();
    for answer in connection.pipeline(&commands).expect("replies") {
        assert_eq!(answer, Value::Simple(b"OK".to_vec()));
    }
}
