//! Whether a process is the one that listens somewhere. Knows nothing of what is said there.

use anyhow::{Context, Result};
use std::fs;
use tenon_client::Address;

/// Whether the process of this number holds the socket that listens at an address of this machine: a number that a server
/// tells may be another process's here, where the server has process numbers of its own, as in a container.
///
/// # Errors
/// When the process is not there or may not be looked at.
pub fn listens(pid: u32, address: &Address) -> Result<bool> {
    let sockets: Vec<String> = inodes(address).into_iter().map(|inode| format!("socket:[{inode}]")).collect();
    let files = format!("/proc/{pid}/fd");
    let files = fs::read_dir(&files).with_context(|| files.clone())?.flatten();
    let held = files.filter_map(|file| fs::read_link(file.path()).ok());
    Ok(held.filter_map(|link| link.into_os_string().into_string().ok()).any(|link| sockets.contains(&link)))
}

/// The sockets that listen there.
fn inodes(address: &Address) -> Vec<u64> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    match address {
        Address::Tcp { port, .. } => {
            let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(read);
            tables.iter().flat_map(|table| table.lines()).filter_map(|line| tcp(line, *port)).collect()
        }
        Address::Unix(path) => {
            let path = path.to_string_lossy();
            read("/proc/net/unix").lines().filter_map(|line| unix(line, &path)).collect()
        }
    }
}

/// A line of /proc/net/tcp or tcp6: the second word is address and port in hexadecimal, the fourth the state, in which 0A
/// is that it listens, the tenth the inode.
fn tcp(line: &str, port: u16) -> Option<u64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (_, own) = words.get(1)?.rsplit_once(':')?;
    let is = u16::from_str_radix(own, 16).ok()? == port && *words.get(3)? == "0A";
    words.get(9).filter(|_| is)?.parse().ok()
}

/// A line of /proc/net/unix: the fourth word is flags, of which one says that it listens, the seventh the inode, the rest the
/// path.
fn unix(line: &str, path: &str) -> Option<u64> {
    const LISTENS: u32 = 0x10000;
    let words: Vec<&str> = line.split_whitespace().collect();
    let is = u32::from_str_radix(words.get(3)?, 16).ok()? & LISTENS != 0 && line.ends_with(&format!(" {path}"));
    words.get(6).filter(|_| is)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    #[test]
    fn lines_of_the_kernels_tables_are_read() {
        let line = "   1: 0100007F:18EB 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 106882 1 0 100";
        assert_eq!((tcp(line, 6379), tcp(line, 6380)), (Some(106_882), None));
        assert_eq!(tcp(&line.replace(" 0A ", " 01 "), 6379), None, "that is a connection");
        assert_eq!(tcp("  sl  local_address rem_address   st", 6379), None);
        let line = "0000000038c8be8a: 00000002 00000000 00010000 0001 01 195343 /run/a b.sock";
        assert_eq!((unix(line, "/run/a b.sock"), unix(line, "/run/a")), (Some(195_343), None));
        assert_eq!(unix(&line.replace("00010000", "00000000"), "/run/a b.sock"), None, "that is a connection");
    }

    #[test]
    fn only_who_listens_is_taken_for_the_server() {
        let own = std::process::id();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address: Address = listener.local_addr().expect("an address").into();
        let mut other = Command::new("sleep").arg("600").spawn().expect("sleep");
        assert!(listens(own, &address).expect("this process"));
        // The near end of a connection is nobody's ear.
        let near = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
        assert!(!listens(own, &near.local_addr().expect("an address").into()).expect("this process"));
        let others = listens(other.id(), &address);
        other.kill().expect("it runs");
        other.wait().expect("it ends");
        assert!(!others.expect("a process of this user"));
        assert!(listens(other.id(), &address).is_err());

        let directory = std::env::temp_dir().join(format!("tenon-bench-listening-{own}"));
        fs::create_dir_all(&directory).expect("a directory");
        let path = directory.join("a.sock");
        let _listener = UnixListener::bind(&path).expect("a free path");
        assert!(listens(own, &Address::Unix(path)).expect("this process"));
        assert!(!listens(own, &Address::Unix(directory.join("b.sock"))).expect("this process"));
        fs::remove_dir_all(&directory).expect("it can go");
    }
}
