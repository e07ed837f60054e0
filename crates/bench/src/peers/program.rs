//! An installed server and how it is called. Knows not what is measured.

use super::certificate::{AUTHORITY, CERTIFICATE, KEY};
use super::family::Family;
use super::postgres;
use super::server::Server;
use crate::results::Build;
use crate::session::Interrupt;
use crate::target::Protocol;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// An installed server.
#[derive(Clone, Debug)]
pub struct Program {
    /// What results call it.
    pub name: String,
    /// How it is called.
    pub family: Family,
    /// Where it lies.
    pub path: PathBuf,
    /// What it says of itself.
    pub version: String,
    /// Which build it is.
    pub build: Build,
}

/// What a server keeps on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// Nothing.
    Off,
    /// Snapshots, when they are asked for.
    Rdb,
    /// A log that is on disk before a write is answered.
    AofAlways,
    /// A log that goes to disk every second.
    AofEverysec,
}

impl Persistence {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Persistence::Off => "none",
            Persistence::Rdb => "rdb",
            Persistence::AofAlways => "aof always",
            Persistence::AofEverysec => "aof everysec",
        }
    }
}

/// How to start a server, the same for all that are compared.
#[derive(Clone, Debug)]
pub struct Settings<'a> {
    /// Threads that serve clients.
    pub threads: usize,
    /// Cores it may use; empty for all.
    pub cores: &'a [usize],
    /// Bytes it may keep; `None` for as many as it likes.
    pub memory_bytes: Option<u64>,
    /// Whether the limit is for items alone, as memcached's is, where that can be chosen.
    pub memory_for_items: bool,
    /// What it evicts, by the name it knows; memcached has one policy only.
    pub eviction: Option<&'a str>,
    /// What it keeps on disk.
    pub persistence: Persistence,
    /// Whether it rewrites its log by itself when that has grown, as it does if nobody tells it not to.
    pub rewrites_log: bool,
    /// Whether it is to be a node of a cluster.
    pub cluster: bool,
    /// Whether TLS is spoken, too, on a port of its own.
    pub tls: bool,
    /// Bytes of the longest value, for who must be told.
    pub value_len_max: usize,
    /// Where its directory and its log go.
    pub scratch: &'a Path,
    /// Whether to wait no longer for it.
    pub interrupt: Interrupt,
}

impl<'a> Settings<'a> {
    /// In memory, without a limit.
    pub fn new(threads: usize, cores: &'a [usize], scratch: &'a Path) -> Settings<'a> {
        Settings {
            threads,
            cores,
            memory_bytes: None,
            memory_for_items: false,
            eviction: None,
            persistence: Persistence::Off,
            rewrites_log: true,
            tls: false,
            cluster: false,
            value_len_max: 512 * 1024,
            scratch,
            interrupt: Interrupt::default(),
        }
    }
}

/// How many clients each may have at once, but PostgreSQL, which has a process for each.
const CLIENTS_MAX: &str = "20000";

impl Program {
    /// Whether it can do what is asked.
    pub fn can(&self, settings: &Settings<'_>) -> bool {
        let in_memory = settings.persistence == Persistence::Off;
        match self.family {
            Family::Tenon | Family::Redis => true,
            Family::Memcached => in_memory && settings.eviction.is_none_or(|policy| policy == "lru"),
            // Its log is written ahead of its data, and it forgets nothing by itself.
            Family::Postgres => {
                settings.persistence != Persistence::Rdb
                    && settings.eviction.is_none()
                    && settings.memory_bytes.is_none()
            }
        }
    }

    /// Starts it on free loopback ports and waits until it answers.
    pub fn start(&self, settings: &Settings<'_>) -> Result<Server> {
        Server::start(self, settings)
    }

    /// The ports that it is given, by its languages: RESP's, memcached's (or that of a cluster's nodes among each other),
    /// RESP's through TLS.
    pub(super) fn arguments(&self, settings: &Settings<'_>, [resp, memcache, tls]: [u16; 3]) -> Vec<String> {
        if self.family == Family::Postgres {
            return postgres::arguments(resp, settings.persistence);
        }
        let mut words: Vec<String> = Vec::new();
        let mut add = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
        let (resp, memcache) = (resp.to_string(), memcache.to_string());
        let threads = settings.threads.to_string();
        match self.family {
            Family::Tenon => {
                add(&["--bind", "127.0.0.1", "--port", &resp, "--memcached-port", &memcache]);
                add(&["--maxclients", CLIENTS_MAX, "--workers", &threads]);
            }
            Family::Redis => {
                add(&["--bind", "127.0.0.1", "--port", &resp, "--daemonize", "no", "--maxclients", CLIENTS_MAX]);
                add(&["--io-threads", &threads]);
                // Before 8 they only write, unless they are told to read, too.
                if settings.threads > 1 && self.major_version().is_some_and(|major| major < 8) {
                    add(&["--io-threads-do-reads", "yes"]);
                }
                if settings.cluster {
                    add(&["--cluster-enabled", "yes", "--cluster-port", &memcache]);
                }
            }
            Family::Postgres => {}
            Family::Memcached => {
                add(&["-l", "127.0.0.1", "-p", &memcache, "-U", "0", "-t", &threads, "-c", CLIENTS_MAX]);
                if rustix::process::geteuid().is_root() {
                    add(&["-u", "root"]);
                }
                // It must be given a limit; without one asked for, one that nothing here reaches.
                let limit = settings.memory_bytes.unwrap_or(64 << 30).div_ceil(1 << 20).max(1);
                add(&["-m", &limit.to_string()]);
                // Room for the key beside the value, in the steps that memcached's chunks have. Without being told so it does
                // not start where an item could be more than half of its memory.
                let longest =
                    if settings.value_len_max > 1000 * 1024 { settings.value_len_max as u64 } else { 1 << 19 };
                let wanted = (longest / (512 * 1024) + 1) * 512;
                let item = wanted.min(limit * 512);
                if item != 1024 {
                    add(&["-I", &format!("{item}k")]);
                }
            }
        }
        if settings.tls && self.family != Family::Memcached {
            let words = ["--tls-port", &tls.to_string(), "--tls-auth-clients", "no", "--tls-cert-file", CERTIFICATE];
            add(&[&words[..], &["--tls-key-file", KEY, "--tls-ca-cert-file", AUTHORITY]].concat());
        }
        if self.family != Family::Memcached {
            self.add_persistence(settings, &mut words);
            let mut add = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
            if let Some(limit) = settings.memory_bytes {
                add(&["--maxmemory", &limit.to_string()]);
                if settings.memory_for_items && self.family == Family::Tenon {
                    add(&["--maxmemory-counts-startup", "no"]);
                }
            }
            if let Some(policy) = settings.eviction {
                add(&["--maxmemory-policy", policy]);
            }
        }
        words
    }

    fn major_version(&self) -> Option<u32> {
        self.version.split('.').next()?.parse().ok()
    }

    fn add_persistence(&self, settings: &Settings<'_>, words: &mut Vec<String>) {
        let wanted: &[&str] = match settings.persistence {
            // Tenon has nothing to be switched off as long as it is not told to keep anything.
            Persistence::Off if self.family == Family::Tenon => &[],
            // Without a rule of its own, which would add some at other times.
            Persistence::Off | Persistence::Rdb => &["--save", "", "--appendonly", "no"],
            Persistence::AofAlways => &["--save", "", "--appendonly", "yes", "--appendfsync", "always"],
            Persistence::AofEverysec => &["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"],
        };
        words.extend(wanted.iter().map(|word| (*word).to_owned()));
        if !settings.rewrites_log {
            words.extend(["--auto-aof-rewrite-percentage", "0"].map(str::to_owned));
        }
    }

    /// Whether its servers speak this.
    pub fn speaks(&self, protocol: Protocol) -> bool {
        self.family.protocols().contains(&protocol)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, change: impl Fn(&mut Settings<'_>)) -> String {
        line_of(name, "9.1.0", change)
    }

    fn line_of(name: &str, version: &str, change: impl Fn(&mut Settings<'_>)) -> String {
        let family = Family::of(name).expect("a known name");
        let (name, version, build) = (name.to_owned(), version.to_owned(), Build::default());
        let program = Program { name, family, path: PathBuf::new(), version, build };
        let mut settings = Settings::new(2, &[], Path::new("."));
        change(&mut settings);
        program.arguments(&settings, [1, 2, 3]).join(" ")
    }

    #[test]
    fn all_are_given_the_same_limits() {
        let limited = |settings: &mut Settings<'_>| {
            settings.memory_bytes = Some(64 << 20);
            settings.eviction = Some("allkeys-lru");
        };
        let redis = line("redis-server", limited);
        assert!(redis.starts_with("--bind 127.0.0.1 --port 1 ") && redis.contains(" --io-threads 2 "), "{redis}");
        assert!(redis.ends_with("--appendonly no --maxmemory 67108864 --maxmemory-policy allkeys-lru"), "{redis}");
        let tenon = line("tenon", limited);
        assert!(tenon.contains("--workers 2 --maxmemory 67108864 --maxmemory-policy allkeys-lru"), "{tenon}");
        let memcached = line("memcached-new", limited);
        assert!(memcached.contains(" -t 2 ") && memcached.ends_with(" -m 64"), "{memcached}");
        for (line, clients) in [(&redis, "--maxclients"), (&tenon, "--maxclients"), (&memcached, "-c")] {
            assert!(line.contains(&format!(" {clients} 20000 ")), "{line}");
        }
        assert!(line("tenon", |settings| settings.tls = true).contains(" --tls-port 3 "));
        assert!(!line("memcached", |settings| settings.tls = true).contains("tls"));
        let roomy = line("memcached", |settings| settings.value_len_max = 4 << 20);
        assert!(roomy.ends_with(" -I 4608k"), "{roomy}");
        let tiny = line("memcached", |settings| settings.memory_bytes = Some(1 << 20));
        assert!(tiny.ends_with(" -m 1 -I 512k"), "{tiny}");
        let too_long = line("memcached", |settings| {
            (settings.memory_bytes, settings.value_len_max) = (Some(3 << 20), 3 << 20);
        });
        assert!(too_long.ends_with(" -m 3 -I 1536k"), "{too_long}");
        let items = |settings: &mut Settings<'_>| {
            limited(settings);
            settings.memory_for_items = true;
        };
        assert!(line("tenon", items).contains(" --maxmemory 67108864 --maxmemory-counts-startup no "));
        assert!(!line("redis-server", items).contains("startup"));
    }

    #[test]
    fn threads_of_an_old_redis_are_told_to_read_too() {
        let reads = |name, version, threads| {
            line_of(name, version, |settings| settings.threads = threads).contains(" --io-threads-do-reads yes")
        };
        assert!(reads("redis-server", "7.0.15", 2) && reads("valkey-server", "7.2.8", 4));
        assert!(!reads("redis-server", "7.0.15", 1), "it has one thread, which does all");
        assert!(!reads("redis8-server", "8.0.6", 2) && !reads("valkey9-server", "9.1.0", 2), "theirs do");
    }

    #[test]
    fn what_a_server_cannot_do_is_known() {
        let (name, version, build) = ("r".to_owned(), String::new(), Build::default());
        let redis = Program { name, family: Family::Redis, path: PathBuf::new(), version, build };
        let memcached = Program { family: Family::Memcached, ..redis.clone() };
        let mut settings = Settings::new(1, &[], Path::new("."));
        assert!(redis.can(&settings) && memcached.can(&settings));
        settings.persistence = Persistence::Rdb;
        assert!(redis.can(&settings) && !memcached.can(&settings));
        let logs = |settings: &mut Settings<'_>| settings.persistence = Persistence::AofAlways;
        let never =
            |settings: &mut Settings<'_>| (settings.persistence, settings.rewrites_log) = (Persistence::Rdb, false);
        for name in ["tenon", "valkey-server"] {
            assert!(line(name, logs).contains("always") && !line(name, logs).contains("rewrite"));
            assert!(line(name, never).ends_with(" --auto-aof-rewrite-percentage 0"));
        }
    }
}
