//! How long a sync waits for those who were answered by the last one. Knows no file, and no clock but through its caller.
//!
//! Clients that wait for their replies come in rounds: while some wait for a sync, others are answered and send anew.
//! Were the next sync to begin at once, it would have only those who came during the last one, and the same clients
//! would go on in two groups that take turns. So the next sync waits until as many records are there as were answered
//! or waited before, for a few times what a sync takes, and for less when they did not come the last time.

use std::time::Duration;

/// Below this it is not worth waiting.
const ROUND_MIN: u64 = 4;
/// The clients of a fast disk are worth this much.
const WAIT_MIN: Duration = Duration::from_micros(300);
const WAIT_MAX: Duration = Duration::from_millis(2);
/// As long as all that are expected do come, it is worth so many times a sync's time: a sync of a fast disk takes less
/// than a round of clients, and costs the processor as much as dozens of their requests.
const PATIENCE_MAX: u32 = 4;

/// What is known of the syncs so far.
#[derive(Debug)]
pub(super) struct GroupCommit {
    /// What a sync takes, as a moving average.
    sync_time: Duration,
    /// Records there were when the last sync ended.
    expected: u64,
    /// Records that the last sync covered, or which waited behind it.
    round: u64,
    /// Records before the last sync's own.
    covered: u64,
    /// How many times a sync's time it is worth to wait: less where those who were expected stayed away.
    patience: u32,
}

impl Default for GroupCommit {
    fn default() -> GroupCommit {
        GroupCommit { sync_time: Duration::ZERO, expected: 0, round: 0, covered: 0, patience: PATIENCE_MAX }
    }
}

impl GroupCommit {
    /// Notes a sync that covered the first `covered` records, with `all` there at its end.
    pub(super) fn synced(&mut self, covered: u64, all: u64, took: Duration) {
        self.sync_time = if self.sync_time.is_zero() { took } else { (self.sync_time * 7 + took) / 8 };
        let have_come = covered >= self.expected;
        self.patience = if have_come { (self.patience * 2).min(PATIENCE_MAX) } else { (self.patience / 2).max(1) };
        let answered = covered - self.covered;
        self.round = all - self.covered;
        self.expected = all + answered;
        self.covered = covered;
    }

    /// How long it is worth to wait at most for more records than there are.
    pub(super) fn patience(&self, all: u64) -> Option<Duration> {
        let waits = self.round >= ROUND_MIN && all < self.expected;
        waits.then(|| (self.sync_time * self.patience).clamp(WAIT_MIN, WAIT_MAX))
    }

    /// How many records there are when all are back.
    pub(super) fn expected(&self) -> u64 {
        self.expected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: Duration = Duration::from_millis(4);

    #[test]
    fn two_groups_become_one() {
        let mut commits = GroupCommit::default();
        assert_eq!(commits.patience(1), None, "nothing is known yet");
        // One record was first; 49 came meanwhile.
        commits.synced(1, 50, SYNC);
        assert_eq!(commits.patience(50), Some(WAIT_MAX));
        assert_eq!(commits.expected(), 51);
        // The first client is back: all 50 are in one sync, and in the next.
        commits.synced(51, 51, SYNC);
        assert_eq!(commits.expected(), 101);
    }

    #[test]
    fn who_stays_away_is_not_waited_for_long() {
        let (mut commits, sync) = (GroupCommit::default(), WAIT_MIN);
        commits.synced(10, 20, sync);
        assert_eq!(commits.patience(20), Some(WAIT_MIN * 4));
        // Thirty were expected.
        commits.synced(25, 35, sync);
        assert_eq!(commits.patience(35), Some(WAIT_MIN * 2));
        commits.synced(40, 50, sync);
        commits.synced(55, 65, sync);
        assert_eq!(commits.patience(65), Some(WAIT_MIN));
        // All of them are back.
        commits.synced(80, 80, sync);
        assert_eq!(commits.patience(90), Some(WAIT_MIN * 2));
    }

    #[test]
    fn who_is_alone_does_not_wait() {
        let mut commits = GroupCommit::default();
        commits.synced(1, 1, SYNC);
        assert_eq!(commits.patience(2), None);
        commits.synced(2, 3, SYNC);
        assert_eq!(commits.patience(3), None);
    }
}
