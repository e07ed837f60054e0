//! The limit on open files, raised for `maxclients`. Knows no socket.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors beside the clients': listeners, logs, files being written; Redis's number.
const RESERVED: u64 = 32;

/// What came of raising the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenFiles {
    /// There is room for all clients.
    Enough,
    /// The system gives no more than `limit` open files, room for `max_clients` clients.
    Only {
        /// The limit on open files that was reached.
        limit: u64,
        /// How many clients that leaves room for; fewer than asked for, possibly 0.
        max_clients: usize,
    },
}

/// Raises the limit on open files so that `max_clients` fit, as far as the system lets it.
pub fn raise_for(max_clients: usize) -> OpenFiles {
    let wanted = (max_clients as u64).saturating_add(RESERVED);
    let old = getrlimit(Resource::Nofile);
    let Some(current) = old.current.filter(|current| *current < wanted) else { return OpenFiles::Enough };
    // Root may go past the hard limit; others only up to it.
    let past = Rlimit { current: Some(wanted), maximum: old.maximum.map(|maximum| maximum.max(wanted)) };
    let limit = if setrlimit(Resource::Nofile, past).is_ok() {
        wanted
    } else {
        let up_to = Rlimit { current: old.maximum.map(|maximum| maximum.min(wanted)), maximum: old.maximum };
        match setrlimit(Resource::Nofile, up_to) {
            Ok(()) => up_to.current.unwrap_or(wanted),
            Err(_) => current,
        }
    };
    if limit >= wanted {
        OpenFiles::Enough
    } else {
        OpenFiles::Only { limit, max_clients: usize::try_from(limit.saturating_sub(RESERVED)).unwrap_or(usize::MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_already_changes_nothing_and_more_than_the_kernel_has_is_told() {
        assert_eq!(raise_for(1), OpenFiles::Enough);
        // fs.nr_open bounds even root.
        match raise_for(1 << 40) {
            OpenFiles::Only { limit, max_clients } => assert_eq!(max_clients as u64, limit - RESERVED),
            OpenFiles::Enough => panic!("2^40 files fit"),
        }
    }
}
