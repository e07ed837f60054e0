//! Signals: which end the process and which do not. Knows no socket.
//!
//! SIGTERM and SIGINT ask for a graceful shutdown; a second SIGINT ends the process at once, with Redis's words.
//! SIGUSR1 is as SIGTERM to who was started as memcached, and has no handler else, as with Redis.
//! SIGHUP never ends it: the log file is opened anew, so that it can be rotated. SIGPIPE is ignored by Rust's runtime,
//! and no send raises it. Nor does SIGXFSZ: who writes more than a limit on the size of files lets is told so (EFBIG).

use crate::shutdown::Shutdown;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

/// A signal that ends the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

/// Whose signals the server hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Like {
    /// Those that Redis hears.
    Redis,
    /// Those, and SIGUSR1.
    Memcached,
}

/// Has a file that may not become longer end nobody, before anything is written: whoever writes is told, and says what it came to.
///
/// # Errors
/// What the system says.
pub fn outlive_long_files() -> std::io::Result<()> {
    // A flag that nobody looks at: with a handler the signal has no other effect.
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false))).map(drop)
}

/// Starts the thread that hears signals. `on_end` is called for those that end the process, and asks for the shutdown
/// when all is ready for it; `is_ending` tells whether one of them is about to. `on_insist` is called before a SIGINT ends it behind
/// another signal; behind a client's SHUTDOWN one is the first.
pub fn listen(
    like: Like,
    shutdown: Shutdown,
    on_end: impl Fn(Signal) + Send + 'static,
    is_ending: impl Fn() -> bool + Send + 'static,
    on_insist: impl Fn() + Send + 'static,
    mut on_hangup: impl FnMut() + Send + 'static,
) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    if like == Like::Memcached {
        signals.add_signal(SIGUSR1)?;
    }
    thread::Builder::new().name("tenon-signals".to_owned()).spawn(move || {
        let mut has_asked = false;
        for signal in signals.forever() {
            let insists = signal == SIGINT && (has_asked && shutdown.is_requested() || is_ending());
            has_asked |= signal != SIGHUP;
            match signal {
                SIGHUP => {
                    tracing::info!("Received SIGHUP, opening the log file anew");
                    on_hangup();
                }
                SIGINT if insists => {
                    tracing::warn!("You insist... exiting now.");
                    on_insist();
                    std::process::exit(1);
                }
                SIGINT => {
                    tracing::warn!("Received SIGINT scheduling shutdown...");
                    on_end(Signal::Interrupt);
                }
                SIGUSR1 => {
                    tracing::warn!("Received SIGUSR1 scheduling shutdown...");
                    on_end(Signal::Terminate);
                }
                _ => {
                    tracing::warn!("Received SIGTERM scheduling shutdown...");
                    on_end(Signal::Terminate);
                }
            }
        }
    })?;
    Ok(())
}
