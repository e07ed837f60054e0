//! Which way moves the bytes: what was asked for, what the kernel has, and what is said about it. Knows neither way itself.

use super::uring::Uring;

/// The way that is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// io_uring, where the kernel has it; else epoll.
    Auto,
    /// epoll.
    #[default]
    Epoll,
    /// io_uring; else epoll, with a warning.
    IoUring,
}

/// The way that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A call for each receive and each send.
    Epoll,
    /// One call for all of a turn.
    IoUring,
}

impl Way {
    /// The name that the kernel's documentation has for it.
    pub fn name(self) -> &'static str {
        match self {
            Way::Epoll => "epoll",
            Way::IoUring => "io_uring",
        }
    }
}

/// Chooses, and says so in one line.
pub(super) fn choose(wanted: Wanted) -> Way {
    let tried = match wanted {
        Wanted::Epoll => None,
        Wanted::Auto | Wanted::IoUring => Some(Uring::try_out()),
    };
    match (wanted, tried) {
        (_, Some(Ok(()))) => {
            tracing::info!("clients are served with io_uring");
            Way::IoUring
        }
        (Wanted::IoUring, Some(Err(error))) => {
            tracing::warn!("clients are served with epoll: this system lets us have no io_uring ({error})");
            Way::Epoll
        }
        (_, Some(Err(error))) => {
            tracing::info!("clients are served with epoll: this system lets us have no io_uring ({error})");
            Way::Epoll
        }
        (_, None) => {
            tracing::info!("clients are served with epoll");
            Way::Epoll
        }
    }
}
