//! Ports for the servers of tests, none of which is given out twice at a time, whichever process asks. Knows no server.

use std::io::{self, ErrorKind};
use std::net::{TcpListener, UdpSocket};
use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicU32, Ordering};

/// Below those from 32,768 on, of which the system gives one to each socket of a client.
const PORTS: Range<u16> = 20_000..32_000;

/// A port on 127.0.0.1 that nobody else is given while this lives, for TCP and UDP.
#[derive(Debug)]
pub struct Port {
    number: u16,
    /// A socket with a name that only one can have, and that goes with the process.
    _claim: UnixDatagram,
}

impl Port {
    /// One on which nobody listens.
    ///
    /// # Errors
    /// `AddrInUse` when there is none, and what the system refuses.
    pub fn free() -> io::Result<Port> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let ports = u32::from(PORTS.end - PORTS.start);
        // Processes begin at different places.
        let first = std::process::id().wrapping_mul(61);
        for _ in 0..ports {
            let place = first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % ports;
            match Port::claim(PORTS.start + place as u16) {
                Err(error) if error.kind() == ErrorKind::AddrInUse => {}
                claimed => return claimed,
            }
        }
        Err(ErrorKind::AddrInUse.into())
    }

    fn claim(number: u16) -> io::Result<Port> {
        let name = SocketAddr::from_abstract_name(format!("tenon-test-port-{number}"))?;
        let claim = UnixDatagram::bind_addr(&name)?;
        // Others that know nothing of claims.
        TcpListener::bind(("127.0.0.1", number))?;
        UdpSocket::bind(("127.0.0.1", number))?;
        Ok(Port { number, _claim: claim })
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }
}

/// The number of one that stays this process's until it ends.
///
/// # Panics
/// Where none can be had.
pub fn free_port() -> u16 {
    let port = Port::free().expect("a port");
    let number = port.number();
    std::mem::forget(port);
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_given_what_another_has() {
        let port = Port::free().expect("a port");
        let in_use = |claimed: io::Result<Port>| claimed.is_err_and(|error| error.kind() == ErrorKind::AddrInUse);
        assert!(in_use(Port::claim(port.number())));
        let number = port.number();
        drop(port);
        let listener = TcpListener::bind(("127.0.0.1", number)).expect("it is free");
        assert!(in_use(Port::claim(number)), "somebody listens there");
        drop(listener);
        let socket = UdpSocket::bind(("127.0.0.1", number)).expect("it is free");
        assert!(in_use(Port::claim(number)), "somebody receives there");
        drop(socket);
        assert_eq!(Port::claim(number).expect("it is free again").number(), number);
    }

    #[test]
    fn several_are_different_ones() {
        let mut numbers: Vec<u16> = (0..20).map(|_| free_port()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 20);
        assert!(numbers.iter().all(|number| PORTS.contains(number)));
    }
}
