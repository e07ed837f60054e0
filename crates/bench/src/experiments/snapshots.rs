//! Snapshots that a server takes one after another while a load runs. Knows not what is measured.

use crate::machine::placement;
use crate::target::Target;
use anyhow::{Context, Result, anyhow, bail};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use tenon_client::{Resp, Value};

/// How often it is asked whether a snapshot is done.
const LOOK: Duration = Duration::from_millis(10);

/// A reply that does not come for so long never does.
const PATIENCE: Duration = Duration::from_secs(60);

/// When snapshots were being taken.
#[derive(Debug)]
pub struct Snapshots(Vec<Range<Instant>>);

impl Snapshots {
    /// Runs a load that tells how long it lasted up to its end, and meanwhile has the server take one snapshot after
    /// another. With the load's result comes when it ran. A snapshot that fails fails the load.
    ///
    /// No rule of the server's own would do: those count in minutes, and a load takes seconds.
    pub fn beside<T>(
        server: &Target,
        cores: &[usize],
        load: impl FnOnce() -> Result<(T, Duration)>,
    ) -> Result<(T, Range<Instant>, Snapshots)> {
        let stop = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (begun, has_begun) = channel();
            let taking = scope.spawn(move || {
                placement::pin_this_thread(cores)?;
                // Who waits for the first one may have given up.
                take(server, || _ = begun.send(()), stop)
            });
            // Nothing comes where the first one could not be begun: then there is nothing to measure.
            let loaded =
                has_begun.recv().ok().map(|()| load().map(|(loaded, lasted)| (loaded, lasted, Instant::now())));
            stop.store(true, Ordering::Relaxed);
            let taken = taking.join().unwrap_or_else(|_| Err(anyhow!("who asks for snapshots panicked")));
            let taken = taken.context("snapshots")?;
            let (loaded, lasted, end) = loaded.context("no snapshot was begun")??;
            let begin = end.checked_sub(lasted).context("the load began after the machine")?;
            Ok((loaded, begin..end, Snapshots(taken)))
        })
    }

    /// How many were being taken at some time within this window, and which share of it they took together.
    pub fn within(&self, window: &Range<Instant>) -> (usize, f64) {
        let within = |taken: &Range<Instant>| taken.start.max(window.start)..taken.end.min(window.end);
        let parts: Vec<Range<Instant>> = self.0.iter().map(within).filter(|part| part.start < part.end).collect();
        let together: Duration = parts.iter().map(|part| part.end - part.start).sum();
        (parts.len(), together.as_secs_f64() / (window.end - window.start).as_secs_f64().max(f64::MIN_POSITIVE))
    }
}

/// Begins a snapshot as soon as the one before is done, until it is told to stop; the last one may go on.
fn take(server: &Target, begun: impl Fn(), stop: &AtomicBool) -> Result<Vec<Range<Instant>>> {
    let mut resp = Resp::over(server.connect(Some(PATIENCE))?);
    let mut taken = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let begin = Instant::now();
        match resp.call(&[b"BGSAVE"])? {
            Value::Simple(_) => begun(),
            other => bail!("BGSAVE was answered by {other:?}"),
        }
        while State::of(&mut resp)? == State::Saving && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
        }
        taken.push(begin..Instant::now());
    }
    Ok(taken)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Saving,
    Saved,
}

impl State {
    /// An error when the last snapshot has failed.
    fn of(resp: &mut Resp) -> Result<State> {
        match resp.call(&[b"INFO", b"persistence"])? {
            Value::Bulk(text) => State::in_info(&String::from_utf8_lossy(&text)),
            other => bail!("INFO was answered by {other:?}"),
        }
    }

    fn in_info(text: &str) -> Result<State> {
        let field = |name: &str| text.lines().find_map(|line| line.trim_end().strip_prefix(name)?.strip_prefix(':'));
        match (field("rdb_bgsave_in_progress"), field("rdb_last_bgsave_status")) {
            (Some("1"), _) => Ok(State::Saving),
            (Some("0"), Some("ok")) => Ok(State::Saved),
            (saving, last) => bail!("a snapshot has failed (in progress: {saving:?}, the last one: {last:?})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_taken_meanwhile_counts() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let snapshots = Snapshots(vec![at(0)..at(100), at(150)..at(250), at(260)..at(300), at(400)..at(900)]);
        let (taken, share) = snapshots.within(&(at(200)..at(500)));
        assert_eq!(taken, 3);
        assert!((share - 190.0 / 300.0).abs() < 1e-9, "{share}");
        assert_eq!(snapshots.within(&(at(100)..at(150))), (0, 0.0));
        assert_eq!(snapshots.within(&(at(500)..at(600))), (1, 1.0));
    }

    #[test]
    fn a_snapshot_that_fails_is_no_snapshot() {
        let text = |saving, last| {
            format!("# Persistence\r\nrdb_bgsave_in_progress:{saving}\r\nrdb_last_bgsave_status:{last}\r\n")
        };
        assert_eq!(State::in_info(&text("1", "err")).unwrap(), State::Saving);
        assert_eq!(State::in_info(&text("0", "ok")).unwrap(), State::Saved);
        assert!(State::in_info(&text("0", "err")).is_err());
        assert!(State::in_info("# Persistence\r\n").is_err());
    }
}
