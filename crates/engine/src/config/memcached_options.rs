//! memcached's options: what each of them means to Tenon, and the help made of that. It knows neither how they are read nor
//! what is set by them.

use super::memcached_refusal::MemcachedRefusal;
use crate::version::{MEMCACHED, TENON};

/// What an option of memcached means.
pub(super) enum Meaning {
    /// The setting of this name gets the argument.
    Setting(&'static str),
    /// The same, where it begins with a number over 0; memcached takes no other.
    Positive(&'static str, MemcachedRefusal),
    /// A number of megabytes for `maxmemory`.
    Memory,
    /// The size of an item for `max-value-size`.
    ItemSize,
    /// A number of requests, not 0.
    Requests,
    /// The setting gets this value.
    Is(&'static str, &'static str),
    /// Addresses, each perhaps with the port.
    Listen,
    /// A UNIX socket in place of every port.
    Socket,
    /// The socket's mode. To the setting 0 is no mode, but the umask's.
    Mask,
    /// What ends the prefixes of keys by which requests are counted, from the start then.
    Delimiter,
    /// A comma-separated list of further options.
    Extended,
    /// One protocol, or each connection its own.
    Protocol,
    /// Clients of the binary protocol, which is then the only one, say who they are.
    Sasl,
    /// The same of the text protocol, by this file.
    AuthFile,
    /// The port speaks TLS.
    Ssl,
    /// More is logged, the more often it is said.
    Verbose,
    /// The help, or the version.
    Help,
    Version,
    /// Tenon does well without it.
    NoEffect(&'static str),
    /// The same, and what memcached takes no argument for that is no number of more than so much.
    NumberWithoutEffect {
        over: f64,
        otherwise: MemcachedRefusal,
    },
    /// Who gives it counts on what Tenon does not do.
    Refused(&'static str),
}

use Meaning::{
    AuthFile, Delimiter, Extended, Help, Is, ItemSize, Listen, Mask, Memory, NoEffect, NumberWithoutEffect, Positive,
    Protocol, Refused, Requests, Sasl, Socket, Ssl, Verbose, Version,
};

/// An option: its letter, its long name, whether an argument follows, what it means.
pub(super) struct Flag {
    pub(super) letter: char,
    pub(super) name: &'static str,
    pub(super) takes_argument: bool,
    pub(super) meaning: Meaning,
}

const fn with(letter: char, name: &'static str, meaning: Meaning) -> Flag {
    Flag { letter, name, takes_argument: true, meaning }
}

const fn alone(letter: char, name: &'static str, meaning: Meaning) -> Flag {
    Flag { letter, name, takes_argument: false, meaning }
}

pub(super) const NO_CLASSES: &str = "There are size classes for every four bytes.";

/// The options of memcached 1.6, in the order of its help.
pub(super) static OPTIONS: &[Flag] = &[
    with('p', "port", Meaning::Setting("memcached-port")),
    with('U', "udp-port", Meaning::Setting("memcached-udp-port")),
    with('s', "unix-socket", Socket),
    with('a', "unix-mask", Mask),
    alone('A', "enable-shutdown", Is("memcached-shutdown", "yes")),
    with('l', "listen", Listen),
    alone('d', "daemon", Is("daemonize", "yes")),
    alone('r', "enable-coredumps", NoEffect("The limit for core files is the system's.")),
    with('u', "user", Meaning::Setting("run-as")),
    with('m', "memory-limit", Memory),
    alone('M', "disable-evictions", Is("maxmemory-policy", "noeviction")),
    with('c', "conn-limit", Positive("maxclients", MemcachedRefusal::Connections)),
    alone('k', "lock-memory", NoEffect("Memory is not locked.")),
    alone('v', "verbose", Verbose),
    alone('h', "help", Help),
    alone('i', "license", Help),
    alone('V', "version", Version),
    with('P', "pidfile", Meaning::Setting("pidfile")),
    with('f', "slab-growth-factor", NumberWithoutEffect { over: 1.0, otherwise: MemcachedRefusal::Factor }),
    with('n', "slab-min-size", NumberWithoutEffect { over: 0.0, otherwise: MemcachedRefusal::Chunk }),
    alone('L', "enable-largepages", NoEffect("Tenon takes less memory without them.")),
    with('D', "", Delimiter),
    with('t', "threads", Positive("workers", MemcachedRefusal::Threads)),
    with('R', "max-reqs-per-event", Requests),
    alone('C', "disable-cas", Is("memcached-cas", "no")),
    with('b', "listen-backlog", Meaning::Setting("tcp-backlog")),
    with('B', "protocol", Protocol),
    with('I', "max-item-size", ItemSize),
    alone('S', "enable-sasl", Sasl),
    with('Y', "auth-file", AuthFile),
    alone('Z', "enable-ssl", Ssl),
    alone('F', "disable-flush-all", Is("memcached-flush-all", "no")),
    alone('X', "disable-dumping", Is("memcached-dump", "no")),
    alone('W', "disable-watch", Is("memcached-watch", "no")),
    with('e', "memory-file", Refused("no restart from memory; `tenon` keeps data by appendonly, save or save-on-exit")),
    with('N', "napi-ids", NoEffect("The kernel spreads connections.")),
    with('o', "extended", Extended),
];

/// Extended options that tune what Tenon does not have.
pub(super) const EXTENDED_WITHOUT_EFFECT: &[&str] = &[
    "maxconns_fast",
    "hashpower",
    "tail_repair_time",
    "no_lru_crawler",
    "lru_crawler",
    "lru_crawler_sleep",
    "lru_crawler_tocrawl",
    "no_lru_maintainer",
    "lru_maintainer",
    "hot_lru_pct",
    "warm_lru_pct",
    "hot_max_factor",
    "warm_max_factor",
    "temporary_ttl",
    "slab_reassign",
    "no_slab_reassign",
    "slab_automove",
    "no_slab_automove",
    "slab_automove_ratio",
    "slab_automove_window",
    "slab_automove_freeratio",
    "slab_sizes",
    "hash_algorithm",
    "no_hashexpand",
    "modern",
    "worker_logbuf_size",
    "no_inline_ascii_resp",
    "inline_ascii_resp",
    "no_drop_privileges",
    "drop_privileges",
    "relaxed_privileges",
    "no_relaxed_privileges",
];

/// What `tenon memcached -V` says: it begins as memcached's line does, for scripts that read the number in it.
pub(super) fn version() -> String {
    format!("memcached {MEMCACHED} (Tenon {TENON})\n")
}

/// The text of `tenon memcached --help`, whose first line is the version as in memcached's.
pub(super) fn help() -> String {
    let mut text = version();
    text.push_str(
        "\
Usage: tenon memcached [FILE] [OPTION]...

Starts as memcached does: its options, its defaults (64 MB, all addresses, port 11211, what is of
least use goes; but a thread for each core), and no RESP port. FILE has options, one a line, as Debian's
/etc/memcached.conf. Options with a setting of Tenon:

",
    );
    for option in OPTIONS {
        let meaning = match option.meaning {
            Meaning::Setting(name) | Positive(name, _) => format!("--{name}"),
            Memory => "--maxmemory".to_owned(),
            ItemSize => "--max-value-size".to_owned(),
            Requests => "--memcached-requests-per-turn".to_owned(),
            Is(name, value) => format!("--{name} {value}"),
            Socket => "--memcached-unixsocket, and no port, whatever else is said".to_owned(),
            Mask => "--unixsocketperm, 700 where nothing is said".to_owned(),
            Listen => "--bind".to_owned(),
            Verbose => "--loglevel verbose, debug".to_owned(),
            Delimiter => "--memcached-stats-delimiter".to_owned(),
            Extended => {
                "idle_timeout, track_sizes, watcher_logbuf_size, read_buf_mem_limit, ssl_..., udp_amplification_max (Tenon's \
                 own), and those without effect"
                    .to_owned()
            }
            Protocol => "--memcached-protocol".to_owned(),
            Sasl => "--memcached-auth yes, with the binary protocol and MEMCACHED_SASL_PWDB's file".to_owned(),
            AuthFile => "--memcached-auth yes --memcached-auth-file, with the text protocol".to_owned(),
            Ssl => "--memcached-tls-port in place of --memcached-port, but where -l says notls:".to_owned(),
            Help => "this text".to_owned(),
            Version => "the version of memcached whose verbs are there, and Tenon's".to_owned(),
            NoEffect(_) | NumberWithoutEffect { .. } => "no effect".to_owned(),
            Refused(text) => format!("refused: {text}"),
        };
        let name = if option.name.is_empty() { String::new() } else { format!(", --{}", option.name) };
        text.push_str(&format!("  {:<28} {meaning}\n", format!("-{}{name}", option.letter)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_there_once_and_in_the_help() {
        let text = help();
        assert_eq!(version(), format!("memcached 1.6.18 (Tenon {TENON})\n"));
        for option in OPTIONS {
            assert_eq!(OPTIONS.iter().filter(|other| other.letter == option.letter).count(), 1, "{}", option.letter);
            assert!(text.contains(&format!("-{}", option.letter)));
        }
    }
}
