//! RESP's front end where a transcript cannot look: what is counted and logged, and what a connection keeps.

mod host;

use host::{Host, command, take};
use tenon_engine::clients::{Dialect, Message};
use tenon_engine::pause::PauseMode;
use tenon_frontend::{Ending, Flow};

/// How often a command was counted as run, and how often as refused.
fn counted(host: &Host, name: &str) -> (u64, u64) {
    let number = host.engine.commands.find(name.as_bytes()).expect("a command").number;
    let counters = &host.worker.stats.commands[number as usize];
    (counters.calls.get(), counters.rejected.get())
}

#[test]
fn what_is_queued_or_refused_is_no_call() {
    let mut host = Host::new();
    let mut client = host.connect(Dialect::Resp);
    assert_eq!(
        host.says(&mut client, "MULTI\r\nSET a 1\r\nSET b 2\r\nGET a\r\n"),
        "+OK\r\n".to_owned() + &"+QUEUED\r\n".repeat(3)
    );
    assert_eq!((counted(&host, "SET"), counted(&host, "GET")), ((0, 0), (0, 0)));
    assert_eq!(host.says(&mut client, "EXEC\r\n"), "*3\r\n+OK\r\n+OK\r\n$1\r\n1\r\n");
    assert_eq!((counted(&host, "SET"), counted(&host, "GET"), counted(&host, "EXEC")), ((2, 0), (1, 0), (1, 0)));
    host.says(&mut client, "GET a\r\nGET a\r\nSET a 3\r\nGET\r\nGET a\r\nnone\r\n");
    assert_eq!((counted(&host, "SET"), counted(&host, "GET")), ((3, 0), (4, 1)));
    // MULTI, EXEC with its three commands, and four of the last six.
    assert_eq!(host.worker.stats.all.commands.get(), 2 + 3 + 4);

    host.set("requirepass", "s3cret");
    let mut stranger = host.connect(Dialect::Resp);
    assert_eq!(host.says(&mut stranger, "GET a\r\n"), "-NOAUTH Authentication required.\r\n");
    assert_eq!(counted(&host, "GET"), (4, 2));
}

#[test]
fn how_long_calls_took_is_told_to_two_digits() {
    let mut host = Host::new();
    let mut client = host.connect(Dialect::Resp);
    let number = host.engine.commands.find(b"GETEX").expect("a command").number;
    let counters = &host.worker.stats.commands[number as usize];
    counters.ran(3, 71_600_000);
    counters.ran(1, 18_000);
    // Redis's figures.
    let shown = host.says(&mut client, "INFO latencystats\r\n");
    let line = "latency_percentiles_usec_getex:p50=71827.455,p99=71827.455,p99.9=71827.455\r\n";
    assert!(shown.contains(line), "{shown}");
    let histogram =
        "*2\r\n$5\r\ngetex\r\n*4\r\n$5\r\ncalls\r\n:4\r\n$14\r\nhistogram_usec\r\n*4\r\n:33\r\n:1\r\n:135266\r\n:4\r\n";
    assert_eq!(host.says(&mut client, "LATENCY HISTOGRAM getex\r\n"), histogram);
    host.says(&mut client, "CONFIG RESETSTAT\r\n");
    assert_eq!(host.says(&mut client, "LATENCY HISTOGRAM getex\r\n"), "*0\r\n");
}

#[test]
fn what_the_log_does_not_have_does_not_wait_for_it() {
    let mut host = Host::new();
    let mut client = host.connect(Dialect::Resp);
    host.engine.pause.begin_for_log();
    let answers = host.says(&mut client, "PUBLISH c m\r\nGET k\r\nEVAL_RO 'return 1' 0\r\nCONFIG SET hz 10\r\n");
    assert_eq!(answers, ":0\r\n$-1\r\n:1\r\n+OK\r\n");
    host.send(&mut client, b"SET k v\r\n");
    assert_eq!(client.flow, Flow::Park);
    assert!(host.engine.pause.end_for_log().contains(&client.connection.client().info.key));
    host.tell(&mut client, Message::Unpause);
    host.resume(&mut client);
    assert_eq!(take(&mut client.out), b"+OK\r\n");
    // In a pause messages wait, too, as in Redis.
    let now_ms = host.worker.clock.now_ms;
    host.engine.pause.start(now_ms + 60_000, PauseMode::Write, now_ms);
    host.send(&mut client, b"PUBLISH c m\r\n");
    assert_eq!(client.flow, Flow::Park);
}

#[test]
fn the_slow_log_shows_no_password_that_was_queued() {
    let mut host = Host::new();
    host.set("slowlog-log-slower-than", "0");
    host.set("requirepass", "s3cret");
    let mut client = host.connect(Dialect::Resp);
    host.says(&mut client, "AUTH s3cret\r\nMULTI\r\nAUTH s3cret\r\nSET k v\r\n");
    assert_eq!(host.says(&mut client, "EXEC\r\n"), "*2\r\n+OK\r\n+OK\r\n");
    let log = host.engine.slowlog.last(100);
    let lines: Vec<String> =
        log.iter().rev().map(|slow| String::from_utf8_lossy(&slow.args.join(&b' ')).into_owned()).collect();
    assert_eq!(lines, ["AUTH (redacted)", "MULTI", "AUTH (redacted)", "SET k v"]);
}

#[test]
fn a_long_command_that_had_to_wait_counts_as_others_do() {
    let mut host = Host::new();
    host.set("slowlog-log-slower-than", "0");
    let mut client = host.connect(Dialect::Resp);
    host.says(&mut client, "PING\r\n");
    let now_ms = host.worker.clock.now_ms;
    host.engine.pause.start(now_ms + 60_000, PauseMode::Write, now_ms);
    host.send(&mut client, &command(&[b"SET", b"k", &vec![b'v'; 300_000]]));
    assert_eq!(client.flow, Flow::Park);
    assert!(host.engine.pause.end().contains(&client.connection.client().info.key));
    host.tell(&mut client, Message::Unpause);
    host.resume(&mut client);
    assert_eq!(take(&mut client.out), b"+OK\r\n");
    let log = host.engine.slowlog.last(100);
    assert_eq!(log.iter().map(|slow| slow.args[0].to_vec()).collect::<Vec<_>>(), [b"SET".to_vec(), b"PING".to_vec()]);
    let line = host.says(&mut client, "CLIENT INFO\r\n");
    assert!(line.contains(" tot-cmds=2\n"), "{line}");
}

#[test]
fn the_slow_log_shows_no_password_of_a_command_that_failed() {
    let mut host = Host::new();
    host.set("slowlog-log-slower-than", "0");
    let mut client = host.connect(Dialect::Resp);
    for command in [
        "CONFIG SET masterauth hush",
        "CONFIG SET hz 10 MASTERUSER hush primaryauth hush",
        "CONFIG SET tls-key-file-pass hush tls-client-key-file-pass hush requirepass",
        "CONFIG SET requirepass hush nosuch 1",
        "HELLO 4 AUTH user hush",
        "HELLO 3 NOSUCH AUTH user hush",
        "AUTH user hush hush",
    ] {
        assert!(host.says(&mut client, &format!("{command}\r\n")).starts_with('-'), "{command}");
    }
    let log = host.engine.slowlog.last(100);
    assert_eq!(log.len(), 7);
    for slow in &log {
        let line = String::from_utf8_lossy(&slow.args.join(&b' ')).into_owned();
        assert!(!line.contains("hush") && line.contains("(redacted)"), "{line}");
    }
}

#[test]
fn what_is_no_request_is_an_error_that_was_answered() {
    let mut host = Host::new();
    for (number, request) in ["*1\r\n$abc\r\n", "*abc\r\n", "*1\r\nfoo\r\n", "\"open\r\n"].into_iter().enumerate() {
        let mut client = host.connect(Dialect::Resp);
        assert!(host.says(&mut client, request).starts_with("-ERR Protocol error: "));
        assert_eq!(host.engine.errors.lock().get("ERR"), Some(&(number as u64 + 1)));
        assert_eq!(host.worker.stats.all.errors.get(), number as u64 + 1);
    }
}

#[test]
fn input_that_was_kept_is_remembered_for_some_seconds() {
    let mut host = Host::new();
    let mut client = host.connect(Dialect::Resp);
    let mut other = host.connect(Dialect::Resp);
    host.says(&mut client, &format!("*2\r\n$4\r\nECHO\r\n$20000\r\n{}", "x".repeat(10_000)));
    host.says(&mut client, &format!("{}\r\n", "x".repeat(10_000)));
    let info = host.says(&mut other, "INFO clients\r\n");
    let most = info.lines().find_map(|line| line.strip_prefix("client_recent_max_input_buffer:")).expect("it is told");
    assert!((10_000..30_000).contains(&most.parse::<u64>().expect("a number")), "{most}");
}

#[test]
fn what_others_have_sent_stands_before_the_next_reply() {
    let mut host = Host::new();
    let (mut tracker, mut writer) = (host.connect(Dialect::Resp), host.connect(Dialect::Resp));
    host.says(&mut tracker, "HELLO 3\r\nCLIENT TRACKING on\r\nSET k 1\r\nGET k\r\n");
    assert_eq!(host.says(&mut writer, "SET k 2\r\n"), "+OK\r\n");
    // The letter that tells the tracker's worker of its message has not come yet.
    assert_eq!(host.says(&mut tracker, "PING\r\n"), ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n+PONG\r\n");
    host.tell(&mut tracker, Message::Output);
    assert!(take(&mut tracker.out).is_empty());
}

/// Members are asked for ahead when several commands of a batch name some: whatever the keys hold, or do not.
#[test]
fn batches_that_name_members_of_large_and_small_collections_are_answered_in_order() {
    const MANY: usize = 5_000;
    let mut host = Host::new();
    let mut client = host.connect(Dialect::Resp);
    for number in 0..MANY {
        let lines = format!("SADD set m{number}\r\nHSET hash f{number} v{number}\r\nZADD zset {number} m{number}\r\n");
        assert_eq!(host.says(&mut client, &lines), ":1\r\n:1\r\n:1\r\n");
    }
    host.says(&mut client, "SET string v\r\nRPUSH list a\r\nSADD small a\r\nHSET few f v\r\n");
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
    // More batches than are let pass after one that had nothing to ask for.
    for number in (0..MANY).step_by(100) {
        let few = "SISMEMBER small a\r\nHGET few f\r\nSISMEMBER none a\r\nHGET string f\r\nZSCORE list a\r\nSISMEMBER small\r\n";
        let answer = host.says(&mut client, few);
        let arity = "-ERR wrong number of arguments for 'sismember' command\r\n";
        assert_eq!(answer, format!(":1\r\n$1\r\nv\r\n:0\r\n{wrong}{wrong}{arity}"));
        let (there, not) = (format!("m{number}"), format!("m{}", number + MANY));
        let lines = format!(
            "SADD set {there}\r\nSADD set {not}\r\nSREM set {not} {there}\r\nSADD set {there}\r\nHGET hash f{number}\r\n\
             HGET hash x\r\nZRANK zset {there}\r\nZADD zset XX 1 {not}\r\nZINCRBY zset 0 {there}\r\nHGET set f\r\n\
             SISMEMBER none {there}\r\n"
        );
        let value = format!("v{number}");
        let score = number.to_string();
        let expected = format!(
            ":0\r\n:1\r\n:2\r\n:1\r\n${}\r\n{value}\r\n$-1\r\n:{number}\r\n:0\r\n${}\r\n{score}\r\n{wrong}:0\r\n",
            value.len(),
            score.len()
        );
        assert_eq!(host.says(&mut client, &lines), expected);
    }
}

#[test]
fn a_stranger_that_does_not_read_is_told_little() {
    let mut host = Host::with(&[("requirepass", "s3cret"), ("memcached-auth", "yes")]);
    let mut told = |dialect, requests: &[u8], answer: &[u8]| {
        let mut stranger = host.connect(dialect);
        host.send(&mut stranger, requests);
        assert_eq!(stranger.flow, Flow::Drain);
        assert!(stranger.out.len() < 65 << 10, "{} bytes wait", stranger.out.len());
        assert_eq!(stranger.connection.unsent_max(&host.engine), 64 << 10);
        let mut got = take(&mut stranger.out);
        got.extend(host.ask(&mut stranger, b""));
        assert!(got.chunks(answer.len()).all(|line| line == answer), "each is answered");
        (stranger, got.len() / answer.len())
    };
    let (mut client, answered) =
        told(Dialect::Resp, &b"PING\r\n".repeat(10_000), b"-NOAUTH Authentication required.\r\n");
    assert_eq!(answered, 10_000);
    let (_, answered) = told(Dialect::Memcached, &b"\r\n".repeat(30_000), b"CLIENT_ERROR unauthenticated\r\n");
    assert_eq!(answered, 30_000);
    // Who has said who it is, and who need not, may leave more.
    assert_eq!(host.says(&mut client, "AUTH s3cret\r\n"), "+OK\r\n");
    assert!(client.connection.unsent_max(&host.engine) >= 1 << 20);
    let stranger = host.connect(Dialect::Resp);
    host.set("requirepass", "");
    assert!(stranger.connection.unsent_max(&host.engine) >= 1 << 20);
}

#[test]
fn who_need_not_say_who_it_is_may_send_as_much_as_others() {
    let mut host = Host::with(&[("requirepass", "s3cret")]);
    let mut client = host.connect(Dialect::Resp);
    let long = command(&[b"SET", b"a", &[b'v'; 20_000]]);
    let many = command(&[b"DEL", b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"h", b"i", b"j"]);
    host.set("requirepass", "");
    assert_eq!(host.ask(&mut client, &long), b"+OK\r\n");
    assert_eq!(host.ask(&mut client, &many), b":1\r\n");
    host.set("requirepass", "s3cret");
    let refused = b"-ERR Protocol error: unauthenticated multibulk length\r\n";
    assert_eq!(host.ask(&mut client, &many), refused);
}

#[test]
fn a_limit_holds_from_the_next_command_on() {
    let mut host = Host::new();
    let mut client = host.connect(Dialect::Resp);
    let long = vec![b'v'; 1_500_000];
    let commands = [
        command(&[b"SET", b"before", &long]),
        command(&[b"CONFIG", b"SET", b"proto-max-bulk-len", b"1048576"]),
        command(&[b"SET", b"behind", &long]),
    ];
    let answers = host.ask(&mut client, &commands.concat());
    let expected = "+OK\r\n+OK\r\n-ERR Protocol error: invalid bulk length\r\n";
    assert_eq!(String::from_utf8_lossy(&answers), expected);
    assert_eq!(client.flow, Flow::CloseAfterFlush);
}

#[test]
fn who_wants_no_replies_is_not_told_of_a_protocol_error_either() {
    let mut host = Host::new();
    for mode in [&b"OFF"[..], b"SKIP"] {
        let mut client = host.connect(Dialect::Resp);
        let commands = [command(&[b"CLIENT", b"REPLY", mode]), b"*x\r\n".to_vec()];
        assert_eq!(host.ask(&mut client, &commands.concat()), b"");
        assert_eq!(client.flow, Flow::CloseAfterFlush);
    }
}

#[test]
fn who_is_to_be_closed_behind_its_replies_is_sent_no_messages() {
    let mut host = Host::with(&[("client-query-buffer-limit", "1mb")]);
    let mut publisher = host.connect(Dialect::Resp);
    let too_long = format!("*2\r\n$4\r\nECHO\r\n$2000000\r\n{}", "x".repeat(100));
    for last in ["*1\r\n$abc\r\n", &too_long] {
        let mut client = host.connect(Dialect::Resp);
        host.says(&mut client, "HELLO 3\r\nSUBSCRIBE c\r\n");
        assert_eq!(host.says(&mut publisher, "PUBLISH c m\r\n"), ":1\r\n");
        host.tell(&mut client, Message::Output);
        assert!(!take(&mut client.out).is_empty());
        host.send(&mut client, last.as_bytes());
        assert_eq!(client.flow, Flow::CloseAfterFlush);
        take(&mut client.out);
        host.says(&mut publisher, "PUBLISH c m\r\n");
        host.tell(&mut client, Message::Output);
        assert!(take(&mut client.out).is_empty());
        client.connection.closed(&host.engine, Ending::Normal);
    }
}
