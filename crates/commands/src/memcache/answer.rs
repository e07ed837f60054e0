//! What a verb answers in one line, word for word as memcached says it. Sends nothing.

use itoa::Buffer;

/// An answer of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The item is stored.
    Stored,
    /// The verb's condition does not hold.
    NotStored,
    /// Somebody has changed the item since its CAS token was given out.
    Exists,
    /// There is no such item.
    NotFound,
    /// The item is gone.
    Deleted,
    /// The item's expiry is set.
    Touched,
    /// Done.
    Ok,
    /// The statistics are back at 0.
    Reset,
    /// A counter's new value.
    Number(u64),
    /// A counter's value is no number.
    NonNumeric,
    /// The value is longer than `max-value-size`.
    TooLarge,
    /// Memory is used up, and nothing can be evicted.
    OutOfMemoryStoring,
    /// The same for a counter.
    OutOfMemory,
    /// The same for a counter that is to be made.
    OutOfMemoryCounting,
    /// Data is being loaded.
    Loading,
    /// The key holds another type than a string.
    WrongType,
    /// A memory limit that is too small to mean megabytes.
    LimitTooSmall,
    /// A memory limit that must be bytes, not megabytes.
    LimitInBytes,
    /// A memory limit that cannot be set.
    LimitOutOfBounds,
    /// `shutdown` is switched off.
    ShutdownDisabled,
    /// `shutdown` in no way that there is.
    UnknownShutdown,
    /// Certificates to be read anew where no port speaks TLS.
    TlsDisabled,
    /// Certificates that cannot be used; the log says why.
    BadCertificates,
    /// `flush_all` is switched off.
    FlushDisabled,
    /// Lists of keys are switched off.
    DumpDisabled,
    /// `watch` is switched off.
    WatchDisabled,
    /// `watch` behind requests whose answers have not left.
    WatchPipelined,
    /// `lru_crawler metadump` behind requests whose answers have not left.
    MetadumpPipelined,
    /// `lru_crawler mgdump` behind such.
    MgdumpPipelined,
    /// More clients watch than memcached lets watch.
    TooManyWatchers,
    /// `stats cachedump` is switched off.
    CachedumpDisabled,
    /// `stats cachedump` without saying of which class, and how many items.
    BadLine,
    /// A class that there cannot be.
    IllegalClass,
    /// Words that have not the form of their verb.
    BadFormat,
    /// No size class.
    BadClass,
    /// Memory does not move between size classes by itself.
    ReassignDisabled,
    /// Queues that together would be more than memcached lets them be.
    TooMuchHotAndWarm,
    /// A factor for queues that is not above 0.
    NoAgeFactor,
    /// A crawler that would sleep for longer than a second.
    SleepTooLong,
    /// `stats detail` with another word than those it knows.
    DetailUsage,
    /// No such statistics.
    Unknown,
}

impl Answer {
    /// The line, without CR LF; a number has none.
    fn text(self) -> Option<&'static str> {
        Some(match self {
            Answer::Stored => "STORED",
            Answer::NotStored => "NOT_STORED",
            Answer::Exists => "EXISTS",
            Answer::NotFound => "NOT_FOUND",
            Answer::Deleted => "DELETED",
            Answer::Touched => "TOUCHED",
            Answer::Ok => "OK",
            Answer::Reset => "RESET",
            Answer::Number(_) => return None,
            Answer::NonNumeric => "CLIENT_ERROR cannot increment or decrement non-numeric value",
            Answer::TooLarge => "SERVER_ERROR object too large for cache",
            Answer::OutOfMemoryStoring => "SERVER_ERROR out of memory storing object",
            Answer::OutOfMemory => "SERVER_ERROR out of memory",
            Answer::OutOfMemoryCounting => "SERVER_ERROR Out of memory allocating new item",
            Answer::Loading => "SERVER_ERROR loading the dataset in memory",
            Answer::WrongType => "SERVER_ERROR the key holds a value of another type than string",
            Answer::LimitTooSmall => "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m",
            Answer::LimitInBytes => "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes",
            Answer::LimitOutOfBounds => "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust",
            Answer::ShutdownDisabled => "ERROR: shutdown not enabled",
            Answer::UnknownShutdown => "CLIENT_ERROR invalid shutdown mode",
            Answer::TlsDisabled => "Error TLS not enabled",
            Answer::BadCertificates => "SERVER_ERROR the certificates cannot be used, see the server's log",
            Answer::FlushDisabled => "CLIENT_ERROR flush_all not allowed",
            Answer::DumpDisabled => "ERROR metadump not allowed",
            Answer::WatchDisabled => "CLIENT_ERROR watch commands not allowed",
            Answer::WatchPipelined => "ERROR cannot pipeline other commands before watch",
            Answer::MetadumpPipelined => "ERROR cannot pipeline other commands before metadump",
            Answer::MgdumpPipelined => "ERROR cannot pipeline other commands before mgdump",
            Answer::TooManyWatchers => "WATCHER_TOO_MANY log watcher limit reached",
            Answer::CachedumpDisabled => "CLIENT_ERROR stats cachedump not allowed",
            Answer::BadLine => "CLIENT_ERROR bad command line",
            Answer::IllegalClass => "CLIENT_ERROR Illegal slab id",
            Answer::BadFormat => "CLIENT_ERROR bad command line format",
            Answer::BadClass => "BADCLASS invalid class id",
            Answer::ReassignDisabled => "CLIENT_ERROR slab reassignment disabled",
            Answer::TooMuchHotAndWarm => "ERROR hot and warm pcts must not exceed 80",
            Answer::NoAgeFactor => "ERROR hot/warm age factors must be greater than 0",
            Answer::SleepTooLong => "CLIENT_ERROR sleep must be one second or less",
            Answer::DetailUsage => "CLIENT_ERROR usage: stats detail on|off|dump",
            Answer::Unknown => "ERROR",
        })
    }

    /// Whether it says that the request failed, and not only that its condition did not hold.
    pub fn is_error(self) -> bool {
        !matches!(
            self,
            Answer::Stored
                | Answer::NotStored
                | Answer::Exists
                | Answer::NotFound
                | Answer::Deleted
                | Answer::Touched
                | Answer::Ok
                | Answer::Reset
                | Answer::Number(_)
        )
    }

    /// Writes the line.
    #[inline]
    pub fn write(self, out: &mut Vec<u8>) {
        match self {
            Answer::Number(number) => out.extend_from_slice(Buffer::new().format(number).as_bytes()),
            other => out.extend_from_slice(other.text().unwrap_or_default().as_bytes()),
        }
        out.extend_from_slice(b"\r\n");
    }
}
