//! Where a value of any form ends, found without reading what is in it. Knows no key.

use super::super::stream::Form;
use super::super::{DecodeError, Origin, kind};
use super::module;
use super::scan::{Scan, Stop};

/// What a value turned out to be, as far as one sees who passes over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Skipped {
    /// One of a type that there is.
    Known,
    /// One of a module's types, of this number.
    Module(u64),
}

/// Passes over a value of this form.
pub(super) fn skip_value(form: u8, origin: Origin, scan: &mut Scan<'_>) -> Result<Skipped, Stop> {
    match form {
        kind::STRING
        | kind::HASH_ZIPMAP
        | kind::LIST_ZIPLIST
        | kind::SET_INTSET
        | kind::ZSET_ZIPLIST
        | kind::HASH_ZIPLIST
        | kind::HASH_LISTPACK
        | kind::ZSET_LISTPACK
        | kind::SET_LISTPACK => scan.skip_string()?,
        kind::LIST | kind::SET | kind::LIST_QUICKLIST => {
            for _ in 0..scan.count(1)? {
                scan.skip_string()?;
            }
        }
        kind::LIST_QUICKLIST_2 => {
            for _ in 0..scan.count(2)? {
                scan.length()?;
                scan.skip_string()?;
            }
        }
        kind::ZSET => {
            for _ in 0..scan.count(2)? {
                scan.skip_string()?;
                match scan.byte()? {
                    253..=255 => {}
                    digits => _ = scan.take(digits.into())?,
                }
            }
        }
        kind::ZSET_2 => {
            for _ in 0..scan.count(1 + 8)? {
                scan.skip_string()?;
                scan.take(8)?;
            }
        }
        kind::HASH => skip_pairs(scan, 2, |_| Ok(()))?,
        kind::HASH_METADATA => {
            scan.take(8)?;
            skip_pairs(scan, 3, |scan| scan.length().map(drop))?;
        }
        kind::HASH_LISTPACK_EX => {
            scan.take(8)?;
            scan.skip_string()?;
        }
        kind::VALKEY_HASH_2 if origin == Origin::Valkey => {
            for _ in 0..scan.count(2 + 8)? {
                scan.skip_string()?;
                scan.skip_string()?;
                scan.take(8)?;
            }
        }
        kind::HASH_METADATA_EARLY => skip_pairs(scan, 3, |scan| scan.length().map(drop))?,
        kind::HASH_LISTPACK_EX_EARLY if origin == Origin::Redis => scan.skip_string()?,
        kind::STREAM_LISTPACKS
        | kind::STREAM_LISTPACKS_2
        | kind::STREAM_LISTPACKS_3
        | kind::STREAM_LISTPACKS_4
        | kind::STREAM_LISTPACKS_5 => skip_stream(Form::of(form), scan)?,
        kind::MODULE_2 => {
            let number = scan.length()?;
            module::skip_parts(scan)?;
            return Ok(Skipped::Module(number));
        }
        kind::MODULE => return Err(Stop::Wrong(DecodeError::Module)),
        unknown => return Err(Stop::Wrong(DecodeError::UnknownKind(unknown))),
    }
    Ok(Skipped::Known)
}

/// Passes over pairs of strings, before each of which `skip_before` passes over something else; a pair takes so many
/// bytes at least.
fn skip_pairs(
    scan: &mut Scan<'_>,
    pair_bytes: u64,
    mut skip_before: impl FnMut(&mut Scan<'_>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    for _ in 0..scan.count(pair_bytes)? {
        skip_before(scan)?;
        scan.skip_string()?;
        scan.skip_string()?;
    }
    Ok(())
}

/// Passes over a stream; what it looks like stands above `stream.rs`.
fn skip_stream(form: Form, scan: &mut Scan<'_>) -> Result<(), Stop> {
    for _ in 0..scan.count(2)? {
        scan.skip_string()?;
        scan.skip_string()?;
    }
    skip_lengths(scan, if form.has_counters { 8 } else { 3 })?;
    for _ in 0..scan.count(3)? {
        scan.skip_string()?;
        skip_lengths(scan, if form.has_counters { 3 } else { 2 })?;
        for _ in 0..scan.count(16 + 8 + 1)? {
            scan.take(16 + 8)?;
            scan.length()?;
        }
        for _ in 0..scan.count(1 + 8 + 1)? {
            scan.skip_string()?;
            scan.take(if form.has_activity { 16 } else { 8 })?;
            skip_ids(scan)?;
        }
        if form.has_released {
            skip_ids(scan)?;
        }
    }
    if !form.has_producers {
        return Ok(());
    }
    skip_lengths(scan, 2)?;
    for _ in 0..scan.count(2)? {
        scan.skip_string()?;
        for _ in 0..scan.count(3)? {
            scan.skip_string()?;
            skip_lengths(scan, 2)?;
        }
    }
    skip_lengths(scan, 2)
}

/// Passes over so many lengths.
pub(super) fn skip_lengths(scan: &mut Scan<'_>, count: usize) -> Result<(), Stop> {
    (0..count).try_for_each(|_| scan.length().map(drop))
}

/// Passes over a number of ids, and them.
fn skip_ids(scan: &mut Scan<'_>) -> Result<(), Stop> {
    let count = scan.count(16)?;
    // It was looked at that so many bytes are there.
    scan.take(count as usize * 16).map(drop)
}
