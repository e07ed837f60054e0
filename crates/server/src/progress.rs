//! How far loading is: a line that is written over on a terminal, lines of the log elsewhere. Knows nothing of what is
//! loaded.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};
use tenon_engine::loading::Progress;

/// How often the line of a terminal changes.
const LINE_PERIOD: Duration = Duration::from_millis(100);
/// How often the log says so.
const LOG_PERIOD: Duration = Duration::from_secs(2);
/// Characters of the bar.
const BAR: u64 = 30;

/// Shows how far one file is.
pub(crate) struct ProgressLine {
    name: String,
    total_bytes: u64,
    is_terminal: bool,
    started: Instant,
    shown: Instant,
    /// Whether the terminal has a line that is to be wiped.
    is_there: bool,
}

impl ProgressLine {
    /// Nothing is loaded yet of so many bytes.
    pub(crate) fn new(name: &str, total_bytes: u64) -> ProgressLine {
        let now = Instant::now();
        let is_terminal = io::stderr().is_terminal();
        ProgressLine { name: name.to_owned(), total_bytes, is_terminal, started: now, shown: now, is_there: false }
    }

    /// So much is loaded now.
    pub(crate) fn show(&mut self, progress: Progress) {
        let period = if self.is_terminal { LINE_PERIOD } else { LOG_PERIOD };
        if self.shown.elapsed() < period {
            return;
        }
        self.shown = Instant::now();
        let text = text(progress, self.total_bytes, self.started.elapsed());
        if self.is_terminal {
            let bar = bar(progress.bytes, self.total_bytes);
            // Who looks at the terminal has seen the last one, when this fails.
            let _ = write!(io::stderr(), "\r{} [{bar}] {text}\x1b[K", self.name);
            self.is_there = true;
        } else {
            tracing::info!("loading '{}': {text}", self.name);
        }
    }

    /// Nothing more is shown.
    pub(crate) fn end(self) {
        if self.is_there {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn bar(bytes: u64, total_bytes: u64) -> String {
    let full = (u128::from(bytes.min(total_bytes)) * u128::from(BAR) / u128::from(total_bytes.max(1))) as usize;
    format!("{}{}", "#".repeat(full), " ".repeat(BAR as usize - full))
}

fn text(progress: Progress, total_bytes: u64, elapsed: Duration) -> String {
    let Progress { bytes, keys } = progress;
    let percent = bytes as f64 * 100.0 / total_bytes.max(1) as f64;
    let left = elapsed.as_secs_f64() * total_bytes.saturating_sub(bytes) as f64 / bytes.max(1) as f64;
    let mb = |bytes: u64| bytes as f64 / 1e6;
    format!("{percent:.0} %, {:.0} of {:.0} MB, {keys} keys, {left:.0} s left", mb(bytes), mb(total_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_full_at_the_end() {
        assert_eq!(bar(0, 100), " ".repeat(30));
        assert_eq!(bar(50, 100), format!("{}{}", "#".repeat(15), " ".repeat(15)));
        assert_eq!(bar(200, 100), "#".repeat(30));
        assert_eq!(bar(0, 0), " ".repeat(30));
    }

    #[test]
    fn the_time_left_follows_from_the_time_that_has_passed() {
        let progress = Progress { bytes: 250_000_000, keys: 7 };
        let text = text(progress, 1_000_000_000, Duration::from_secs(2));
        assert_eq!(text, "25 %, 250 of 1000 MB, 7 keys, 6 s left");
    }
}
