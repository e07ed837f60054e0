//! One client's wait: for what, with which command, and how it ends. Knows no command by name.

use super::timeout::Timeout;
use crate::acl::User;
use crate::args::OwnedArgs;
use crate::clients::Client;
use crate::command::Effect;
use crate::errors::CmdError;
use crate::table::Resolved;
use parking_lot::Mutex;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tenon_store::types::ValueType;
use tenon_wire::OutBuf;
use tenon_wire::resp::{Proto, Reply};

/// There is no log in which a client's writes could get on disk.
pub(crate) const NO_LOG: CmdError =
    CmdError::text("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.");

/// What a command that may wait came to.
#[derive(Debug)]
pub enum Outcome {
    /// It is done, and has replied.
    Done(Effect),
    /// It has found nothing and replied nothing; nor has it changed anything, but that XREADGROUP makes its consumer
    /// known when it comes.
    Wait(Wait),
}

/// What a command waits for.
#[derive(Debug)]
pub struct Wait {
    pub(crate) timeout: Timeout,
    /// Which arguments are the keys.
    pub(crate) keys: Range<usize>,
    /// What a key must hold for the command to be run again.
    pub(crate) wanted: ValueType,
    /// Whether it is run again, too, when a key is gone or holds another type.
    pub(crate) wakes_without: bool,
    /// After how many milliseconds it is run again in any case, although nothing has changed.
    pub(crate) again_in_ms: Option<u64>,
    pub(crate) refusal: Refusal,
    pub(crate) args: Option<OwnedArgs>,
}

/// What a command replies that may not wait and has found nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Null,
    NullArray,
}

impl Wait {
    /// To wait until one of the keys, which are these arguments, holds a value of this type.
    pub fn new(timeout: Timeout, keys: Range<usize>, wanted: ValueType) -> Wait {
        Wait { timeout, keys, wanted, wakes_without: false, again_in_ms: None, refusal: Refusal::NullArray, args: None }
    }

    /// Where it may not wait, within MULTI, it replies with no value instead of no array.
    pub fn or_null(mut self) -> Wait {
        self.refusal = Refusal::Null;
        self
    }

    /// It is also run again when a key has gone or holds another type; then it ends with an error, or waits on.
    pub fn until_gone(mut self) -> Wait {
        self.wakes_without = true;
        self
    }

    /// It is also run again after so many milliseconds: what it wants may come with time alone.
    pub fn again_in_ms(mut self, ms: u64) -> Wait {
        self.again_in_ms = Some(ms);
        self
    }

    /// It is run again with these arguments, as many and with the same keys, since some stood for what was there when
    /// it came (`$`).
    pub fn with_args(mut self, args: OwnedArgs) -> Wait {
        self.args = Some(args);
        self
    }

    /// What it replies where it may not wait.
    pub(crate) fn refuse(&self, reply: &mut Reply<'_>) {
        match self.refusal {
            Refusal::Null => reply.null(),
            Refusal::NullArray => reply.null_array(),
        }
    }
}

/// What is replied when a wait ends that nothing was found for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InVain {
    /// No array.
    NullArray,
    /// How many copies of its writes there are elsewhere (WAIT).
    Copies,
    /// Whether its writes are on disk here, up to this position of the log, and how many copies there are elsewhere
    /// (WAITAOF).
    OnDisk(u64),
}

/// How a wait ends that nothing was found for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The time is over, or what it waits for is on disk; tells whether it is.
    Timeout {
        /// Whether the client's writes are on disk.
        on_disk: bool,
    },
    /// There is no log any more that it waits for.
    NoLog,
    /// Somebody wants it to end with an error (CLIENT UNBLOCK).
    Error,
    /// The client is gone.
    Gone,
}

/// A client that waits.
pub(crate) struct Waiter {
    pub(super) client: Arc<Client>,
    /// Its place among all waiters: lower ones have waited longer.
    pub(super) ticket: u64,
    pub(super) resolved: Resolved,
    pub(super) database: usize,
    pub(super) proto: Proto,
    pub(super) touches: bool,
    /// Whose rights are looked at again when the command is.
    pub(super) user: Arc<User>,
    pub(super) keys: Range<usize>,
    /// Shards that its command changes beside that of the key which it is served for, such as BLMOVE's destination's.
    pub(super) further: Box<[usize]>,
    pub(super) wanted: ValueType,
    pub(super) wakes_without: bool,
    /// Whether its client is told when what the command reads changes (CLIENT TRACKING).
    pub(super) is_told: bool,
    pub(super) in_vain: InVain,
    /// When it ends by itself, in nanoseconds of the monotonic clock.
    pub(super) end_ns: Option<u64>,
    /// When it is looked at again although nothing has changed, in nanoseconds of the monotonic clock; `u64::MAX` for
    /// never.
    pub(super) again_ns: AtomicU64,
    /// Decides who ends the wait. Taken after shards' locks, and no other lock is taken under it but theirs, held
    /// already.
    pub(super) state: Mutex<State>,
}

/// How far a wait has come.
#[derive(Debug)]
pub(super) enum State {
    /// It goes on.
    Waiting(OwnedArgs),
    /// It is over; this is to be sent.
    Ended(OutBuf),
}

impl fmt::Debug for Waiter {
    /// Without the client, which refers back to its wait.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiter").field("ticket", &self.ticket).field("client", &self.client.id).finish_non_exhaustive()
    }
}

impl Waiter {
    /// Its place among all waiters: lower ones have waited longer.
    pub(crate) fn ticket(&self) -> u64 {
        self.ticket
    }

    /// Shards that serving it needs beside that of the key.
    pub(crate) fn further(&self) -> &[usize] {
        &self.further
    }

    /// Whether it is also looked at when a key has gone.
    pub(crate) fn wakes_without(&self) -> bool {
        self.wakes_without
    }

    /// Whether something may still be taken for it.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.client.killed.load(Ordering::Acquire) && matches!(*self.state.lock(), State::Waiting(_))
    }

    /// Whether it is to be looked at when its key holds this type, or nothing.
    pub(super) fn wakes_for(&self, found: Option<ValueType>) -> bool {
        found == Some(self.wanted) || self.wakes_without
    }

    /// What it is waiting for.
    pub(crate) fn wanted(&self) -> ValueType {
        self.wanted
    }

    /// Ends the wait without anything found; tells whether it was still going on.
    pub(super) fn end(&self, ending: Ending) -> bool {
        let mut state = self.state.lock();
        if !matches!(*state, State::Waiting(_)) {
            return false;
        }
        let mut out = OutBuf::new();
        let mut reply = Reply::new(&mut out, self.proto);
        match ending {
            Ending::Timeout { on_disk } => match self.in_vain {
                InVain::NullArray => reply.null_array(),
                InVain::Copies => reply.int(0),
                InVain::OnDisk(_) => {
                    reply.array(2);
                    reply.int(on_disk.into());
                    reply.int(0);
                }
            },
            Ending::NoLog => reply.error(NO_LOG.to_string()),
            Ending::Error => reply.error("UNBLOCKED client unblocked via CLIENT UNBLOCK"),
            Ending::Gone => {}
        }
        *state = State::Ended(out);
        true
    }
}
