//! The bytes that a file's records begin with where no value's form stands, as Redis's `rdb.h` gives them out.

/// What modules keep of the next key, as `module.rs` has it (Redis 8.6).
pub(in crate::rdb) const KEY_METADATA: u8 = 0xF3;
/// The number was given out twice: what a slot is that comes in from another node (Valkey 9): its name, how many ranges,
/// each with first and last slot.
pub(super) const SLOT_IMPORT: u8 = 0xF3;
/// Which slot follows, and how many keys it has (Redis 8, cluster mode).
pub(super) const SLOT_INFO: u8 = 0xF4;
/// A library of functions.
pub(super) const FUNCTION: u8 = 0xF5;
/// The same in release candidates of Redis 7.0.
pub(super) const FUNCTION_BEFORE_7: u8 = 0xF6;
/// What a module keeps beside the keys.
pub(super) const MODULE_AUXILIARY: u8 = 0xF7;
/// Seconds since the next key was used.
pub(super) const IDLE: u8 = 0xF8;
/// How often the next key was used, as LFU counts.
pub(super) const FREQUENCY: u8 = 0xF9;
/// A name and a text, of which whoever does not know them takes no notice.
pub(in crate::rdb) const AUXILIARY: u8 = 0xFA;
/// How many keys the database has, and how many of them expire.
pub(super) const RESIZE: u8 = 0xFB;
/// When the next key expires, in milliseconds since the UNIX epoch.
pub(super) const DEADLINE_MS: u8 = 0xFC;
/// The same in seconds.
pub(super) const DEADLINE_SECONDS: u8 = 0xFD;
/// Which database follows.
pub(super) const SELECT: u8 = 0xFE;
/// The end; a checksum follows.
pub(super) const END: u8 = 0xFF;
