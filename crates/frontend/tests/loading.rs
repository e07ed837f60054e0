//! Data that is being loaded: what clients of both front ends are told meanwhile, and what is there afterwards.

mod host;

use host::{Client, Host, take};
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use tenon_engine::clients::Dialect;
use tenon_engine::loading::{Hands, LoadError, LoadReport, OnDuplicate, Past, RdbOptions};
use tenon_wire::rdb::{Compression, Writer, crc64};

/// In the year 2100, in milliseconds.
const FAR_MS: u64 = 4_102_444_800_123;

/// A file on its way.
struct File(Vec<u8>);

impl File {
    fn begin() -> File {
        File(b"REDIS0010".to_vec())
    }

    fn raw(&mut self, bytes: &[u8]) -> &mut File {
        self.0.extend_from_slice(bytes);
        self
    }

    fn string(&mut self, text: &[u8]) -> &mut File {
        Writer::new(&mut self.0, Compression::On).string(text);
        self
    }

    fn text(&mut self, key: &str, value: &str) -> &mut File {
        self.raw(&[0]).string(key.as_bytes()).string(value.as_bytes())
    }

    fn expires(&mut self, ms: u64) -> &mut File {
        self.raw(&[0xFC]).raw(&ms.to_le_bytes())
    }

    fn end(&mut self) -> Vec<u8> {
        self.0.push(0xFF);
        let checksum = crc64(0, &self.0);
        self.raw(&checksum.to_le_bytes());
        std::mem::take(&mut self.0)
    }
}

const OPTIONS: RdbOptions =
    RdbOptions { total_bytes: None, past: Past::Drop, on_duplicate: OnDuplicate::Refuse, hands: Hands::Own };

fn load(host: &Host, bytes: impl Read, options: &RdbOptions) -> Result<LoadReport, LoadError> {
    let mut worker = host.engine.worker(host.engine.workers());
    let loading = host.engine.begin_loading(0);
    let loaded = host.engine.load_rdb(&loading, &mut worker, bytes, options, &mut |_| ControlFlow::Continue(()));
    loaded.map(|(report, _)| report)
}

fn resp(host: &mut Host) -> Client {
    host.connect(Dialect::Resp)
}

#[test]
fn commands_that_need_data_are_refused_while_it_is_loaded() {
    const REFUSED: &str = "-LOADING Redis is loading the dataset in memory\r\n";
    let mut host = Host::with(&[("enable-debug-command", "yes")]);
    let mut client = resp(&mut host);
    assert_eq!(host.says(&mut client, "SET k v\r\n"), "+OK\r\n");
    let engine = std::sync::Arc::clone(&host.engine);
    let loading = engine.begin_loading(1_000);
    for line in ["GET k", "SET k w", "DEL k", "MGET k", "DBSIZE", "KEYS *", "FLUSHALL", "EVAL 'return 1' 0", "SCAN 0"] {
        assert_eq!(host.says(&mut client, &format!("{line}\r\n")), REFUSED, "{line}");
    }
    for (line, answer) in [
        ("SELECT 1", "+OK\r\n"),
        ("SELECT 0", "+OK\r\n"),
        ("CLIENT SETNAME me", "+OK\r\n"),
        ("PUBLISH c m", ":0\r\n"),
        ("CONFIG SET maxmemory-policy allkeys-lru", "+OK\r\n"),
        ("MULTI", "+OK\r\n"),
        ("GET k", REFUSED),
        ("EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n"),
        ("NOSUCH", "-ERR unknown command 'NOSUCH', with args beginning with: \r\n"),
        ("GET", "-ERR wrong number of arguments for 'get' command\r\n"),
    ] {
        assert_eq!(host.says(&mut client, &format!("{line}\r\n")), answer, "{line}");
    }
    // Beside each other they would empty what the other one fills.
    for line in ["DEBUG RELOAD", "DEBUG RELOAD NOSAVE", "DEBUG LOADAOF"] {
        assert_eq!(host.says(&mut client, &format!("{line}\r\n")), REFUSED, "{line}");
    }
    assert!(engine.try_begin_loading(1).is_none());
    let info = host.says(&mut client, "INFO persistence\r\n");
    assert!(info.contains("\nloading:1\r\n") && info.contains("\nasync_loading:0\r\n"), "{info}");
    for field in
        ["start_time:", "total_bytes:1000", "rdb_used_mem:0", "loaded_bytes:0", "loaded_perc:0.00", "eta_seconds:1"]
    {
        assert!(info.contains(&format!("\nloading_{field}")), "{field}: {info}");
    }
    drop(loading);
    assert_eq!(host.says(&mut client, "GET k\r\n"), "$1\r\nv\r\n");
    let info = host.says(&mut client, "INFO persistence\r\n");
    assert!(info.contains("\nloading:0\r\n") && !info.contains("loading_"), "{info}");
}

#[test]
fn clients_of_memcached_are_told_so_too() {
    const REFUSED: &str = "SERVER_ERROR loading the dataset in memory\r\n";
    let mut host = Host::new();
    let mut client = host.memcached();
    assert_eq!(host.says(&mut client, "set k 5 0 1\r\nv\r\n"), "STORED\r\n");
    let engine = std::sync::Arc::clone(&host.engine);
    let loading = engine.begin_loading(0);
    for (request, answer) in [
        ("get k\r\n", REFUSED),
        ("get k a b c\r\n", REFUSED),
        ("gat 10 k\r\n", REFUSED),
        ("set k 0 0 1\r\nw\r\n", REFUSED),
        ("set k 0 0 1 noreply\r\nw\r\nmn\r\n", "MN\r\n"),
        (
            "incr k 1\r\ntouch k 5\r\ndelete k\r\n",
            "SERVER_ERROR loading the dataset in memory\r\nSERVER_ERROR loading the dataset in memory\r\nSERVER_ERROR loading the dataset in memory\r\n",
        ),
        ("mg k v\r\nmn\r\n", "SERVER_ERROR loading the dataset in memory\r\nMN\r\n"),
        ("ms k 1\r\nx\r\n", REFUSED),
        ("flush_all\r\n", REFUSED),
        ("lru_crawler metadump all\r\n", REFUSED),
        ("verbosity 1\r\n", "OK\r\n"),
    ] {
        assert_eq!(host.says(&mut client, request), answer, "{request}");
    }
    // A value that is too long is refused as ever, and takes nothing away.
    let too_long = format!("set k 0 0 {}\r\n", 600 << 20);
    assert_eq!(host.says(&mut client, &too_long), REFUSED);
    let mut binary = host.memcached();
    let get = b"\x80\x00\x00\x01\0\0\0\0\0\0\0\x01\0\0\0\x07\0\0\0\0\0\0\0\0k";
    let noop = b"\x80\x0A\0\0\0\0\0\0\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0\0";
    host.send(&mut binary, &[&get[..], noop].concat());
    let answer = take(&mut binary.out);
    assert_eq!(
        (&answer[..2], &answer[6..8], &answer[12..16]),
        (&b"\x81\x00"[..], &b"\x00\x86"[..], &b"\0\0\0\x07"[..])
    );
    assert!(answer.windows(4).any(|window| window == b"\0\0\0\x08"), "the noop is answered");
    drop(loading);
    let mut after = host.memcached();
    assert_eq!(host.says(&mut after, "get k\r\n"), "VALUE k 5 1\r\nv\r\nEND\r\n");
}

#[test]
fn what_a_file_has_is_there_afterwards() {
    let mut host = Host::new();
    host.set("maxmemory-policy", "allkeys-lfu");
    let mut file = File::begin();
    file.raw(b"\xF5").string(b"#!lua name=lib\nredis.register_function('one', function() return 1 end)");
    file.raw(b"\xFE\x00").text("plain", "value").text("number", "12").expires(FAR_MS).text("later", "v");
    file.expires(1).text("past", "v").raw(b"\xF9\x64").text("busy", "v").text("flags", "v");
    file.raw(b"\xFA").string(b"tenon-client-flags").string(b"77");
    file.raw(b"\xFE\x05\x02").string(b"set").raw(b"\x02\x01a\x01b");
    let due = [&b"\x01\x01a"[..], &FAR_MS.to_le_bytes()].concat();
    file.raw(b"\xFA").string(b"tenon-member-deadlines").string(&due);
    // A list without elements, as bugs of old versions have left them.
    file.raw(b"\x01").string(b"empty").raw(b"\x00");
    let bytes = file.end();
    let report = load(&host, &bytes[..], &OPTIONS).unwrap();
    let LoadReport { keys, expired, empty, libraries, is_checked, bytes: len, .. } = report;
    assert_eq!((keys, expired, empty, libraries, is_checked, len), (6, 1, 1, 1, true, bytes.len() as u64));

    let mut client = resp(&mut host);
    assert_eq!(
        host.says(&mut client, "MGET plain number later past\r\n"),
        "*4\r\n$5\r\nvalue\r\n$2\r\n12\r\n$1\r\nv\r\n$-1\r\n"
    );
    assert_eq!(host.says(&mut client, "PEXPIRETIME later\r\n"), format!(":{FAR_MS}\r\n"));
    assert_eq!(host.says(&mut client, "OBJECT FREQ busy\r\n"), ":100\r\n");
    assert_eq!(host.says(&mut client, "FCALL one 0\r\n"), ":1\r\n");
    assert_eq!(host.says(&mut client, "SELECT 5\r\nDBSIZE\r\nTYPE empty\r\n"), "+OK\r\n:1\r\n+none\r\n");
    assert_eq!(
        host.says(&mut client, "SEXPIRETIME set MEMBERS 2 a b\r\n"),
        format!("*2\r\n:{}\r\n:-1\r\n", FAR_MS.div_ceil(1_000))
    );
    let info = host.says(&mut client, "INFO persistence\r\n");
    assert!(info.contains("\nrdb_last_load_keys_expired:1\r\n") && info.contains("\nrdb_last_load_keys_loaded:6\r\n"));
    assert!(info.contains("\nrdb_changes_since_last_save:0\r\n"), "{info}");
    let mut memcached = host.memcached();
    assert_eq!(host.says(&mut memcached, "get flags\r\n"), "VALUE flags 77 1\r\nv\r\nEND\r\n");
}

#[test]
fn keys_of_a_log_s_base_are_kept_until_the_log_says_more() {
    let mut host = Host::new();
    let bytes = File::begin().expires(1).text("past", "v").end();
    let report = load(&host, &bytes[..], &RdbOptions { past: Past::Keep, ..OPTIONS }).unwrap();
    assert_eq!((report.keys, report.expired), (1, 0));
    // Now it is as any key past its deadline.
    let mut client = resp(&mut host);
    assert_eq!(host.says(&mut client, "GET past\r\n"), "$-1\r\n");
}

#[test]
fn nothing_goes_while_data_is_loaded() {
    let mut host = Host::new();
    let engine = std::sync::Arc::clone(&host.engine);
    let loading = engine.begin_loading(0);
    let mut worker = engine.worker(engine.workers());
    let bytes = File::begin().expires(1).text("past", "v").end();
    let options = RdbOptions { past: Past::Keep, ..OPTIONS };
    engine.load_rdb(&loading, &mut worker, &bytes[..], &options, &mut |_| ControlFlow::Continue(())).unwrap();
    let keys = || {
        (0..engine.shards.count())
            .map(|index| engine.shards.lock(index).shard.database(0).map_or(0, |it| it.len()))
            .sum::<usize>()
    };
    host.pass(1_000);
    engine.tick(&mut host.worker);
    assert_eq!(keys(), 1);
    drop(loading);
    for _ in 0..3 {
        engine.tick(&mut host.worker);
    }
    assert_eq!(keys(), 0);
}

#[test]
fn a_key_that_is_there_twice_is_refused_or_replaced() {
    let mut host = Host::new();
    let bytes = File::begin().text("k", "first").text("other", "v").text("k", "second").end();
    let error = load(&host, &bytes[..], &OPTIONS).unwrap_err();
    assert!(error.to_string().ends_with("key 'k' of database 0: the key is there twice"), "{error}");
    load(&host, &bytes[..], &RdbOptions { on_duplicate: OnDuplicate::Replace, ..OPTIONS }).unwrap();
    let mut client = resp(&mut host);
    assert_eq!(host.says(&mut client, "GET k\r\nDBSIZE\r\n"), "$6\r\nsecond\r\n:2\r\n");
}

#[test]
fn what_is_wrong_is_told_and_loading_ends() {
    let mut host = Host::new();
    let mut bytes = File::begin().text("k", "v").raw(b"\x0B").string(b"bad").string(b"xyz").text("l", "v").end();
    let error = load(&host, &bytes[..], &OPTIONS).unwrap_err();
    assert!(error.to_string().contains("key 'bad' of database 0: a set of integers"), "{error}");
    // The end is looked at before anybody asks for the keys, but those that came before it are there.
    let last = bytes.len() - 1;
    bytes.truncate(last);
    assert!(load(&host, &bytes[..], &RdbOptions { on_duplicate: OnDuplicate::Replace, ..OPTIONS }).is_err());
    let bytes = File::begin().raw(b"\xF5").string(b"#!lua name=lib\nthis is no Lua").end();
    let error = load(&host, &bytes[..], &OPTIONS).unwrap_err();
    assert!(error.to_string().contains("a function library cannot be loaded"), "{error}");
    assert!(!host.engine.is_loading());
    let mut client = resp(&mut host);
    assert_eq!(host.says(&mut client, "PING\r\n"), "+PONG\r\n");

    let worker = &mut host.engine.worker(host.engine.workers());
    let loading = host.engine.begin_loading(0);
    let endless = File::begin().0;
    let source = io::Cursor::new(endless).chain(io::repeat(0xF9));
    let stopped = host.engine.load_rdb(&loading, worker, source, &OPTIONS, &mut |_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(LoadError::Cancelled)));
}

#[test]
fn workers_take_part_when_they_tick() {
    const KEYS: u32 = 30_000;
    let mut host = Host::new();
    let mut file = File::begin();
    for key in 0..KEYS {
        file.text(&format!("key:{key:09}"), &format!("{key:032}"));
    }
    let bytes = file.end();
    let is_done = AtomicBool::new(false);
    let engine = std::sync::Arc::clone(&host.engine);
    let report = std::thread::scope(|scope| {
        let ticking = scope.spawn(|| {
            let mut worker = engine.worker(0);
            while !is_done.load(Ordering::Acquire) {
                engine.tick(&mut worker);
            }
        });
        // Else the other one would tick on for ever.
        let report = catch_unwind(AssertUnwindSafe(|| {
            load(&host, &bytes[..], &RdbOptions { hands: Hands::Workers, ..OPTIONS })
        }));
        is_done.store(true, Ordering::Release);
        ticking.join().expect("a tick does not panic");
        report.expect("loading does not panic")
    });
    assert_eq!(report.unwrap().keys, KEYS.into());
    let mut client = resp(&mut host);
    assert_eq!(host.says(&mut client, "DBSIZE\r\n"), format!(":{KEYS}\r\n"));
    for key in (0..KEYS).step_by(997) {
        assert_eq!(host.says(&mut client, &format!("GET key:{key:09}\r\n")), format!("$32\r\n{key:032}\r\n"));
    }
    // Without anybody who ticks it comes to an end as well.
    assert_eq!(host.says(&mut client, "FLUSHALL\r\n"), "+OK\r\n");
    let report = load(&host, &bytes[..], &RdbOptions { hands: Hands::Workers, ..OPTIONS });
    assert_eq!(report.unwrap().keys, KEYS.into());
}

#[test]
fn debug_reload_loads_the_file_once_more() {
    let directory = std::env::temp_dir();
    let name = format!("tenon-reload-{}.rdb", std::process::id());
    let path = directory.join(&name);
    let directory = directory.to_str().expect("a path in UTF-8");
    let mut host = Host::with(&[("enable-debug-command", "yes"), ("dir", directory), ("dbfilename", &name)]);
    let mut client = resp(&mut host);
    const FAILED: &str = "-ERR Error trying to load the RDB dump, check server logs\r\n";
    assert_eq!(host.says(&mut client, "SET k before\r\n"), "+OK\r\n");
    // A file that is not there changes nothing.
    assert_eq!(host.says(&mut client, "DEBUG RELOAD NOSAVE\r\nGET k\r\n"), format!("{FAILED}$6\r\nbefore\r\n"));
    let bytes = File::begin().text("k", "file").text("l", "v").end();
    std::fs::write(&path, bytes).expect("written");
    assert_eq!(host.says(&mut client, "DEBUG RELOAD NOSAVE\r\nGET k\r\nDBSIZE\r\n"), "+OK\r\n$4\r\nfile\r\n:2\r\n");
    assert_eq!(host.says(&mut client, "MSET k mine m v\r\n"), "+OK\r\n");
    assert_eq!(host.says(&mut client, "DEBUG RELOAD NOFLUSH NOSAVE\r\n"), FAILED);
    assert_eq!(host.says(&mut client, "GET k\r\n"), "$4\r\nmine\r\n");
    assert_eq!(
        host.says(&mut client, "DEBUG RELOAD NOFLUSH NOSAVE MERGE\r\nMGET k l m\r\n"),
        "+OK\r\n*3\r\n$4\r\nfile\r\n$1\r\nv\r\n$1\r\nv\r\n"
    );
    assert_eq!(host.says(&mut client, "DEBUG RELOAD NOSAVE\r\nDBSIZE\r\n"), "+OK\r\n:2\r\n");
    assert_eq!(
        host.says(&mut client, "MULTI\r\nDEBUG RELOAD NOSAVE\r\nEXEC\r\n"),
        "+OK\r\n+QUEUED\r\n*1\r\n-ERR DEBUG RELOAD is not allowed within a transaction or a script\r\n"
    );
    let _ = std::fs::remove_file(&path);
}
