//! A string on its way to a client, and text on its way into the store. Knows no command.

use tenon_engine::store::entry::ValueRef;
use tenon_engine::store::types::Object;
use tenon_engine::wire::resp::Reply;

/// Writes a stored string as a bulk string; a long one goes out by reference.
#[inline]
pub fn reply_string(value: ValueRef<'_>, reply: &mut Reply<'_>) {
    match value {
        ValueRef::Bytes(bytes) => reply.bulk(bytes),
        ValueRef::Int(int) => reply.bulk_int(int),
        ValueRef::Object(Object::Shared(bytes)) => reply.bulk_shared(bytes),
        ValueRef::Object(Object::Rope(rope)) => reply.bulk_pieces(rope.len(), rope.range(0, rope.len())),
    }
}
