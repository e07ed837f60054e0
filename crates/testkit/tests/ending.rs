//! Ends a server in the middle of scripts that have written, in every way there is, and starts it again: each of them is in the
//! log whole or not at all. A signal waits for them, SHUTDOWN NOSAVE does not. And ends it
//! several times at once. Nothing here depends on how long anything takes.

use std::net::TcpListener;
use std::time::{Duration, Instant};
use tenon_client::{Resp, Value};
use tenon_testkit::patience::{PATIENCE, wait_until};
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

/// Longer than a script may go on at the end that has written nothing.
const GRACE: Duration = Duration::from_millis(1_500);

/// What the server logs when it waits for scripts.
const WAITS: &str = "the end waits for scripts";

/// Goes on for long enough to be told of.
const FOR_LONG: &str = "local function now() local time = redis.call('TIME') return time[1] * 1000 + time[2] / 1000 end \
                        local long = now() + 20 repeat until now() > long for i = 1, 100000 do local n = i * i end ";

/// Does so, says that it has begun, and goes on until somebody listens.
fn until_heard() -> String {
    format!(
        "{FOR_LONG} redis.log(redis.LOG_WARNING, 'begun:' .. ARGV[1]) \
         repeat until redis.call('PUBSUB', 'NUMSUB', 'end')[2] > 0 "
    )
}

/// Takes ten from one field of a hash and, when somebody listens, gives them to the other one; answers 1. The key need not be
/// declared.
fn moves_ten() -> String {
    let until_heard = until_heard();
    format!(
        "redis.call('HINCRBY', ARGV[1], 'from', -10) {until_heard} redis.call('HINCRBY', ARGV[1], 'to', 10) return 1"
    )
}

/// A server that keeps nothing but a log. Scripts are never busy, unless the settings say so.
fn start(settings: &[(&str, &str)]) -> Server {
    let own = [("appendonly", "yes"), ("save", ""), ("workers", "2"), ("enable-debug-command", "local")];
    let patient = [("busy-reply-threshold", "1000000")];
    Server::tenon(&[&own[..], &patient, settings].concat()).expect("tenon starts")
}

fn client(server: &Server) -> Resp {
    Resp::connect_to(server.address(Dialect::Redis).expect("a RESP port"), Some(PATIENCE)).expect("connected")
}

fn send(client: &mut Resp, words: &[&str]) {
    client.send(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>()).expect("it is sent");
}

/// Calls a command whose words are divided by spaces.
fn call(client: &mut Resp, command: &str) -> Value {
    send(client, &command.split(' ').collect::<Vec<_>>());
    client.receive().expect("an answer")
}

fn ok(client: &mut Resp, command: &str) {
    assert_eq!(call(client, command), Value::Simple(b"OK".to_vec()), "{command}");
}

fn error(value: Value) -> String {
    let Value::Error(text) = value else { panic!("an error was expected: {value:?}") };
    String::from_utf8(text).expect("it is text")
}

/// How a script is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Eval,
    EvalUndeclared,
    Function,
    /// Between two other writes of a transaction; the script itself writes at its end alone.
    Exec,
}

const WAYS: [By; 4] = [By::Eval, By::EvalUndeclared, By::Function, By::Exec];

/// A hash with two fields of a hundred, of which a script moves ten from one to the other.
struct Moving {
    key: String,
    by: By,
    began: Instant,
    client: Resp,
}

impl Moving {
    fn send(server: &Server, key: &str, by: By) -> Moving {
        let mut client = client(server);
        let (began, moves_ten) = (Instant::now(), moves_ten());
        match by {
            By::Eval => send(&mut client, &["EVAL", &moves_ten, "1", key, key]),
            By::EvalUndeclared => send(&mut client, &["EVAL", &moves_ten, "0", key]),
            By::Function => {
                let function = format!("function(KEYS, ARGV) {moves_ten} end");
                let library = format!("#!lua name=moving\nredis.register_function('move', {function})");
                send(&mut client, &["FUNCTION", "LOAD", "REPLACE", &library]);
                client.receive().expect("an answer");
                send(&mut client, &["FCALL", "move", "1", key, key]);
            }
            By::Exec => {
                ok(&mut client, "MULTI");
                let script = format!("{} redis.call('SET', 'between', 1) return 1", until_heard());
                let all =
                    [&["HINCRBY", key, "from", "-10"][..], &["EVAL", &script, "0", key], &["HINCRBY", key, "to", "10"]];
                for words in all {
                    send(&mut client, words);
                    assert_eq!(client.receive().expect("an answer"), Value::Simple(b"QUEUED".to_vec()));
                }
                send(&mut client, &["EXEC"]);
            }
        }
        Moving { key: key.to_owned(), by, began, client }
    }

    /// Begins, and comes back when half of it is done.
    fn begin(server: &Server, by: By) -> Moving {
        set_up(server, &["a".to_owned()]);
        let moving = Moving::send(server, "a", by);
        wait_until("the script", || moving.has_begun(server));
        moving
    }

    fn has_begun(&self, server: &Server) -> bool {
        server.log().contains(&format!("begun:{}", self.key))
    }

    /// Lets it go on for longer than what has written nothing may at the end.
    fn outlast_grace(&self) {
        std::thread::sleep(GRACE.saturating_sub(self.began.elapsed()));
    }

    fn is_answered(&mut self) {
        let answer = self.client.receive().expect("an answer");
        let expected = match self.by {
            By::Exec => Value::Array(vec![Value::Int(90), Value::Int(1), Value::Int(110)]),
            By::Eval | By::EvalUndeclared | By::Function => Value::Int(1),
        };
        assert_eq!(answer, expected, "{:?}", self.by);
    }

    /// Looks at what a start has found of it.
    fn check(&self, again: &mut Resp, is_done: bool) {
        let numbers = if is_done { ["90", "110"] } else { ["100", "100"] };
        let expected = numbers.map(|number| Value::Bulk(number.into())).to_vec();
        assert_eq!(call(again, &format!("HMGET {} from to", self.key)), Value::Array(expected), "by {:?}", self.by);
        let is_between = self.by == By::Exec && is_done;
        assert_eq!(call(again, "EXISTS between"), Value::Int(is_between.into()), "by {:?}", self.by);
    }
}

fn set_up(server: &Server, keys: &[String]) {
    let mut client = client(server);
    keys.iter().for_each(|key| assert_eq!(call(&mut client, &format!("HSET {key} from 100 to 100")), Value::Int(2)));
}

/// Sends scripts with keys of their own. Some may wait for others in whose shard their key lies.
fn send_several(server: &Server) -> Vec<Moving> {
    let keys: Vec<String> = (0..8).map(|number| format!("k{number}")).collect();
    set_up(server, &keys);
    keys.iter().map(|key| Moving::send(server, key, By::Eval)).collect()
}

/// Starts a server with the data that another one has left, which has ended.
fn restart(server: &Server) -> (Server, Resp) {
    let folder = server.folder().to_str().expect("it is text");
    let again = Server::tenon(&[("appendonly", "yes"), ("save", ""), ("dir", folder)]).expect("tenon starts");
    let client = client(&again);
    (again, client)
}

/// Has the scripts end.
fn listen(listener: &mut Resp) {
    send(listener, &["SUBSCRIBE", "end"]);
    listener.receive().expect("an answer");
}

#[test]
fn an_end_waits_for_whatever_has_begun_to_write() {
    let others = [(&[("shutdown-on-sigterm", "nosave force")][..], "", By::Eval), (&[][..], "SHUTDOWN", By::Eval)];
    for (settings, words, by) in WAYS.map(|by| (&[][..], "", by)).into_iter().chain(others) {
        let mut server = start(settings);
        let mut listener = client(&server);
        let mut moving = Moving::begin(&server, by);
        let mut leaving = client(&server);
        if words.is_empty() {
            server.signal("-TERM")
        } else {
            send(&mut leaving, &[words])
        }
        wait_until("the end", || server.log().contains(WAITS) || !server.is_running());
        moving.outlast_grace();
        listen(&mut listener);
        moving.is_answered();
        assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
        let (_again, mut again) = restart(&server);
        moving.check(&mut again, true);
    }
}

#[test]
fn an_end_waits_for_several_scripts_at_once() {
    for workers in ["1", "2"] {
        let mut server = start(&[("workers", workers)]);
        let mut listener = client(&server);
        set_up(&server, &["a".to_owned(), "b".to_owned(), "c".to_owned()]);
        let mut all = ["a", "b", "c"].map(|key| Moving::send(&server, key, By::Eval));
        wait_until("two scripts", || all.iter().filter(|moving| moving.has_begun(&server)).count() > 1);
        server.signal("-TERM");
        wait_until("the end", || server.log().contains(WAITS) || !server.is_running());
        all.iter().for_each(Moving::outlast_grace);
        listen(&mut listener);
        // Who waits for what another one holds may not have begun.
        let answered: Vec<bool> = all.iter_mut().map(|moving| moving.client.receive().is_ok()).collect();
        assert!(answered.iter().filter(|is| **is).count() > 1, "{}", server.log());
        assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
        let (_again, mut again) = restart(&server);
        all.iter().zip(answered).for_each(|(moving, is_done)| moving.check(&mut again, is_done));
    }
}

#[test]
fn an_end_that_waits_for_scripts_can_be_called_off() {
    let mut server = start(&[]);
    let (mut listener, mut other) = (client(&server), client(&server));
    let mut moving = Moving::begin(&server, By::Eval);
    server.signal("-TERM");
    wait_until("the end", || server.log().contains(WAITS) || !server.is_running());
    ok(&mut other, "SHUTDOWN ABORT");
    wait_until("that it goes on", || server.log().contains("was called off"));
    listen(&mut listener);
    moving.is_answered();
    ok(&mut other, "SET key value");
    server.signal("-TERM");
    assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
    let (_again, mut again) = restart(&server);
    moving.check(&mut again, true);
    assert_eq!(call(&mut again, "GET key"), Value::Bulk(b"value".to_vec()));
}

#[test]
fn a_script_that_has_written_nothing_keeps_no_server_from_ending() {
    let mut server = start(&[]);
    let mut reader = client(&server);
    send(&mut reader, &["EVAL", &format!("{} return redis.call('INCR', 'n')", until_heard()), "0", "a"]);
    wait_until("the script", || server.log().contains("begun:a"));
    server.signal("-TERM");
    let killed = error(reader.receive().expect("an answer"));
    assert!(killed.starts_with("ERR Script killed by user with SCRIPT KILL..."), "{killed}");
    assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
    let (_again, mut again) = restart(&server);
    assert_eq!(call(&mut again, "EXISTS n"), Value::Int(0));
}

/// Waits until a script is busy.
fn await_busy(client: &mut Resp) {
    wait_until("a busy script", || matches!(call(client, "PING"), Value::Error(text) if text.starts_with(b"BUSY")));
}

#[test]
fn without_saving_nothing_of_a_busy_script_is_kept_and_the_process_does_not_wait_for_it() {
    for by in WAYS {
        // Were it to wait for this long, it would not end.
        let mut server = start(&[("shutdown-timeout", "1000000")]);
        let mut other = client(&server);
        ok(&mut other, "SET confirmed yes");
        let mut moving = Moving::begin(&server, by);
        // It waits for every shard, and is not waited for.
        call(&mut other, "BGREWRITEAOF");
        ok(&mut other, "CONFIG SET busy-reply-threshold 1");
        await_busy(&mut other);
        moving.outlast_grace();
        send(&mut other, &["SHUTDOWN", "NOSAVE"]);
        assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
        assert!(moving.client.receive().is_err(), "it is not confirmed");
        let (_again, mut again) = restart(&server);
        moving.check(&mut again, false);
        assert_eq!(call(&mut again, "GET confirmed"), Value::Bulk(b"yes".to_vec()));
    }
}

#[test]
fn without_saving_nothing_is_kept_of_scripts_that_wait_for_each_other() {
    for workers in ["1", "2"] {
        let mut server = start(&[("workers", workers), ("shutdown-timeout", "1000000")]);
        let mut other = client(&server);
        let moving = Moving::begin(&server, By::Eval);
        // One whose own key lies where that of the first does waits before it has done anything.
        let script =
            "redis.call('SET', KEYS[1], 1) redis.log(redis.LOG_WARNING, 'begun:w') redis.call('HINCRBY', 'a', 'to', 1)";
        let mut waiting = ["w1", "w2", "w3"].map(|key| {
            let mut waiting = client(&server);
            send(&mut waiting, &["EVAL", script, "1", key]);
            waiting
        });
        wait_until("a script that waits", || server.log().contains("begun:w"));
        ok(&mut other, "CONFIG SET busy-reply-threshold 1");
        await_busy(&mut other);
        moving.outlast_grace();
        send(&mut other, &["SHUTDOWN", "NOSAVE"]);
        assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
        assert!(waiting.iter_mut().all(|client| !matches!(client.receive(), Ok(Value::Int(_)))), "none is done");
        let (_again, mut again) = restart(&server);
        moving.check(&mut again, false);
        assert_eq!(call(&mut again, "EXISTS w1 w2 w3"), Value::Int(0));
    }
}

#[test]
fn whoever_waits_for_the_disk_is_answered_before_the_process_ends_in_the_middle_of_a_script() {
    let mut server = start(&[("appendfsync", "always"), ("shutdown-timeout", "1000000")]);
    let mut other = client(&server);
    let moving = Moving::begin(&server, By::Eval);
    ok(&mut other, "DEBUG FAULTS sync:slow=1000");
    // One whose key lies where the script's does waits for that.
    let mut writers: Vec<Resp> = (0..4).map(|_| client(&server)).collect();
    for (number, writer) in writers.iter_mut().enumerate() {
        send(writer, &["SET", &format!("confirmed{number}"), "yes"]);
    }
    wait_until("a write", || {
        let Value::Bulk(info) = call(&mut other, "INFO commandstats") else { panic!("INFO is a text") };
        String::from_utf8_lossy(&info).contains("cmdstat_set:calls=")
    });
    ok(&mut other, "CONFIG SET busy-reply-threshold 1");
    await_busy(&mut other);
    moving.outlast_grace();
    send(&mut other, &["SHUTDOWN", "NOSAVE"]);
    let is_ok = |answer: std::io::Result<Value>| answer.is_ok_and(|answer| answer == Value::Simple(b"OK".to_vec()));
    let confirmed: Vec<bool> = writers.iter_mut().map(|writer| is_ok(writer.receive())).collect();
    assert!(confirmed.contains(&true), "{}", server.log());
    assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
    let (_again, mut again) = restart(&server);
    moving.check(&mut again, false);
    for (number, _) in confirmed.iter().enumerate().filter(|(_, is_confirmed)| **is_confirmed) {
        assert_eq!(call(&mut again, &format!("GET confirmed{number}")), Value::Bulk(b"yes".to_vec()));
    }
}

/// Where no thread is left for a worker's other clients they are not closed before its script has ended, and a command that
/// waits for all shards has not ended either.
#[test]
fn without_saving_the_process_ends_in_its_time_whoever_waits_for_scripts() {
    let settings = [("workers", "1"), ("shutdown-timeout", "1"), ("busy-reply-threshold", "300")];
    let mut server = start(&settings);
    let (mut other, mut flushing) = (client(&server), client(&server));
    let all = send_several(&server);
    wait_until("a script", || all.iter().any(|moving| moving.has_begun(&server)));
    send(&mut flushing, &["FLUSHALL"]);
    await_busy(&mut other);
    all.iter().for_each(Moving::outlast_grace);
    send(&mut other, &["SHUTDOWN", "NOSAVE"]);
    assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
    let (_again, mut again) = restart(&server);
    all.iter().for_each(|moving| moving.check(&mut again, false));
}

#[test]
fn an_end_that_waits_for_a_script_that_does_not_end_can_be_had_without_it() {
    for insists in [false, true] {
        let mut server = start(&[("shutdown-timeout", "1000000")]);
        let mut other = client(&server);
        let moving = Moving::begin(&server, By::Eval);
        ok(&mut other, "CONFIG SET busy-reply-threshold 1");
        await_busy(&mut other);
        server.signal("-TERM");
        wait_until("the end", || server.log().contains(WAITS) || !server.is_running());
        moving.outlast_grace();
        if insists {
            server.signal("-INT");
        } else {
            send(&mut other, &["SHUTDOWN", "NOSAVE"]);
        }
        let status = server.wait_for_end(PATIENCE).expect("it ends");
        assert_eq!(status.success(), !insists, "{}", server.log());
        let (_again, mut again) = restart(&server);
        moving.check(&mut again, false);
    }
}

#[test]
fn who_has_written_does_not_wait_at_the_end_for_one_that_has_not() {
    let mut server = start(&[]);
    let (mut reader, mut writer) = (client(&server), client(&server));
    let reads = "redis.call('GET', KEYS[1]) redis.log(redis.LOG_WARNING, 'reads') while true do end";
    send(&mut reader, &["EVAL", reads, "1", "b"]);
    wait_until("the reader", || server.log().contains("reads"));
    let writes = format!(
        "redis.call('SET', KEYS[1], 1) {FOR_LONG} redis.log(redis.LOG_WARNING, 'writes') redis.call('GET', ARGV[1]) \
         redis.call('SET', KEYS[1], 2) return 1"
    );
    send(&mut writer, &["EVAL", &writes, "1", "a", "b"]);
    wait_until("the writer", || server.log().contains("writes"));
    server.signal("-TERM");
    assert_eq!(writer.receive().expect("an answer"), Value::Int(1));
    assert!(error(reader.receive().expect("an answer")).contains("killed"));
    assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
    let (_again, mut again) = restart(&server);
    assert_eq!(call(&mut again, "GET a"), Value::Bulk(b"2".to_vec()));
}

#[test]
fn a_log_that_begins_behind_a_script_has_its_base_before_the_end() {
    let mut server = start(&[("appendonly", "no")]);
    let (mut listener, mut moving) = (client(&server), client(&server));
    ok(&mut moving, "SET old 1");
    ok(&mut moving, "MULTI");
    let script = format!("redis.call('SET', 'during', 1) {} return 1", until_heard());
    for words in [&["EVAL", &script, "0", "it"][..], &["CONFIG", "SET", "appendonly", "yes"], &["SET", "behind", "1"]] {
        send(&mut moving, words);
        assert_eq!(moving.receive().expect("an answer"), Value::Simple(b"QUEUED".to_vec()));
    }
    send(&mut moving, &["EXEC"]);
    wait_until("the script", || server.log().contains("begun:it"));
    server.signal("-TERM");
    wait_until("the end", || server.log().contains(WAITS));
    listen(&mut listener);
    let ok = Value::Simple(b"OK".to_vec());
    assert_eq!(moving.receive().expect("an answer"), Value::Array(vec![Value::Int(1), ok.clone(), ok]));
    assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
    let (_again, mut again) = restart(&server);
    assert_eq!(call(&mut again, "EXISTS old during behind"), Value::Int(3));
}

#[test]
fn what_is_set_during_the_wait_changes_nothing_of_the_end() {
    let mut server = start(&[]);
    let mut listener = client(&server);
    let mut moving = Moving::begin(&server, By::Eval);
    let mut other = client(&server);
    server.signal("-TERM");
    wait_until("the end", || server.log().contains(WAITS));
    send(&mut other, &["CONFIG", "SET", "save", "3600 1"]);
    assert_eq!(other.receive().expect("an answer"), Value::Simple(b"OK".to_vec()));
    listen(&mut listener);
    moving.is_answered();
    assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
}

#[test]
fn an_end_that_was_called_off_does_not_hold_up_another_one() {
    let mut server = start(&[]);
    let (mut writer, mut reader, mut leaving) = (client(&server), client(&server), client(&server));
    let writes = format!(
        "redis.call('SET', KEYS[1], 1) {FOR_LONG} redis.log(redis.LOG_WARNING, 'writes') \
         long = now() + 1200 repeat until now() > long return 1"
    );
    send(&mut writer, &["EVAL", &writes, "1", "a"]);
    wait_until("the writer", || server.log().contains("writes"));
    server.signal("-TERM");
    wait_until("the end", || server.log().contains(WAITS));
    let reads = "redis.log(redis.LOG_WARNING, 'reads') while true do end";
    send(&mut reader, &["EVAL_RO", reads, "0"]);
    wait_until("the reader", || server.log().contains("reads"));
    // In one go: the end's thread has not seen the one when the other comes.
    leaving.send_raw(b"SHUTDOWN ABORT\r\nSHUTDOWN NOSAVE\r\n").expect("it is sent");
    assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
}

#[test]
fn an_end_that_is_asked_for_right_behind_an_abort_comes() {
    let mut server = start(&[]);
    let (mut listener, mut leaving) = (client(&server), client(&server));
    let mut moving = Moving::begin(&server, By::Eval);
    server.signal("-TERM");
    wait_until("the end", || server.log().contains(WAITS));
    // In one go: the end's thread has not seen the one when the other comes.
    leaving.send_raw(b"SHUTDOWN ABORT\r\nSHUTDOWN\r\n").expect("it is sent");
    assert_eq!(leaving.receive().expect("an answer"), Value::Simple(b"OK".to_vec()));
    wait_until("the other end", || server.log().matches(WAITS).count() == 2);
    listen(&mut listener);
    moving.is_answered();
    assert!(leaving.receive().is_err(), "the connection ends");
    assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
    let (_again, mut again) = restart(&server);
    moving.check(&mut again, true);
}

/// Clients that have asked for the end and are not answered.
fn await_asking(client: &mut Resp, count: usize) {
    wait_until("that the end is asked for", || {
        let Value::Bulk(list) = call(client, "CLIENT LIST") else { panic!("it is a text") };
        String::from_utf8_lossy(&list).matches("cmd=shutdown").count() == count
    });
}

#[test]
fn who_wants_the_end_whatever_fails_has_it_behind_one_that_fails() {
    for by_signal in [false, true] {
        let mut server = start(&[("appendonly", "no"), ("shutdown-on-sigterm", "save force")]);
        let (mut listener, mut other) = (client(&server), client(&server));
        let mut moving = Moving::begin(&server, By::Eval);
        ok(&mut other, "DEBUG FAULTS write:enospc");
        let (mut first, mut forcing) = (client(&server), client(&server));
        send(&mut first, &["SHUTDOWN", "SAVE"]);
        wait_until("the end", || server.log().contains(WAITS));
        if by_signal {
            server.signal("-TERM");
            wait_until("the signal", || server.log().contains("Received SIGTERM"));
        } else {
            send(&mut forcing, &["SHUTDOWN", "SAVE", "FORCE"]);
            await_asking(&mut other, 2);
        }
        listen(&mut listener);
        moving.is_answered();
        assert_eq!(error(first.receive().expect("an answer")), "ERR Errors trying to SHUTDOWN. Check logs.");
        assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
    }
}

#[test]
fn an_abort_calls_off_all_ends_that_were_asked_for_and_none_comes_of_them() {
    let mut server = start(&[]);
    let (mut listener, mut other) = (client(&server), client(&server));
    let mut moving = Moving::begin(&server, By::Eval);
    let mut asking = ["SHUTDOWN", "SHUTDOWN SAVE", "SHUTDOWN SAVE FORCE"].map(|words| {
        let mut asking = client(&server);
        send(&mut asking, &words.split(' ').collect::<Vec<_>>());
        asking
    });
    wait_until("the end", || server.log().contains(WAITS));
    await_asking(&mut other, asking.len());
    ok(&mut other, "SHUTDOWN ABORT");
    for client in &mut asking {
        assert_eq!(error(client.receive().expect("an answer")), "ERR Errors trying to SHUTDOWN. Check logs.");
    }
    assert_eq!(error(call(&mut other, "SHUTDOWN ABORT")), "ERR No shutdown in progress.");
    listen(&mut listener);
    moving.is_answered();
    ok(&mut other, "SET key value");
    server.signal("-TERM");
    assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
}

#[test]
fn who_has_ended_a_server_can_start_another_one_at_once() {
    for _ in 0..8 {
        let mut server = start(&[("busy-reply-threshold", "1")]);
        let address = server.address(Dialect::Redis).expect("a RESP port").clone();
        let (mut busy, mut leaving) = (client(&server), client(&server));
        send(&mut busy, &["EVAL", "while true do redis.call('PING') end", "0"]);
        await_busy(&mut leaving);
        send(&mut leaving, &["SHUTDOWN", "NOSAVE"]);
        assert!(leaving.receive().is_err(), "the connection ends");
        let bound = TcpListener::bind(address.to_string());
        assert!(bound.is_ok(), "{bound:?}");
        drop(bound);
        assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
    }
}
