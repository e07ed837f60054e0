//! What a setting is: its name, kind, default and rules, as plain data; it knows no setting by name and holds no
//! values.

use super::machine::Machine;
use super::table::SettingId;

/// One setting, as declared in the table.
#[derive(Debug)]
pub struct Setting {
    /// The same setting, to compare and match with.
    pub id: SettingId,
    /// The name in files, flags and CONFIG, in lower case.
    pub name: &'static str,
    /// Redis's older names for it.
    pub aliases: &'static [&'static str],
    /// What values look like.
    pub kind: Kind,
    /// The value it starts with.
    pub initial: Initial,
    /// When it can be changed.
    pub at: At,
    /// What CONFIG must take care of.
    pub guard: Guard,
    /// How far Tenon honours it.
    pub support: Support,
    /// The heading it stands under in help and docs.
    pub group: Group,
    /// What it does: a sentence or two, units included.
    pub doc: &'static str,
}

impl Setting {
    /// What most settings have in common; the rest is always given.
    pub(super) const BASE: Self = Self {
        id: SettingId::port,
        name: "",
        aliases: &[],
        kind: Kind::Text,
        initial: Initial::Is(""),
        at: At::Runtime,
        guard: Guard::Open,
        support: Support::Full,
        group: Group::Server,
        doc: "",
    };

    /// The name and the older names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Whether the value is a secret, to be kept out of logs.
    pub fn is_sensitive(&self) -> bool {
        matches!(self.guard, Guard::Sensitive)
    }
}

/// What the values of a setting look like. Bounds are inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `yes` or `no`.
    Bool,
    /// A decimal integer.
    Int {
        /// The smallest value.
        min: i64,
        /// The largest value.
        max: i64,
    },
    /// A decimal integer of 0 and more that is silently moved into its bounds, as Redis does for `hz`.
    Clamped {
        /// The smallest value.
        min: i64,
        /// The largest value.
        max: i64,
    },
    /// A decimal integer that is a power of two.
    PowerOfTwo {
        /// The largest value.
        max: i64,
    },
    /// An octal integer, for file modes.
    Octal {
        /// The largest value.
        max: i64,
    },
    /// Bytes: a number with `k`, `m`, `g` (powers of 1000) or `kb`, `mb`, `gb` (powers of 1024) behind it or not.
    Memory {
        /// The smallest value, in bytes.
        min: i64,
        /// The largest value, in bytes.
        max: i64,
    },
    /// Bytes as in `Memory`; what is more is taken as the largest value, and warned of at the start.
    MemoryUpTo {
        /// The smallest value, in bytes.
        min: i64,
        /// The largest value, in bytes.
        max: i64,
    },
    /// Bytes, or a percentage of the memory the process may use.
    MemoryOrPercent,
    /// Bytes, or a percentage of `maxmemory` whatever that is at the time; as a value the percentage is negative.
    MemoryOrShare,
    /// One of these names; the value is the index.
    Choice(&'static [&'static str]),
    /// Any text.
    Text,
    /// The name of a file, without its directory.
    FileName,
    /// What names of files or directories begin with or are: not empty, and without a directory. Holds which.
    PlainName(&'static str),
    /// An existing directory.
    Directory,
    /// Several words.
    Words {
        /// The largest number of words.
        max: usize,
    },
    /// Pairs of seconds and changes; repeated ones add up at the start.
    SavePoints,
    /// `<class> <hard bytes> <soft bytes> <soft seconds>`, once for each class named; the others stay.
    OutputBufferLimits,
    /// Letters for classes of keyspace events.
    NotifyFlags,
    /// Numbers from 0 to 100.
    Percentiles,
    /// How a signal ends the process: words of SHUTDOWN, or `default`.
    EndWords,
}

impl Kind {
    /// Whether several words may be a value.
    pub(super) fn is_list(self) -> bool {
        matches!(
            self,
            Kind::Words { .. } | Kind::SavePoints | Kind::OutputBufferLimits | Kind::Percentiles | Kind::EndWords
        )
    }
}

/// Where a default comes from.
#[derive(Clone, Copy, Debug)]
pub enum Initial {
    /// The same everywhere.
    Is(&'static str),
    /// Found out at start.
    OfMachine {
        /// How the docs describe it.
        text: &'static str,
        /// The value, in the form a file would have it.
        of: fn(&Machine) -> String,
    },
}

/// When a setting can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// By CONFIG SET, at any time.
    Runtime,
    /// By file and flags alone.
    Start,
}

/// What CONFIG must take care of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Nothing.
    Open,
    /// The value is a secret: redacted in logs and errors.
    Sensitive,
    /// Clients may change it only where `enable-protected-configs` lets them.
    Protected,
}

/// How far Tenon honours a setting.
#[derive(Clone, Copy, Debug)]
pub enum Support {
    /// Every value.
    Full,
    /// These values; any other stops the start.
    Only {
        /// The values honoured.
        values: &'static [&'static str],
        /// Why no other is.
        reason: &'static str,
    },
    /// Every value is accepted, since Tenon does what each of them asks for, or more. Holds how.
    Moot(&'static str),
    /// Accepted so that files of Redis load, without effect; other values than the default bring a warning. Holds
    /// what to know instead.
    NoEffect(&'static str),
}

/// The headings of help and docs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Addresses, ports and sockets.
    Network,
    /// Limits of one client.
    Clients,
    /// The memory limit and eviction.
    Memory,
    /// The process.
    Server,
    /// TLS.
    Tls,
    /// What memcached clients may do.
    Memcached,
    /// Logs.
    Logging,
    /// Passwords and what clients may do.
    Security,
    /// Slow log, latency and events.
    Observability,
    /// When small collections become big ones.
    Collections,
    /// Files.
    Persistence,
    /// Settings of Redis that Tenon needs no more.
    Compatibility,
}

impl Group {
    /// All groups, in the order of help and docs.
    pub const ALL: &'static [Self] = &[
        Self::Network,
        Self::Memory,
        Self::Clients,
        Self::Server,
        Self::Security,
        Self::Tls,
        Self::Memcached,
        Self::Logging,
        Self::Observability,
        Self::Persistence,
        Self::Collections,
        Self::Compatibility,
    ];

    /// The heading.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Network => "Network",
            Self::Clients => "Clients",
            Self::Memory => "Memory and eviction",
            Self::Server => "Server",
            Self::Tls => "TLS",
            Self::Memcached => "Memcached clients",
            Self::Logging => "Logging",
            Self::Security => "Security",
            Self::Observability => "Observability",
            Self::Collections => "Small collections",
            Self::Persistence => "Persistence",
            Self::Compatibility => "Accepted for compatibility",
        }
    }
}
