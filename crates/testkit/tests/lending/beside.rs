//! A script that does not end holds up no client but its own, also on a server with one worker, where another thread goes on
//! with the worker's other clients. Nothing here depends on how long anything takes.

use std::net::UdpSocket;
use std::time::Duration;
use tenon_client::{Memcache, Resp, Value};
use tenon_testkit::patience::{PATIENCE, wait_for, wait_until};
use tenon_testkit::ports::free_port;
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

/// Scripts that run at a time before a worker has no thread left for its other clients.
const THREADS: usize = 5;

fn one_worker(settings: &[(&str, &str)]) -> Server {
    let own = [("workers", "1"), ("io", crate::IO), ("busy-reply-threshold", "1000000")];
    Server::tenon(&[&own[..], settings].concat()).expect("tenon starts")
}

fn connect(server: &Server) -> Resp {
    let address = server.address(Dialect::Redis).expect("RESP is spoken");
    Resp::connect_to(address, Some(PATIENCE)).expect("the server listens")
}

/// Calls a command whose words are divided by spaces.
fn call(client: &mut Resp, command: &str) -> Value {
    send(client, command);
    client.receive().expect("a reply")
}

/// Sends one.
fn send(client: &mut Resp, command: &str) {
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    client.send(&words).expect("it is sent");
}

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

/// Starts a script that runs `first`, says that it has begun, goes on until somebody listens to channel `end:name`, and
/// then runs `last`; comes back when it has begun.
fn begin(server: &Server, name: &str, key: &str, (first, last): (&str, &str)) -> Resp {
    let mut listener = connect(server);
    call(&mut listener, &format!("SUBSCRIBE begun:{name}"));
    let mut client = connect(server);
    let script = format!(
        "{first} redis.call('PUBLISH', 'begun:{name}', '')
         repeat until redis.call('PUBSUB', 'NUMSUB', 'end:{name}')[2] > 0
         {last}"
    );
    let keys: &[&[u8]] = if key.is_empty() { &[b"0"] } else { &[b"1", key.as_bytes()] };
    client.send(&[&[&b"EVAL"[..], script.as_bytes()], keys].concat()).expect("it is sent");
    // The listener is a client of the same worker, in whose middle of a script this comes.
    let message = Value::Array(vec![bulk("message"), bulk(&format!("begun:{name}")), bulk("")]);
    assert_eq!(listener.receive().expect("the script says so"), message);
    client
}

/// Has a script end, whose last reply comes then.
fn end(server: &Server, name: &str, client: &mut Resp) -> Value {
    let mut listener = connect(server);
    call(&mut listener, &format!("SUBSCRIBE end:{name}"));
    client.receive().expect("it has ended")
}

#[test]
fn all_that_a_server_does_goes_on_beside_a_script() {
    let server = one_worker(&[]);
    let mut client = connect(&server);
    let mut slow = begin(&server, "x", "", ("", "return 'ended'"));
    assert_eq!(call(&mut client, "SET k v"), ok());
    assert_eq!(call(&mut client, "GET k"), bulk("v"));
    // Other scripts, long ones too.
    assert_eq!(call(&mut client, "EVAL return(redis.call('INCR',KEYS[1])) 1 n"), Value::Int(1));
    let mut slow_too = begin(&server, "y", "", ("", "return 'ended, too'"));
    assert_eq!(call(&mut client, "EVAL return(redis.call('INCR',KEYS[1])) 1 n"), Value::Int(2));
    // Transactions.
    assert_eq!(call(&mut client, "WATCH n"), ok());
    assert_eq!(call(&mut client, "MULTI"), ok());
    call(&mut client, "INCR n");
    call(&mut client, "GET k");
    assert_eq!(call(&mut client, "EXEC"), Value::Array(vec![Value::Int(3), bulk("v")]));
    // Clients that wait, some until their time is over.
    let mut waiting = connect(&server);
    waiting.send(&[b"BLPOP", b"list", b"0"]).expect("it is sent");
    assert_eq!(call(&mut client, "BLPOP nothing 0.01"), Value::NullArray);
    assert_eq!(call(&mut client, "RPUSH list one"), Value::Int(1));
    assert_eq!(waiting.receive().expect("it is served"), Value::Array(vec![bulk("list"), bulk("one")]));
    // Keys that expire, commands in slices, commands on everything that no script holds.
    assert_eq!(call(&mut client, "SET short-lived v PX 1"), ok());
    wait_until("the key's end", || call(&mut client, "DBSIZE") == Value::Int(2));
    assert!(matches!(call(&mut client, "KEYS *"), Value::Array(keys) if keys.len() == 2));
    // memcached's clients.
    let address = server.address(Dialect::Memcache).expect("it is spoken");
    let mut memcache = Memcache::connect_to(address, Some(PATIENCE)).expect("the server listens");
    memcache.set(b"m", b"v", 7, 0).expect("it is stored");
    assert_eq!(memcache.get(b"m").expect("a reply").map(|item| item.flags), Some(7));
    // The worker is one worker still, and counts for all of its threads.
    let Value::Bulk(info) = call(&mut client, "INFO") else { panic!("INFO is a text") };
    let info = String::from_utf8(info).expect("it is text");
    assert!(info.contains("worker0:commands=") && !info.contains("worker1:"), "{info}");
    assert_eq!(end(&server, "y", &mut slow_too), bulk("ended, too"));
    assert_eq!(end(&server, "x", &mut slow), bulk("ended"));
    for client in [&mut slow, &mut slow_too, &mut client] {
        assert_eq!(call(client, "GET k"), bulk("v"));
    }
}

#[test]
fn a_flush_whose_time_comes_beside_a_script_is_put_off_and_the_worker_goes_on() {
    let server = one_worker(&[]);
    let mut client = connect(&server);
    assert_eq!(call(&mut client, "SET k v"), ok());
    let address = server.address(Dialect::Memcache).expect("it is spoken");
    let mut memcache = Memcache::connect_to(address, Some(PATIENCE)).expect("the server listens");
    assert_eq!(memcache.exchange(b"flush_all 2").expect("a reply"), b"OK");
    let mut slow = begin(&server, "x", "k", ("", "return 'ended'"));
    // When this key has gone, the ticks have come to the flush. (DBSIZE would look at the shard that the script holds.)
    assert_eq!(call(&mut client, "SET later v PX 1500"), ok());
    wait_until("the key's end", || {
        let Value::Bulk(info) = call(&mut client, "INFO stats") else { panic!("INFO is a text") };
        String::from_utf8_lossy(&info).contains("expired_keys:1")
    });
    assert_eq!(end(&server, "x", &mut slow), bulk("ended"));
    wait_until("the flush", || call(&mut client, "DBSIZE") == Value::Int(0));
}

#[test]
fn who_waits_for_a_snapshot_that_waits_for_a_script_holds_up_nobody() {
    let server = one_worker(&[("enable-debug-command", "yes")]);
    let [mut client, mut reloading] = [connect(&server), connect(&server)];
    assert_eq!(call(&mut client, "SET k v"), ok());
    let mut slow = begin(&server, "x", "k", ("", "return 'ended'"));
    call(&mut client, "BGREWRITEAOF");
    // So that mostly the rewrite's snapshot is the first; if it is not, there is nothing to wait for.
    std::thread::sleep(Duration::from_millis(100));
    reloading.send(&[b"DEBUG", b"RELOAD"]).expect("it is sent");
    assert_waits(&mut reloading);
    assert_eq!(call(&mut client, "PING"), Value::Simple(b"PONG".to_vec()));
    assert_eq!(end(&server, "x", &mut slow), bulk("ended"));
    assert_eq!(reloading.receive().expect("a reply"), ok());
    assert_eq!(call(&mut client, "GET k"), bulk("v"));
}

#[test]
fn a_script_that_loading_waits_for_can_be_killed() {
    let server = one_worker(&[("enable-debug-command", "yes"), ("appendonly", "yes")]);
    let [mut client, mut slow, mut loading] = std::array::from_fn(|_| connect(&server));
    assert_eq!(call(&mut client, "SET k v"), ok());
    slow.send(&[b"EVAL", b"redis.call('GET', KEYS[1]) while true do end", b"1", b"k"]).expect("it is sent");
    assert_waits(&mut slow);
    loading.send(&[b"DEBUG", b"LOADAOF"]).expect("it is sent");
    assert_waits(&mut loading);
    assert_eq!(call(&mut client, "CONFIG SET busy-reply-threshold 1"), ok());
    assert_eq!(call(&mut client, "SCRIPT KILL"), ok());
    let Value::Error(killed) = slow.receive().expect("it has ended") else { panic!("it ends with an error") };
    assert!(killed.starts_with(b"ERR Script killed by user"), "{}", String::from_utf8_lossy(&killed));
    assert_eq!(loading.receive().expect("it is loaded"), ok());
    assert_eq!(call(&mut client, "GET k"), bulk("v"));
}

#[test]
fn what_a_script_holds_is_waited_for_and_nothing_else_is() {
    let server = one_worker(&[]);
    let mut client = connect(&server);
    let writes = ("redis.call('SET', KEYS[1], 'half')", "return redis.call('APPEND', KEYS[1], ' and half')");
    let mut slow = begin(&server, "x", "k", writes);
    // What says that it wants the key is put off, any number of times. What does not waits on a thread of its own, of which
    // there are two more.
    let asks: [&[&[u8]]; 3] = [&[b"GET", b"k"], &[b"MGET", b"k"], &[b"EVAL", b"return redis.call('GET', 'k')", b"0"]];
    let commands = || std::iter::repeat_n(&asks[..2], 2 * THREADS).flatten().chain(&asks[2..]);
    let mut waiting: Vec<Resp> = commands().map(|_| connect(&server)).collect();
    for (client, command) in waiting.iter_mut().zip(commands()) {
        client.send(command).expect("it is sent");
        assert_eq!(call(&mut connect(&server), "PING"), Value::Simple(b"PONG".to_vec()));
    }
    // Who is put off can be ended.
    let mut ended = connect(&server);
    let Value::Int(id) = call(&mut ended, "CLIENT ID") else { panic!("it is a number") };
    ended.send(&[b"APPEND", b"k", b" and more"]).expect("it is sent");
    assert_eq!(call(&mut client, &format!("CLIENT KILL ID {id}")), Value::Int(1));
    ended.receive().expect_err("it is closed before the script ends");
    assert_eq!(call(&mut client, "ECHO served"), bulk("served"));
    assert_eq!(end(&server, "x", &mut slow), Value::Int(13));
    let whole = bulk("half and half");
    for (client, command) in waiting.iter_mut().zip(commands()) {
        let answer = client.receive().expect("it is answered");
        let expected = if command[0] == b"MGET" { Value::Array(vec![whole.clone()]) } else { whole.clone() };
        assert_eq!(answer, expected);
    }
}

#[test]
fn who_waits_for_a_script_is_refused_when_that_counts_as_busy() {
    let server = one_worker(&[]);
    let [mut client, mut waiting] = [connect(&server), connect(&server)];
    let mut slow = connect(&server);
    assert_eq!(client.call(&[b"FUNCTION", b"LOAD", ENDLESS]).expect("a reply"), bulk("lib"));
    slow.send(&[b"FCALL", b"endless", b"1", b"k"]).expect("it is sent");
    wait_until("the function", || running_function(&mut client).is_some());
    waiting.send(&[b"GET", b"k"]).expect("it is sent");
    assert_waits(&mut waiting);
    assert_eq!(call(&mut client, "CONFIG SET busy-reply-threshold 1"), ok());
    let refused = waiting.receive().expect("a reply");
    assert!(matches!(&refused, Value::Error(error) if error.starts_with(b"BUSY ")), "{refused:?}");
    assert_eq!(call(&mut client, "FUNCTION KILL"), ok());
    slow.receive().expect("it has ended");
    assert_eq!(call(&mut waiting, "GET k"), Value::NullBulk);
}

#[test]
fn a_script_that_counts_as_busy_is_killed_by_a_client_of_its_worker() {
    let server = one_worker(&[]);
    let mut client = connect(&server);
    // One that has published something is not to be killed.
    let mut slow = connect(&server);
    slow.send(&[b"EVAL", b"while true do end", b"0"]).expect("it is sent");
    assert_eq!(call(&mut client, "SET k v"), ok());
    assert_eq!(call(&mut client, "CONFIG SET busy-reply-threshold 1"), ok());
    wait_until("the script to count as busy", || match call(&mut client, "GET k") {
        Value::Error(error) if error.starts_with(b"BUSY ") => true,
        answer => {
            assert_eq!(answer, bulk("v"));
            false
        }
    });
    assert_eq!(call(&mut client, "SCRIPT KILL"), ok());
    let killed = slow.receive().expect("it has ended");
    assert!(matches!(&killed, Value::Error(error) if error.starts_with(b"ERR Script killed")), "{killed:?}");
    assert_eq!(call(&mut slow, "GET k"), bulk("v"));
    assert_eq!(call(&mut client, "GET k"), bulk("v"));
}

/// A client whose command waits: there is no reply yet.
fn assert_waits(client: &mut Resp) {
    client.set_timeout(Some(Duration::from_millis(50))).expect("it is no timeout of zero");
    let error = client.receive().expect_err("there is no reply yet");
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut, "{error}");
    client.set_timeout(Some(PATIENCE)).expect("it is no timeout of zero");
}

/// What a client is answered, if that comes within a moment.
fn answered(client: &mut Resp) -> Option<Value> {
    client.set_timeout(Some(Duration::from_millis(20))).expect("it is no timeout of zero");
    let answer = client.receive();
    client.set_timeout(Some(PATIENCE)).expect("it is no timeout of zero");
    if let Err(error) = &answer {
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut, "{error}");
    }
    answer.ok()
}

/// The name of the function that FUNCTION STATS says is running.
fn running_function(client: &mut Resp) -> Option<Value> {
    let Value::Array(stats) = call(client, "FUNCTION STATS") else { panic!("it is an array") };
    assert_eq!(stats[0], bulk("running_script"));
    match &stats[1] {
        Value::Array(running) => Some(running[1].clone()),
        Value::NullBulk => None,
        other => panic!("{other:?}"),
    }
}

const ENDLESS: &[u8] = b"#!lua name=lib
    redis.register_function('endless', function() while true do end end)
    redis.register_function('anew', function()
        repeat until redis.call('PUBSUB', 'NUMSUB', 'go-on')[2] > 0
        redis.call('DBSIZE') -- needs all shards: it begins once more with them
        while true do end
    end)
    redis.register_function('until_heard', function()
        repeat until redis.call('PUBSUB', 'NUMSUB', 'end')[2] > 0
        return 'heard'
    end)";

/// Waits until INFO says of a pause which commands wait.
fn wait_for_pause(client: &mut Resp, actions: &str) {
    let what = format!("a pause of {actions} commands");
    wait_until(&what, || tenon_testkit::info::field(client, "clients", "paused_actions") == actions);
}

#[test]
fn a_pause_is_answered_behind_what_still_writes() {
    let server = one_worker(&[]);
    let [mut client, mut pauser, mut other, mut gone] = [(); 4].map(|()| connect(&server));
    let writes = ("redis.call('SET', KEYS[1], 'half')", "return redis.call('APPEND', KEYS[1], ' and half')");
    let mut slow = begin(&server, "x", "k", writes);
    // Not even one of no time, and whatever is sent behind it.
    pauser.send(&[b"CLIENT", b"PAUSE", b"0", b"WRITE"]).expect("it is sent");
    pauser.send(&[b"ECHO", b"behind"]).expect("it is sent");
    wait_for_pause(&mut client, "write");
    assert_waits(&mut pauser);
    // Nor one of a transaction, and they do not wait for each other.
    for command in
        [&[&b"MULTI"[..]][..], &[b"ECHO", b"before"], &[b"CLIENT", b"PAUSE", b"1000000", b"WRITE"], &[b"EXEC"]]
    {
        other.send(command).expect("it is sent");
    }
    for _ in 0..3 {
        other.receive().expect("they are queued");
    }
    assert_waits(&mut other);
    gone.send(&[b"CLIENT", b"PAUSE", b"10", b"WRITE"]).expect("it is sent");
    assert_waits(&mut gone);
    drop(gone);
    assert_eq!(call(&mut client, "ECHO served"), bulk("served"));
    assert_eq!(end(&server, "x", &mut slow), Value::Int(13));
    assert_eq!(pauser.receive().expect("it is answered"), ok());
    assert_eq!(pauser.receive().expect("it is answered"), bulk("behind"));
    assert_eq!(other.receive().expect("it is answered"), Value::Array(vec![bulk("before"), ok()]));
    assert_eq!(call(&mut client, "GET k"), bulk("half and half"));
    // Its time runs from now, and it holds.
    slow.send(&[b"SET", b"k", b"v"]).expect("it is sent");
    assert_waits(&mut slow);
    assert_eq!(call(&mut client, "CLIENT UNPAUSE"), ok());
    assert_eq!(slow.receive().expect("it goes on"), ok());
    // Where nothing is under way it is answered at once.
    assert_eq!(call(&mut client, "CLIENT PAUSE 0"), ok());
    wait_for_pause(&mut client, "none");
}

#[test]
fn a_pause_that_is_not_answered_can_be_ended() {
    let server = one_worker(&[]);
    let [mut client, mut pauser, mut writer] = [(); 3].map(|()| connect(&server));
    let mut slow = begin(&server, "x", "k", ("", "return 'ended'"));
    pauser.send(&[b"CLIENT", b"PAUSE", b"1000000", b"WRITE"]).expect("it is sent");
    wait_for_pause(&mut client, "write");
    writer.send(&[b"SET", b"other", b"v"]).expect("it is sent");
    assert_waits(&mut writer);
    assert_waits(&mut pauser);
    assert_eq!(call(&mut client, "CLIENT UNPAUSE"), ok());
    assert_eq!(pauser.receive().expect("it is answered"), ok());
    assert_eq!(end(&server, "x", &mut slow), bulk("ended"));
    assert_eq!(writer.receive().expect("it goes on"), ok());
    wait_for_pause(&mut client, "none");
}

#[test]
fn a_pause_of_all_commands_waits_for_a_script_that_can_be_killed() {
    let server = one_worker(&[]);
    let [mut client, mut pauser, mut killer, mut slow, mut early, mut late] = [(); 6].map(|()| connect(&server));
    assert_eq!(client.call(&[b"FUNCTION", b"LOAD", ENDLESS]).expect("a reply"), bulk("lib"));
    slow.send(&[b"FCALL", b"endless", b"0"]).expect("it is sent");
    wait_until("the function", || running_function(&mut client).is_some());
    // It counts as busy only when the pause has begun, which would be refused else.
    let threshold: &[&[u8]] = &[b"CONFIG", b"SET", b"busy-reply-threshold", b"300"];
    for command in [&[&b"MULTI"[..]][..], threshold, &[b"CLIENT", b"PAUSE", b"1000000", b"ALL"], &[b"EXEC"]] {
        pauser.send(command).expect("it is sent");
    }
    for _ in 0..3 {
        pauser.receive().expect("they are queued");
    }
    // Who comes before that waits, and is refused then. Who has yet to log in can.
    early.send(&[b"PING"]).expect("it is sent");
    assert!(matches!(late.call(&[b"HELLO", b"2"]).expect("an answer"), Value::Array(_)));
    let refused = early.receive().expect("it is answered");
    assert!(matches!(&refused, Value::Error(error) if error.starts_with(b"BUSY")), "{refused:?}");
    assert_waits(&mut pauser);
    assert_eq!(call(&mut killer, "FUNCTION KILL"), ok());
    let killed = slow.receive().expect("it has ended");
    assert!(matches!(&killed, Value::Error(error) if error.starts_with(b"ERR Script killed")), "{killed:?}");
    assert_eq!(pauser.receive().expect("it is answered"), Value::Array(vec![ok(), ok()]));
    client.send(&[b"PING"]).expect("it is sent");
    assert_waits(&mut client);
    // Now that there is nothing to kill, this waits as well.
    killer.send(&[b"FUNCTION", b"KILL"]).expect("it is sent");
    assert_waits(&mut killer);
    assert_eq!(call(&mut slow, "CLIENT UNPAUSE"), ok());
    assert_eq!(client.receive().expect("it goes on"), Value::Simple(b"PONG".to_vec()));
}

#[test]
fn a_kill_waits_until_what_runs_counts_as_busy() {
    let server = one_worker(&[]);
    let [mut client, mut killer, mut slow] = [connect(&server), connect(&server), connect(&server)];
    assert_eq!(client.call(&[b"FUNCTION", b"LOAD", ENDLESS]).expect("a reply"), bulk("lib"));
    assert_eq!(running_function(&mut client), None);
    slow.send(&[b"FCALL", b"endless", b"0"]).expect("it is sent");
    wait_until("the function", || running_function(&mut client).is_some());
    assert_eq!(running_function(&mut client), Some(bulk("endless")));
    killer.send(&[b"FUNCTION", b"KILL"]).expect("it is sent");
    assert_waits(&mut killer);
    // In a transaction nothing can wait.
    assert_eq!(call(&mut client, "MULTI"), ok());
    assert_eq!(call(&mut client, "FUNCTION KILL"), Value::Simple(b"QUEUED".to_vec()));
    let Value::Array(answers) = call(&mut client, "EXEC") else { panic!("it is run") };
    assert!(matches!(&answers[..], [Value::Error(error)] if error.starts_with(b"NOTBUSY ")), "{answers:?}");
    assert_eq!(call(&mut client, "CONFIG SET busy-reply-threshold 1"), ok());
    assert_eq!(killer.receive().expect("a reply"), ok());
    let killed = slow.receive().expect("it has ended");
    assert!(matches!(&killed, Value::Error(error) if error.starts_with(b"ERR Script killed")), "{killed:?}");
    assert_eq!(running_function(&mut client), None);
}

#[test]
fn a_kill_waits_for_a_script_that_starts_anew() {
    let server = one_worker(&[]);
    let [mut client, mut killer, mut slow] = [connect(&server), connect(&server), connect(&server)];
    assert_eq!(client.call(&[b"FUNCTION", b"LOAD", ENDLESS]).expect("a reply"), bulk("lib"));
    slow.send(&[b"FCALL", b"anew", b"0"]).expect("it is sent");
    wait_until("the function", || running_function(&mut client).is_some());
    killer.send(&[b"FUNCTION", b"KILL"]).expect("it is sent");
    assert_waits(&mut killer);
    let mut heard = connect(&server);
    send(&mut heard, "SUBSCRIBE go-on");
    wait_until("its second run", || {
        let Value::Bulk(stats) = call(&mut client, "INFO commandstats") else { panic!("INFO is text") };
        String::from_utf8(stats).expect("INFO is text").contains("cmdstat_dbsize:calls=1,")
    });
    assert_waits(&mut killer);
    assert_eq!(call(&mut client, "CONFIG SET busy-reply-threshold 1"), ok());
    assert_eq!(killer.receive().expect("a reply"), ok());
    let killed = slow.receive().expect("it has ended");
    assert!(matches!(&killed, Value::Error(error) if error.starts_with(b"ERR Script killed")), "{killed:?}");
}

#[test]
fn a_kill_finds_nothing_when_what_ran_has_ended() {
    let server = one_worker(&[]);
    let [mut client, mut killer, mut gone, mut slow] = [(); 4].map(|()| connect(&server));
    assert_eq!(client.call(&[b"FUNCTION", b"LOAD", ENDLESS]).expect("a reply"), bulk("lib"));
    slow.send(&[b"FCALL", b"until_heard", b"0"]).expect("it is sent");
    wait_until("the function", || running_function(&mut client).is_some());
    for waiting in [&mut killer, &mut gone] {
        waiting.send(&[b"SCRIPT", b"KILL"]).expect("it is sent");
        assert_waits(waiting);
    }
    drop(gone);
    assert_eq!(call(&mut client, "SET k v"), ok());
    let mut listener = connect(&server);
    call(&mut listener, "SUBSCRIBE end");
    let answer = killer.receive().expect("a reply");
    assert!(matches!(&answer, Value::Error(error) if error.starts_with(b"NOTBUSY ")), "{answer:?}");
    assert_eq!(slow.receive().expect("it has ended"), bulk("heard"));
    let answer = call(&mut killer, "SCRIPT KILL");
    assert!(matches!(&answer, Value::Error(error) if error.starts_with(b"NOTBUSY ")), "{answer:?}");
}

#[test]
fn kills_that_wait_end_more_scripts_than_there_are_threads() {
    let server = one_worker(&[("busy-reply-threshold", "300")]);
    let mut killers: Vec<Resp> = (0..THREADS + 2).map(|_| connect(&server)).collect();
    let mut slow: Vec<Resp> = (0..THREADS + 2).map(|_| connect(&server)).collect();
    for (slow, killer) in slow.iter_mut().zip(&mut killers) {
        slow.send(&[b"EVAL", b"while true do end", b"0"]).expect("it is sent");
        killer.send(&[b"SCRIPT", b"KILL"]).expect("it is sent");
    }
    for (slow, killer) in slow.iter_mut().zip(&mut killers) {
        killer.receive().expect("a reply");
        let ended = wait_for("a script's end", || {
            let ended = answered(slow);
            if ended.is_none() {
                call(killer, "SCRIPT KILL");
            }
            ended
        });
        assert!(matches!(ended, Value::Error(_)), "{ended:?}");
    }
    for client in slow.iter_mut().chain(&mut killers) {
        assert_eq!(call(client, "SET k v"), ok());
    }
}

#[test]
fn more_scripts_than_there_are_threads_can_be_killed() {
    let server = one_worker(&[("busy-reply-threshold", "50")]);
    let mut client = connect(&server);
    let mut slow: Vec<Resp> = (0..THREADS + 2).map(|_| connect(&server)).collect();
    for slow in &mut slow {
        slow.send(&[b"EVAL", b"while true do end", b"0"]).expect("it is sent");
    }
    // One after the other begins, is busy and is killed, or is refused as another one is busy.
    for slow in &mut slow {
        let ended = wait_for("a script's end", || {
            call(&mut client, "SCRIPT KILL");
            answered(slow)
        });
        assert!(matches!(ended, Value::Error(_)), "{ended:?}");
    }
    for client in slow.iter_mut().chain([&mut client]) {
        assert_eq!(call(client, "SET k v"), ok());
    }
}

#[test]
fn the_server_ends_beside_a_script() {
    let mut server = one_worker(&[]);
    let mut slow = begin(&server, "x", "", ("", ""));
    connect(&server).send(&[b"SHUTDOWN", b"NOSAVE"]).expect("it is sent");
    assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
    // It was stopped, and told so if there was time for that.
    assert!(!matches!(slow.receive(), Ok(Value::Bulk(_) | Value::Null)));
}

/// Sets a key that lies in no shard which a script holds; gives its name.
fn set_beside(server: &Server, name: &str) -> String {
    let mut tries: Vec<(String, Resp)> =
        ["this", "that", "other"].iter().map(|kind| (format!("{name}:{kind}"), connect(server))).collect();
    for (key, client) in &mut tries {
        client.send(&[b"SET", key.as_bytes(), b"v"]).expect("it is sent");
    }
    wait_for("a key to be set beside the script", || {
        tries.iter_mut().find_map(|(key, client)| {
            let answer = answered(client)?;
            assert_eq!(answer, ok());
            Some(key.clone())
        })
    })
}

#[test]
fn what_was_confirmed_beside_a_script_is_in_the_log() {
    let folder = std::env::temp_dir().join(format!("tenon-lending-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let dir = folder.to_str().expect("a path that is text");
    let settings = [("dir", dir), ("appendonly", "yes"), ("appendfsync", "always")];
    let server = one_worker(&settings);
    let writes = |half: &str| format!("redis.call('SET', KEYS[1], '{half}')");
    let last = "return redis.call('APPEND', KEYS[1], ' and half')";
    let mut slow = begin(&server, "x", "k", (&writes("half"), last));
    let before = set_beside(&server, "before");
    assert_eq!(end(&server, "x", &mut slow), Value::Int(13));
    let mut unconfirmed = begin(&server, "y", "k", (&writes("another"), last));
    let after = set_beside(&server, "after");
    // The process is killed.
    drop(server);
    unconfirmed.receive().expect_err("it had not ended");
    let server = one_worker(&settings);
    let found = call(&mut connect(&server), &format!("MGET k {before} {after}"));
    // Half of what a script does is nothing of it.
    assert_eq!(found, Value::Array(vec![bulk("half and half"), bulk("v"), bulk("v")]));
    drop(server);
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn every_change_counts_where_the_loop_moves_all_the_time() {
    const CLIENTS: i64 = 4;
    const ROUNDS: i64 = 150;
    let server = one_worker(&[]);
    // Long enough for the loop to be lent mostly, and short enough for it to come back often.
    let script: &[u8] = b"local n = 0 for i = 1, 30000 do n = n + i end return redis.call('INCR', KEYS[1])";
    let plain = |client: &mut Resp| client.pipeline(&[&[b"INCR", b"shared"], &[b"INCR", b"shared"]]);
    let scripted = |client: &mut Resp| client.pipeline(&[&[b"EVAL", script, b"1", b"shared"], &[b"INCR", b"shared"]]);
    std::thread::scope(|scope| {
        for number in 0..2 * CLIENTS {
            let (server, plain, scripted) = (&server, &plain, &scripted);
            scope.spawn(move || {
                let mut client = connect(server);
                let mut last = 0;
                for _ in 0..ROUNDS {
                    let replies = if number < CLIENTS { plain(&mut client) } else { scripted(&mut client) };
                    for reply in replies.expect("both are answered") {
                        let Value::Int(now) = reply else { panic!("{reply:?}") };
                        assert!(now > last, "its own commands come one after another");
                        last = now;
                    }
                }
            });
        }
    });
    let mut client = connect(&server);
    assert_eq!(call(&mut client, "GET shared"), bulk(&(2 * CLIENTS * ROUNDS * 2).to_string()));
    let Value::Bulk(info) = call(&mut client, "INFO commandstats") else { panic!("INFO is a text") };
    let calls = format!("cmdstat_incr:calls={},", 2 * CLIENTS * ROUNDS * 2);
    assert!(String::from_utf8_lossy(&info).contains(&calls), "every thread's calls are counted");
}

#[test]
fn a_waiter_that_is_looked_at_again_is_looked_at_when_its_key_is_free() {
    let server = one_worker(&[]);
    let mut client = connect(&server);
    call(&mut client, "XGROUP CREATE s g $ MKSTREAM");
    call(&mut client, "XADD s 1-1 f v");
    call(&mut client, "XREADGROUP GROUP g first STREAMS s >");
    let mut waiting = connect(&server);
    send(&mut waiting, "XREADGROUP GROUP g second BLOCK 0 CLAIM 200 STREAMS s >");
    let mut slow = begin(&server, "x", "s", ("", "return 'ended'"));
    // It is time to look while the script holds the stream.
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(call(&mut client, "SET k v"), ok());
    assert_eq!(end(&server, "x", &mut slow), bulk("ended"));
    let claimed = format!("{:?}", waiting.receive().expect("an entry"));
    let id = format!("{:?}", bulk("1-1"));
    assert!(claimed.contains(&id), "{claimed}");
}

/// Many more clients look at all keys than there are threads: none waits with them.
#[test]
fn who_looks_at_all_keys_beside_a_script_holds_up_nobody() {
    let server = one_worker(&[]);
    let mut client = connect(&server);
    for number in 0..100 {
        call(&mut client, &format!("SET k{number} v"));
    }
    for (key, first) in [("k1", "redis.call('GET', KEYS[1])"), ("missing", "redis.call('DEL', KEYS[1])")] {
        look_at_all_keys_beside(&server, &mut client, key, first);
    }
}

fn look_at_all_keys_beside(server: &Server, client: &mut Resp, key: &str, first: &str) {
    let mut slow = begin(server, "x", key, (first, "return 'ended'"));
    let commands = ["SCAN 0 COUNT 1000", "KEYS k*", "RANDOMKEY", "DBSIZE", "INFO keyspace"];
    let mut lookers: Vec<Resp> = commands.iter().flat_map(|_| [(); 2 * THREADS].map(|()| connect(server))).collect();
    for (looker, command) in lookers.iter_mut().zip(commands.iter().cycle()) {
        send(looker, command);
    }
    for _ in 0..100 {
        assert_eq!(call(client, "GET k2"), bulk("v"));
    }
    assert_eq!(end(server, "x", &mut slow), bulk("ended"));
    for (looker, command) in lookers.iter_mut().zip(commands.iter().cycle()) {
        let reply = looker.receive().expect("a reply");
        assert!(!matches!(reply, Value::Error(_)), "{command}: {reply:?}");
        if *command == "KEYS k*" {
            assert!(matches!(&reply, Value::Array(keys) if keys.len() == 100), "{reply:?}");
        }
    }
}

#[test]
fn a_client_that_watches_what_a_script_holds_may_leave() {
    let server = one_worker(&[]);
    let mut client = connect(&server);
    let mut watching = connect(&server);
    assert_eq!(call(&mut watching, "WATCH k"), ok());
    let mut slow = begin(&server, "x", "k", ("", "return 'ended'"));
    drop(watching);
    let clients = |client: &mut Resp| format!("{:?}", call(client, "CLIENT LIST TYPE normal"));
    wait_until("it has left", || !clients(&mut client).contains("cmd=watch"));
    assert_eq!(call(&mut client, "SET other v"), ok());
    assert_eq!(end(&server, "x", &mut slow), bulk("ended"));
}

#[test]
fn a_datagram_for_what_a_script_holds_waits_alone() {
    let port = free_port();
    let server = one_worker(&[("memcached-udp-port", &port.to_string())]);
    let mut client = connect(&server);
    call(&mut client, "SET k v");
    let mut slow = begin(&server, "x", "k", ("", "return 'ended'"));
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.set_read_timeout(Some(PATIENCE)).expect("set");
    for number in [1, 2] {
        socket
            .send_to(&[&[0, number, 0, 0, 0, 1, 0, 0], &b"get k\r\n"[..]].concat(), ("127.0.0.1", port))
            .expect("sent");
    }
    // It has come to the worker when this is answered, or does so at any time later.
    for _ in 0..100 {
        assert_eq!(call(&mut client, "SET other v"), ok());
    }
    assert_eq!(end(&server, "x", &mut slow), bulk("ended"));
    let mut numbers = Vec::new();
    for _ in 0..2 {
        let mut answer = [0; 100];
        let len = socket.recv(&mut answer).expect("an answer");
        assert_eq!(&answer[8..len], b"VALUE k 0 1\r\nv\r\nEND\r\n");
        numbers.push(answer[1]);
    }
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2]);
    // The socket is listened to as before.
    socket.send_to(b"\0\x03\0\0\0\x01\0\0mn\r\n", ("127.0.0.1", port)).expect("sent");
    let mut answer = [0; 100];
    let len = socket.recv(&mut answer).expect("an answer");
    assert_eq!(&answer[8..len], b"MN\r\n");
}
