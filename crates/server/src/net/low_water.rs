//! How much of a long value is waited for at a time: with a mark on the socket, below which it does not count as readable.
//! Knows neither how one waits, nor what the bytes mean.

use rustix::fd::{AsFd, OwnedFd};
use tenon_ds::low_water;

/// A receive of so much speaks for a client that sends on without a pause.
const STEADY_FROM: usize = 16 * 1024;

/// How many bytes of a long value are waited for at most: so many the kernel keeps meanwhile, and each time that a thread
/// wakes costs some 10 us.
const BYTES_MAX: usize = 1024 * 1024;

/// One socket's mark.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LowWater {
    /// How many bytes must have come before an event tells of them.
    bytes: usize,
}

impl Default for LowWater {
    fn default() -> LowWater {
        LowWater { bytes: 1 }
    }
}

impl LowWater {
    /// Chooses the mark when the socket is empty: `received` bytes of a long value have just come, and `missing` have not.
    pub(super) fn after(&mut self, socket: &OwnedFd, received: usize, missing: usize) {
        let bytes = match received {
            0 => self.bytes,
            STEADY_FROM.. => BYTES_MAX,
            _ => 1,
        };
        self.set(socket, bytes.min(missing).max(1));
    }

    /// Has an event tell of every byte, also of those that have come meanwhile; says whether it was otherwise.
    pub(super) fn reset(&mut self, socket: &OwnedFd) -> bool {
        let before = self.bytes;
        self.set(socket, 1);
        self.bytes != before
    }

    fn set(&mut self, socket: &OwnedFd, bytes: usize) {
        // A kind of socket that knows no such mark is told of from the first byte on.
        if self.bytes != bytes && low_water::set(socket.as_fd(), bytes).is_ok() {
            self.bytes = bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn who_sends_steadily_is_waited_for_longer() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        let socket = TcpStream::connect(listener.local_addr().expect("has an address")).expect("connects");
        let socket = OwnedFd::from(socket);
        let mut mark = LowWater::default();
        for (received, missing, bytes) in [
            (STEADY_FROM, 1 << 21, BYTES_MAX),
            (0, 1 << 21, BYTES_MAX),
            (STEADY_FROM, 1000, 1000),
            (0, 10, 10),
            (STEADY_FROM - 1, 1 << 20, 1),
            (STEADY_FROM, 0, 1),
        ] {
            mark.after(&socket, received, missing);
            assert_eq!(mark, LowWater { bytes }, "{received} came, {missing} are missing");
        }
        mark.after(&socket, STEADY_FROM, 5000);
        assert!(mark.reset(&socket));
        assert_eq!(mark, LowWater::default());
        assert!(!mark.reset(&socket));
    }
}
