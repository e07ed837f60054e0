//! flush_all, version, verbosity, cache_memlimit, shutdown, quit: the server as a whole.

use super::answer::Answer;
use super::expiry::Expiry;
use super::verb::TextCommand;
use tenon_engine::Engine;
use tenon_engine::config::Caller;
use tenon_engine::saving::{Ending, OnFailure};
use tenon_engine::worker::Worker;

/// How long before the server's start a time may lie that an item could have been stored at: memcached's clock has run for a
/// minute when it starts.
const CLOCK_AHEAD_MS: u64 = 60_000;

/// The database that memcached's clients live in.
pub const DATABASE: usize = 0;

/// What clients that look at the version are told: the memcached that the transcripts agree with, and what it really is.
pub const VERSION_TEXT: &str = concat!("1.6.18-tenon-", env!("CARGO_PKG_VERSION"));

/// Empties the store.
pub static FLUSH_ALL: TextCommand = TextCommand {
    name: "flush_all",
    family: "admin",
    syntax: "[exptime] [noreply]",
    summary: "Removes all items of database 0, at once or at a time to come.",
};

/// Says the version.
pub static VERSION: TextCommand = TextCommand {
    name: "version",
    family: "admin",
    syntax: "",
    summary: "Returns the version of memcached whose verbs are there, and Tenon's own.",
};

/// Sets how much is logged.
pub static VERBOSITY: TextCommand = TextCommand {
    name: "verbosity",
    family: "admin",
    syntax: "<level> [noreply]",
    summary: "Sets `loglevel`: 0 is notice, 1 verbose, more debug.",
};

/// Sets the memory limit.
pub static CACHE_MEMLIMIT: TextCommand = TextCommand {
    name: "cache_memlimit",
    family: "admin",
    syntax: "<megabytes> [noreply]",
    summary: "Sets `maxmemory`, in megabytes.",
};

/// Reads certificates anew.
pub static REFRESH_CERTS: TextCommand = TextCommand {
    name: "refresh_certs",
    family: "admin",
    syntax: "",
    summary: "Reads the certificates of TLS anew, from the same files.",
};

/// Ends the server.
pub static SHUTDOWN: TextCommand = TextCommand {
    name: "shutdown",
    family: "admin",
    syntax: "[graceful]",
    summary: "Ends the server, where `memcached-shutdown` lets memcached clients do that.",
};

/// Ends the connection.
pub static QUIT: TextCommand = TextCommand {
    name: "quit",
    family: "admin",
    syntax: "",
    summary: "Closes the connection once everything asked before is answered.",
};

/// Empties the store now, or at the time that the client gave. A flush that was to come before is forgotten. As in memcached
/// a time that was before the server's start finds nothing: whatever is there was stored later. What was stored before the
/// last of so many seconds from now goes when that begins: memcached's clock is of whole seconds, and it does not look into one.
pub fn flush_all(engine: &Engine, worker: &mut Worker, exptime: Option<i64>) -> Answer {
    if !engine.config.memcached_flush_all() {
        return Answer::FlushDisabled;
    }
    worker.stats.all.mc_flush.add(1);
    let exptime = exptime.unwrap_or(0);
    // Of one second the last begins now.
    let exptime = exptime - i64::from(Expiry::is_relative(exptime));
    match Expiry::of(exptime, worker.clock.now_ms) {
        Expiry::At(ms) => {
            let in_ns = ms.saturating_sub(worker.clock.now_ms).saturating_mul(1_000_000);
            engine.flush_schedule.set(Some(worker.clock.now_ns.saturating_add(in_ns)));
        }
        Expiry::Over if is_before_any_item(exptime, engine.started_ms) => engine.flush_schedule.set(None),
        Expiry::Never | Expiry::Over => {
            engine.flush_schedule.set(None);
            engine.empty_database(worker, DATABASE);
        }
    }
    Answer::Ok
}

/// Whether no item can have been stored before this time, which has passed, on a server that started then. What is below 0
/// is no time.
fn is_before_any_item(exptime: i64, started_ms: u64) -> bool {
    exptime > 0 && exptime.unsigned_abs().saturating_mul(1_000) < started_ms.saturating_sub(CLOCK_AHEAD_MS)
}

/// Ends the server, in the way that the words say.
///
/// # Errors
/// Why it does not.
pub fn shutdown(engine: &Engine, words: &[&[u8]]) -> Result<(), Answer> {
    if !engine.config.memcached_shutdown() {
        return Err(Answer::ShutdownDisabled);
    }
    match words {
        // What was asked before is answered in either case.
        [] | [b"graceful"] => {
            // Why it does not has been logged: memcached has no word for that.
            let _ = engine.end_in_background(Ending::NoSave, OnFailure::GoOn);
            Ok(())
        }
        _ => Err(Answer::UnknownShutdown),
    }
}

/// Reads the certificates anew, from the files that the settings name.
pub fn refresh_certs(engine: &Engine) -> Answer {
    if engine.config.memcached_tls_port() == 0 {
        return Answer::TlsDisabled;
    }
    match engine.set_config(&[(b"tls-cert-file", engine.config.tls_cert_file().as_bytes())], Caller::Local) {
        Ok(()) => Answer::Ok,
        Err(_) => Answer::BadCertificates,
    }
}

/// Writes the version.
pub fn version(out: &mut Vec<u8>) {
    out.extend_from_slice(b"VERSION ");
    out.extend_from_slice(VERSION_TEXT.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Sets how much is logged.
pub fn verbosity(engine: &Engine, level: u64) -> Answer {
    let level: &[u8] = match level {
        0 => b"notice",
        1 => b"verbose",
        _ => b"debug",
    };
    match engine.set_config(&[(b"loglevel", level)], Caller::Local) {
        Ok(_) => Answer::Ok,
        Err(_) => unreachable!("the level is one of the table's, and may change at run time"),
    }
}

/// Sets the memory limit, and makes room below it as far as the policy lets keys go.
pub fn cache_memlimit(engine: &Engine, worker: &mut Worker, megabytes: u64) -> Answer {
    match megabytes {
        0..8 => return Answer::LimitTooSmall,
        1_000_000_001.. => return Answer::LimitInBytes,
        _ => {}
    }
    let bytes = (megabytes << 20).to_string();
    match engine.set_config(&[(b"maxmemory", bytes.as_bytes())], Caller::Local) {
        Ok(_) => {
            engine.make_room(worker);
            Answer::Ok
        }
        Err(_) => Answer::LimitOutOfBounds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_was_stored_since_the_start() {
        let started_ms = 1_800_000_000_500;
        for (exptime, is_before) in [
            (2_592_001, true),
            (1_799_999_939, true),
            (1_799_999_941, false),
            (1_800_000_000, false),
            (1_800_000_100, false),
            (-1, false),
            (i64::MIN, false),
        ] {
            assert_eq!(is_before_any_item(exptime, started_ms), is_before, "{exptime}");
        }
    }

    #[test]
    fn the_version_is_the_one_that_the_command_line_tells() {
        assert!(super::VERSION_TEXT.starts_with(tenon_engine::version::MEMCACHED));
    }
}
