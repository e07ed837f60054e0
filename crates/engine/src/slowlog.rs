//! The slow log: the last commands that took longer than `slowlog-log-slower-than`.

use crate::args::Args;
use crate::clients::Client;
use parking_lot::Mutex;
use std::collections::VecDeque;

/// Most arguments of an entry, as in Redis.
const ARGS_MAX: usize = 32;
/// Most bytes of an argument, as in Redis.
const ARG_LEN_MAX: usize = 128;

/// A slow command.
#[derive(Clone, Debug)]
pub struct SlowCommand {
    /// Its number in the log.
    pub id: u64,
    /// When it ran, in seconds since the UNIX epoch.
    pub at_seconds: u64,
    /// How long, in microseconds.
    pub duration_us: u64,
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
    entries: VecDeque<SlowCommand>,
}

/// The log.
#[derive(Debug, Default)]
pub struct SlowLog(Mutex<Log>);

impl SlowLog {
    /// Adds a command, keeping the last `max_len`. The arguments at `secrets` are not shown.
    pub fn add(
        &self,
        now_ms: u64,
        duration_us: u64,
        args: &Args<'_>,
        secrets: &[usize],
        client: &Client,
        max_len: u64,
    ) {
        let shown = if args.len() > ARGS_MAX { ARGS_MAX - 1 } else { args.len() };
        let show = |index| if secrets.contains(&index) { b"(redacted)".to_vec() } else { shorten(args, index) };
        let mut words: Vec<Vec<u8>> = (0..shown).map(show).collect();
        if args.len() > ARGS_MAX {
            words.push(format!("... ({} more arguments)", args.len() - shown).into_bytes());
        }
        let mut log = self.0.lock();
        let id = log.next_id;
        log.next_id += 1;
        log.entries.push_front(SlowCommand {
            id,
            at_seconds: now_ms / 1_000,
            duration_us,
            args: words,
            remote: client.info.remote.clone(),
            name: client.name.lock().clone(),
        });
        log.entries.truncate(usize::try_from(max_len).unwrap_or(usize::MAX));
    }

    /// The last `count` commands, newest first.
    pub fn last(&self, count: usize) -> Vec<SlowCommand> {
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
        self.0.lock().entries.clear();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::OwnedArgs;
    use crate::clients::{ClientInfo, Clients, ConnectionKey, Dialect};

    #[test]
    fn secrets_are_not_shown() {
        let info = ClientInfo {
            key: ConnectionKey { worker: 0, index: 0, generation: 0 },
            dialect: Dialect::Resp,
            remote: "127.0.0.1:5".to_owned(),
            local: "127.0.0.1:6379".to_owned(),
            fd: 3,
            unix: false,
        };
        let client = Clients::default().add(info, 0);
        let log = SlowLog::default();
        let args = OwnedArgs::new(["HELLO", "3", "AUTH", "default", "s3cret"]);
        // An index beyond the arguments is one of a command that ran within EXEC.
        log.add(0, 1, &args.view(), &[3, 4, 9], &client, 10);
        let shown = &log.last(1)[0].args;
        assert_eq!(*shown, [&b"HELLO"[..], b"3", b"AUTH", b"(redacted)", b"(redacted)"]);
    }
}
