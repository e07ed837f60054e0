//! The log of what was refused: to whom, why, and how often. Knows no rule.

use super::denial::{Context, Reason};
use crate::high_water::HighWater;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

/// An entry within this many milliseconds of an alike one is counted with that.
const ALIKE_MS_MAX: u64 = 60_000;
/// So many of the latest entries are looked at for an alike one.
const ALIKE_LOOKED_AT: usize = 10;

/// Something that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Its number in the log.
    pub id: u64,
    /// How often, with all that were alike.
    pub count: u64,
    /// Why.
    pub reason: Reason,
    /// From where the command came.
    pub context: Context,
    /// The command, key or channel.
    pub object: Vec<u8>,
    /// The user, or who the client said it was.
    pub user: Vec<u8>,
    /// The client at the last time, as CLIENT LIST shows it.
    pub client: String,
    /// The first time, in milliseconds since the UNIX epoch.
    pub created_ms: u64,
    /// The last time, in milliseconds since the UNIX epoch.
    pub updated_ms: u64,
}

impl LogEntry {
    fn is_like(&self, other: &LogEntry) -> bool {
        self.reason == other.reason
            && self.context == other.context
            && self.object == other.object
            && self.user == other.user
            && other.updated_ms.abs_diff(self.updated_ms) <= ALIKE_MS_MAX
    }
}

#[derive(Debug, Default)]
struct Log {
    next_id: u64,
    /// The latest first.
    entries: VecDeque<LogEntry>,
    most: HighWater,
}

/// The log.
#[derive(Debug, Default)]
pub struct AclLog {
    log: Mutex<Log>,
    counts: [AtomicU64; Reason::ALL.len()],
}

impl AclLog {
    /// Adds an entry, with an alike one if there is one, and keeps the last `max_len`. The entry's number is given
    /// here.
    pub(super) fn add(&self, entry: LogEntry, max_len: usize) {
        self.counts[entry.reason as usize].fetch_add(1, Ordering::Relaxed);
        let log = &mut *self.log.lock();
        let alike = log.entries.iter().take(ALIKE_LOOKED_AT).position(|known| known.is_like(&entry));
        let latest = match alike.and_then(|index| log.entries.remove(index)) {
            Some(known) => {
                LogEntry { count: known.count + 1, client: entry.client, updated_ms: entry.updated_ms, ..known }
            }
            None => {
                log.next_id += 1;
                LogEntry { id: log.next_id - 1, ..entry }
            }
        };
        log.entries.push_front(latest);
        log.most.truncate(&mut log.entries, max_len);
    }

    /// The latest entries, the last one first.
    pub fn last(&self, count: usize) -> Vec<LogEntry> {
        self.log.lock().entries.iter().take(count).cloned().collect()
    }

    /// Forgets all entries; their numbers go on.
    pub fn clear(&self) {
        let log = &mut *self.log.lock();
        log.most.truncate(&mut log.entries, 0);
    }

    /// How often something was refused for this reason, since the start.
    pub fn count(&self, reason: Reason) -> u64 {
        self.counts[reason as usize].load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(object: &str, at_ms: u64) -> LogEntry {
        LogEntry {
            id: 0,
            count: 1,
            reason: Reason::Key,
            context: Context::TopLevel,
            object: object.into(),
            user: b"u".to_vec(),
            client: format!("at {at_ms}"),
            created_ms: at_ms,
            updated_ms: at_ms,
        }
    }

    fn shown(log: &AclLog) -> Vec<String> {
        let show = |entry: LogEntry| {
            let object = String::from_utf8(entry.object).unwrap();
            format!(
                "{} {object} x{} {}..{} {}",
                entry.id, entry.count, entry.created_ms, entry.updated_ms, entry.client
            )
        };
        log.last(usize::MAX).into_iter().map(show).collect()
    }

    #[test]
    fn alike_entries_are_counted_together() {
        let log = AclLog::default();
        log.add(entry("a", 1_000), 128);
        log.add(entry("b", 2_000), 128);
        log.add(entry("a", 61_000), 128);
        assert_eq!(shown(&log), ["0 a x2 1000..61000 at 61000", "1 b x1 2000..2000 at 2000"]);
        log.add(LogEntry { user: b"v".to_vec(), ..entry("a", 61_000) }, 128);
        log.add(LogEntry { context: Context::Lua, ..entry("a", 61_000) }, 128);
        log.add(LogEntry { reason: Reason::Command, ..entry("a", 61_000) }, 128);
        log.add(entry("a", 121_001), 128);
        assert_eq!(shown(&log).len(), 6, "{:?}", shown(&log));
        assert_eq!((log.count(Reason::Key), log.count(Reason::Command), log.count(Reason::Auth)), (6, 1, 0));
    }

    #[test]
    fn the_latest_are_kept_and_numbers_go_on() {
        let log = AclLog::default();
        ["a", "b", "c", "d"].iter().for_each(|object| log.add(entry(object, 0), 2));
        assert_eq!(shown(&log), ["3 d x1 0..0 at 0", "2 c x1 0..0 at 0"]);
        log.clear();
        assert_eq!(shown(&log), [""; 0]);
        log.add(entry("e", 0), 2);
        assert_eq!(log.last(1)[0].id, 4);
        log.add(entry("f", 0), 0);
        assert_eq!(shown(&log), [""; 0]);
        for number in 0..12 {
            log.add(entry(&number.to_string(), 0), 128);
        }
        log.add(entry("1", 0), 128);
        assert_eq!(log.last(1)[0].count, 1, "only the latest ten are looked at");
    }

    #[test]
    fn the_room_of_a_long_log_goes_with_it() {
        const ENTRIES: usize = 10_000;
        let log = AclLog::default();
        let add = |times: usize, max_len| (0..times).for_each(|number| log.add(entry(&number.to_string(), 0), max_len));
        let room = || log.log.lock().entries.capacity();
        add(ENTRIES, ENTRIES);
        assert!(room() >= ENTRIES);
        add(1, 10);
        assert!(shown(&log).len() == 10 && room() < 100, "{}", room());
        add(ENTRIES, ENTRIES);
        log.clear();
        assert!(shown(&log).is_empty() && room() < 100, "{}", room());
    }
}
