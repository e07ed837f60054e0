//! The limit on open files, raised for `maxclients`. Knows no socket.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fmt::{self, Display, Formatter};

/// Descriptors beside the clients', the workers' and the listeners': logs, files being written; Redis's number.
const RESERVED: u64 = 32;
/// Each worker has what it waits with and what it is woken by; with io_uring that twice, and each UDP socket once more.
const RESERVED_PER_WORKER: u64 = 3;

/// What descriptors are needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Threads with an event loop.
    pub workers: usize,
    /// Sockets that are listened on.
    pub listeners: usize,
    /// UDP sockets.
    pub datagrams: usize,
    /// Rings that other threads may have beside each worker's.
    pub more_rings: usize,
}

impl Needs {
    /// Descriptors that clients do not get.
    fn reserved(self) -> u64 {
        let per_worker = RESERVED_PER_WORKER + (self.datagrams + self.more_rings) as u64;
        RESERVED + per_worker * self.workers as u64 + (self.listeners + self.datagrams) as u64
    }
}

/// What came of raising the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenFiles {
    /// There is room for all clients.
    Enough,
    /// The system gives too few.
    Only(TooFew),
}

/// A limit that could not be raised far enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFew {
    /// The limit on open files that was reached.
    pub limit: u64,
    /// The one that was wanted.
    pub wanted: u64,
    /// How many clients the limit leaves room for; fewer than asked for, possibly 0.
    pub max_clients: u32,
}

impl Display for TooFew {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let TooFew { limit, wanted, .. } = self;
        write!(f, "{wanted} open files are needed, and the system allows {limit} ('ulimit -n')")
    }
}

/// Raises the limit on open files so that `max_clients` fit beside all else, as far as the system lets it.
pub fn raise_for(max_clients: u32, needs: Needs) -> OpenFiles {
    let wanted = u64::from(max_clients) + needs.reserved();
    let Some(current) = getrlimit(Resource::Nofile).current.filter(|current| *current < wanted) else {
        return OpenFiles::Enough;
    };
    if set(wanted) {
        return OpenFiles::Enough;
    }
    // How far the system goes has several bounds, not all of which can be asked for.
    let (mut limit, mut refused) = (current, wanted);
    while refused - limit > 1 {
        let middle = limit + (refused - limit) / 2;
        if set(middle) { limit = middle } else { refused = middle }
    }
    let max_clients = u32::try_from(limit.saturating_sub(needs.reserved())).unwrap_or(u32::MAX);
    OpenFiles::Only(TooFew { limit, wanted, max_clients })
}

/// Sets the limit; root may go past the hard limit, others up to it.
fn set(limit: u64) -> bool {
    let maximum = getrlimit(Resource::Nofile).maximum.map(|maximum| maximum.max(limit));
    setrlimit(Resource::Nofile, Rlimit { current: Some(limit), maximum }).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_already_changes_nothing_and_more_than_the_kernel_has_is_told() {
        let needs = Needs { workers: 16, listeners: 3, datagrams: 2, more_rings: 4 };
        assert_eq!(raise_for(1, needs), OpenFiles::Enough);
        // fs.nr_open bounds even root.
        match raise_for(u32::MAX, needs) {
            OpenFiles::Only(TooFew { limit, wanted, max_clients }) => {
                assert_eq!(u64::from(max_clients), limit - (32 + (3 + 2 + 4) * 16 + 3 + 2));
                assert_eq!(getrlimit(Resource::Nofile).current, Some(limit));
                assert_eq!(wanted, (1 << 32) - 1 + 181);
                assert_eq!(raise_for(max_clients, needs), OpenFiles::Enough);
                assert!(matches!(raise_for(max_clients + 1, needs), OpenFiles::Only(_)));
            }
            OpenFiles::Enough => panic!("2^32 files fit"),
        }
    }
}
