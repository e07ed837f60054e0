//! Work that must be done in order, by one worker when it ticks: what it allocates is its own then, and it serves its
//! clients in between. Whoever brings the work does it where no worker comes. Knows not what the work is.

use crate::engine::Engine;
use crate::worker::Worker;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::time::Duration;

/// Pieces that wait at most.
const WAITING_MAX: usize = 8;

/// A piece of work.
pub(super) type Turn = Box<dyn FnOnce(&Engine, &mut Worker) + Send>;

/// Work that waits.
#[derive(Default)]
pub(super) struct Turns {
    waiting: Mutex<VecDeque<Turn>>,
    /// Held while a piece is taken and done, so that the order stays.
    doing: Mutex<()>,
    /// A piece has come, or one is done.
    changed: Condvar,
}

impl Turns {
    /// Puts a piece behind the others; gives it back when there was no room for so long.
    pub(super) fn offer(&self, turn: Turn, patience: Duration) -> Result<(), Turn> {
        let mut waiting = self.waiting.lock();
        if waiting.len() >= WAITING_MAX {
            self.changed.wait_for(&mut waiting, patience);
        }
        if waiting.len() >= WAITING_MAX {
            return Err(turn);
        }
        waiting.push_back(turn);
        drop(waiting);
        self.changed.notify_all();
        Ok(())
    }

    /// Does the next piece, if one comes within this time; tells whether one did.
    pub(super) fn do_next(&self, engine: &Engine, worker: &mut Worker, patience: Duration) -> bool {
        let _in_order = self.doing.lock();
        let next = {
            let mut waiting = self.waiting.lock();
            if waiting.is_empty() && !patience.is_zero() {
                self.changed.wait_for(&mut waiting, patience);
            }
            waiting.pop_front()
        };
        let Some(turn) = next else { return false };
        turn(engine, worker);
        self.changed.notify_all();
        true
    }

    /// Waits until everything is done; does it itself where nobody comes within this time.
    pub(super) fn finish(&self, engine: &Engine, worker: &mut Worker, patience: Duration) {
        loop {
            {
                let mut waiting = self.waiting.lock();
                if !waiting.is_empty() && !patience.is_zero() {
                    self.changed.wait_for(&mut waiting, patience);
                }
            }
            if !self.do_next(engine, worker, Duration::ZERO) {
                // Nothing waited, and whoever did the last piece has let go.
                return;
            }
        }
    }
}
