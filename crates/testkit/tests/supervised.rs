//! A service of systemd's type `notify`: what it is told, and when.
#![allow(missing_docs)]

use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use tenon_client::{Address, Resp, Value};
use tenon_testkit::patience::{PATIENCE, end_of};
use tenon_testkit::ports::free_port;
use tenon_testkit::server::tenon_binary;

struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        // One that has ended by itself needs no more.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn systemd_is_told_of_the_start_and_of_the_end() {
    let path = std::env::temp_dir().join(format!("tenon-supervised-{}", std::process::id()));
    let systemd = UnixDatagram::bind(&path).expect("nobody else has it");
    systemd.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let told = || {
        let mut text = [0; 200];
        let len = systemd.recv(&mut text).expect("it is told something");
        String::from_utf8_lossy(&text[..len]).into_owned()
    };
    let port = free_port();
    for word in ["systemd", "auto"] {
        let mut command = Command::new(tenon_binary().expect("it is built"));
        command.args(["--port", &port.to_string(), "--memcached-port", "0", "--supervised", word]);
        // There is nothing to load, which it would tell of.
        command.args(["--save", "", "--dbfilename", "tenon-supervised.rdb"]);
        // Whoever is supervised stays in the foreground.
        command.args(["--daemonize", "yes"]).env("NOTIFY_SOCKET", &path).stdout(Stdio::null());
        let mut server = Started(command.spawn().expect("it starts"));
        assert_eq!(told(), "READY=1\nSTATUS=Ready to accept connections\n");
        let mut client = Resp::connect_to(&Address::loopback(port), Some(PATIENCE)).expect("it listens");
        let info = client.call(&[b"INFO", b"server"]).expect("a reply");
        let Value::Bulk(text) = info else { panic!("INFO gives a text, not {info:?}") };
        let text = String::from_utf8(text).expect("the text is text");
        assert!(text.contains("process_supervised:systemd\r\n"), "{text}");
        assert!(text.contains(&format!("process_id:{}\r\n", server.0.id())), "{text}");
        client.send(&[b"SHUTDOWN", b"NOSAVE"]).expect("it is sent");
        assert_eq!(told(), "STOPPING=1\nSTATUS=Ending\n");
        assert!(end_of(&mut server.0, "the server").success());
    }
    std::fs::remove_file(path).expect("it is there");
}
