//! How far an experiment is, on a terminal as a bar, elsewhere as lines. Knows no experiment.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// One experiment's progress.
#[derive(Clone, Debug)]
pub struct Progress {
    bar: ProgressBar,
    on_terminal: bool,
    operations: Arc<AtomicU64>,
}

impl Progress {
    /// Of an experiment with nothing to do yet.
    pub fn new(name: &str) -> Progress {
        let on_terminal = std::io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        let operations = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&operations);
        let style = ProgressStyle::with_template("{prefix} [{bar:30}] {pos}/{len} {elapsed} {operations} {wide_msg}");
        let style = style.expect("the template is constant and sound").progress_chars("=> ");
        bar.set_style(style.with_key("operations", move |_: &ProgressState, out: &mut dyn Write| {
            let millions = counted.load(Ordering::Relaxed) as f64 / 1e6;
            // A bar that cannot be written to is no reason to stop.
            let _ = write!(out, "{millions:.1} M op");
        }));
        bar.set_prefix(name.to_owned());
        if on_terminal {
            bar.enable_steady_tick(Duration::from_millis(100));
        }
        Progress { bar, on_terminal, operations }
    }

    /// More measurements are to be made.
    pub fn add_steps(&self, steps: usize) {
        self.bar.inc_length(steps as u64);
    }

    /// This is being done.
    pub fn doing(&self, what: &str) {
        if self.on_terminal {
            self.bar.set_message(what.to_owned());
        } else {
            let (done, all) = (self.bar.position(), self.bar.length().unwrap_or(0));
            eprintln!("{} {done}/{all}: {what}", self.bar.prefix());
        }
    }

    /// A measurement was made, or need not be.
    pub fn step(&self) {
        self.bar.inc(1);
    }

    /// Something must be seen.
    pub fn say(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }

    /// Counts operations while a load runs.
    pub fn operations(&self) -> &Arc<AtomicU64> {
        &self.operations
    }

    /// The experiment has ended.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
