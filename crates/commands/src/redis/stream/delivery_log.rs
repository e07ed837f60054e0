//! What the log says of deliveries: in Redis's words, the time and number of each one given. Knows no command that
//! delivers.

use super::reply::IdText;
use tenon_engine::command::Effect;
use tenon_engine::context::{KeyCx, Word};
use tenon_engine::store::types::Stream;
use tenon_engine::store::types::stream::{Pending, StreamId};

/// What a consumer was given, or has taken over.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    /// Whether the consumer was not known before.
    pub(super) is_new_consumer: bool,
    /// Entries that it is to acknowledge, with the time and number of their deliveries as they are now.
    pub(super) pending: Vec<StreamId>,
    /// Entries that were deleted, and that nobody need acknowledge any more.
    pub(super) gone: Vec<StreamId>,
    /// Whether the group's last id has changed.
    pub(super) has_moved: bool,
}

impl Deliveries {
    /// Puts them down for a group of the stream, if they are any.
    pub(super) fn log(&self, cx: &mut KeyCx<'_>, group: &[u8], consumer: &[u8]) -> Effect {
        if !cx.logs() {
            return Effect::As;
        }
        let key = cx.key;
        if self.is_new_consumer {
            let _first = cx.log(&["XGROUP".into(), "CREATECONSUMER".into(), key.into(), group.into(), consumer.into()]);
        }
        let slot = cx.find().expect("the stream is there");
        let stream = cx.collection::<Stream>(slot).expect("it is a stream");
        let place = stream.group(group).expect("the group is there");
        let (last_id, entries_read) = (IdText::of(place.last_id()), place.entries_read());
        let deliveries: Vec<(StreamId, Pending)> =
            self.pending.iter().filter_map(|&id| Some((id, place.pending(id)?))).collect();
        // Those that were delivered at the same time equally often are one command.
        for alike in
            deliveries.chunk_by(|(_, a), (_, b)| (a.delivered_ms(), a.deliveries) == (b.delivered_ms(), b.deliveries))
        {
            let (delivered_ms, deliveries) = (alike[0].1.delivered_ms(), alike[0].1.deliveries);
            let ids: Vec<IdText> = alike.iter().map(|(id, _)| IdText::of(*id)).collect();
            let mut words: Vec<Word<'_>> = vec!["XCLAIM".into(), key.into(), group.into(), consumer.into(), "0".into()];
            words.extend(ids.iter().map(|id| Word::Bytes(id.as_bytes())));
            let when: [Word<'_>; 4] = ["TIME".into(), delivered_ms.into(), "RETRYCOUNT".into(), deliveries.into()];
            let how: [Word<'_>; 4] = ["FORCE".into(), "JUSTID".into(), "LASTID".into(), last_id.as_bytes().into()];
            words.extend(when.iter().chain(&how));
            let _next = cx.log(&words);
        }
        if !self.gone.is_empty() {
            let ids: Vec<IdText> = self.gone.iter().map(|id| IdText::of(*id)).collect();
            let words = ["XACK".into(), key.into(), group.into()];
            let _next = cx.log_of(&words, ids.iter().map(|id| Word::Bytes(id.as_bytes())));
        }
        if self.has_moved {
            let entries_read = entries_read.map_or(Word::Int(-1), Word::Unsigned);
            let position = [last_id.as_bytes().into(), "ENTRIESREAD".into(), entries_read];
            let words = ["XGROUP".into(), "SETID".into(), key.into(), group.into()];
            let _last = cx.log_of(&words, position.into_iter());
        }
        Effect::As
    }
}
