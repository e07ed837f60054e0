//! A command on a large collection holds up nobody but its own client and those who want what it holds, also on a server
//! with one worker. Nothing here depends on how long anything takes, as long as the commands take longer than half a
//! millisecond.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tenon_client::{Resp, Value};
use tenon_testkit::patience::PATIENCE;
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

/// Elements of a large collection: a command that looks at all of them takes tens of milliseconds.
const MANY: usize = 200_000;

/// More than the threads that a worker has for its clients.
const CLIENTS: usize = 20;

/// How often a command is run until somebody is served in its middle: not so where all that is asked for lies in a shard
/// that it holds, which is a matter of chance, or where it ends before anybody asks, which a busy machine makes frequent.
const ROUNDS: usize = 200;

fn one_worker(settings: &[(&str, &str)]) -> Server {
    let own = [("workers", "1"), ("io", "epoll")];
    Server::tenon(&[&own[..], settings].concat()).expect("tenon starts")
}

fn connect(server: &Server) -> Resp {
    let address = server.address(Dialect::Redis).expect("RESP is spoken");
    Resp::connect_to(address, Some(PATIENCE)).expect("the server listens")
}

/// The words of a command, which are divided by spaces.
fn words(command: &str) -> Vec<&[u8]> {
    command.split(' ').map(str::as_bytes).collect()
}

fn call(client: &mut Resp, command: &str) -> Value {
    client.call(&words(command)).expect("a reply")
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

/// Fills the keys `s`, `t` (sets that overlap by half), `l`, `h`, `z`, `x` and `b` with many elements.
fn fill(client: &mut Resp) {
    for from in (0..MANY).step_by(1_000) {
        let names: Vec<String> = (from..from + 1_000).map(|n| format!("member:{n}")).collect();
        let others: Vec<String> = (from..from + 1_000).map(|n| format!("member:{}", n + MANY / 2)).collect();
        let add = |start: &str, names: &[String]| format!("{start} {}", names.join(" "));
        let pairs: Vec<String> = names.iter().flat_map(|name| ["7".to_owned(), name.clone()]).collect();
        let fields: Vec<String> = names.iter().flat_map(|name| [name.clone(), "v".to_owned()]).collect();
        let mut commands = vec![
            add("SADD s", &names),
            add("SADD t", &others),
            add("RPUSH l", &names),
            add("HSET h", &fields),
            add("ZADD z", &pairs),
        ];
        commands.extend((from..from + 1_000).map(|n| format!("XADD x {}-1 f v", n + 1)));
        let commands: Vec<Vec<&[u8]>> = commands.iter().map(|command| words(command)).collect();
        let commands: Vec<&[&[u8]]> = commands.iter().map(Vec::as_slice).collect();
        for reply in client.pipeline(&commands).expect("replies") {
            assert!(!matches!(reply, Value::Error(_)), "{reply:?}");
        }
    }
    call(client, "SETRANGE b 60000000 x");
    call(client, "COPY b c");
    call(client, "BITOP NOT b b");
}

/// Sends commands in one piece.
fn send_all(client: &mut Resp, commands: &[&[&[u8]]]) {
    let mut bytes = Vec::new();
    commands.iter().for_each(|command| tenon_client::resp::encode_command(command, &mut bytes));
    client.send_raw(&bytes).expect("it is sent");
}

/// Waits until it is so, without a pause: the look that finds it so is to come as soon as it can.
fn await_that(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
    }
}

/// How often a command has run to its end.
fn calls_of(client: &mut Resp, command: &str) -> u64 {
    let name = command.split(' ').next().expect("a command has a name").to_ascii_lowercase();
    let Value::Bulk(info) = call(client, "INFO commandstats") else { panic!("INFO is a text") };
    let info = String::from_utf8(info).expect("it is text");
    let calls = info.split_once(&format!("cmdstat_{name}:calls=")).map(|(_, rest)| rest.split(',').next());
    calls.map_or(0, |calls| calls.and_then(|calls| calls.parse().ok()).expect("a number"))
}

/// The number of a client.
fn id_of(client: &mut Resp) -> i64 {
    let Value::Int(id) = call(client, "CLIENT ID") else { panic!("it is a number") };
    id
}

/// Whether the last command that a client has come to the end of is SET. No key is looked at for that.
fn has_come_to_set(client: &mut Resp, id: i64) -> bool {
    let Value::Bulk(line) = call(client, &format!("CLIENT LIST ID {id}")) else { panic!("it is a text") };
    String::from_utf8(line).expect("it is text").contains(" cmd=set ")
}

/// Sends what notes that `command` begins, and the command, in one piece, so that on one thread nobody comes in between;
/// tells whether the note is seen before the command has ended.
fn is_seen_beside(client: &mut Resp, (slow, id): (&mut Resp, i64), command: &str, round: usize) -> bool {
    let begun = format!("begun:{round}");
    send_all(slow, &[&[b"SET", begun.as_bytes(), b"1"], &words(command)]);
    await_that("the command to begin", || call(client, &format!("GET {begun}")) == bulk("1"));
    has_come_to_set(client, id)
}

/// Takes the replies to both; gives the command's.
fn receive_noted(client: &mut Resp) -> Value {
    let [first, reply] = [(); 2].map(|()| client.receive().expect("a reply"));
    assert_eq!(first, Value::Simple(b"OK".to_vec()));
    reply
}

#[test]
fn others_are_served_in_the_middle_of_commands_on_large_collections() {
    let server = one_worker(&[]);
    let [mut client, mut slow] = [connect(&server), connect(&server)];
    fill(&mut client);
    let id = id_of(&mut slow);
    let commands = [
        "SMEMBERS s",
        "SUNION s t",
        "SINTERCARD 2 s t",
        "SUNIONSTORE dst s t",
        "SDIFFSTORE dst s t",
        "SRANDMEMBER s -200000",
        "HGETALL h",
        "LRANGE l 0 -1",
        "ZRANGE z 0 -1 WITHSCORES",
        "ZRANDMEMBER z -200000",
        "ZUNIONSTORE dst 2 z s",
        "XRANGE x - +",
        "SORT s ALPHA",
        "SORT l ALPHA STORE dst",
        "BITOP AND dst b c",
        "BITCOUNT b",
        "COPY s dst REPLACE",
        "DUMP z",
        "EVAL return(redis.call('SUNIONSTORE',KEYS[3],KEYS[1],KEYS[2])) 3 s t dst",
    ];
    let mut round = 0;
    for command in commands {
        let mut replies = Vec::new();
        let was_seen = (0..ROUNDS).any(|_| {
            round += 1;
            let is_seen = is_seen_beside(&mut client, (&mut slow, id), command, round);
            replies.push(receive_noted(&mut slow));
            is_seen
        });
        assert!(was_seen, "{command}: nobody was served in its middle");
        assert!(!matches!(&replies[0], Value::Error(_)), "{command}: {:?}", replies[0]);
    }
}

/// A command that works on copies, or on what is lent to it, lets go of the keys that it has read.
#[test]
fn what_is_only_read_is_anybodys_meanwhile() {
    let server = one_worker(&[]);
    let [mut client, mut slow] = [connect(&server), connect(&server)];
    fill(&mut client);
    for (name, number) in [("long1", 2_600), ("long2", 5_000)] {
        call(&mut client, &format!("SET {name} {}", "abc".repeat(number)));
    }
    let id = id_of(&mut slow);
    let mut round = 0;
    for (command, wanted, answer) in [
        ("SORT s ALPHA DESC", "SISMEMBER s member:7", Value::Int(1)),
        ("SORT l ALPHA DESC BY *", "LINDEX l 7", bulk("member:7")),
        ("LCS long1 long2 LEN", "STRLEN long2", Value::Int(3 * 5_000)),
        ("SMEMBERS s", "SISMEMBER s member:7", Value::Int(1)),
        ("SUNION s t", "SCARD t", Value::Int(MANY as i64)),
        ("SINTER s t", "SISMEMBER t member:7", Value::Int(0)),
        ("SDIFF s t", "SISMEMBER s member:7", Value::Int(1)),
        ("SINTERCARD 2 s t", "SCARD s", Value::Int(MANY as i64)),
        ("HGETALL h", "HGET h member:7", bulk("v")),
        ("HKEYS h", "HLEN h", Value::Int(MANY as i64)),
        ("HVALS h", "HGET h member:7", bulk("v")),
        ("LRANGE l 0 -1", "LINDEX l 7", bulk("member:7")),
        ("ZRANGE z 0 -1", "ZSCORE z member:7", bulk("7")),
        ("ZREVRANGEBYSCORE z 7 7 WITHSCORES", "ZCARD z", Value::Int(MANY as i64)),
        ("ZUNION 2 z s", "ZSCORE z member:7", bulk("7")),
        ("ZINTERCARD 2 z t", "SCARD t", Value::Int(MANY as i64)),
        ("XRANGE x - +", "XLEN x", Value::Int(MANY as i64)),
        ("XREVRANGE x + -", "XLEN x", Value::Int(MANY as i64)),
        ("DUMP z", "ZSCORE z member:7", bulk("7")),
        ("SUNIONSTORE dst s t", "SCARD t", Value::Int(MANY as i64)),
        ("SINTERSTORE dst s t", "SISMEMBER s member:7", Value::Int(1)),
        ("SDIFFSTORE dst s t", "SISMEMBER s member:7", Value::Int(1)),
        ("ZUNIONSTORE dst 2 z s", "ZSCORE z member:7", bulk("7")),
        ("ZRANGESTORE dst z 0 -1", "ZSCORE z member:7", bulk("7")),
        ("GEOSEARCH z FROMMEMBER member:7 BYRADIUS 1 m ASC", "ZSCORE z member:7", bulk("7")),
        // The older commands can write, but to another key: they read beside it.
        ("GEOSEARCH z FROMMEMBER member:7 BYRADIUS 1 m", "GEORADIUS_RO z 0 0 1 m", Value::Array(Vec::new())),
        ("GEORADIUSBYMEMBER z member:7 1 m", "GEORADIUS z 0 0 1 m", Value::Array(Vec::new())),
        ("SORT l ALPHA", "SORT l BY nosort LIMIT 7 1", Value::Array(vec![bulk("member:7")])),
        ("GEOSEARCHSTORE dst z FROMMEMBER member:7 BYRADIUS 1 m", "ZSCORE z member:7", bulk("7")),
        ("COPY s dst REPLACE", "SISMEMBER s member:7", Value::Int(1)),
        ("SORT l ALPHA STORE dst", "LINDEX l 7", bulk("member:7")),
        ("SORT z BY nosort GET # GET none STORE dst", "ZSCORE z member:7", bulk("7")),
    ] {
        let was_seen = (0..ROUNDS).any(|_| {
            round += 1;
            let is_seen = is_seen_beside(&mut client, (&mut slow, id), command, round) && {
                let answered = call(&mut client, wanted);
                assert_eq!(answered, answer, "{wanted}");
                has_come_to_set(&mut client, id)
            };
            let reply = receive_noted(&mut slow);
            assert!(!matches!(reply, Value::Error(_)), "{command}: {reply:?}");
            is_seen
        });
        assert!(was_seen, "{command}: what it had read was never to be had in its middle");
    }
}

/// Has `meanwhile` done beside a command until it was done in the command's middle; gives what the command answered then.
fn beside(
    client: &mut Resp,
    (slow, id): (&mut Resp, i64),
    command: &str,
    mut meanwhile: impl FnMut(&mut Resp) -> bool,
) -> Value {
    for round in 0..ROUNDS {
        let was_done = is_seen_beside(client, (slow, id), command, round) && meanwhile(client);
        let reply = receive_noted(slow);
        if was_done {
            return reply;
        }
    }
    panic!("{command}: nothing was done in its middle");
}

fn len_of(reply: &Value) -> usize {
    let Value::Array(members) = reply else { panic!("it is an array") };
    members.len()
}

#[test]
fn whoever_changes_what_is_read_waits_for_its_readers() {
    let server = one_worker(&[]);
    let [mut client, mut slow, mut waiting] = [(); 3].map(|()| connect(&server));
    fill(&mut client);
    let id = id_of(&mut slow);
    for change in
        ["SADD s new", "SREM s new", "SMOVE other s new", "EVAL return(redis.call('SREM',KEYS[1],'new')) 1 s", "EXEC"]
    {
        call(&mut client, "SADD other new");
        let mut tries = 0;
        let reply = beside(&mut client, (&mut slow, id), "SMEMBERS s", |client| {
            tries += 1;
            let before = call(client, "SISMEMBER s new");
            if change == "EXEC" {
                send_all(&mut waiting, &[&[b"MULTI"], &[b"SADD", b"s", b"new"], &[b"EXEC"], &[b"PING"]]);
            } else {
                send_all(&mut waiting, &[&words(change), &[b"PING"]]);
            }
            // The change waits, however often one looks: as often as the machine has time for.
            let looks =
                (0..(20 / tries).max(1)).map(|_| call(client, "SISMEMBER s new")).filter(|now| *now != before).count();
            let is_in_time = looks == 0 && has_come_to_set(client, id);
            while waiting.receive().expect("a reply") != Value::Simple(b"PONG".to_vec()) {}
            assert!(!has_come_to_set(client, id), "{change} was done before its readers had ended");
            is_in_time
        });
        assert!(len_of(&reply) == MANY || len_of(&reply) == MANY + 1, "{change}: {} members", len_of(&reply));
    }
    let Value::Int(members) = call(&mut client, "SCARD s") else { panic!("it is a number") };
    assert_eq!(members as usize, MANY + 1);
}

#[test]
fn whoever_cannot_wait_leaves_to_readers_what_they_have() {
    let server = one_worker(&[]);
    let [mut client, mut slow, mut other] = [(); 3].map(|()| connect(&server));
    fill(&mut client);
    let id = id_of(&mut slow);
    // Long enough for what is done meanwhile.
    let command = format!("SUNION{}", " s t".repeat(6));
    // A script that has not said which keys it wants changes a copy.
    let reply = beside(&mut client, (&mut slow, id), &command, |client| {
        call(client, "EVAL return(redis.call('SREM','s','new')) 0");
        call(client, "EVAL return(redis.call('SADD','s','new')) 0");
        let is_in_time = call(client, "SISMEMBER s new") == Value::Int(1) && has_come_to_set(client, id);
        if !is_in_time {
            call(client, "SREM s new");
        }
        is_in_time
    });
    assert_eq!(len_of(&reply), MANY + MANY / 2);
    assert_eq!(call(&mut client, "SCARD s"), Value::Int(MANY as i64 + 1));
    // What is taken away as a whole stays theirs.
    let mut has_new = true;
    call(&mut other, "SELECT 1");
    let reply = beside(&mut client, (&mut slow, id), &command, |client| {
        call(client, "SWAPDB 0 1");
        assert_eq!(call(client, "EXISTS s"), Value::Int(0));
        call(&mut other, "FLUSHDB");
        assert_eq!(call(&mut other, "EXISTS s"), Value::Int(0));
        let is_in_time = has_come_to_set(&mut other, id);
        if !is_in_time {
            fill(client);
            has_new = false;
        }
        is_in_time
    });
    assert_eq!(len_of(&reply) - MANY - MANY / 2, usize::from(has_new));
    fill(&mut client);
    let reply = beside(&mut client, (&mut slow, id), &command, |client| {
        assert_eq!(call(client, "DEL s"), Value::Int(1));
        assert_eq!(call(client, "EXISTS s"), Value::Int(0));
        let is_in_time = has_come_to_set(client, id);
        if !is_in_time {
            call(client, "FLUSHALL");
            fill(client);
        }
        is_in_time
    });
    assert_eq!(len_of(&reply), MANY + MANY / 2);
}

#[test]
fn what_is_stored_is_of_the_moment_in_which_it_is_stored() {
    let server = one_worker(&[]);
    let [mut client, mut slow] = [connect(&server), connect(&server)];
    fill(&mut client);
    let id = id_of(&mut slow);
    let mut number = 0;
    let sources = " s t".repeat(6);
    // What takes a source away, or changes a copy of it, comes before, and so is in what is stored.
    for (change, is_in) in [
        ("EVAL return(redis.call('SADD','s',ARGV[1])) 0", "SISMEMBER dst"),
        ("EVAL return(redis.call('SADD','none',ARGV[1])) 0", "SISMEMBER dst"),
    ] {
        let command = format!("SUNIONSTORE dst none{sources}");
        let reply = beside(&mut client, (&mut slow, id), &command, |client| {
            number += 1;
            let answer = call(client, &format!("{change} new:{number}"));
            assert_eq!(answer, Value::Int(1));
            has_come_to_set(client, id)
        });
        let Value::Int(_) = reply else { panic!("{reply:?}") };
        assert_eq!(call(&mut client, &format!("{is_in} new:{number}")), Value::Int(1), "{change}");
        assert_eq!(call(&mut client, "SCARD dst"), reply);
    }
    call(&mut client, "DEL dst");
    let reply = beside(&mut client, (&mut slow, id), "COPY s dst REPLACE", |client| {
        number += 1;
        call(client, &format!("EVAL return(redis.call('SADD','s',ARGV[1])) 0 new:{number}"));
        has_come_to_set(client, id)
    });
    assert_eq!(reply, Value::Int(1));
    assert_eq!(call(&mut client, &format!("SISMEMBER dst new:{number}")), Value::Int(1));
    // Who is searched around is elsewhere then, and alone there.
    let search = "GEOSEARCHSTORE dst z FROMMEMBER member:7 BYRADIUS 1 m";
    let reply = beside(&mut client, (&mut slow, id), search, |client| {
        call(client, "EVAL return(redis.call('ZADD','z','4e15','member:7')) 0");
        let is_in_time = has_come_to_set(client, id);
        if !is_in_time {
            call(client, "ZADD z 7 member:7");
        }
        is_in_time
    });
    assert_eq!(reply, Value::Int(1));
    assert_eq!(call(&mut client, "ZRANGE dst 0 -1"), Value::Array(vec![bulk("member:7")]));
    let reply = beside(&mut client, (&mut slow, id), "SORT s ALPHA DESC GET # GET none STORE dst", |client| {
        number += 1;
        call(client, &format!("EVAL return(redis.call('SADD','s',ARGV[1])) 0 z:{number}"));
        has_come_to_set(client, id)
    });
    assert_eq!(call(&mut client, "LLEN dst"), reply);
    assert_eq!(call(&mut client, "LRANGE dst 0 1"), Value::Array(vec![bulk(&format!("z:{number}")), bulk("")]));
}

/// A command that holds all of its keys to its end, and stores the union of `s` and `t`, named so often, in `dst`.
fn holding(times: usize) -> String {
    format!("EVAL return(redis.call('SUNIONSTORE',unpack(KEYS))) {} dst{}", 1 + 2 * times, " s t".repeat(times))
}

#[test]
fn whoever_waits_comes_before_the_next_long_command_of_the_same_client() {
    const COMMANDS: usize = 30;
    let server = one_worker(&[]);
    let [mut client, mut slow, mut waiting] = [(); 3].map(|()| connect(&server));
    fill(&mut client);
    let was_seen = (0..ROUNDS).any(|_| {
        let before = calls_of(&mut client, "SUNIONSTORE");
        let command = holding(1);
        let commands = vec![words(&command); COMMANDS];
        send_all(&mut slow, &commands.iter().map(Vec::as_slice).collect::<Vec<_>>());
        await_that("the first one's end", || calls_of(&mut client, "SUNIONSTORE") != before);
        assert_eq!(call(&mut waiting, "SCARD dst"), Value::Int((MANY + MANY / 2) as i64));
        let done = calls_of(&mut client, "SUNIONSTORE") - before;
        for _ in 0..COMMANDS {
            assert_eq!(slow.receive().expect("a reply"), Value::Int((MANY + MANY / 2) as i64));
        }
        done < COMMANDS as u64
    });
    assert!(was_seen);
}

#[test]
fn others_are_served_in_the_middle_of_a_long_transaction() {
    const COMMANDS: usize = 50_000;
    let server = one_worker(&[]);
    let mut slow = connect(&server);
    let was_seen = (0..ROUNDS).any(|round| {
        let (begun, ended) = (format!("begun:{round}"), format!("ended:{round}"));
        let mut listener = connect(&server);
        call(&mut listener, &format!("SUBSCRIBE {begun}"));
        let mut commands: Vec<Vec<&[u8]>> = vec![vec![b"MULTI"], vec![b"PUBLISH", begun.as_bytes(), b""]];
        commands.extend(std::iter::repeat_n(words("INCR counted"), COMMANDS));
        commands.push(vec![b"PUBLISH", ended.as_bytes(), b""]);
        let commands: Vec<&[&[u8]]> = commands.iter().map(Vec::as_slice).collect();
        slow.pipeline(&commands).expect("all are queued");
        slow.send(&[b"EXEC"]).expect("it is sent");
        listener.receive().expect("it has begun");
        // Nobody listens there yet.
        call(&mut connect(&server), &format!("PUBLISH {ended} "));
        call(&mut listener, &format!("SUBSCRIBE {ended}"));
        let Value::Array(replies) = slow.receive().expect("it has ended") else { panic!("it is an array") };
        assert_eq!(replies.len(), COMMANDS + 2);
        assert_eq!(replies[COMMANDS], Value::Int(((round + 1) * COMMANDS) as i64));
        // Who listens has come to do so before the transaction's last command.
        replies[COMMANDS + 1] == Value::Int(1)
    });
    assert!(was_seen);
}

#[test]
fn any_number_of_clients_wait_for_what_a_long_command_holds() {
    let server = one_worker(&[]);
    let [mut client, mut slow] = [connect(&server), connect(&server)];
    fill(&mut client);
    let mut waiting: Vec<Resp> = (0..CLIENTS).map(|_| connect(&server)).collect();
    let id = id_of(&mut slow);
    let mut was_seen = false;
    for round in 0..ROUNDS {
        call(&mut client, "DEL dst counter");
        // On a busy machine those who wait need longer to come.
        let command = holding(round + 1);
        if !is_seen_beside(&mut client, (&mut slow, id), &command, round) {
            receive_noted(&mut slow);
            continue;
        }
        // Each asks for it in another way, and for something else behind that.
        for (number, client) in waiting.iter_mut().enumerate() {
            let commands: &[&[&[u8]]] = match number % 5 {
                0 => &[&[b"SCARD", b"dst"]],
                1 => &[&[b"MULTI"], &[b"SCARD", b"dst"], &[b"EXEC"]],
                2 => &[&[b"EVAL", b"return redis.call('SCARD', KEYS[1])", b"1", b"dst"]],
                3 => &[&[b"SINTERCARD", b"2", b"dst", b"dst"]],
                _ => &[&[b"SISMEMBER", b"dst", b"member:7"]],
            };
            let rest: &[&[&[u8]]] = &[&[b"INCR", b"counter"]];
            send_all(client, &[commands, rest].concat());
        }
        assert_eq!(call(&mut client, "ECHO served"), bulk("served"));
        was_seen |= has_come_to_set(&mut client, id);
        let all = (MANY + MANY / 2) as i64;
        assert_eq!(receive_noted(&mut slow), Value::Int(all));
        let mut counted = Vec::new();
        for (number, client) in waiting.iter_mut().enumerate() {
            if number % 5 == 1 {
                assert_eq!(client.receive().expect("a reply"), Value::Simple(b"OK".to_vec()));
                assert_eq!(client.receive().expect("a reply"), Value::Simple(b"QUEUED".to_vec()));
            }
            let expected = match number % 5 {
                1 => Value::Array(vec![Value::Int(all)]),
                4 => Value::Int(1),
                _ => Value::Int(all),
            };
            assert_eq!(client.receive().expect("a reply"), expected, "{number}");
            counted.push(client.receive().expect("a reply"));
        }
        counted.sort_by_key(|count| if let Value::Int(count) = count { *count } else { panic!("{count:?}") });
        assert_eq!(counted, (1..=CLIENTS as i64).map(Value::Int).collect::<Vec<_>>());
        if was_seen {
            return;
        }
    }
    panic!("others were never served while clients waited");
}

#[test]
fn what_comes_behind_a_long_command_is_of_the_time_when_it_runs() {
    let server = one_worker(&[("enable-debug-command", "local")]);
    let mut client = connect(&server);
    let commands = ["TIME", "DEBUG SLEEP 0.3", "SET k v PX 100000", "PEXPIRETIME k"].map(words);
    let replies = client.pipeline(&commands.each_ref().map(Vec::as_slice)).expect("replies");
    let Value::Array(time) = &replies[0] else { panic!("{replies:?}") };
    let [seconds, micros] = [0, 1].map(|at| match &time[at] {
        Value::Bulk(text) => String::from_utf8_lossy(text).parse::<i64>().expect("a number"),
        other => panic!("{other:?} is no time"),
    });
    let began_ms = seconds * 1_000 + micros / 1_000;
    let Value::Int(deadline_ms) = replies[3] else { panic!("{replies:?}") };
    assert!(deadline_ms >= began_ms + 300 + 100_000, "{replies:?}");
}

/// Each of them takes a slice of the members out and comes again: so many letters are no reason to look at no socket.
#[test]
fn others_are_served_while_several_clients_ask_for_what_is_falling_due() {
    const ASKING: usize = 4;
    const SERVED: usize = 10;
    let server = one_worker(&[("enable-debug-command", "yes")]);
    let (mut client, mut other) = (connect(&server), connect(&server));
    let mut asking = [(); ASKING].map(|()| connect(&server));
    assert_eq!(call(&mut client, "DEBUG SET-ACTIVE-EXPIRE 0"), Value::Simple(b"OK".to_vec()));
    assert_eq!(call(&mut client, "SET k v"), Value::Simple(b"OK".to_vec()));
    let is_served = (1..=20).any(|round| {
        call(&mut client, "HSET h stays v");
        let due = SystemTime::now() + Duration::from_secs(round);
        let due_ms = due.duration_since(UNIX_EPOCH).expect("it is later").as_millis();
        for from in (0..MANY).step_by(1_000) {
            let fields: Vec<String> = (from..from + 1_000).map(|number| format!("{number} v")).collect();
            call(&mut client, &format!("HSETEX h PXAT {due_ms} FIELDS 1000 {}", fields.join(" ")));
        }
        std::thread::sleep(due.duration_since(SystemTime::now()).unwrap_or_default() + Duration::from_millis(100));
        asking.iter_mut().for_each(|asking| asking.send(&[b"HGET", b"h", b"stays"]).expect("sent"));
        let is_done = AtomicBool::new(false);
        let served = std::thread::scope(|scope| {
            let served = scope.spawn(|| {
                let mut served = 0;
                while !is_done.load(Ordering::Relaxed) {
                    assert_eq!(call(&mut other, "GET k"), bulk("v"));
                    served += 1;
                }
                served
            });
            asking.iter_mut().for_each(|asking| assert_eq!(asking.receive().expect("a reply"), bulk("v")));
            is_done.store(true, Ordering::Relaxed);
            served.join().expect("it is served")
        });
        assert_eq!(call(&mut client, "HLEN h"), Value::Int(1));
        served >= SERVED
    });
    assert!(is_served, "others wait until all that is due has gone");
}
