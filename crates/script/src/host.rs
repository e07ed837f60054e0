//! What a script sees of the server: a few calls through a trait. Knows neither server nor command.

use scoped_tls_hkt::scoped_thread_local;
use tenon_wire::resp::Proto;
use tenon_wire::{OutBuf, Span};

/// The arguments of a command, as a script gives them, its name first.
#[derive(Debug, Default)]
pub struct Words {
    /// All of them, one behind the other.
    pub bytes: Vec<u8>,
    /// Where each lies in `bytes`.
    pub spans: Vec<Span>,
}

impl Words {
    /// Forgets the words; keeps the memory unless it is much.
    pub fn clear(&mut self) {
        const KEPT: usize = 64 * 1024;
        self.spans.clear();
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
        self.spans.shrink_to(KEPT);
    }

    /// Adds a word; `false`: all words together would be too long.
    #[must_use]
    pub fn push(&mut self, word: &[u8]) -> bool {
        let start = self.bytes.len();
        if start + word.len() > Span::REACH {
            return false;
        }
        self.bytes.extend_from_slice(word);
        self.spans.push(Span::bytes(start, word.len()));
        true
    }
}

/// Why a script has to end at once, whatever it would do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Somebody has killed it.
    Killed,
    /// It has changed nothing yet and is to be run again, with more locked.
    Restart,
    /// The library that is being loaded takes too long.
    LoadTimeout,
}

/// The levels of `redis.log`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// `redis.LOG_DEBUG`.
    Debug,
    /// `redis.LOG_VERBOSE`.
    Verbose,
    /// `redis.LOG_NOTICE`.
    Notice,
    /// `redis.LOG_WARNING`.
    Warning,
}

/// What becomes of what a script's commands change, beside the change itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// It is logged.
    #[default]
    Logged,
    /// Nobody is told.
    Withheld,
}

/// There is no such command, or it has another number of arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchCommand;

/// The server behind a script that runs.
pub trait Host {
    /// Runs a command and appends its one reply, an error too, to `reply`.
    ///
    /// # Errors
    /// When the script has to end instead.
    fn call(&mut self, words: &Words, proto: Proto, reply: &mut OutBuf) -> Result<(), Stop>;

    /// Whether the user may run a command.
    ///
    /// # Errors
    /// When there is no such command.
    fn may_call(&mut self, words: &Words) -> Result<bool, NoSuchCommand>;

    /// Sets what becomes of what the script changes from now on. A host that logs nothing has nothing to do.
    fn propagate(&mut self, propagation: Propagation) {
        let _ = propagation;
    }

    /// Writes a line to the server's log.
    fn log(&mut self, level: LogLevel, text: &[u8]);

    /// The most bytes that a script's result may have as a reply; asked for a long one alone.
    fn reply_max(&self) -> usize {
        usize::MAX
    }

    /// Called every so often while a script runs.
    ///
    /// # Errors
    /// When the script has to end.
    fn interrupt(&mut self) -> Result<(), Stop>;
}

scoped_thread_local!(
    /// The server behind the script that runs on this thread. Lua's callbacks live as long as their state does, the
    /// host only as long as the run: so they find it here.
    pub(crate) static mut HOST: for<'a> &'a mut (dyn Host + 'a)
);
