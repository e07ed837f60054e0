//! memcached's command line (`tenon memcached -m 64 -p 11211 ...`): what each of its options means as settings. It knows
//! neither what the settings do nor who reads them.

use super::error::LoadProblem;
use super::value::parse_memory;

/// What an option of memcached means.
enum Meaning {
    /// The setting of this name gets the argument.
    Setting(&'static str),
    /// The same, for a number of megabytes.
    Megabytes(&'static str),
    /// The same, for the size of an item: 1 KiB to 1 GiB.
    ItemSize(&'static str),
    /// The setting gets this value.
    Is(&'static str, &'static str),
    /// Addresses, each perhaps with the port.
    Listen,
    /// A UNIX socket in place of the port.
    Socket,
    /// Only this argument is understood, which is what Tenon does anyhow.
    Only(&'static [&'static str], &'static str),
    /// A comma-separated list of further options.
    Extended,
    /// More is logged, the more often it is said.
    Verbose,
    /// The help, or the version.
    Help,
    Version,
    /// Tenon does well without it.
    NoEffect(&'static str),
    /// Who gives it counts on what Tenon does not do.
    Refused(&'static str),
}

use Meaning::{Extended, Help, Is, ItemSize, Listen, Megabytes, NoEffect, Only, Refused, Socket, Verbose, Version};

/// An option: its letter, its long name, whether an argument follows, what it means.
struct Flag {
    letter: char,
    name: &'static str,
    takes_argument: bool,
    meaning: Meaning,
}

const fn with(letter: char, name: &'static str, meaning: Meaning) -> Flag {
    Flag { letter, name, takes_argument: true, meaning }
}

const fn alone(letter: char, name: &'static str, meaning: Meaning) -> Flag {
    Flag { letter, name, takes_argument: false, meaning }
}

const NO_CLASSES: &str = "There are size classes for every four bytes.";

/// The options of memcached 1.6, in the order of its help.
static OPTIONS: &[Flag] = &[
    with('p', "port", Meaning::Setting("memcached-port")),
    with('U', "udp-port", Only(&["0"], "UDP is not supported yet")),
    with('s', "unix-socket", Socket),
    with('a', "unix-mask", Meaning::Setting("unixsocketperm")),
    alone('A', "enable-shutdown", Refused("the shutdown command is not supported yet")),
    with('l', "listen", Listen),
    alone('d', "daemon", Is("daemonize", "yes")),
    alone('r', "enable-coredumps", NoEffect("The limit for core files is the system's.")),
    with('u', "user", NoEffect("Tenon stays the user that it was started as.")),
    with('m', "memory-limit", Megabytes("maxmemory")),
    alone('M', "disable-evictions", Is("maxmemory-policy", "noeviction")),
    with('c', "conn-limit", Meaning::Setting("maxclients")),
    alone('k', "lock-memory", NoEffect("Memory is not locked.")),
    alone('v', "verbose", Verbose),
    alone('h', "help", Help),
    alone('i', "license", Help),
    alone('V', "version", Version),
    with('P', "pidfile", Meaning::Setting("pidfile")),
    with('f', "slab-growth-factor", NoEffect(NO_CLASSES)),
    with('n', "slab-min-size", NoEffect(NO_CLASSES)),
    alone('L', "enable-largepages", NoEffect("Tenon takes less memory without them.")),
    with('D', "", Only(&[":"], "the delimiter of stats detail is ':'")),
    with('t', "threads", Meaning::Setting("workers")),
    with('R', "max-reqs-per-event", NoEffect("A client's turn ends with its input or with a megabyte of output.")),
    alone('C', "disable-cas", NoEffect("An item has a CAS token from when it is asked for one.")),
    with('b', "listen-backlog", Meaning::Setting("tcp-backlog")),
    with('B', "protocol", Only(&["auto", "auto-negotiate"], "every connection chooses its protocol")),
    with('I', "max-item-size", ItemSize("max-value-size")),
    alone('S', "enable-sasl", Refused("SASL is not supported yet")),
    with('Y', "auth-file", Refused("authentication is not supported yet")),
    alone('Z', "enable-ssl", Refused("TLS is not supported yet")),
    alone('F', "disable-flush-all", Refused("flush_all cannot be switched off yet")),
    alone('X', "disable-dumping", Refused("lru_crawler metadump cannot be switched off yet")),
    alone('W', "disable-watch", NoEffect("There is no watch command yet.")),
    with('e', "memory-file", Refused("a restart keeps nothing yet")),
    with('N', "napi-ids", NoEffect("The kernel spreads connections.")),
    with('o', "extended", Extended),
];

/// Extended options that tune what Tenon does not have.
const EXTENDED_WITHOUT_EFFECT: &[&str] = &[
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
    "slab_automove_ratio",
    "slab_automove_window",
    "slab_automove_freeratio",
    "slab_chunk_max",
    "hash_algorithm",
    "track_sizes",
    "no_hashexpand",
    "modern",
    "no_modern",
    "watcher_logbuf_size",
    "worker_logbuf_size",
    "no_inline_ascii_resp",
    "inline_ascii_resp",
    "no_chunked_items",
    "resp_obj_mem_limit",
    "read_buf_mem_limit",
    "no_drop_privileges",
    "drop_privileges",
    "relaxed_privileges",
    "no_relaxed_privileges",
];

/// What is said to the settings before the options: memcached's own defaults. RESP is not asked for.
const PRESET: &[(&str, &[&str])] = &[
    ("port", &["0"]),
    ("bind", &["*", "-::*"]),
    ("protected-mode", &["no"]),
    ("maxmemory", &["64mb"]),
    ("maxmemory-policy", &["allkeys-lru"]),
    ("maxclients", &["1024"]),
    ("tcp-backlog", &["1024"]),
];

/// What memcached's command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Settings and their values, in order.
    pub(super) settings: Vec<(&'static str, Vec<String>)>,
    /// Options that have no effect, and why.
    pub(super) idle: Vec<(&'static str, &'static str)>,
    /// Whether help is asked for, and nothing else.
    pub(super) help: bool,
    /// Whether the version is asked for, and nothing else.
    pub(super) version: bool,
}

/// Reads memcached's command line, without the program's name.
pub(super) fn read(args: &[String]) -> Result<Asked, LoadProblem> {
    let mut asked = Asked::default();
    for &(name, words) in PRESET {
        asked.settings.push((name, words.iter().map(|&word| word.to_owned()).collect()));
    }
    let mut verbosity = 0;
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        if let Some(long) = word.strip_prefix("--").filter(|name| !name.is_empty()) {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let option = OPTIONS.iter().find(|option| option.name == name).ok_or_else(|| problem(word, UNKNOWN))?;
            let value = match value {
                Some(_) if !option.takes_argument => return Err(problem(word, "it takes no argument")),
                None if option.takes_argument => Some(rest.next().ok_or_else(|| problem(word, MISSING))?.clone()),
                value => value.map(str::to_owned),
            };
            asked.take(option, word, &value.unwrap_or_default(), &mut verbosity)?;
            continue;
        }
        // Letters may stand together, and an argument behind its letter.
        let mut letters =
            word.strip_prefix('-').filter(|letters| !letters.is_empty()).ok_or_else(|| problem(word, STRAY))?;
        while let Some(letter) = letters.chars().next() {
            let behind = &letters[letter.len_utf8()..];
            let option = OPTIONS.iter().find(|option| option.letter == letter);
            let option = option.ok_or_else(|| problem(word, UNKNOWN))?;
            if !option.takes_argument {
                asked.take(option, word, "", &mut verbosity)?;
                letters = behind;
                continue;
            }
            let value = if behind.is_empty() { rest.next().map(String::as_str) } else { Some(behind) };
            asked.take(option, word, value.ok_or_else(|| problem(word, MISSING))?, &mut verbosity)?;
            break;
        }
    }
    if verbosity > 0 {
        asked.set("loglevel", if verbosity == 1 { "verbose" } else { "debug" });
    }
    Ok(asked)
}

const UNKNOWN: &str = "memcached has no such option";
const MISSING: &str = "its argument is missing";
const STRAY: &str = "it belongs to no option";

fn problem(option: &str, text: &'static str) -> LoadProblem {
    LoadProblem::MemcachedOption { option: option.to_owned(), text }
}

impl Asked {
    fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.settings.push((name, vec![value.into()]));
    }

    fn take(&mut self, option: &Flag, word: &str, value: &str, verbosity: &mut u32) -> Result<(), LoadProblem> {
        match option.meaning {
            Meaning::Setting(name) => self.set(name, value),
            Megabytes(name) => match value.parse::<u32>() {
                Ok(megabytes @ 1..) => self.set(name, format!("{megabytes}mb")),
                _ => return Err(problem(word, "it takes a number of megabytes")),
            },
            // Of memcached's letters `k` and `m` mean what they mean in memory settings, too.
            ItemSize(name) => {
                match parse_memory(&format!("{value}{}", if value.ends_with(['k', 'm', 'K', 'M']) { "b" } else { "" }))
                {
                    Some(bytes @ 1_024..=1_073_741_824) => self.set(name, bytes.to_string()),
                    _ => return Err(problem(word, "it takes 1k to 1024m")),
                }
            }
            Is(name, value) => self.set(name, value),
            Socket => {
                self.set("memcached-unixsocket", value);
                self.set("memcached-port", "0");
            }
            Listen => self.listen(word, value)?,
            Only(values, text) if !values.contains(&value) => return Err(problem(word, text)),
            Only(..) => {}
            Extended => {
                for option in value.split(',').filter(|option| !option.is_empty()) {
                    self.extended(option)?;
                }
            }
            Verbose => *verbosity += 1,
            Help => self.help = true,
            Version => self.version = true,
            NoEffect(text) => self.idle.push((option.name, text)),
            Refused(text) => return Err(problem(word, text)),
        }
        Ok(())
    }

    fn extended(&mut self, option: &str) -> Result<(), LoadProblem> {
        let (name, value) = option.split_once('=').map_or((option, ""), |(name, value)| (name, value));
        match name {
            "idle_timeout" => self.set("timeout", value),
            // Too many clients are turned away in any case.
            "no_maxconns_fast" => self.idle.push(("no_maxconns_fast", "Who is one too many is told so at once.")),
            _ => match EXTENDED_WITHOUT_EFFECT.iter().find(|known| **known == name) {
                Some(name) => self.idle.push((name, "It tunes what Tenon does not have.")),
                None => return Err(problem(option, "no extended option that is supported")),
            },
        }
        Ok(())
    }

    /// `address[:port],...`; an IPv6 address with a port stands in brackets.
    fn listen(&mut self, word: &str, value: &str) -> Result<(), LoadProblem> {
        let mut addresses = Vec::new();
        let mut ports = Vec::new();
        for part in value.split(',').filter(|part| !part.is_empty()) {
            let part = part.strip_prefix("notls:").unwrap_or(part);
            let (address, port) = match part.strip_prefix('[').and_then(|part| part.split_once(']')) {
                Some((address, behind)) => (address, behind.strip_prefix(':')),
                None if part.matches(':').count() == 1 => {
                    let (address, port) = part.split_once(':').expect("there is one");
                    (address, Some(port))
                }
                None => (part, None),
            };
            addresses.push(address.to_owned());
            ports.extend(port.map(str::to_owned));
        }
        if let Some(port) = ports.first() {
            if ports.iter().any(|other| other != port) || ports.len() < addresses.len() {
                return Err(problem(word, "all addresses have the same port"));
            }
            self.set("memcached-port", port.clone());
        }
        self.settings.push(("bind", addresses));
        Ok(())
    }
}

/// The text of `tenon memcached --help`.
pub(super) fn help() -> String {
    let mut text = String::from(
        "\
Usage: tenon memcached [OPTION]...

Starts as memcached does: its options, its defaults (64 MB, all addresses, port 11211, the least
recently used items go), and no RESP port. Options with a setting of Tenon:

",
    );
    for option in OPTIONS {
        let meaning = match option.meaning {
            Meaning::Setting(name) | Megabytes(name) | ItemSize(name) => format!("--{name}"),
            Is(name, value) => format!("--{name} {value}"),
            Socket => "--memcached-unixsocket, and no port".to_owned(),
            Listen => "--bind".to_owned(),
            Verbose => "--loglevel verbose, debug".to_owned(),
            Only(values, _) => format!("only {}", values[0]),
            Extended => "idle_timeout=SECONDS, and those that have no effect".to_owned(),
            Help => "this text".to_owned(),
            Version => "the version".to_owned(),
            NoEffect(_) => "no effect".to_owned(),
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

    fn read_line(line: &str) -> Result<Asked, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        read(&words).map_err(|problem| format!("{problem:?}"))
    }

    /// The settings beyond the preset, in one line.
    fn settings(line: &str) -> String {
        let asked = read_line(line).unwrap();
        let shown = asked.settings[PRESET.len()..].iter().map(|(name, words)| format!("{name} {}", words.join(" ")));
        shown.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn options_are_read_as_getopt_reads_them() {
        for line in
            ["-m 100 -p 11300 -vv", "-m100 -p11300 -v -v", "--memory-limit=100 --port 11300 -vv", "-vvm 100 -p11300"]
        {
            assert_eq!(settings(line), "maxmemory 100mb, memcached-port 11300, loglevel debug", "{line}");
        }
        assert_eq!(
            settings("-c 4096 -t 8 -I 5m -b 512"),
            "maxclients 4096, workers 8, max-value-size 5242880, tcp-backlog 512"
        );
        assert_eq!(settings("-M -U 0 -B auto -o idle_timeout=30,modern"), "maxmemory-policy noeviction, timeout 30");
        assert_eq!(
            settings("-s /run/m.sock -a 0770"),
            "memcached-unixsocket /run/m.sock, memcached-port 0, unixsocketperm 0770"
        );
    }

    #[test]
    fn addresses_may_have_the_port() {
        assert_eq!(settings("-l 127.0.0.1,10.0.0.1"), "bind 127.0.0.1 10.0.0.1");
        assert_eq!(settings("-l 127.0.0.1:11300"), "memcached-port 11300, bind 127.0.0.1");
        assert_eq!(settings("-l [::1]:11300,127.0.0.1:11300"), "memcached-port 11300, bind ::1 127.0.0.1");
        assert_eq!(settings("-l ::1"), "bind ::1");
        for line in ["-l 1.2.3.4:1,1.2.3.5:2", "-l 1.2.3.4:1,1.2.3.5"] {
            assert!(read_line(line).is_err(), "{line}");
        }
    }

    #[test]
    fn what_cannot_be_honoured_is_refused() {
        for line in [
            "-S",
            "-Y file",
            "-Z",
            "-A",
            "-F",
            "-X",
            "-e file",
            "-U 11211",
            "-B binary",
            "-m x",
            "-I 1000",
            "-I 2000m",
            "-I x",
            "-m 0",
            "-m",
            "-p",
            "-q",
            "--nosuch",
            "--port",
            "--daemon=yes",
            "word",
            "-",
            "-o nosuch",
            "-o ext_path=/x",
        ] {
            assert!(read_line(line).is_err(), "{line}");
        }
        let asked = read_line("-u memcache -k -f 1.25").unwrap();
        assert_eq!(
            asked.idle.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            ["user", "lock-memory", "slab-growth-factor"]
        );
        assert!(read_line("-h").unwrap().help && read_line("-V").unwrap().version);
    }

    #[test]
    fn every_option_is_there_once_and_in_the_help() {
        let text = help();
        for option in OPTIONS {
            assert_eq!(OPTIONS.iter().filter(|other| other.letter == option.letter).count(), 1, "{}", option.letter);
            assert!(text.contains(&format!("-{}", option.letter)));
        }
    }
}
