//! An element of a collection as a reply.

use tenon_engine::ds::packed::Item;
use tenon_engine::wire::resp::Reply;

/// Writes an element as a string.
#[inline]
pub(super) fn bulk_item(reply: &mut Reply<'_>, item: Item<'_>) {
    match item {
        Item::Bytes(bytes) => reply.bulk(bytes),
        Item::Int(int) => reply.bulk_int(int),
    }
}
