//! When the log has grown so much that it is rewritten without being asked. Knows no clock but through its caller.

/// The settings that say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// `auto-aof-rewrite-percentage`; 0 for never.
    pub percentage: u32,
    /// `auto-aof-rewrite-min-size`, in bytes.
    pub size_min: u64,
}

impl Growth {
    /// Whether a log of `size` bytes, which had `base_size` when it was rewritten or loaded, is to be rewritten.
    pub fn wants_rewrite(&self, size: u64, base_size: u64) -> bool {
        if self.percentage == 0 || size <= self.size_min {
            return false;
        }
        let base_size = base_size.max(1);
        let growth = (u128::from(size) * 100 / u128::from(base_size)).saturating_sub(100);
        growth >= u128::from(self.percentage)
    }
}

/// Rewrites that fail one after another wait longer and longer, so that no small increments pile up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restraint {
    delay_minutes: u64,
    not_before_s: Option<u64>,
}

/// From so many failures on.
const FAILURES_MIN: u64 = 3;
const DELAY_MAX_MINUTES: u64 = 60;

impl Restraint {
    /// Whether an automatic rewrite has to wait; `failures` were there one after another. When it begins to wait, it
    /// tells for how many minutes.
    pub fn holds_back(&mut self, failures: u64, now_s: u64) -> Option<u64> {
        if failures < FAILURES_MIN {
            *self = Restraint::default();
            return None;
        }
        match self.not_before_s {
            Some(at) if now_s < at => return Some(0),
            Some(_) => {
                self.not_before_s = None;
                return None;
            }
            None => {}
        }
        self.delay_minutes = (self.delay_minutes * 2).clamp(1, DELAY_MAX_MINUTES);
        self.not_before_s = Some(now_s + self.delay_minutes * 60);
        Some(self.delay_minutes)
    }
}

/// How long a rewrite that the log needs rests after it has failed so often in a row, in seconds: longer and longer, as each
/// attempt leaves a small increment behind until one succeeds. Not so long while writes are refused until then.
pub fn rest_s(failures: u64, are_writes_refused: bool) -> u64 {
    failures.clamp(1, if are_writes_refused { 5 } else { 60 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    #[test]
    fn logs_are_rewritten_when_they_have_grown() {
        let growth = Growth { percentage: 100, size_min: 64 * MB };
        assert!(!growth.wants_rewrite(64 * MB, 1), "too small");
        assert!(growth.wants_rewrite(64 * MB + 1, 0), "an empty base is as one of a byte");
        assert!(!growth.wants_rewrite(199 * MB, 100 * MB));
        assert!(growth.wants_rewrite(200 * MB, 100 * MB));
        assert!(!growth.wants_rewrite(80 * MB, 100 * MB), "it has become smaller");
        assert!(!Growth { percentage: 0, ..growth }.wants_rewrite(u64::MAX, 1));
        assert!(growth.wants_rewrite(u64::MAX, 1));
        assert!(!Growth { percentage: i32::MAX as u32, size_min: 0 }.wants_rewrite(1000, 100));
    }

    #[test]
    fn attempts_that_are_needed_rest_as_well() {
        assert_eq!([0, 1, 2, 5, 6, 60, 1_000].map(|failures| rest_s(failures, false)), [1, 1, 2, 5, 6, 60, 60]);
        assert_eq!([0, 1, 2, 5, 6, 60, 1_000].map(|failures| rest_s(failures, true)), [1, 1, 2, 5, 5, 5, 5]);
    }

    #[test]
    fn failures_make_it_wait() {
        let mut restraint = Restraint::default();
        assert_eq!(restraint.holds_back(2, 0), None);
        let mut now = 0;
        for minutes in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(restraint.holds_back(3, now), Some(minutes));
            assert_eq!(restraint.holds_back(3, now + minutes * 60 - 1), Some(0));
            now += minutes * 60;
            assert_eq!(restraint.holds_back(3, now), None, "one attempt");
        }
        assert_eq!(restraint.holds_back(0, now), None);
        assert_eq!(restraint.holds_back(3, now), Some(1));
    }
}
