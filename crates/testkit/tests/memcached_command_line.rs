//! `tenon memcached` as an init script starts it: in the background, as another user, with its number in a file.
#![allow(missing_docs)]

use std::fs;
use std::io::{self, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use tenon_client::{Address, Memcache};
use tenon_testkit::patience::{self, PATIENCE, wait_for};
use tenon_testkit::ports::free_port;
use tenon_testkit::server::{find_on_path, tenon_binary};

fn tenon(words: &[&str]) -> Output {
    patience::run(Command::new(tenon_binary().expect("it is built")).arg("memcached").args(words)).expect("it runs")
}

/// A server in the foreground, ended with this.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        // One that has ended by itself needs no more.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server in the background, ended with this.
struct Background {
    pid: String,
    file: PathBuf,
}

impl Background {
    fn start(name: &str, port: u16, more: &[&str]) -> Background {
        let folder = std::env::temp_dir().join(format!("tenon-background-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        // Whoever the server becomes writes into it.
        let everyone = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(&folder, everyone).expect("a folder for everyone");
        let file = folder.join("pid");
        let (port, path) = (port.to_string(), file.display().to_string());
        let words = [&["-d", "-P", &path, "-l", "127.0.0.1", "-p", &port, "-t", "1"][..], more].concat();
        let output = tenon(&words);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let pid = wait_for("the file", || fs::read_to_string(&file).ok().filter(|text| text.ends_with('\n')));
        Background { pid: pid.trim().to_owned(), file }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(&self.pid).status();
        wait_for("the end", || (!self.file.exists()).then_some(()));
        let _ = fs::remove_dir_all(self.file.parent().expect("a folder"));
    }
}

/// The number that the server on a port gives as its own.
fn pid_on(port: u16) -> io::Result<Option<String>> {
    let stats = Memcache::connect_to(&Address::loopback(port), Some(PATIENCE))?.stats(None)?;
    Ok(stats.into_iter().find(|(name, _)| name == "pid").map(|(_, pid)| pid))
}

/// The user that a process is.
fn user_of(pid: &str) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process is there");
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).expect("Linux tells the user");
    line.split_whitespace().nth(1).and_then(|uid| uid.parse().ok()).expect("a number")
}

#[test]
fn ports_that_the_system_chooses_are_told_in_a_file() {
    // What the words are, and how many ports each transport then has: IPv4 alone is asked for.
    for (words, tcp, udp) in [
        (&["-l", "127.0.0.1", "-p", "-1"][..], 1, 0),
        (&["-l", "127.0.0.1", "-U", "-1"][..], 1, 1),
        (&["-l", "127.0.0.1,127.0.0.2", "-p", "-1", "-U", "-1"][..], 2, 2),
        (&["-l", "127.0.0.1", "-p", "0", "-U", "-1"][..], 0, 1),
        (&["-l", "127.0.0.1", "-p", "0"][..], 0, 0),
    ] {
        let folder = std::env::temp_dir().join(format!("tenon-ports-{}-{tcp}-{udp}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("ports");
        let _server = Started(
            Command::new(tenon_binary().expect("it is built"))
                .args(["memcached", "-t", "1"])
                .args(words)
                .env("MEMCACHED_PORT_FILENAME", &file)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("it runs"),
        );
        // It appears whole.
        let text = wait_for("the ports", || fs::read_to_string(&file).ok());
        let ports = |name: &str| -> Vec<u16> {
            text.lines().filter_map(|line| line.strip_prefix(name)).map(|port| port.parse().expect("a port")).collect()
        };
        let (tcp_ports, udp_ports) = (ports("TCP INET: "), ports("UDP INET: "));
        assert_eq!(
            (tcp_ports.len(), udp_ports.len(), text.lines().count()),
            (tcp, udp, tcp + udp),
            "{words:?}: {text}"
        );
        if let Some(&port) = tcp_ports.first() {
            let mut client = Memcache::connect_to(&Address::loopback(port), Some(PATIENCE)).expect("it listens there");
            let settings = client.stats(Some("settings")).expect("an answer");
            assert!(settings.contains(&("tcpport".to_owned(), "-1".to_owned())), "{settings:?}");
        }
        fs::remove_dir_all(&folder).expect("a folder");
    }
}

#[test]
fn in_the_background_with_its_number_in_a_file() {
    let port = free_port();
    let server = Background::start("d", port, &["-u", "root"]);
    assert_eq!(pid_on(port).expect("it listens").as_ref(), Some(&server.pid));
    assert_eq!(user_of(&server.pid), user_of("self"));
}

#[test]
fn connections_are_as_many_as_the_system_allows() {
    let port = free_port();
    let _server = Background::start("c", port, &["-u", "root", "-c", "4000000000"]);
    let mut client = Memcache::connect_to(&Address::loopback(port), Some(PATIENCE)).expect("it listens");
    let stats = client.stats(None).expect("an answer");
    let (_, most) = stats.iter().find(|(name, _)| name == "max_connections").expect("it is told");
    assert!((1..4_000_000_000).contains(&most.parse::<u64>().expect("a number")), "{most}");
}

#[test]
fn options_may_stand_in_debians_file() {
    let folder = std::env::temp_dir().join(format!("tenon-options-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let (file, socket) = (folder.join("memcached.conf"), folder.join("socket"));
    let text = format!("# As it is\n-d\nlogfile /nowhere/log\n-m 100 # more\n-c 77\n-s {}\n", socket.display());
    fs::write(&file, text).expect("a file");
    let mut child = Command::new(tenon_binary().expect("it is built"));
    child.arg("memcached").arg(&file).args(["-c", "78", "-t", "1"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = Started(child.spawn().expect("it runs"));
    let address = Address::Unix(socket);
    let mut client = wait_for("it listens", || Memcache::connect_to(&address, Some(PATIENCE)).ok());
    let settings = client.stats(Some("settings")).expect("an answer");
    for (name, value) in [("maxbytes", "104857600"), ("maxconns", "78")] {
        assert!(settings.contains(&(name.to_owned(), value.to_owned())), "{settings:?}");
    }
    assert!(server.0.try_wait().expect("it is a child").is_none(), "it went to the background");
    fs::write(&file, "-m 64\nport 11211\n").expect("a file");
    let output = tenon(&[&file.display().to_string()]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.ends_with("memcached.conf:2: the line is no option of memcached's command line\n"), "{said}");
    drop(server);
    fs::remove_dir_all(&folder).expect("a folder");
}

#[test]
fn both_signals_of_memcached_end_it_well() {
    for signal in ["-USR1", "-TERM"] {
        let socket = std::env::temp_dir().join(format!("tenon-signal-{}{signal}", std::process::id()));
        let mut child = Command::new(tenon_binary().expect("it is built"));
        child.args(["memcached", "-t", "1", "-s"]).arg(&socket).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Started(child.spawn().expect("it runs"));
        let address = Address::Unix(socket.clone());
        wait_for("it listens", || Memcache::connect_to(&address, Some(PATIENCE)).ok());
        let pid = server.0.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().expect("it runs").success());
        let status = wait_for("the end", || server.0.try_wait().expect("it is a child"));
        assert_eq!(status.code(), Some(0), "{signal}");
        let _ = fs::remove_file(&socket);
    }
}

#[test]
fn as_another_user() {
    if user_of("self") != 0 {
        // Only root becomes another; others stay who they are, as with memcached.
        let server = Background::start("u", free_port(), &["-u", "nobody"]);
        assert_eq!(user_of(&server.pid), user_of("self"));
        return;
    }
    let server = Background::start("u", free_port(), &["-u", "nobody"]);
    assert!(user_of(&server.pid) != 0, "it is still root");
    let output = tenon(&["-u", "no-such-user", "-p", "0", "-s", "/nowhere/socket"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("can't find the user no-such-user to switch to"), "{said}");
}

/// What a server that does not start says and ends with; `None` of one that starts.
fn refusal(program: &mut Command, words: &[&str]) -> Option<(Option<i32>, String)> {
    let port = free_port();
    program.args(["-l", "127.0.0.1", "-p", &port.to_string()]).args(words);
    program.stdin(Stdio::null()).stdout(Stdio::null());
    let mut server = program.stderr(Stdio::piped()).spawn().expect("it runs");
    let own = server.id().to_string();
    let ended = wait_for("it starts or ends", || {
        let is_there = pid_on(port).is_ok_and(|pid| pid.as_ref() == Some(&own));
        if is_there { Some(false) } else { server.try_wait().expect("it is a child").map(|_| true) }
    });
    if !ended {
        server.kill().expect("it was there");
    }
    let output = patience::output_of(server, "the server");
    ended.then(|| (output.status.code(), String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

/// Tells whether Tenon and memcached do not start with these words, in the same words and with the same exit code. `None`
/// without memcached.
fn both_refuse(line: &str) -> Option<bool> {
    let Some(memcached) = find_on_path("memcached") else {
        assert!(std::env::var("TENON_REQUIRE_ORACLES").is_err(), "memcached is not installed");
        let _ = writeln!(std::io::stderr(), "skipped: memcached is not installed");
        return None;
    };
    let words: Vec<&str> = line.split(' ').collect();
    let by_memcached = refusal(Command::new(&memcached).args(["-u", "root"]), &words);
    let by_tenon = refusal(Command::new(tenon_binary().expect("it is built")).arg("memcached"), &words);
    let own = |said: &str| {
        said.strip_prefix("tenon: ").map_or(said, |said| said.trim_start_matches("command line: ")).to_owned()
    };
    let by_tenon = by_tenon.map(|(code, said)| (code, own(&said)));
    assert_eq!(by_tenon, by_memcached, "{line}");
    Some(by_tenon.is_some())
}

#[test]
fn what_memcached_does_not_start_with_is_refused_as_memcached_refuses_it() {
    for line in [
        "-t 0",
        "-t -1",
        "-t x",
        "-c 0",
        "-c x",
        "-p 99999",
        "-p 65536 -U 1",
        "-B foo",
        "-B foo -t 0",
        "-t 0 -B foo",
        "-p 99999 -m 1",
        "-p 99999 -t 0",
        "-f 0.5",
        "-f 1",
        "-f x",
        "-n 0",
        "-n x",
        "-R 0",
        "-R x",
        "-m x",
        "-I x",
        "-I 2g",
    ] {
        let Some(is_refused) = both_refuse(line) else { return };
        assert!(is_refused, "{line}");
    }
    // To somebody who is not root this option means nothing.
    let is_refused = both_refuse("-u no-such-user");
    assert!(is_refused.is_none_or(|is_refused| is_refused == (user_of("self") == 0)));
}

#[test]
fn what_the_setting_does_not_take_is_said_of_the_option() {
    for (words, said) in [
        ("-t 5000", "-t '5000': argument must be between 1 and 1024 inclusive"),
        ("-a 999", "-a '999': argument couldn't be parsed as an octal number"),
        ("-o idle_timeout=x", "-o idle_timeout 'x': argument couldn't be parsed into an integer"),
        ("-l 127.0.0.1:99999", "-l '99999': argument must be between -1 and 65535 inclusive"),
    ] {
        let output = tenon(&words.split(' ').collect::<Vec<_>>());
        assert_eq!(String::from_utf8_lossy(&output.stderr), format!("tenon: command line: {said}\n"));
        assert_eq!(output.status.code(), Some(1), "{words}");
    }
}

#[test]
fn sizes_that_do_not_go_together_are_refused_as_memcached_refuses_them() {
    for (line, is_refused) in [
        ("-m 64 -I 256m", true),
        ("-m 64 -I 33m", true),
        ("-m 64 -I 32m", false),
        ("-m 1", true),
        ("-m 2", false),
        ("-m 0", true),
        ("-I 1000", true),
        ("-I 1023", true),
        ("-I 1024", true),
        ("-I 1024 -o slab_chunk_max=1024", false),
        ("-I 512k", false),
        ("-I 1500k", true),
        ("-I 1025m -m 10000", true),
        ("-I 512k -o no_chunked_items", true),
        ("-I 512k -o no_modern", true),
        ("-I 3m -o no_modern", false),
        ("-o slab_chunk_max=300", true),
        ("-I 3000 -o slab_chunk_max=3000", true),
        ("-I 2m -o slab_chunk_max=4194304", true),
    ] {
        let Some(both) = both_refuse(line) else { return };
        assert_eq!(both, is_refused, "{line}");
    }
}

#[test]
fn the_version_is_said_as_scripts_that_know_memcached_read_it() {
    let output = tenon(&["-V"]);
    let said = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success() && said.starts_with("memcached 1.6.18 (Tenon "), "{said}");
    assert_eq!(String::from_utf8(tenon(&["-h"]).stdout).expect("text").lines().next(), said.lines().next());
}

#[test]
fn an_address_that_cannot_be_had_is_refused_with_memcacheds_exit_code() {
    let taken = TcpListener::bind("127.0.0.2:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for addresses in [&["-l", "127.0.0.2"][..], &["-l", "127.0.0.1,127.0.0.2"], &["-l", "127.0.0.1", "-l", "127.0.0.2"]]
    {
        let output = tenon(&[&["-p", &port, "-t", "1"], addresses].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(71) && said.contains("127.0.0.2"), "{addresses:?}: {said}");
    }
}

#[test]
fn a_unix_socket_is_its_users_alone_unless_something_else_is_said() {
    for (words, mode) in [(&[][..], "700"), (&["-a", "0770"], "770"), (&["-a", "666"], "666")] {
        let path = std::env::temp_dir().join(format!("tenon-mask-{}-{mode}.sock", std::process::id()));
        // Whoever asks nothing gets no more than the user's rights, whatever the umask is.
        let line = "umask 000; exec \"$@\"";
        let _server = Started(
            Command::new("sh")
                .args(["-c", line, "sh"])
                .arg(tenon_binary().expect("it is built"))
                .args(["memcached", "-t", "1", "-s"])
                .arg(&path)
                .args(words)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("it runs"),
        );
        let address = Address::Unix(path.clone());
        let mut client = wait_for("it listens", || Memcache::connect_to(&address, Some(PATIENCE)).ok());
        let settings = client.stats(Some("settings")).expect("an answer");
        assert!(settings.contains(&("umask".to_owned(), mode.to_owned())), "{words:?}: {settings:?}");
        let found = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).expect("it is there").permissions());
        assert_eq!(format!("{:o}", found & 0o777), mode, "{words:?}");
        fs::remove_file(&path).expect("it is there");
    }
}

#[test]
fn it_begins_with_nothing_whatever_lies_where_it_is_started() {
    let folder = std::env::temp_dir().join(format!("tenon-foreign-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    for (name, text) in [("dump.rdb", "garbage"), ("temp-1.rdb", "another server's")] {
        fs::write(folder.join(name), text).expect("written");
    }
    let port = free_port();
    let mut command = Command::new(tenon_binary().expect("it is built"));
    command.args(["memcached", "-l", "127.0.0.1", "-p", &port.to_string(), "-u", "root"]).current_dir(&folder);
    let _server = Started(command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().expect("it starts"));
    wait_for("the server", || pid_on(port).ok());
    assert_eq!(fs::read_dir(&folder).expect("there").count(), 2, "nothing of it is touched");
    fs::remove_dir_all(&folder).expect("there");
}
