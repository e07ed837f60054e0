//! Ends the bench in order when it is asked to end. Knows not what there is to end.

use anyhow::{Result, bail};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Whether somebody has asked.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens to SIGINT and SIGTERM. The second one ends the process at once; the servers' guards then end the servers.
    pub fn listen() -> Result<Interrupt> {
        let interrupt = Interrupt::default();
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupt.asked))?;
            signal_hook::flag::register(signal, Arc::clone(&interrupt.asked))?;
        }
        Ok(interrupt)
    }

    /// For loads, which look at it while they run.
    pub fn flag(&self) -> &AtomicBool {
        &self.asked
    }

    /// An error once somebody has asked.
    pub fn check(&self) -> Result<()> {
        if self.asked.load(Ordering::Relaxed) {
            bail!("interrupted; what was measured is kept, and `--continue` goes on from there");
        }
        Ok(())
    }

    /// Waits, but no longer than until somebody asks.
    pub fn sleep(&self, duration: Duration) -> Result<()> {
        let begin = Instant::now();
        while let Some(left) = duration.checked_sub(begin.elapsed()).filter(|left| !left.is_zero()) {
            self.check()?;
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
        self.check()
    }
}
