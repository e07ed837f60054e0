//! Random requests of memcached's protocols to Tenon and to memcached, whose answers must be the same. Knows no handler;
//! what is asked in which case on purpose stands in the transcripts and in `memcache_binary.rs`.
#![forbid(unsafe_code)]

mod binary;
mod meta;
mod sides;
