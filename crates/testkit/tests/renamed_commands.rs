//! `rename-command`: by what clients call a command, as redis-server has it, and that a log is read with and without it.

use std::fs;
use tenon_client::{Resp, Value};
use tenon_testkit::oracle::oracle;
use tenon_testkit::patience::PATIENCE;
use tenon_testkit::server::{Folder, Server};
use tenon_testkit::target::Dialect;

const RENAMES: &str = "rename-command FLUSHALL \"\"\nrename-command CONFIG secret-config\nrename-command set put\n\
                       rename-command GET \"\"\nrename-command DeL a-name-of-more-than-eight-letters\n\
                       rename-command OBJECT look\nrename-command SLOWLOG slow\n\
                       rename-command XGROUP groups\n";

fn client(server: &Server) -> Resp {
    Resp::connect_to(server.address(Dialect::Redis).expect("a RESP port"), Some(PATIENCE)).expect("connected")
}

fn call(client: &mut Resp, command: &str) -> Value {
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    client.call(&words).expect("an answer")
}

/// The path of a file with this text in a folder.
fn written(folder: &Folder, text: &str) -> String {
    let path = folder.path.join("renames.conf");
    fs::write(&path, text).expect("it can be written");
    path.to_str().expect("it is text").to_owned()
}

#[test]
fn clients_and_scripts_call_commands_by_their_new_names() {
    let folder = Folder::new().expect("a folder of our own");
    let settings = [("include", &*written(&folder, RENAMES)), ("save", "")];
    let tenon = Server::tenon(&settings).expect("tenon starts");
    let redis = oracle(Dialect::Redis, &settings);
    let mut ours = client(&tenon);
    let mut theirs = redis.as_ref().map(client);
    for command in [
        "SET k v",
        "set k v",
        "PUT k v",
        "put k v",
        "Put k v NX",
        "put k",
        "GET k",
        "GETRANGE k 0 -1",
        "DEL k",
        "A-name-of-more-than-eight-letters k",
        "EXISTS k",
        "FLUSHALL",
        "FLUSHDB",
        "CONFIG GET maxmemory-samples",
        "Secret-Config GET maxmemory-samples",
        "secret-config nothing",
        "secret-config",
        "Look HELP",
        "look nothing",
        "slow GET 1 2",
        "COMMAND INFO get flushall config",
        "ACL SETUSER someone +config +get",
        "ACL SETUSER someone +secret-config",
        "ACL SETUSER someone +put",
        "EVAL return(redis.call('put',KEYS[1],'w')) 1 k",
        "EVAL return(redis.pcall('set',KEYS[1],'w')) 1 k",
        "MULTI",
        "put k x",
        "set k x",
        "EXEC",
        "GETRANGE k 0 -1",
        "COMMAND GETKEYS put k v",
        "COMMAND GETKEYS set k v",
    ] {
        let said = call(&mut ours, command);
        if let Some(theirs) = &mut theirs {
            assert_eq!(said, call(theirs, command), "{command}");
        }
    }
    assert_eq!(call(&mut ours, "GETRANGE k 0 -1"), Value::Bulk(b"w".to_vec()));
    let help = call(&mut ours, "look help");
    let Value::Array(lines) = help else { panic!("help is lines: {help:?}") };
    let first = b"LOOK <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";
    assert_eq!(lines.first(), Some(&Value::Simple(first.to_vec())));
}

#[test]
fn a_log_is_read_with_and_without_the_names() {
    let folder = Folder::new().expect("a folder of our own");
    let dir = folder.path.to_str().expect("it is text");
    let conf = written(&folder, RENAMES);
    let settings = [("dir", dir), ("appendonly", "yes"), ("appendfsync", "always"), ("save", "")];
    let with_names = |names: bool| {
        let mut settings = settings.to_vec();
        if names {
            settings.push(("include", &conf));
        }
        Server::tenon(&settings).expect("tenon starts")
    };
    let put = "EVAL return(redis.call('put',KEYS[1],'4')) 1 script";
    // It is put down with another number of entries than the client has said.
    let group = "groups CREATE stream g 0 MKSTREAM ENTRIESREAD 100";
    for (names, command) in [
        (false, "SET before 1"),
        (true, "put with 2"),
        (true, put),
        (true, group),
        (false, "SET after 5"),
        (true, "put again 6"),
    ] {
        let mut server = with_names(names);
        let mut client = client(&server);
        assert_eq!(call(&mut client, command), Value::Simple(b"OK".to_vec()));
        client.send(&[b"SHUTDOWN"]).expect("it is sent");
        server.wait_for_end(PATIENCE).expect("it ends");
    }
    for names in [true, false] {
        let mut server = with_names(names);
        let mut client = client(&server);
        assert_eq!(call(&mut client, "EXISTS before with script stream after again"), Value::Int(6));
        client.send(&[b"SHUTDOWN"]).expect("it is sent");
        server.wait_for_end(PATIENCE).expect("it ends");
    }
}

#[test]
fn names_that_cannot_be_given_stop_the_start() {
    let folder = Folder::new().expect("a folder of our own");
    for (line, why) in [
        ("rename-command nothing something", "No such command in rename-command"),
        ("rename-command GET set", "Target command name already exists"),
        ("rename-command GET", "wrong number of arguments"),
        ("rename-command GET \"\"\nrename-command GET \"\"", "No such command in rename-command"),
    ] {
        let conf = written(&folder, line);
        let refused = Server::tenon(&[("include", &conf)]).expect_err("it does not start").to_string();
        assert!(refused.contains(why) && refused.contains("renames.conf"), "{line}: {refused}");
    }
}
