//! The logs of COMMANDLOG: the last commands that took long (the slow log), and those with large requests and replies.

use crate::args::Args;
use crate::clients::Client;
use crate::clock::monotonic_ns;
use crate::engine::Engine;
use crate::high_water::HighWater;
use crate::worker::Worker;
use parking_lot::Mutex;
use std::collections::VecDeque;

/// Most arguments of an entry, as in Redis.
const ARGS_MAX: usize = 32;
/// Most bytes of an argument, as in Redis.
const ARG_LEN_MAX: usize = 128;

/// A command in a log.
#[derive(Clone, Debug)]
pub struct LoggedCommand {
    /// Its number in the log.
    pub id: u64,
    /// When it ran, in seconds since the UNIX epoch.
    pub at_seconds: u64,
    /// For what it is in the log: microseconds, or bytes.
    pub amount: u64,
    /// Its arguments, shortened.
    pub args: Vec<Vec<u8>>,
    /// The client's address.
    pub remote: String,
    /// The client's name.
    pub name: String,
}

#[derive(Debug, Default)]
struct Log {
    next_id: u64,
    entries: VecDeque<LoggedCommand>,
    most: HighWater,
}

/// The log.
#[derive(Debug, Default)]
pub struct CommandLog(Mutex<Log>);

impl CommandLog {
    /// Adds a command, keeping the last `max_len`. The arguments at `secrets` are not shown.
    pub fn add(&self, now_ms: u64, amount: u64, args: &Args<'_>, secrets: &[usize], client: &Client, max_len: u64) {
        let shown = if args.len() > ARGS_MAX { ARGS_MAX - 1 } else { args.len() };
        let show = |index| if secrets.contains(&index) { b"(redacted)".to_vec() } else { shorten(args, index) };
        let mut words: Vec<Vec<u8>> = (0..shown).map(show).collect();
        if args.len() > ARGS_MAX {
            words.push(format!("... ({} more arguments)", args.len() - shown).into_bytes());
        }
        let log = &mut *self.0.lock();
        let id = log.next_id;
        log.next_id += 1;
        log.entries.push_front(LoggedCommand {
            id,
            at_seconds: now_ms / 1_000,
            amount,
            args: words,
            remote: client.info.remote.clone(),
            name: client.name.lock().clone(),
        });
        log.most.truncate(&mut log.entries, usize::try_from(max_len).unwrap_or(usize::MAX));
    }

    /// The last `count` commands, newest first.
    pub fn last(&self, count: usize) -> Vec<LoggedCommand> {
        self.0.lock().entries.iter().take(count).cloned().collect()
    }

    /// How many commands are logged.
    pub fn len(&self) -> usize {
        self.0.lock().entries.len()
    }

    /// Whether none is logged.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets them.
    pub fn clear(&self) {
        let log = &mut *self.0.lock();
        log.most.truncate(&mut log.entries, 0);
    }
}

fn shorten(args: &Args<'_>, index: usize) -> Vec<u8> {
    let len = args.len_of(index);
    if len <= ARG_LEN_MAX {
        return args.get(index).to_vec();
    }
    // A long argument that is in chunks is not made one piece for the log.
    let mut word = match args.big(index) {
        Some(_) => Vec::new(),
        None => args.get(index)[..ARG_LEN_MAX].to_vec(),
    };
    word.extend_from_slice(format!("... ({} more bytes)", len - word.len()).as_bytes());
    word
}

/// Which requests of another protocol have their time taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    /// None.
    None,
    /// Those that may take long: nobody asks for what the others take.
    Long,
    /// All.
    All,
}

impl Timed {
    /// Whether a request has its time taken.
    #[inline]
    pub fn is_timed(self, may_be_long: bool) -> bool {
        match self {
            Timed::None => false,
            Timed::Long => may_be_long,
            Timed::All => true,
        }
    }
}

/// Microseconds that only a request which does much takes.
const LONG_US: i64 = 1_000;

impl Engine {
    /// Which requests of another protocol have their time taken now.
    #[inline]
    pub fn timed_requests(&self) -> Timed {
        match self.config.slowlog_log_slower_than() {
            0..LONG_US => Timed::All,
            threshold if threshold >= LONG_US || self.config.latency_monitor_threshold() > 0 => Timed::Long,
            _ => Timed::None,
        }
    }

    /// Tells the latency monitor how long such a request took that began at `started_ns`; gives its microseconds when they
    /// are to be logged with [`Engine::log_slow_request`].
    pub fn slow_request_us(&self, worker: &Worker, started_ns: u64) -> Option<u64> {
        let took_us = monotonic_ns().saturating_sub(started_ns) / 1_000;
        let threshold_ms = self.config.latency_monitor_threshold();
        self.latency.note("command", took_us / 1_000, threshold_ms, worker.clock.now_ms);
        let threshold_us = self.config.slowlog_log_slower_than();
        (threshold_us >= 0 && took_us >= threshold_us as u64).then_some(took_us)
    }

    /// Logs a command that took so long if the slow log wants such; the arguments at `secrets` are not shown.
    pub(crate) fn note_if_slow(&self, now_ms: u64, took_us: u64, args: &Args<'_>, secrets: &[usize], client: &Client) {
        let threshold_us = self.config.slowlog_log_slower_than();
        if threshold_us >= 0 && took_us >= threshold_us as u64 {
            self.slowlog.add(now_ms, took_us, args, secrets, client, self.config.slowlog_max_len());
        }
    }

    /// Logs such a request as slow.
    pub fn log_slow_request(&self, worker: &Worker, client: &Client, words: &Args<'_>, took_us: u64) {
        self.slowlog.add(worker.clock.now_ms, took_us, words, &[], client, self.config.slowlog_max_len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::OwnedArgs;
    use crate::clients::{ClientInfo, Clients, ConnectionKey, Dialect};
    use std::sync::Arc;

    fn client() -> Arc<Client> {
        let info = ClientInfo {
            key: ConnectionKey { worker: 0, index: 0, generation: 0 },
            dialect: Dialect::Resp,
            remote: "127.0.0.1:5".to_owned(),
            local: "127.0.0.1:6379".to_owned(),
            fd: 3,
            unix: false,
        };
        Clients::default().add(info, 0)
    }

    #[test]
    fn the_room_of_a_long_log_goes_with_it() {
        const ENTRIES: u64 = 10_000;
        let (client, args) = (client(), OwnedArgs::new(["PING"]));
        let log = CommandLog::default();
        let add = |times, max_len| (0..times).for_each(|_| log.add(0, 1, &args.view(), &[], &client, max_len));
        let room = || log.0.lock().entries.capacity();
        add(ENTRIES, ENTRIES);
        assert!(room() >= ENTRIES as usize);
        add(1, 10);
        assert!(log.len() == 10 && room() < 100, "{}", room());
        add(ENTRIES, ENTRIES);
        log.clear();
        assert!(log.is_empty() && room() < 100, "{}", room());
    }

    #[test]
    fn secrets_are_not_shown() {
        let (client, log) = (client(), CommandLog::default());
        let args = OwnedArgs::new(["HELLO", "3", "AUTH", "default", "s3cret"]);
        // An index beyond the arguments is one of a command that ran within EXEC.
        log.add(0, 1, &args.view(), &[3, 4, 9], &client, 10);
        let shown = &log.last(1)[0].args;
        assert_eq!(*shown, [&b"HELLO"[..], b"3", b"AUTH", b"(redacted)", b"(redacted)"]);
    }
}
