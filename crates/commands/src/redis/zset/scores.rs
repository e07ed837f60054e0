//! Members with or without their scores in a reply.

use crate::redis::reply_item::bulk_item;
use tenon_engine::ds::packed::Item;
use tenon_engine::wire::resp::{Proto, Reply};

/// Whether scores go with their members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::redis) enum Scores {
    /// Member and score: a pair each in RESP3, one behind the other in RESP2.
    With,
    /// Only members.
    Without,
}

/// Writes the header of an array of `count` members.
pub(in crate::redis) fn reply_members_header(reply: &mut Reply<'_>, count: usize, scores: Scores) {
    let is_flat = scores == Scores::With && reply.proto() == Proto::Resp2;
    reply.array(if is_flat { count * 2 } else { count });
}

/// Writes one member of such an array.
#[inline]
pub(in crate::redis) fn reply_member(reply: &mut Reply<'_>, member: Item<'_>, score: f64, scores: Scores) {
    if scores == Scores::Without {
        return bulk_item(reply, member);
    }
    if reply.proto() == Proto::Resp3 {
        reply.array(2);
    }
    bulk_item(reply, member);
    reply.double(score);
}
