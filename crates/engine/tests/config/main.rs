//! The configuration as its users meet it: files, flags, CONFIG GET, SET and REWRITE, help and docs. Texts of errors
//! that Redis has too were recorded from redis-server 7.0.15.

mod rewrite;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use tenon_engine::config::{
    ACCEPTED_AT_DEFAULT, Caller, ClientClass, Config, Initial, Invocation, LogLevel, Machine, Otherwise, Policy,
    SETTINGS, SetError, UserLine, docs, help, parse,
};
use tenon_engine::notify::EventClass;

fn machine() -> Machine {
    Machine { cores: 3, memory_bytes: Some(1_000_000), directory: "/".into() }
}

/// What is right for files without users.
fn no_users(lines: &[UserLine]) -> Option<Vec<String>> {
    (!lines.is_empty()).then(Vec::new)
}

fn defaults() -> Config {
    Config::new(machine())
}

/// A directory that goes away with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tenon-config-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn invoke(args: &[&str], stdin: &str) -> Result<Invocation, String> {
    let args = args.iter().map(OsString::from);
    parse(args, machine(), &mut stdin.as_bytes()).map_err(|error| error.to_string())
}

fn run_with(args: &[&str], stdin: &str) -> Result<Config, String> {
    match invoke(args, stdin)? {
        Invocation::Run(config) => Ok(*config),
        other => panic!("expected to run, got {other:?}"),
    }
}

fn run(args: &[&str]) -> Result<Config, String> {
    run_with(args, "")
}

/// The error of a file with this text, without the directory's name.
fn file_error(text: &str) -> String {
    let scratch = Scratch::new();
    let path = scratch.write("t.conf", text);
    let error = run(&[&path]).expect_err(text);
    error.replace(&format!("{}/", scratch.0.display()), "")
}

fn set(config: &Config, pairs: &[(&str, &str)]) -> Result<Vec<&'static str>, String> {
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
    let changed = config.set(&pairs, Caller::Local).map_err(|error| error.to_string())?;
    Ok(changed.iter().map(|changed| changed.setting.name).collect())
}

fn get(config: &Config, patterns: &[&str]) -> Vec<String> {
    let patterns: Vec<_> = patterns.iter().map(|pattern| pattern.as_bytes()).collect();
    config.get(&patterns).into_iter().map(|(name, value)| format!("{name}={value}")).collect()
}

#[test]
fn the_table_is_consistent() {
    let mut names: Vec<_> = SETTINGS.iter().flat_map(|setting| setting.names()).collect();
    names.extend(ACCEPTED_AT_DEFAULT.iter().flat_map(|fixed| fixed.names()));
    for name in &names {
        assert_eq!(*name, name.to_lowercase());
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "a name is declared twice");
    for (index, setting) in SETTINGS.iter().enumerate() {
        assert_eq!(setting.id as usize, index);
        assert_eq!(format!("{:?}", setting.id), setting.name.replace('-', "_"), "the accessor has the setting's name");
        assert!(setting.doc.trim().ends_with('.'), "{}", setting.name);
    }
}

/// Every setting, given its own default or shown value in a file, keeps it.
#[test]
fn defaults_can_be_said() {
    let config = defaults();
    for setting in SETTINGS {
        if let Initial::Is(text) = setting.initial {
            let again = run(&[&format!("--{}={text}", setting.name)]).unwrap();
            assert_eq!(again.show(setting), config.show(setting));
        }
        let shown = config.show(setting);
        assert_eq!(run(&[&format!("--{}={shown}", setting.name)]).unwrap().show(setting), shown);
    }
    for fixed in ACCEPTED_AT_DEFAULT {
        run(&[&format!("--{}={}", fixed.name, fixed.value)]).unwrap();
        let other = run(&[&format!("--{}=something-else", fixed.name)]);
        match fixed.otherwise {
            Otherwise::Refused => drop(other.unwrap_err()),
            Otherwise::Warned => assert_eq!(other.unwrap().warnings().len(), 1),
        }
    }
}

#[test]
fn a_file_may_say_that_the_server_is_no_replica() {
    for text in ["replicaof no one", "slaveof NO ONE", "replicaof \"no one\""] {
        let config = run_with(&["-"], text).unwrap();
        assert_eq!(
            (config.warnings(), get(&config, &["replicaof"])),
            (&[][..], vec!["replicaof=".to_owned()]),
            "{text}"
        );
    }
    run(&["--replicaof", "no", "one"]).unwrap();
}

#[test]
fn defaults_of_the_machine() {
    let config = Config::new(Machine { memory_bytes: Some(1_000_000_000), ..machine() });
    assert_eq!((config.workers(), config.maxmemory(), config.shards()), (3, 800_000_000, 4096));
    assert_eq!((config.port(), config.memcached_port()), (6379, 11211));
    assert_eq!(config.bind(), ["127.0.0.1"]);
    assert_eq!(config.maxmemory_policy(), Policy::NoEviction);
    let unknown = Config::new(Machine { memory_bytes: None, ..machine() });
    assert_eq!(unknown.maxmemory(), 0);
    // The log has its place first.
    let small = Config::new(Machine { memory_bytes: Some(60 << 20), ..machine() });
    assert_eq!(small.maxmemory(), 40 << 20);
}

#[test]
fn a_file() {
    let scratch = Scratch::new();
    let path = scratch.write(
        "t.conf",
        "# comment with \" one quote\n\n  PORT 7000\r\nbind 127.0.0.1 -::1\n\
         requirepass \"a \\\"b\\\" \\x41\"\nmaxmemory 50%\nclient-output-buffer-limit normal 1mb 0 0\n\
         client-output-buffer-limit slave 1 2 3\nnotify-keyspace-events KEx\nloglevel DEBUG\n\
         latency-tracking-info-percentiles 50 99.9\nauto-aof-rewrite-min-size 64mb\nmemcached-port 11211",
    );
    let config = run(&[&path]).unwrap();
    assert_eq!((config.port(), config.maxmemory()), (7000, 500_000));
    assert_eq!(config.bind(), ["127.0.0.1", "-::1"]);
    assert_eq!(&*config.requirepass(), "a \"b\" A");
    assert_eq!(config.loglevel(), LogLevel::Debug);
    assert_eq!(config.latency_tracking_info_percentiles(), [50.0, 99.9]);
    let flags = config.notify_keyspace_events();
    assert!(flags.contains(EventClass::EXPIRED) && !flags.contains(EventClass::GENERIC));
    assert_eq!(config.output_buffer_limit(ClientClass::Normal).hard_bytes, 1 << 20);
    assert_eq!(config.output_buffer_limit(ClientClass::Replica).soft_seconds, 3);
    assert_eq!(config.output_buffer_limit(ClientClass::Pubsub).hard_bytes, 32 << 20, "not named, so unchanged");
    assert_eq!(config.file(), Some(fs::canonicalize(&path).unwrap().as_path()));
    assert_eq!(config.warnings(), []);
}

#[test]
fn a_file_that_has_lost_its_name_is_read_and_not_rewritten() {
    use std::os::fd::AsRawFd;
    let scratch = Scratch::new();
    let path = scratch.write("t.conf", "port 7000");
    let file = fs::File::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    // As a shell's here-document may be.
    let config = run(&[&format!("/proc/self/fd/{}", file.as_raw_fd())]).unwrap();
    assert_eq!((config.port(), config.file()), (7000, None));
}

#[test]
fn errors_name_the_line_and_the_nearest_name() {
    let check = |text: &str, expected: &str| assert_eq!(file_error(text), expected);
    check("\n# c\nmaxmemroy 1gb\n", "t.conf:3: unknown setting 'maxmemroy'; did you mean 'maxmemory'?");
    check("frobnicate yes", "t.conf:1: unknown setting 'frobnicate'; `tenon --help all` lists every setting");
    check("port x", "t.conf:1: port 'x': argument couldn't be parsed into an integer");
    check("port", "t.conf:1: port '': wrong number of arguments");
    check("port 1 2", "t.conf:1: port '1 2': wrong number of arguments");
    check("requirepass a b", "t.conf:1: requirepass: wrong number of arguments");
    check("logfile \"a", "t.conf:1: unbalanced quotes");
    check(
        "client-output-buffer-limit normal 0 0",
        "t.conf:1: client-output-buffer-limit 'normal 0 0': Wrong number of arguments in buffer limit configuration.",
    );
    check("replicaof host 1", "t.conf:1: replicaof 'host 1': not supported yet: Tenon has no replication");
    check("cluster-enabled yes", "t.conf:1: cluster-enabled 'yes': not supported yet: Tenon has no cluster mode");
    check("user", "t.conf:1: user: wrong number of arguments");
    check("dir /nonexistent", "t.conf:1: dir '/nonexistent': No such file or directory");
    check("shards 1000", "t.conf:1: shards '1000': argument must be a power of two between 1 and 65536");
    check("include a b", "t.conf:1: include 'a b': wrong number of arguments");
}

#[test]
fn bytes_that_are_not_utf8() {
    let scratch = Scratch::new();
    let path = scratch.0.join("latin1.conf");
    fs::write(&path, b"# gr\xfc\xdfe\nport 7000\n").unwrap();
    assert_eq!(run(&[path.to_str().unwrap()]).unwrap().port(), 7000, "comments may be in any encoding");
    fs::write(&path, b"requirepass \xfc\n").unwrap();
    let error = run(&[path.to_str().unwrap()]).unwrap_err();
    assert!(error.ends_with("latin1.conf:1: the line is not UTF-8"), "{error}");
}

#[test]
fn includes() {
    let scratch = Scratch::new();
    let dir = scratch.0.display().to_string();
    fs::create_dir(scratch.0.join("conf.d")).unwrap();
    scratch.write("conf.d/2.conf", "hz 20\nport 2\n");
    scratch.write("conf.d/1.conf", "hz 11\nport 1\n");
    scratch.write("conf.d/.hidden.conf", "hz 99\n");
    scratch.write("conf.d/other", "hz 98\n");
    let main = format!("port 9\ninclude {dir}/conf.d/*.conf\nhz 30\ninclude {dir}/nothing/*.conf\n");
    let config = run(&[&scratch.write("main.conf", &main)]).unwrap();
    assert_eq!((config.port(), config.hz()), (2, 30));

    let missing = run(&[&scratch.write("missing.conf", &format!("\ninclude {dir}/no.conf\n"))]).unwrap_err();
    assert!(missing.contains("missing.conf:2: can't read '"), "{missing}");
    scratch.write("conf.d/1.conf", "\nprot 1\n");
    let nested = run(&[&scratch.write("main.conf", &main)]).unwrap_err();
    assert!(nested.ends_with("conf.d/1.conf:2: unknown setting 'prot'; did you mean 'port'?"), "{nested}");
    let endless = run(&[&scratch.write("self.conf", &format!("include {dir}/self.conf\n"))]).unwrap_err();
    assert!(endless.ends_with("files are included too deep; does one include itself?"), "{endless}");
}

#[test]
fn flags() {
    let config =
        run(&["--bind", "127.0.0.1", "::1", "--PORT", "7000", "--maxmemory=1mb", "--requirepass=--x"]).unwrap();
    assert_eq!(config.bind(), ["127.0.0.1", "::1"]);
    assert_eq!((config.port(), config.maxmemory(), &*config.requirepass()), (7000, 1 << 20, "--x"));
    assert_eq!(run(&["--slowlog-log-slower-than", "-1"]).unwrap().slowlog_log_slower_than(), -1);
    // In one argument, as lists in YAML are written, and values that look like flags.
    let config =
        run(&["--maxmemory 2mb", "--save 60 1", "--bind 127.0.0.1", "::1", "--requirepass", "--a=b", "--hz", "30"]);
    let config = config.unwrap();
    assert_eq!((config.maxmemory(), &*config.requirepass(), config.hz()), (2 << 20, "--a=b", 30));
    assert_eq!((config.bind().len(), config.save().len()), (2, 1));
    let config = run(&["--requirepass 'a b'", "--save", "--port 7001"]).unwrap();
    assert_eq!((&*config.requirepass(), config.save().len(), config.port()), ("a b", 0, 7001));
    let check = |args: &[&str], expected: &str| assert_eq!(run(args).unwrap_err(), expected);
    check(&["--requirepass 'a b"], "command line: unbalanced quotes");
    check(&["--maxmemroy", "1gb"], "command line: unknown setting '--maxmemroy'; did you mean '--maxmemory'?");
    check(&["--port"], "command line: --port '': wrong number of arguments");
    check(&["--port", "1", "x.conf"], "command line: --port '1 x.conf': wrong number of arguments");
    check(&["-", "x.conf"], "command line: unexpected argument 'x.conf': the file comes first, then --name value ...");
    let missing = run(&["/nonexistent.conf"]).unwrap_err();
    assert!(missing.starts_with("command line: can't read '/nonexistent.conf': No such file"), "{missing}");
}

#[test]
fn a_list_may_be_in_quotes_once_more() {
    for nothing in
        [&["--save", r#""""#][..], &["--save", "''"], &[r#"--save """#], &["--save", r#" "" "#], &["--save", " "]]
    {
        assert_eq!(run(nothing).unwrap().save(), [], "{nothing:?}");
    }
    let config = run(&["--save", "'60' \"1\"  300 2", "--bind", r#""127.0.0.1" ::1"#]).unwrap();
    assert_eq!((config.save().len(), config.bind().len()), (2, 2));
    let scratch = Scratch::new();
    let path = scratch.write("t.conf", r#"save "\"\"""#);
    assert_eq!(run(&[&path]).unwrap().save(), []);
    assert_eq!(run(&["--save", "\"60 1"]).unwrap_err(), "command line: --save '\"60 1': Invalid save parameters");
}

#[test]
fn save_points_of_flags_are_added_to_those_of_the_file() {
    let scratch = Scratch::new();
    let path = scratch.write("t.conf", "save 900 1\n");
    assert_eq!(get(&run(&[&path, "--save", "60", "1000"]).unwrap(), &["save"]), ["save=900 1 60 1000"]);
    assert_eq!(get(&run(&[&path, "--save", "", "--save", "60 1"]).unwrap(), &["save"]), ["save=60 1"]);
}

#[test]
fn who_guards_one_door_does_not_open_another_without_a_word() {
    let port_of = |args: &[&str]| run(args).unwrap().memcached_port();
    for guarded in [
        &["--requirepass", "s"][..],
        &["--user", "app", "on", ">p"],
        &["--user", "default", "on", "nopass", "~*", "&*", "+@all", "-@dangerous"],
        &["--user", "default", "on", "nopass", "~app:*", "+@read"],
        &["--user", "default", "on", "nopass", ">secret"],
        &["--user", "default", "off", "nopass", "~*", "+@all"],
        &["--user", "default", "on", "nopass"],
        &["--user", "default", "on", "~*", "&*", "+@all"],
        &["--user", "default", "on"],
        &["--aclfile", "/x/users.acl"],
        &["--port", "0", "--unixsocket", "/x/s"],
        &["--port", "0", "--tls-port", "6380"],
    ] {
        let config = run(guarded).unwrap();
        assert_eq!(config.memcached_port(), 0, "{guarded:?}");
        let warning = config.warnings()[0].to_string();
        let start = format!(
            "'memcached-port' is 0 because of '{}': memcached's clients",
            guarded[guarded.len() - 2].trim_start_matches("--")
        );
        assert!(warning.starts_with(&start) || guarded[0] == "--user", "{warning}");
        assert_eq!(port_of(&[guarded, &["--memcached-port", "11211"]].concat()), 11211, "{guarded:?}");
    }
    for open in [
        &[][..],
        &["--port", "0"],
        &["--unixsocket", "/x/s"],
        &["--requirepass", ""],
        &["--user", "default", "on", "nopass", "sanitize-payload", "~*", "&*", "+@all"],
        &["--user", "default", "ON", "NOPASS", "ALLKEYS", "allcommands"],
    ] {
        assert_eq!(port_of(open), 11211, "{open:?}");
    }
    assert_eq!(port_of(&["--requirepass", "s", "--memcached-auth", "yes"]), 11211);
}

#[test]
fn flags_override_the_file_and_what_it_is_refused_for() {
    let scratch = Scratch::new();
    let path =
        scratch.write("t.conf", "port 1\nsupervised upstart\nappendonly yes\ndir /nonexistent\nhz 5\nsave 1 1\n");
    let refused = run(&[&path]).unwrap_err();
    assert!(refused.contains("t.conf:2: supervised 'upstart': not supported yet: "), "{refused}");
    let overrides = ["--port", "2", "--supervised", "no", "--appendonly", "no", "--dir", "/", "--save", ""];
    let args: Vec<&str> = [path.as_str()].into_iter().chain(overrides).collect();
    let config = run(&args).unwrap();
    assert_eq!((config.port(), config.hz(), &*config.dir()), (2, 5, "/"));
    assert_eq!(config.save(), []);
}

#[test]
fn standard_input() {
    let config = run_with(&["-", "--port", "2"], "port 1\nhz 7\n").unwrap();
    assert_eq!((config.port(), config.hz(), config.file()), (2, 7, None));
    assert_eq!(run_with(&["--hz", "8", "-"], "hz 7\n").unwrap().hz(), 8);
    assert_eq!(
        run_with(&["-"], "\nhz x\n").unwrap_err(),
        "stdin:2: hz 'x': argument couldn't be parsed into an integer"
    );
}

#[test]
fn warnings() {
    let config =
        run(&["--io-threads", "4", "--lazyfree-lazy-user-del", "yes", "--lua-replicate-commands", "no"]).unwrap();
    let shown: Vec<_> = config.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "command line: 'io-threads' has no effect: Every worker runs commands: set workers instead.",
            "command line: 'lua-replicate-commands' has no effect: Redis has dropped it, too.",
        ]
    );
    assert_eq!(run(&["--io-threads", "4", "--io-threads", "1"]).unwrap().warnings(), []);
}

/// In Redis it may be any number of bytes that a file can say.
#[test]
fn a_longest_argument_beyond_what_there_is_is_the_longest() {
    const MOST: u64 = 4_294_966_271;
    for value in ["4gb", "9223372036854775807", "4294966272"] {
        let config = run_with(&["-"], &format!("proto-max-bulk-len {value}\n")).unwrap();
        assert_eq!(config.proto_max_bulk_len(), MOST);
        let shown: Vec<_> = config.warnings().iter().map(ToString::to_string).collect();
        let expected =
            "stdin:1: 'proto-max-bulk-len' is taken as 4294966271: longer strings could be saved, but not loaded.";
        assert_eq!(shown, [expected]);
        config.set(&[(b"proto-max-bulk-len", b"1mb")], Caller::Local).unwrap();
        config.set(&[(b"proto-max-bulk-len", value.as_bytes())], Caller::Local).unwrap();
        assert_eq!(config.proto_max_bulk_len(), MOST);
    }
    for value in ["4294966271", "1mb"] {
        assert_eq!(run(&["--proto-max-bulk-len", value]).unwrap().warnings(), []);
    }
    assert_eq!(run(&["--proto-max-bulk-len", "8gb", "--proto-max-bulk-len", "1gb"]).unwrap().warnings(), []);
}

/// The stock file of Debian, wherever the package is installed.
#[test]
fn debians_redis_conf() {
    let path = "/etc/redis/redis.conf";
    let text = fs::read_to_string(path).unwrap_or_default();
    if !text.lines().any(|line| line == "daemonize yes") {
        let _ = writeln!(
            std::io::stderr(),
            "skipped: {path} is not there, not readable or not Debian's (package redis-server)"
        );
        return;
    }
    let config = run(&[path, "--dir", "/"]).unwrap();
    assert!(config.daemonize());
    assert_eq!(config.bind(), ["127.0.0.1", "-::1"]);
    assert_eq!(config.warnings(), []);
}

/// What Redis 8.8's own file says beside that of 8.0.
#[test]
fn settings_of_newer_redis_may_say_what_holds_anyway() {
    let lines = ["--array-slice-size", "4096", "--array-sparse-kmax", "10", "--array-sparse-kmin", "5"];
    let config = run(&[&lines[..], &["--sanitize-dump-payload", "clients", "--lookahead", "16"]].concat()).unwrap();
    assert_eq!(config.warnings(), []);
    assert_eq!(get(&config, &["sanitize-dump-payload"]), ["sanitize-dump-payload=yes"]);
    assert_eq!(set(&config, &[("sanitize-dump-payload", "YES")]).unwrap(), [""; 0]);
    assert!(set(&config, &[("sanitize-dump-payload", "no")]).is_err(), "all is checked");
}

#[test]
fn config_get() {
    let config = defaults();
    assert_eq!(get(&config, &["HZ"]), ["HZ=10"], "a name is given back as asked");
    assert_eq!(get(&config, &["nosuch", ""]), [""; 0]);
    assert_eq!(get(&config, &["hz", "h[z]", "*", "HZ"]).iter().filter(|row| row.contains("hz=")).count(), 2);
    assert_eq!(
        get(&config, &["Hash-*-VALUE", "maxmemory-p*", "lua-time-limit"]),
        [
            "maxmemory-policy=noeviction",
            "lua-time-limit=5000",
            "hash-max-listpack-value=64",
            "hash-max-ziplist-value=64"
        ],
        "in the table's order"
    );
    assert_eq!(
        get(&config, &["client-output-buffer-limit", "save", "client-query-*", "cluster-enabled"]),
        [
            "client-output-buffer-limit=normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
            "client-query-buffer-limit=1073741824",
            "save=",
            "cluster-enabled=no",
        ]
    );
}

#[test]
fn config_set_returns_what_changed() {
    let config = defaults();
    assert_eq!(
        set(&config, &[("HZ", "10"), ("maxclients", "5"), ("timeout", "3")]).unwrap(),
        ["maxclients", "timeout"]
    );
    assert_eq!((config.maxclients(), config.timeout()), (5, 3));
    assert_eq!(set(&config, &[("client-output-buffer-limit", "pubsub 1kb 2 3")]).unwrap().len(), 1);
    assert_eq!(
        get(&config, &["client-output-buffer-limit"]),
        ["client-output-buffer-limit=normal 0 0 0 slave 268435456 67108864 60 pubsub 1024 2 3"]
    );
    let both = [("hash-max-ziplist-entries", "5"), ("hash-max-listpack-entries", "6")];
    assert_eq!(set(&config, &both).unwrap(), ["hash-max-listpack-entries"], "an older name beside the newer one");
    assert_eq!(config.hash_max_listpack_entries(), 6);
    assert_eq!(set(&config, &[("appendfsync", "EVERYSEC"), ("save", "")]).unwrap(), [""; 0]);
}

#[test]
fn config_set_is_all_or_nothing() {
    let config = defaults();
    let failed = |name: &str, why: &str| format!("CONFIG SET failed (possibly related to argument '{name}') - {why}");
    let check = |pairs: &[(&str, &str)], expected: String| {
        let before = get(&config, &["*"]);
        assert_eq!(set(&config, pairs).unwrap_err(), expected);
        assert_eq!(get(&config, &["*"]), before);
    };
    check(&[("hz", "11"), ("maxmemory", "x")], failed("maxmemory", "argument must be a memory value"));
    check(
        &[("hz", "11"), ("Foo", "1"), ("maxmemory", "x")],
        "Unknown option or number of arguments for CONFIG SET - 'Foo'".into(),
    );
    check(&[("hz", "11"), ("HZ", "12")], failed("HZ", "duplicate parameter"));
    check(&[("Databases", "10"), ("foo", "1")], failed("Databases", "can't set immutable config"));
    check(&[("hz", "11"), ("dbfilename", "x")], failed("dbfilename", "can't set protected config"));
    check(&[("LFU-log-factor", "x")], failed("lfu-log-factor", "argument couldn't be parsed into an integer"));
    check(
        &[("hash-max-ziplist-entries", "-1")],
        failed("hash-max-ziplist-entries", "argument must be between 0 and 9223372036854775807 inclusive"),
    );
    // As in Redis this one is no amount of memory, unlike those of hashes and sorted sets.
    let number = "argument couldn't be parsed into an integer";
    check(&[("set-max-listpack-value", "1kb")], failed("set-max-listpack-value", number));
    for samples in ["0", "65", "2147483647"] {
        let range = "argument must be between 1 and 64 inclusive";
        check(&[("maxmemory-samples", samples)], failed("maxmemory-samples", range));
    }
    // What is longer could be saved, but not loaded.
    check(
        &[("max-value-size", "4gb")],
        failed("max-value-size", "argument must be between 1 and 4294966271 inclusive"),
    );
    check(&[("maxclients", "0")], failed("maxclients", "argument must be between 1 and 4294967295 inclusive"));
    check(
        &[("hz", "11"), ("locale-collate", "de_DE")],
        failed("locale-collate", "not supported yet: ALPHA orders by bytes"),
    );
    check(
        &[("hz", "11"), ("tls-cluster", "yes")],
        failed("tls-cluster", "not supported yet: Tenon has no cluster mode"),
    );
    let binary = config.set(&[(b"requirepass", b"\xff")], Caller::Local).unwrap_err();
    assert_eq!(binary.to_string(), failed("requirepass", "argument must be UTF-8"));
}

#[test]
fn protected_settings() {
    let local = run(&["--enable-protected-configs", "local"]).unwrap();
    let pair: &[(&[u8], &[u8])] = &[(b"dbfilename", b"a/b")];
    assert_eq!(local.set(pair, Caller::Remote).unwrap_err(), SetError::Protected("dbfilename".into()));
    let allowed = local.set(pair, Caller::Local).unwrap_err().to_string();
    assert!(allowed.ends_with("dbfilename can't be a path, just a filename"), "{allowed}");
    let open = run(&["--enable-protected-configs", "yes"]).unwrap();
    assert_eq!(open.set(&[(b"dbfilename", b"x.rdb")], Caller::Remote).unwrap().len(), 1);
    let nowhere = open.set(&[(b"dir", b"/nonexistent")], Caller::Remote).unwrap_err().to_string();
    assert!(nowhere.ends_with("'dir') - No such file or directory"), "{nowhere}");
}

#[test]
fn secrets_stay_secret() {
    assert!(Config::is_sensitive(b"RequirePass") && !Config::is_sensitive(b"port") && !Config::is_sensitive(b"\xff"));
    let config = run(&["--requirepass", "hush"]).unwrap();
    assert!(!format!("{config:?}").contains("hush"));
    // Also of what Tenon does not have.
    assert!(Config::is_sensitive(b"MasterAuth") && Config::is_sensitive(b"primaryauth"));
    let error = run(&["--tls-key-file-pass", "hush"]).unwrap_err().to_string();
    assert!(error.contains("tls-key-file-pass") && !error.contains("hush"), "{error}");
}

#[test]
fn a_relative_dir_starts_where_the_server_was_started_wherever_it_works() {
    let scratch = Scratch::new();
    // The server works in the first one, where there is another of its name.
    fs::create_dir_all(scratch.0.join("sub/sub")).unwrap();
    let start = fs::canonicalize(&scratch.0).unwrap().to_str().unwrap().to_owned();
    let path = scratch.write("t.conf", "dir sub\n");
    let load = || {
        let machine = Machine { directory: start.clone(), ..machine() };
        match parse([(&path).into(), "--enable-protected-configs".into(), "yes".into()], machine, &mut io::empty()) {
            Ok(Invocation::Run(config)) => *config,
            other => panic!("expected to run, got {other:?}"),
        }
    };
    let config = load();
    assert_eq!(*config.dir(), format!("{start}/sub"));
    config.rewrite(&no_users).unwrap();
    assert!(scratch.read("t.conf").starts_with("dir sub\n"), "what is right stays");
    set(&config, &[("dir", &format!("{start}/sub/sub"))]).unwrap();
    config.rewrite(&no_users).unwrap();
    assert_eq!(*load().dir(), format!("{start}/sub/sub"));
}

#[test]
fn a_relative_dir_starts_from_the_one_before() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.0.join("x/sub")).unwrap();
    let start = fs::canonicalize(&scratch.0).unwrap().to_str().unwrap().to_owned();
    let config = run(&["--enable-protected-configs", "yes", "--dir", &start]).unwrap();
    for (dir, now) in [("x", "x"), ("sub", "x/sub"), ("../..", ""), ("./x/sub", "x/sub")] {
        set(&config, &[("dir", dir)]).unwrap();
        assert_eq!(config.dir().trim_end_matches('/'), format!("{start}/{now}").trim_end_matches('/'));
    }
    assert!(set(&config, &[("dir", "x")]).is_err(), "that is not there");
}

#[test]
fn help_and_version() {
    let text = |args: &[&str]| match invoke(args, "").unwrap() {
        Invocation::Help(text) => text,
        other => panic!("expected help, got {other:?}"),
    };
    let overview = text(&["--help"]);
    for wanted in ["Usage: tenon [FILE]", "--port NUMBER", "[6379]", "--maxmemory BYTES|PERCENT%", "tenon --help all"] {
        assert!(overview.contains(wanted), "{wanted} is not in\n{overview}");
    }
    let all = text(&["--port", "1", "--help", "all"]);
    for setting in SETTINGS {
        assert!(all.contains(&format!("  --{} ", setting.name)), "{}", setting.name);
    }
    for line in overview.lines().chain(all.lines()) {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert!(text(&["-h", "hash-max-ziplist-value"]).contains("--hash-max-listpack-value BYTES"));
    assert_eq!(
        invoke(&["--help", "maxmem"], "").unwrap_err(),
        "command line: unknown setting '--maxmem'; did you mean '--maxmemory'?"
    );
    assert!(help(Some("--tcp-backlog")).unwrap().contains("only be given at the start"));
    for args in [&["--version"][..], &["-v"], &["--port", "1", "--version"]] {
        assert!(matches!(invoke(args, "").unwrap(), Invocation::Version));
    }
}

/// docs/configuration.md is what `docs` says. With TENON_BLESS=1, it is made so.
#[test]
fn docs_are_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    if std::env::var_os("TENON_BLESS").is_some_and(|value| value == "1") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, docs()).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == docs(), "docs/configuration.md is out of date: run this test with TENON_BLESS=1");
}
