//! Users from files and back, rules of every kind, and clients whose users change: against one engine in process.

use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tenon_engine::Engine;
use tenon_engine::acl::{CATEGORIES, user_line};
use tenon_engine::args::OwnedArgs;
use tenon_engine::changed_settings::ChangeOutside;
use tenon_engine::clients::{ClientInfo, ConnectionKey, Dialect, Message};
use tenon_engine::command::KeyFlags;
use tenon_engine::config::{Caller, Loader, Machine, Setting, ValueError};
use tenon_engine::session::Session;
use tenon_engine::wire::OutBuf;
use tenon_engine::worker::Worker;

/// A directory that goes away with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tenon-users-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Scratch(path)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("written");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An engine with this configuration file, or without one.
fn started(file: Option<&Path>) -> Result<Arc<Engine>, String> {
    let mut loader = Loader::new(Machine::detect());
    if let Some(path) = file {
        loader.file(path).map_err(|error| error.to_string())?;
    }
    let engine = Engine::new(loader.finish().expect("settings"), tenon_commands::ALL, 0x5EED);
    engine.load_users()?;
    Ok(Arc::new(engine))
}

fn engine() -> Arc<Engine> {
    started(None).expect("an engine")
}

fn lines(engine: &Engine) -> Vec<String> {
    let line = |user: &Arc<tenon_engine::acl::User>| user_line(&user.name, &user.rights());
    engine.acl.list().iter().map(|user| String::from_utf8_lossy(&line(user)).into_owned()).collect()
}

fn set(engine: &Engine, name: &str, rules: &str) {
    let rules: Vec<&[u8]> = rules.split(' ').map(str::as_bytes).collect();
    engine.set_user(name.as_bytes(), &rules).expect("right rules");
}

struct Client {
    engine: Arc<Engine>,
    worker: Worker,
    session: Session,
}

impl Client {
    fn new(engine: &Arc<Engine>) -> Client {
        let info = ClientInfo {
            key: ConnectionKey { worker: 0, index: 0, generation: 0 },
            dialect: Dialect::Resp,
            remote: String::new(),
            local: String::new(),
            fd: 0,
            unix: false,
        };
        let session = engine.open_session(engine.clients.add(info, 0));
        Client { engine: Arc::clone(engine), worker: engine.worker(0), session }
    }

    /// Runs a command of words without blanks; gives the reply's bytes as text.
    fn run(&mut self, command: &str) -> String {
        let args = OwnedArgs::new(command.split(' '));
        let target = self.engine.resolve(&args.view());
        let mut out = OutBuf::new();
        self.engine.run_alone(&mut self.worker, &mut self.session, target, &args.view(), &mut out);
        String::from_utf8_lossy(out.contiguous().expect("short replies are one piece")).into_owned()
    }

    fn is_killed(&self) -> bool {
        self.session.client.killed.load(Ordering::Relaxed)
    }
}

const DEFAULT: &str = "user default on nopass sanitize-payload ~* &* +@all";

#[test]
fn users_of_the_configuration_are_there_from_the_start() {
    let scratch = Scratch::new();
    let conf = scratch.write("t.conf", "user bob on nopass ~b* +get (~c +set)\nuser default off\n");
    let engine = started(Some(&conf)).expect("an engine");
    assert_eq!(
        lines(&engine),
        [
            "user bob on nopass sanitize-payload ~b* resetchannels -@all +get (~c resetchannels -@all +set)",
            "user default off sanitize-payload resetchannels -@all",
        ]
    );
    let mut client = Client::new(&engine);
    assert_eq!(client.run("GET b"), "-NOAUTH Authentication required.\r\n");
    assert_eq!(client.run("AUTH bob x"), "+OK\r\n");
    assert_eq!(client.run("GET b"), "$-1\r\n");

    for (text, expected) in [
        ("user bob on\nuser bob off", "t.conf:2: user 'bob': Duplicate user found. A user can only be defined once"),
        ("user bob +nosuch", "t.conf:1: user 'bob': Unknown command or category name in ACL: '+nosuch'"),
        ("user bob >secret secret", "t.conf:1: user 'bob': Syntax error"),
        ("user bob (+get", "t.conf:1: user 'bob': Unmatched parenthesis in selector definition."),
        ("user \"b b\" on", "t.conf:1: user 'b b': names can't contain spaces or null characters"),
        ("user a on\naclfile /nonexistent", "users are named both in the configuration and"),
        ("aclfile /nonexistent", "Error loading ACLs, opening file '/nonexistent': No such file or directory"),
    ] {
        let conf = scratch.write("t.conf", text);
        let error = started(Some(&conf)).err().expect("it does not start");
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn the_file_of_users_is_read_and_written() {
    let scratch = Scratch::new();
    let acl = scratch.write("users.acl", "user bob on >pw ~b* +get\n\n  user default on nopass ~* &* +@all  \r\n");
    let conf = scratch.write("t.conf", format!("aclfile {}\n", acl.display()));
    let engine = started(Some(&conf)).expect("an engine");
    set(&engine, "ann", "on nopass ~a &c +@read -get (%R~x resetchannels -@all +get)");
    engine.save_acl_file().expect("saved");
    let saved = std::fs::read_to_string(&acl).expect("a file");
    assert_eq!(saved.lines().collect::<Vec<_>>(), lines(&engine));
    assert_eq!(lines(&started(Some(&conf)).expect("an engine")), lines(&engine), "what is saved loads as it was");
    engine.rewrite_config().expect("rewritten");
    assert_eq!(std::fs::read_to_string(&conf).expect("a file"), format!("aclfile {}\n", acl.display()));
}

#[test]
fn parentheses_in_patterns_of_selectors_are_read_as_they_were_written() {
    let scratch = Scratch::new();
    let acl = scratch.write("users.acl", "");
    let with_file = scratch.write("file.conf", format!("aclfile {}\n", acl.display()));
    let without = scratch.write("t.conf", "");
    for conf in [&with_file, &without] {
        let engine = started(Some(conf)).expect("an engine");
        let rules: [&[u8]; 5] = [b"on", b"nopass", b"~(a)", b"(%W~x +set &(c))", b"(~b) +get)"];
        engine.set_user(b"al", &rules).expect("right rules");
        if conf == &with_file {
            engine.save_acl_file().expect("saved");
        } else {
            engine.rewrite_config().expect("rewritten");
        }
        let again = started(Some(conf)).expect("an engine");
        assert_eq!(again.acl.find(b"al").map(|al| al.rights()), engine.acl.find(b"al").map(|al| al.rights()));
    }
}

/// What a CONFIG SET that will fail has others do meanwhile.
struct Beside<F>(F);

impl<F: FnMut(&str) -> Result<(), ValueError>> ChangeOutside for Beside<F> {
    fn make_hold(&mut self, setting: &Setting) -> Result<(), ValueError> {
        self.0(setting.name)
    }

    fn take_back(&mut self) {}
}

#[test]
fn what_others_do_beside_a_change_that_fails_they_do_by_the_settings_of_before() {
    let scratch = Scratch::new();
    let file = scratch.write("users.acl", "user default on nopass ~* &* +@all\n");
    let text = format!("aclfile {}\nenable-protected-configs yes\nmemcached-flush-all no\n", file.display());
    let engine = started(Some(&scratch.write("t.conf", text))).expect("an engine");
    let set = |pairs: &[(&[u8], &[u8])]| engine.set_config(pairs, Caller::Local);
    set(&[(b"requirepass", b"old")]).expect("it is right");
    let (dir, saving) = (engine.config.dir(), Arc::new(Mutex::new(None)));
    let (weak, saves) = (Arc::downgrade(&engine), Arc::clone(&saving));
    engine.set_config_hook(Box::new(move || {
        let engine = weak.upgrade().expect("it is asked");
        let (dir, saves) = (Arc::clone(&dir), Arc::clone(&saves));
        Box::new(Beside(move |name: &str| {
            let config = &engine.config;
            assert!(!config.memcached_shutdown() && !config.memcached_flush_all());
            assert_eq!((config.dbfilename().as_ref(), config.dir()), ("dump.rdb", Arc::clone(&dir)));
            if name != "port" {
                return Ok(());
            }
            assert_eq!(config.requirepass().as_ref(), "new");
            let (begins, begun) = channel();
            let engine = Arc::clone(&engine);
            let saves_users = move || {
                begins.send(()).expect("it is waited for");
                engine.save_acl_file()
            };
            *saves.lock().unwrap_or_else(PoisonError::into_inner) = Some(std::thread::spawn(saves_users));
            begun.recv().expect("it begins");
            // So long that it would be done if it did not wait.
            std::thread::sleep(Duration::from_millis(100));
            Err(ValueError::CannotListen)
        }))
    }));
    let other = scratch.0.to_str().expect("text").as_bytes();
    set(&[
        (b"memcached-shutdown", b"yes"),
        (b"memcached-flush-all", b"yes"),
        (b"dbfilename", b"other.rdb"),
        (b"dir", other),
        (b"requirepass", b"new"),
        (b"port", b"1"),
    ])
    .expect_err("the port is taken");
    let saved = saving.lock().unwrap_or_else(PoisonError::into_inner).take().expect("it was told");
    saved.join().expect("it ends").expect("it can be written");
    engine.load_acl_file(None).expect("it is right");
    let mut client = Client::new(&engine);
    assert!(client.run("AUTH new").starts_with("-WRONGPASS"));
    assert_eq!(client.run("AUTH old"), "+OK\r\n", "what is saved is what holds");
}

#[test]
fn saves_at_once_leave_the_file_of_the_last_change() {
    let scratch = Scratch::new();
    let file = scratch.write("users.acl", "user default on nopass ~* &* +@all\n");
    let conf = scratch.write("t.conf", format!("aclfile {}\n", file.display()));
    let engine = started(Some(&conf)).expect("an engine");
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let engine = &engine;
            scope.spawn(move || {
                for round in 0..20 {
                    set(engine, &format!("u{thread}"), &format!("~{round}"));
                    engine.save_acl_file().expect("saved");
                    // Whatever the others do, the file is a whole one, and has what was saved.
                    engine.load_acl_file(None).expect("loaded");
                }
            });
        }
    });
    let saved = std::fs::read_to_string(&file).expect("it is there");
    assert_eq!(saved.lines().collect::<Vec<_>>(), lines(&engine));
}

#[test]
fn a_wrong_file_of_users_changes_nothing_and_all_of_it_is_told() {
    let scratch = Scratch::new();
    let acl = scratch.write("users.acl", "user bob on nopass +get\n");
    let conf = scratch.write("t.conf", format!("aclfile {}\n", acl.display()));
    let engine = started(Some(&conf)).expect("an engine");
    let before = lines(&engine);
    let text = "user bob on\nuser bob off\nfoo bar\nuser\nuser e (+get ~a\nuser f +nosuch >x nosuch %~ +bad\n# c\n\
        user g\x0bh on\nuser sel (~a\"b)\n";
    scratch.write("users.acl", text);
    let error = engine.load_acl_file(None).expect_err("it is wrong").to_string();
    let name = acl.display();
    let expected = format!(
        "WARNING: Duplicate user 'bob' found on line 2. \
         {name}:3 should start with user keyword followed by the username. \
         {name}:4 should start with user keyword followed by the username. \
         {name}:5: Unmatched parenthesis in selector definition.\
         {name}:6: Error in applying operation '+nosuch': Unknown command or category name in ACL. \
         {name}:6: Syntax error. \
         {name}:6: Error in applying operation '+bad': Unknown command or category name in ACL. \
         {name}:7 should start with user keyword followed by the username. \
         '{name}:8: username 'g\x0bh' contains invalid characters. \
         {name}:9: Syntax error. \
         WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
    );
    assert_eq!(error, expected);
    assert_eq!(lines(&engine), before);
    std::fs::remove_file(&acl).expect("removed");
    assert!(engine.load_acl_file(None).is_err());
    assert_eq!(lines(&engine), before);
}

#[test]
fn loading_closes_whose_user_is_gone_and_nobody_else() {
    let scratch = Scratch::new();
    let acl = scratch.write("users.acl", "user same on nopass +@all\nuser less on nopass +@all\nuser gone on nopass\n");
    let conf = scratch.write("t.conf", format!("aclfile {}\n", acl.display()));
    let engine = started(Some(&conf)).expect("an engine");
    let mut clients = ["same", "less", "gone", "default"].map(|name| {
        let mut client = Client::new(&engine);
        assert_eq!(client.run(&format!("AUTH {name} x")), "+OK\r\n");
        client
    });
    scratch.write(
        "users.acl",
        "user same on nopass +@all\nuser less on nopass +@all -get\nuser default on nopass +ping\n",
    );
    assert_eq!(clients[0].run("ACL LOAD"), "+OK\r\n");
    assert_eq!(clients.each_ref().map(Client::is_killed), [false, false, true, false]);
    assert_eq!(clients[0].run("DBSIZE"), ":0\r\n");
    assert_eq!(clients[1].run("GET k"), "-NOPERM this user has no permissions to run the 'get' command\r\n");
    assert_eq!(clients[3].run("DBSIZE"), "-NOPERM this user has no permissions to run the 'dbsize' command\r\n");
    // Whoever loads away its own user is told, and closes itself.
    scratch.write("users.acl", "user other on\n");
    assert_eq!(clients[0].run("ACL LOAD"), "+OK\r\n");
    assert!(clients[0].session.closing && !clients[0].is_killed());
    assert_eq!(clients[3].run("DBSIZE"), ":0\r\n", "the default user is as it was at the start");
}

#[test]
fn rewriting_the_configuration_keeps_users() {
    let scratch = Scratch::new();
    let conf = scratch.write("t.conf", "# mine\nrequirepass secret\nuser bob on >x +get\nport 7000\n");
    let engine = started(Some(&conf)).expect("an engine");
    engine.rewrite_config().expect("rewritten");
    let text = std::fs::read_to_string(&conf).expect("a file");
    assert_eq!(text, "# mine\nrequirepass secret\nuser bob on >x +get\nport 7000\n", "what is right stays as it is");

    set(&engine, "bob", "~k (+set ~a)");
    set(&engine, "q", "~quote\"d ~back\\slash (%R~\"in'ner\")");
    engine.set_user(b"\xff\xfe", &[b"~\xfd"]).expect("any bytes make a name");
    engine.rewrite_config().expect("rewritten");
    let again = started(Some(&conf)).expect("what was written loads");
    assert_eq!(lines(&again), lines(&engine));
    let text = std::fs::read_to_string(&conf).expect("a file");
    assert!(text.starts_with("# mine\nrequirepass secret\nuser bob on sanitize-payload #"), "{text}");
    assert!(text.ends_with("\nport 7000\n"), "{text}");

    let none = scratch.write("none.conf", "");
    let engine = started(Some(&none)).expect("an engine");
    engine.rewrite_config().expect("rewritten");
    assert_eq!(std::fs::read_to_string(&none).expect("a file"), "", "users as they are at the start need no line");
    set(&engine, "default", "-get");
    engine.rewrite_config().expect("rewritten");
    assert_eq!(lines(&started(Some(&none)).expect("an engine")), [format!("{DEFAULT} -get")]);
}

#[test]
fn every_command_is_of_known_categories() {
    for command in engine().commands.all() {
        let unknown = command.categories().into_iter().find(|name| !CATEGORIES.contains(name));
        assert_eq!(unknown, None, "{}", command.name);
    }
}

#[test]
fn keys_that_nobody_can_tell_need_a_right_to_all() {
    let engine = engine();
    let args = OwnedArgs::new(["GET", "k"]);
    let found = engine.commands.find(b"GET").expect("it is there");
    for (rules, reads, writes) in [
        ("+get ~*", true, true),
        ("+get %R~*", true, false),
        // It reads a key itself.
        ("+get %W~*", false, false),
        ("+get ~k", false, false),
        ("~*", false, false),
        ("+get (~*)", false, false),
        ("(+get %R~*)", true, false),
    ] {
        set(&engine, "u", &format!("reset {rules}"));
        let rights = engine.acl.find(b"u").expect("a user").rights();
        let may = |flags| rights.may_use_all_keys(found, &args.view(), flags, engine.databases_seen_from(0));
        assert_eq!((may(KeyFlags::READ), may(KeyFlags::OVERWRITE)), (reads, writes), "{rules}");
    }
}

#[test]
fn who_may_read_every_key_by_one_selector_may_not_by_another() {
    let engine = engine();
    let mut admin = Client::new(&engine);
    for command in ["RPUSH l 1", "SET secret:1 hidden"] {
        admin.run(command);
    }
    let denied = "-ERR GET option of SORT denied due to insufficient ACL permissions.\r\n";
    for (rules, store, allowed) in [
        ("~l +sort (%R~* +sort)", "", true),
        ("~l ~dst +sort (%R~* +sort)", " STORE dst", false),
        ("~l ~dst +sort (%R~* ~dst +sort)", " STORE dst", true),
        ("resetdbs db=0 ~l +sort (resetdbs db=1 %R~* +sort)", "", false),
        ("resetdbs db=1 ~l +sort (resetdbs db=0 %R~* +sort)", "", true),
    ] {
        set(&engine, "u", &format!("reset on nopass {rules}"));
        let mut client = Client::new(&engine);
        client.run("AUTH u x");
        let answer = client.run(&format!("SORT l BY nosort GET secret:*{store}"));
        assert_eq!(answer != denied, allowed, "{rules}: {answer}");
        assert!(!answer.starts_with('-') || answer == denied, "{rules}: {answer}");
    }
}

#[test]
fn refusals_are_counted() {
    let engine = engine();
    set(&engine, "u", "on nopass ~a &a +get +select +publish +info db=0");
    let mut client = Client::new(&engine);
    for command in ["AUTH nobody x", "AUTH u x", "GET b", "PUBLISH b x", "SET a 1", "GET a", "SET a 1", "SELECT 1"] {
        client.run(command);
    }
    let info = client.run("INFO stats");
    let lines: Vec<&str> = info.lines().filter(|line| line.starts_with("acl_access_denied")).collect();
    assert_eq!(
        lines,
        [
            "acl_access_denied_auth:1",
            "acl_access_denied_cmd:2",
            "acl_access_denied_key:1",
            "acl_access_denied_channel:1",
            "acl_access_denied_db:1",
        ]
    );
    // As in Redis they are since the start.
    engine.reset_stats();
    assert!(client.run("INFO stats").contains("acl_access_denied_cmd:2"));
}

#[test]
fn rights_that_change_reach_clients_in_every_state() {
    let engine = engine();
    set(&engine, "u", "on nopass ~* +@all");
    let mut client = Client::new(&engine);
    assert_eq!(client.run("AUTH u x"), "+OK\r\n");
    assert_eq!(client.run("SET k 1"), "+OK\r\n");
    set(&engine, "u", "-set");
    assert_eq!(client.run("SET k 2"), "-NOPERM this user has no permissions to run the 'set' command\r\n");
    set(&engine, "u", "+set");

    // A transaction takes its own user's rights away: from the next command on.
    for command in ["MULTI", "SET k 3", "ACL SETUSER u -set", "SET k 4", "GET k"] {
        client.run(command);
    }
    let reply = client.run("EXEC");
    assert!(reply.starts_with("*4\r\n+OK\r\n+OK\r\n-NOPERM ACLs rules changed between"), "{reply}");
    assert!(reply.ends_with("$1\r\n3\r\n"), "{reply}");

    // A transaction deletes its own user: the rest is the default user's, who may not do it.
    set(&engine, "self", "on nopass ~* +@all");
    set(&engine, "default", "-set");
    let mut own = Client::new(&engine);
    for command in ["AUTH self x", "MULTI", "ACL DELUSER self", "SET k gone", "EXEC"] {
        own.run(command);
    }
    assert!(own.session.closing);
    assert_eq!(client.run("GET k"), "$1\r\n3\r\n");
    set(&engine, "default", "+set");

    // Nor may it do what the default user may: it has not said that it is that.
    set(&engine, "self", "on nopass ~* +@all");
    let mut own = Client::new(&engine);
    for command in
        ["AUTH self x", "MULTI", "ACL DELUSER self", "SET k gone", "EVAL redis.call('set','k','gone') 0", "EXEC"]
    {
        own.run(command);
    }
    assert!(own.session.closing);
    assert_eq!(client.run("GET k"), "$1\r\n3\r\n");

    // Deleted in MULTI: the client is closed, and its queue never runs.
    assert_eq!(client.run("MULTI"), "+OK\r\n");
    assert_eq!(client.run("DEL k"), "+QUEUED\r\n");
    let mut other = Client::new(&engine);
    assert_eq!(other.run("ACL DELUSER u"), ":1\r\n");
    assert!(client.is_killed());
    assert_eq!(client.run("EXEC"), "", "a killed client runs nothing");
    assert_eq!(other.run("GET k"), "$1\r\n3\r\n");
}

#[test]
fn subscribers_that_lose_their_channel_are_told_to_look() {
    let engine = engine();
    let mail: Arc<Mutex<Vec<Message>>> = Arc::default();
    let outbox = Arc::clone(&mail);
    engine.clients.set_post(Arc::new(move |_, message| outbox.lock().expect("no panic").push(message)));
    set(&engine, "u", "on nopass &a* &b");
    let mut client = Client::new(&engine);
    assert_eq!(client.run("AUTH u x"), "+OK\r\n");
    use tenon_engine::pubsub::Topic;
    let taken = || std::mem::take(&mut *mail.lock().expect("no panic"));
    set(&engine, "other", "on nopass &a");
    assert!(taken().is_empty(), "another user's rights are nothing to this client");
    // Who is not subscribed is told too, as it may be subscribing by its old rights just now.
    set(&engine, "u", "&d");
    assert_eq!(taken(), [Message::RightsChanged]);
    assert!(engine.may_stay_subscribed(&mut client.session));
    engine.subscribe(&mut client.session, Topic::Channel, b"a1");
    engine.subscribe(&mut client.session, Topic::Pattern, b"a*");
    for (rules, stays) in [
        ("+get", true),
        ("resetchannels &a*", true),
        ("resetchannels &a1 (&a*)", true),
        ("clearselectors", false),
        ("resetchannels &a? &a* ", true),
        ("resetchannels &[a]*", false),
        ("allchannels", true),
        ("resetchannels", false),
    ] {
        set(&engine, "u", rules);
        assert_eq!(taken(), [Message::RightsChanged], "{rules}");
        assert_eq!(engine.may_stay_subscribed(&mut client.session), stays, "{rules}");
    }
    engine.unsubscribe_all(&mut client.session);
}

#[test]
fn what_was_subscribed_to_as_another_user_stays_whoever_else_changes() {
    use tenon_engine::pubsub::Topic;
    let engine = engine();
    set(&engine, "u", "on nopass +@all &a");
    set(&engine, "nobody", "on nopass +@all resetchannels");
    let mut client = Client::new(&engine);
    client.run("HELLO 3");
    assert_eq!(client.run("AUTH u x"), "+OK\r\n");
    engine.subscribe(&mut client.session, Topic::Channel, b"a");
    assert_eq!(client.run("AUTH nobody x"), "+OK\r\n");
    set(&engine, "other", "on nopass +@all");
    assert_eq!(client.run("PING"), "+PONG\r\n");
    // Its own rights have changed.
    set(&engine, "nobody", "&b");
    assert_eq!(client.run("PING"), "");
    assert!(client.is_killed());
}

/// Words of rules, right and wrong ones.
fn rule() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        "on",
        "off",
        "nopass",
        "resetpass",
        "reset",
        "sanitize-payload",
        "skip-sanitize-payload",
        "clearselectors",
        "allkeys",
        "resetkeys",
        "allchannels",
        "resetchannels",
        "allcommands",
        "nocommands",
        "+@all",
        "-@all",
        "~*",
        "&*",
        "+get",
        "-get",
        "+set",
        "+@string",
        "-@string",
        "+@read",
        "-@write",
        "+@dangerous",
        "+client",
        "-client",
        "+client|id",
        "-client|id",
        "+select|0",
        "+select|1",
        "-select",
        "+select",
        "+config|get",
        "~a*",
        "%R~a*",
        "%W~a*",
        "%RW~b",
        "%r~c",
        "&x",
        "&y*",
        ">pw",
        "<pw",
        ">other",
        "",
        "-@all",
        "+@keyspace",
    ]);
    let known = known.prop_map(|word| word.as_bytes().to_vec());
    let bytes = prop::collection::vec(any::<u8>(), 0..6);
    let odd =
        (prop::sample::select(vec!["~", "%", "%R~", "%W", "&", "+", "-", "+@", "-@", "(", ")", "#", "!", "<"]), bytes)
            .prop_map(|(start, end)| [start.as_bytes(), &end].concat());
    let plain = prop_oneof![4 => known, 1 => odd];
    let inner = prop::collection::vec(plain.clone(), 0..4);
    prop_oneof![
        6 => plain,
        1 => inner.prop_map(|words| [b"(", &words.join(&b' ')[..], b")"].concat()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_said_of_a_user_makes_the_same_user(rules in prop::collection::vec(rule(), 0..12)) {
        makes_the_same_user(&rules)?;
    }
}

#[test]
fn patterns_and_passwords_stand_where_they_were_said_first() {
    let engine = engine();
    set(&engine, "u", "%R~a ~b &x");
    set(&engine, "u", "~c %W~a ~b &y &x ~c %R~d (%R~e %W~e ~f %R~e)");
    let line = lines(&engine).into_iter().find(|line| line.starts_with("user u ")).expect("it is there");
    assert!(line.contains(" ~a ~b ~c %R~d ") && line.contains(" &x &y ") && line.contains("(~e ~f "), "{line}");
    set(&engine, "u", ">one >two >one");
    let hashes = engine.acl.find(b"u").expect("it is there").rights().words();
    assert_eq!(hashes.iter().filter(|word| word[0] == b'#').count(), 2);
}

#[test]
fn very_many_patterns_take_no_longer_each_than_few() {
    // As the square of their number, this would take minutes.
    const PATTERNS: usize = 200_000;
    let engine = engine();
    let rules: Vec<String> = (0..PATTERNS).flat_map(|number| [format!("~{number}"), format!("&{number}")]).collect();
    set(&engine, "u", &rules.join(" "));
    let scratch = Scratch::new();
    let users = lines(&engine).join("\n");
    let file = scratch.write("users.acl", &users);
    let conf = scratch.write("t.conf", format!("aclfile {}\n", file.display()));
    assert_eq!(lines(&started(Some(&conf)).expect("an engine")).join("\n"), users);
}

#[test]
fn first_arguments_that_were_said_in_another_order_make_the_same_user() {
    let rules = ["+select|0", "+select|1", "+select|0"].map(|rule| rule.as_bytes().to_vec());
    makes_the_same_user(&rules).expect("the same rights");
}

/// Makes a user by the rules, those that are right, and another by what is said of it.
fn makes_the_same_user(rules: &[Vec<u8>]) -> Result<(), TestCaseError> {
    static ENGINE: std::sync::OnceLock<Mutex<Arc<Engine>>> = std::sync::OnceLock::new();
    let engine = ENGINE.get_or_init(|| Mutex::new(engine())).lock().unwrap_or_else(PoisonError::into_inner);
    engine.set_user(b"u", &[b"reset"]).unwrap();
    let before = engine.acl.find(b"u").unwrap().rights();
    for rule in rules {
        // One by one, so that a wrong rule does not keep the others from being tried.
        let known = engine.acl.find(b"u").unwrap().rights();
        if engine.set_user(b"u", &[rule]).is_err() {
            prop_assert!(*engine.acl.find(b"u").unwrap().rights() == *known, "a wrong rule changes nothing");
        }
    }
    let rights = engine.acl.find(b"u").unwrap().rights();
    let words = rights.words();
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    engine.set_user(b"u", &[b"reset"]).unwrap();
    prop_assert!(*engine.acl.find(b"u").unwrap().rights() == *before);
    engine.set_user(b"u", &words).unwrap();
    prop_assert!(*engine.acl.find(b"u").unwrap().rights() == *rights, "{:?}", user_line(b"u", &rights));
    Ok(())
}
