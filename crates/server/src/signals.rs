//! Signals: which end the process and which do not. Knows no socket.
//!
//! SIGTERM and SIGINT ask for a graceful shutdown; a second SIGINT ends the process at once, with Redis's words.
//! SIGHUP never ends it: the log file is opened anew, so that it can be rotated. SIGPIPE is ignored by Rust's runtime,
//! and no send raises it.

use crate::shutdown::Shutdown;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::thread;
use std::time::Duration;

/// Starts the thread that hears signals. `grace` says how long clients may then take their replies.
pub fn listen(
    shutdown: Shutdown,
    grace: impl Fn() -> Duration + Send + 'static,
    mut on_hangup: impl FnMut() + Send + 'static,
) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    thread::Builder::new().name("tenon-signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            match signal {
                SIGHUP => {
                    tracing::info!("Received SIGHUP, opening the log file anew");
                    on_hangup();
                }
                SIGINT if shutdown.is_requested() => {
                    tracing::warn!("You insist... exiting now.");
                    std::process::exit(1);
                }
                SIGINT => {
                    tracing::warn!("Received SIGINT scheduling shutdown...");
                    shutdown.request(grace());
                }
                _ => {
                    tracing::warn!("Received SIGTERM scheduling shutdown...");
                    shutdown.request(grace());
                }
            }
        }
    })?;
    Ok(())
}
