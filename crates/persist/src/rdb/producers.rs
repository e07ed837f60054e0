//! What a stream remembers of its producers: a part of its form since Redis 8.6, and a field of our own behind the form that
//! Redis 7.0 reads. Nothing that is read is believed.
//!
//! ```text
//!   for how many seconds an id is remembered; how many of one producer at most
//!   how many producers; each: name, how many ids; each: the id as a string, both parts of its entry's id
//!   how many ids were ever remembered; how many entries came again
//! ```

use super::DecodeError;
use std::collections::HashSet;
use tenon_store::types::Stream;
use tenon_store::types::stream::{ProducerCounts, ProducerLimits, StreamId};
use tenon_wire::rdb::{Compression, Reader, Writer};

/// Ids of one field at most, and bytes of them after which it ends.
const FIELD_IDS: usize = 512;
const FIELD_BYTES: usize = 64 * 1024;

/// Where a field goes on: a producer, and its ids from this one on.
pub(super) type Place = (usize, usize);

/// Reads it; what a stream remembers already stays.
pub(super) fn read(reader: &mut Reader<'_>, stream: &mut Stream) -> Result<(), DecodeError> {
    let limits = ProducerLimits::new(reader.length()?, reader.length()?);
    stream.set_producer_limits(limits.ok_or(DecodeError::malformed("a stream remembers more than it may"))?);
    let mut names = HashSet::new();
    for _ in 0..reader.count(2)? {
        let name = reader.string()?.into_owned();
        if names.contains(&name) {
            return Err(DecodeError::malformed("a stream has a producer twice"));
        }
        for _ in 0..reader.count(3)? {
            let id = reader.string()?.into_owned();
            let entry = StreamId::new(reader.length()?, reader.length()?);
            // Nobody can have added such a one, nor could a log in commands have it; of equal ones Redis takes the first.
            let is_known = stream.entry_of_producer(&name, &id, 0).is_some();
            if !is_known && !name.is_empty() && !id.is_empty() {
                stream.remember(&name, &id, entry);
            }
        }
        names.insert(name);
    }
    stream.set_producer_counts(ProducerCounts { added: reader.length()?, duplicates: reader.length()? });
    Ok(())
}

/// Whether there is anything to be written.
pub(super) fn has_any(stream: &Stream) -> bool {
    stream.producers().is_some()
}

/// What a field says from a place on; several such fields add up. Gives the place to go on from, `None` at the end.
///
/// # Panics
/// When there is nothing ([`has_any`]).
pub(super) fn text_from(stream: &Stream, place: Place) -> (Vec<u8>, Option<Place>) {
    let producers = stream.producers().expect("it was asked whether there are any");
    let (nth, mut from) = place;
    let (mut ids_left, mut bytes_left) = (FIELD_IDS, FIELD_BYTES);
    let (mut count, mut next, mut bytes) = (0, None, Vec::new());
    for (nth, (name, ids)) in (nth..).zip(producers.starting_at(nth)) {
        if ids_left == 0 || bytes_left == 0 {
            next = Some((nth, 0));
            break;
        }
        let (mut written, mut some) = (0, Vec::new());
        let mut writer = Writer::new(&mut some, Compression::Off);
        let total = ids.len();
        for (id, entry) in ids.skip(from) {
            if ids_left == 0 || bytes_left == 0 {
                break;
            }
            writer.string(id);
            writer.length(entry.ms);
            writer.length(entry.seq);
            written += 1;
            ids_left -= 1;
            bytes_left = bytes_left.saturating_sub(id.len());
        }
        bytes_left = bytes_left.saturating_sub(name.len());
        let mut writer = Writer::new(&mut bytes, Compression::Off);
        writer.string(name);
        writer.length(written as u64);
        writer.raw(&some);
        count += 1;
        if from + written < total {
            next = Some((nth, from + written));
            break;
        }
        from = 0;
    }
    let mut text = Vec::new();
    let mut writer = Writer::new(&mut text, Compression::Off);
    let (ProducerLimits { duration_s, ids_max }, counts) = (producers.limits(), producers.counts());
    writer.length(duration_s.into());
    writer.length(ids_max.into());
    writer.length(count);
    writer.raw(&bytes);
    writer.length(counts.added);
    writer.length(counts.duplicates);
    (text, next)
}
