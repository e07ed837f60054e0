//! What the log says of each kind of write, as a table: a command, and the record that it is in the log. Knows no file.

use std::sync::Arc;
use std::time::Duration;
use tenon_engine::Engine;
use tenon_engine::batch::Call;
use tenon_engine::clients::{ClientInfo, ConnectionKey, Dialect};
use tenon_engine::config::{Loader, Machine, Origin};
use tenon_engine::execute::BatchArgs;
use tenon_engine::session::Session;
use tenon_engine::wire::{ArgSpans, OutBuf, Span};
use tenon_engine::worker::Worker;
use tenon_testkit::in_process::InProcess;
use tenon_testkit::journal::{self, Records, keep_records};
use tenon_testkit::target::{Demand, Dialect as Protocol, Link, Received, Target};

/// The present in all of these tests, in milliseconds since the UNIX epoch.
const NOW_MS: u64 = 2_000_000_000_000;

struct Server {
    engine: Engine,
    worker: Worker,
    session: Session,
    records: Arc<Records>,
    now_ms: u64,
}

fn engine() -> Engine {
    let mut loader = Loader::new(Machine::detect());
    for (name, value) in [("workers", "1"), ("shards", "16"), ("enable-debug-command", "yes")] {
        loader.apply(name, &[value.to_owned()], &Origin::CommandLine).expect("the setting is right");
    }
    Engine::new(loader.finish().expect("they agree"), tenon_commands::ALL, 7)
}

fn client(dialect: Dialect) -> ClientInfo {
    let key = ConnectionKey { worker: 0, index: 0, generation: 0 };
    let (remote, local) = ("127.0.0.1:40000".to_owned(), "127.0.0.1:6379".to_owned());
    ClientInfo { key, dialect, remote, local, fd: 8, unix: false }
}

impl Server {
    fn new() -> Server {
        let engine = engine();
        let worker = engine.worker(0);
        let session = engine.open_session(engine.clients.add(client(Dialect::Resp), NOW_MS));
        let records = keep_records(&engine);
        Server { engine, worker, session, records, now_ms: NOW_MS }
    }

    /// Has another client run a command that waits; gives its session.
    fn another_waits(&mut self, command: &str) -> Session {
        let other = self.engine.open_session(self.engine.clients.add(client(Dialect::Resp), NOW_MS));
        let first = std::mem::replace(&mut self.session, other);
        assert_eq!(self.run(command), "");
        std::mem::replace(&mut self.session, first)
    }

    /// Runs a command, its words separated by blanks; gives the records, one a line.
    fn run(&mut self, command: &str) -> String {
        let mut args = ArgSpans::default();
        let mut input = Vec::new();
        for word in command.split(' ') {
            let word = if word == "\"\"" { "" } else { word };
            args.spans.push(Span::bytes(input.len(), word.len()));
            input.extend_from_slice(word.as_bytes());
        }
        let count = args.spans.len();
        let batch = BatchArgs { input: &input, input_from: 0, spans: &args, bigs: &[] };
        let target = self.engine.resolve(&batch.of(0, count));
        let mut calls = [Call::new(target, count, input.len())];
        self.worker.clock.now_ms = self.now_ms;
        let mut out = OutBuf::new();
        self.engine.run_batch(&mut self.worker, &mut self.session, batch, &mut calls, &mut out);
        let reply = String::from_utf8_lossy(out.tail()).into_owned();
        assert!(!reply.starts_with('-'), "{command}: {reply}");
        self.text()
    }

    fn text(&self) -> String {
        self.records.take().iter().map(|record| journal::text(record)).collect::<Vec<_>>().join("\n")
    }

    fn expire(&mut self, later_ms: u64) -> String {
        self.now_ms += later_ms;
        self.worker.clock.now_ms = self.now_ms;
        for _ in 0..100 {
            self.engine.expire_tick(&mut self.worker);
            self.worker.clock.now_ms += 1;
        }
        self.text()
    }
}

/// Each line is a command and, behind an arrow, its record; `-`: none.
fn check(table: &str) {
    let mut server = Server::new();
    let mut wrong = Vec::new();
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")) {
        let (command, expected) = line.split_once(" => ").unwrap_or((line, "="));
        let command = command.trim();
        let record = server.run(command);
        let record = if record.is_empty() { "-".to_owned() } else { record };
        let expected = if expected.trim() == "=" { command } else { expected.trim() };
        if record != expected {
            wrong.push(format!("{command}\n    is logged as {record}\n    and not as   {expected}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn strings() {
    check(
        "
        SET k v
        GET k => -
        SET k v NX => -
        SET k w XX GET => SET k w
        SET k v EX 10 => SET k v PXAT 2000000010000
        SET k w KEEPTTL => SET k w PXAT 2000000010000
        SET k v PXAT 2000000000001 => SET k v PXAT 2000000000001
        SET k v EXAT 1 => DEL k
        SET gone v EXAT 1 => -
        SETEX k 10 v => SET k v PXAT 2000000010000
        PSETEX k 10 v => SET k v PXAT 2000000000010
        SETNX k v => -
        SETNX new v
        GETSET k w
        SET k w IFEQ x => -
        SET k x IFEQ w => SET k x
        GETEX k => -
        GETEX k EX 100 => PEXPIREAT k 2000000100000
        GETEX k PERSIST => PERSIST k
        GETEX k PERSIST => -
        GETEX k EXAT 1 => DEL k
        SET k v
        GETDEL k => DEL k
        GETDEL k => -
        MSET a 1 b 2
        MSETNX a 1 c 2 => -
        MSETNX c 1 d 2
        MSETEX 2 a x b y PX 5 => MULTI, SET a x PXAT 2000000000005, SET b y PXAT 2000000000005, EXEC
        MSETEX 1 a x NX => -
        MSETEX 1 c x => SET c x
        APPEND k v
        SETRANGE k 3 w
        SETRANGE k 3 \"\" => -
        SET n 1
        INCR n
        DECRBY n 5
        INCRBYFLOAT n 0.5 => SET n -2.5
        PEXPIRE n 1000 => PEXPIREAT n 2000000001000
        INCRBYFLOAT n 1 => SET n -1.5 PXAT 2000000001000
        INCREX i BYINT 3 EX 10 => SET i 3 PXAT 2000000010000
        INCREX i UBOUND 3 => -
        DELEX i IFEQ 4 => -
        DELEX i IFEQ 3 => DEL i
        SET i 3
        DELIFEQ i 4 => -
        DELIFEQ i 3 => DEL i
        SETBIT bits 7 1
        BITFIELD bits INCRBY u8 0 1
        BITFIELD bits GET u8 0 => -
        BITOP NOT other bits
        PFADD h a b
        PFADD h a b => -
        PFCOUNT h
        PFCOUNT h => -
        PFMERGE h2 h
        ",
    );
}

#[test]
fn keys() {
    check(
        "
        SET k v
        EXPIRE k 10 => PEXPIREAT k 2000000010000
        EXPIRE k 20 NX => -
        PEXPIREAT k 2000000000009 LT => PEXPIREAT k 2000000000009
        EXPIREAT k 2000000001 => PEXPIREAT k 2000000001000
        PERSIST k
        PERSIST k => -
        COPY k l
        COPY k l => -
        RENAME k m
        RENAMENX l m => -
        MOVE l 3
        EXPIRE m -1 => DEL m
        DEL m => -
        SET a 1
        DEL a b
        SET a 1
        UNLINK a
        FLUSHDB => -
        SET a 1
        FLUSHDB ASYNC => FLUSHDB
        SET a 1
        SWAPDB 0 3 => SWAPDB 0 3
        SWAPDB 5 6 => -
        FLUSHALL
        RPUSH l 3 1 2
        SORT l => -
        SORT l STORE s
        SELECT 3 => -
        SET k v => MULTI, SELECT 3, SET k v, SELECT 0, EXEC
        FLUSHDB => MULTI, SELECT 3, FLUSHDB, SELECT 0, EXEC
        ",
    );
}

#[test]
fn collections() {
    check(
        "
        RPUSH l a b c d e f g h i j
        LPUSHX none a => -
        LPOP l
        RPOP l 2
        LMPOP 2 none l LEFT COUNT 2 => LPOP l 2
        BLPOP none l 0 => LPOP l
        BRPOP l 0 => RPOP l
        BLMPOP 0 1 l RIGHT => RPOP l 1
        LMOVE l m LEFT RIGHT
        BLMOVE l m LEFT RIGHT 0 => LMOVE l m LEFT RIGHT
        BRPOPLPUSH m l 0 => LMOVE m l RIGHT LEFT
        RPUSH l y z
        LTRIM l 0 0
        LTRIM l 0 0 => -
        LREM l 0 nothing => -
        SADD s a
        SPOP s => SREM s a
        SADD s a b
        SPOP s 5 => DEL s
        SPOP s => -
        SADD s a b
        SMOVE s t a
        SUNIONSTORE u s t
        ZADD z 1 a 2 b 3 c
        ZADD z 1 a => -
        ZINCRBY z 0.5 a
        ZPOPMIN z
        ZMPOP 1 z MAX => ZPOPMAX z 1
        BZPOPMIN z 0 => ZPOPMIN z
        GEOADD g 1 2 x
        GEOSEARCHSTORE h g FROMMEMBER x BYRADIUS 1 km
        ",
    );
}

#[test]
fn members_with_deadlines() {
    check(
        "
        HSET h f 1 g 2 i 3
        HEXPIRE h 10 FIELDS 2 f none => HPEXPIREAT h 2000000010000 FIELDS 1 f
        HPEXPIREAT h 2000000010000 GT FIELDS 1 f => -
        HINCRBYFLOAT h f 0.5 => MULTI, HSET h f 1.5, HPEXPIREAT h 2000000010000 FIELDS 1 f, EXEC
        HINCRBYFLOAT h g 0.5 => HSET h g 2.5
        HPERSIST h FIELDS 1 f
        HGETEX h EX 1 FIELDS 1 f => HPEXPIREAT h 2000000001000 FIELDS 1 f
        HGETEX h PERSIST FIELDS 1 f => HPERSIST h FIELDS 1 f
        HGETEX h EXAT 1 FIELDS 1 f => HDEL h f
        HGETDEL h FIELDS 2 g none => HDEL h g none
        HSETEX h EX 1 FIELDS 1 a 1 => MULTI, HSET h a 1, HPEXPIREAT h 2000000001000 FIELDS 1 a, EXEC
        HSETEX h KEEPTTL FIELDS 2 a 2 b 3 => MULTI, HSET h a 2 b 3, HPEXPIREAT h 2000000001000 FIELDS 1 a, EXEC
        HSETEX h FIELDS 1 a 3 => HSET h a 3
        HSETEX h FNX FIELDS 1 a 3 => -
        HSETEX h NX FIELDS 1 c 3 => -
        HSETEX none XX FIELDS 1 c 3 => -
        HSETEX h EXAT 1 FIELDS 1 a 3 => HDEL h a
        HPEXPIRE h 0 FIELDS 2 i b => HDEL h i b
        SADD s a b
        SEXPIRE s 10 MEMBERS 1 a => SPEXPIREAT s 2000000010000 MEMBERS 1 a
        SPEXPIREAT s 1 MEMBERS 1 a => SREM s a
        ZADD z 1 a
        ZEXPIREAT z 2000000001 MEMBERS 1 a => ZPEXPIREAT z 2000000001000 MEMBERS 1 a
        ",
    );
}

#[test]
fn streams() {
    check(
        "
        XADD s * f v => XADD s 2000000000000-0 f v
        XADD s * f v => XADD s 2000000000000-1 f v
        XADD none NOMKSTREAM * f v => -
        XADD s MAXLEN ~ 5 * f v => XADD s 2000000000000-2 f v
        XADD s MAXLEN 2 * f v => XADD s MAXLEN = 2 2000000000000-3 f v
        XTRIM s MINID 2000000000000-3 => XTRIM s MAXLEN = 1
        XTRIM s MAXLEN 1 => -
        XADD x IDMP p i * f v => MULTI, XADD x 2000000000000-0 f v, XCFGSET x IDMP-DURATION 100 IDMP-MAXSIZE 100, XIDMPRECORD x p i 2000000000000-0, EXEC
        XADD x IDMP p i * f v => XADD x IDMP p i * f v
        XADD x NOMKSTREAM IDMPAUTO p MAXLEN ~ 5 * f v => XADD x IDMPAUTO p 2000000000000-1 f v
        XADD x IDMPAUTO p MAXLEN 1 * g v => XADD x IDMPAUTO p MAXLEN = 1 2000000000000-2 g v
        XADD x IDMPAUTO p MAXLEN 1 * g v => XADD x IDMPAUTO p MAXLEN 1 * g v
        XADD none NOMKSTREAM IDMP p i * f v => -
        XCFGSET x IDMP-DURATION 100 => -
        XCFGSET x IDMP-DURATION 200 => XCFGSET x IDMP-DURATION 200
        XIDMPRECORD x p j 2000000000000-2 => XIDMPRECORD x p j 2000000000000-2
        XIDMPRECORD x p j 2000000000000-2 => -
        XADD first 1-1 f v => XADD first 1-1 f v
        XADD first IDMP p i * f v => MULTI, XADD first 2000000000000-0 f v, XCFGSET first IDMP-DURATION 100 IDMP-MAXSIZE 100, XIDMPRECORD first p i 2000000000000-0, EXEC
        XADD first IDMP p j * f v => XADD first IDMP p j 2000000000000-1 f v
        XADD told 1-1 f v => XADD told 1-1 f v
        XIDMPRECORD told p i 1-1 => MULTI, XCFGSET told IDMP-DURATION 100 IDMP-MAXSIZE 100, XIDMPRECORD told p i 1-1, EXEC
        CONFIG SET stream-idmp-maxsize 5 => -
        XADD y IDMP p i * f v => MULTI, XADD y 2000000000000-0 f v, XCFGSET y IDMP-DURATION 100 IDMP-MAXSIZE 5, XIDMPRECORD y p i 2000000000000-0, EXEC
        XADD w * f v => MULTI, XADD w 2000000000000-0 f v, XCFGSET w IDMP-DURATION 100 IDMP-MAXSIZE 5, EXEC
        XGROUP CREATE v g $ MKSTREAM => MULTI, XGROUP CREATE v g $ MKSTREAM, XCFGSET v IDMP-DURATION 100 IDMP-MAXSIZE 5, EXEC
        XGROUP CREATE v h $ MKSTREAM
        CONFIG SET stream-idmp-maxsize 100 => -
        XGROUP CREATE s g 0
        XREADGROUP GROUP g c STREAMS s > => MULTI, XGROUP CREATECONSUMER s g c, XCLAIM s g c 0 2000000000000-3 TIME 2000000000000 RETRYCOUNT 1 FORCE JUSTID LASTID 2000000000000-3, XGROUP SETID s g 2000000000000-3 ENTRIESREAD 4, EXEC
        XREADGROUP GROUP g c STREAMS s > => -
        XREADGROUP GROUP g c STREAMS s 0 => XCLAIM s g c 0 2000000000000-3 TIME 2000000000000 RETRYCOUNT 2 FORCE JUSTID LASTID 2000000000000-3
        XCLAIM s g d 0 2000000000000-3 => MULTI, XGROUP CREATECONSUMER s g d, XCLAIM s g d 0 2000000000000-3 TIME 2000000000000 RETRYCOUNT 3 FORCE JUSTID LASTID 2000000000000-3, EXEC
        XAUTOCLAIM s g c 0 0 JUSTID => XCLAIM s g c 0 2000000000000-3 TIME 2000000000000 RETRYCOUNT 3 FORCE JUSTID LASTID 2000000000000-3
        XDEL s 2000000000000-3
        XAUTOCLAIM s g c 0 0 => XACK s g 2000000000000-3
        XADD s 3000000000000-* f v => XADD s 3000000000000-0 f v
        XREADGROUP GROUP g c NOACK STREAMS s > => XGROUP SETID s g 3000000000000-0 ENTRIESREAD 5
        XACK s g 1-1 => -
        XGROUP DELCONSUMER s g d
        XGROUP SETID s g 0
        XGROUP SETID s g 0 ENTRIESREAD 100 => XGROUP SETID s g 0 ENTRIESREAD 5
        XGROUP SETID s g 0 ENTRIESREAD 5
        XGROUP DESTROY s g
        XGROUP CREATE s i 0 ENTRIESREAD 100 => XGROUP CREATE s i 0 ENTRIESREAD 5
        XSETID s 4000000000000-0
        XGROUP CREATE s h 0
        XADD s 4000000000000-1 f v
        XREADGROUP GROUP h c STREAMS s > => MULTI, XGROUP CREATECONSUMER s h c, XCLAIM s h c 0 3000000000000-0 4000000000000-1 TIME 2000000000000 RETRYCOUNT 1 FORCE JUSTID LASTID 4000000000000-1, XGROUP SETID s h 4000000000000-1 ENTRIESREAD 6, EXEC
        XDEL s 4000000000000-1
        XDELEX s IDS 1 4000000000000-1 => -
        XDELEX s DELREF IDS 1 1-1 => -
        XDELEX s DELREF IDS 1 4000000000000-1
        XDELEX s DELREF IDS 1 4000000000000-1 => -
        ",
    );
}

#[test]
fn transactions_and_scripts_are_one_record() {
    check(
        "
        MULTI => -
        SET a 1 => -
        GET a => -
        EXPIRE a 10 => -
        EXEC => MULTI, SET a 1, PEXPIREAT a 2000000010000, EXEC
        MULTI => -
        GET a => -
        INCR a => -
        EXEC => INCR a
        MULTI => -
        SELECT 2 => -
        SET a 1 => -
        SELECT 0 => -
        SET b 2 => -
        EXEC => MULTI, SELECT 2, SET a 1, SELECT 0, SET b 2, EXEC
        MULTI => -
        GET a => -
        EXEC => -
        EVAL return(redis.call('GET','a')) 0 => -
        EVAL redis.call('SET','x',1)redis.call('SADD','y',2)return(redis.call('SPOP','y')) 0 => MULTI, SET x 1, SADD y 2, SREM y 2, EXEC
        EVAL return(redis.call('INCR',KEYS[1])) 1 x => INCR x
        FUNCTION FLUSH => -
        ",
    );
}

#[test]
fn of_what_scripts_withhold_nothing_is_said() {
    check(
        "
        EVAL redis.set_repl(redis.REPL_NONE)redis.call('SET','a',1)redis.call('SET','a',2) 0 => #TENON:WITHHELD, SELECT 0
        EVAL return(redis.call('INCR','a')) 0 => INCR a
        EVAL redis.set_repl(redis.REPL_SLAVE)redis.call('SET','b',1)redis.set_repl(redis.REPL_AOF)redis.call('SET','c',1)redis.set_repl(redis.REPL_REPLICA)redis.call('SET','d',1)redis.set_repl(redis.REPL_ALL)redis.call('SET','e',1) 0 => MULTI, #TENON:WITHHELD, SELECT 0, SET c 1, SET e 1, EXEC
        EVAL redis.call('SADD','s','x','y')redis.set_repl(0)redis.call('SPOP','s',1)redis.call('EXPIRE','s',9) 0 => MULTI, SADD s x y, #TENON:WITHHELD, SELECT 0, EXEC
        MULTI => -
        EVAL redis.set_repl(0)redis.call('SET','f',1) 0 => -
        SET g 1 => -
        EVAL redis.call('SET','h',1) 0 => -
        EXEC => MULTI, #TENON:WITHHELD, SELECT 0, SET g 1, SET h 1, EXEC
        EVAL redis.set_repl(0)redis.pcall('NOSUCH')redis.pcall('INCR','s') 0 => -
        SET i 1
        XGROUP CREATE x g $ MKSTREAM
        EVAL redis.set_repl(0)redis.call('XADD','x','1','f','v')redis.call('XREADGROUP','GROUP','g','c','STREAMS','x','>') 0 => #TENON:WITHHELD, SELECT 0
        EVAL redis.set_repl(0)redis.call('FLUSHALL') 0 => #TENON:WITHHELD, SELECT 0
        EVAL redis.set_repl(0)redis.call('GET','a')redis.call('DEL','a') 0 => -
        SELECT 2 => -
        EVAL redis.set_repl(0)redis.call('SET','a',1)redis.set_repl(1)redis.call('SET','b',1) 0 => MULTI, SELECT 2, #TENON:WITHHELD, SELECT 2, SET b 1, SELECT 0, EXEC
        EVAL redis.set_repl(0)redis.call('SET','a',1) 0 => MULTI, SELECT 2, #TENON:WITHHELD, SELECT 2, SELECT 0, EXEC
        ",
    );
}

#[test]
fn what_expires_where_a_script_withholds_is_deleted() {
    let mut server = Server::new();
    server.run("SET k v PX 10");
    server.run("HSET h f 1 g 2");
    server.run("HPEXPIRE h 10 FIELDS 1 f");
    server.now_ms += 11;
    let script = "redis.set_repl(0)redis.call('APPEND','k','w')redis.call('HSET','h','i',3)redis.call('DEL','k')";
    assert_eq!(server.run(&format!("EVAL {script} 0")), "MULTI, DEL k, #TENON:WITHHELD, SELECT 0, HDEL h f, EXEC");
}

#[test]
fn who_waited_is_served_with_a_record_whatever_the_script_withholds() {
    let mut server = Server::new();
    let _waiting = server.another_waits("BLPOP l 0");
    assert_eq!(server.run("EVAL redis.set_repl(0)redis.call('RPUSH','l','a') 0"), "#TENON:WITHHELD, SELECT 0\nLPOP l");
}

#[test]
fn what_expires_is_deleted() {
    let mut server = Server::new();
    server.run("SET k v PX 10");
    server.run("SET l v PX 10");
    server.run("SELECT 2");
    server.run("SET m v PX 10");
    server.run("SELECT 0");
    server.run("HSET h f 1 g 2");
    server.run("HPEXPIRE h 10 FIELDS 1 f");
    server.run("SADD s a b");
    server.run("SPEXPIRE s 10 MEMBERS 2 a b");
    server.now_ms += 11;
    // On access, also by what only reads, before what the command itself does.
    assert_eq!(server.run("GET k"), "DEL k");
    assert_eq!(server.run("APPEND l w"), "MULTI, DEL l, APPEND l w, EXEC");
    assert_eq!(server.run("HLEN h"), "HDEL h f");
    // And ahead of it.
    let mut expired: Vec<String> = server.expire(1_000).lines().map(str::to_owned).collect();
    expired.sort();
    assert_eq!(expired, ["DEL s", "MULTI, SELECT 2, DEL m, SELECT 0, EXEC"]);
}

#[test]
fn what_is_evicted_is_deleted() {
    let mut server = Server::new();
    for number in 0..50 {
        server.run(&format!("SET key:{number} {}", "v".repeat(100)));
    }
    let pairs: [(&[u8], &[u8]); 2] = [(b"maxmemory-policy", b"allkeys-random"), (b"maxmemory", b"1")];
    server.engine.set_config(&pairs, tenon_engine::config::Caller::Local).expect("the settings are right");
    server.engine.make_room(&mut server.worker);
    let records = server.text();
    let live = journal::state(&server.engine).len();
    assert_eq!(records.lines().filter(|line| line.starts_with("DEL key:")).count(), 50 - live, "{records}");
}

#[test]
fn no_key_goes_for_what_clients_beyond_their_limit_take() {
    let mut server = Server::new();
    for number in 0..50 {
        server.run(&format!("SET key:{number} {}", "v".repeat(100)));
    }
    let keys = |server: &Server| journal::state(&server.engine).len();
    let large = server.engine.clients.add(client(Dialect::Resp), NOW_MS);
    large.input_bytes.store(1 << 40, std::sync::atomic::Ordering::Relaxed);
    for policy in [&b"noeviction"[..], b"allkeys-random", b"allkeys-tenon"] {
        let pairs: [(&[u8], &[u8]); 3] =
            [(b"maxmemory-policy", policy), (b"maxmemory-clients", b"1gb"), (b"maxmemory", b"1")];
        server.engine.set_config(&pairs, tenon_engine::config::Caller::Local).expect("the settings are right");
        assert!(server.engine.make_room(&mut server.worker), "its memory is on its way back");
        assert_eq!(keys(&server), 50);
    }
    assert!(large.killed.load(std::sync::atomic::Ordering::Relaxed));
    assert_eq!(server.worker.stats.all.clients_evicted.get(), 1, "it is closed once");
    server.engine.clients.remove(large.id);
    // What was seen a moment ago may hold a little longer.
    while keys(&server) == 50 {
        server.engine.make_room(&mut server.worker);
    }
}

#[test]
fn a_client_that_waited_is_told_of_its_record_by_whom_served_it() {
    let mut server = Server::new();
    let waiting = server.another_waits("BLPOP l 0");
    assert_eq!(server.run("RPUSH l a"), "RPUSH l a\nLPOP l");
    let journaled = waiting.client.journaled.load(std::sync::atomic::Ordering::Acquire);
    assert!(journaled > 0);
    assert_eq!(journaled, server.worker.journaled);
    assert_eq!(server.session.client.journaled.load(std::sync::atomic::Ordering::Acquire), 0);
}

#[test]
fn without_a_journal_nothing_is_kept() {
    let mut server = Server::new();
    server.engine.detach_journal();
    assert!(!server.engine.is_journaling());
    assert_eq!(server.run("SET k v"), "");
    let records = keep_records(&server.engine);
    server.records = records;
    assert_eq!(server.run("SET k w"), "SET k w");
}

/// What a client sends, and the records that follow.
fn send(link: &mut dyn Link, bytes: &[u8], records: &Records) -> Vec<Vec<u8>> {
    link.send(bytes).expect("the connection stays open");
    let mut reply = Vec::new();
    while link.receive(&mut reply, Duration::ZERO).expect("it does not break") == Received::Bytes {}
    assert!(!reply.starts_with(b"-") && !reply.is_empty(), "{}", reply.escape_ascii());
    records.take()
}

#[test]
fn long_values_are_whole() {
    let mut server = InProcess::default();
    server.prepare(&Demand { dialect: Protocol::Redis, settings: &[], fresh: true }).expect("it needs nothing");
    let records = server.records();
    let (mut redis, mut memcached) = (server.open(Protocol::Redis), server.open(Protocol::Memcache));
    // So long that it is taken out of the client's bytes in chunks.
    let long = vec![b'v'; 1 << 20];
    let request = |words: &[&[u8]]| {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            bytes.extend_from_slice(word);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes
    };
    type Words<'a> = &'a [&'a [u8]];
    let cases: [(Words<'_>, Words<'_>); 9] = [
        (&[b"SET", b"k", &long], &[b"SET", b"k", &long]),
        (&[b"SET", b"k", &long, b"KEEPTTL"], &[b"SET", b"k", &long]),
        (&[b"APPEND", b"k", &long], &[b"APPEND", b"k", &long]),
        (&[b"SETRANGE", b"k", b"7", &long], &[b"SETRANGE", b"k", b"7", &long]),
        (&[b"GETSET", b"k", &long], &[b"GETSET", b"k", &long]),
        (&[b"MSET", b"k", &long, b"l", &long], &[b"MSET", b"k", &long, b"l", &long]),
        (&[b"MSETEX", b"1", b"k", &long], &[b"SET", b"k", &long]),
        (&[b"RPUSH", b"r", &long], &[b"RPUSH", b"r", &long]),
        (&[b"XADD", b"x", b"1-1", b"f", &long], &[b"XADD", b"x", b"1-1", b"f", &long]),
    ];
    for (words, logged) in cases {
        let came = send(redis.as_mut(), &request(words), &records);
        assert!(came == [request(logged)], "{}", words[0].escape_ascii());
    }
    let came = send(memcached.as_mut(), &[b"set m 7 0 1048576\r\n", &long[..], b"\r\n"].concat(), &records);
    assert!(came == [[b"#TENON:FLAGS 7\r\n", &request(&[b"SET", b"m", &long])[..]].concat()]);
    let came = send(memcached.as_mut(), &[b"append m 0 0 1048576\r\n", &long[..], b"\r\n"].concat(), &records);
    assert!(came == [request(&[b"APPEND", b"m", &long])]);
}

#[test]
fn memcached_verbs() {
    let mut server = InProcess::default();
    server.prepare(&Demand { dialect: Protocol::Memcache, settings: &[], fresh: true }).expect("it needs nothing");
    let records = server.records();
    let mut link = server.open(Protocol::Memcache);
    for (request, logged) in [
        ("set k 0 0 1\r\n5\r\n", "SET k 5"),
        ("add k 0 0 1\r\n5\r\n", ""),
        ("replace k 3 0 1\r\n9\r\n", "#TENON:FLAGS 3, SET k 9"),
        ("append k 0 0 1\r\n7\r\n", "APPEND k 7"),
        ("prepend k 0 0 1\r\n1\r\n", "#TENON:FLAGS 3, SET k 197"),
        ("incr k 3\r\n", "#TENON:FLAGS 3, SET k 200"),
        ("decr k 300\r\n", "#TENON:FLAGS 3, SET k 0  "),
        ("touch k 0\r\n", ""),
        ("touch k 4000000000\r\n", "PEXPIREAT k 4000000000000"),
        ("gat 0 k\r\n", "PERSIST k"),
        ("gets k\r\n", ""),
        ("set k 0 4000000000 1\r\n5\r\n", "SET k 5 PXAT 4000000000000"),
        ("set k 0 -1 1\r\n5\r\n", "DEL k"),
        ("mg k N0 v\r\n", "SET k \"\""),
        ("ms k 2 T4000000000 F5\r\nhi\r\n", "#TENON:FLAGS 5, SET k hi PXAT 4000000000000"),
        ("md k I T0\r\n", "PERSIST k"),
        ("ma n N0 J7\r\n", "SET n 7"),
        ("ma n MD D2\r\n", "SET n 5"),
        ("md k x\r\n", "SET k \"\""),
        ("md k\r\n", "DEL k"),
        ("delete n\r\n", "DEL n"),
        ("flush_all\r\n", ""),
        ("set k 0 0 1\r\n5\r\n", "SET k 5"),
        ("flush_all\r\n", "FLUSHDB"),
    ] {
        let came: Vec<String> =
            send(link.as_mut(), request.as_bytes(), &records).iter().map(|record| journal::text(record)).collect();
        assert_eq!(came.join("; "), logged, "{request:?}");
    }
}

#[test]
fn a_counter_is_one_of_both_protocols() {
    let mut server = InProcess::default();
    server.prepare(&Demand { dialect: Protocol::Redis, settings: &[], fresh: true }).expect("it needs nothing");
    let records = server.records();
    let mut links = [server.open(Protocol::Redis), server.open(Protocol::Memcache)];
    let refused = "-ERR value is not an integer or out of range\r\n";
    let mut seen = 0;
    let no_float = "-ERR value is not a valid float\r\n";
    for (link, request, answer, logged) in [
        (1, "set c 3 0 2\r\n10\r\n", "STORED\r\n", "#TENON:FLAGS 3, SET c 10"),
        (1, "decr c 1\r\n", "9\r\n", "#TENON:FLAGS 3, SET c 9 "),
        // What memcached left behind it is gone, in the log too: Redis would not read it.
        (0, "INCR c\r\n", ":10\r\n", "#TENON:FLAGS 3, SET c 10"),
        (0, "INCR c\r\n", ":11\r\n", "INCR c"),
        (1, "decr c 11\r\n", "0\r\n", "#TENON:FLAGS 3, SET c 0 "),
        (0, "DECR c\r\n", ":-1\r\n", "#TENON:FLAGS 3, SET c -1"),
        (0, "SET c \"5 \"\r\n", "+OK\r\n", "SET c 5 "),
        (0, "DECRBY c 2\r\n", ":3\r\n", "SET c 3"),
        (0, "GET c\r\n", "$1\r\n3\r\n", ""),
        (0, "SET c \"5 \" PXAT 4000000000000\r\n", "+OK\r\n", "SET c 5  PXAT 4000000000000"),
        (0, "INCRBY c 2\r\n", ":7\r\n", "SET c 7 PXAT 4000000000000"),
        (0, "SET c \"5  \"\r\n", "+OK\r\n", "SET c 5  "),
        (0, "INCRBYFLOAT c 0.5\r\n", "$3\r\n5.5\r\n", "SET c 5.5"),
        // As many digits as memcached's longest number, one more, and more than Redis counts to.
        (0, "SET c \"1                   \"\r\n", "+OK\r\n", "SET c 1                   "),
        (0, "INCR c\r\n", ":2\r\n", "SET c 2"),
        (0, "SET c \"1                    \"\r\n", "+OK\r\n", "SET c 1                    "),
        (0, "INCR c\r\n", refused, ""),
        (0, "INCRBYFLOAT c 1\r\n", no_float, ""),
        (0, "SET c \"9223372036854775808 \"\r\n", "+OK\r\n", "SET c 9223372036854775808 "),
        (0, "INCR c\r\n", refused, ""),
        (0, "INCRBYFLOAT c 1\r\n", "$19\r\n9223372036854775809\r\n", "SET c 9223372036854775809"),
        // What memcached cannot have written is none.
        (0, "SET c \"-1 \"\r\n", "+OK\r\n", "SET c -1 "),
        (0, "INCR c\r\n", refused, ""),
        (0, "SET c \"1.5 \"\r\n", "+OK\r\n", "SET c 1.5 "),
        (0, "INCRBYFLOAT c 1\r\n", no_float, ""),
        (0, "SET c \"07 \"\r\n", "+OK\r\n", "SET c 07 "),
        (0, "INCRBYFLOAT c 1\r\n", no_float, ""),
        (0, "SET c \"  \"\r\n", "+OK\r\n", "SET c   "),
        (0, "INCR c\r\n", refused, ""),
        (0, "SET c \"5\\t\"\r\n", "+OK\r\n", "SET c 5\\t"),
        (0, "INCR c\r\n", refused, ""),
        // A field is no counter of memcached's.
        (0, "HSET h f \"5 \"\r\n", ":1\r\n", "HSET h f 5 "),
        (0, "HINCRBY h f 1\r\n", "-ERR hash value is not an integer\r\n", ""),
    ] {
        links[link].send(request.as_bytes()).expect("it is open");
        let mut reply = Vec::new();
        while links[link].receive(&mut reply, Duration::ZERO).expect("it does not break") == Received::Bytes {}
        assert_eq!(reply.escape_ascii().to_string(), answer.as_bytes().escape_ascii().to_string(), "{request:?}");
        let all = records.all();
        let came: Vec<String> = all[seen..].iter().map(|record| journal::text(record)).collect();
        seen = all.len();
        assert_eq!(came.join("; "), logged, "{request:?}");
    }
    server.finish().expect("the log leads to the same data");
}

#[test]
fn what_becomes_of_libraries_is_part_of_its_transaction() {
    let mut server = InProcess::default();
    server.prepare(&Demand { dialect: Protocol::Redis, settings: &[], fresh: true }).expect("it needs nothing");
    let records = server.records();
    let mut link = server.open(Protocol::Redis);
    let code = "#!lua name=lib\nredis.register_function('f', function() return 1 end)";
    let mut say = |words: &[&str]| {
        let mut bytes = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| bytes += &format!("${}\r\n{word}\r\n", word.len()));
        link.send(bytes.as_bytes()).expect("it is open");
        let mut reply = Vec::new();
        while link.receive(&mut reply, Duration::ZERO).expect("it does not break") == Received::Bytes {}
        assert!(!reply.is_empty() && reply[0] != b'-', "{words:?}: {}", reply.escape_ascii());
    };
    say(&["SELECT", "3"]);
    say(&["MULTI"]);
    say(&["SET", "k", "v"]);
    say(&["FUNCTION", "LOAD", code]);
    say(&["SET", "l", "w"]);
    say(&["EXEC"]);
    say(&["FUNCTION", "DELETE", "lib"]);
    let texts: Vec<String> = records.all().iter().map(|record| journal::text(record)).collect();
    let load = format!("FUNCTION LOAD REPLACE {}", code.escape_default());
    let loaded = format!("MULTI, SELECT 3, SET k v, SELECT 0, {load}, SELECT 3, SET l w, SELECT 0, EXEC");
    assert_eq!(texts, [loaded, "FUNCTION DELETE lib".to_owned()]);
    server.finish().expect("the log leads to the same data");
}
