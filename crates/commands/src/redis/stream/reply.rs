//! Ids and entries of streams in replies. Knows no command.

use crate::redis::reply_item::bulk_item;
use tenon_engine::ds::packed::IntText;
use tenon_engine::store::types::stream::{Entry, StreamId};
use tenon_engine::wire::resp::Reply;

/// The longest text of an id: twice twenty digits and what is between them.
const ID_LEN_MAX: usize = 41;

/// An id as text.
#[derive(Clone, Copy)]
pub(super) struct IdText {
    text: [u8; ID_LEN_MAX],
    len: usize,
}

impl IdText {
    /// The text of an id.
    pub(super) fn of(id: StreamId) -> IdText {
        let (mut ms, mut seq) = (IntText::new(), IntText::new());
        let (ms, seq) = (ms.format(id.ms).as_bytes(), seq.format(id.seq).as_bytes());
        let mut text = [b'-'; ID_LEN_MAX];
        let len = ms.len() + 1 + seq.len();
        text[..ms.len()].copy_from_slice(ms);
        text[ms.len() + 1..len].copy_from_slice(seq);
        IdText { text, len }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.text[..self.len]
    }
}

/// Writes an id as a string.
pub(super) fn reply_id(reply: &mut Reply<'_>, id: StreamId) {
    reply.bulk(IdText::of(id).as_bytes());
}

/// Writes an entry: its id, and its fields with their values.
pub(super) fn reply_entry(reply: &mut Reply<'_>, entry: &Entry<'_>) {
    reply.array(2);
    reply_id(reply, entry.id());
    reply_fields(reply, entry);
}

/// Writes an entry's fields with their values.
pub(super) fn reply_fields(reply: &mut Reply<'_>, entry: &Entry<'_>) {
    let fields = entry.fields();
    reply.array(fields.len() * 2);
    for (field, value) in fields {
        bulk_item(reply, field);
        bulk_item(reply, value);
    }
}

/// Writes entries as an array; gives how many they were.
pub(super) fn reply_entries<'a>(reply: &mut Reply<'_>, entries: impl Iterator<Item = Entry<'a>>) -> usize {
    let array = reply.array_deferred();
    let count = entries.map(|entry| reply_entry(reply, &entry)).count();
    reply.finish(array, count);
    count
}
