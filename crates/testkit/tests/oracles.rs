//! Plays the transcripts against the original servers, and shows that wrong ones fail. Knows no command.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;
use tenon_testkit::patience::PATIENCE;
use tenon_testkit::target::{Demand, Dialect, NotReady, Oracles, Target, Valkey};
use tenon_testkit::transcripts::check::{Report, check, folder, run_in_mode};
use tenon_testkit::transcripts::play::Mode;

#[test]
fn redis_and_memcached_agree_with_the_transcripts() {
    check(&mut Oracles::target(), &folder(), None);
}

#[test]
fn valkey_agrees_with_the_transcripts_of_what_it_alone_has() {
    match Valkey::target() {
        Some(mut target) => check(&mut target, &folder(), None),
        None => {
            _ = writeln!(std::io::stderr(), "skipped: transcripts judged by valkey9-server, which is not installed")
        }
    }
}

/// A folder with one transcript, deleted when dropped.
struct Sample {
    root: PathBuf,
    file: PathBuf,
}

impl Sample {
    fn new(name: &str, dialect: &str, text: &str) -> Sample {
        let root = std::env::temp_dir().join(format!("tenon-sample-{}-{name}", std::process::id()));
        let file = root.join(dialect).join("sample.txt");
        fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
        fs::write(&file, text).expect("a file");
        Sample { root, file }
    }

    /// Plays against the oracle; nothing where it is not installed.
    fn play(&self, dialect: Dialect, mode: Mode) -> Option<Report> {
        self.play_patiently(dialect, mode, PATIENCE)
    }

    /// The same for one that is wrong: what does not come is not waited for as long as usual, which is minutes.
    fn play_wrong(&self, dialect: Dialect) -> Option<Report> {
        self.play_patiently(dialect, Mode::Compare, Duration::from_secs(2))
    }

    fn play_patiently(&self, dialect: Dialect, mode: Mode, patience: Duration) -> Option<Report> {
        let mut target = Oracles::target();
        match target.prepare(&Demand { dialect, settings: &[], fresh: false }) {
            Ok(()) => Some(run_in_mode(&mut target, &self.root, None, mode, patience)),
            Err(NotReady::Skip(reason)) => {
                assert!(std::env::var("TENON_REQUIRE_ORACLES").is_err(), "{reason}");
                let _ = writeln!(std::io::stderr(), "skipped: {reason}");
                None
            }
            Err(NotReady::Fail(reason)) => panic!("{reason}"),
        }
    }
}

impl Drop for Sample {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

const REDIS: &str = r#"# Every part of the notation, against redis-server.
oracle: redis >= 7.0
config: maxmemory 100mb
config tenon: workers 1

> CONFIG GET maxmemory
["maxmemory", "104857600"]
> LPUSH list a "b c" "\x00\{x*40}"
:3
> LRANGE list 0 -1
["\x00\{x*40}", "b c", "a"]
> CLIENT ID
<int $id>
[other] > CLIENT NO-EVICT on
+OK
[other] > ECHO "\{$id}"
<bulk /^[0-9]+$/>
[waiting] > BLPOP none 0
<none>
> RPUSH none x
:1
[waiting] receive
["none", "x"]
[waiting] > HELLO 3
<any>
[waiting] > HSET hash f 1
:1
[waiting] > HGETALL hash
{"f" => "1"}
[waiting] > GET missing
null
[waiting] > SUBSCRIBE a b
push ["subscribe", "a", :1]
push ["subscribe", "b", :2]
> PUBLISH a hi
:1
[waiting] receive
push ["message", "a", "hi"]
> SET short x PX 30
+OK
until 5s
> GET short
nil
sleep 1ms
! tenon only: this would be an error from Redis
> NOSUCH
+OK
! oracle only: Tenon would know better
> NOSUCH
-ERR unknown command 'NOSUCH', with args beginning with: 
> SADD set a b c
:3
> SMEMBERS set
unordered ["c", "b", "a"]
> NOSUCH "a \"q\""
<error /unknown command/>
raw> "*1\r\n$-5\r\n"
-ERR Protocol error: invalid bulk length
<closed>
> PING
+PONG
[other] close
[other] > PING
+PONG
raw> "PING\r\nPING\r\n"
+PONG
+PONG
"#;

#[test]
fn the_notation_holds_against_redis() {
    // The error's text ends in a blank, which a line can't.
    let text = REDIS.replace("with: \n", "with:\\x20\n");
    let sample = Sample::new("redis", "redis", &text);
    let Some(report) = sample.play(Dialect::Redis, Mode::Compare) else { return };
    assert!(report.failures.is_empty(), "{}", report.failures.join("\n"));
    assert_eq!(report.files, 1);

    // What holds is not rewritten, matchers and all.
    let report = sample.play(Dialect::Redis, Mode::Bless).expect("redis-server was there");
    assert!(report.failures.is_empty(), "{}", report.failures.join("\n"));
    assert_eq!(fs::read_to_string(&sample.file).expect("the file"), text);
}

#[test]
fn every_wrong_reply_fails() {
    for (name, steps) in [
        ("text", "> SET a b\n+KO\n"),
        ("type", "> SET a b\n\"OK\"\n"),
        ("null", "> GET a\nnil-array\n"),
        ("less", "> SUBSCRIBE a b\n[\"subscribe\", \"a\", :1]\n"),
        ("unasked", "> SUBSCRIBE a b\n[\"subscribe\", \"a\", :1]\nsleep 50ms\n> PING\n[\"pong\", \"\"]\n"),
        ("closed", "> QUIT\n+OK\n[other] > PING\n+PONG\n"),
        ("open", "> PING\n+PONG\n<closed>\n"),
        ("nothing expected", "> PING\n"),
        ("capture", "> ECHO \"\\{$never}\"\n\"\"\n"),
        ("until", "until 1s\n> GET a\n\"x\"\n"),
    ] {
        let sample = Sample::new(&format!("wrong-{}", name.replace(' ', "-")), "redis", steps);
        let Some(report) = sample.play_wrong(Dialect::Redis) else { return };
        assert_eq!(report.failures.len(), 1, "{name} should have failed");
        assert!(report.failures[0].contains("sample.txt:"), "{}", report.failures[0]);
    }
}

#[test]
fn blessing_fills_in_the_oracles_replies() {
    let sample = Sample::new("bless", "redis", "# Why.\n> RPUSH l a b\n\n> LRANGE l 0 -1\n:wrong\n");
    assert!(sample.play(Dialect::Redis, Mode::Bless).is_none_or(|report| report.failures.len() == 1), "no such reply");
    fs::write(&sample.file, "# Why.\n> RPUSH l a b\n\n> LRANGE l 0 -1\n:5\n# End.\n> QUIT\n+NO\n<closed>\n")
        .expect("a file");
    let Some(report) = sample.play(Dialect::Redis, Mode::Bless) else { return };
    assert!(report.blessed.iter().eq([&sample.file]));
    let blessed = "# Why.\n> RPUSH l a b\n:2\n\n> LRANGE l 0 -1\n[\"a\", \"b\"]\n# End.\n> QUIT\n+OK\n<closed>\n";
    assert_eq!(fs::read_to_string(&sample.file).expect("the file"), blessed);
    let report = sample.play(Dialect::Redis, Mode::Compare).expect("redis-server was there");
    assert!(report.failures.is_empty(), "{}", report.failures.join("\n"));
}

#[test]
fn what_an_oracle_is_too_old_for_is_skipped_aloud() {
    for (name, head) in [("new", "oracle: redis >= 99.0"), ("none", "oracle: none, needs redis 99")] {
        let sample = Sample::new(name, "redis", &format!("{head}\n> PING\n+WRONG\n"));
        let Some(report) = sample.play(Dialect::Redis, Mode::Compare) else { return };
        assert_eq!((report.files, report.failures.len()), (0, 0));
        assert!(report.summary().contains("needs redis 99"), "{}", report.summary());
    }
}

const MEMCACHE: &str = r"# Every part of the notation, against memcached.
config oracle: max-item-size 2m

> set k 5 0 3
> abc
< STORED
> gets k
< VALUE k 5 3 <int $cas>
< abc
< END
> cas k 0 0 2 \{$cas}
> de
< STORED
> get \{k*251}
< <bulk /.*ERROR.*/>
[two] > set k 0 0 1 noreply
[two] > x
[two] > get k
< VALUE k 0 1
< x
< END
> touch k 0
< TOUCHED
> stats
<...>
< STAT curr_items 1
<...>
< END
raw> \x22version\r\nquit\r\n\x22
< VERSION <any>
<closed>
";

#[test]
fn the_notation_holds_against_memcached() {
    let text = MEMCACHE.replace("\\x22", "\"");
    let sample = Sample::new("memcache", "memcache", &text);
    let Some(report) = sample.play(Dialect::Memcache, Mode::Compare) else { return };
    assert!(report.failures.is_empty(), "{}", report.failures.join("\n"));
    let report = sample.play(Dialect::Memcache, Mode::Bless).expect("memcached was there");
    assert!(report.failures.is_empty() && report.blessed.is_empty(), "{}", report.failures.join("\n"));

    for wrong in ["> get k\n< EN\n", "> get k\n< END\n< END\n", "> set k 0 0 1\n> a\n< STORED\n\n> get k\n< END\n"] {
        fs::write(&sample.file, wrong).expect("a file");
        let report = sample.play_wrong(Dialect::Memcache).expect("memcached was there");
        assert_eq!(report.failures.len(), 1, "{wrong} should have failed");
    }
}
