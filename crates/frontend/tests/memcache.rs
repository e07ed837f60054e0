//! memcached's front end where a transcript cannot look: bytes in any portions, pauses, full memory, clients that do not
//! read, and inputs made to hurt.

mod host;

use host::{Host, command, take};
use tenon_engine::clients::{Dialect, Message};
use tenon_engine::pause::PauseMode;
use tenon_frontend::{Ending, Flow};

/// A source of numbers that is the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }
}

fn set(key: &str, data: &[u8]) -> Vec<u8> {
    [format!("set {key} 3 0 {}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat()
}

#[test]
fn answers_do_not_depend_on_how_the_bytes_arrive() {
    let mut stream = Vec::new();
    for len in [0, 10, 16 * 1024, 64 * 1024, 300_000] {
        let data: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        stream.extend(set("k", &data));
        stream.extend_from_slice(b"get k none k\r\nappend k 0 0 3\r\nend\r\nprepend k 0 0 2\r\n12\r\nget k\r\n");
    }
    stream.extend_from_slice(b"get");
    (0..3_000).for_each(|i| stream.extend_from_slice(format!(" key{}", i % 7).as_bytes()));
    stream.extend_from_slice(b" k\r\nset n 0 0 2 noreply\r\n17\r\nincr n 5\r\nset n 0 0 1\r\nab\r\nbogus\r\nget n\r\n");
    stream.extend(set("refused", &[b'x'; 500_000]));
    stream.extend_from_slice(b"set long 0 0 400000\r\n");
    stream.extend_from_slice(&[b'y'; 400_000]);
    stream.extend_from_slice(b"no end\r\nget long\r\n");

    let run = |mut cut: Box<dyn FnMut(usize) -> usize>| {
        let mut host = Host::new();
        host.set("max-value-size", "450000");
        let mut client = host.memcached();
        let mut got = Vec::new();
        let mut rest = &stream[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(cut(rest.len()));
            got.extend(host.ask(&mut client, now));
            rest = later;
        }
        assert_eq!(client.flow, Flow::Continue);
        got
    };
    let whole = run(Box::new(|rest| rest));
    assert!(whole.ends_with(b"CLIENT_ERROR bad data chunk\r\nERROR\r\nEND\r\n"), "{}", tail(&whole));
    assert!(run(Box::new(|_| 1)) == whole, "byte by byte");
    for seed in 0..20 {
        let mut random = Random(seed);
        let most = [3, 100, 5_000, 200_000][seed as usize % 4];
        let got = run(Box::new(move |rest| (1 + random.below(most)).min(rest)));
        assert!(got == whole, "seed {seed}");
    }
}

fn tail(bytes: &[u8]) -> String {
    bytes[bytes.len().saturating_sub(200)..].escape_ascii().to_string()
}

#[test]
fn a_read_that_fails_is_over_however_its_keys_arrive() {
    let mut host = Host::new();
    let (mut client, mut resp) = (host.memcached(), host.connect(Dialect::Resp));
    host.ask(&mut resp, &command(&[b"LPUSH", b"list", b"1"]));
    host.ask(&mut resp, &command(&[b"SET", b"a", b"x"]));
    for keys in ["list a", "a list a"] {
        let line = format!("get {keys}{}\r\nmn\r\n", " a".repeat(2_000));
        let whole = host.ask(&mut client, line.as_bytes());
        assert!(whole.ends_with(b"SERVER_ERROR the key holds a value of another type than string\r\nMN\r\n"));
        for cut in (1..line.len()).step_by(97) {
            let [before, behind] = [&line[..cut], &line[cut..]].map(str::as_bytes);
            let got = [host.ask(&mut client, before), host.ask(&mut client, behind)].concat();
            assert!(got == whole, "{keys}, cut at {cut}: {}", tail(&got));
        }
    }
}

#[test]
fn long_data_is_kept_whole_in_every_verb() {
    let mut host = Host::new();
    let mut client = host.memcached();
    let big = |len: usize, seed: u8| (0..len).map(|i| (i as u8).wrapping_mul(31) ^ seed).collect::<Vec<u8>>();
    for (first, second) in [(10, 700_000), (700_000, 10), (20_000, 20_000), (700_000, 600_000), (262_144, 262_144)] {
        let (a, b) = (big(first, 1), big(second, 2));
        assert_eq!(host.ask(&mut client, &set("k", &a)), b"STORED\r\n");
        for verb in ["append", "prepend"] {
            let head = format!("{verb} k 0 0 {second}\r\n");
            // In portions, so that long data is taken out of the stream.
            let request = [head.as_bytes(), &b, b"\r\n"].concat();
            let (now, later) = request.split_at(request.len().min(5_000));
            assert_eq!([host.ask(&mut client, now), host.ask(&mut client, later)].concat(), b"STORED\r\n");
        }
        let expected = [&b[..], &a, &b].concat();
        let head = format!("VALUE k 3 {}\r\n", expected.len());
        let got = host.ask(&mut client, b"get k\r\n");
        assert!(got == [head.as_bytes(), &expected, b"\r\nEND\r\n"].concat(), "{first} and {second}");
    }
}

#[test]
fn a_write_waits_for_the_end_of_a_pause_and_a_read_does_not() {
    let mut host = Host::new();
    let mut client = host.memcached();
    let now_ms = host.worker.clock.now_ms;
    host.engine.pause.start(now_ms + 60_000, PauseMode::Write, now_ms);
    host.send(&mut client, b"get a\r\nset a 0 0 1\r\nx\r\nget a\r\nset b 0 0 5\r\nab");
    assert_eq!((take(&mut client.out), client.flow), (b"END\r\n".to_vec(), Flow::Park));
    // Looking again before the end changes nothing.
    host.resume(&mut client);
    assert_eq!((take(&mut client.out), client.flow), (Vec::new(), Flow::Park));
    assert!(host.engine.pause.end().contains(&client.connection.client().info.key));
    host.tell(&mut client, Message::Unpause);
    assert_eq!(host.ask(&mut client, b""), b"STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n");
    assert_eq!(host.ask(&mut client, b"cde\r\nget b\r\n"), b"STORED\r\nVALUE b 0 5\r\nabcde\r\nEND\r\n");

    // Nobody is told who is gone.
    let (mut one, mut other) = (host.memcached(), host.connect(Dialect::Resp));
    host.engine.pause.start(now_ms + 60_000, PauseMode::All, now_ms);
    host.send(&mut one, b"get a\r\n");
    host.send(&mut other, b"GET a\r\n");
    assert_eq!((one.flow, other.flow), (Flow::Park, Flow::Park));
    one.connection.closed(&host.engine, Ending::Normal);
    other.connection.closed(&host.engine, Ending::Normal);
    assert!(host.engine.pause.end().is_empty());

    // Data taken out of the stream is kept for as long as its request waits.
    host.engine.pause.start(now_ms + 60_000, PauseMode::All, now_ms);
    host.send(&mut client, b"set big 0 0 100000\r\n");
    host.send(&mut client, &[b'z'; 100_000]);
    host.send(&mut client, b"\r\nget big\r\n");
    assert_eq!((take(&mut client.out), client.flow), (Vec::new(), Flow::Park));
    host.engine.pause.end();
    let got = host.ask(&mut client, b"");
    assert!(
        got.starts_with(b"STORED\r\nVALUE big 0 100000\r\nzzz") && got.ends_with(b"z\r\nEND\r\n"),
        "{}",
        tail(&got)
    );
    assert_eq!(got.len(), 8 + 20 + 100_000 + 2 + 5);
}

#[test]
fn a_client_that_does_not_read_is_not_answered_without_end() {
    let mut host = Host::new();
    let mut client = host.memcached();
    host.ask(&mut client, &set("k", &[b'v'; 10_000]));
    let requests = b"get k\r\n".repeat(2_000);
    host.send(&mut client, &requests);
    assert_eq!(client.flow, Flow::Drain);
    assert!(client.out.len() < 2 << 20, "{} bytes wait", client.out.len());
    let mut answered = 0;
    while client.flow == Flow::Drain {
        answered += take(&mut client.out).len();
        host.resume(&mut client);
    }
    answered += take(&mut client.out).len();
    assert_eq!(answered, 2_000 * ("VALUE k 3 10000\r\n".len() + 10_000 + 2 + 5));

    // One line that asks for more than memory holds, in portions and in one piece.
    let mut got = 0;
    for portion in [&b" k".repeat(100)[..], &b" k".repeat(20_000)] {
        host.send(&mut client, b"get");
        for _ in 0..20_000 * 2 / portion.len() {
            host.send(&mut client, portion);
            while client.flow == Flow::Drain {
                assert!(client.out.len() < 2 << 20, "{} bytes wait", client.out.len());
                got += take(&mut client.out).len();
                host.resume(&mut client);
            }
        }
        got += host.ask(&mut client, b"\r\n").len();
    }
    assert_eq!(got, 2 * (20_000 * ("VALUE k 3 10000\r\n".len() + 10_000 + 2) + 5));
}

#[test]
fn a_client_with_many_requests_lets_others_come_between() {
    let mut host = Host::new();
    host.set("memcached-requests-per-turn", "2");
    let mut client = host.memcached();
    // `ask` goes on with a client whose turn has ended, as the server does: nothing is lost.
    let text = "set a 0 0 1\r\n1\r\n".repeat(5) + "mn\r\n";
    assert_eq!(host.says(&mut client, &text), "STORED\r\n".repeat(5) + "MN\r\n");
    assert_eq!(host.worker.stats.all.mc_yields.get(), 2);
    let noop = b"\x80\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let mut binary = host.memcached();
    assert_eq!(host.ask(&mut binary, &noop.repeat(5)).len(), 5 * noop.len());
    assert_eq!(host.worker.stats.all.mc_yields.get(), 4);
    // One request at a time never waits.
    for _ in 0..3 {
        assert_eq!(host.says(&mut client, "mn\r\n"), "MN\r\n");
    }
    host.set("memcached-requests-per-turn", "0");
    host.says(&mut client, &text);
    assert_eq!(host.worker.stats.all.mc_yields.get(), 4);
}

#[test]
fn requests_are_counted_in_the_size_class_of_their_item() {
    let mut host = Host::new();
    let mut client = host.memcached();
    let stored = set("a", &[b'x'; 100]);
    for text in [
        &stored[..],
        b"get a\r\nmg a v\r\ngat 100 a\r\ntouch a 100\r\ncas a 0 0 1 9\r\nx\r\nget b\r\nadd a 0 0 1\r\n1\r\n",
    ] {
        host.ask(&mut client, text);
    }
    let counts = host.says(&mut client, "stats slabs\r\n");
    let sum = |name: &str| -> u64 {
        let lines = counts.lines().filter_map(|line| line.split_once(&format!(":{name} ")));
        lines.map(|(_, number)| number.parse::<u64>().unwrap()).sum()
    };
    assert_eq!((sum("get_hits"), sum("touch_hits"), sum("cas_badval"), sum("cmd_set")), (2, 2, 1, 3), "{counts}");
    assert_eq!((sum("used_chunks"), sum("delete_hits")), (1, 0), "{counts}");
    host.says(&mut client, "md a\r\nset n 0 0 1\r\n1\r\nincr n 1\r\nma n MD\r\n");
    let counts = host.says(&mut client, "stats slabs\r\n");
    for name in ["delete_hits 1", "incr_hits 1", "decr_hits 1"] {
        assert!(counts.contains(&format!(":{name}\r\n")), "{name}: {counts}");
    }
    host.says(&mut client, "delete n\r\nset n 0 0 1\r\n1\r\n");
    host.set("maxmemory", "1");
    host.set("maxmemory-policy", "allkeys-lru");
    host.says(&mut client, "set n 0 100 1\r\n1\r\n");
    host.set("maxmemory-policy", "noeviction");
    host.says(&mut client, "set n 0 100 1\r\n1\r\n");
    host.set("maxmemory", "0");
    host.says(&mut client, "set n 0 0 1\r\n1\r\n");
    let counts = host.says(&mut client, "stats items\r\n");
    for name in ["evicted 1", "evicted_nonzero 0", "evicted_unfetched 1"] {
        assert!(counts.contains(&format!(":{name}\r\n")), "{name}: {counts}");
    }
    host.says(&mut client, "stats reset\r\n");
    assert!(host.says(&mut client, "stats items\r\n").contains(":evicted 0\r\n"));
}

#[test]
fn requests_are_counted_by_prefix_from_the_start_where_a_delimiter_is_given() {
    for (settings, delimiter, detail, dump) in [
        (&[][..], ":", "no", "END\r\n"),
        (&[("memcached-stats-delimiter", ":")], ":", "yes", "PREFIX a get 1 hit 0 set 0 del 0\r\nEND\r\n"),
        (&[("memcached-stats-delimiter", "/")], "/", "yes", "PREFIX a:b get 1 hit 0 set 0 del 0\r\nEND\r\n"),
    ] {
        let mut host = Host::with(settings);
        let mut client = host.memcached();
        assert_eq!(host.says(&mut client, "get a:b/c\r\nstats detail dump\r\n"), format!("END\r\n{dump}"));
        let told = host.says(&mut client, "stats settings\r\n");
        let lines = format!("STAT stat_key_prefix {delimiter}\r\nSTAT detail_enabled {detail}\r\n");
        assert!(told.contains(&lines), "{told}");
    }
}

#[test]
fn whatever_makes_an_item_counts_as_one() {
    let mut host = Host::new();
    let mut client = host.memcached();
    let mut before = 0;
    // What memcached 1.6.18 adds for each.
    for (text, more) in [
        ("set a 0 0 1\r\n8\r\n", 1),
        ("incr a 1\r\n", 0),
        ("incr a 1\r\n", 1),
        ("decr a 5\r\n", 0),
        ("append a 0 0 1\r\n1\r\n", 1),
        ("touch a 100\r\n", 0),
        ("ma k N0\r\n", 1),
        ("ma k N0\r\n", 0),
        ("ma k D100\r\n", 1),
        ("ma q N0 q\r\n", 1),
        ("mg v v N30\r\n", 1),
        ("mg v v N30\r\n", 0),
        ("ms v 2\r\nab\r\n", 1),
        ("add a 0 0 1\r\n1\r\n", 0),
        ("ma nosuch\r\n", 0),
    ] {
        host.says(&mut client, text);
        let stats = host.says(&mut client, "stats\r\n");
        let line = stats.lines().find_map(|line| line.strip_prefix("STAT total_items ")).expect("it is told");
        let all: u64 = line.parse().expect("a number");
        assert_eq!(all - before, more, "{text}");
        before = all;
    }
    // The binary protocol's increment, which makes the counter where there is none.
    let mut binary = host.memcached();
    let mut request = vec![0x80, 5, 0, 1, 20, 0, 0, 0, 0, 0, 0, 21];
    request.extend([0; 12]);
    request.extend([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, b'n']);
    for more in [1, 1, 0] {
        host.ask(&mut binary, &request);
        let all = host.worker.stats.all.mc_stored.get();
        assert_eq!(all - before, more);
        before = all;
    }
}

#[test]
fn items_expire_by_the_clock() {
    let mut host = Host::new();
    let mut client = host.memcached();
    host.says(&mut client, "set a 0 10 1\r\n1\r\nset b 0 10 1\r\n1\r\nset c 0 10 1\r\n1\r\n");
    host.says(&mut client, "append a 0 0 1\r\n0\r\nincr b 8\r\ntouch c 0\r\n");
    host.pass(9_900);
    assert_eq!(host.says(&mut client, "get a b\r\n"), "VALUE a 0 2\r\n10\r\nVALUE b 0 1\r\n9\r\nEND\r\n");
    host.pass(10_500);
    assert_eq!(host.says(&mut client, "get a b c\r\n"), "VALUE c 0 1\r\n1\r\nEND\r\n");
    host.pass(10_500);
    assert_eq!(host.says(&mut client, "add a 0 0 1\r\n2\r\nreplace b 0 0 1\r\n2\r\n"), "STORED\r\nNOT_STORED\r\n");
}

#[test]
fn who_reads_while_writes_wait_leaves_what_is_due() {
    for is_for_log in [false, true] {
        let mut host = Host::new();
        let (mut items, mut client) = (host.memcached(), host.connect(Dialect::Resp));
        host.says(&mut items, "set a 0 1 1\r\nx\r\nset b 0 0 1\r\ny\r\n");
        let now_ms = host.worker.clock.now_ms;
        if is_for_log {
            host.engine.pause.begin_for_log();
        } else {
            host.engine.pause.start(now_ms + 60_000, PauseMode::Write, now_ms);
        }
        host.pass(5_000);
        assert_eq!(host.says(&mut items, "get a b\r\nmg a v\r\n"), "VALUE b 0 1\r\ny\r\nEND\r\nEN\r\n");
        host.pass(5_000);
        let found = host.says(&mut client, "DBSIZE\r\nGET a\r\nDBSIZE\r\nSCAN 0 COUNT 100000\r\nDBSIZE\r\n");
        let page = "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nb\r\n";
        assert_eq!(found, format!(":2\r\n$-1\r\n:2\r\n{page}:2\r\n"), "{is_for_log}");
        let waiting = if is_for_log { host.engine.pause.end_for_log() } else { host.engine.pause.end() };
        assert!(waiting.is_empty());
        host.pass(5_000);
        assert_eq!(host.says(&mut items, "get a\r\n"), "END\r\n");
        assert_eq!(host.says(&mut client, "DBSIZE\r\n"), ":1\r\n");
    }
}

#[test]
fn a_flush_comes_when_it_was_asked_for() {
    let mut host = Host::new();
    let mut client = host.memcached();
    let get = "get a b\r\n";
    // The schedule is looked at by ticks, which read the real clock: the time of asking is what is moved.
    let asked_earlier = |host: &mut Host, client: &mut host::Client, ms: u64, request: &str| {
        host.engine.read_clock(&mut host.worker);
        host.worker.clock.now_ms -= ms;
        host.worker.clock.now_ns -= ms * 1_000_000;
        host.says(client, request)
    };
    host.says(&mut client, "set a 0 0 1\r\n1\r\n");
    assert_eq!(asked_earlier(&mut host, &mut client, 50_000, "flush_all 100\r\n"), "OK\r\n");
    host.engine.tick(&mut host.worker);
    assert_eq!(host.says(&mut client, get), "VALUE a 0 1\r\n1\r\nEND\r\n");
    // Another time takes the place of the first.
    assert_eq!(asked_earlier(&mut host, &mut client, 50_000, "flush_all 40\r\n"), "OK\r\n");
    host.says(&mut client, "set b 0 0 1\r\n1\r\n");
    host.engine.tick(&mut host.worker);
    assert_eq!(host.says(&mut client, get), "END\r\n");
    // It has come once; what is stored afterwards stays.
    host.says(&mut client, "set a 0 0 1\r\n2\r\n");
    host.engine.tick(&mut host.worker);
    assert_eq!(host.says(&mut client, get), "VALUE a 0 1\r\n2\r\nEND\r\n");
    // A flush now leaves none for later.
    asked_earlier(&mut host, &mut client, 50_000, "flush_all 40\r\nflush_all\r\nset a 0 0 1\r\n3\r\n");
    host.engine.tick(&mut host.worker);
    assert_eq!(host.says(&mut client, get), "VALUE a 0 1\r\n3\r\nEND\r\n");
}

#[test]
fn a_flush_empties_large_stores() {
    let mut host = Host::new();
    let mut client = host.memcached();
    let mut stream = Vec::new();
    for i in 0..30_000 {
        stream.extend_from_slice(format!("set k{i} 0 {} 1 noreply\r\nx\r\n", i % 3 * 50).as_bytes());
    }
    assert_eq!(host.ask(&mut client, &stream), b"");
    assert_eq!(host.says(&mut client, "flush_all\r\nget k7 k29999\r\n"), "OK\r\nEND\r\n");
    assert!(host.says(&mut client, "stats\r\n").contains("STAT curr_items 0\r\n"));
}

#[test]
fn a_killed_client_is_not_served_on() {
    let mut host = Host::new();
    let mut client = host.memcached();
    host.engine.clients.kill(client.connection.client());
    host.send(&mut client, b"set a 0 0 1\r\n1\r\nset b 0 0 1\r\n1\r\n");
    assert_eq!(client.flow, Flow::CloseAfterFlush);
    let mut other = host.memcached();
    assert!(!host.says(&mut other, "get b\r\n").contains('b'));
    client.connection.closed(&host.engine, tenon_frontend::Ending::Normal);
    assert_eq!(host.engine.clients.count(), 1);
}

#[test]
fn hostile_lines_are_answered_or_end_the_connection() {
    let long = "x".repeat(9_000);
    let cases: Vec<(String, &str, Flow)> = vec![
        (format!("set {} 0 0 1\r\n", "k".repeat(251)), "CLIENT_ERROR bad command line format\r\n", Flow::Continue),
        ("set  0 0 1\r\n".to_owned(), "ERROR\r\n", Flow::Continue),
        ("get \r\n".to_owned(), "ERROR\r\n", Flow::Continue),
        (" ".repeat(1_000), "", Flow::Continue),
        (long.clone(), "CLIENT_ERROR line too long\r\n", Flow::CloseAfterFlush),
        (" ".repeat(9_000), "CLIENT_ERROR line too long\r\n", Flow::CloseAfterFlush),
        ("set k 0 0 -1\r\n".to_owned(), "CLIENT_ERROR bad command line format\r\n", Flow::Continue),
        ("set k 0 0 99999999999999999999\r\n".to_owned(), "CLIENT_ERROR bad command line format\r\n", Flow::Continue),
        ("set k -1 0 1\r\n".to_owned(), "CLIENT_ERROR bad command line format\r\n", Flow::Continue),
        ("set k 0 9223372036854775808 1\r\n".to_owned(), "CLIENT_ERROR bad command line format\r\n", Flow::Continue),
        (
            "set k 0 9223372036854775807 1\r\nx\r\nget k\r\n".to_owned(),
            "STORED\r\nVALUE k 0 1\r\nx\r\nEND\r\n",
            Flow::Continue,
        ),
        ("set k 0 -9223372036854775808 1\r\nx\r\nget k\r\n".to_owned(), "STORED\r\nEND\r\n", Flow::Continue),
        (
            "set k 0 0 1\r\n5\r\nincr k 18446744073709551616\r\n".to_owned(),
            "STORED\r\nCLIENT_ERROR invalid numeric delta argument\r\n",
            Flow::Continue,
        ),
        ("touch k 9223372036854775807\r\nget k\r\n".to_owned(), "NOT_FOUND\r\nEND\r\n", Flow::Continue),
        ("POST / HTTP/1.1\r\nHost: x\r\n\r\nflush_all\r\n".to_owned(), "", Flow::Close),
        ("\r\n".repeat(10_000), &"ERROR\r\n".repeat(10_000).leak()[..], Flow::Continue),
    ];
    for (request, answer, flow) in cases {
        let mut host = Host::new();
        let mut client = host.memcached();
        assert_eq!(host.says(&mut client, &request), answer, "{:.60?}", request);
        assert_eq!(client.flow, flow, "{:.60?}", request);
    }
}

#[test]
fn random_requests_never_stop_the_server() {
    const WORDS: &[&str] = &[
        "get",
        "gets",
        "gat",
        "gats",
        "set",
        "add",
        "replace",
        "append",
        "prepend",
        "cas",
        "incr",
        "decr",
        "delete",
        "touch",
        "flush_all",
        "version",
        "verbosity",
        "stats",
        "cache_memlimit",
        "shutdown",
        "quit",
        "k",
        "k2",
        "0",
        "1",
        "-1",
        "5",
        "100",
        "4294967296",
        "noreply",
        "settings",
        "conns",
        "reset",
        "\r\n",
        "\r\n",
        "\r\n",
        "\n",
        "\r",
        "\0",
        "\x7f",
        "  ",
        "abcde\r\n",
        "1\r\n",
    ];
    for seed in 0..300 {
        let mut random = Random(seed);
        let mut host = Host::new();
        let mut client = host.memcached();
        let mut stream = Vec::new();
        for _ in 0..2_000 {
            stream.extend_from_slice(WORDS[random.below(WORDS.len())].as_bytes());
            if random.below(4) > 0 {
                stream.push(b' ');
            }
            if random.below(50) == 0 {
                stream.push(random.below(256) as u8);
            }
        }
        let mut rest = &stream[..];
        while !rest.is_empty() && matches!(client.flow, Flow::Continue | Flow::Fill) {
            let (now, later) = rest.split_at((1 + random.below(300)).min(rest.len()));
            host.ask(&mut client, now);
            rest = later;
        }
        // Another client is served as ever.
        let mut other = host.memcached();
        host.set("maxmemory", "0");
        assert_eq!(host.says(&mut other, "set x 0 0 1\r\n1\r\nget x\r\n"), "STORED\r\nVALUE x 0 1\r\n1\r\nEND\r\n");
    }
}

#[test]
fn who_was_killed_runs_no_further_request() {
    for first in ["", "get k\r\n"] {
        let mut host = Host::new();
        let (mut client, mut other) = (host.memcached(), host.memcached());
        host.says(&mut client, first);
        host.engine.clients.kill(client.connection.client());
        assert_eq!(host.says(&mut client, "set k 0 0 1\r\nv\r\n"), "");
        assert_eq!(client.flow, Flow::CloseAfterFlush);
        assert_eq!(host.says(&mut other, "get k\r\n"), "END\r\n");
    }
}
