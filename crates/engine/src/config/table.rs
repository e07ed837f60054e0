//! The table of settings: each declared once, with its doc, its rules and the type its accessor returns. It holds no
//! values, and does nothing with them.
//!
//! To add a setting, add an entry; files, flags, CONFIG, help, docs and `config.<name>()` follow from it. The macro
//! only spares repeating the name: an entry is the doc, the accessor's name and type, and the fields of `Setting`
//! that are not those of `Setting::BASE`.

use std::sync::Arc;

use super::choices::{
    Access, ChannelDefault, Choice, Fsync, IoChoice, LogFormat, LogLevel, MemcachedProtocol, Supervisor,
    SyslogFacility, TlsAuthClients,
};
use super::end_words::EndWords;
use super::live::{Config, Read};
use super::setting::{
    At, Group, Guard,
    Initial::{Is, OfMachine},
    Kind, Setting, Support,
};
use super::value::{OutputBufferLimits, SavePoint};
use crate::notify::EventClass;
use tenon_store::evict::Policy;
use tenon_wire::rdb::STRING_LEN_MAX;

macro_rules! settings {
    ($($(#[doc = $doc:literal])+ $id:ident: $type:ty { $($field:tt)* })*) => {
        /// Every setting, by the name of its accessor; as an index, its place in `SETTINGS`.
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum SettingId {
            $($(#[doc = $doc])+ $id,)*
        }

        /// Every setting, in the order of CONFIG GET.
        pub static SETTINGS: &[Setting] = &[
            $(Setting { id: SettingId::$id, doc: concat!($($doc),+), $($field)*, ..Setting::BASE },)*
        ];

        impl Config {
            $($(#[doc = $doc])+ #[inline] pub fn $id(&self) -> $type { <$type>::read(self, SettingId::$id) })*
        }

        /// For each setting, whether the type of its accessor can hold its values.
        pub(super) static FITS: &[fn(&Kind) -> bool] = &[$(<$type>::fits,)*];
    };
}

const INT_MAX: i64 = i32::MAX as i64;
const MB: i64 = 1 << 20;
/// Longer strings could be saved, but not loaded again.
const STRING_MAX: i64 = STRING_LEN_MAX as i64;

/// What all of the lazyfree settings come to.
const LAZYFREE: Support = Support::Moot("Big values are always freed off the hot path.");
/// What both settings of housekeeping come to.
const HZ: Support = Support::Moot("Each worker looks after its own clients and keys when something is due.");

settings! {
    /// TCP port of the RESP front end; 0 switches it off.
    port: u16 {
        name: "port", kind: Kind::Int { min: 0, max: 65535 }, initial: Is("6379"), group: Group::Network
    }
    /// TCP port of the memcached front end; 0 switches it off, -1 lets the system choose one.
    memcached_port: i32 {
        name: "memcached-port", kind: Kind::Int { min: -1, max: 65535 }, initial: Is("11211"),
        group: Group::Network
    }
    /// TCP port of the RESP front end over TLS; 0 switches it off.
    tls_port: u16 {
        name: "tls-port", kind: Kind::Int { min: 0, max: 65535 }, initial: Is("0"), group: Group::Network
    }
    /// TCP port of the memcached front end over TLS; 0 switches it off, -1 lets the system choose one.
    memcached_tls_port: i32 {
        name: "memcached-tls-port", kind: Kind::Int { min: -1, max: 65535 }, initial: Is("0"), group: Group::Network
    }
    /// Addresses to listen on, for both front ends: IPv4, IPv6 or host names, `*` and `::*` for all; one that starts
    /// with `-` may be missing on this machine.
    bind: Vec<String> {
        name: "bind", kind: Kind::Words { max: 16 }, initial: Is("127.0.0.1"), group: Group::Network
    }
    /// Refuse clients from other machines as long as no password is set. For memcached's clients that is memcached-auth alone.
    protected_mode: bool { name: "protected-mode", kind: Kind::Bool, initial: Is("yes"), group: Group::Network }
    /// Path of a UNIX socket that speaks RESP; empty for none.
    unixsocket: Arc<str> { name: "unixsocket", at: At::Start, group: Group::Network }
    /// File mode of the UNIX sockets, in octal; 0 leaves it to the umask.
    unixsocketperm: u32 {
        name: "unixsocketperm", kind: Kind::Octal { max: 0o777 }, initial: Is("0"), at: At::Start,
        group: Group::Network
    }
    /// Path of a UNIX socket that speaks memcached; empty for none.
    memcached_unixsocket: Arc<str> { name: "memcached-unixsocket", at: At::Start, group: Group::Network }
    /// Connections that may wait to be accepted.
    tcp_backlog: u32 {
        name: "tcp-backlog", kind: Kind::Int { min: 0, max: INT_MAX }, initial: Is("511"), at: At::Start,
        group: Group::Network
    }
    /// Seconds between keepalive probes to a silent client; 0 sends none.
    tcp_keepalive: u32 {
        name: "tcp-keepalive", kind: Kind::Int { min: 0, max: INT_MAX }, initial: Is("300"), group: Group::Network
    }

    /// Bytes of memory for data; 0 for no limit. Takes `1gb`, `512mb` or a percentage of what the process may use.
    maxmemory: u64 {
        name: "maxmemory", kind: Kind::MemoryOrPercent, group: Group::Memory,
        initial: OfMachine {
            text: "80% of the memory the process may use (RAM and cgroup limits counted); in less than 128 MiB, 80% of what is over 10 MiB, where the log has a place",
            of: |machine| machine.memory_for_data().unwrap_or(0).to_string(),
        }
    }
    /// Whether maxmemory counts what the server itself took at its start, about half a megabyte, as Redis does; memcached's
    /// `-m` is about items alone. What each key takes beside its value is always counted.
    maxmemory_counts_startup: bool {
        name: "maxmemory-counts-startup", kind: Kind::Bool, initial: Is("yes"), group: Group::Memory
    }
    /// What goes when maxmemory is reached.
    maxmemory_policy: Policy {
        name: "maxmemory-policy", kind: Kind::Choice(&Policy::NAMES), initial: Is("noeviction"),
        group: Group::Memory
    }
    /// Keys looked at to find one worth evicting, 64 at most; more finds better ones and takes longer.
    maxmemory_samples: u32 {
        name: "maxmemory-samples", kind: Kind::Int { min: 1, max: 64 }, initial: Is("5"), group: Group::Memory
    }
    /// How long a write may evict beyond what makes up for its own growth: 50 µs for each of the first 10, a seventh more for
    /// each beyond, until the limit is kept at 100.
    maxmemory_eviction_tenacity: u32 {
        name: "maxmemory-eviction-tenacity", kind: Kind::Int { min: 0, max: 100 }, initial: Is("10"),
        group: Group::Memory
    }
    /// How many hits it takes to raise a key's access frequency; more tells busy keys further apart.
    lfu_log_factor: u32 {
        name: "lfu-log-factor", kind: Kind::Int { min: 0, max: INT_MAX }, initial: Is("10"), group: Group::Memory
    }
    /// Minutes after which a key's access frequency falls by one; 0 for never.
    lfu_decay_time: u32 {
        name: "lfu-decay-time", kind: Kind::Int { min: 0, max: INT_MAX }, initial: Is("1"), group: Group::Memory
    }

    /// Clients that may be connected at once. The limit on open files is raised for so many, or this is lowered at the start
    /// to what the system allows, with a line in the log.
    maxclients: u32 {
        name: "maxclients", kind: Kind::Int { min: 1, max: u32::MAX as i64 }, initial: Is("10000"),
        group: Group::Clients
    }
    /// Seconds after which an idle client is closed; 0 for never.
    timeout: u32 {
        name: "timeout", kind: Kind::Int { min: 0, max: INT_MAX }, initial: Is("0"), group: Group::Clients
    }
    /// When a client that does not read its replies is closed: class (normal, replica, pubsub), bytes at which at
    /// once, bytes at which after some seconds, those seconds; 0 for no limit.
    client_output_buffer_limit: OutputBufferLimits {
        name: "client-output-buffer-limit", kind: Kind::OutputBufferLimits, group: Group::Clients,
        initial: Is("normal 0 0 0 replica 256mb 64mb 60 pubsub 32mb 8mb 60")
    }
    /// Bytes that all clients' buffers and queued commands together may take, beyond which the client that takes most
    /// is closed; a percentage is of maxmemory, 0 for no limit.
    maxmemory_clients: i64 { name: "maxmemory-clients", kind: Kind::MemoryOrShare, initial: Is("0"), group: Group::Clients }
    /// Bytes of input of one client that may wait to be run.
    client_query_buffer_limit: u64 {
        name: "client-query-buffer-limit", kind: Kind::Memory { min: MB, max: i64::MAX }, initial: Is("1gb"), group: Group::Clients
    }
    /// Bytes of the longest argument of a RESP command; more than 4294966271 is taken as that.
    proto_max_bulk_len: u64 {
        name: "proto-max-bulk-len", kind: Kind::MemoryUpTo { min: MB, max: STRING_MAX }, initial: Is("512mb"), group: Group::Clients
    }
    /// Bytes of the longest value a memcached client may store.
    max_value_size: u64 {
        name: "max-value-size", kind: Kind::Memory { min: 1, max: STRING_MAX }, initial: Is("512mb"), group: Group::Clients
    }

    /// Threads that serve clients.
    workers: usize {
        name: "workers", kind: Kind::Int { min: 1, max: 1024 }, at: At::Start, group: Group::Server,
        initial: OfMachine { text: "the cores the process may use", of: |machine| machine.cores.min(1024).to_string() }
    }
    /// How clients' bytes are moved: `io-uring` takes one system call for all clients of a moment, `epoll` one for each receive
    /// and each send. io_uring needs Linux 6.1, and is forbidden in many containers: a line in the log then says that it is
    /// epoll. `auto` has both answer short requests for some 25 ms at the start and takes `io-uring` if that costs at least 3 %
    /// less CPU; a line in the log tells the figures, and INFO's `multiplexing_api` which it is.
    io: IoChoice {
        name: "io", kind: Kind::Choice(IoChoice::NAMES), initial: Is("epoll"), at: At::Start, group: Group::Server
    }
    /// Parts the keyspace is split into, each with its own lock; a power of two. At a start with a maxmemory of 32 MB or less
    /// there are fewer, down to 256, for each takes memory; what was asked for is shown all the same.
    shards: usize {
        name: "shards", kind: Kind::PowerOfTwo { max: 65536 }, initial: Is("4096"), at: At::Start,
        group: Group::Server
    }
    /// Databases that SELECT can choose from.
    databases: u32 {
        name: "databases", kind: Kind::Int { min: 1, max: INT_MAX }, initial: Is("16"), at: At::Start,
        group: Group::Server
    }
    /// Times a second that housekeeping runs, from 1 to 500.
    hz: u32 { name: "hz", kind: Kind::Clamped { min: 1, max: 500 }, initial: Is("10"), group: Group::Server, support: HZ }
    /// How SIGINT ends the server: with the options of SHUTDOWN.
    shutdown_on_sigint: EndWords {
        name: "shutdown-on-sigint", kind: Kind::EndWords, initial: Is("default"), group: Group::Server
    }
    /// How SIGTERM ends the server: with the options of SHUTDOWN.
    shutdown_on_sigterm: EndWords {
        name: "shutdown-on-sigterm", kind: Kind::EndWords, initial: Is("default"), group: Group::Server
    }
    /// Seconds that clients have to take their last replies when the server ends. For a quarter of them what they send is read, and
    /// who takes nothing for so long is not waited for. Saving, the log's first base and calls under way before that have no such
    /// bound; a disk that does not take the log has five seconds.
    shutdown_timeout: u32 {
        name: "shutdown-timeout", kind: Kind::Int { min: 0, max: INT_MAX }, initial: Is("10"), group: Group::Server
    }
    /// Milliseconds after which a running script lets other clients get BUSY replies; 0 for never.
    busy_reply_threshold: u64 {
        name: "busy-reply-threshold", aliases: &["lua-time-limit"], kind: Kind::Int { min: 0, max: i64::MAX },
        initial: Is("5000"), group: Group::Server
    }
    /// Bytes of memory that one worker's Lua state may take: a script that wants more ends with an error; 0 for any.
    script_memory_max: u64 {
        name: "script-memory-max", kind: Kind::Memory { min: 0, max: i64::MAX }, initial: Is("1gb"), group: Group::Memory
    }
    /// Directory that snapshots and the log are in; to save there, one must be let read it, too. Relative paths of other settings
    /// start from what it is at the start. CONFIG SET, if enable-protected-configs lets it, is for saves and logs that begin later.
    dir: Arc<str> {
        name: "dir", kind: Kind::Directory, guard: Guard::Protected, group: Group::Server,
        initial: OfMachine { text: "where the server was started", of: |machine| machine.directory.clone() }
    }
    /// Whether to go to the background.
    daemonize: bool {
        name: "daemonize", kind: Kind::Bool, initial: Is("no"), at: At::Start, group: Group::Server
    }
    /// User that the server becomes when root starts it, with that user's group and no other; empty to stay root.
    run_as: Arc<str> { name: "run-as", at: At::Start, group: Group::Server }
    /// File that the process's number stands in while it runs; empty for none.
    pidfile: Arc<str> { name: "pidfile", at: At::Start, group: Group::Server }
    /// Which supervisor is told that the server is ready and that it ends: systemd, for a service of the type `notify`;
    /// `auto` if the environment names its socket. Who is supervised does not go to the background.
    supervised: Supervisor {
        name: "supervised", kind: Kind::Choice(Supervisor::NAMES), initial: Is("no"), at: At::Start,
        group: Group::Server, support: Support::Only { values: &["no", "systemd", "auto"], reason: "only systemd is told" }
    }

    /// Password that clients must give with AUTH, the default user's; empty for none.
    requirepass: Arc<str> { name: "requirepass", guard: Guard::Sensitive, group: Group::Security }
    /// File of users, a line each as ACL LIST shows them; empty for none. ACL LOAD reads it anew and ACL SAVE writes it.
    /// Memcached clients are users only where memcached-auth asks them who they are.
    aclfile: Arc<str> { name: "aclfile", at: At::Start, group: Group::Security }
    /// How many refusals ACL LOG remembers.
    acllog_max_len: u64 {
        name: "acllog-max-len", kind: Kind::Int { min: 0, max: i64::MAX }, initial: Is("128"), group: Group::Security
    }
    /// Which channels a new user may use: resetchannels for none, or allchannels.
    acl_pubsub_default: ChannelDefault {
        name: "acl-pubsub-default", kind: Kind::Choice(ChannelDefault::NAMES), initial: Is("resetchannels"),
        group: Group::Security
    }
    /// Whether clients may use DEBUG: no, yes, or local for those of this machine.
    enable_debug_command: Access {
        name: "enable-debug-command", kind: Kind::Choice(Access::NAMES), initial: Is("no"), at: At::Start,
        group: Group::Security
    }
    /// Whether CONFIG SET may change dir and dbfilename: no, yes, or local for clients of this machine.
    enable_protected_configs: Access {
        name: "enable-protected-configs", kind: Kind::Choice(Access::NAMES), initial: Is("no"), at: At::Start,
        group: Group::Security
    }

    /// File of the server's certificate and those it leads back to, in PEM. X.509 of version 3, as all certificates here.
    tls_cert_file: Arc<str> { name: "tls-cert-file", group: Group::Tls }
    /// File of the certificate's private key, in PEM, not encrypted, and no ECDSA on P-521; empty when it is in tls-cert-file.
    tls_key_file: Arc<str> { name: "tls-key-file", group: Group::Tls }
    /// File of the certificates, in PEM, that clients' certificates must lead back to. One of these is no client's.
    tls_ca_cert_file: Arc<str> { name: "tls-ca-cert-file", group: Group::Tls }
    /// Directory of such files. Those that have no certificate are passed over, as long as one has.
    tls_ca_cert_dir: Arc<str> { name: "tls-ca-cert-dir", group: Group::Tls }
    /// Whether clients over TLS must show a certificate: yes, no, or optional for those that have one.
    tls_auth_clients: TlsAuthClients {
        name: "tls-auth-clients", kind: Kind::Choice(TlsAuthClients::NAMES), initial: Is("yes"), group: Group::Tls
    }
    /// Versions of TLS that are spoken: TLSv1.2 and TLSv1.3, which are also the default. No older one is.
    tls_protocols: Arc<str> { name: "tls-protocols", group: Group::Tls }
    /// Ciphers of TLS 1.2, in a list as OpenSSL reads it, such as `HIGH:!AES128`; empty for all that there are.
    tls_ciphers: Arc<str> { name: "tls-ciphers", group: Group::Tls }
    /// Ciphersuites of TLS 1.3, by OpenSSL's names with colons between them; likewise.
    tls_ciphersuites: Arc<str> { name: "tls-ciphersuites", group: Group::Tls }
    /// Whether the server's order of ciphers counts, not the client's.
    tls_prefer_server_ciphers: bool {
        name: "tls-prefer-server-ciphers", kind: Kind::Bool, initial: Is("no"), group: Group::Tls
    }
    /// Whether clients may take up an earlier session of TLS.
    tls_session_caching: bool { name: "tls-session-caching", kind: Kind::Bool, initial: Is("yes"), group: Group::Tls }
    /// Sessions of TLS that are remembered, the newest; each takes memory when it comes. 0 is for up to 262144.
    tls_session_cache_size: u32 {
        name: "tls-session-cache-size", kind: Kind::Int { min: 0, max: INT_MAX }, initial: Is("20480"),
        group: Group::Tls
    }
    /// Bytes of a connection's output that are gathered and encrypted together. A record of TLS never goes on past them,
    /// and has at most 16 KiB. For connections to come.
    tls_write_buffer: u64 {
        name: "tls-write-buffer", kind: Kind::Memory { min: 1024, max: 0xffff_fc00 }, initial: Is("16kb"), group: Group::Tls
    }

    /// Which protocols memcached clients may speak: auto for the one that their first byte chooses, ascii or binary for
    /// that one alone.
    memcached_protocol: MemcachedProtocol {
        name: "memcached-protocol", kind: Kind::Choice(MemcachedProtocol::NAMES), initial: Is("auto"),
        group: Group::Memcached
    }
    /// Whether memcached clients must say who they are before anything else: in the text protocol by a set of any key
    /// whose data is a name, a blank and a password, in the binary one by SASL PLAIN. Names and passwords are those of
    /// memcached-auth-file and of users that have a password and to whom nothing is refused. Those of the file may come by
    /// SASL CRAM-MD5, too.
    memcached_auth: bool { name: "memcached-auth", kind: Kind::Bool, initial: Is("no"), group: Group::Memcached }
    /// File of names and passwords for memcached clients, name:password in each line; empty for none. It is read anew
    /// when it has changed and somebody comes.
    memcached_auth_file: Arc<str> { name: "memcached-auth-file", at: At::Start, group: Group::Memcached }
    /// UDP port of the memcached front end, on the same addresses; 0 switches it off, -1 lets the system choose one.
    memcached_udp_port: i32 {
        name: "memcached-udp-port", kind: Kind::Int { min: -1, max: 65535 }, initial: Is("0"), at: At::Start,
        group: Group::Memcached
    }
    /// File that the ports of memcached clients at the start are written to, as memcached writes the one that
    /// MEMCACHED_PORT_FILENAME names: lines such as `TCP INET: 11211`. Empty for none.
    memcached_port_file: Arc<str> { name: "memcached-port-file", at: At::Start, group: Group::Memcached }
    /// How many times as long as its request an answer over UDP may be: a longer one is refused, as whoever sends requests
    /// in another's name would have it flooded. 0 for any length.
    memcached_udp_amplification_max: u32 {
        name: "memcached-udp-amplification-max", kind: Kind::Int { min: 0, max: INT_MAX }, initial: Is("10"),
        group: Group::Memcached
    }
    /// Requests of a memcached client that run in one turn: the others that have sent some are served before its next
    /// ones. 0 for any number: a turn then ends with what has been received at once, or with a megabyte of answers.
    memcached_requests_per_turn: u32 {
        name: "memcached-requests-per-turn", kind: Kind::Int { min: 0, max: INT_MAX }, initial: Is("0"),
        group: Group::Memcached
    }
    /// Whether memcached clients may empty the store by flush_all.
    memcached_flush_all: bool {
        name: "memcached-flush-all", kind: Kind::Bool, initial: Is("yes"), group: Group::Memcached
    }
    /// Whether memcached clients may list the keys by lru_crawler metadump and mgdump.
    memcached_dump: bool { name: "memcached-dump", kind: Kind::Bool, initial: Is("yes"), group: Group::Memcached }
    /// Whether memcached clients may end the server by shutdown.
    memcached_shutdown: bool {
        name: "memcached-shutdown", kind: Kind::Bool, initial: Is("no"), group: Group::Memcached
    }
    /// Whether stats sizes shows how many items have which size, for which it looks at them.
    memcached_track_sizes: bool {
        name: "memcached-track-sizes", kind: Kind::Bool, initial: Is("no"), group: Group::Memcached
    }
    /// What ends the part of a key that memcached's stats detail counts by; only the first byte is looked at. Where it is
    /// given requests are counted from the start; else it is a colon, and they are when a client asks for it.
    memcached_stats_delimiter: Arc<str> { name: "memcached-stats-delimiter", at: At::Start, group: Group::Memcached }
    /// Whether memcached's items have CAS tokens; without, 0 is told for each, and cas finds every item changed.
    memcached_cas: bool {
        name: "memcached-cas", kind: Kind::Bool, initial: Is("yes"), at: At::Start, group: Group::Memcached
    }
    /// Whether memcached clients may watch what others do.
    memcached_watch: bool { name: "memcached-watch", kind: Kind::Bool, initial: Is("yes"), group: Group::Memcached }
    /// Bytes that may wait for a memcached client which watches; what does not fit is left out, and it is told how much.
    memcached_watch_buffer: u64 {
        name: "memcached-watch-buffer", kind: Kind::Memory { min: 1024, max: i64::MAX }, initial: Is("256kb"), group: Group::Memcached
    }

    /// How much is logged.
    loglevel: LogLevel {
        name: "loglevel", kind: Kind::Choice(LogLevel::NAMES), initial: Is("notice"), group: Group::Logging
    }
    /// File the log is appended to; empty for the standard output. It is opened anew when it has been moved away, and by SIGHUP.
    logfile: Arc<str> { name: "logfile", at: At::Start, group: Group::Logging }
    /// Whether the lines go to the system's log as well.
    syslog_enabled: bool {
        name: "syslog-enabled", kind: Kind::Bool, initial: Is("no"), at: At::Start, group: Group::Logging
    }
    /// The server's name in the system's log.
    syslog_ident: Arc<str> { name: "syslog-ident", initial: Is("redis"), at: At::Start, group: Group::Logging }
    /// Of which facility its lines are there.
    syslog_facility: SyslogFacility {
        name: "syslog-facility", kind: Kind::Choice(SyslogFacility::NAMES), initial: Is("local0"), at: At::Start,
        group: Group::Logging
    }
    /// Whether lines of the log are plain text, which Valkey calls `legacy`, or JSON.
    log_format: LogFormat {
        name: "log-format", kind: Kind::Choice(LogFormat::NAMES), initial: Is("plain"), at: At::Start,
        group: Group::Logging
    }

    /// Microseconds from which a command is put on the slow log; 0 for all commands, -1 for none.
    slowlog_log_slower_than: i64 {
        name: "slowlog-log-slower-than", aliases: &["commandlog-execution-slower-than"], kind: Kind::Int { min: -1, max: i64::MAX }, initial: Is("10000"),
        group: Group::Observability
    }
    /// Entries the slow log keeps.
    slowlog_max_len: u64 {
        name: "slowlog-max-len", aliases: &["commandlog-slow-execution-max-len"], kind: Kind::Int { min: 0, max: i64::MAX }, initial: Is("128"),
        group: Group::Observability
    }
    /// Bytes from which a command's request is put on COMMANDLOG's list of large ones; 0 for all commands, -1 for none.
    commandlog_request_larger_than: i64 {
        name: "commandlog-request-larger-than", kind: Kind::Int { min: -1, max: i64::MAX }, initial: Is("1048576"),
        group: Group::Observability
    }
    /// Entries that list keeps.
    commandlog_large_request_max_len: u64 {
        name: "commandlog-large-request-max-len", kind: Kind::Int { min: 0, max: i64::MAX }, initial: Is("128"),
        group: Group::Observability
    }
    /// Bytes from which the reply to a command is put on COMMANDLOG's list of large ones; 0 for all, -1 for none.
    commandlog_reply_larger_than: i64 {
        name: "commandlog-reply-larger-than", kind: Kind::Int { min: -1, max: i64::MAX }, initial: Is("1048576"),
        group: Group::Observability
    }
    /// Entries that list keeps.
    commandlog_large_reply_max_len: u64 {
        name: "commandlog-large-reply-max-len", kind: Kind::Int { min: 0, max: i64::MAX }, initial: Is("128"),
        group: Group::Observability
    }
    /// Milliseconds from which LATENCY remembers an event; 0 switches it off.
    latency_monitor_threshold: u64 {
        name: "latency-monitor-threshold", kind: Kind::Int { min: 0, max: i64::MAX }, initial: Is("0"),
        group: Group::Observability
    }
    /// Whether INFO latencystats and LATENCY HISTOGRAM have figures for each command.
    latency_tracking: bool {
        name: "latency-tracking", kind: Kind::Bool, initial: Is("yes"), group: Group::Observability
    }
    /// Percentiles that INFO latencystats shows.
    latency_tracking_info_percentiles: Vec<f64> {
        name: "latency-tracking-info-percentiles", kind: Kind::Percentiles, initial: Is("50 99 99.9"),
        group: Group::Observability
    }
    /// Events that are published: K by key, E by event, g$lshzxetd the classes, A all of these, m misses, n new keys, o keys that
    /// are overwritten, c those that get another type by it.
    notify_keyspace_events: EventClass {
        name: "notify-keyspace-events", kind: Kind::NotifyFlags, group: Group::Observability
    }

    /// Keys that clients with CLIENT TRACKING are to be told of, at most; 0 for no limit.
    tracking_table_max_keys: u64 {
        name: "tracking-table-max-keys", kind: Kind::Int { min: 0, max: i64::MAX }, initial: Is("1000000"),
        group: Group::Clients
    }

    /// When to save to disk: seconds and changes, in pairs; empty for never.
    save: Vec<SavePoint> { name: "save", kind: Kind::SavePoints, group: Group::Persistence }
    /// Whether the data is saved when the server ends, also without save points.
    save_on_exit: bool { name: "save-on-exit", kind: Kind::Bool, initial: Is("no"), group: Group::Persistence }
    /// Whether commands that write are refused after a save in the background has failed, as long as there are save
    /// points.
    stop_writes_on_bgsave_error: bool {
        name: "stop-writes-on-bgsave-error", kind: Kind::Bool, initial: Is("yes"), group: Group::Persistence
    }
    /// Whether strings in files are compressed where that makes them shorter.
    rdbcompression: bool { name: "rdbcompression", kind: Kind::Bool, initial: Is("yes"), group: Group::Persistence }
    /// Whether files end with a checksum.
    rdbchecksum: bool {
        name: "rdbchecksum", kind: Kind::Bool, initial: Is("yes"), at: At::Start, group: Group::Persistence
    }
    /// Whether a file is brought to the disk every 4 MiB while it is written.
    rdb_save_incremental_fsync: bool {
        name: "rdb-save-incremental-fsync", kind: Kind::Bool, initial: Is("yes"), group: Group::Persistence
    }
    /// Whether every write is logged to disk.
    appendonly: bool { name: "appendonly", kind: Kind::Bool, initial: Is("no"), group: Group::Persistence }
    /// When what was logged is synced to disk: before a reply is sent, every second, or whenever the system likes.
    appendfsync: Fsync {
        name: "appendfsync", kind: Kind::Choice(Fsync::NAMES), initial: Is("everysec"), group: Group::Persistence
    }
    /// What the names of the log's files begin with.
    appendfilename: Arc<str> {
        name: "appendfilename", kind: Kind::PlainName("filename"), initial: Is("appendonly.aof"), at: At::Start,
        group: Group::Persistence
    }
    /// Directory of the log's files, in dir.
    appenddirname: Arc<str> {
        name: "appenddirname", kind: Kind::PlainName("dirname"), initial: Is("appendonlydir"), at: At::Start,
        group: Group::Persistence
    }
    /// Whether nothing is synced while a snapshot is written: what is logged meanwhile may be lost.
    no_appendfsync_on_rewrite: bool {
        name: "no-appendfsync-on-rewrite", kind: Kind::Bool, initial: Is("no"), group: Group::Persistence
    }
    /// Growth of the log over its size after the last rewrite, in percent, at which it is rewritten; 0 for never.
    auto_aof_rewrite_percentage: u32 {
        name: "auto-aof-rewrite-percentage", kind: Kind::Int { min: 0, max: INT_MAX }, initial: Is("100"),
        group: Group::Persistence
    }
    /// Size below which the log is not rewritten by itself.
    auto_aof_rewrite_min_size: u64 {
        name: "auto-aof-rewrite-min-size", kind: Kind::Memory { min: 0, max: i64::MAX }, initial: Is("67108864"),
        group: Group::Persistence
    }
    /// Whether a log whose end is torn is loaded up to there; else the server does not start.
    aof_load_truncated: bool {
        name: "aof-load-truncated", kind: Kind::Bool, initial: Is("yes"), group: Group::Persistence
    }
    /// Whether the log says when its records were written.
    aof_timestamp_enabled: bool {
        name: "aof-timestamp-enabled", kind: Kind::Bool, initial: Is("no"), group: Group::Persistence
    }
    /// Whether the base of the log is a snapshot, rather than commands.
    aof_use_rdb_preamble: bool {
        name: "aof-use-rdb-preamble", kind: Kind::Bool, initial: Is("yes"), group: Group::Persistence
    }
    /// Whether a rewrite syncs what it has written every few megabytes, rather than all at its end.
    aof_rewrite_incremental_fsync: bool {
        name: "aof-rewrite-incremental-fsync", kind: Kind::Bool, initial: Is("yes"), group: Group::Persistence
    }
    /// Name of the snapshot file in dir, which is loaded at the start if it is there.
    dbfilename: Arc<str> {
        name: "dbfilename", kind: Kind::FileName, initial: Is("dump.rdb"), guard: Guard::Protected,
        group: Group::Persistence
    }
    /// Whether what belongs to modules, of which Tenon has none, is passed over in snapshot files, and their metadata of
    /// keys also in payloads of RESTORE. Otherwise it is refused, but for metadata that may be left out as it says.
    rdb_skip_modules: bool {
        name: "rdb-skip-modules", kind: Kind::Bool, initial: Is("no"), group: Group::Persistence
    }

    /// Fields up to which a hash is packed.
    hash_max_listpack_entries: u64 {
        name: "hash-max-listpack-entries", aliases: &["hash-max-ziplist-entries"],
        kind: Kind::Int { min: 0, max: i64::MAX }, initial: Is("512"), group: Group::Collections
    }
    /// Bytes of the longest field or value in a packed hash.
    hash_max_listpack_value: u64 {
        name: "hash-max-listpack-value", aliases: &["hash-max-ziplist-value"], kind: Kind::Memory { min: 0, max: i64::MAX },
        initial: Is("64"), group: Group::Collections
    }
    /// Bytes (-1 to -5: 4, 8, 16, 32 or 64 KiB) or elements (from 1) of one packed node of a list.
    list_max_listpack_size: i32 {
        name: "list-max-listpack-size", aliases: &["list-max-ziplist-size"],
        kind: Kind::Int { min: i32::MIN as i64, max: INT_MAX }, initial: Is("-2"), group: Group::Collections
    }
    /// Nodes at either end of a list that are never compressed; 0 compresses none.
    list_compress_depth: u32 {
        name: "list-compress-depth", kind: Kind::Int { min: 0, max: INT_MAX }, initial: Is("0"),
        group: Group::Collections, support: Support::NoEffect("Tenon compresses no nodes.")
    }
    /// Members up to which a set of integers is packed.
    set_max_intset_entries: u64 {
        name: "set-max-intset-entries", kind: Kind::Int { min: 0, max: i64::MAX }, initial: Is("512"), group: Group::Collections
    }
    /// Members up to which any other set is packed.
    set_max_listpack_entries: u64 {
        name: "set-max-listpack-entries", kind: Kind::Int { min: 0, max: i64::MAX }, initial: Is("128"), group: Group::Collections
    }
    /// Bytes of the longest member of a packed set.
    set_max_listpack_value: u64 {
        name: "set-max-listpack-value", kind: Kind::Int { min: 0, max: i64::MAX }, initial: Is("64"), group: Group::Collections
    }
    /// Members up to which a sorted set is packed.
    zset_max_listpack_entries: u64 {
        name: "zset-max-listpack-entries", aliases: &["zset-max-ziplist-entries"],
        kind: Kind::Int { min: 0, max: i64::MAX }, initial: Is("128"), group: Group::Collections
    }
    /// Bytes of the longest member of a packed sorted set.
    zset_max_listpack_value: u64 {
        name: "zset-max-listpack-value", aliases: &["zset-max-ziplist-value"], kind: Kind::Memory { min: 0, max: i64::MAX },
        initial: Is("64"), group: Group::Collections
    }
    /// Bytes up to which a HyperLogLog is sparse.
    hll_sparse_max_bytes: u64 {
        name: "hll-sparse-max-bytes", kind: Kind::Memory { min: 0, max: i64::MAX }, initial: Is("3000"), group: Group::Collections
    }
    /// Bytes of one node of a stream; 0 for no limit.
    stream_node_max_bytes: u64 {
        name: "stream-node-max-bytes", kind: Kind::Memory { min: 0, max: i64::MAX }, initial: Is("4096"), group: Group::Collections
    }
    /// Entries of one node of a stream; 0 for no limit.
    stream_node_max_entries: u64 {
        name: "stream-node-max-entries", kind: Kind::Int { min: 0, max: i64::MAX }, initial: Is("100"), group: Group::Collections
    }
    /// Seconds for which a new stream remembers the ids that entries have of their producers (XADD with IDMP, XCFGSET).
    stream_idmp_duration: u64 {
        name: "stream-idmp-duration", kind: Kind::Int { min: 1, max: 86_400 }, initial: Is("100"), group: Group::Collections
    }
    /// Such ids of one producer that a new stream remembers at most.
    stream_idmp_maxsize: u64 {
        name: "stream-idmp-maxsize", kind: Kind::Int { min: 1, max: 10_000 }, initial: Is("100"), group: Group::Collections
    }

    /// Whether eviction frees in the background.
    lazyfree_lazy_eviction: bool {
        name: "lazyfree-lazy-eviction", kind: Kind::Bool, initial: Is("no"), group: Group::Compatibility, support: LAZYFREE
    }
    /// Whether expiry frees in the background.
    lazyfree_lazy_expire: bool {
        name: "lazyfree-lazy-expire", kind: Kind::Bool, initial: Is("no"), group: Group::Compatibility, support: LAZYFREE
    }
    /// Whether overwriting frees in the background.
    lazyfree_lazy_server_del: bool {
        name: "lazyfree-lazy-server-del", kind: Kind::Bool, initial: Is("no"), group: Group::Compatibility, support: LAZYFREE
    }
    /// Whether DEL frees in the background.
    lazyfree_lazy_user_del: bool {
        name: "lazyfree-lazy-user-del", kind: Kind::Bool, initial: Is("no"), group: Group::Compatibility, support: LAZYFREE
    }
    /// Whether FLUSHALL and FLUSHDB free in the background.
    lazyfree_lazy_user_flush: bool {
        name: "lazyfree-lazy-user-flush", kind: Kind::Bool, initial: Is("no"), group: Group::Compatibility, support: LAZYFREE
    }
    /// Whether memory is moved together in the background.
    activedefrag: bool {
        name: "activedefrag", kind: Kind::Bool, initial: Is("no"), group: Group::Compatibility,
        support: Support::Moot("Memory is always packed.")
    }
    /// Whether hash tables grow in the background.
    activerehashing: bool {
        name: "activerehashing", kind: Kind::Bool, initial: Is("yes"), group: Group::Compatibility,
        support: Support::Moot("A shard's table is small and grows in microseconds.")
    }
    /// Effort spent on expired keys, from 1 to 10.
    active_expire_effort: u32 {
        name: "active-expire-effort", kind: Kind::Int { min: 1, max: 10 }, initial: Is("1"),
        group: Group::Compatibility, support: Support::Moot("Keys are found by when they are due, not by sampling.")
    }
    /// Whether housekeeping runs more often with many clients.
    dynamic_hz: bool { name: "dynamic-hz", kind: Kind::Bool, initial: Is("yes"), group: Group::Compatibility, support: HZ }
    /// Threads that read and write for the one that runs commands.
    io_threads: u32 {
        name: "io-threads", kind: Kind::Int { min: 1, max: 128 }, initial: Is("1"), at: At::Start,
        group: Group::Compatibility, support: Support::NoEffect("Every worker runs commands: set workers instead.")
    }
    /// Whether those threads read, too.
    io_threads_do_reads: bool {
        name: "io-threads-do-reads", kind: Kind::Bool, initial: Is("no"), at: At::Start, group: Group::Compatibility,
        support: Support::NoEffect("Every worker reads its own clients.")
    }
    /// Whether the start shows a logo even in a log file.
    always_show_logo: bool {
        name: "always-show-logo", kind: Kind::Bool, initial: Is("no"), at: At::Start, group: Group::Compatibility,
        support: Support::NoEffect("Tenon has no logo.")
    }
    /// Whether the process title says what the server does.
    set_proc_title: bool {
        name: "set-proc-title", kind: Kind::Bool, initial: Is("yes"), at: At::Start, group: Group::Compatibility,
        support: Support::NoEffect("The process keeps its title.")
    }
    /// What the process title looks like.
    proc_title_template: Arc<str> {
        name: "proc-title-template", initial: Is("{title} {listen-addr} {server-mode}"), group: Group::Compatibility,
        support: Support::NoEffect("The process keeps its title.")
    }
    /// Whether transparent huge pages are switched off for the process: where the system gives them to all, each thing that was
    /// freed keeps much more of its memory.
    disable_thp: bool {
        name: "disable-thp", kind: Kind::Bool, initial: Is("yes"), at: At::Start, group: Group::Memory
    }
    /// Whether jemalloc frees in the background.
    jemalloc_bg_thread: bool {
        name: "jemalloc-bg-thread", kind: Kind::Bool, initial: Is("yes"), group: Group::Compatibility,
        support: Support::NoEffect("The allocator has nothing of the kind to set.")
    }
    /// Whether a crash is reported in the log.
    crash_log_enabled: bool {
        name: "crash-log-enabled", kind: Kind::Bool, initial: Is("yes"), group: Group::Compatibility,
        support: Support::NoEffect("Panics are always reported.")
    }
    /// Whether a crash report has a memory test.
    crash_memcheck_enabled: bool {
        name: "crash-memcheck-enabled", kind: Kind::Bool, initial: Is("yes"), group: Group::Compatibility,
        support: Support::NoEffect("Tenon does not test the memory.")
    }
    /// New connections that are accepted at a time.
    max_new_connections_per_cycle: u32 {
        name: "max-new-connections-per-cycle", kind: Kind::Int { min: 1, max: 1000 }, initial: Is("10"),
        group: Group::Compatibility, support: Support::NoEffect("Connections are accepted by a thread that serves no clients.")
    }
    /// New connections over TLS that are accepted at a time.
    max_new_tls_connections_per_cycle: u32 {
        name: "max-new-tls-connections-per-cycle", kind: Kind::Int { min: 1, max: 1000 }, initial: Is("1"),
        group: Group::Compatibility, support: Support::NoEffect("Handshakes come one at a time between the requests of others.")
    }
    /// Commands whose keys are asked for before they run.
    prefetch_batch_max_size: u32 {
        name: "prefetch-batch-max-size", kind: Kind::Int { min: 0, max: 128 }, initial: Is("16"),
        group: Group::Compatibility, support: Support::NoEffect("As many as came in one read, up to 64.")
    }
    /// Whether the log keeps what clients have sent to itself.
    hide_user_data_from_log: bool {
        name: "hide-user-data-from-log", kind: Kind::Bool, initial: Is("no"), group: Group::Compatibility,
        support: Support::Moot("No keys and no values are logged.")
    }
    /// By which language's rules SORT's ALPHA orders.
    locale_collate: Arc<str> {
        name: "locale-collate", group: Group::Compatibility,
        support: Support::Only { values: &["", "C", "POSIX"], reason: "ALPHA orders by bytes" }
    }
    /// Warnings that do not stop the start.
    ignore_warnings: Arc<str> {
        name: "ignore-warnings", group: Group::Compatibility,
        support: Support::NoEffect("No warning stops the start.")
    }
}

/// The setting of this name or older name, in any case.
pub(super) fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.names().any(|known| known.eq_ignore_ascii_case(name)))
}
