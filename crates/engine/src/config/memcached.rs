//! memcached's command line (`tenon memcached -m 64 -p 11211 ...`) as settings. It knows neither what the settings do nor who
//! reads them.

use super::error::LoadProblem;
use super::memcached_addresses::{Parts, Plain};
use super::memcached_options::{EXTENDED_WITHOUT_EFFECT, Flag, Meaning, NO_CLASSES, OPTIONS};
use super::memcached_refusal::{MemcachedRefusal, float, integer};
use super::memcached_sizes::Sizes;
use Meaning::{
    AuthFile, Delimiter, Extended, Help, Is, ItemSize, Listen, Mask, Memory, NoEffect, NumberWithoutEffect, Positive,
    Protocol, Refused, Requests, Sasl, Socket, Ssl, Verbose, Version,
};

/// What is said to the settings before the options: memcached's own defaults. RESP is not asked for.
const PRESET: &[(&str, &[&str])] = &[
    ("port", &["0"]),
    ("bind", &["*", "-::*"]),
    ("protected-mode", &["no"]),
    ("maxmemory", &["64mb"]),
    ("maxmemory-counts-startup", &["no"]),
    ("maxmemory-policy", &["allkeys-tenon"]),
    ("maxclients", &["1024"]),
    ("tcp-backlog", &["1024"]),
    ("unixsocketperm", &["700"]),
    ("tls-auth-clients", &["no"]),
    ("tls-session-caching", &["no"]),
];

/// What memcached's command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Settings and their values, in order.
    pub(super) settings: Vec<(&'static str, Vec<String>)>,
    /// Settings, each with the option that it has its value from.
    said: Vec<(&'static str, String)>,
    /// Options that have no effect, and why.
    pub(super) idle: Vec<(&'static str, &'static str)>,
    /// The protocol that is asked for, if one is.
    protocol: Option<&'static str>,
    /// Whether clients of the binary protocol are to say who they are.
    sasl: bool,
    /// The file that clients of the text protocol are looked up in.
    auth_file: Option<String>,
    /// Whether the port speaks TLS.
    ssl: bool,
    /// Whether clients are served at a UNIX socket, and nowhere else.
    socket: bool,
    /// Where to listen.
    parts: Parts,
    /// Memory and items.
    sizes: Sizes,
    /// Whether help is asked for, and nothing else.
    pub(super) help: bool,
    /// Whether the version is asked for, and nothing else.
    pub(super) version: bool,
}

/// Reads memcached's command line, without the program's name. The database is what `MEMCACHED_SASL_PWDB` names.
pub(super) fn read(args: &[String], password_database: Option<String>) -> Result<Asked, LoadProblem> {
    let mut asked = Asked::default();
    for &(name, words) in PRESET {
        asked.settings.push((name, words.iter().map(|&word| word.to_owned()).collect()));
    }
    let mut verbosity = 0;
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        if let Some(long) = word.strip_prefix("--").filter(|name| !name.is_empty()) {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let option = by_long_name(name).map_err(|text| problem(word, text))?;
            let value = match value {
                // memcached takes one, and does not look at it.
                Some(_) if matches!(option.meaning, Verbose) => None,
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
    if !asked.help && !asked.version {
        asked.combine(password_database)?;
    }
    if verbosity > 0 {
        asked.set("loglevel", if verbosity == 1 { "verbose" } else { "debug" });
    }
    Ok(asked)
}

/// memcached counts the bytes in 32 bits; what is more begins again at 0 there.
const SSL_BUFFER_MAX_KB: u32 = u32::MAX / 1024;

const UNKNOWN: &str = "memcached has no such option";
const MISSING: &str = "its argument is missing";
const STRAY: &str = "it belongs to no option";

/// The option of this name, or the one whose name begins so, as `getopt_long` finds it.
fn by_long_name(name: &str) -> Result<&'static Flag, &'static str> {
    if let Some(option) = OPTIONS.iter().find(|option| option.name == name && !name.is_empty()) {
        return Ok(option);
    }
    let mut known = OPTIONS.iter().filter(|option| option.name.starts_with(name));
    match (known.next(), known.next()) {
        (None, _) => Err(UNKNOWN),
        (Some(option), None) => Ok(option),
        (Some(_), Some(_)) => Err("several options begin so"),
    }
}

/// An option as its letter says it.
fn letter(option: &Flag) -> String {
    format!("-{}", option.letter)
}

fn problem(option: &str, text: &'static str) -> LoadProblem {
    LoadProblem::MemcachedOption { option: option.to_owned(), text }
}

impl Asked {
    fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.settings.push((name, vec![value.into()]));
    }

    fn set_by(&mut self, option: impl Into<String>, name: &'static str, value: impl Into<String>) {
        self.said.push((name, option.into()));
        self.set(name, value);
    }

    /// The option that a setting has its value from.
    pub(super) fn option_of(&self, setting: &str) -> Option<&str> {
        self.said.iter().rfind(|(name, _)| *name == setting).map(|(_, option)| option.as_str())
    }

    fn take(&mut self, option: &Flag, word: &str, value: &str, verbosity: &mut u32) -> Result<(), LoadProblem> {
        match option.meaning {
            Meaning::Setting(name) => self.set_by(letter(option), name, value),
            Positive(_, ref refusal) if integer(value) <= 0 => return Err(refusal.clone().into()),
            Positive(name, _) => self.set_by(letter(option), name, value),
            Memory => {
                // What is no number is 0 to memcached, and too little.
                let megabytes = match value.parse() {
                    Err(_) if integer(value) != 0 => return Err(problem(word, "it takes a number of megabytes")),
                    read => read.unwrap_or(0),
                };
                self.sizes.set_memory(megabytes);
                self.set("maxmemory", format!("{megabytes}mb"));
            }
            ItemSize => self.sizes.set_item(value).ok_or_else(|| problem(word, "it takes 1k to 1024m"))?,
            Requests => match value.parse::<u32>() {
                Ok(requests @ 1..) => self.set("memcached-requests-per-turn", requests.to_string()),
                _ if integer(value) == 0 => return Err(MemcachedRefusal::Requests.into()),
                _ => return Err(problem(word, "it takes a number of requests")),
            },
            Is(name, value) => self.set(name, value),
            Socket => {
                self.set("memcached-unixsocket", value);
                self.socket = true;
            }
            Mask if u32::from_str_radix(value, 8) == Ok(0) => {
                return Err(problem(word, "with 0 nobody but root could connect"));
            }
            Mask => self.set_by(letter(option), "unixsocketperm", value),
            Listen => self.parts.add(value),
            Delimiter if value.is_empty() => return Err(MemcachedRefusal::Delimiter.into()),
            Delimiter => self.set("memcached-stats-delimiter", value),
            Extended => {
                for option in value.split(',').filter(|option| !option.is_empty()) {
                    self.extended(option)?;
                }
            }
            Protocol => {
                self.protocol = Some(match value {
                    "auto" | "auto-negotiate" => "auto",
                    "ascii" => "ascii",
                    "binary" => "binary",
                    _ => return Err(MemcachedRefusal::Protocol(value.to_owned()).into()),
                });
            }
            Sasl => self.sasl = true,
            AuthFile => self.auth_file = Some(value.to_owned()),
            Ssl => self.ssl = true,
            Verbose => *verbosity += 1,
            Help => self.help = true,
            Version => self.version = true,
            NoEffect(text) => self.idle.push((option.name, text)),
            // Nor is it a number to memcached that is not one: its comparison refuses what is not over the bound.
            NumberWithoutEffect { over, ref otherwise } if float(value) <= over => {
                return Err(otherwise.clone().into());
            }
            NumberWithoutEffect { .. } => self.idle.push((option.name, NO_CLASSES)),
            Refused(text) => return Err(problem(word, text)),
        }
        Ok(())
    }

    /// Says what several options mean together.
    fn combine(&mut self, password_database: Option<String>) -> Result<(), LoadProblem> {
        let item_max = self.sizes.item_max().map_err(LoadProblem::MemcachedSizes)?;
        if let Some((_, words)) = self.settings.iter().rfind(|(name, _)| *name == "memcached-port")
            && integer(&words[0]) > i64::from(u16::MAX)
        {
            return Err(MemcachedRefusal::Port(integer(&words[0])).into());
        }
        self.set("max-value-size", item_max.to_string());
        // To ask for certificates that nothing could be made of is to ask for none.
        let last = |name| self.settings.iter().rfind(|(known, _)| *known == name).map(|(_, words)| words[0].as_str());
        if last("tls-auth-clients") == Some("optional") && last("tls-ca-cert-file").is_none() {
            self.set("tls-auth-clients", "no");
        }
        // A port behind an address is the one, whatever `-p` says. Beside a UNIX socket nobody reads addresses.
        let addresses = if self.socket { None } else { self.parts.read()? };
        if let Some(addresses) = &addresses {
            if let Some(port) = &addresses.port {
                self.set_by("-l", "memcached-port", port);
            }
            self.said.push(("bind", "-l".to_owned()));
            self.settings.push(("bind", addresses.bind.clone()));
        }
        let udp_port = self.settings.iter().rfind(|(name, _)| *name == "memcached-udp-port");
        let udp_port = udp_port.map(|(_, words)| words[0].clone()).filter(|port| port != "0");
        let udp = udp_port.is_some();
        // Who names only the port of UDP means both.
        if let Some(port) = udp_port
            && self.settings.iter().all(|(name, _)| *name != "memcached-port")
        {
            self.set("memcached-port", port);
        }
        let auth = match (self.sasl, self.auth_file.take()) {
            (true, Some(_)) => return Err(problem("-S", "not together with -Y")),
            (true, None) => Some(("-S", "binary", password_database)),
            (false, Some(file)) => Some(("-Y", "ascii", Some(file))),
            (false, None) => None,
        };
        let usual = self.protocol.or(auth.as_ref().map(|&(_, protocol, _)| protocol));
        let spoken = addresses.as_ref().map(|addresses| addresses.protocol(usual.unwrap_or("auto"))).transpose()?;
        self.protocol = if spoken == Some("auto") && usual.is_none() { None } else { spoken.or(usual) };
        if let Some((option, protocol, file)) = auth {
            if self.protocol != Some(protocol) {
                return Err(problem(option, "the other protocol has another way to say who one is"));
            }
            if udp {
                return Err(problem(option, "UDP has no way to say who one is"));
            }
            self.set("memcached-auth", "yes");
            if let Some(file) = file {
                self.set("memcached-auth-file", file);
            }
        }
        if let Some(protocol) = self.protocol.take() {
            self.set("memcached-protocol", protocol);
        }
        let plain = addresses.map_or(Plain::None, |addresses| addresses.plain);
        if !self.ssl && matches!(plain, Plain::Port(_)) {
            return Err(problem("-l", "without -Z all addresses have the same port"));
        }
        if self.ssl && plain != Plain::All {
            let last = self.settings.iter().rposition(|(name, _)| *name == "memcached-port");
            let port = last.map_or_else(|| vec!["11211".to_owned()], |last| self.settings[last].1.clone());
            self.settings.push(("memcached-tls-port", port));
            let plain = match plain {
                Plain::Port(port) => port,
                _ => "0".to_owned(),
            };
            self.set("memcached-port", plain);
        }
        if self.socket {
            // Whatever else names a port, before `-s` or behind it.
            for port in ["memcached-port", "memcached-tls-port", "memcached-udp-port"] {
                self.set(port, "0");
            }
        }
        Ok(())
    }

    fn extended(&mut self, option: &str) -> Result<(), LoadProblem> {
        let (name, given) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let value = given.unwrap_or_default();
        match name {
            "slab_chunk_max" => self.sizes.set_piece(given).map_err(LoadProblem::MemcachedSizes)?,
            "no_chunked_items" => self.sizes.set_whole_items(),
            "no_modern" => self.sizes.set_old_ways(),
            "idle_timeout" => self.set_by("-o idle_timeout", "timeout", value),
            "watcher_logbuf_size" => match value.parse::<u32>() {
                Ok(kilobytes @ 1..) => self.set("memcached-watch-buffer", format!("{kilobytes}kb")),
                _ => return Err(problem(option, "it takes a number of kilobytes")),
            },
            // The latter is the same by an older name.
            "read_buf_mem_limit" | "resp_obj_mem_limit" => match value.parse::<u32>() {
                Ok(megabytes) => self.set("maxmemory-clients", format!("{megabytes}mb")),
                Err(_) => return Err(problem(option, "it takes a number of megabytes")),
            },
            "track_sizes" => self.set("memcached-track-sizes", "yes"),
            // Tenon's own: memcached bounds no answer.
            "udp_amplification_max" => {
                self.set_by("-o udp_amplification_max", "memcached-udp-amplification-max", value);
            }
            "ssl_chain_cert" => self.set("tls-cert-file", value),
            "ssl_key" => self.set("tls-key-file", value),
            "ssl_ca_cert" => self.set("tls-ca-cert-file", value),
            "ssl_ciphers" => self.set("tls-ciphers", value),
            "ssl_keyformat" if value == "1" || value.eq_ignore_ascii_case("pem") => {}
            "ssl_verify_mode" => {
                let clients = match value {
                    "0" => "no",
                    // Once is what TLS 1.3 does anyhow.
                    "1" => "optional",
                    "2" | "3" => "yes",
                    _ => return Err(problem(option, "it takes 0 to 3")),
                };
                self.set("tls-auth-clients", clients);
            }
            "ssl_min_version" => {
                let versions = match value {
                    // Nothing older than TLS 1.2 is spoken.
                    "0" | "1" | "2" | "tlsv1.0" | "tlsv1.1" | "tlsv1.2" => "TLSv1.2 TLSv1.3",
                    "3" | "tlsv1.3" => "TLSv1.3",
                    _ => return Err(problem(option, "it takes tlsv1.2 or tlsv1.3")),
                };
                self.set("tls-protocols", versions);
            }
            "ssl_session_cache" => self.set("tls-session-caching", "yes"),
            "ssl_wbuf_size" => {
                let given = given.ok_or_else(|| problem(option, "Missing ssl_wbuf_size argument"))?;
                match given.parse::<u32>() {
                    Ok(kilobytes @ 1..=SSL_BUFFER_MAX_KB) => self.set("tls-write-buffer", format!("{kilobytes}kb")),
                    _ => return Err(problem(option, "could not parse argument to ssl_wbuf_size")),
                }
            }
            "ssl_kernel_tls" => {
                self.idle.push(("ssl_kernel_tls", "TLS is spoken by the process, as where the kernel has none."));
            }
            // Too many clients are turned away in any case.
            "no_maxconns_fast" => self.idle.push(("no_maxconns_fast", "Who is one too many is told so at once.")),
            _ => match EXTENDED_WITHOUT_EFFECT.iter().find(|known| **known == name) {
                Some(name) => self.idle.push((name, "It tunes what Tenon does not have.")),
                None => return Err(problem(option, "no extended option that is supported")),
            },
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_line(line: &str) -> Result<Asked, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        read(&words, Some("/etc/users".to_owned())).map_err(|problem| format!("{problem:?}"))
    }

    fn is_usual_item_max(name: &str, words: &[String]) -> bool {
        name == "max-value-size" && words == ["1048576"]
    }

    /// The settings beyond the preset, in one line.
    fn settings(line: &str) -> String {
        let asked = read_line(line).unwrap();
        let shown = asked.settings[PRESET.len()..].iter().filter(|(name, words)| !is_usual_item_max(name, words));
        let shown = shown.map(|(name, words)| format!("{name} {}", words.join(" ")));
        shown.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn options_are_read_as_getopt_reads_them() {
        for line in
            ["-m 100 -p 11300 -vv", "-m100 -p11300 -v -v", "--memory-limit=100 --port 11300 -vv", "-vvm 100 -p11300"]
        {
            assert_eq!(settings(line), "maxmemory 100mb, memcached-port 11300, loglevel debug", "{line}");
        }
        for (line, meant) in [
            ("--thr 4", "workers 4"),
            ("--port 1 --po=2", "memcached-port 1, memcached-port 2"),
            ("--verbose=2", "loglevel verbose"),
            ("--verb --verbo=x", "loglevel debug"),
            // A whole name is no abbreviation of a longer one.
            ("--listen ::1", "bind ::1"),
        ] {
            assert_eq!(settings(line), meant, "{line}");
        }
        for line in ["--l 127.0.0.1", "--disable", "--ver", "--thr", "--dae=1", "--=1"] {
            assert!(read_line(line).is_err(), "{line}");
        }
        assert_eq!(
            settings("-c 4096 -t 8 -I 5m -b 512"),
            "maxclients 4096, workers 8, tcp-backlog 512, max-value-size 5242880"
        );
        assert_eq!(
            settings("-M -U 0 -B auto -o idle_timeout=30,modern"),
            "maxmemory-policy noeviction, memcached-udp-port 0, timeout 30, memcached-protocol auto"
        );
        assert_eq!(
            settings("-s /run/m.sock -a 0770"),
            "memcached-unixsocket /run/m.sock, unixsocketperm 0770, memcached-port 0, memcached-tls-port 0, \
             memcached-udp-port 0"
        );
    }

    #[test]
    fn who_names_a_unix_socket_has_no_port() {
        for line in [
            "-s /run/m.sock",
            "-s /run/m.sock -p 11211",
            "-p 11211 -s /run/m.sock",
            "-s /run/m.sock -U 11211",
            "-U 11211 -s /run/m.sock -p 11300",
            "-s /run/m.sock -l 127.0.0.1:11211",
            "-l notls:127.0.0.1:11211,127.0.0.1:11300 -s /run/m.sock -Z",
            "-Z -s /run/m.sock -p 11211",
            // memcached does not look at these either.
            "-s /run/m.sock -l 127.0.0.1:1,127.0.0.2:2",
            // Debian's file with a line for the socket.
            "-d -m 64 -s /run/m.sock -p 11211 -u memcache -l 127.0.0.1 -P /var/run/memcached/memcached.pid",
        ] {
            let asked = read_line(line).unwrap();
            let last = |name| {
                let found = asked.settings.iter().rfind(|(known, _)| *known == name);
                found.map(|(_, words)| words.join(" "))
            };
            assert_eq!(last("memcached-unixsocket").unwrap(), "/run/m.sock", "{line}");
            assert_eq!(last("memcached-port").as_deref(), Some("0"), "{line}");
            for port in ["port", "memcached-tls-port", "memcached-udp-port"] {
                assert!(last(port).is_none_or(|port| port == "0"), "{line}: {port}");
            }
        }
        // As without a socket.
        assert!(read_line("-s /run/m.sock -p 70000").is_err());
    }

    #[test]
    fn who_must_say_who_he_is_speaks_one_protocol() {
        assert_eq!(settings("-S"), "memcached-auth yes, memcached-auth-file /etc/users, memcached-protocol binary");
        assert_eq!(
            settings("-Y users -B ascii"),
            "memcached-auth yes, memcached-auth-file users, memcached-protocol ascii"
        );
        assert_eq!(settings("-B binary"), "memcached-protocol binary");
        // What Debian's file says.
        assert_eq!(
            settings("-d -m 64 -p 11211 -u memcache -l 127.0.0.1 -P /var/run/memcached/memcached.pid"),
            "daemonize yes, maxmemory 64mb, memcached-port 11211, run-as memcache, \
             pidfile /var/run/memcached/memcached.pid, bind 127.0.0.1"
        );
        assert_eq!(
            settings("-AFXW -U 11300 -o watcher_logbuf_size=8"),
            "memcached-shutdown yes, memcached-flush-all no, memcached-dump no, memcached-watch no, \
             memcached-udp-port 11300, memcached-watch-buffer 8kb, memcached-port 11300"
        );
        assert_eq!(settings("-D : -D/"), "memcached-stats-delimiter :, memcached-stats-delimiter /");
        let problem = read(&["-D".to_owned(), String::new()], None).unwrap_err();
        assert!(format!("{problem:?}").contains("Delimiter"), "{problem:?}");
        assert_eq!(
            settings("-R 200 -o read_buf_mem_limit=64"),
            "memcached-requests-per-turn 200, maxmemory-clients 64mb"
        );
        assert!(read_line("-R 0").is_err());
        assert_eq!(settings("-U 11300 -p 11400"), "memcached-udp-port 11300, memcached-port 11400");
    }

    #[test]
    fn the_port_may_speak_tls() {
        assert_eq!(
            settings("-Z -p 11300 -o ssl_chain_cert=c.pem,ssl_key=k.pem,ssl_verify_mode=2,ssl_min_version=tlsv1.3"),
            "memcached-port 11300, tls-cert-file c.pem, tls-key-file k.pem, tls-auth-clients yes, \
             tls-protocols TLSv1.3, memcached-tls-port 11300, memcached-port 0"
        );
        assert_eq!(
            settings("-Z -o ssl_chain_cert=c.pem,ssl_key=k.pem,ssl_verify_mode=1"),
            "tls-cert-file c.pem, tls-key-file k.pem, tls-auth-clients optional, tls-auth-clients no, \
             memcached-tls-port 11211, memcached-port 0"
        );
        for (given, bytes) in [("1", "1kb"), ("64", "64kb"), ("4194303", "4194303kb")] {
            assert_eq!(settings(&format!("-o ssl_wbuf_size={given}")), format!("tls-write-buffer {bytes}"));
        }
        for (option, text) in [
            ("ssl_wbuf_size", "Missing ssl_wbuf_size argument"),
            ("ssl_wbuf_size=", "could not parse argument to ssl_wbuf_size"),
            ("ssl_wbuf_size=x", "could not parse argument to ssl_wbuf_size"),
            ("ssl_wbuf_size=-1", "could not parse argument to ssl_wbuf_size"),
            // memcached takes these two: the first one is answered nothing, the second one is no more than nothing.
            ("ssl_wbuf_size=0", "could not parse argument to ssl_wbuf_size"),
            ("ssl_wbuf_size=4194304", "could not parse argument to ssl_wbuf_size"),
        ] {
            let problem = read(&["-o".to_owned(), option.to_owned()], None).err().map(|problem| format!("{problem:?}"));
            assert!(problem.as_ref().is_some_and(|problem| problem.contains(text)), "{option}: {problem:?}");
        }
    }

    #[test]
    fn addresses_may_have_the_port() {
        assert_eq!(settings("-l 127.0.0.1,10.0.0.1"), "bind 127.0.0.1 10.0.0.1");
        assert_eq!(settings("-l 127.0.0.1:11300"), "memcached-port 11300, bind 127.0.0.1");
        assert_eq!(settings("-l [::1]:11300,127.0.0.1:11300"), "memcached-port 11300, bind ::1 127.0.0.1");
        assert_eq!(settings("-l ::1"), "bind ::1");
        assert_eq!(settings("-l 127.0.0.1 -l ::1"), "bind 127.0.0.1 ::1");
        assert_eq!(
            settings("-l 127.0.0.1:11300 -p 11400"),
            "memcached-port 11400, memcached-port 11300, bind 127.0.0.1"
        );
        assert_eq!(
            settings("-Z -l notls:127.0.0.1:11300,127.0.0.1:11400"),
            "memcached-port 11400, bind 127.0.0.1, memcached-tls-port 11400, memcached-port 11300"
        );
        assert_eq!(settings("-Z -l notls:127.0.0.1:11300"), "memcached-port 11300, bind 127.0.0.1");
        assert_eq!(settings("-l notls:127.0.0.1"), "bind 127.0.0.1");
        for line in [
            "-l 1.2.3.4:1,1.2.3.5:2",
            "-l 1.2.3.4:1,1.2.3.5",
            "-l notls:1.2.3.4:1,1.2.3.4:2",
            "-Z -l notls:1.2.3.4,1.2.3.4:2",
            "-Z -l notls:1.2.3.4:1,1.2.3.5:2",
        ] {
            assert!(read_line(line).is_err(), "{line}");
        }
    }

    #[test]
    fn addresses_may_have_the_protocol_and_a_tag() {
        for (line, meant) in [
            ("-l tag[a]:127.0.0.1:11300", "memcached-port 11300, bind 127.0.0.1"),
            ("-l proto[ascii]:127.0.0.1:11300", "memcached-port 11300, bind 127.0.0.1, memcached-protocol ascii"),
            ("-l proto[bin]:tag[a]:127.0.0.1,proto[binary]:[::1]", "bind 127.0.0.1 ::1, memcached-protocol binary"),
            ("-l proto[ascii]:1.2.3.4,1.2.3.5 -B ascii", "bind 1.2.3.4 1.2.3.5, memcached-protocol ascii"),
            ("-l proto[negotiating]:1.2.3.4 -B ascii", "bind 1.2.3.4, memcached-protocol auto"),
            ("-l proto[negotiating]:1.2.3.4,proto[nosuch]:1.2.3.5", "bind 1.2.3.4 1.2.3.5"),
            (
                "-l proto[ascii]:1.2.3.4 -Y users",
                "bind 1.2.3.4, memcached-auth yes, memcached-auth-file users, memcached-protocol ascii",
            ),
        ] {
            assert_eq!(settings(line), meant, "{line}");
        }
    }

    #[test]
    fn what_cannot_be_honoured_is_refused() {
        for line in [
            "-l proto[ascii]:1.2.3.4,1.2.3.5",
            "-l proto[ascii]:1.2.3.4,proto[binary]:1.2.3.5",
            "-l proto[proxy]:1.2.3.4",
            "-l proto[ascii:1.2.3.4",
            "-l tag[]:1.2.3.4",
            "-l tag[ninechars]:1.2.3.4",
            "-Y file -l proto[binary]:1.2.3.4",
            "-S -l proto[ascii]:1.2.3.4",
            "-S -Y file",
            "-S -B ascii",
            "-Y file -B binary",
            "-S -U 11211",
            "-Y file -U 11211",
            "-e file",
            "-B both",
            "-s /run/m.sock -a 0",
            "-o ssl_verify_mode=4",
            "-o watcher_logbuf_size=x",
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
        let asked = read_line("-o no_slab_automove,slab_sizes=100-200-300,no_slab_reassign,modern").unwrap();
        assert_eq!(
            asked.idle.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            ["no_slab_automove", "slab_sizes", "no_slab_reassign", "modern"]
        );
        let asked = read_line("-u memcache -k -f 1.25").unwrap();
        assert_eq!(asked.idle.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["lock-memory", "slab-growth-factor"]);
        assert!(read_line("-h").unwrap().help && read_line("-V").unwrap().version);
    }
}
