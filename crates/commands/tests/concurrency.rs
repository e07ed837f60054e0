//! Clients on threads of their own against one engine in process: what must be atomic is, and nothing locks up.

#[allow(dead_code, reason = "each of the tests that share it uses a part")]
mod workers;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tenon_engine::Engine;
use workers::{CLIENTS, Client, LOCKED_UP, bulks, engine, together};

#[test]
fn exec_is_atomic_across_shards() {
    const ACCOUNTS: u32 = 16;
    const ROUNDS: usize = 3_000;
    let engine = engine();
    let mut first = Client::new(&engine, 0);
    (0..ACCOUNTS).for_each(|account| first.ok(&format!("SET account:{account} 100")));
    let writer = |mut client: Client| {
        for _ in 0..ROUNDS {
            let (from, to) = (client.random(ACCOUNTS), client.random(ACCOUNTS));
            let amount = client.random(10);
            let (take, give) = (format!("DECRBY account:{from} {amount}"), format!("INCRBY account:{to} {amount}"));
            let reply = client.transaction(&[&take, &give]);
            assert!(reply.starts_with("*2\r\n:"), "{reply:?}");
        }
    };
    let keys: Vec<String> = (0..ACCOUNTS).map(|account| format!("account:{account}")).collect();
    let mget = format!("MGET {}", keys.join(" "));
    let gets: Vec<String> = keys.iter().rev().map(|key| format!("GET {key}")).collect();
    let total = |reply: &str| {
        let balances = bulks(reply);
        assert_eq!(balances.len(), ACCOUNTS as usize, "{reply:?}");
        balances.iter().map(|balance| balance.parse::<i64>().expect("a balance")).sum::<i64>()
    };
    let one_command = move |mut client: Client| {
        for _ in 0..ROUNDS {
            assert_eq!(total(&client.run(&mget)), 100 * i64::from(ACCOUNTS));
        }
    };
    let many_commands = move |mut client: Client| {
        let gets: Vec<&str> = gets.iter().map(String::as_str).collect();
        for _ in 0..ROUNDS / 4 {
            assert_eq!(total(&client.transaction(&gets)), 100 * i64::from(ACCOUNTS));
        }
    };
    let parts: Vec<Box<dyn FnOnce(Client) + Send>> =
        vec![Box::new(writer), Box::new(writer), Box::new(writer), Box::new(one_command), Box::new(many_commands)];
    together(&engine, parts);
}

/// SORT finds the keys that its elements name, and other elements later: it sees one moment all the same.
#[test]
fn sort_sees_the_keys_that_its_elements_name_at_one_moment() {
    const ACCOUNTS: u32 = 12;
    const ROUNDS: usize = 1_500;
    let engine = engine();
    let mut first = Client::new(&engine, 0);
    (0..2 * ACCOUNTS).for_each(|account| first.ok(&format!("SET account:{account} 100")));
    (0..ACCOUNTS).for_each(|account| _ = first.run(&format!("RPUSH list {account}")));
    let writer = |mut client: Client| {
        for _ in 0..ROUNDS {
            let (from, to) = (client.random(ACCOUNTS), client.random(ACCOUNTS));
            let (take, give) = (format!("DECRBY account:{from} 7"), format!("INCRBY account:{to} 7"));
            client.transaction(&[&take, &give]);
        }
    };
    // Other accounts with the same total take the places of those that the list names.
    let renamer = |mut client: Client| {
        let all = |from: u32| (from..from + ACCOUNTS).map(|account| account.to_string()).collect::<Vec<_>>().join(" ");
        let fill = [format!("RPUSH list {}", all(0)), format!("RPUSH list {}", all(ACCOUNTS))];
        for round in 0..ROUNDS {
            client.transaction(&["DEL list", &fill[round % 2]]);
        }
    };
    let reader = |command: &'static str| {
        move |mut client: Client| {
            for _ in 0..ROUNDS {
                let reply = client.run(command);
                let balances: Vec<i64> = bulks(&reply).iter().map(|text| text.parse().expect("a balance")).collect();
                assert_eq!(balances.len(), ACCOUNTS as usize, "{reply:?}");
                assert!(balances.is_sorted(), "{reply:?}");
                assert_eq!(balances.iter().sum::<i64>(), 100 * i64::from(ACCOUNTS), "{reply:?}");
            }
        }
    };
    let storing = |mut client: Client| {
        for _ in 0..ROUNDS {
            assert_eq!(client.run("SORT list BY account:* GET account:* STORE sorted"), format!(":{ACCOUNTS}\r\n"));
        }
    };
    together(
        &engine,
        vec![
            Box::new(writer),
            Box::new(writer),
            Box::new(renamer),
            Box::new(reader("SORT_RO list BY account:* GET account:*")),
            Box::new(reader("SORT list BY account:* GET account:* ASC")),
            Box::new(storing),
        ],
    );
}

/// Who holds any other shard holds nobody up.
#[test]
fn sort_waits_for_the_shards_alone_that_its_wanted_elements_name() {
    const WANTED: usize = 5;
    let engine = engine();
    let mut first = Client::new(&engine, 0);
    let elements = engine.shards.count();
    (0..elements).for_each(|element| {
        first.run(&format!("RPUSH list {element}"));
        first.run(&format!("ZADD zset {element} {element}"));
        first.run(&format!("SADD set {element}"));
        first.ok(&format!("SET object:{element} {element}"));
    });
    let index_of = |key: &str| engine.shards.index(engine.shards.hash(key.as_bytes()));
    let last = elements - WANTED..elements;
    for (key, options, wanted) in [
        ("list", "", Vec::from_iter(0..WANTED)),
        ("zset", "", Vec::from_iter(0..WANTED)),
        ("set", "", Vec::from_iter(0..WANTED)),
        ("list", "DESC", Vec::from_iter(last.clone().rev())),
        ("zset", "DESC", Vec::from_iter(last.rev())),
    ] {
        let mut touched = vec![index_of(key)];
        touched.extend(wanted.iter().map(|element| index_of(&format!("object:{element}"))));
        let others = (0..engine.shards.count()).filter(|index| !touched.contains(index));
        let held: Vec<_> = others.map(|index| engine.shards.lock(index)).collect();
        let command = format!("SORT {key} BY nosort GET object:* GET # LIMIT 0 {WANTED} {options}");
        let (answered, answer) = channel();
        let server = Arc::clone(&engine);
        thread::spawn(move || answered.send(Client::new(&server, 1).run(command.trim_end())));
        let reply = answer.recv_timeout(LOCKED_UP).expect("no shard that is held is wanted");
        let named = wanted.iter().flat_map(|element| [element.to_string(), element.to_string()]);
        assert_eq!(bulks(&reply), Vec::from_iter(named), "{key} {options}");
        drop(held);
    }
}

#[test]
fn watch_makes_a_compare_and_set() {
    const ROUNDS: usize = 1_000;
    let engine = engine();
    Client::new(&engine, 0).ok("SET counter 0");
    let part = |mut client: Client| {
        for _ in 0..ROUNDS {
            loop {
                client.ok("WATCH counter other");
                let reply = client.run("GET counter");
                let count: usize = bulks(&reply)[0].parse().expect("a count");
                match client.transaction(&[&format!("SET counter {}", count + 1)]).as_str() {
                    "*1\r\n+OK\r\n" => break,
                    "*-1\r\n" => {}
                    other => panic!("EXEC answered {other:?}"),
                }
            }
        }
    };
    together(&engine, (0..4).map(|_| Box::new(part) as Box<dyn FnOnce(Client) + Send>).collect());
    let reply = Client::new(&engine, 0).run("GET counter");
    assert_eq!(bulks(&reply), [(4 * ROUNDS).to_string()]);
}

#[test]
fn opposite_orders_never_lock_up() {
    const ROUNDS: usize = 2_000;
    let engine = engine();
    let renames = |from: &'static str, to: &'static str| {
        move |mut client: Client| {
            for _ in 0..ROUNDS {
                let reply = client.run(&format!("RENAME {from} {to}"));
                assert!(reply == "+OK\r\n" || reply == "-ERR no such key\r\n", "{reply:?}");
                client.ok(&format!("SET {from} 1"));
            }
        }
    };
    let sets = |keys: [&'static str; 3]| {
        move |mut client: Client| {
            let [a, b, c] = keys;
            for _ in 0..ROUNDS {
                client.ok(&format!("MSET {a} 1 {b} 2 {c} 3"));
                client.ok(&format!("WATCH {b} {a}"));
                let reply = client.transaction(&[
                    &format!("INCRBY {a} 1"),
                    &format!("COPY {a} {c} REPLACE"),
                    &format!("DEL {b} {c}"),
                    "UNWATCH",
                ]);
                assert!(reply == "*-1\r\n" || reply.starts_with("*4\r\n"), "{reply:?}");
            }
        }
    };
    let whole = |mut client: Client| {
        for round in 0..ROUNDS / 8 {
            client.ok("FLUSHALL");
            client.ok("SWAPDB 0 1");
            client.run(&format!("MOVE a {}", 1 + round % 3));
            client.run("DBSIZE");
            client.run("KEYS *");
            client.run("RANDOMKEY");
            client.tick();
        }
    };
    let whole_in_exec = |mut client: Client| {
        for _ in 0..ROUNDS / 8 {
            client.ok("WATCH c");
            let reply =
                client.transaction(&["SET b 1", "FLUSHDB ASYNC", "SET a 1", "DBSIZE", "SWAPDB 2 0", "RANDOMKEY"]);
            assert!(reply == "*-1\r\n" || reply.starts_with("*6\r\n+OK\r\n+OK\r\n+OK\r\n:1\r\n+OK\r\n"), "{reply:?}");
        }
    };
    together(
        &engine,
        vec![
            Box::new(renames("a", "b")),
            Box::new(renames("b", "a")),
            Box::new(sets(["a", "b", "c"])),
            Box::new(sets(["c", "b", "a"])),
            Box::new(whole),
            Box::new(whole_in_exec),
        ],
    );
}

#[test]
fn whole_databases_change_at_one_moment() {
    const KEYS: usize = 40;
    const ROUNDS: usize = 1_000;
    let engine = engine();
    let names: Vec<String> = (0..KEYS).map(|number| format!("key:{number}")).collect();
    let mset = |value: usize| {
        format!("MSET {}", names.iter().map(|name| format!("{name} {value}")).collect::<Vec<_>>().join(" "))
    };
    let mut first = Client::new(&engine, 0);
    for database in 0..2 {
        first.ok(&format!("SELECT {database}"));
        first.ok(&mset(database));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let mget = format!("MGET {}", names.join(" "));
    let all_or_none = {
        let stop = Arc::clone(&stop);
        move |mut client: Client| {
            let mut seen = BTreeMap::new();
            while !stop.load(Ordering::Relaxed) {
                let reply = client.run(&mget);
                let values = bulks(&reply);
                assert!(values.is_empty() || values.len() == KEYS, "some of the keys were there: {values:?}");
                assert!(values.iter().all(|value| *value == values[0]), "values of two databases: {values:?}");
                *seen.entry(values.first().map(|value| (*value).to_owned())).or_insert(0) += 1;
            }
            assert!(!seen.is_empty());
        }
    };
    let swaps = |mut client: Client| {
        for _ in 0..ROUNDS {
            client.ok("SWAPDB 0 1");
            // What was there at first is there again after both.
            client.ok("SWAPDB 1 0");
        }
    };
    let again = [mset(0), mset(1)];
    let flushes = move |mut client: Client| {
        for round in 0..ROUNDS {
            client.ok(["FLUSHDB", "FLUSHALL", "FLUSHALL ASYNC", "FLUSHDB SYNC"][round % 4]);
            client.ok(&again[round % 2]);
        }
        stop.store(true, Ordering::Relaxed);
    };
    together(&engine, vec![Box::new(all_or_none.clone()), Box::new(all_or_none), Box::new(swaps), Box::new(flushes)]);
}

#[test]
fn expiry_is_a_change_unless_the_key_was_gone_before() {
    let engine = engine();
    let (mut a, mut b) = (Client::new(&engine, 0), Client::new(&engine, 1));
    let wait = || thread::sleep(Duration::from_millis(40));

    // Noticed by nobody, by another client, by the tick.
    for noticed in 0..3 {
        // A slow machine may take longer over both: then it was not there any more.
        loop {
            a.ok("SET k v PX 20");
            a.ok("WATCH k");
            if a.run("EXISTS k") == ":1\r\n" {
                break;
            }
            a.ok("UNWATCH");
        }
        wait();
        match noticed {
            0 => {}
            1 => assert_eq!(b.run("GET k"), "$-1\r\n"),
            _ => (0..CLIENTS).for_each(|index| Client::new(&engine, index).tick()),
        }
        assert!(a.is_dirty(), "{noticed}");
    }

    // Gone already, though still in memory: what removes it is no change, what makes it anew is one.
    for (change, dirty) in
        [("PING", false), ("GET k", false), ("FLUSHALL", false), ("SWAPDB 0 1", false), ("SET k w", true)]
    {
        a.ok("SET k v PX 1");
        wait();
        a.ok("WATCH k");
        b.run(change);
        (0..CLIENTS).for_each(|index| Client::new(&engine, index).tick());
        assert_eq!(a.is_dirty(), dirty, "{change}");
    }

    // A key that comes with SWAPDB and is past its deadline does not come.
    b.ok("FLUSHALL");
    b.ok("SELECT 1");
    b.ok("SET k v PX 1");
    wait();
    a.ok("WATCH k");
    b.ok("SWAPDB 1 0");
    (0..CLIENTS).for_each(|index| Client::new(&engine, index).tick());
    assert!(!a.is_dirty());
    b.ok("SET k v");
    a.ok("WATCH k");
    b.ok("SWAPDB 1 0");
    assert!(a.is_dirty());
}

#[test]
fn an_ended_session_leaves_no_watch_behind() {
    let engine = engine();
    let mut a = Client::new(&engine, 0);
    a.ok("WATCH k l");
    let watched = |engine: &Engine| (0..engine.shards.count()).any(|index| engine.shards.lock(index).watched.is_some());
    assert!(watched(&engine));
    let Client { engine: _, session, .. } = &mut a;
    engine.end_session(session);
    assert!(!watched(&engine));
    for ends in ["UNWATCH", "DISCARD", "EXEC", "EXEC now"] {
        a.ok("WATCH k l");
        a.ok("MULTI");
        assert!(watched(&engine));
        if ends == "UNWATCH" {
            a.ok("DISCARD");
            a.ok("WATCH k");
        }
        a.run(ends);
        assert!(!watched(&engine), "{ends}");
    }
}

#[test]
fn a_scan_gives_every_lasting_key_once_whatever_comes_and_goes() {
    const LASTING: usize = 3_000;
    let engine = engine();
    let mut first = Client::new(&engine, 0);
    (0..LASTING).for_each(|number| first.ok(&format!("SET lasting:{number} v")));
    let stop = Arc::new(AtomicBool::new(false));
    // Tables grow and shrink, over and over.
    let tides = |number: usize| {
        let stop = Arc::clone(&stop);
        move |mut client: Client| {
            while !stop.load(Ordering::Relaxed) {
                (0..10_000).for_each(|key| client.ok(&format!("SET passing:{number}:{key} v")));
                (0..10_000).for_each(|key| assert_eq!(client.run(&format!("DEL passing:{number}:{key}")), ":1\r\n"));
            }
        }
    };
    let scans = {
        let stop = Arc::clone(&stop);
        move |mut client: Client| {
            for count in [1, 7, 10, 100, 1_000] {
                let mut seen = BTreeMap::new();
                let mut cursor = "0".to_owned();
                loop {
                    let reply = client.run(&format!("SCAN {cursor} COUNT {count} MATCH lasting:*"));
                    let mut found = bulks(&reply).into_iter().map(str::to_owned);
                    cursor = found.next().expect("a cursor");
                    found.for_each(|key| *seen.entry(key).or_insert(0) += 1);
                    if cursor == "0" {
                        break;
                    }
                }
                assert_eq!(seen.len(), LASTING, "COUNT {count}");
                assert!(seen.values().all(|&times| times == 1), "COUNT {count}");
            }
            stop.store(true, Ordering::Relaxed);
        }
    };
    together(&engine, vec![Box::new(tides(0)), Box::new(tides(1)), Box::new(scans)]);
}

#[test]
fn randomkey_is_fair_and_gives_no_key_past_its_deadline() {
    // Fewer keys than shards, about as many, and many more.
    for keys in [3, 60, 3_000] {
        let engine = engine();
        let mut client = Client::new(&engine, 0);
        (0..keys).for_each(|number| client.ok(&format!("SET key:{number} v")));
        (0..keys).for_each(|number| client.ok(&format!("SET gone:{number} v PX 1")));
        thread::sleep(Duration::from_millis(10));
        let mut drawn: BTreeMap<String, usize> = BTreeMap::new();
        const EACH: usize = 60;
        for _ in 0..keys * EACH {
            let reply = client.run("RANDOMKEY");
            *drawn.entry(bulks(&reply)[0].to_owned()).or_default() += 1;
        }
        assert!(drawn.keys().all(|key| key.starts_with("key:")), "a key past its deadline was drawn");
        assert_eq!(drawn.len(), keys, "every key is drawn now and then");
        // A standard deviation is about 8: a fair draw stays within six of them.
        assert!(drawn.values().all(|times| (EACH / 5..EACH * 2).contains(times)), "{keys}: {drawn:?}");
    }
}

#[test]
fn flushing_many_keys_frees_them_all() {
    let engine = engine();
    let mut client = Client::new(&engine, 0);
    for flush in ["FLUSHALL", "FLUSHDB", "FLUSHALL ASYNC"] {
        for number in 0..12_000 {
            client.ok(&format!("SET key:{number} v EX 1000"));
        }
        client.ok(flush);
        assert_eq!(client.run("DBSIZE"), ":0\r\n");
        assert!(engine.reaper.wait_until(|| engine.reaper.is_idle(), LOCKED_UP), "{flush}");
        client.tick();
        assert!((0..engine.shards.count()).all(|index| engine.shards.due_ms(index) == u64::MAX));
    }
}

#[test]
fn members_that_move_between_sets_are_always_in_one_of_them() {
    const SETS: u32 = 6;
    let engine = engine();
    let mut client = Client::new(&engine, 0);
    // Integers and words, so that the sets change their forms too.
    let members: Vec<String> = (0..40).map(|n| if n % 2 == 0 { n.to_string() } else { format!("word:{n}") }).collect();
    client.run(&format!("SADD set:0 {}", members.join(" ")));
    let keys: Vec<String> = (0..SETS).map(|number| format!("set:{number}")).collect();
    let done = Arc::new(AtomicBool::new(false));
    let mut parts: Vec<Box<dyn FnOnce(Client) + Send>> = Vec::new();
    for part in 0..4 {
        let (members, done) = (members.clone(), Arc::clone(&done));
        parts.push(Box::new(move |mut client| {
            for _ in 0..4_000 {
                let (from, to) = (client.random(SETS), client.random(SETS));
                let member = &members[client.random(members.len() as u32) as usize];
                client.run(&format!("SMOVE set:{from} set:{to} {member}"));
            }
            if part == 0 {
                done.store(true, Ordering::Relaxed);
            }
        }));
    }
    for command in ["SUNION", "SUNIONSTORE all:2", "SDIFF all:3", "SINTERCARD 2 set:0"] {
        let (keys, members, done) = (keys.join(" "), members.clone(), Arc::clone(&done));
        parts.push(Box::new(move |mut client| {
            let count = members.len();
            client.run(&format!("SADD all:3 {}", members.join(" ")));
            loop {
                // Looked at before the last round, so that there is one at least.
                let last = done.load(Ordering::Relaxed);
                match command {
                    "SUNION" => assert_eq!(bulks(&client.run(&format!("SUNION {keys}"))).len(), count),
                    "SDIFF all:3" => assert_eq!(client.run(&format!("SDIFF all:3 {keys}")), "*0\r\n"),
                    "SINTERCARD 2 set:0" => assert_eq!(client.run("SINTERCARD 2 set:0 set:1"), ":0\r\n"),
                    store => assert_eq!(client.run(&format!("{store} {keys}")), format!(":{count}\r\n")),
                }
                if last {
                    break;
                }
            }
        }));
    }
    drop(client);
    together(&engine, parts);
}

/// Keys come on one worker, are renamed, and go on another; who counts them sees no moment that there was not.
#[test]
fn keys_are_counted_as_of_one_moment() {
    const KEYS: usize = 1_000;
    const WRITERS: usize = 3;
    const ROUNDS: usize = 4_000;
    let engine = engine();
    let mut first = Client::new(&engine, 0);
    let names: Vec<String> = (0..KEYS).map(|n| format!("key:{n}")).collect();
    names.iter().for_each(|name| first.ok(&format!("SET {name} 1")));
    let (give, take) = channel();
    names.into_iter().for_each(|name| give.send(name).expect("somebody takes it"));
    let (take, done) = (Arc::new(Mutex::new(take)), Arc::new(AtomicUsize::new(0)));
    let writers = (0..WRITERS).map(|writer| -> Box<dyn FnOnce(Client) + Send> {
        let (give, take, done) = (give.clone(), Arc::clone(&take), Arc::clone(&done));
        Box::new(move |mut client| {
            for round in 0..ROUNDS {
                let name = format!("key:{writer}:{round}");
                client.ok(&format!("SET {name} 1"));
                client.ok(&format!("RENAME {name} new:{name}"));
                client
                    .run(&format!("EVAL return{{redis.call('del',KEYS[1]),redis.call('set',KEYS[1],1)}} 1 new:{name}"));
                give.send(format!("new:{name}")).expect("somebody takes it");
                let other = take.lock().expect("nobody has failed").recv().expect("there is one for each");
                assert_eq!(client.run(&format!("DEL {other}")), ":1\r\n");
            }
            done.fetch_add(1, Ordering::Relaxed);
        })
    });
    let readers = (0..2).map(|_| -> Box<dyn FnOnce(Client) + Send> {
        let (engine, done) = (Arc::clone(&engine), Arc::clone(&done));
        Box::new(move |_| {
            while done.load(Ordering::Relaxed) < WRITERS {
                if let Some(count) = engine.key_count(0) {
                    assert!((KEYS..=KEYS + WRITERS).contains(&(count as usize)), "{count}");
                }
            }
        })
    });
    together(&engine, writers.chain(readers).collect());
    assert_eq!(first.run("DBSIZE"), format!(":{KEYS}\r\n"));
    ["SELECT 1", "SET k 1", "SWAPDB 0 1"].iter().for_each(|command| first.ok(command));
    assert_eq!(first.run("DBSIZE"), format!(":{KEYS}\r\n"));
    first.ok("FLUSHDB");
    assert_eq!(first.run("DBSIZE"), ":0\r\n");
    first.ok("SELECT 0");
    assert_eq!(first.run("DBSIZE"), ":1\r\n");
    first.ok("FLUSHALL");
    assert_eq!(first.run("DBSIZE"), ":0\r\n");
}

/// A client does something again and again until another has done what it has to.
fn beside(engine: &Arc<Engine>, again: Vec<&'static str>, work: impl FnOnce(&mut Client) + Send + 'static) {
    let done = Arc::new(AtomicBool::new(false));
    let is_done = Arc::clone(&done);
    let writer = move |mut client: Client| {
        while !is_done.load(Ordering::Relaxed) {
            again.iter().for_each(|command| _ = client.run(command));
        }
    };
    let worker = move |mut client: Client| {
        work(&mut client);
        done.store(true, Ordering::Relaxed);
    };
    together(engine, vec![Box::new(writer), Box::new(worker)]);
}

#[test]
fn a_key_that_is_renamed_all_the_time_is_there_all_the_time() {
    let engine = engine();
    Client::new(&engine, 0).ok("SET a v");
    let names = vec!["RENAME a b", "RENAME b c", "RENAME c d", "RENAME d e", "RENAME e a"];
    beside(&engine, names, |client| {
        for _ in 0..5_000 {
            assert_eq!(client.run("DBSIZE"), ":1\r\n");
            assert_ne!(client.run("RANDOMKEY"), "$-1\r\n");
            assert_eq!(bulks(&client.run("KEYS *")).len(), 1);
        }
    });
}

#[test]
fn no_key_survives_flushall_by_moving() {
    let engine = engine();
    // It makes none. It rests between: databases that change all the time are locked anyway.
    let moves =
        ["SELECT 0", "MOVE k 15", "SELECT 15", "MOVE k 0"].map(|command| [&[command][..], &["PING"; 8]].concat());
    beside(&engine, moves.concat(), |client| {
        for _ in 0..50_000 {
            client.ok("SET k v");
            client.ok("FLUSHALL");
            let left = client.transaction(&["EXISTS k", "SELECT 15", "EXISTS k", "SELECT 0"]);
            assert_eq!(left, "*4\r\n:0\r\n+OK\r\n:0\r\n+OK\r\n");
        }
    });
}

#[test]
fn a_scan_of_a_set_gives_every_lasting_member_whatever_comes_and_goes() {
    const LASTING: usize = 300;
    for passing in [20, 5_000] {
        let engine = engine();
        let mut client = Client::new(&engine, 0);
        (0..LASTING).for_each(|n| drop(client.run(&format!("SADD s lasting:{n}"))));
        let mut round = 0;
        loop {
            // While one half of the scans runs the set grows, during the other it shrinks.
            let command = ["SADD", "SREM"][round % 2];
            let mut next = 0;
            let (mut seen, mut cursor) = (Vec::new(), "0".to_owned());
            loop {
                let reply = client.run(&format!("SSCAN s {cursor} COUNT 30"));
                let found = bulks(&reply);
                cursor = found[0].to_owned();
                seen.extend(found[1..].iter().filter(|name| name.starts_with("lasting")).map(|name| name.to_string()));
                if cursor == "0" {
                    break;
                }
                let until = passing.min(next + 1 + passing / 20);
                (next..until).for_each(|n| drop(client.run(&format!("{command} s passing:{n}"))));
                next = until;
            }
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), LASTING, "{command} of {passing}");
            if round == 3 {
                break;
            }
            (0..passing).for_each(|n| drop(client.run(&format!("{command} s passing:{n}"))));
            round += 1;
        }
    }
}
