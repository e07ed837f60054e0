//! What a newcomer reads when the server has started. A pure function of facts; prints nothing itself.

use crate::net::{Address, Bound, FrontEnd, Takes};
use crate::whole_path::whole_path;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What the banner tells.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// Tenon's version, such as `0.1.0`.
    pub version: &'a str,
    /// The process's number.
    pub pid: u32,
    /// What is listened on.
    pub bound: &'a [Bound],
    /// How many worker threads serve.
    pub workers: usize,
    /// `maxmemory` in bytes; `None` for no limit.
    pub memory_limit_bytes: Option<u64>,
    /// Where the limit comes from, such as `80 % of the cgroup's limit`.
    pub memory_limit_source: &'a str,
    /// The eviction policy's name.
    pub policy: &'a str,
    /// What keeps data over a restart, such as `log, appendfsync everysec`; empty for nothing.
    pub kept_by: &'a str,
    /// What was read beside the command line.
    pub config_sources: &'a [String],
}

/// The banner: a few lines, each ended by a newline.
pub fn banner(facts: &Facts<'_>) -> String {
    let mut text = format!("Tenon {}, process {}\n", facts.version, facts.pid);
    let mut line = |name: &str, what: &str| {
        writeln!(text, "  {name:<10} {what}").expect("a String takes everything");
    };
    for front_end in [FrontEnd::Resp, FrontEnd::Memcached] {
        let name = front_end.to_string();
        let addresses = addresses(facts.bound, front_end);
        line(&name, if addresses.is_empty() { "off" } else { &addresses });
    }
    line("workers", &facts.workers.to_string());
    let limit = facts.memory_limit_bytes.map_or("no limit".to_owned(), human_bytes);
    line("memory", &format!("{limit} ({}), then {}", facts.memory_limit_source, facts.policy));
    let in_memory = "in memory alone, gone at the end: appendonly, save and save-on-exit are off";
    line("data", if facts.kept_by.is_empty() { in_memory } else { facts.kept_by });
    let sources = facts.config_sources.join(", ");
    line("config", if sources.is_empty() { "none: the defaults and the command line" } else { &sources });
    if let Some(how) = how_to_try(facts.bound) {
        line("try it", &how);
    }
    text
}

fn addresses(bound: &[Bound], front_end: FrontEnd) -> String {
    let own = bound.iter().filter(|bound| bound.front_end == front_end);
    own.map(|bound| match &bound.address {
        Address::Inet(address) if bound.takes == Takes::Tls => format!("{address} (TLS)"),
        Address::Inet(address) if bound.takes == Takes::Datagrams => format!("{address} (UDP)"),
        Address::Inet(address) => address.to_string(),
        Address::Unix(path) => path.display().to_string(),
    })
    .collect::<Vec<_>>()
    .join(", ")
}

/// Commands that a newcomer can paste: a value goes in through one front end and comes out of the other.
fn how_to_try(bound: &[Bound]) -> Option<String> {
    let first = |front_end| {
        let in_clear = bound.iter().find(|bound| bound.front_end == front_end && bound.takes == Takes::Connections);
        in_clear.map(|bound| &bound.address)
    };
    let (resp, memcached) = (first(FrontEnd::Resp), first(FrontEnd::Memcached));
    let set_by_resp = resp.map(|address| format!("{} set greeting hello", redis_cli(address)));
    let set_by_memcached = r"set greeting 0 0 5\r\nhello\r\n";
    let get_by_memcached =
        |before: &str, address: &Address| format!(r"printf '{before}get greeting\r\nquit\r\n' | {}", netcat(address));
    match (set_by_resp, memcached) {
        (Some(set), Some(address)) => Some(format!("{set}; {}", get_by_memcached("", address))),
        (Some(set), None) => Some(set),
        (None, Some(address)) => Some(get_by_memcached(set_by_memcached, address)),
        (None, None) => None,
    }
}

fn redis_cli(address: &Address) -> String {
    match address {
        Address::Unix(path) => format!("redis-cli -s {}", whole_path(path).display()),
        Address::Inet(address) => {
            let mut command = "redis-cli".to_owned();
            let host = reachable_host(address);
            if host != IpAddr::from(Ipv4Addr::LOCALHOST) {
                write!(command, " -h {host}").expect("a String takes everything");
            }
            if address.port() != 6379 {
                write!(command, " -p {}", address.port()).expect("a String takes everything");
            }
            command
        }
    }
}

fn netcat(address: &Address) -> String {
    match address {
        Address::Unix(path) => format!("nc -U {}", path.display()),
        Address::Inet(address) => format!("nc {} {}", reachable_host(address), address.port()),
    }
}

/// The address itself, or loopback where all addresses are listened on.
fn reachable_host(address: &SocketAddr) -> IpAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

/// Bytes with a binary unit and one decimal, rounded down: `12.4 GiB`.
fn human_bytes(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.into_iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::Arc;

    fn bound(front_end: FrontEnd, address: &str) -> Bound {
        Bound { front_end, takes: Takes::Connections, address: Address::Inet(address.parse().unwrap()), fd: 0 }
    }

    fn facts<'a>(bound: &'a [Bound]) -> Facts<'a> {
        Facts {
            version: "0.1.0",
            pid: 42,
            bound,
            workers: 2,
            memory_limit_bytes: Some(13_314_398_617),
            memory_limit_source: "80 % of the machine's memory",
            policy: "noeviction",
            kept_by: "",
            config_sources: &[],
        }
    }

    #[test]
    fn the_defaults_read_well() {
        let bound = [
            bound(FrontEnd::Resp, "127.0.0.1:6379"),
            bound(FrontEnd::Resp, "[::1]:6379"),
            bound(FrontEnd::Memcached, "127.0.0.1:11211"),
        ];
        let expected = "\
Tenon 0.1.0, process 42
  RESP       127.0.0.1:6379, [::1]:6379
  memcached  127.0.0.1:11211
  workers    2
  memory     12.3 GiB (80 % of the machine's memory), then noeviction
  data       in memory alone, gone at the end: appendonly, save and save-on-exit are off
  config     none: the defaults and the command line
  try it     redis-cli set greeting hello; printf 'get greeting\\r\\nquit\\r\\n' | nc 127.0.0.1 11211
";
        assert_eq!(banner(&facts(&bound)), expected);
    }

    #[test]
    fn what_is_off_is_not_offered() {
        let path = Address::Unix(Arc::from(Path::new("/run/t.sock")));
        let unix = [Bound { front_end: FrontEnd::Resp, takes: Takes::Connections, address: path, fd: 0 }];
        let config_sources = &["/etc/t.conf".to_owned(), "the standard input".to_owned()];
        let text = banner(&Facts { memory_limit_bytes: None, kept_by: "log", config_sources, ..facts(&unix) });
        assert!(text.contains("\n  memcached  off\n"), "{text}");
        assert!(text.contains("memory     no limit ("), "{text}");
        assert!(text.contains("data       log\n  config     /etc/t.conf, the standard input\n"), "{text}");
        assert!(text.ends_with("try it     redis-cli -s /run/t.sock set greeting hello\n"), "{text}");
        let everywhere = [bound(FrontEnd::Memcached, "0.0.0.0:7001")];
        let text = banner(&facts(&everywhere));
        assert!(text.contains(r"printf 'set greeting 0 0 5\r\nhello\r\nget greeting"), "{text}");
        assert!(text.ends_with("| nc 127.0.0.1 7001\n"), "{text}");
        assert!(!banner(&facts(&[])).contains("try it"));
    }

    #[test]
    fn sizes_are_rounded_down() {
        assert_eq!(human_bytes(1023), "1023 bytes");
        assert_eq!(human_bytes(2047 << 10), "1.9 MiB");
        assert_eq!(human_bytes(1 << 30), "1.0 GiB");
    }
}
