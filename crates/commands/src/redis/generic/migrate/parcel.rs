//! A key on its way to another server. Knows no connection.

use tenon_engine::context::KeyCx;
use tenon_engine::persist::rdb;

/// A key on its way to another server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parcel {
    pub(super) key: Vec<u8>,
    pub(super) content: Content,
    /// Whether the key may be there.
    pub(super) replace: bool,
}

/// What the other server is to be told of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// It holds this.
    Value {
        payload: Vec<u8>,
        deadline_ms: Option<u64>,
        /// Milliseconds to the deadline; 0: there is none.
        ttl_ms: u64,
    },
    /// It is gone.
    Gone,
}

impl Content {
    /// What a key holds now.
    pub(super) fn of(cx: &mut KeyCx<'_>) -> Option<Content> {
        let now_ms = cx.now_ms();
        let slot = cx.find()?;
        let entry = cx.entry(slot);
        let deadline_ms = entry.deadline_ms();
        let ttl_ms = deadline_ms.map_or(0, |deadline| deadline.saturating_sub(now_ms).max(1));
        Some(Content::Value { payload: rdb::dump(entry.value(), entry.flags()), deadline_ms, ttl_ms })
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory(&self) -> usize {
        match self {
            Content::Value { payload, .. } => payload.capacity(),
            Content::Gone => 0,
        }
    }

    /// Whether both leave the other server with the same.
    pub(super) fn is_as(&self, other: &Content) -> bool {
        match (self, other) {
            (
                Content::Value { payload, deadline_ms, .. },
                Content::Value { payload: other, deadline_ms: other_deadline_ms, .. },
            ) => payload == other && deadline_ms == other_deadline_ms,
            (one, other) => one == other,
        }
    }

    /// Whether the key has gone by itself by now: then it goes there, too.
    pub(super) fn is_over(&self, now_ms: u64) -> bool {
        match self {
            Content::Value { deadline_ms, .. } => deadline_ms.is_some_and(|deadline| deadline < now_ms),
            Content::Gone => true,
        }
    }
}
