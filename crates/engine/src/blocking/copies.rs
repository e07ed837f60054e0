//! Clients that wait until their writes are safe: on disk, in the append-only file. There are no replicas, so nobody ever has
//! a copy. Knows no command by name, and no file.

use super::timeout::Timeout;
use super::waiter::{Ending, InVain, NO_LOG, State, Waiter};
use crate::args::Args;
use crate::batch::Target;
use crate::clients::Client;
use crate::clock::monotonic_ns;
use crate::context::SessionCx;
use crate::engine::Engine;
use crate::errors::CmdError;
use crate::worker::Worker;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tenon_store::types::ValueType;

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// Copies of its writes elsewhere.
    Elsewhere,
    /// Its writes on disk here, and copies elsewhere if it wants some.
    OnDisk {
        /// Whether it wants some: then it waits in vain.
        and_elsewhere: bool,
    },
}

impl Engine {
    /// Up to where the log has to be on disk for a client's writes to be; 0 when it has written nothing.
    fn written_by(&self, worker: &Worker, client: &Client) -> u64 {
        client.written.load(Ordering::Relaxed).max(worker.journaled)
    }

    /// Whether all that the session has written is on disk.
    ///
    /// # Errors
    /// When there is no log.
    pub fn is_on_disk(&self, cx: &SessionCx<'_>) -> Result<bool, CmdError> {
        let is_on_disk = self.is_log_on_disk(self.written_by(cx.worker, &cx.session.client)).ok_or(NO_LOG)?;
        // What a transaction or script has written is appended when it ends.
        Ok(is_on_disk && cx.worker.record.is_empty())
    }

    /// Whether a session may wait now: not within a transaction or script.
    pub fn may_wait(&self, cx: &SessionCx<'_>) -> bool {
        !cx.session.is_in_exec() && !cx.worker.runs_script
    }

    /// Parks a session until its writes are safe, or the time is over.
    pub fn wait_for_copies(&self, cx: &mut SessionCx<'_>, args: &Args<'_>, copies: Copies, timeout: Timeout) {
        let (Target::Other(resolved) | Target::Key(resolved, _)) = self.resolve(args) else {
            unreachable!("it is a command that runs")
        };
        let session = &mut *cx.session;
        let in_vain = match copies {
            Copies::Elsewhere => InVain::Copies,
            Copies::OnDisk { .. } => InVain::OnDisk(self.written_by(cx.worker, &session.client)),
        };
        let waiter = Arc::new(Waiter {
            client: Arc::clone(&session.client),
            ticket: self.blocking.tickets.fetch_add(1, Ordering::Relaxed),
            resolved,
            database: session.database,
            proto: session.proto,
            touches: session.touches,
            user: Arc::clone(session.user()),
            keys: 0..0,
            further: Box::default(),
            wanted: ValueType::String,
            wakes_without: false,
            is_told: false,
            in_vain,
            end_ns: timeout.end_ns(monotonic_ns()),
            again_ns: AtomicU64::new(u64::MAX),
            state: Mutex::new(State::Waiting(args.to_owned())),
        });
        if copies == (Copies::OnDisk { and_elsewhere: false }) {
            self.blocking.for_disk.lock().push(Arc::clone(&waiter));
            self.blocking.for_disk_len.fetch_add(1, Ordering::Release);
        }
        self.begin_wait(session, waiter);
    }

    /// How the time of a wait is over.
    pub(super) fn timeout_of(&self, waiter: &Waiter) -> Ending {
        let on_disk = match waiter.in_vain {
            InVain::OnDisk(position) => self.is_log_on_disk(position).unwrap_or(false),
            InVain::NullArray | InVain::Copies => false,
        };
        Ending::Timeout { on_disk }
    }

    /// Ends the waits of those whose writes are on disk by now, or who wait for a log that is none any more.
    #[inline]
    pub(crate) fn end_waits_for_disk(&self) {
        if self.blocking.for_disk_len.load(Ordering::Acquire) > 0 {
            self.look_at_waits_for_disk();
        }
    }

    #[cold]
    fn look_at_waits_for_disk(&self) {
        let all = std::mem::take(&mut *self.blocking.for_disk.lock());
        for waiter in all {
            let InVain::OnDisk(position) = waiter.in_vain else { unreachable!("only such wait for the disk") };
            if waiter.is_waiting() {
                match self.is_log_on_disk(position) {
                    Some(false) => {
                        self.blocking.for_disk.lock().push(waiter);
                        continue;
                    }
                    Some(true) => _ = self.end_wait(&waiter, Ending::Timeout { on_disk: true }),
                    None => {
                        if self.end_wait(&waiter, Ending::NoLog) {
                            self.count_error(NO_LOG.code());
                        }
                    }
                }
            }
            self.blocking.for_disk_len.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
