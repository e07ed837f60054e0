//! Which way moves the bytes: what was asked for, what the kernel has, what a trial has shown, and what is said about it.
//! Knows no way itself.

use super::trial::{Costs, compare};
use super::uring::Uring;

/// The way that is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// The one that a trial shows to cost less, where the kernel has io_uring; else epoll.
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

/// In a trial io_uring has to cost this much less than epoll to be taken, in percent: less may be chance.
const SAVING_MIN_PERCENT: u128 = 3;

/// Chooses, and says so in one line.
pub(super) fn choose(wanted: Wanted) -> Way {
    if wanted == Wanted::Epoll {
        tracing::info!("clients are served with epoll");
        return Way::Epoll;
    }
    let uring = match Uring::try_out() {
        Ok(uring) => uring,
        Err(error) => {
            let text = format!("clients are served with epoll: this system lets us have no io_uring ({error})");
            if wanted == Wanted::IoUring {
                tracing::warn!("{text}");
            } else {
                tracing::info!("{text}");
            }
            return Way::Epoll;
        }
    };
    if wanted == Wanted::IoUring {
        tracing::info!("clients are served with io_uring");
        return Way::IoUring;
    }
    match compare(uring) {
        Ok(costs) => {
            let way = cheaper(costs);
            let [epoll, io_uring] = [costs.epoll, costs.io_uring].map(|cost| cost.as_nanos() as f64 / 1e3);
            tracing::info!(
                "clients are served with {}: in a trial a request took {epoll:.2} us of CPU with epoll, {io_uring:.2} with io_uring",
                way.name()
            );
            way
        }
        Err(error) => {
            tracing::info!("clients are served with epoll: it could not be compared with io_uring ({error})");
            Way::Epoll
        }
    }
}

/// The way that costs clearly less; epoll if none does.
fn cheaper(costs: Costs) -> Way {
    if costs.io_uring.as_nanos() * 100 <= costs.epoll.as_nanos() * (100 - SAVING_MIN_PERCENT) {
        Way::IoUring
    } else {
        Way::Epoll
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn io_uring_is_taken_where_it_costs_clearly_less() {
        for (epoll, io_uring, way) in [
            (4120, 3750, Way::IoUring),
            (1000, 970, Way::IoUring),
            (1000, 971, Way::Epoll),
            (1000, 1000, Way::Epoll),
            (1000, 1500, Way::Epoll),
            // Nothing was measured.
            (0, 1, Way::Epoll),
        ] {
            let costs = Costs { epoll: Duration::from_nanos(epoll), io_uring: Duration::from_nanos(io_uring) };
            assert_eq!(cheaper(costs), way, "{costs:?}");
        }
    }

    #[test]
    fn epoll_is_never_refused() {
        assert_eq!(choose(Wanted::Epoll), Way::Epoll);
        // Whichever it is, there is one.
        choose(Wanted::Auto);
    }
}
