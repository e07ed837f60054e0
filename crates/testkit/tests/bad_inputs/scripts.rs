//! Scripts that do not end, that want everything, and that get in each other's way. Knows no Lua but theirs.

use crate::support::{MIB, PATIENCE, assert_alive, resp, tenon, wait_until, within_memory};
use std::time::Instant;
use tenon_client::{Resp, Value};
use tenon_testkit::server::Server;

/// Asks until the answer is one that is wanted.
fn until(mut ask: impl FnMut() -> Value, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let started = Instant::now();
    loop {
        let answer = ask();
        if is_wanted(&answer) {
            return answer;
        }
        assert!(started.elapsed() < PATIENCE, "still {answer:?}");
    }
}

fn is_error(value: &Value, start: &str) -> bool {
    matches!(value, Value::Error(text) if text.starts_with(start.as_bytes()))
}

fn call(client: &mut Resp, words: &[&str]) -> Value {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    client.call(&words).expect("an answer")
}

fn eval(client: &mut Resp, source: &str) -> Value {
    call(client, &["EVAL", source, "0"])
}

fn busy_server(workers: &str) -> Server {
    tenon(&[("workers", workers), ("busy-reply-threshold", "100")])
}

/// Starts a command whose answer is taken later.
fn start(client: &mut Resp, words: &[&str]) {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    client.send(&words).expect("sent");
}

#[test]
fn an_endless_script_lets_others_know_and_can_be_killed() {
    for workers in ["1", "2"] {
        let server = busy_server(workers);
        // Of several clients each worker has at least one.
        let mut others: Vec<Resp> = (0..4).map(|_| resp(&server)).collect();
        let mut endless = resp(&server);
        for (source, killed) in [
            ("while true do end", "ERR Script killed by user with SCRIPT KILL... script: "),
            (
                "while true do pcall(function() while true do end end) end",
                "ERR Script killed by user with SCRIPT KILL... ",
            ),
            ("return string.find(('a'):rep(1e5), '.-.-.-.-.-b')", "ERR Script killed by user with SCRIPT KILL... "),
            // What it returns is what does not end.
            ("local t = {1} for i = 1, 60 do t = {t, t} end return t", "ERR Script killed by user with SCRIPT KILL..."),
            // Others have heard of it, but it has written nothing.
            (
                "redis.call('publish', 'c', 'm') redis.call('pfcount', 'p') while true do end",
                "ERR Script killed by user with SCRIPT KILL... script: ",
            ),
        ] {
            start(&mut endless, &["EVAL", source, "0"]);
            for other in &mut others {
                until(|| call(other, &["PING"]), |answer| is_error(answer, "BUSY "));
                assert!(is_error(&call(other, &["GET", "a"]), "BUSY "));
                assert!(is_error(&call(other, &["FUNCTION", "KILL"]), "BUSY "));
                assert!(is_error(&call(other, &["SHUTDOWN"]), "BUSY "));
                assert_eq!(call(other, &["MULTI"]), Value::Simple(b"OK".to_vec()));
                assert!(is_error(&call(other, &["GET", "a"]), "BUSY "));
                assert_eq!(call(other, &["DISCARD"]), Value::Simple(b"OK".to_vec()));
            }
            // One that comes only now.
            assert!(is_error(&call(&mut resp(&server), &["PING"]), "BUSY "));
            assert_eq!(call(&mut others[0], &["SCRIPT", "KILL"]), Value::Simple(b"OK".to_vec()));
            let answer = endless.receive().expect("an answer");
            assert!(is_error(&answer, killed), "{answer:?}");
            assert!(is_error(&call(&mut others[0], &["SCRIPT", "KILL"]), "NOTBUSY "));
            for other in &mut others {
                assert_eq!(call(other, &["PING"]), Value::Simple(b"PONG".to_vec()));
            }
        }
        assert_alive(&server);
    }
}

#[test]
fn who_waits_for_a_busy_scripts_shard_is_not_left_waiting() {
    let server = busy_server("2");
    let mut endless = resp(&server);
    let mut others: Vec<Resp> = (0..4).map(|_| resp(&server)).collect();
    call(&mut others[0], &["SET", "held", "1"]);
    assert_eq!(call(&mut others[1], &["WATCH", "held"]), Value::Simple(b"OK".to_vec()));
    start(&mut endless, &["EVAL", "redis.call('get', KEYS[1]) while true do end", "1", "held"]);
    // All workers may be waiting for the shard by the time that the script is busy.
    for other in &mut others[2..] {
        start(other, &["GET", "held"]);
    }
    for other in &mut others[2..] {
        let answer = other.receive().expect("an answer");
        assert!(answer == Value::Bulk(b"1".to_vec()) || is_error(&answer, "BUSY "), "{answer:?}");
    }
    until(|| call(&mut others[0], &["PING"]), |answer| is_error(answer, "BUSY "));
    assert_eq!(call(&mut others[1], &["UNWATCH"]), Value::Simple(b"OK".to_vec()));
    assert_eq!(call(&mut others[0], &["SCRIPT", "KILL"]), Value::Simple(b"OK".to_vec()));
    assert!(is_error(&endless.receive().expect("an answer"), "ERR Script killed"));
    until(|| call(&mut others[0], &["GET", "held"]), |answer| *answer == Value::Bulk(b"1".to_vec()));
    assert_eq!(call(&mut others[0], &["DBSIZE"]), Value::Int(1));
}

#[test]
fn a_script_that_has_written_ends_only_with_the_server() {
    for workers in ["1", "2"] {
        let mut server = busy_server(workers);
        let mut endless = resp(&server);
        let mut other = resp(&server);
        start(&mut endless, &["EVAL", "redis.call('set', KEYS[1], 1) while true do end", "1", "k"]);
        until(|| call(&mut other, &["PING"]), |answer| is_error(answer, "BUSY "));
        assert!(is_error(&call(&mut other, &["SCRIPT", "KILL"]), "UNKILLABLE "));
        other.send(&[b"SHUTDOWN", b"NOSAVE"]).expect("sent");
        server.wait_for_end(PATIENCE).expect("it ends");
    }
}

#[test]
fn functions_are_killed_by_their_own_command() {
    let server = busy_server("1");
    let mut endless = resp(&server);
    let mut other = resp(&server);
    let code = "#!lua name=l\nredis.register_function('forever', function() while true do end end)";
    call(&mut other, &["FUNCTION", "LOAD", code]);
    start(&mut endless, &["FCALL", "forever", "0"]);
    until(|| call(&mut other, &["PING"]), |answer| is_error(answer, "BUSY "));
    assert!(is_error(&call(&mut other, &["SCRIPT", "KILL"]), "BUSY "));
    let Value::Array(stats) = call(&mut other, &["FUNCTION", "STATS"]) else { panic!("STATS gives a list") };
    let Value::Array(running) = &stats[1] else { panic!("something runs") };
    assert_eq!(running[1], Value::Bulk(b"forever".to_vec()));
    assert_eq!(call(&mut other, &["FUNCTION", "KILL"]), Value::Simple(b"OK".to_vec()));
    let answer = endless.receive().expect("an answer");
    assert!(is_error(&answer, "ERR Script killed by user with SCRIPT KILL... script: forever, on @user_function:2."));
    let code = "#!lua name=m\nwhile true do end";
    assert!(is_error(
        &call(&mut other, &["FUNCTION", "LOAD", code]),
        "ERR Error registering functions: ERR FUNCTION LOAD timeout"
    ));
}

#[test]
fn a_library_may_have_very_many_functions() {
    let server = tenon(&[]);
    let mut client = resp(&server);
    let code = "#!lua name=many\n\
                for i = 1, 9000 do redis.register_function('f' .. i, function() return i end) end";
    assert_eq!(call(&mut client, &["FUNCTION", "LOAD", code]), Value::Bulk(b"many".to_vec()));
    assert_eq!(call(&mut client, &["FCALL", "f8765", "0"]), Value::Int(8765));
}

#[test]
fn memory_bombs_end_with_an_error() {
    let server = tenon(&[("workers", "1"), ("script-memory-max", "8mb")]);
    let mut client = resp(&server);
    within_memory(&server, 64 * MIB, || {
        for source in [
            "local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end",
            "local s = 'x' while true do s = s .. s end",
            "return ('x'):rep(1e10)",
            "local t = {} for i = 1, 1e9 do t[i] = i end",
            "return (('x'):rep(1e6)):gsub('x', ('y'):rep(1e6))",
            "local t = 'x' for i = 1, 15 do t = {t, t, t, t, t, t, t, t} end return cjson.encode(t)",
            "local t = {} for i = 1, 15 do t = {t, t, t, t, t, t, t, t} end return cmsgpack.pack(t)",
        ] {
            let answer = eval(&mut client, source);
            let text = format!("{answer:?}");
            assert!(matches!(answer, Value::Error(_)), "{source}: {text}");
            assert_eq!(eval(&mut client, "return 1"), Value::Int(1), "after {source}");
        }
    });
    assert_alive(&server);
}

#[test]
fn scripts_without_end_leave_room_for_the_next() {
    const SCRIPTS: i64 = 400;
    let server = tenon(&[("workers", "1"), ("script-memory-max", "8mb")]);
    let mut client = resp(&server);
    let load = |client: &mut _, number: i64| {
        let source = format!("local text = '{}' return {number}", "x".repeat(40_000));
        (eval(client, &source), source)
    };
    let mut first = None;
    for number in 0..SCRIPTS {
        let (answer, source) = load(&mut client, number);
        assert_eq!(answer, Value::Int(number));
        first.get_or_insert(source);
    }
    let Value::Bulk(sha) = call(&mut client, &["SCRIPT", "LOAD", &first.expect("there are some")]) else {
        panic!("it is known still")
    };
    let sha = String::from_utf8(sha).expect("it is text");
    assert_eq!(call(&mut client, &["EVALSHA", &sha, "0"]), Value::Int(0));
}

#[test]
fn what_scripts_leave_behind_is_freed_without_another_script() {
    let server = tenon(&[]);
    let mut client = resp(&server);
    let mut taken = || {
        let Value::Bulk(info) = call(&mut client, &["INFO", "memory"]) else { panic!("INFO is text") };
        let info = String::from_utf8(info).expect("INFO is text");
        let bytes =
            info.lines().find_map(|line| line.strip_prefix("used_memory_vm_eval:")).expect("the field is there");
        bytes.parse::<usize>().expect("a number")
    };
    // One for each worker, more or less.
    let make = "local t = {} for i = 1, 300000 do t[i] = 'x' .. i end return #t";
    let mut clients: Vec<_> = (0..8).map(|_| resp(&server)).collect();
    for client in &mut clients {
        assert_eq!(eval(client, make), Value::Int(300_000));
    }
    wait_until("the garbage to go", || taken() < 4 * MIB);
    for client in &mut clients {
        assert_eq!(eval(client, "return #ARGV"), Value::Int(0));
    }
    assert_eq!(call(&mut clients[0], &["SCRIPT", "FLUSH"]), Value::Simple(b"OK".to_vec()));
    wait_until("every state to go", || taken() == 0);
    assert_eq!(eval(&mut clients[0], "return 2"), Value::Int(2));
}

#[test]
fn nothing_passes_from_one_script_to_another() {
    // CVE-2022-24735, CVE-2025-46818: code that another user's script would run.
    let server = tenon(&[("workers", "1")]);
    let mut client = resp(&server);
    for source in [
        "redis.call = function() return 'mine' end",
        "getmetatable('').__index = function() return 'mine' end",
        "getmetatable('').upper = 'mine'",
        "getmetatable(_G).__index = function() return 'mine' end",
        "string.upper = function() return 'mine' end",
        "rawset(string, 'upper', function() return 'mine' end)",
        "table.insert(string, 'mine')",
        "setmetatable(string, {__index = function() return 'mine' end})",
        "for _, t in pairs({redis, string, table, math, cjson, bit, _G}) do for k in pairs(t) do rawset(t, k, 'mine') end end",
        "for k, v in next, _G do if type(v) == 'table' then v.mine = 'mine' end end",
        "KEYS = 'mine'",
        "collectgarbage('stop') cjson.encode_max_depth(1)",
    ] {
        eval(&mut client, source);
        let check = "return {('a'):upper(), redis.call('echo', 'x'), cjson.encode({{1}}), type(KEYS), \
                     tostring(rawget(string, 1)), tostring(rawget(_G, 'mine'))}";
        let words = ["A", "x", "[[1]]", "table", "nil", "nil"];
        let expected = Value::Array(words.iter().map(|word| Value::Bulk(word.as_bytes().to_vec())).collect());
        assert_eq!(eval(&mut client, check), expected, "after {source}");
    }
}

#[test]
fn error_replies_stay_one_line() {
    // CVE-2025-67733.
    let server = tenon(&[("workers", "1")]);
    let mut client = resp(&server);
    for source in [
        "return redis.error_reply('A b\\r\\n+OK\\r\\n')",
        "return {err='A b\\r\\n+OK\\0\\r\\n'}",
        "return {ok='b\\r\\n+OK\\r\\n'}",
        "error({err='A b\\r\\n$1\\r\\nx\\r\\n'})",
        "error('b\\r\\n$1\\r\\nx')",
        "return {big_number='1\\r\\n+OK'}",
        "return redis.call('nothing\\r\\n+OK')",
    ] {
        eval(&mut client, source);
        assert_eq!(call(&mut client, &["ECHO", "in step"]), Value::Bulk(b"in step".to_vec()), "after {source}");
    }
}

#[test]
fn scripts_on_each_others_undeclared_keys_end() {
    let server = tenon(&[("workers", "4")]);
    let rounds = 300;
    std::thread::scope(|scope| {
        for (first, second) in [("a", "b"), ("b", "a"), ("a", "c"), ("c", "b")] {
            let server = &server;
            scope.spawn(move || {
                let mut client = resp(server);
                // Each counts up what it declares, and then what it does not: after its first write it cannot begin anew.
                let source = "redis.call('incr', KEYS[1]) for i = 1, 50 do redis.call('get', KEYS[1]) end \
                              return redis.call('incr', ARGV[1])";
                for _ in 0..rounds {
                    let answer = call(&mut client, &["EVAL", source, "1", first, second]);
                    assert!(matches!(answer, Value::Int(_)), "{answer:?}");
                }
            });
        }
        for _ in 0..2 {
            let server = &server;
            scope.spawn(move || {
                let mut client = resp(server);
                for _ in 0..rounds {
                    assert_eq!(call(&mut client, &["MSET", "x", "1", "y", "2"]), Value::Simple(b"OK".to_vec()));
                    let Value::Array(values) = call(&mut client, &["MGET", "a", "b", "c"]) else { panic!("a list") };
                    assert_eq!(values.len(), 3);
                    assert!(matches!(eval(&mut client, "return redis.call('dbsize')"), Value::Int(_)));
                }
            });
        }
    });
    let mut client = resp(&server);
    let expected = |count: i64| Value::Bulk(count.to_string().into_bytes());
    assert_eq!(call(&mut client, &["GET", "a"]), expected(3 * rounds));
    assert_eq!(call(&mut client, &["GET", "b"]), expected(3 * rounds));
    assert_eq!(call(&mut client, &["GET", "c"]), expected(2 * rounds));
}

#[test]
fn scripts_with_their_keys_in_their_text_are_atomic_all_the_same() {
    const ACCOUNTS: usize = 10;
    let server = tenon(&[("workers", "2")]);
    let names: Vec<String> = (0..ACCOUNTS).map(|number| format!("account:{number}")).collect();
    let mut client = resp(&server);
    for name in &names {
        call(&mut client, &["SET", name, "100"]);
    }
    std::thread::scope(|scope| {
        for player in 0..4 {
            let (server, names) = (&server, &names);
            scope.spawn(move || {
                let mut client = resp(server);
                for round in 0..1_500 {
                    // No two texts are alike, so that nothing is known of any.
                    let (from, to) = ((round * 7 + player * 13) % ACCOUNTS, (round * 11 + player * 5) % ACCOUNTS);
                    let moved = format!(
                        "redis.call('decrby', 'account:{from}', 5) for i = 1, 200 do redis.call('get', 'account:' .. i % 10) end \
                         redis.call('incrby', 'account:{to}', 5) -- {player} {round}"
                    );
                    assert_eq!(eval(&mut client, &moved), Value::NullBulk);
                    let mut words = vec!["MGET"];
                    words.extend(names.iter().map(String::as_str));
                    let Value::Array(balances) = call(&mut client, &words) else { panic!("a list") };
                    let balances = balances.iter().map(|balance| match balance {
                        Value::Bulk(text) => str::from_utf8(text).expect("digits").parse::<i64>().expect("a number"),
                        other => panic!("{other:?}"),
                    });
                    assert_eq!(balances.sum::<i64>(), 100 * ACCOUNTS as i64);
                }
            });
        }
    });
}

#[test]
fn scripts_that_declare_nothing_are_atomic_all_the_same() {
    let server = tenon(&[("workers", "4")]);
    let mut client = resp(&server);
    call(&mut client, &["MSET", "left", "0", "right", "0"]);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let server = &server;
            scope.spawn(move || {
                let mut client = resp(server);
                let moved = "local n = redis.call('incr', 'left') redis.call('decr', 'right') return n";
                for _ in 0..300 {
                    assert!(matches!(eval(&mut client, moved), Value::Int(_)));
                    let sum = "return redis.call('get', 'right') + redis.call('get', 'left')";
                    assert_eq!(eval(&mut client, sum), Value::Int(0));
                }
            });
        }
    });
    assert_eq!(call(&mut client, &["GET", "left"]), Value::Bulk(b"900".to_vec()));
}
