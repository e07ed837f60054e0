//! How much of a core whoever writes a snapshot may take from the workers, and for how long at a time. Knows no snapshot.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// With this niceness a thread gets about a tenth of a core that a busy worker wants too (a weight of 110 beside 1,024,
/// sched(7)), and all of one that nobody wants.
const NICENESS: i32 = 10;
/// How long it may work before who else wants the core is let in. The kernel looks whether a thread has had its turn when
/// its clock ticks, which is every 4 ms where it ticks 250 times a second: so long clients waited for a thread that had
/// nothing to do with them, and that was their 99th percentile. It is the least that Linux takes for a turn.
const TURN: Duration = Duration::from_micros(100);

/// Whether the system would end the process for it.
static IS_DEADLY: AtomicBool = AtomicBool::new(false);

/// Finds out whether the system lets a thread leave the cores to others. `false`: it would end the process, and no thread
/// asks for it from now on. To be called before there is data.
pub fn may_yield() -> bool {
    let is_deadly = tenon_ds::turn_length::is_deadly();
    IS_DEADLY.store(is_deadly, Ordering::Relaxed);
    !is_deadly
}

/// Has the calling thread leave the cores to the workers, for as long as it lives: clients are served first.
pub(crate) fn yield_to_workers() {
    if IS_DEADLY.load(Ordering::Relaxed) {
        return;
    }
    // On Linux niceness is a thread's own. Where it cannot be set, the snapshot is there sooner and clients wait longer.
    if tenon_ds::turn_length::set(NICENESS, TURN).is_err() {
        let _ = rustix::process::setpriority_process(None, NICENESS);
    }
}

/// The turns of a thread that works for long.
#[derive(Debug)]
pub(super) struct Turns {
    began: Instant,
}

impl Turns {
    pub(super) fn begin() -> Turns {
        Turns { began: Instant::now() }
    }

    /// Lets in whoever else wants the core, if the thread has worked for its turn. It holds no lock.
    #[inline]
    pub(super) fn end_if_over(&mut self) {
        if self.began.elapsed() >= TURN {
            std::thread::yield_now();
            self.began = Instant::now();
        }
    }
}
