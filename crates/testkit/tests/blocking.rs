//! Commands that wait, from many clients on several workers at once: every element reaches one client, and nobody is
//! forgotten. Knows the commands by their replies only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tenon_client::{Resp, Value};
use tenon_testkit::info;
use tenon_testkit::patience::{self, wait_until};
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

const PATIENCE: Option<Duration> = Some(patience::PATIENCE);

fn server() -> Server {
    Server::tenon(&[("workers", "4"), ("shards", "16")]).expect("tenon starts")
}

fn client(server: &Server) -> Resp {
    Resp::connect_to(server.address(Dialect::Redis).expect("a RESP port"), PATIENCE).expect("connected")
}

fn call(client: &mut Resp, words: &[&str]) -> Value {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    client.call(&words).expect("an answer")
}

/// For whoever waits for a short time again and again: each time is answered, also when what it waits for never comes, as
/// somebody else has failed.
fn assert_in_time(begun: Instant) {
    assert!(Some(begun.elapsed()) < PATIENCE.map(|patience| 2 * patience), "the end never comes");
}

fn text(value: Value) -> String {
    let Value::Bulk(bytes) = value else { panic!("{value:?} is no string") };
    String::from_utf8(bytes).expect("elements are text here")
}

/// Waits until so many clients wait.
fn await_blocked(client: &mut Resp, count: usize) {
    let wanted = format!("blocked_clients:{count}\r\n");
    wait_until(&wanted, || text(call(client, &["INFO", "clients"])).contains(&wanted));
}

/// The elements in the reply of one of the commands below.
fn elements(reply: Value) -> Vec<String> {
    match reply {
        Value::NullArray => Vec::new(),
        Value::Bulk(_) => vec![text(reply)],
        Value::Array(mut parts) => match (parts.pop(), parts.len()) {
            (Some(Value::Array(many)), 1) => many.into_iter().map(text).collect(),
            (Some(one), 1) => vec![text(one)],
            other => panic!("{other:?} is no reply of these"),
        },
        other => panic!("{other:?} is no reply of these"),
    }
}

#[test]
fn every_element_reaches_one_client_and_nobody_starves() {
    const KEYS: [&str; 3] = ["a", "b", "c"];
    const PRODUCERS: usize = 4;
    const EACH: usize = 1_500;
    // What consumers ask for, with a short time and without one.
    const WISHES: [&[&str]; 7] = [
        &["BLPOP", "a", "b", "c", "0"],
        &["BRPOP", "c", "0"],
        &["BLPOP", "b", "a", "0.001"],
        &["BLMPOP", "0", "3", "c", "b", "a", "RIGHT", "COUNT", "3"],
        &["BRPOP", "a", "0.002"],
        &["BLPOP", "c", "b", "0"],
        &["BLMOVE", "a", "seen", "LEFT", "RIGHT", "0"],
    ];
    let server = server();
    let (asked, received) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let mut all: BTreeMap<String, usize> = BTreeMap::new();
    std::thread::scope(|scope| {
        let consumers: Vec<_> = WISHES
            .iter()
            .map(|wish| {
                let mut client = client(&server);
                let (asked, received) = (&asked, &received);
                scope.spawn(move || {
                    let mut own: Vec<String> = Vec::new();
                    let begun = Instant::now();
                    asked.fetch_add(1, Ordering::Relaxed);
                    loop {
                        assert_in_time(begun);
                        let mut now = elements(call(&mut client, wish));
                        now.retain(|element| element != "end");
                        let is_end = now.is_empty() && received.load(Ordering::Relaxed) >= PRODUCERS * EACH;
                        received.fetch_add(now.len(), Ordering::Relaxed);
                        own.append(&mut now);
                        if is_end {
                            return own;
                        }
                    }
                })
            })
            .collect();
        // Whoever came late might find nothing left.
        let mut other = client(&server);
        wait_until("all consumers", || {
            let in_wait = text(call(&mut other, &["INFO", "clients"]));
            let in_wait = in_wait.lines().find_map(|line| line.strip_prefix("blocked_clients:")?.parse().ok());
            asked.load(Ordering::Relaxed) == WISHES.len() && in_wait >= Some(WISHES.len() - 2)
        });
        for producer in 0..PRODUCERS {
            let mut client = client(&server);
            scope.spawn(move || {
                for number in (0..EACH).step_by(3) {
                    let key = KEYS[(number / 3 + producer) % KEYS.len()];
                    let [one, two, three] = [0, 1, 2].map(|more| format!("{producer}:{}", number + more));
                    if number % 2 == 0 {
                        call(&mut client, &["RPUSH", key, &one, &two, &three]);
                        continue;
                    }
                    // A transaction that pushes to two keys, and to one of them by another way.
                    call(&mut client, &["MULTI"]);
                    call(&mut client, &["LPUSH", key, &one]);
                    let own = format!("own{producer}");
                    call(&mut client, &["RPUSH", &own, &two]);
                    call(&mut client, &["LPUSH", &own, &three]);
                    call(&mut client, &["LMOVE", &own, "b", "LEFT", "RIGHT"]);
                    call(&mut client, &["LMOVE", &own, "c", "LEFT", "LEFT"]);
                    let done = call(&mut client, &["EXEC"]);
                    assert!(matches!(&done, Value::Array(replies) if replies.len() == 5), "{done:?}");
                }
            });
        }
        // Once all are taken, those that still wait are told so.
        wait_until("all elements", || received.load(Ordering::Relaxed) >= PRODUCERS * EACH);
        wait_until("the end of all consumers", || {
            KEYS.iter().for_each(|key| drop(call(&mut other, &["RPUSH", key, "end"])));
            consumers.iter().all(|consumer| consumer.is_finished())
        });
        for (consumer, wish) in consumers.into_iter().zip(WISHES) {
            let own = consumer.join().expect("the consumer has not panicked");
            assert!(!own.is_empty(), "{wish:?} got nothing");
            own.into_iter().for_each(|element| *all.entry(element).or_default() += 1);
        }
    });
    assert_eq!(all.len(), PRODUCERS * EACH);
    assert!(all.values().all(|times| *times == 1), "an element reached two clients");
    await_blocked(&mut client(&server), 0);
    let info = text(call(&mut client(&server), &["INFO", "clients"]));
    assert!(info.contains("total_blocking_keys:0\r\n") && info.contains("clients_in_timeout_table:0\r\n"), "{info}");
}

#[test]
fn those_that_wait_are_served_in_their_order_whatever_their_worker() {
    let server = server();
    let mut pusher = client(&server);
    let mut waiting: Vec<Resp> = Vec::new();
    for number in 0..20 {
        let mut client = client(&server);
        client.send(&[b"BLPOP", b"queue", b"0"]).expect("sent");
        await_blocked(&mut pusher, number + 1);
        waiting.push(client);
    }
    for number in 0..20 {
        call(&mut pusher, &["RPUSH", "queue", &number.to_string()]);
    }
    for (number, client) in waiting.iter_mut().enumerate() {
        assert_eq!(elements(client.receive().expect("an answer")), [number.to_string()]);
    }
}

/// A queue of many that move elements to lists of their own is served by one push, by several, and in a transaction: more
/// of them than a command locks the lists of before it begins.
#[test]
fn many_that_move_elements_elsewhere_are_served_in_their_order() {
    const COUNT: usize = 100;
    let server = server();
    let mut pusher = client(&server);
    let elements: Vec<String> = (0..COUNT).map(|number| number.to_string()).collect();
    let push = |from: usize, to: usize| -> Vec<&[u8]> {
        let words = elements[from..to].iter().map(String::as_bytes);
        [&b"RPUSH"[..], b"queue"].into_iter().chain(words).collect()
    };
    let (one, first, second) = (push(0, COUNT), push(0, COUNT / 2), push(COUNT / 2, COUNT));
    let singly: Vec<Vec<&[u8]>> = (0..COUNT).map(|number| push(number, number + 1)).collect();
    let whole: Vec<&[&[u8]]> = vec![&[b"MULTI"], &first, &second, &[b"EXEC"]];
    for pushes in [vec![&one[..]], singly.iter().map(Vec::as_slice).collect(), whole] {
        let mut waiting: Vec<Resp> = Vec::new();
        for number in 0..COUNT {
            let mut client = client(&server);
            let own = format!("processing:{number}");
            client.send(&[b"BLMOVE", b"queue", own.as_bytes(), b"LEFT", b"RIGHT", b"0"]).expect("sent");
            await_blocked(&mut pusher, number + 1);
            waiting.push(client);
        }
        pusher.pipeline(&pushes).expect("replies");
        for (number, client) in waiting.iter_mut().enumerate() {
            let element = Value::Bulk(elements[number].clone().into_bytes());
            assert_eq!(client.receive().expect("an answer"), element);
            let own = format!("processing:{number}");
            assert_eq!(call(&mut pusher, &["LRANGE", &own, "0", "-1"]), Value::Array(vec![element]));
        }
        assert_eq!(call(&mut pusher, &["EXISTS", "queue"]), Value::Int(0));
        call(&mut pusher, &["FLUSHALL"]);
    }
}

#[test]
fn nothing_is_taken_for_a_client_that_was_killed() {
    let server = server();
    let mut killer = client(&server);
    for round in 0..50 {
        let mut victim = client(&server);
        let Value::Int(id) = call(&mut victim, &["CLIENT", "ID"]) else { panic!("CLIENT ID gives a number") };
        let waits = if round % 2 == 0 { "BLPOP k 0" } else { "BLMOVE k elsewhere LEFT RIGHT 0" };
        victim.send(&waits.split(' ').map(str::as_bytes).collect::<Vec<_>>()).expect("sent");
        await_blocked(&mut killer, 1);
        let id = id.to_string();
        let commands: [&[&[u8]]; 4] = [
            &[b"CLIENT", b"KILL", b"ID", id.as_bytes()],
            &[b"RPUSH", b"k", b"v"],
            &[b"LLEN", b"k"],
            &[b"BLPOP", b"k", b"0"],
        ];
        let replies = killer.pipeline(&commands).expect("replies");
        assert_eq!(replies[..3], [Value::Int(1), Value::Int(1), Value::Int(1)]);
        assert_eq!(elements(replies[3].clone()), ["v"]);
        await_blocked(&mut killer, 0);
    }
}

#[test]
fn nothing_is_taken_for_clients_that_have_gone_together() {
    let server = Server::tenon(&[("workers", "1")]).expect("tenon starts");
    let mut pusher = client(&server);
    // More ends than a turn deals with.
    let mut going: Vec<Resp> = (0..200).map(|_| client(&server)).collect();
    going.iter_mut().for_each(|client| client.send(&[b"BLPOP", b"k", b"0"]).expect("sent"));
    await_blocked(&mut pusher, going.len());
    drop(going);
    let push: &[&[u8]] = &[b"RPUSH", b"k", b"v"];
    pusher.pipeline(&[push; 100]).expect("replies");
    assert_eq!(call(&mut pusher, &["LLEN", "k"]), Value::Int(100));
    await_blocked(&mut pusher, 0);
}

#[test]
fn those_whose_time_is_over_leave_the_others_their_turn() {
    let server = server();
    let mut pusher = client(&server);
    let mut waiting: Vec<Resp> = (0..100).map(|_| client(&server)).collect();
    for (number, client) in waiting.iter_mut().enumerate() {
        let timeout: &[u8] = if number % 2 == 0 { b"0" } else { b"0.05" };
        client.send(&[b"BLPOP", b"k", b"k2", timeout]).expect("sent");
    }
    for client in waiting.iter_mut().skip(1).step_by(2) {
        assert_eq!(client.receive().expect("an answer"), Value::NullArray);
    }
    await_blocked(&mut pusher, 50);
    for number in 0..50 {
        call(&mut pusher, &["RPUSH", "k2", &number.to_string()]);
    }
    let got = waiting.iter_mut().step_by(2).flat_map(|client| elements(client.receive().expect("an answer")));
    let mut got: Vec<usize> = got.map(|element| element.parse().expect("a number")).collect();
    got.sort_unstable();
    assert!(got.into_iter().eq(0..50));
}

/// The entries in a reply of XREAD or XREADGROUP: key, id and the value of the only field.
fn entries(reply: Value) -> Vec<[String; 3]> {
    let array = |value: Value| match value {
        Value::Array(parts) => parts,
        Value::NullArray => Vec::new(),
        other => panic!("{other:?} is no reply of these"),
    };
    let mut found = Vec::new();
    for stream in array(reply) {
        let [key, entries] = <[Value; 2]>::try_from(array(stream)).expect("a key and its entries");
        let key = text(key);
        for entry in array(entries) {
            let [id, fields] = <[Value; 2]>::try_from(array(entry)).expect("an id and its fields");
            found.push([key.clone(), text(id), text(array(fields).pop().expect("a value"))]);
        }
    }
    found
}

#[test]
fn entries_reach_one_consumer_of_each_group_and_every_reader() {
    const PRODUCERS: usize = 3;
    const EACH: usize = 500;
    const TOTAL: usize = PRODUCERS * EACH;
    // A group and a consumer in it, and what it asks for.
    const CONSUMERS: [(&str, &str, &[&str]); 6] = [
        ("g", "one", &["BLOCK", "0"]),
        ("g", "two", &["COUNT", "2", "BLOCK", "0"]),
        ("g", "three", &["BLOCK", "1", "COUNT", "1"]),
        ("h", "one", &["COUNT", "1", "BLOCK", "0"]),
        ("h", "two", &["BLOCK", "3"]),
        ("alone", "one", &["BLOCK", "0"]),
    ];
    let server = server();
    let mut first = client(&server);
    for key in ["a", "b"] {
        for group in ["g", "h", "alone"] {
            call(&mut first, &["XGROUP", "CREATE", key, group, "0", "MKSTREAM"]);
        }
    }
    let mut by_group: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let mut client = client(&server);
                scope.spawn(move || {
                    let mut behind = [("a", "0".to_owned()), ("b", "0".to_owned())];
                    let mut own = Vec::new();
                    while own.len() < TOTAL {
                        let [(_, a), (_, b)] = &behind;
                        for [key, id, value] in
                            entries(call(&mut client, &["XREAD", "BLOCK", "0", "STREAMS", "a", "b", a, b]))
                        {
                            let place = behind.iter_mut().find(|(other, _)| *other == key).expect("it was asked for");
                            place.1 = id;
                            own.push(value);
                        }
                    }
                    own
                })
            })
            .collect();
        let consumers: Vec<_> = CONSUMERS
            .iter()
            .map(|(group, name, options)| {
                let mut client = client(&server);
                let words: Vec<&str> = [&["XREADGROUP", "GROUP", group, name], *options].concat();
                let words = [&words[..], &["STREAMS", "a", "b", ">", ">"]].concat();
                scope.spawn(move || {
                    let mut own = Vec::new();
                    let begun = Instant::now();
                    loop {
                        assert_in_time(begun);
                        let now = entries(call(&mut client, &words));
                        let is_end = now.iter().any(|[.., value]| value == "end");
                        own.extend(now.into_iter().map(|[.., value]| value).filter(|value| value != "end"));
                        if is_end {
                            return own;
                        }
                    }
                })
            })
            .collect();
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|producer| {
                let mut client = client(&server);
                scope.spawn(move || {
                    for number in 0..EACH {
                        let key = if (number + producer) % 3 == 0 { "b" } else { "a" };
                        call(&mut client, &["XADD", key, "*", "n", &format!("{producer}:{number}")]);
                    }
                })
            })
            .collect();
        producers.into_iter().for_each(|producer| producer.join().expect("the producer has not panicked"));
        for reader in readers {
            let mut own = reader.join().expect("the reader has not panicked");
            own.sort_unstable();
            own.dedup();
            assert_eq!(own.len(), TOTAL, "a reader gets each entry once");
        }
        // What is added last is delivered last: who is given it has been given all that was for it.
        wait_until("the end of all consumers", || {
            ["a", "b"].iter().for_each(|key| drop(call(&mut first, &["XADD", key, "*", "n", "end"])));
            consumers.iter().all(|consumer| consumer.is_finished())
        });
        for (consumer, (group, ..)) in consumers.into_iter().zip(CONSUMERS) {
            let own = consumer.join().expect("the consumer has not panicked");
            by_group.entry(group).or_default().extend(own);
        }
    });
    for (group, mut given) in by_group {
        given.sort_unstable();
        let before = given.len();
        given.dedup();
        assert_eq!((before, given.len()), (TOTAL, TOTAL), "{group}");
    }
    await_blocked(&mut first, 0);
}

#[test]
fn what_comes_with_time_alone_comes_behind_a_pause() {
    let server = server();
    let mut writer = client(&server);
    let pause = ["CLIENT", "PAUSE", "1000000", "WRITE"];
    let ok = Value::Simple(b"OK".to_vec());
    call(&mut writer, &["XADD", "s", "1-1", "field", "value"]);
    call(&mut writer, &["XGROUP", "CREATE", "s", "g", "0"]);
    let is_claimed = (0..8).any(|attempt| {
        let idle_ms = 100_u64 << attempt;
        call(&mut writer, &["XREADGROUP", "GROUP", "g", "owner", "STREAMS", "s", ">"]);
        call(&mut writer, &["XCLAIM", "s", "g", "owner", "0", "1-1"]);
        let mut heir = client(&server);
        let claim = ["GROUP", "g", "heir", "BLOCK", "0", "CLAIM", &idle_ms.to_string(), "STREAMS", "s", ">"];
        let words: Vec<&[u8]> = ["XREADGROUP"].iter().chain(&claim).map(|word| word.as_bytes()).collect();
        heir.send(&words).expect("it is sent");
        await_blocked(&mut writer, 1);
        assert_eq!(call(&mut writer, &pause), ok);
        let came_before = !text(call(&mut writer, &["INFO", "clients"])).contains("blocked_clients:1\r\n");
        if !came_before {
            heir.set_timeout(Some(Duration::from_millis(idle_ms + 100))).expect("it is no timeout of zero");
            heir.receive().expect_err("in a pause nothing is claimed");
        }
        assert_eq!(call(&mut writer, &["CLIENT", "UNPAUSE"]), ok);
        heir.set_timeout(PATIENCE).expect("it is no timeout of zero");
        // One that came while the pause was being made says nothing; the next one waits for longer.
        !came_before && matches!(heir.receive().expect("an answer"), Value::Array(_))
    });
    assert!(is_claimed);
}

/// Each looks when its own time has come, and not whenever that of any other has.
#[test]
fn many_that_wait_to_claim_look_once_each() {
    const CLIENTS: usize = 200;
    const ENTRIES: usize = 20;
    let server = server();
    let mut first = client(&server);
    call(&mut first, &["XGROUP", "CREATE", "s", "g", "0", "MKSTREAM"]);
    for _ in 0..ENTRIES {
        call(&mut first, &["XADD", "s", "*", "f", "v"]);
        // Their times come one after another.
        call(&mut first, &["XREADGROUP", "GROUP", "g", "first", "STREAMS", "s", ">"]);
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut waiting: Vec<Resp> = (0..CLIENTS).map(|_| client(&server)).collect();
    for (number, waiting) in waiting.iter_mut().enumerate() {
        let name = number.to_string();
        let words =
            ["XREADGROUP", "GROUP", "g", &name, "COUNT", "1", "BLOCK", "0", "CLAIM", "2000", "STREAMS", "s", ">"];
        waiting.send(&words.map(str::as_bytes)).expect("sent");
    }
    // So many may wait for a moment while they are still coming; mostly the entries have been claimed by then.
    await_blocked(&mut first, CLIENTS - ENTRIES);
    std::thread::sleep(Duration::from_millis(300));
    // Each look counts as a read of the key.
    let looks: usize = info::field(&mut first, "stats", "keyspace_hits").parse().expect("it is a number");
    assert!(looks < CLIENTS * CLIENTS / 4, "{looks} looks");
}

/// The lists that elements go through while the server ends.
const LISTS: [&str; 3] = ["list0", "list1", "list2"];

/// Appends elements to a list, one after the other, as long as they are confirmed; gives those that were.
fn append_elements(server: &Server, list: &'static str) -> JoinHandle<BTreeSet<String>> {
    let mut client = client(server);
    std::thread::spawn(move || {
        let mut confirmed = BTreeSet::new();
        for number in 0.. {
            let element = format!("{list}:{number}");
            if client.call(&[b"RPUSH", list.as_bytes(), element.as_bytes()]).is_err() {
                break;
            }
            confirmed.insert(element);
        }
        confirmed
    })
}

/// Waits for elements, one after the other, until the connection ends; gives those that came.
fn take_elements(server: &Server) -> JoinHandle<BTreeSet<String>> {
    let mut client = client(server);
    let words = format!("BLPOP {} 0", LISTS.join(" "));
    std::thread::spawn(move || {
        let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        let mut taken = BTreeSet::new();
        while let Ok(answer) = client.call(&words) {
            taken.extend(elements(answer));
        }
        taken
    })
}

#[test]
fn an_end_loses_no_element_on_its_way_to_a_client_that_waits_for_it() {
    for _ in 0..8 {
        // Whoever appends is served by another thread than many of those who wait.
        let settings = [("appendonly", "yes"), ("save", ""), ("workers", "2"), ("io", "epoll")];
        let mut server = Server::tenon(&settings).expect("tenon starts");
        let taking: Vec<_> = (0..8).map(|_| take_elements(&server)).collect();
        let appending = LISTS.map(|list| append_elements(&server, list));
        std::thread::sleep(Duration::from_millis(100));
        server.signal("-TERM");
        assert!(server.wait_for_end(patience::PATIENCE).expect("it ends").success(), "{}", server.log());
        let all = |threads: Vec<JoinHandle<BTreeSet<String>>>| -> BTreeSet<String> {
            threads.into_iter().flat_map(|thread| thread.join().expect("it does not panic")).collect()
        };
        let (confirmed, mut there) = (all(appending.into()), all(taking));
        let folder = server.folder().to_str().expect("it is text");
        let again = Server::tenon(&[("appendonly", "yes"), ("save", ""), ("dir", folder)]).expect("tenon starts");
        for list in LISTS {
            let Value::Array(left) = call(&mut client(&again), &["LRANGE", list, "0", "-1"]) else { panic!("no list") };
            left.into_iter().for_each(|element| assert!(there.insert(text(element)), "nobody has it, or the list"));
        }
        let lost: Vec<_> = confirmed.difference(&there).collect();
        assert!(lost.is_empty(), "of {} confirmed ones these are lost: {lost:?}", confirmed.len());
    }
}
