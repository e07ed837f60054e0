//! Settings and directives of Redis and Valkey that Tenon does not have: what may be said of them, and why no more. It
//! changes nothing anywhere.

use super::value::parse_memory;

/// A setting of Redis or Valkey that Tenon lacks. Its default says what Tenon does anyway, so a file may state it, and
/// CONFIG GET shows it; what comes of any other value is told by `otherwise`. CONFIG SET refuses it in either case, for
/// it would not be kept.
#[derive(Debug)]
pub struct Fixed {
    /// The name.
    pub name: &'static str,
    /// An older name for it, if there is one.
    pub alias: Option<&'static str>,
    /// The only value there is.
    pub value: &'static str,
    /// Another text that says the same.
    same: Option<&'static str>,
    /// What another value does in a file or on the command line.
    pub otherwise: Otherwise,
    /// Why there is no other.
    pub reason: &'static str,
}

/// What comes of a value that Tenon does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Otherwise {
    /// It promises what Tenon does not keep: the start is refused.
    Refused,
    /// It tunes what is not there, as the backlog for replicas: a warning is logged. Files that have served a Redis for
    /// years have many of them.
    Warned,
}

impl Fixed {
    /// The name and the older name.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.alias)
    }

    /// Whether what others say here is a secret, to be kept out of logs.
    pub fn is_sensitive(&self) -> bool {
        SECRETS.contains(&self.name)
    }

    /// Whether these words say the one value, in whichever way: `64mb` is `67108864`.
    pub(super) fn accepts(&self, words: &[String]) -> bool {
        let text = words.join(" ");
        let same_memory = || parse_memory(&text).is_some_and(|bytes| parse_memory(self.value) == Some(bytes));
        let is = |value: &str| text.eq_ignore_ascii_case(value);
        is(self.value) || self.same.is_some_and(is) || same_memory()
    }
}

const fn fixed(name: &'static str, value: &'static str, reason: &'static str) -> Fixed {
    Fixed { name, alias: None, value, same: None, otherwise: Otherwise::Warned, reason }
}

const fn renamed(name: &'static str, alias: &'static str, value: &'static str, reason: &'static str) -> Fixed {
    Fixed { alias: Some(alias), ..fixed(name, value, reason) }
}

/// Only this value, since others promise something.
const fn only(fixed: Fixed) -> Fixed {
    Fixed { otherwise: Otherwise::Refused, ..fixed }
}

/// Those whose other values are secrets.
static SECRETS: &[&str] = &["masteruser", "masterauth", "tls-key-file-pass", "tls-client-key-file-pass"];

const REPLICATION: &str = "Tenon has no replication";
const CLUSTER: &str = "Tenon has no cluster mode";
const TLS_CLIENT: &str = "Tenon opens no connections over TLS";
const TLS_SESSIONS: &str = "a session of TLS is remembered until newer ones need its place";
const TLS_KEY: &str = "Tenon reads no encrypted private keys";
const TLS_DH: &str = "Tenon exchanges keys by elliptic curves alone";
const AOF: &str = "Tenon always tidies up";
const SYNC_FILES: &str = "Tenon has no replication, for which Redis writes such files";
const ARRAYS: &str = "Tenon has no arrays";
const SLOWLOG: &str = "entries of the slow log keep 32 arguments, of 128 bytes each";
const PAYLOADS: &str = "Tenon believes nothing of what it loads, and checks all of it";
const DEFRAG: &str = "Tenon packs memory at a pace of its own";
const RDMA: &str = "Tenon has no RDMA";
const AFFINITY: &str = "Tenon pins no threads; start it under taskset";
const OOM: &str = "Tenon leaves the OOM killer's scores alone";

/// The settings that have one value. Names and defaults are those of redis-server 7.0 (`CONFIG GET *`), then those that
/// Redis 8.0 and 8.8 and Valkey 9.1 have beside them; that of `sanitize-dump-payload` is what Tenon does.
pub static ACCEPTED_AT_DEFAULT: &[Fixed] = &[
    Fixed { same: Some("no one"), ..only(renamed("replicaof", "slaveof", "", REPLICATION)) },
    renamed("masteruser", "primaryuser", "", REPLICATION),
    renamed("masterauth", "primaryauth", "", REPLICATION),
    renamed("replica-serve-stale-data", "slave-serve-stale-data", "yes", REPLICATION),
    renamed("replica-read-only", "slave-read-only", "yes", REPLICATION),
    renamed("replica-ignore-maxmemory", "slave-ignore-maxmemory", "yes", REPLICATION),
    renamed("replica-lazy-flush", "slave-lazy-flush", "no", REPLICATION),
    renamed("replica-priority", "slave-priority", "100", REPLICATION),
    renamed("replica-announce-ip", "slave-announce-ip", "", REPLICATION),
    renamed("replica-announce-port", "slave-announce-port", "0", REPLICATION),
    fixed("replica-announced", "yes", REPLICATION),
    fixed("replica-ignore-disk-write-errors", "no", REPLICATION),
    fixed("propagation-error-behavior", "ignore", REPLICATION),
    fixed("repl-diskless-sync", "yes", REPLICATION),
    fixed("repl-diskless-sync-delay", "5", REPLICATION),
    fixed("repl-diskless-sync-max-replicas", "0", REPLICATION),
    fixed("repl-diskless-load", "disabled", REPLICATION),
    fixed("repl-disable-tcp-nodelay", "no", REPLICATION),
    renamed("repl-ping-replica-period", "repl-ping-slave-period", "10", REPLICATION),
    fixed("repl-timeout", "60", REPLICATION),
    fixed("repl-backlog-size", "1048576", REPLICATION),
    fixed("repl-backlog-ttl", "3600", REPLICATION),
    only(renamed("min-replicas-to-write", "min-slaves-to-write", "0", REPLICATION)),
    renamed("min-replicas-max-lag", "min-slaves-max-lag", "10", REPLICATION),
    only(fixed("cluster-enabled", "no", CLUSTER)),
    fixed("cluster-config-file", "nodes.conf", CLUSTER),
    fixed("cluster-node-timeout", "15000", CLUSTER),
    fixed("cluster-port", "0", CLUSTER),
    fixed("cluster-migration-barrier", "1", CLUSTER),
    renamed("cluster-replica-validity-factor", "cluster-slave-validity-factor", "10", CLUSTER),
    renamed("cluster-replica-no-failover", "cluster-slave-no-failover", "no", CLUSTER),
    fixed("cluster-require-full-coverage", "yes", CLUSTER),
    fixed("cluster-allow-reads-when-down", "no", CLUSTER),
    fixed("cluster-allow-pubsubshard-when-down", "yes", CLUSTER),
    fixed("cluster-allow-replica-migration", "yes", CLUSTER),
    fixed("cluster-link-sendbuf-limit", "0", CLUSTER),
    fixed("cluster-preferred-endpoint-type", "ip", CLUSTER),
    fixed("cluster-announce-ip", "", CLUSTER),
    fixed("cluster-announce-hostname", "", CLUSTER),
    fixed("cluster-announce-port", "0", CLUSTER),
    fixed("cluster-announce-tls-port", "0", CLUSTER),
    fixed("cluster-announce-bus-port", "0", CLUSTER),
    fixed("tls-cluster", "no", CLUSTER),
    fixed("tls-replication", "no", REPLICATION),
    fixed("tls-session-cache-timeout", "300", TLS_SESSIONS),
    only(fixed("tls-key-file-pass", "", TLS_KEY)),
    fixed("tls-client-cert-file", "", TLS_CLIENT),
    fixed("tls-client-key-file", "", TLS_CLIENT),
    fixed("tls-client-key-file-pass", "", TLS_CLIENT),
    fixed("tls-dh-params-file", "", TLS_DH),
    only(fixed("aof-disable-auto-gc", "no", AOF)),
    fixed("rdb-del-sync-files", "no", SYNC_FILES),
    Fixed { same: Some("clients"), ..fixed("sanitize-dump-payload", "yes", PAYLOADS) },
    fixed("enable-module-command", "no", "Tenon has no modules"),
    fixed("active-defrag-ignore-bytes", "104857600", DEFRAG),
    fixed("active-defrag-threshold-lower", "10", DEFRAG),
    fixed("active-defrag-threshold-upper", "100", DEFRAG),
    fixed("active-defrag-cycle-min", "1", DEFRAG),
    fixed("active-defrag-cycle-max", "25", DEFRAG),
    fixed("active-defrag-max-scan-fields", "1000", DEFRAG),
    renamed("server-cpulist", "server_cpulist", "", AFFINITY),
    renamed("bio-cpulist", "bio_cpulist", "", AFFINITY),
    renamed("aof-rewrite-cpulist", "aof_rewrite_cpulist", "", AFFINITY),
    renamed("bgsave-cpulist", "bgsave_cpulist", "", AFFINITY),
    fixed("oom-score-adj", "no", OOM),
    fixed("oom-score-adj-values", "0 200 800", OOM),
    fixed("bind-source-addr", "", "the connections that MIGRATE opens come from the address that the system chooses"),
    only(fixed("socket-mark-id", "0", "Tenon does not mark its sockets")),
    // Redis 8.0.
    fixed("replica-full-sync-buffer-limit", "0", REPLICATION),
    fixed("cluster-announce-human-nodename", "", CLUSTER),
    fixed("cluster-compatibility-sample-ratio", "0", CLUSTER),
    // Redis 8.8.
    fixed("aof-load-corrupt-tail-max-size", "0", "Tenon loads no damaged log; `tenon check aof --fix` cuts a tail off"),
    fixed("array-slice-size", "4096", ARRAYS),
    fixed("array-sparse-kmax", "10", ARRAYS),
    fixed("array-sparse-kmin", "5", ARRAYS),
    fixed("cluster-slot-migration-handoff-max-lag-bytes", "1048576", CLUSTER),
    fixed("cluster-slot-migration-write-pause-timeout", "10000", CLUSTER),
    fixed("key-memory-histograms", "no", "INFO keysizes looks at the keys when it is asked for"),
    fixed("lookahead", "16", "Tenon asks ahead for keys by a number of its own"),
    fixed("slowlog-entry-max-argc", "32", SLOWLOG),
    fixed("slowlog-entry-max-string-len", "128", SLOWLOG),
    fixed("vset-force-single-threaded-execution", "no", "Tenon has no vector sets"),
    // Valkey 9.1.
    fixed("dual-channel-replication-enabled", "no", REPLICATION),
    fixed("repl-mptcp", "no", REPLICATION),
    fixed("cluster-announce-client-ipv4", "", CLUSTER),
    fixed("cluster-announce-client-ipv6", "", CLUSTER),
    fixed("cluster-announce-client-port", "0", CLUSTER),
    fixed("cluster-announce-client-tls-port", "0", CLUSTER),
    fixed("cluster-blacklist-ttl", "60", CLUSTER),
    fixed("cluster-config-save-behavior", "sync", CLUSTER),
    fixed("cluster-databases", "1", CLUSTER),
    fixed("cluster-manual-failover-timeout", "5000", CLUSTER),
    fixed("cluster-slot-migration-log-max-len", "1000", CLUSTER),
    fixed("cluster-slot-stats-enabled", "no", CLUSTER),
    fixed("slot-migration-max-failover-repl-bytes", "0", CLUSTER),
    fixed("availability-zone", "", "Tenon has no replicas among which a client could choose the nearest"),
    fixed("active-defrag-cycle-us", "500", DEFRAG),
    fixed("extended-redis-compatibility", "no", "Tenon speaks as Redis does"),
    fixed("hash-seed", "", "cursors of SCAN are good for one server"),
    fixed("log-timestamp-format", "legacy", "lines of the log begin with the time as ISO 8601 has it"),
    only(fixed("import-mode", "no", "Tenon has no way to import keys that have expired")),
    only(fixed("mptcp", "no", "Tenon has no multipath TCP")),
    only(fixed("rdma-port", "0", RDMA)),
    fixed("rdma-bind", "", RDMA),
    fixed("rdma-completion-vector", "-1", RDMA),
    fixed("rdma-rx-size", "1048576", RDMA),
    only(fixed("rdb-version-check", "strict", "Tenon reads no files of versions that it does not know")),
    only(fixed("tls-auth-clients-user", "off", "Tenon takes no user's name from a certificate")),
    only(fixed("tls-auto-reload-interval", "0", "Tenon reads certificates anew when CONFIG SET names them")),
    only(fixed("unixsocketgroup", "", "the sockets' group is that of the process")),
];

/// Directives of Redis that are no settings, with the reason why they stop the start.
pub(super) static UNSUPPORTED_DIRECTIVES: &[(&str, &str)] =
    &[("loadmodule", "Tenon has no modules"), ("sentinel", "Tenon is no Sentinel")];

/// Settings that Redis itself, or Valkey, reads and forgets.
pub(super) static FORGOTTEN: &[&str] =
    &["list-max-ziplist-entries", "list-max-ziplist-value", "lua-replicate-commands", "events-per-io-thread"];

/// The fixed setting of this name, in any case.
pub(super) fn find_fixed(name: &str) -> Option<&'static Fixed> {
    ACCEPTED_AT_DEFAULT.iter().find(|fixed| fixed.names().any(|known| known.eq_ignore_ascii_case(name)))
}
