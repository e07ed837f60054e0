//! The requests of memcached's text protocol, decoded and checked in form. Does not know what they do.

use crate::span::Span;

/// Which of the reads it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GetVerb {
    /// Values.
    Get,
    /// Values with their CAS tokens.
    Gets,
    /// Values, whose expiry is set.
    Gat,
    /// Values with their CAS tokens, whose expiry is set.
    Gats,
}

/// Which of the writes it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreVerb {
    /// Whether there is an item or not.
    Set,
    /// Only when there is none.
    Add,
    /// Only when there is one.
    Replace,
    /// Behind the data that is there.
    Append,
    /// Before the data that is there.
    Prepend,
    /// Only when the item still has this CAS token.
    Cas(u64),
}

/// Which way a counter goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArithmeticVerb {
    /// Up, and around at 2^64.
    Incr,
    /// Down, and not below 0.
    Decr,
}

/// Which of the meta commands on a key it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaVerb {
    /// Reads (`mg`).
    Get,
    /// Writes (`ms`).
    Set,
    /// Removes, or marks as stale (`md`).
    Delete,
    /// Counts (`ma`).
    Arithmetic,
}

/// A request. `noreply`: the client wants no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Reads. The keys are the arguments that the step appended, perhaps none.
    Get {
        /// Which of the reads.
        verb: GetVerb,
        /// The new expiry of `gat` and `gats`, as the client gave it.
        exptime: Option<i64>,
        /// Whether the answer ends here (`END`). A line longer than [`super::Limits::line_max`] comes in several
        /// steps, each with the keys that are there, so that endless multigets take no memory.
        last: bool,
    },
    /// Writes.
    Store {
        /// Which of the writes.
        verb: StoreVerb,
        /// Up to 250 bytes.
        key: Span,
        /// The client's own.
        flags: u32,
        /// As the client gave it: relative or absolute seconds, or negative for "already over".
        exptime: i64,
        /// The data block, without CR LF.
        data: Span,
        /// No answer is wanted.
        noreply: bool,
    },
    /// Counts.
    Arithmetic {
        /// Which way.
        verb: ArithmeticVerb,
        /// Up to 250 bytes.
        key: Span,
        /// By how much.
        delta: u64,
        /// No answer is wanted.
        noreply: bool,
    },
    /// Removes an item.
    Delete {
        /// Up to 250 bytes.
        key: Span,
        /// No answer is wanted.
        noreply: bool,
    },
    /// Sets an item's expiry.
    Touch {
        /// Up to 250 bytes.
        key: Span,
        /// As the client gave it.
        exptime: i64,
        /// No answer is wanted.
        noreply: bool,
    },
    /// A meta command on a key. The key and its flags are the arguments that the step appended.
    Meta {
        /// Which one.
        verb: MetaVerb,
        /// The data block of `ms`, without CR LF.
        data: Span,
        /// Whether it may change data.
        writes: bool,
    },
    /// Shows what is known of an item beside its value (`me`). The key, and what stands behind it, are the arguments
    /// that the step appended.
    MetaDebug,
    /// Is answered, so that the client knows that all before it is (`mn`).
    MetaNoop,
    /// Invalidates all items.
    FlushAll {
        /// When, as the client gave it; nothing for now.
        exptime: Option<i64>,
        /// No answer is wanted.
        noreply: bool,
    },
    /// Asks for the server's version.
    Version,
    /// Sets how much is logged.
    Verbosity {
        /// How much.
        level: u64,
        /// No answer is wanted.
        noreply: bool,
    },
    /// Asks for statistics. Which ones is told by the arguments that the step appended, perhaps none.
    Stats,
    /// Sets the memory limit.
    CacheMemlimit {
        /// In megabytes.
        megabytes: u64,
        /// No answer is wanted.
        noreply: bool,
    },
    /// Ends the server. How is told by the arguments that the step appended, perhaps none.
    Shutdown,
    /// That certificates are read anew.
    RefreshCerts,
    /// Asks for the keys, or for what memcached's crawler does. Which is told by the arguments that the step appended.
    LruCrawler,
    /// Tunes memcached's queues. How is told by the arguments that the step appended.
    Lru,
    /// Moves memory between memcached's size classes. How is told by the arguments that the step appended.
    Slabs,
    /// Watches what others do. What of it is told by the arguments that the step appended, perhaps none.
    Watch,
    /// Ends the connection.
    Quit,
}
