//! From how many bytes on a socket counts as readable: the one option of sockets that the server sets and no safe crate
//! does. Knows no event loop.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Has waiting for `socket` to be readable end only when so many bytes are there, or its end, or as many as the kernel
/// takes in at once (`SO_RCVLOWAT`, socket(7)). Receiving gives what is there, as ever.
///
/// # Errors
///
/// Those of setsockopt(2): the descriptor is no socket.
pub fn set(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    let value = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    let len = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the descriptor is open as long as it is borrowed, and the kernel reads `len` bytes of `value`, no more, before
    // the call ends.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVLOWAT, (&raw const value).cast(), len)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::time::Duration;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        let client = TcpStream::connect(listener.local_addr().expect("has an address")).expect("connects");
        (client, listener.accept().expect("accepts").0)
    }

    #[test]
    fn a_read_that_waits_ends_with_so_many_bytes() {
        let (mut client, mut server) = pair();
        set(server.as_fd(), 10).expect("is set");
        let reading = std::thread::spawn(move || {
            let mut bytes = [0; 100];
            let first = server.read(&mut bytes).expect("reads");
            (first, server.read(&mut bytes).expect("reads"))
        });
        client.write_all(b"1234").expect("sends");
        std::thread::sleep(Duration::from_millis(30));
        client.write_all(b"567890").expect("sends");
        drop(client);
        assert_eq!(reading.join().expect("has read"), (10, 0), "the end is reported, too");
    }

    #[test]
    fn what_is_no_socket_is_refused() {
        let file = File::open("/dev/null").expect("opens");
        assert!(set(file.as_fd(), 1).is_err());
    }
}
