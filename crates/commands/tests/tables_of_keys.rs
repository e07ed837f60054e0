//! What INFO says of the memory of tables: of keys alone, whatever the keys hold. In a process of its own, as what is
//! counted is all of a process's.

mod one_worker;

use one_worker::Server;
use std::time::{Duration, Instant};
use std::{iter, thread};
use tenon_engine::wire::resp::Value;

fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<Vec<u8>> {
    words.into_iter().map(|word| word.as_bytes().to_vec()).collect()
}

fn overhead(server: &mut Server) -> usize {
    let Value::Bulk(info) = server.run(&words(["INFO", "memory"])) else { panic!("INFO gives text") };
    let info = String::from_utf8(info).expect("INFO gives text");
    let line = info.lines().find_map(|line| line.strip_prefix("used_memory_overhead:"));
    line.and_then(|bytes| bytes.parse().ok()).expect("the field is there")
}

#[test]
fn members_take_no_part_of_the_tables_of_keys() {
    const COUNT: usize = 50_000;
    let mut server = Server::new(1, &[]);
    let empty = overhead(&mut server);
    let names: Vec<String> = (0..COUNT).map(|number| format!("name:{number}")).collect();
    let added = server.run(&words(["SADD", "set"].into_iter().chain(names.iter().map(String::as_str))));
    assert_eq!(added, Value::Int(COUNT as i64));
    let of_one = overhead(&mut server);
    assert!(of_one < empty + 4_096, "{of_one}, {empty} before");
    let pairs = names.iter().flat_map(|name| [name.as_str(), "1"]);
    server.run(&words(iter::once("MSET").chain(pairs)));
    let of_all = overhead(&mut server);
    assert!(of_all > of_one + 8 * COUNT && of_all < of_one + 24 * COUNT, "{of_all}, {of_one} before");
    server.run(&words(["FLUSHALL"]));
    // So many are freed in the background.
    let deadline = Instant::now() + Duration::from_secs(60);
    while overhead(&mut server) > empty + 4_096 {
        assert!(Instant::now() < deadline, "{}, {empty} at first", overhead(&mut server));
        thread::sleep(Duration::from_millis(5));
    }
}
