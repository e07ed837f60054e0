//! The numbers of the forms in which values are written, as Redis's `rdb.h` gives them out. Knows no form.

pub(super) const STRING: u8 = 0;
pub(super) const LIST: u8 = 1;
pub(super) const SET: u8 = 2;
/// With scores as texts.
pub(super) const ZSET: u8 = 3;
pub(super) const HASH: u8 = 4;
/// With scores as doubles.
pub(super) const ZSET_2: u8 = 5;
pub(super) const MODULE: u8 = 6;
pub(super) const MODULE_2: u8 = 7;
pub(super) const HASH_ZIPMAP: u8 = 9;
pub(super) const LIST_ZIPLIST: u8 = 10;
pub(super) const SET_INTSET: u8 = 11;
pub(super) const ZSET_ZIPLIST: u8 = 12;
pub(super) const HASH_ZIPLIST: u8 = 13;
/// Of ziplists.
pub(super) const LIST_QUICKLIST: u8 = 14;
pub(super) const STREAM_LISTPACKS: u8 = 15;
pub(super) const HASH_LISTPACK: u8 = 16;
pub(super) const ZSET_LISTPACK: u8 = 17;
/// Of listpacks and of single elements.
pub(super) const LIST_QUICKLIST_2: u8 = 18;
/// With counters.
pub(super) const STREAM_LISTPACKS_2: u8 = 19;
/// Since Redis 7.2.
pub(super) const SET_LISTPACK: u8 = 20;
/// With the times when consumers were active.
pub(super) const STREAM_LISTPACKS_3: u8 = 21;
/// Valkey 9's hash whose fields may expire.
pub(super) const VALKEY_HASH_2: u8 = 22;
/// The same in release candidates of Redis 7.4: the number was given out twice.
pub(super) const HASH_METADATA_EARLY: u8 = 22;
/// The same while it is small.
pub(super) const HASH_LISTPACK_EX_EARLY: u8 = 23;
/// Redis 7.4's hash whose fields may expire.
pub(super) const HASH_METADATA: u8 = 24;
/// The same while it is small.
pub(super) const HASH_LISTPACK_EX: u8 = 25;
/// With the producers whose entries are added once (Redis 8.6).
pub(super) const STREAM_LISTPACKS_4: u8 = 26;
/// With the entries that groups were given back (Redis 8.8).
pub(super) const STREAM_LISTPACKS_5: u8 = 27;

/// What a node of a `LIST_QUICKLIST_2` is.
pub(super) mod node {
    /// One element as it is.
    pub(in super::super) const PLAIN: u64 = 1;
    /// A listpack.
    pub(in super::super) const PACKED: u64 = 2;
}
