//! flush_all, version, verbosity, cache_memlimit, shutdown, quit: the server as a whole.

use super::answer::Answer;
use super::expiry::Expiry;
use super::verb::TextCommand;
use tenon_engine::Engine;
use tenon_engine::config::Caller;
use tenon_engine::saving::{Ending, OnFailure};
use tenon_engine::worker::Worker;

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

/// Empties the store now, or at the time that the client gave. A flush that was to come before is forgotten.
pub fn flush_all(engine: &Engine, worker: &mut Worker, exptime: Option<i64>) -> Answer {
    if !engine.config.memcached_flush_all() {
        return Answer::FlushDisabled;
    }
    worker.stats.all.mc_flush.add(1);
    match Expiry::of(exptime.unwrap_or(0), worker.clock.now_ms) {
        Expiry::Never | Expiry::Over => {
            engine.flush_schedule.set(None);
            engine.empty_database(worker, DATABASE);
        }
        Expiry::At(ms) => engine.flush_schedule.set(Some(ms)),
    }
    Answer::Ok
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
            engine.end_in_background(Ending::NoSave, OnFailure::GoOn);
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
    #[test]
    fn the_version_is_the_one_that_the_command_line_tells() {
        assert!(super::VERSION_TEXT.starts_with(tenon_engine::version::MEMCACHED));
    }
}
