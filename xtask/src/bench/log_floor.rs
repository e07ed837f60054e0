//! What writing a log costs at least on a disk: as many bytes as a server wrote, in as many writes and with as many syncs,
//! and nothing else. Knows no server and no record.

use super::measure;
use super::placement::pin_this_thread;
use anyhow::{Context as _, Result};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// What was written to a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// In all.
    pub bytes: u64,
    /// Calls that wrote.
    pub writes: u64,
    /// Calls that synced.
    pub syncs: u64,
}

impl Written {
    /// What was written since.
    pub fn since(self, before: Written) -> Written {
        Written {
            bytes: self.bytes.saturating_sub(before.bytes),
            writes: self.writes.saturating_sub(before.writes),
            syncs: self.syncs.saturating_sub(before.syncs),
        }
    }

    /// How many syncs were made behind the first `writes` writes, spread evenly.
    fn syncs_behind(self, writes: u64) -> u64 {
        (u128::from(self.syncs) * u128::from(writes) / u128::from(self.writes.max(1))) as u64
    }
}

/// The CPU time of a thread on these cores that writes the same to a new file in `directory`.
pub fn cpu_time(directory: &Path, written: Written, cores: &[usize]) -> Result<Duration> {
    let path = directory.join("floor");
    let run = || -> Result<Duration> {
        pin_this_thread(cores)?;
        let mut file = OpenOptions::new().append(true).create_new(true).open(&path)?;
        let piece = vec![b'x'; usize::try_from(written.bytes / written.writes.max(1))?];
        let before = measure::own_thread_cpu_time();
        for write in 0..written.writes {
            file.write_all(&piece)?;
            for _ in written.syncs_behind(write)..written.syncs_behind(write + 1) {
                file.sync_data()?;
            }
        }
        Ok(measure::own_thread_cpu_time().saturating_sub(before))
    };
    let taken = std::thread::scope(|scope| scope.spawn(run).join().expect("nothing panics in it"));
    // One that was not made leaves nothing to remove.
    let _ = std::fs::remove_file(&path);
    taken.with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syncs_are_spread_over_the_writes() {
        let written = Written { bytes: 70, writes: 7, syncs: 3 };
        let syncs: Vec<u64> = (0..=7).map(|writes| written.syncs_behind(writes)).collect();
        assert_eq!(syncs, [0, 0, 0, 1, 1, 2, 2, 3]);
        let each = Written { syncs: 7, ..written };
        assert_eq!(each.syncs_behind(5), 5);
        assert_eq!(each.since(written), Written { bytes: 0, writes: 0, syncs: 4 });
    }
}
