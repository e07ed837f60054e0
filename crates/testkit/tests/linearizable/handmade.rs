//! Histories made by hand, most of which no server may show: the check has to refuse them.

use crate::check::{Verdict, check};
use crate::history::{Call, Operation, words};
use crate::model::State;
use tenon_client::Value;

/// Reads `[a b]`, `null`, `+OK`, `-ERR`, a number, or else a text.
fn reply(text: &str) -> Value {
    if let Some(inside) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return Value::Array(inside.split_whitespace().map(reply).collect());
    }
    match text.split_at_checked(1) {
        _ if text == "null" => Value::NullBulk,
        Some(("+", rest)) => Value::Simple(rest.as_bytes().to_vec()),
        Some(("-", rest)) => Value::Error(rest.as_bytes().to_vec()),
        Some(("#", rest)) => Value::Int(rest.parse().expect("a number")),
        _ => Value::Bulk(text.as_bytes().to_vec()),
    }
}

/// Whether a history is linearizable that begins without keys. A line is `client from-to command = reply`; `EXEC` and `EVAL`
/// have their commands behind them, divided by semicolons.
fn is_linearizable(history: &str) -> bool {
    let mut clients: Vec<Vec<Operation>> = vec![Vec::new(); 4];
    for line in history.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (asked, answered) = line.split_once(" = ").expect("a reply");
        let [client, times, command] = *asked.splitn(3, ' ').collect::<Vec<_>>() else { panic!("not a line: {line}") };
        let (from, to) = times.split_once('-').expect("two times");
        let calls = |text: &str| text.split("; ").map(words).collect();
        let call = match command.split_once(' ') {
            Some(("EXEC", rest)) => Call::Exec(calls(rest)),
            Some(("EVAL", rest)) => Call::Script { calls: calls(rest), declared: true, idles: 0 },
            _ => Call::Command(words(command)),
        };
        let client: usize = client.parse().expect("a number");
        clients[client].push(Operation {
            client,
            database: 0,
            invoked_ns: from.parse().expect("a time"),
            answered_ns: to.parse().expect("a time"),
            call,
            reply: reply(answered),
        });
    }
    match check(&State::default(), &clients) {
        Verdict::Linearizable => true,
        Verdict::Not(..) => false,
        Verdict::GivenUp => panic!("it is short"),
    }
}

#[track_caller]
fn good(history: &str) {
    assert!(is_linearizable(history), "{history}");
}

#[track_caller]
fn bad(history: &str) {
    assert!(!is_linearizable(history), "{history}");
}

#[test]
fn reads_agree_with_real_time() {
    good("0 1-2 SET k 1 = +OK\n 0 3-6 SET k 2 = +OK\n 1 4-5 GET k = 1\n 1 7-8 GET k = 2");
    good("0 1-2 SET k 1 = +OK\n 0 3-6 SET k 2 = +OK\n 1 4-5 GET k = 2");
    // Stale.
    bad("0 1-2 SET k 1 = +OK\n 0 3-4 SET k 2 = +OK\n 1 5-6 GET k = 1");
    // What one has seen, another that comes later has not.
    bad("0 1-2 SET k 1 = +OK\n 0 3-8 SET k 2 = +OK\n 1 4-5 GET k = 2\n 2 6-7 GET k = 1");
    // From nowhere.
    bad("0 1-4 SET k 1 = +OK\n 1 2-3 GET k = 7");
}

#[test]
fn a_client_sees_its_own_order() {
    // Three in one packet.
    good("0 1-9 SET k 1 = +OK\n 0 1-9 SET k 2 = +OK\n 0 1-9 GET k = 2");
    bad("0 1-9 SET k 1 = +OK\n 0 1-9 SET k 2 = +OK\n 0 1-9 GET k = 1");
}

#[test]
fn no_update_is_lost() {
    good("0 1-4 INCR k = #1\n 1 2-3 INCR k = #2\n 0 5-6 GET k = 2");
    bad("0 1-4 INCR k = #1\n 1 2-3 INCR k = #1");
    bad("0 1-4 INCR k = #1\n 1 2-3 INCR k = #2\n 0 5-6 GET k = 1");
    bad("0 1-4 APPEND k a = #1\n 1 2-3 APPEND k b = #2\n 0 5-6 GET k = b");
    bad("0 1-4 SET k 1 NX = +OK\n 1 2-3 SET k 2 NX = +OK");
    bad("0 1-2 set k 1 = +STORED\n 0 3-4 gets k = [1 #7]\n 1 3-4 gets k = [1 #7]\n 0 5-8 cas k 2 7 = +STORED\n \
         1 6-7 cas k 3 7 = +STORED");
}

#[test]
fn a_write_that_changes_nothing_now_may_do_so_later() {
    good("0 1-2 SET k 1 = +OK\n 0 3-8 SET k 1 = +OK\n 1 4-5 SET k 2 = +OK\n 1 9-10 GET k = 1");
    good("0 1-6 SET k 1 = +OK\n 1 2-3 SET k 1 = +OK\n 1 4-5 WATCH k = +OK\n 1 7-8 EXEC GET k = null");
}

#[test]
fn several_keys_are_read_and_written_at_one_moment() {
    good("0 1-2 MSET k 1 j 1 = +OK\n 0 3-6 MSET k 2 j 2 = +OK\n 1 4-5 MGET k j = [1 1]");
    // Torn.
    bad("0 1-2 MSET k 1 j 1 = +OK\n 0 3-6 MSET k 2 j 2 = +OK\n 1 4-5 MGET k j = [2 1]");
    bad("0 1-6 EXEC SET k 2; SET j 2 = [+OK +OK]\n 1 2-3 GET k = 2\n 1 4-5 GET j = null");
    bad("0 1-6 EVAL SET k 2; SET j 2 = [+OK +OK]\n 1 2-3 MGET k j = [null 2]");
    bad("0 1-2 SET k 1 = +OK\n 0 3-6 RENAME k j = +OK\n 1 4-5 MGET k j = [1 1]");
    bad("0 1-2 SADD k a = #1\n 0 3-8 SMOVE k j a = #1\n 1 4-5 SMEMBERS j = [a]\n 1 6-7 SMEMBERS k = [a]");
}

#[test]
fn an_element_is_popped_once() {
    good("0 1-2 RPUSH k a b = #2\n 0 3-6 LPOP k = b\n 1 4-5 LPOP k = a");
    bad("0 1-2 RPUSH k a b = #2\n 0 3-6 LPOP k = a\n 1 4-5 LPOP k = a");
    // One waits, and is given what another has taken.
    good("0 1-6 BLPOP k 0 = [k a]\n 1 2-3 RPUSH k a = #1\n 1 4-5 LPOP k = null");
    bad("0 1-6 BLPOP k 0 = [k a]\n 1 2-3 RPUSH k a = #1\n 1 4-5 LPOP k = a");
    bad("0 1-6 BLPOP k 0 = [k b]\n 1 2-3 RPUSH k a b = #2\n 2 7-8 LRANGE k 0 -1 = [a]");
    // It was there all the time.
    bad("0 1-2 RPUSH k a = #1\n 1 3-4 BLPOP k 0 = null\n 0 5-6 LPOP k = a");
    bad("0 1-2 ZADD k 1 a 2 b = #2\n 0 3-6 ZPOPMIN k = [a 1]\n 1 4-5 ZPOPMIN k = [a 1]");
    bad("0 1-2 SADD k a = #1\n 0 3-6 SPOP k = a\n 1 4-5 SPOP k = a");
}

#[test]
fn a_watched_key_that_changes_ends_the_transaction() {
    good("0 1-2 WATCH k = +OK\n 1 3-4 SET k 1 = +OK\n 0 5-6 EXEC GET k = null");
    good("0 1-4 WATCH k = +OK\n 1 2-3 SET k 1 = +OK\n 0 5-6 EXEC GET k = [1]");
    bad("0 1-2 WATCH k = +OK\n 1 3-4 SET k 1 = +OK\n 0 5-6 EXEC GET k = [1]");
    // Nobody has changed it.
    bad("0 1-2 WATCH k = +OK\n 1 3-4 SET j 1 = +OK\n 0 5-6 EXEC GET k = null");
}
