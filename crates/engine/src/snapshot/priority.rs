//! How much of a core whoever writes a snapshot may take from the workers. Knows no snapshot.

/// With this niceness a thread gets about a tenth of a core that a busy worker wants too (a weight of 110 beside 1,024,
/// sched(7)), and all of one that nobody wants.
const NICENESS: i32 = 10;

/// Has the calling thread leave the cores to the workers, for as long as it lives: clients are served first.
pub(crate) fn yield_to_workers() {
    // On Linux niceness is a thread's own. Where it cannot be set, the snapshot is there sooner and clients wait longer.
    let _ = rustix::process::setpriority_process(None, NICENESS);
}
