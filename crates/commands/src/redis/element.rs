//! Elements of collections as replies. Knows no command.

use tenon_engine::ds::packed::Item;
use tenon_engine::wire::resp::Reply;

/// Replies with an element, a string.
#[inline]
pub(crate) fn reply_element(item: Item<'_>, reply: &mut Reply<'_>) {
    match item {
        Item::Bytes(bytes) => reply.bulk(bytes),
        Item::Int(int) => reply.bulk_int(int),
    }
}
