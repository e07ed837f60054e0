//! The bytes that a file's records begin with where no value's form stands, as Redis's `rdb.h` gives them out.

/// A library of functions.
pub(super) const FUNCTION: u8 = 0xF5;
/// Seconds since the next key was used.
pub(super) const IDLE: u8 = 0xF8;
/// How often the next key was used, as LFU counts.
pub(super) const FREQUENCY: u8 = 0xF9;
/// A name and a text, of which whoever does not know them takes no notice.
pub(super) const AUXILIARY: u8 = 0xFA;
/// How many keys the database has, and how many of them expire.
pub(super) const RESIZE: u8 = 0xFB;
/// When the next key expires, in milliseconds since the UNIX epoch.
pub(super) const DEADLINE_MS: u8 = 0xFC;
/// Which database follows.
pub(super) const SELECT: u8 = 0xFE;
/// The end; a checksum follows.
pub(super) const END: u8 = 0xFF;
