//! `maxmemory` seen from several workers and over time. Memory is counted for the whole process, so the tests here take
//! turns.

mod host;

use host::{Client, Host, take};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tenon_engine::clients::Dialect;
use tenon_engine::ds::memory;
use tenon_frontend::Flow;

static TURNS: Mutex<()> = Mutex::new(());

/// Stores so many keys of about 50 bytes; gives the answers.
fn store(host: &mut Host, client: &mut Client, keys: std::ops::Range<u32>) -> String {
    let requests: String = keys.map(|key| format!("SET key:{key:09} {key:032}\r\n")).collect();
    host.says(client, &requests)
}

#[test]
fn no_worker_goes_on_when_another_has_used_memory_up() {
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    // Also where there is one core.
    let mut host = Host::with(&[("workers", "2")]);
    host.set("maxmemory-policy", "noeviction");
    let mut client = host.connect(Dialect::Resp);
    store(&mut host, &mut client, 0..1);
    let limit = memory::used() + (4 << 20);
    host.set("maxmemory", &limit.to_string());

    // Another worker sees room, and takes a share of it.
    let mut other = host.engine.worker(1);
    let mut out = tenon_wire::OutBuf::new();
    client.connection.on_bytes(&host.engine, &mut other, b"SET other 1\r\n", &mut out);
    assert_eq!(take(&mut out), b"+OK\r\n");

    let answers = store(&mut host, &mut client, 0..200_000);
    let stored = answers.matches("+OK").count();
    assert!(answers.ends_with("-OOM command not allowed when used memory > 'maxmemory'.\r\n"));
    assert_eq!(answers.matches("-OOM").count() + stored, 200_000);
    // What one command needs may go over the limit, a table that doubles its size for example, but not more.
    assert!(memory::used() <= limit + (64 << 10), "{} bytes over", memory::used() - limit);
    assert!(stored * 100 > 3 << 20, "only {stored} were stored");

    // After its next tick at the latest the other one sees that there is none left, even if it needs no more itself.
    host.engine.tick(&mut other);
    client.connection.on_bytes(&host.engine, &mut other, b"SET other 2\r\nGET other\r\n", &mut out);
    let expected = "-OOM command not allowed when used memory > 'maxmemory'.\r\n$1\r\n1\r\n";
    assert_eq!(String::from_utf8_lossy(&take(&mut out)), expected);
}

#[test]
fn ticks_evict_what_is_over_the_limit_until_it_is_kept() {
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut host = Host::new();
    let mut client = host.connect(Dialect::Resp);
    host.set("maxmemory-policy", "allkeys-lru");
    assert_eq!(store(&mut host, &mut client, 0..50_000).matches("+OK").count(), 50_000);
    let limit = memory::used() - (2 << 20);
    host.set("maxmemory", &limit.to_string());
    while memory::used() > limit {
        let evicted = host.worker.stats.all.evicted.get();
        let next = host.engine.tick(&mut host.worker);
        assert!(host.worker.stats.all.evicted.get() > evicted, "nothing was evicted");
        assert!(next == Duration::ZERO || memory::used() <= limit, "there is more to evict, but not before {next:?}");
    }
    assert!(host.worker.stats.all.evicted.get() < 50_000);
}

#[test]
fn what_a_command_takes_beyond_the_limit_is_evicted_at_once() {
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut host = Host::new();
    let mut client = host.connect(Dialect::Resp);
    store(&mut host, &mut client, 0..50_000);
    host.set("maxmemory-policy", "allkeys-random");
    let limit = memory::used() + (100 << 10);
    host.set("maxmemory", &limit.to_string());
    // One command, and no tick.
    let pairs: String = (0..5_000).map(|key| format!("$17\r\nanother:{key:09}\r\n$32\r\n{key:032}\r\n")).collect();
    assert_eq!(host.says(&mut client, &format!("*10001\r\n$4\r\nMSET\r\n{pairs}")), "+OK\r\n");
    let mut evicted = host.worker.stats.all.evicted.get();
    assert!(evicted > 0, "nothing was evicted");
    // What there was no time for goes with the next ones, though they only read.
    while memory::used() > limit {
        assert_eq!(host.says(&mut client, "EXISTS nosuch\r\n"), ":0\r\n");
        let before = std::mem::replace(&mut evicted, host.worker.stats.all.evicted.get());
        assert!(evicted > before, "{} bytes over", memory::used() - limit);
    }

    // Where nothing may be evicted, reads go on.
    host.set("maxmemory-policy", "volatile-lru");
    host.set("maxmemory", "1");
    for _ in 0..3 {
        assert_eq!(host.says(&mut client, "EXISTS nosuch\r\n"), ":0\r\n");
    }
    assert_eq!(host.worker.stats.all.evicted.get(), evicted);
}

#[test]
fn a_scan_leaves_what_is_asked_for_again_under_allkeys_tenon() {
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut host = Host::new();
    let mut client = host.connect(Dialect::Resp);
    host.set("maxmemory-policy", "allkeys-tenon");
    store(&mut host, &mut client, 0..10_000);
    let read: String = (0..2_000).map(|key| format!("GET key:{key:09}\r\n")).collect();
    for _ in 0..2 {
        host.engine.read_clock(&mut host.worker);
        assert_eq!(host.says(&mut client, &read).matches("$32").count(), 2_000);
    }
    let limit = memory::used();
    host.set("maxmemory", &limit.to_string());
    // Three times what there is room for, and nobody asks for any of it.
    for step in 0..30 {
        host.engine.read_clock(&mut host.worker);
        store(&mut host, &mut client, 10_000 + step * 1_000..11_000 + step * 1_000);
        assert!(memory::used() <= limit + (64 << 10), "{} bytes over", memory::used() - limit);
    }
    let left = host.says(&mut client, &read).matches("$32").count();
    assert!(left > 1_800, "{left} of 2,000 are left");

    // Idle times are told, frequencies are not.
    let idle = host.says(&mut client, "OBJECT IDLETIME key:000000001\r\nOBJECT FREQ key:000000001\r\n");
    assert!(idle.starts_with(':') && idle.contains("\r\n-ERR An LFU maxmemory policy is not selected"), "{idle}");
    assert_eq!(
        host.says(&mut client, "CONFIG GET maxmemory-policy\r\n"),
        "*2\r\n$16\r\nmaxmemory-policy\r\n$13\r\nallkeys-tenon\r\n"
    );
}

#[test]
fn databases_lose_by_what_they_have() {
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut host = Host::new();
    let mut client = host.connect(Dialect::Resp);
    host.set("maxmemory-policy", "allkeys-tenon");
    let begin = memory::used();
    // By turns, so that those of one are no older than those of the other.
    for turn in 0..40 {
        for (database, keys) in [(0, 200), (5, 100)] {
            assert_eq!(host.says(&mut client, &format!("SELECT {database}\r\n")), "+OK\r\n");
            store(&mut host, &mut client, turn * keys..(turn + 1) * keys);
        }
    }
    let limit = begin + (memory::used() - begin) * 3 / 4;
    host.set("maxmemory", &limit.to_string());
    // Each of these commands evicts for a bounded time.
    while memory::used() > limit {
        assert_eq!(host.says(&mut client, "EXISTS nosuch\r\n"), ":0\r\n");
    }
    let left = [0, 5].map(|database| {
        let said = host.says(&mut client, &format!("SELECT {database}\r\nDBSIZE\r\n"));
        said.trim_end().rsplit(':').next().and_then(|number| number.parse::<u32>().ok()).expect("a number")
    });
    assert!((5_000..7_500).contains(&left[0]) && (2_400..3_700).contains(&left[1]), "{left:?}");
}

#[test]
fn a_tenacious_write_evicts_until_the_limit_is_kept() {
    const OVER: usize = 8 << 20;
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut host = Host::new();
    let mut client = host.connect(Dialect::Resp);
    host.set("maxmemory-policy", "allkeys-random");
    let over_after_a_write = |host: &mut Host, client: &mut Client, tenacity: &str| {
        host.set("maxmemory", "0");
        host.says(client, "FLUSHALL SYNC\r\n");
        // So many keys are freed on another thread, and what that has left stands for what would have to go.
        while !host.says(client, "INFO memory\r\n").contains("lazyfree_pending_objects:0\r\n") {
            std::thread::yield_now();
        }
        store(host, client, 0..150_000);
        host.set("maxmemory-eviction-tenacity", tenacity);
        let limit = memory::used() - OVER;
        host.set("maxmemory", &limit.to_string());
        assert_eq!(store(host, client, 0..1), "+OK\r\n");
        memory::used().saturating_sub(limit)
    };
    // It takes 64 keys at least, whatever the time is.
    assert!(over_after_a_write(&mut host, &mut client, "0") > OVER / 2);
    // What the write itself stores may be over it.
    assert!(over_after_a_write(&mut host, &mut client, "100") < 64 << 10);
}

#[test]
fn one_key_of_few_can_be_evicted_wherever_it_is() {
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut host = Host::new();
    let mut client = host.connect(Dialect::Resp);
    host.set("maxmemory-policy", "allkeys-tenon");
    assert_eq!(host.says(&mut client, "SELECT 3\r\nSET only 1\r\nDBSIZE\r\n"), "+OK\r\n+OK\r\n:1\r\n");
    host.set("maxmemory", "1");
    assert_eq!(host.says(&mut client, "EXISTS nosuch\r\n"), ":0\r\n");
    assert_eq!(host.says(&mut client, "DBSIZE\r\n"), ":0\r\n");
    assert_eq!(host.worker.stats.all.evicted.get(), 1);
}

#[test]
fn what_the_server_took_at_its_start_may_be_left_out() {
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut host =
        Host::with(&[("maxmemory", "1mb"), ("maxmemory-policy", "noeviction"), ("maxmemory-counts-startup", "no")]);
    let mut client = host.connect(Dialect::Resp);
    let left_out = host.engine.uncounted_memory();
    assert!(left_out as u64 > host.engine.startup_memory);
    let info = host.says(&mut client, "INFO memory\r\n");
    assert!(info.contains(&format!("mem_not_counted_for_evict:{left_out}\r\n")), "{info}");
    let stored = store(&mut host, &mut client, 0..20_000).matches("+OK").count();
    assert!(stored > 4_000, "{stored}");
    assert!(memory::used() <= (1 << 20) + left_out + (64 << 10));
    host.set("maxmemory-counts-startup", "yes");
    assert_eq!(host.engine.uncounted_memory(), 0);
    assert_eq!(host.engine.memory_left(), 0);
}

#[test]
fn what_is_wasted_is_made_up_for_by_eviction_and_refuses_nothing() {
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut host = Host::new();
    let mut client = host.connect(Dialect::Resp);
    // Of each three keys one stays, so their memory stays too.
    store(&mut host, &mut client, 0..90_000);
    let gone: String = (0..90_000).filter(|key| key % 3 > 0).map(|key| format!("DEL key:{key:09}\r\n")).collect();
    assert_eq!(host.says(&mut client, &gone).matches(":1").count(), 60_000);
    let limit = 64 << 20;
    let mut long = 0;
    while memory::used() + (2 << 20) < limit {
        let requests: String = (long..long + 100).map(|key| format!("SETRANGE long:{key:09} 2000 x\r\n")).collect();
        assert_eq!(host.says(&mut client, &requests).matches(":2001").count(), 100);
        long += 100;
    }
    host.set("maxmemory", &limit.to_string());

    let mut next = 1_000_000;
    for policy in ["noeviction", "volatile-lru"] {
        host.set("maxmemory-policy", policy);
        host.engine.tick(&mut host.worker);
        let wasted = host.engine.wasted_memory();
        assert!(wasted > limit / 32 + (1 << 20), "only {wasted} bytes are wasted");
        assert_eq!(host.engine.waste_counted() > 0, policy != "noeviction");
        let mut refused = 0;
        while refused == 0 {
            refused = store(&mut host, &mut client, next..next + 500).matches("-OOM").count();
            next += 500;
        }
        assert!(memory::used() + (8 << 10) > limit, "{policy}: refused with {} bytes left", limit - memory::used());
        let gone: String = (long - 100..long).map(|key| format!("DEL long:{key:09}\r\n")).collect();
        assert_eq!(host.says(&mut client, &gone).matches(":1").count(), 100);
        long -= 100;
    }

    host.set("maxmemory-policy", "allkeys-random");
    host.engine.tick(&mut host.worker);
    let (wasted, counted) = (host.engine.wasted_memory(), host.engine.waste_counted());
    let info = host.says(&mut client, "INFO memory\r\n");
    assert!(info.contains(&format!("mem_wasted:{wasted}\r\nmem_wasted_counted_for_evict:{counted}\r\n")), "{info}");
    assert!(counted > 0 && counted <= limit / 32, "{counted}");
    store(&mut host, &mut client, next..next + 40_000);
    assert!(memory::used() <= limit - counted + (64 << 10), "{} are used", memory::used());
}

#[test]
fn what_was_not_sent_yet_takes_no_memory() {
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut host = Host::new();
    let before = memory::used();
    let mut clients: Vec<_> = (0..100).map(|_| host.memcached()).collect();
    for client in &mut clients {
        host.send(client, b"set k 0 0 536870912\r\n");
        host.send(client, b"a few bytes");
    }
    assert!(memory::used() < before + (8 << 20));
    assert!(clients.iter().all(|client| matches!(client.flow, Flow::Continue | Flow::Fill) && client.out.is_empty()));
}
