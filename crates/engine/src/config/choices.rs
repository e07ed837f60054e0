//! The settings that are one of a few names, as enums; it knows nothing of what the choices bring about.

use tenon_store::evict::Policy;

/// An enum whose variants have the names of a `Kind::Choice`, in the same order.
pub trait Choice: Copy + 'static {
    /// The names, by index.
    const NAMES: &'static [&'static str];
    /// The variants, by index.
    const ALL: &'static [Self];
}

impl Choice for Policy {
    const NAMES: &'static [&'static str] = &Policy::NAMES;
    const ALL: &'static [Self] = &Policy::ALL;
}

/// How much is logged; each level includes those after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Everything.
    Debug,
    /// Much, but not a line for each event.
    Verbose,
    /// What an operator wants to know.
    Notice,
    /// What an operator must know.
    Warning,
    /// Nothing at all.
    Nothing,
}

impl Choice for LogLevel {
    const NAMES: &'static [&'static str] = &["debug", "verbose", "notice", "warning", "nothing"];
    const ALL: &'static [Self] = &[Self::Debug, Self::Verbose, Self::Notice, Self::Warning, Self::Nothing];
}

/// Which facility of the system's log the lines belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyslogFacility {
    /// Programs of users.
    User,
    /// One of those that each system uses as it likes, from 0 to 7.
    Local(u8),
}

impl SyslogFacility {
    /// Its number in syslog's protocol.
    pub fn number(self) -> u8 {
        match self {
            SyslogFacility::User => 1,
            SyslogFacility::Local(number) => 16 + number,
        }
    }
}

impl Choice for SyslogFacility {
    const NAMES: &'static [&'static str] =
        &["user", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"];
    const ALL: &'static [Self] = &[
        Self::User,
        Self::Local(0),
        Self::Local(1),
        Self::Local(2),
        Self::Local(3),
        Self::Local(4),
        Self::Local(5),
        Self::Local(6),
        Self::Local(7),
    ];
}

/// Which way moves the clients' bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoChoice {
    /// The one that costs less in a trial at the start.
    Auto,
    /// epoll.
    Epoll,
    /// io_uring.
    IoUring,
}

impl Choice for IoChoice {
    const NAMES: &'static [&'static str] = &["auto", "epoll", "io-uring"];
    const ALL: &'static [Self] = &[Self::Auto, Self::Epoll, Self::IoUring];
}

/// When what was logged is synced to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fsync {
    /// Every second.
    EverySecond,
    /// Before a reply is sent.
    Always,
    /// Whenever the system likes.
    No,
}

impl Choice for Fsync {
    const NAMES: &'static [&'static str] = &["everysec", "always", "no"];
    const ALL: &'static [Self] = &[Self::EverySecond, Self::Always, Self::No];
}

/// Which of memcached's protocols its clients may speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemcachedProtocol {
    /// Each connection the one that its first byte chooses.
    Auto,
    /// The text protocol, meta commands included.
    Ascii,
    /// The binary protocol.
    Binary,
}

impl Choice for MemcachedProtocol {
    const NAMES: &'static [&'static str] = &["auto", "ascii", "binary"];
    const ALL: &'static [Self] = &[Self::Auto, Self::Ascii, Self::Binary];
}

/// Whether clients must show a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsAuthClients {
    /// They need none.
    No,
    /// They must.
    Yes,
    /// They may.
    Optional,
}

impl Choice for TlsAuthClients {
    const NAMES: &'static [&'static str] = &["no", "yes", "optional"];
    const ALL: &'static [Self] = &[Self::No, Self::Yes, Self::Optional];
}

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Plain,
    /// One JSON object a line.
    Json,
}

impl Choice for LogFormat {
    // What Valkey's files call it, whose `logfmt` is not there.
    const NAMES: &'static [&'static str] = &["plain", "json", "legacy"];
    const ALL: &'static [Self] = &[Self::Plain, Self::Json, Self::Plain];
}

/// From where something dangerous may be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// From nowhere.
    No,
    /// From everywhere.
    Yes,
    /// Over loopback and UNIX sockets.
    Local,
}

impl Choice for Access {
    const NAMES: &'static [&'static str] = &["no", "yes", "local"];
    const ALL: &'static [Self] = &[Self::No, Self::Yes, Self::Local];
}

/// Which channels a user may use of whom nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelDefault {
    /// All.
    AllChannels,
    /// None.
    ResetChannels,
}

impl Choice for ChannelDefault {
    const NAMES: &'static [&'static str] = &["allchannels", "resetchannels"];
    const ALL: &'static [Self] = &[Self::AllChannels, Self::ResetChannels];
}

/// What watches over the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supervisor {
    /// Upstart.
    Upstart,
    /// systemd.
    Systemd,
    /// Whichever the environment says.
    Auto,
    /// Nothing that wants to be told.
    No,
}

impl Choice for Supervisor {
    const NAMES: &'static [&'static str] = &["upstart", "systemd", "auto", "no"];
    const ALL: &'static [Self] = &[Self::Upstart, Self::Systemd, Self::Auto, Self::No];
}
